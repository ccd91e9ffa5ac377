/* What a scaled product is multiplied by and what is added, as the EPILOGUE of matmul.cl reads it. The head defines D_A,
 * D_B, D_BIAS and D_LAST, of which the last two may be missing. */
typedef struct {
  long rows, columns, step_a, step_b, step_bias; /* the first two rounded up to what a vector has */
} scales;

DEFINE_ACCESS(a, D_A)
DEFINE_ACCESS(b, D_B)
#ifdef D_BIAS
DEFINE_ACCESS(bias, D_BIAS)
#define BIAS_AT(j) one_bias(CONST_POINTER(D_BIAS, bias) + (j)*s.step_bias)
#else
#define BIAS_AT(j) 0
#endif
#ifdef D_LAST
DEFINE_ACCESS(last, D_LAST)
#define LAST_ONE one_last(CONST_POINTER(D_LAST, last))
#else
#define LAST_ONE 1
#endif

/* Those beyond the last row or column are the last again. */
KERNEL gather_scales(PLACE(out), CONST_PLACE(a), CONST_PLACE(b), CONST_PLACE(bias), CONST_PLACE(last), long m, long n,
                     scales s) {
  long at = get_global_id(0), i = min(at, m - 1), column = at - s.rows, j = min(column, n - 1);
  __global float *to = (__global float *)(out + offset_out);
  if (at < s.rows)
    to[at] = one_a(CONST_POINTER(D_A, a) + i * s.step_a);
  else if (column < s.columns)
    to[at] = one_b(CONST_POINTER(D_B, b) + j * s.step_b);
  else if (column < 2 * s.columns)
    to[at] = BIAS_AT(min(column - s.columns, n - 1));
  else if (column == 2 * s.columns)
    to[at] = LAST_ONE;
}
