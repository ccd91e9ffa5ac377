/* Numbers of a stream in a fused kernel, as random.cl's dropout draws them: element `at` of the tensor that is drawn takes
 * word at mod 4 of block first_block + at / 4. Behind philox.cl. */
#define UNIFORM(words, type) (CAT(convert_, type)((words) >> 8) * 0x1p-24f)

/* A CPU makes the blocks of a vector side by side. A round multiplies words x and z, so that these stand in one vector,
 * y and w in another. */
#if defined(IS_CPU) && VEC == 16
#define SIDE_BY_SIDE
#define COUNTERS(counter) ((ulong4)(counter) + (ulong4)(0, 1, 2, 3))
#define HALF uint4
#define IN_ORDER s084c195d2a6e3b7f
#elif defined(IS_CPU) && VEC == 8
#define SIDE_BY_SIDE
#define COUNTERS(counter) ((ulong2)(counter) + (ulong2)(0, 1))
#define HALF uint2
#define IN_ORDER s04261537
#endif

#ifdef SIDE_BY_SIDE
#if VEC == 16
typedef uint8 word_pair;
typedef ulong8 product_pair;
#define LOW_WORDS(products) convert_uint8(products)
#define WIDEN(words) convert_ulong8(words)
#else
typedef uint4 word_pair;
typedef ulong4 product_pair;
#define LOW_WORDS(products) convert_uint4(products)
#define WIDEN(words) convert_ulong4(words)
#endif
#define PAIR(first, second) (word_pair)((HALF)(first), (HALF)(second))
static VEC_OF(uint) draw_words(ulong counter, ulong seed) {
  const product_pair factors = WIDEN(PAIR(0xD2511F53u, 0xCD9E8D57u));
  const word_pair steps = PAIR(0x9E3779B9u, 0xBB67AE85u);
  word_pair xz = PAIR(CAT(convert_, HALF)(COUNTERS(counter)), 0u);
  word_pair yw = PAIR(CAT(convert_, HALF)(COUNTERS(counter) >> 32), 0u);
  word_pair key = PAIR((uint)seed, (uint)(seed >> 32));
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const product_pair products = factors * WIDEN(xz); /* mul_hi takes PoCL several times as long */
    const word_pair high = LOW_WORDS(products >> 32), low = LOW_WORDS(products);
    xz = (word_pair)(high.hi, high.lo) ^ yw ^ key;
    yw = (word_pair)(low.hi, low.lo);
    key += steps;
  }
  return ((VEC_OF(uint))(xz, yw)).IN_ORDER;
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
