/* The head defines INDICES for gather (see indexed.h): D, RANK, INDICES, INDEX_PARAMETERS, INDEX_POINTERS, ROWS (indices
 * are the same along the innermost dimension), CONTIGUOUS (plain and picked both are, along it), WRAPS, OP_ID. */
#ifdef INDICES
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[INDICES + 2];
  long bound[INDICES], step[INDICES];
  long chunk, chunks_per_row, chunks, per_item;
} space;

/* Where the indices at these places point, or -1 where one is out of range. */
static long resolve(__global const long *const *index, const long *at, long i, const space *shape,
                    __global long *faults) {
  long where = 0;
  int in_range = 1;
#pragma unroll
  for (int k = 0; k < INDICES; k++) {
    if (!in_range) continue;
    long v = index[k][at[k + 2] + i * shape->stride[k + 2].along[0]];
    long size = shape->bound[k], wrapped = WRAPS && v < 0 ? v + size : v;
    in_range = wrapped >= 0 && wrapped < size;
    if (in_range) where += wrapped * shape->step[k];
    else REPORT(faults, OP_ID, v, size);
  }
  return in_range ? where : -1;
}

/* A vector of a type that may lie anywhere is moved in parts. On a GPU one that lies at a multiple of its size is moved as
 * one. */
#if defined(IS_CPU) || VEC == 1
#define IS_WHOLE(p) 0
#else
#define IS_WHOLE(p) ((ulong)(p) % (VEC * sizeof(*(p))) == 0)
#endif

#if INDICES == 1 && !defined(ROWS)
#ifdef IS_CPU
#define RUN 8
#else
#define RUN 4 /* a work-item has no more */
#endif

static void read_places(long *where, __global const long *index) {
#ifndef IS_CPU
  if ((ulong)index % sizeof(long4) == 0) {
    const long4 all = *(__global const long4 *)index;
    where[0] = all.x, where[1] = all.y, where[2] = all.z, where[3] = all.w;
    return;
  }
#endif
#pragma unroll
  for (int j = 0; j < RUN; j++) where[j] = index[j];
}

/* Of elements whose indices lie side by side, runs of RUN that are all in range; returns where the first other begins. */
static long gather_runs(__global RAW(D) * to, __global const RAW(D) * from, long stride_from, __global const long *index,
                        long i, long end, const space *shape) {
  const long size = shape->bound[0], step = shape->step[0];
  for (; i + RUN <= end; i += RUN) {
    long where[RUN];
    int in_range = 1;
    read_places(where, index + i);
#pragma unroll
    for (int j = 0; j < RUN; j++) {
      if (WRAPS) where[j] += where[j] < 0 ? size : 0;
      in_range &= (ulong)where[j] < (ulong)size;
    }
    if (!in_range) return i;
    RAW(D) found[RUN];
#pragma unroll
    for (int j = 0; j < RUN; j++) found[j] = from[where[j] * step + (i + j) * stride_from];
#if VEC == RUN && !defined(IS_CPU)
    if (IS_WHOLE(to + i)) {
      *(__global VEC_OF(RAW(D)) *)(to + i) = VLOAD(found);
      continue;
    }
#endif
#pragma unroll
    for (int j = 0; j < RUN; j++) to[i + j] = found[j];
  }
  return i;
}
#endif

/* Where an index is out of range there is a zero: what is unwritten may be read before the failure is told. */
KERNEL gather(PLACE(out), CONST_PLACE(in), __global long *faults, INDEX_PARAMETERS, space shape) {
  __global const long *const index[INDICES] = {INDEX_POINTERS};
  long first = (long)get_global_id(0) * shape.per_item, last = min(first + shape.per_item, shape.chunks);
  for (long chunk = first; chunk < last; chunk++) {
    long outer = shape.chunks_per_row == 1 ? chunk : chunk / shape.chunks_per_row;
    long i = (chunk - outer * shape.chunks_per_row) * shape.chunk, end = min(i + shape.chunk, shape.size[0]);
    long at[INDICES + 2];
    for (int k = 0; k < INDICES + 2; k++) at[k] = 0;
    for (int d = 1; d < RANK; d++) {
      long place = d < RANK - 1 ? outer % shape.size[d] : outer;
      if (d < RANK - 1) outer /= shape.size[d];
      for (int k = 0; k < INDICES + 2; k++) at[k] += place * shape.stride[k].along[d];
    }
    __global RAW(D) *to = POINTER(D, out) + at[0];
    __global const RAW(D) *from = CONST_POINTER(D, in) + at[1];
    long stride_to = shape.stride[0].along[0], stride_from = shape.stride[1].along[0];
#ifdef ROWS
    long where = resolve(index, at, 0, &shape, faults);
    if (where < 0) {
      for (; i < end; i++) to[i * stride_to] = (RAW(D))0;
      continue;
    }
    from += where;
#ifdef CONTIGUOUS
    for (; i + VEC <= end; i += VEC) {
      if (IS_WHOLE(from + i) && IS_WHOLE(to + i))
        *(__global VEC_OF(RAW(D)) *)(to + i) = *(__global const VEC_OF(RAW(D)) *)(from + i);
      else
        VSTORE(VLOAD(from + i), to + i);
    }
#endif
    for (; i < end; i++) to[i * stride_to] = from[i * stride_from];
#else
#if INDICES == 1
    if (stride_to == 1 && shape.stride[2].along[0] == 1) {
      i = gather_runs(to, from, stride_from, index[0] + at[2], i, end, &shape);
    }
#endif
    for (; i < end; i++) {
      long where = resolve(index, at, i, &shape, faults);
      to[i * stride_to] = where < 0 ? (RAW(D))0 : from[where + i * stride_from];
    }
#endif
  }
}
#else

/* nonzero, in three kernels: each chunk counts, one work-item turns counts into places, each chunk writes its indices.
 * The head defines D, RANK and `chunk` as CHUNK; the input is contiguous. */
static int is_set(__global const RAW(D) * at) {
  CT v = LOAD(D, __global, at);
  return NONZERO(v);
}

KERNEL count(CONST_PLACE(in), PLACE(work), ulong n, ulong chunk) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  long found = 0;
  if (i >= n) return;
  for (; i < end; i++) found += is_set(from + i);
  ((__global long *)(work + offset_work))[get_global_id(0) + 1] = found;
}

/* places[k] becomes the sum of the counts before chunk k; the last is the total. */
KERNEL_OF(1, 1) accumulate(PLACE(work), ulong chunks) {
  __global long *places = (__global long *)(work + offset_work);
  long sum = 0;
  places[0] = 0;
  for (ulong k = 1; k <= chunks; k++) {
    sum += places[k];
    places[k] = sum;
  }
}

typedef struct {
  long size[RANK]; /* outermost first */
} shape_t;

/* Of the first `rows` alone, where there are more. */
KERNEL fill(CONST_PLACE(in), CONST_PLACE(work), ulong n, ulong chunk, PLACE(out), long rows, shape_t shape) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  if (i >= n) return;
  long row = ((__global const long *)(work + offset_work))[get_global_id(0)];
  __global long *to = (__global long *)(out + offset_out) + RANK * row;
  for (; i < end && row < rows; i++) {
    if (!is_set(from + i)) continue;
    row++;
    long rest = (long)i;
    for (int d = RANK - 1; d >= 0; d--) {
      to[d] = rest % shape.size[d];
      rest /= shape.size[d];
    }
    to += RANK;
  }
}

/* masked_select: values where the mask, D, is set, from the chunk's place on. */
KERNEL take_masked(CONST_PLACE(mask), CONST_PLACE(work), ulong n, ulong chunk, CONST_PLACE(in), PLACE(out)) {
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  if (i >= n) return;
  __global RAW(D_VALUE) *to = POINTER(D_VALUE, out) +
                              ((__global const long *)(work + offset_work))[get_global_id(0)];
  __global const RAW(D_VALUE) *from = CONST_POINTER(D_VALUE, in);
  for (; i < end; i++) {
    if (mask[offset_mask + i]) *to++ = from[i];
  }
}

/* masked_scatter: the same places, read from `source`; elsewhere what was there. */
KERNEL put_masked(CONST_PLACE(mask), CONST_PLACE(work), ulong n, ulong chunk, CONST_PLACE(in), PLACE(out),
                  CONST_PLACE(source), long available, __global long *faults) {
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  if (i >= n) return;
  __global RAW(D_VALUE) *to = POINTER(D_VALUE, out);
  __global const RAW(D_VALUE) *from = CONST_POINTER(D_VALUE, in);
  __global const RAW(D_VALUE) *fresh = CONST_POINTER(D_VALUE, source);
  long next = ((__global const long *)(work + offset_work))[get_global_id(0)];
  for (; i < end; i++) {
    bool fits = mask[offset_mask + i] && next < available;
    if (mask[offset_mask + i] && !fits) REPORT(faults, OP_ID, next, available);
    to[i] = fits ? fresh[next] : from[i];
    next += mask[offset_mask + i] != 0;
  }
}
#endif
