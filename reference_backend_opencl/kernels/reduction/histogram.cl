/* How many elements lie in each of `bins` equal parts from low to high; the last part has its end, too, and what lies
 * outside is counted nowhere. The head defines D, and off the CPU LOCAL_BINS where a work-group counts in local memory
 * first. Whole numbers are divided in f64, where quotients of those below 2^53 are cut rightly. Counts are whole numbers,
 * so that it is all the same in which order they grow. */
#if defined(CLASS_INT) || defined(IS_DOUBLE)
#define WIDE double
#else
#define WIDE float
#endif
DEFINE_ACCESS(in, D)
DEFINE_ACCESS(out, D)

typedef struct {
  long n, chunk, bins, rows; /* a work-group has `chunk` elements; counts are in so many rows, which add up */
} histogram_space;

/* Of a NaN and a number, the NaN. */
#define LEAST(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))
#define MOST(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))

#if LOCAL > 1
/* The least and the most that work-items of a group have, to each of them. */
static INLINED void bring_together(WIDE *least, WIDE *most, __local WIDE *shared) {
  int id = (int)get_local_id(0);
  shared[id] = *least;
  shared[LOCAL + id] = *most;
  for (int step = LOCAL / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < step) {
      shared[id] = LEAST(shared[id], shared[id + step]);
      shared[LOCAL + id] = MOST(shared[LOCAL + id], shared[LOCAL + id + step]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  *least = shared[0];
  *most = shared[LOCAL];
}
#endif

/* The least and the most of each work-group's chunk. */
KERNEL extremes(PLACE(bounds), CONST_PLACE(in), histogram_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  WIDE low = INFINITY, high = -INFINITY, lows[VEC], highs[VEC];
  VEC_OF(WIDE) least = (VEC_OF(WIDE))low, most = (VEC_OF(WIDE))high;
  for (long i = begin + (long)get_local_id(0) * VEC; i < end; i += VEC * LOCAL) {
    VEC_OF(WIDE) x = CONVERT(WIDE, get_in(from + i, (int)min((long)VEC, end - i)));
    least = LEAST(least, x);
    most = MOST(most, x);
  }
  VSTORE(least, lows);
  VSTORE(most, highs);
  for (int j = 0; j < VEC; j++) {
    low = LEAST(low, lows[j]);
    high = MOST(high, highs[j]);
  }
#if LOCAL > 1
  __local WIDE shared[2 * LOCAL];
  bring_together(&low, &high, shared);
#endif
  if (get_local_id(0) != 0) return;
  __global WIDE *to = (__global WIDE *)(bounds + offset_bounds) + 2 * get_group_id(0);
  to[0] = low;
  to[1] = high;
}

/* Which part each number lies in; `bins` for those in none. */
static VEC_OF(int) part_of(VEC_OF(WIDE) x, WIDE low, WIDE high, long bins) {
  VEC_OF(int) inside = CONVERT(int, (x >= low) & (x <= high)), none = (VEC_OF(int))(int)bins;
  VEC_OF(WIDE) at = (x - low) * (WIDE)bins / (high - low);
  VEC_OF(int) part = CONVERT(int, fmax(fmin(at, (WIDE)(bins - 1)), (WIDE)0));
  return inside ? part : none;
}

/* `pairs` of bounds, where there are some, say where the data begin and end, else `low` and `high`. */
KERNEL count_parts(PLACE(counts), CONST_PLACE(in), CONST_PLACE(bounds), __global long *faults, long pairs, WIDE low,
                   WIDE high, histogram_space space) {
  __global const RAW(D) *from = CONST_POINTER(D, in);
  __global const WIDE *ends = (__global const WIDE *)(bounds + offset_bounds);
  long begin = (long)get_group_id(0) * space.chunk, end = min(begin + space.chunk, space.n);
  int id = (int)get_local_id(0);
#if LOCAL > 1
  __local WIDE shared[2 * LOCAL];
#endif
  if (pairs) {
    low = INFINITY;
    high = -INFINITY;
    for (long k = id; k < pairs; k += LOCAL) {
      low = LEAST(low, ends[2 * k]);
      high = MOST(high, ends[2 * k + 1]);
    }
#if LOCAL > 1
    bring_together(&low, &high, shared);
#endif
    if (!(isfinite(low) && isfinite(high)) && id == 0) REPORT(faults, OP_ID, 0, FAULT_RANGE);
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
#if LOCAL == 1
  __global uint *row = (__global uint *)(counts + offset_counts) + get_group_id(0) * (space.bins + 1);
  for (long k = 0; k <= space.bins; k++) row[k] = 0;
#else
  __global uint *all = (__global uint *)(counts + offset_counts);
#ifdef LOCAL_BINS
  __local uint row[LOCAL_BINS];
  for (long k = id; k < space.bins; k += LOCAL) row[k] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#else
  __global uint *row = all;
#endif
#endif
  for (long i = begin + (long)id * VEC; i < end; i += VEC * LOCAL) {
    int n = (int)min((long)VEC, end - i), parts[VEC];
    VSTORE(part_of(CONVERT(WIDE, get_in(from + i, n)), low, high, space.bins), parts);
#if LOCAL == 1
    for (int j = 0; j < n; j++) row[parts[j]]++;
#else
    for (int j = 0; j < n; j++) {
      if (parts[j] < space.bins) atomic_inc(row + parts[j]);
    }
#endif
  }
#ifdef LOCAL_BINS
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long k = id; k < space.bins; k += LOCAL) {
    if (row[k]) atomic_add(all + k, row[k]);
  }
#endif
}

/* What the rows have of each part. */
KERNEL store_counts(PLACE(out), CONST_PLACE(counts), histogram_space space) {
  long bin = (long)get_global_id(0);
  __global const uint *from = (__global const uint *)(counts + offset_counts);
  ulong sum = 0;
  if (bin >= space.bins) return;
  for (long row = 0; row < space.rows; row++) sum += from[row * (space.bins + 1) + bin];
  put_out(POINTER(D, out) + bin, (VT)(CT)sum, 1);
}
