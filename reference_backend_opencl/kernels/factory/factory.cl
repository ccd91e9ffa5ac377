/* Numbers that follow from their place. The head defines D, and NT: what start, end and step are given in. A work-item
 * makes `chunk` of them: one after the other where it is alone, and side by side with the others of a work-group. */
#define EACH_PLACE(i, n, chunk)                                      \
  const long first_place = (long)get_group_id(0) * LOCAL * (chunk);  \
  const long last_place = min(first_place + LOCAL * (chunk), n);     \
  for (long i = first_place + (long)get_local_id(0); i < last_place; i += LOCAL)

#ifndef CLASS_COMPLEX
KERNEL arange(PLACE(out), NT start, NT step, long n, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
  EACH_PLACE(i, n, chunk) {
#ifdef CLASS_FLOAT
    CT v = (CT)fma((NT)i, step, start);
#else
    CT v = (CT)((ulong)start + (ulong)i * (ulong)step);
#endif
    STORE(D, __global, to + i, v);
  }
}
#endif

#ifndef CLASS_INT
/* From both ends, so that the last is `end` itself. */
KERNEL linspace(PLACE(out), NT start, NT end, NT step, long n, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
  EACH_PLACE(i, n, chunk) {
    CT v = (CT)(i < n / 2 || n == 1 ? fma((NT)i, step, start) : fma((NT)(i + 1 - n), step, end));
    STORE(D, __global, to + i, v);
  }
}

/* As a number of D. */
static NT held(NT v) {
  RAW(D) element;
  STORE(D, __private, &element, (CT)v);
  return (NT)LOAD(D, __private, &element);
}

#ifdef CLASS_COMPLEX
/* Of a real base, the principal one. */
static NT power_of(NT base, NT exponent) {
  const NT of = (NT)(log(fabs(base.x)), base.x < 0 ? K(3.14159265358979323846) : 0);
  const NT turned = exponent.y == 0 ? exponent.x * of : MUL(exponent, of);
  return exp(turned.x) * (NT)(cos(turned.y), sin(turned.y));
}
#else
static NT power_of(NT base, NT exponent) {
  const NT power = pow(base, exponent), whole = rint(power), distance = fabs(power - whole);
  return distance <= fabs(power) * SNAP ? whole : power;
}
#endif

/* Powers of the base, their exponents from both ends, which are numbers of D; a lone one is what it is. Whole numbers are
 * cut, but not where pow alone keeps them from the next. */
KERNEL logspace(PLACE(out), NT start, NT end, NT base, long n, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
  const NT first = n > 1 ? held(start) : start, final = held(end), step = n > 1 ? (final - first) / (NT)(n - 1) : (NT)0;
  EACH_PLACE(i, n, chunk) {
    const NT exponent = i < n / 2 || n == 1 ? fma((NT)i, step, first) : fma((NT)(i + 1 - n), step, final);
    STORE(D, __global, to + i, (CT)power_of(base, exponent));
  }
}
#endif

/* Where both fit in 32 bits, in which devices divide sooner. */
static long quotient(long a, long b) { return (a | b) >> 32 ? a / b : (long)((uint)a / (uint)b); }

#ifdef CLASS_COMPLEX
#define NUMBER(v) (VT)(v, 0)
#else
#define NUMBER(v) (CT)(v)
#endif

KERNEL eye(PLACE(out), long columns, long n, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
#if LOCAL == 1 /* zeros in a run, and then what of the diagonal lies among them */
  const long first = (long)get_group_id(0) * chunk, last = min(first + chunk, n);
  for (long i = first; i < last; i++) STORE(D, __global, to + i, NUMBER(0));
  for (long row = quotient(first + columns, columns + 1); row < columns && row * (columns + 1) < last; row++)
    STORE(D, __global, to + row * (columns + 1), NUMBER(1));
#else
  EACH_PLACE(i, n, chunk) {
    const long row = quotient(i, columns + 1); /* whose place on the diagonal this is, or the one before */
    STORE(D, __global, to + i, NUMBER(row * (columns + 1) == i && row < columns));
  }
#endif
}

#ifdef CLASS_INT
/* The sum over i below `row` of i + offset, each held to 0 .. columns. */
static long columns_before(long row, long columns, long offset) {
  long first = clamp(-offset, 0L, row), full = clamp(columns - offset, first, row); /* rows that have some, and all */
  long rising = (full - first) * (first + offset) + (full - first) * (full - first - 1) / 2;
  return rising + (row - full) * columns;
}

KERNEL triangle_indices(PLACE(out), long count, long columns, long offset, long lower, long rows, long chunk) {
  __global RAW(D) *to = POINTER(D, out);
  EACH_PLACE(row, rows, chunk) {
    long cut = clamp(row + offset + lower, 0L, columns), before = columns_before(row, columns, offset + lower);
    long at = lower ? before : row * columns - before;
    for (long column = lower ? 0 : cut; column < (lower ? cut : columns); column++, at++) {
      STORE(D, __global, to + at, (CT)row);
      STORE(D, __global, to + count + at, (CT)column);
    }
  }
}
#endif
