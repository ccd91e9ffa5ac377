/* Numbers of a stream in a fused kernel, as random.cl's dropout draws them: element `at` of the tensor that is drawn takes
 * word at mod 4 of block first_block + at / 4. Behind philox.cl. */
#define UNIFORM(words, type) (CAT(convert_, type)((words) >> 8) * 0x1p-24f)

/* A CPU makes the blocks of a vector side by side. A round multiplies words x and z, so that these stand in one vector,
 * y and w in another. A word is the lower half of a lane of 64 bits, what stands above it nobody looks at. */
#if defined(IS_CPU) && VEC == 16
#define SIDE_BY_SIDE
typedef ulong4 half_lanes;
typedef ulong8 lanes_of_two;
#define EACH_COUNTER (ulong4)(0, 1, 2, 3)
#define SWAPPED s45670123
#define IN_ORDER s04152637
#define WORDS_OF as_uint16
#elif defined(IS_CPU) && VEC == 8
#define SIDE_BY_SIDE
typedef ulong2 half_lanes;
typedef ulong4 lanes_of_two;
#define EACH_COUNTER (ulong2)(0, 1)
#define SWAPPED s2301
#define IN_ORDER s0213
#define WORDS_OF as_uint8
#endif

#ifdef SIDE_BY_SIDE
#define LOW_HALF 0xFFFFFFFFul
#define PAIR(first, second) (lanes_of_two)((half_lanes)(first), (half_lanes)(second))
static VEC_OF(uint) draw_words(ulong counter, ulong seed) {
  const lanes_of_two factors = PAIR(0xD2511F53ul, 0xCD9E8D57ul);
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
  const half_lanes counters = (half_lanes)counter + EACH_COUNTER;
  lanes_of_two product = PAIR(counters >> 32, 0ul), xz = PAIR(counters, 0ul); /* the product: its y and w */
  /* A product's upper half goes to the other word of the two: every other round has z in front. mul_hi takes PoCL several
   * times as long. */
#pragma unroll
  for (int round = 0; round < 5; round++) {
    lanes_of_two before = product.SWAPPED;
    product = (xz & LOW_HALF) * factors;
    const lanes_of_two zx = (product >> 32) ^ before ^ PAIR(key1, key0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
    before = product.SWAPPED;
    product = (zx & LOW_HALF) * factors.SWAPPED;
    xz = (product >> 32) ^ before ^ PAIR(key0, key1);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return WORDS_OF(((xz & LOW_HALF) | product << 32).IN_ORDER);
}
#endif

/* VEC of them, each `step` from the one before it. */
static VEC_OF(float) drawn(ulong seed, ulong first_block, ulong at, ulong step) {
#ifdef SIDE_BY_SIDE
  const ulong counter = first_block + at / 4;
  if (step == 1 && (at & 3) == 0) return UNIFORM(draw_words(counter, seed), VEC_OF(float));
  if (step == 1) { /* from the middle of a block into one more */
    uint words[VEC + 4];
    LANES_TO(draw_words(counter, seed), words);
    vstore4(philox(counter + VEC / 4, seed), 0, words + VEC);
    return UNIFORM(LANES_AT(words + (at & 3)), VEC_OF(float));
  }
#endif
  float lanes[VEC];
#if VEC == 4
  if (step == 1 && (at & 3) == 0) return UNIFORM(philox(first_block + at / 4, seed), float4);
#endif
  for (int lane = 0; lane < VEC; lane++) {
    const ulong element = at + (ulong)lane * step;
    float block[4];
    vstore4(UNIFORM(philox(first_block + element / 4, seed), float4), 0, block);
    lanes[lane] = block[element & 3];
  }
  return LANES_AT(lanes);
}

/* As FETCH: the elements of a row from place i on. */
#define DRAW(value, seed, first_block, row, inner, step, i) \
  value = drawn((ulong)(seed), (ulong)(first_block), (ulong)(row + i * (step)), (ulong)(step));
