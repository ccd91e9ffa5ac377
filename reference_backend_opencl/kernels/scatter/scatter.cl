/* Scatters: see indexed.h; after joins.cl. Places can only meet in one element of the target if they differ along
 * dimensions in which the target itself does not run. Those are the scanned dimensions; along them a work-item goes in logical order, so that
 * the result is the same each time, without atomics. Where that leaves too few work-items, several share a scan: each
 * takes the indices of its own part of the target.
 *
 * The head defines D_TARGET, D_SOURCE, FREE and SCAN (ranks), INDICES, INDEX_PARAMETERS, INDEX_POINTERS, WRAPS, OP_ID,
 * COMBINE(old, new), which may be new alone, and ROWS: indices are the same along the innermost free dimension, along
 * which vectors run if VEC is not 1. `number` is the source (IS_VALUE) or a factor of it (IS_SCALED). */
typedef struct {
  long free_size[FREE];
  STRIDES(FREE) free_stride[INDICES + 2];
  long scan_size[SCAN];
  STRIDES(SCAN) scan_stride[INDICES + 2];
  long bound[INDICES], step[INDICES], skip;
  long width, units_per_row, units, per_item, parts, part_size, scans;
} space;

/* Where the indices at these places point; -1 where one is out of range or none of this part's. */
static long resolve(__global const long *const *index, const long *at, long i, const space *shape, long part,
                    __global long *faults) {
  long where = 0, row = 0;
  int in_range = 1;
#pragma unroll
  for (int k = 0; k < INDICES; k++) {
    if (!in_range) continue;
    long v = index[k][at[k + 2] + i * shape->free_stride[k + 2].along[0]];
    long size = shape->bound[k], wrapped = WRAPS && v < 0 ? v + size : v;
    in_range = wrapped >= 0 && wrapped < size;
    if (!in_range) {
      REPORT(faults, OP_ID, v, size);
      continue;
    }
    where += wrapped * shape->step[k];
    row = row * size + wrapped;
  }
  if (!in_range || row == shape->skip) return -1;
  long first = part * shape->part_size;
  return row >= first && row < first + shape->part_size ? where : -1;
}

DEFINE_ACCESS(target, D_TARGET)
DEFINE_ACCESS(source, D_SOURCE)

#if defined(IS_VALUE)
#define SOURCE(at, n) (VT) number
#elif defined(IS_SCALED)
#define SOURCE(at, n) MUL(get_source(at, n), (VT)number)
#else
#define SOURCE(at, n) get_source(at, n)
#endif

#if INDICES == 1 && VEC == 1 && !defined(ROWS)
#define RUN 8
/* `count` elements whose indices go by one stride, where neither parts nor indices to pass over are to be looked at. */
static void scatter_run(__global RAW(D_TARGET) * to, long to_stride, __global const RAW(D_SOURCE) * from,
                        long from_stride, __global const long *index, long index_stride, long count, CT number,
                        const space *shape, __global long *faults) {
  const int n = 1;
  const long size = shape->bound[0], step = shape->step[0];
  long i = 0;
  for (; i + RUN <= count; i += RUN) {
    long where[RUN];
    int in_range = 1;
#pragma unroll
    for (int j = 0; j < RUN; j++) {
      where[j] = index[(i + j) * index_stride];
      if (WRAPS) where[j] += where[j] < 0 ? size : 0;
      in_range &= (ulong)where[j] < (ulong)size;
    }
    if (!in_range) break;
#pragma unroll
    for (int j = 0; j < RUN; j++) {
      __global RAW(D_TARGET) *element = to + where[j] * step + (i + j) * to_stride;
      VT fresh = SOURCE(from + (i + j) * from_stride, n);
      put_target(element, COMBINE(get_target(element, n), fresh), n);
    }
  }
  for (; i < count; i++) {
    long v = index[i * index_stride], where = WRAPS && v < 0 ? v + size : v;
    if ((ulong)where >= (ulong)size) {
      REPORT(faults, OP_ID, v, size);
      continue;
    }
    __global RAW(D_TARGET) *element = to + where * step + i * to_stride;
    VT fresh = SOURCE(from + i * from_stride, n);
    put_target(element, COMBINE(get_target(element, n), fresh), n);
  }
}
#define HAS_RUNS
#endif

KERNEL scatter(PLACE(target), CONST_PLACE(source), CT number, __global long *faults, INDEX_PARAMETERS, space shape) {
  __global const long *const index[INDICES] = {INDEX_POINTERS};
  long part = (long)get_global_id(0) % shape.parts, first = (long)get_global_id(0) / shape.parts * shape.per_item;
  long last = min(first + shape.per_item, shape.units);
  for (long unit = first; unit < last; unit++) {
    long outer = shape.units_per_row == 1 ? unit : unit / shape.units_per_row;
    long begin = unit % shape.units_per_row * shape.width, end = min(begin + shape.width, shape.free_size[0]);
    long at[INDICES + 2], place[SCAN];
    for (int k = 0; k < INDICES + 2; k++) at[k] = 0;
    for (int d = 1; d < FREE; d++) {
      long i = d < FREE - 1 ? outer % shape.free_size[d] : outer;
      if (d < FREE - 1) outer /= shape.free_size[d];
      for (int k = 0; k < INDICES + 2; k++) at[k] += i * shape.free_stride[k].along[d];
    }
    for (int d = 0; d < SCAN; d++) place[d] = 0;
#ifdef HAS_RUNS
    const bool plain = shape.parts == 1 && shape.skip == -1;
#if SCAN == 1
    if (plain && end == begin + 1) { /* all that goes to one line of the target */
      scatter_run(POINTER(D_TARGET, target) + at[1] + begin * shape.free_stride[1].along[0],
                  shape.scan_stride[1].along[0],
                  CONST_POINTER(D_SOURCE, source) + at[0] + begin * shape.free_stride[0].along[0],
                  shape.scan_stride[0].along[0], index[0] + at[2] + begin * shape.free_stride[2].along[0],
                  shape.scan_stride[2].along[0], shape.scans, number, &shape, faults);
      continue;
    }
#endif
#endif
    for (long scan = 0; scan < shape.scans; scan++) {
      __global RAW(D_TARGET) *to = POINTER(D_TARGET, target) + at[1];
      __global const RAW(D_SOURCE) *from = CONST_POINTER(D_SOURCE, source) + at[0];
#ifdef ROWS
      long where = resolve(index, at, 0, &shape, part, faults);
      long stop = where < 0 ? begin : end;
#else
      long stop = end;
#endif
#ifdef HAS_RUNS
      if (plain && begin < stop) {
        scatter_run(to + begin * shape.free_stride[1].along[0], shape.free_stride[1].along[0],
                    from + begin * shape.free_stride[0].along[0], shape.free_stride[0].along[0],
                    index[0] + at[2] + begin * shape.free_stride[2].along[0], shape.free_stride[2].along[0],
                    end - begin, number, &shape, faults);
        stop = begin;
      }
#endif
      for (long i = begin; i < stop; i += VEC) {
        int n = (int)min((long)VEC, end - i);
#ifndef ROWS
        long where = resolve(index, at, i, &shape, part, faults);
        if (where < 0) continue;
#endif
        VT v = SOURCE(from + i * shape.free_stride[0].along[0], n);
        __global RAW(D_TARGET) *element = to + where + i * shape.free_stride[1].along[0];
        put_target(element, COMBINE(get_target(element, n), v), n);
      }
      int carries = 1;
      for (int d = 0; d < SCAN; d++) { /* on to the next place of the scan */
        if (!carries) continue;
        for (int k = 0; k < INDICES + 2; k++) at[k] += shape.scan_stride[k].along[d];
        carries = ++place[d] == shape.scan_size[d];
        if (!carries) continue;
        place[d] = 0;
        for (int k = 0; k < INDICES + 2; k++) at[k] -= shape.scan_size[d] * shape.scan_stride[k].along[d];
      }
    }
  }
}

/* From one dtype to another, end to end: sums of half types are made in f32. A work-item takes `chunk` elements. */
KERNEL widen(PLACE(to), CONST_PLACE(from), long count, long chunk) {
  long i = (long)get_global_id(0) * chunk, end = min(i + chunk, count);
  for (; i < end; i += VEC) {
    int n = (int)min((long)VEC, end - i);
    put_target(POINTER(D_TARGET, to) + i, get_source(CONST_POINTER(D_SOURCE, from) + i, n), n);
  }
}

KERNEL narrow(PLACE(to), CONST_PLACE(from), long count, long chunk) {
  long i = (long)get_global_id(0) * chunk, end = min(i + chunk, count);
  for (; i < end; i += VEC) {
    int n = (int)min((long)VEC, end - i);
    put_source(POINTER(D_SOURCE, to) + i, get_target(CONST_POINTER(D_TARGET, from) + i, n), n);
  }
}
