/* Padding by a CPU: each element of the result is written once, a value or what lies `before` places earlier in the source.
 * The head defines D, the elements as bits, and RANK; dimension 0 is the innermost one, and `before` is negative where the
 * source is cut. */
typedef struct {
  long count[RANK]; /* chunks of a row of the result, then the result's other sizes */
  long in[RANK], before[RANK];
  long row, chunk, chunks, per_item; /* elements of the result's rows, and of their chunks */
} pad_space;

/* What is no whole vector at the end of a run is part of one that ends where the run does. */
static void repeat_value(__global RAW(D) * to, RAW(D) value, long n) {
  long i = 0;
  if (n >= VEC) {
    const VEC_OF(RAW(D)) lanes = value;
    for (; i + VEC <= n; i += VEC) VSTORE(lanes, to + i);
    if (i < n) VSTORE(lanes, to + n - VEC);
    return;
  }
  for (; i < n; i++) to[i] = value;
}
static void copy_run(__global RAW(D) * to, __global const RAW(D) * from, long n) {
  long i = 0;
  if (n >= VEC) {
    for (; i + VEC <= n; i += VEC) VSTORE(VLOAD(from + i), to + i);
    if (i < n) VSTORE(VLOAD(from + n - VEC), to + n - VEC);
    return;
  }
  for (; i < n; i++) to[i] = from[i];
}

KERNEL pad(PLACE(out), CONST_PLACE(in), RAW(D) value, pad_space shape) {
  const long first = (long)get_global_id(0) * shape.per_item, last = min(first + shape.per_item, shape.chunks);
  long place[RANK], outer = first;
#pragma unroll
  for (int d = 0; d < RANK; d++) {
    place[d] = outer % shape.count[d];
    outer /= shape.count[d];
  }
  long row = first / shape.count[0];
  for (long chunk = first; chunk < last; chunk++) {
    const long begin = place[0] * shape.chunk, end = min(begin + shape.chunk, shape.row);
    long row_in = 0, rows_in = 1;
    bool is_inside = true, carry = true;
#pragma unroll
    for (int d = 1; d < RANK; d++) {
      const long there = place[d] - shape.before[d];
      is_inside &= there >= 0 && there < shape.in[d];
      row_in += there * rows_in;
      rows_in *= shape.in[d];
    }
    __global RAW(D) *to = POINTER(D, out) + row * shape.row;
    const long from = is_inside ? clamp(shape.before[0], begin, end) : end;
    const long till = clamp(shape.before[0] + shape.in[0], from, end);
    repeat_value(to + begin, value, from - begin);
    if (till > from) copy_run(to + from, CONST_POINTER(D, in) + row_in * shape.in[0] + from - shape.before[0], till - from);
    repeat_value(to + till, value, end - till);
#pragma unroll
    for (int d = 0; d < RANK; d++) { /* the next chunk's */
      place[d] += carry;
      carry = place[d] == shape.count[d];
      place[d] = carry ? 0 : place[d];
    }
    row += place[0] == 0;
  }
}
