/* Numbers of a stream in a fused kernel, as random.cl's dropout draws them: element `at` of the tensor that is drawn takes
 * word at mod 4 of block first_block + at / 4. Behind philox.cl. */
#define UNIFORM(words) (convert_float4((words) >> 8) * 0x1p-24f)

/* VEC of them, each `step` from the one before it. */
static VEC_OF(float) drawn(ulong seed, ulong first_block, ulong at, ulong step) {
  float lanes[VEC];
#if VEC >= 4
  if (step == 1 && (at & 3) == 0) {
    for (int block = 0; block < VEC / 4; block++)
      vstore4(UNIFORM(philox(first_block + at / 4 + (ulong)block, seed)), block, lanes);
    return LANES_AT(lanes);
  }
#endif
  for (int lane = 0; lane < VEC; lane++) {
    const ulong element = at + (ulong)lane * step;
    float block[4];
    vstore4(UNIFORM(philox(first_block + element / 4, seed)), 0, block);
    lanes[lane] = block[element & 3];
  }
  return LANES_AT(lanes);
}

/* As FETCH: the elements of a row from place i on. */
#define DRAW(value, seed, first_block, row, inner, step, i) \
  value = drawn((ulong)(seed), (ulong)(first_block), (ulong)(row + i * (step)), (ulong)(step));
