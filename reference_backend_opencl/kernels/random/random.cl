/* What is drawn from the Philox of philox.cl, by blocks.cl. The numbers are the ABI's: element i takes word i mod 4 of the block with
 * counter offset/4 + i/4, f64 two words an element; so every backend draws the same ones.
 *
 * The head defines D (the dtype), WIDE for f64, and which kernels are wanted: RRELU, DROPOUT, DROPOUT_BACKWARD, DRAW with
 * NORMAL, LOG_NORMAL, EXPONENTIAL, CAUCHY, GEOMETRIC or none of these, INTEGERS, BERNOULLI (CHANCES: with D_P, one chance an element), MULTINOMIAL, PERMUTE. */
#ifdef WIDE
#define PER_BLOCK 2
#define DRAW_BITS(k) (((ulong)words[2 * (k) + 1] << 32 | words[2 * (k)]) >> 11) /* 53 bits */
#else
#define PER_BLOCK 4
#define DRAW_BITS(k) ((ulong)(words[k] >> 8)) /* 24 bits */
#endif

#ifdef WIDE
#define UNIFORM(k) ((double)DRAW_BITS(k) * 0x1p-53)
#else
#define UNIFORM(k) ((float)DRAW_BITS(k) * 0x1p-24f)
#endif

/* The blocks of this work-item, BLOCKS at a time; and their words, for `count` elements from `begin` on. */
#define EACH_DRAW                                                                                 \
  const ulong own = get_global_id(0) * blocks_per_item, blocks = (n + PER_BLOCK - 1) / PER_BLOCK; \
  const ulong last = min(own + blocks_per_item, blocks);                                          \
  for (ulong block = own; block < last; block += BLOCKS)
#define DRAWN                                                            \
  uint words[4 * BLOCKS];                                                \
  draw_blocks(first_block + block, seed, words);                         \
  const ulong begin = block * PER_BLOCK;                                 \
  const int count = (int)min(n - begin, (ulong)PER_BLOCK * BLOCKS)

/* EACH_DRAWN visits these elements. A GPU has one block of them, whose arrays stay in registers where loops have an end
 * that is known; and it moves the block whole where that is one access. */
#ifdef IS_CPU
#define EACH_DRAWN(k) for (int k = 0; k < count; k++)
#define IS_WHOLE(p) false
#else
#define EACH_DRAWN(k)                            \
  _Pragma("unroll") for (int k = 0; k < PER_BLOCK; k++) \
    if (k < count)
#define IS_WHOLE(p) (count == PER_BLOCK && (ulong)(p) % (PER_BLOCK * sizeof(*(p))) == 0)
#endif
#define MOVE_BLOCK(space_to, to, space_from, from, type, whole)                                             \
  if (whole)                                                                                                \
    *(space_to CAT(type, PER_BLOCK) *)(to) = *(space_from CAT(type, PER_BLOCK) *)(from);                    \
  else                                                                                                      \
    EACH_DRAWN(move) (to)[move] = (from)[move]
#define ALIGNED_BLOCK __attribute__((aligned(32))) /* of an array in private memory that is moved whole */

#ifdef RRELU
/* What is not positive is scaled by lower + (upper - lower) * number, fused, then rounded to D; `noise` keeps that
 * slope. */
KERNEL rrelu(PLACE(out), PLACE(noise), CONST_PLACE(in), ulong seed, ulong first_block, CT lower, CT upper, ulong n,
             ulong blocks_per_item) {
  __global RAW(D) *to = POINTER(D, out), *kept = POINTER(D, noise);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  EACH_DRAW {
    DRAWN;
    RAW(D) slopes[PER_BLOCK * BLOCKS];
    for (int k = 0; k < PER_BLOCK * BLOCKS; k++) STORE(D, __private, slopes + k, fma(UNIFORM(k), upper - lower, lower));
    for (int k = 0; k < count; k++) {
      CT v = LOAD(D, __global, from + begin + k), slope = v <= 0 ? LOAD(D, __private, slopes + k) : (CT)1;
      STORE(D, __global, kept + begin + k, slope);
      STORE(D, __global, to + begin + k, v <= 0 ? v * slope : v);
    }
  }
}
#endif

#ifdef DROPOUT
/* Keeps an element where its number lies below `threshold`, (1 - p) in the numbers' own unit: no rounding is left to
 * differ in. A work-item takes `blocks_per_item` blocks. */
KERNEL dropout(PLACE(out), PLACE(mask), CONST_PLACE(in), ulong seed, ulong first_block, ulong threshold, CT scale,
               ulong n, ulong blocks_per_item) {
  __global RAW(D) *to = POINTER(D, out);
  __global const RAW(D) *from = CONST_POINTER(D, in);
  EACH_DRAW {
    DRAWN;
    uchar keep[PER_BLOCK * BLOCKS] ALIGNED_BLOCK;
    for (int k = 0; k < PER_BLOCK * BLOCKS; k++) keep[k] = DRAW_BITS(k) < threshold;
#ifdef IS_CPU
    for (int k = 0; k < count; k++) {
      CT v = LOAD(D, __global, from + begin + k);
      STORE(D, __global, to + begin + k, keep[k] ? v * scale : (CT)0);
    }
#else
    RAW(D) lanes[PER_BLOCK] ALIGNED_BLOCK;
    MOVE_BLOCK(__private, lanes, __global const, from + begin, RAW(D), IS_WHOLE(from));
    EACH_DRAWN(k) {
      CT v = LOAD(D, __private, lanes + k);
      STORE(D, __private, lanes + k, keep[k] ? v * scale : (CT)0);
    }
    MOVE_BLOCK(__global, to + begin, __private, lanes, RAW(D), IS_WHOLE(to));
#endif
    __global uchar *kept = mask + offset_mask;
    MOVE_BLOCK(__global, kept + begin, __private, keep, uchar, IS_WHOLE(kept));
  }
}
#endif

#ifdef DROPOUT_BACKWARD
KERNEL dropout_backward(PLACE(out), CONST_PLACE(grad), CONST_PLACE(mask), CT scale, long n, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
  __global const RAW(D) *from = CONST_POINTER(D, grad);
  long i = (long)get_global_id(0) * chunk, end = min(i + chunk, n);
  for (; i + VEC <= end; i += VEC) {
    VT v = LOAD(D, __global, from + i) * (CONVERT(CT, VLOAD(mask + offset_mask + i)) * scale);
    STORE(D, __global, to + i, v);
  }
  for (; i < end; i++) {
    RAW(D) lanes[VEC];
    for (int j = 0; j < VEC; j++) lanes[j] = from[i];
    VT v = LOAD(D, __private, lanes) * ((CT)mask[offset_mask + i] * scale);
    STORE(D, __private, lanes, v);
    to[i] = lanes[0];
  }
}
#endif

#ifdef DRAW
/* Half types take the f32 number truncated, so that 1 is never reached. */
#define TRUNCATE_f16(p, u) vstore_half_rtz(u, 0, (__private half *)(p))
#define TRUNCATE_bf16(p, u) (*(p) = (ushort)(as_uint(u) >> 16))
#define TRUNCATE_f32(p, u) (*(p) = (u))
#define TRUNCATE_f64(p, u) (*(p) = (u))

/* The pairs that a normal number is made of. */
#if PER_BLOCK * BLOCKS == 32
#define PAIRS 16
#define PT CAT(CT, 16)
#define LOAD_PAIRS(p) vload16(0, p)
#define STORE_PAIRS(v, p) vstore16(v, 0, p)
#elif PER_BLOCK * BLOCKS == 16
#define PAIRS 8
#define PT CAT(CT, 8)
#define LOAD_PAIRS(p) vload8(0, p)
#define STORE_PAIRS(v, p) vstore8(v, 0, p)
#elif PER_BLOCK == 4
#define PAIRS 2
#define PT CAT(CT, 2)
#define LOAD_PAIRS(p) vload2(0, p)
#define STORE_PAIRS(v, p) vstore2(v, 0, p)
#else
#define PAIRS 1
#define PT CT
#define LOAD_PAIRS(p) (*(p))
#define STORE_PAIRS(v, p) (*(p) = (v))
#endif

static CT shifted(CT u, CT from, CT range) {
#if defined(HAS_F64) && !defined(WIDE)
  return (CT)((double)from + (double)u * (double)range);
#else
  return fma(u, range, from);
#endif
}

#ifdef WIDE
#define LEAST_UNIFORM 0x1p-53
#else
#define LEAST_UNIFORM 0x1p-24f
#endif

/* from + range * number; `truncates` where that is the number itself. With EXPONENTIAL range is the rate, with GEOMETRIC
 * the logarithm of the chance of a failure. */
#if defined(EXPONENTIAL)
#define FROM_UNIFORM(u) (-log1p(-fmax(u, (PT)LEAST_UNIFORM)) / range)
#elif defined(GEOMETRIC)
#define FROM_UNIFORM(u) fmax(ceil(log1p(-(u)) / range), (PT)1)
#elif defined(CAUCHY) /* u - 1/2 is exact */
#define ANGLE(u) (fmax(u, (PT)LEAST_UNIFORM) - (PT)0.5f)
#define FROM_UNIFORM(u) (from + range * (sinpi(ANGLE(u)) / cospi(ANGLE(u))))
#elif defined(LOG_NORMAL)
#define FROM_NORMAL(z) exp(from + z)
#elif defined(NORMAL)
#define FROM_NORMAL(z) (from + z)
#endif

KERNEL draw(PLACE(out), ulong seed, ulong first_block, CT from, CT range, long truncates, ulong n,
            ulong blocks_per_item) {
  __global RAW(D) *to = POINTER(D, out);
  EACH_DRAW {
    DRAWN;
    RAW(D) lanes[PER_BLOCK * BLOCKS] ALIGNED_BLOCK;
#if defined(FROM_NORMAL) || defined(FROM_UNIFORM)
    CT first[PAIRS], second[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; k++) {
      first[k] = UNIFORM(2 * k);
      second[k] = UNIFORM(2 * k + 1);
    }
#ifdef FROM_NORMAL
    PT radius = range * sqrt((PT)-2 * log((PT)1 - LOAD_PAIRS(first))), turn = (PT)2 * LOAD_PAIRS(second);
    STORE_PAIRS(FROM_NORMAL(radius * cospi(turn)), first);
    STORE_PAIRS(FROM_NORMAL(radius * sinpi(turn)), second);
#else
    STORE_PAIRS(FROM_UNIFORM(LOAD_PAIRS(first)), first);
    STORE_PAIRS(FROM_UNIFORM(LOAD_PAIRS(second)), second);
#endif
#pragma unroll
    for (int k = 0; k < PAIRS; k++) {
      STORE(D, __private, lanes + 2 * k, first[k]);
      STORE(D, __private, lanes + 2 * k + 1, second[k]);
    }
#else
#pragma unroll
    for (int k = 0; k < PER_BLOCK * BLOCKS; k++) {
      CT u = UNIFORM(k);
      if (truncates) CAT(TRUNCATE_, D)(lanes + k, u);
      else STORE(D, __private, lanes + k, shifted(u, from, range));
    }
#endif
    MOVE_BLOCK(__global, to + begin, __private, lanes, RAW(D), IS_WHOLE(to));
  }
}
#endif

#ifdef INTEGERS
/* from + the high half of range * r, with r of two words; a range of 0 stands for 2^64. */
KERNEL integers(PLACE(out), ulong seed, ulong first_block, long from, ulong range, ulong n, ulong chunk) {
  __global RAW(D) *to = POINTER(D, out);
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  for (; i < end; i += 2) {
    uint4 w = philox(first_block + i / 2, seed);
    ulong r[2] = {(ulong)w.y << 32 | w.x, (ulong)w.w << 32 | w.z};
    for (int k = 0; k < 2 && i + (ulong)k < end; k++) {
      CT v = (CT)((ulong)from + (range ? mul_hi(r[k], range) : r[k]));
      STORE(D, __global, to + i + k, v);
    }
  }
}
#endif

#ifdef BERNOULLI
/* 1 where the number lies below `threshold`, the chance in the numbers' own unit; or below the element's own chance. */
KERNEL bernoulli(PLACE(out), CONST_PLACE(chances), ulong seed, ulong first_block, ulong threshold,
                 __global long *faults, ulong n, ulong blocks_per_item) {
  __global RAW(D) *to = POINTER(D, out);
  EACH_DRAW {
    DRAWN;
    EACH_DRAWN(k) {
#ifdef CHANCES
      CT chance = LOAD(D_P, __global, CONST_POINTER(D_P, chances) + begin + k);
      if (!(chance >= (CT)0 && chance <= (CT)1)) REPORT(faults, OP_ID, begin + k, FAULT_PROBABILITY);
#ifdef WIDE
      CT v = (CT)DRAW_BITS(k) * (CT)0x1p-53 < chance ? (CT)1 : (CT)0;
#else
      CT v = (CT)DRAW_BITS(k) * (CT)0x1p-24f < chance ? (CT)1 : (CT)0;
#endif
#else
      CT v = DRAW_BITS(k) < threshold ? (CT)1 : (CT)0;
#endif
      STORE(D, __global, to + begin + k, v);
    }
  }
}
#endif

#ifdef MULTINOMIAL
/* Sums of weights run in f64 and in order, so that every backend finds the same ones. A broken row is told as a fault;
 * a category is then chosen all the same, so that what is written stays a category. */
static double weight_at(__global const RAW(D) * row, long k) { return (double)LOAD(D, __global, row + k); }

KERNEL accumulate(CONST_PLACE(in), PLACE(work), __global long *faults, long rows, long n) {
  long row = get_global_id(0);
  if (row >= rows) return;
  __global const RAW(D) *from = CONST_POINTER(D, in) + row * n;
  __global double *sums = (__global double *)(work + offset_work) + row * n;
  double sum = 0;
  int good = 1;
  for (long k = 0; k < n; k++) {
    double weight = weight_at(from, k);
    good &= weight >= 0 && weight < (double)INFINITY;
    sum += weight;
    sums[k] = sum;
  }
  if (!good || !(sum > 0)) REPORT(faults, OP_ID, row, FAULT_WEIGHTS);
}

static double uniform_at(ulong i, ulong seed, ulong first_block) {
  uint4 w = philox(first_block + i / 2, seed);
  ulong r = i & 1 ? (ulong)w.w << 32 | w.z : (ulong)w.y << 32 | w.x;
  return (double)(r >> 11) * 0x1p-53;
}

/* The first category whose running sum lies above u * total, or is the total where that product rounds to it. */
KERNEL pick(PLACE(out), CONST_PLACE(work), ulong seed, ulong first_block, long rows, long n, long samples) {
  long i = get_global_id(0);
  if (i >= rows * samples) return;
  __global const double *sums = (__global const double *)(work + offset_work) + i / samples * n;
  double total = sums[n - 1], at = uniform_at((ulong)i, seed, first_block) * total;
  long low = 0, high = n - 1;
  while (low < high) {
    long middle = (low + high) / 2;
    if (sums[middle] > at || sums[middle] >= total) high = middle;
    else low = middle + 1;
  }
  ((__global long *)(out + offset_out))[i] = low;
}

/* Each category at most once: what is taken loses its weight, and the sums are made again. Those without a weight come
 * last, in their order. A work-item takes a row; what is left of its weights lies in `work`. */
KERNEL pick_once(PLACE(out), CONST_PLACE(in), PLACE(work), ulong seed, ulong first_block, long rows, long n,
                 long samples) {
  long row = get_global_id(0);
  if (row >= rows) return;
  __global const RAW(D) *from = CONST_POINTER(D, in) + row * n;
  __global double *left = (__global double *)(work + offset_work) + row * n;
  __global long *to = (__global long *)(out + offset_out) + row * samples;
  for (long k = 0; k < n; k++) left[k] = weight_at(from, k);
  for (long j = 0; j < samples; j++) {
    double total = 0, sum = 0;
    for (long k = 0; k < n; k++) total += fmax(left[k], 0.0);
    double at = uniform_at((ulong)(row * samples + j), seed, first_block) * total;
    long chosen = 0;
    for (long k = 0; k < n; k++) {
      if (total > 0 ? !(left[k] > 0) : left[k] < 0) continue;
      sum += left[k];
      chosen = k;
      if (sum > at || sum >= total) break;
    }
    left[chosen] = -1; /* taken */
    to[j] = chosen;
  }
}
#endif

#ifdef PERMUTE
/* By a GPU: (key, place) pairs go into buckets by the highest bits of their keys, of which each has a few, and each bucket
 * is sorted: no two pairs are equal, so it is all the same in which order they come there. */
typedef struct {
  ulong n, per_item, buckets; /* a work-item has so many blocks of draws */
  ulong shift, run;
} permutation;

static ulong key_in(const uint *words, int k) { return (ulong)words[2 * k + 1] << 32 | words[2 * k]; }

KERNEL count_keys(PLACE(counts), ulong seed, ulong first_block, permutation space) {
  volatile __global uint *to = (volatile __global uint *)(counts + offset_counts);
  ulong first = get_global_id(0) * space.per_item, last = min(first + space.per_item, (space.n + 1) / 2);
  for (ulong block = first; block < last; block += BLOCKS) {
    uint words[4 * BLOCKS];
    draw_blocks(first_block + block, seed, words);
    int pairs = (int)min(min(2 * last, space.n) - 2 * block, (ulong)2 * BLOCKS);
    for (int k = 0; k < pairs; k++) atomic_inc(to + (key_in(words, k) >> space.shift));
  }
}

/* From how many pairs each bucket has to where it begins, twice: one of them moves on as pairs come. A work-group takes a
 * run of buckets; where there are several, sum_runs says before how many pairs each run has. Behind the counts stand
 * where buckets begin, twice, and those sums. */
#define SCAN_GROUP 256
#define COUNTS_OF(name) ((__global const uint *)(name + offset_##name))
#define BEGINS_OF(name) ((__global uint *)(name + offset_##name) + space.buckets)
#define RUNS_OF(name) ((__global uint *)(name + offset_##name) + 3 * space.buckets)

/* What all of a group have, each by `totals`, which is free again behind it. */
static INLINED uint group_sum(__local uint *totals, uint own) {
  const int id = (int)get_local_id(0);
  totals[id] = own;
  for (int step = SCAN_GROUP / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < step) totals[id] += totals[id + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint sum = totals[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

KERNEL_OF(SCAN_GROUP, 1) sum_runs(PLACE(counts), permutation space) {
  __local uint totals[SCAN_GROUP];
  const ulong start = get_group_id(0) * space.run, end = min(start + space.run, space.buckets);
  uint own = 0;
  for (ulong k = start + get_local_id(0); k < end; k += SCAN_GROUP) own += COUNTS_OF(counts)[k];
  const uint sum = group_sum(totals, own);
  if (get_local_id(0) == 0) RUNS_OF(counts)[get_group_id(0)] = sum;
}

KERNEL_OF(SCAN_GROUP, 1) begin_buckets(PLACE(counts), permutation space) {
  __local uint totals[SCAN_GROUP];
  const ulong id = get_local_id(0), start = get_group_id(0) * space.run;
  const ulong each = (space.run + SCAN_GROUP - 1) / SCAN_GROUP, end = min(start + space.run, space.buckets);
  const ulong first = min(start + id * each, end), last = min(first + each, end);
  uint own = 0, total = 0;
  for (ulong run = id; run < get_group_id(0); run += SCAN_GROUP) own += RUNS_OF(counts)[run];
  uint before = group_sum(totals, own);
  for (ulong k = first; k < last; k++) total += COUNTS_OF(counts)[k];
  /* Of each work-item those before it: after each step a number is what twice as many have together. */
  totals[id] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < SCAN_GROUP; step *= 2) {
    const uint more = id >= (ulong)step ? totals[id - step] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    totals[id] += more;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  before += totals[id] - total;
  for (ulong k = first; k < last; k++) {
    BEGINS_OF(counts)[k] = BEGINS_OF(counts)[space.buckets + k] = before;
    before += COUNTS_OF(counts)[k];
  }
}

KERNEL place_pairs(PLACE(pairs), PLACE(counts), ulong seed, ulong first_block, permutation space) {
  __global ulong2 *to = (__global ulong2 *)(pairs + offset_pairs);
  volatile __global uint *next = BEGINS_OF(counts) + space.buckets;
  ulong first = get_global_id(0) * space.per_item, last = min(first + space.per_item, (space.n + 1) / 2);
  for (ulong block = first; block < last; block += BLOCKS) {
    uint words[4 * BLOCKS];
    draw_blocks(first_block + block, seed, words);
    int count = (int)min(min(2 * last, space.n) - 2 * block, (ulong)2 * BLOCKS);
    for (int k = 0; k < count; k++) {
      ulong key = key_in(words, k);
      to[atomic_inc(next + (key >> space.shift))] = (ulong2)(key, 2 * block + k);
    }
  }
}

static int before(ulong2 a, ulong2 b) { return a.x < b.x || (a.x == b.x && a.y < b.y); }

/* A work-item has one pair, and counts those of its bucket that go before it. */
KERNEL rank_pairs(PLACE(out), CONST_PLACE(pairs), CONST_PLACE(counts), permutation space) {
  __global const ulong2 *all = (__global const ulong2 *)(pairs + offset_pairs);
  __global const uint *begins = COUNTS_OF(counts) + space.buckets;
  const ulong i = get_global_id(0);
  if (i >= space.n) return;
  const ulong2 own = all[i];
  const ulong bucket = own.x >> space.shift, begin = begins[bucket];
  const ulong end = bucket + 1 < space.buckets ? begins[bucket + 1] : space.n;
  ulong at = begin;
  for (ulong k = begin; k < end; k++) at += before(all[k], own);
  STORE(D, __global, POINTER(D, out) + at, (CT)own.y);
}
#endif
