/* Reference kernels of reductions: each output is a function of the line of elements that are reduced to it. */
#include "ops/reduction/reduction.h"

#include "ops/core/ref.h"

/* --- lines --- */

typedef struct lines {
  int64_t outputs, length;
  int64_t *starts, *steps; /* element offsets into the dense input: of each output, of each reduced element */
} lines;

/* Offsets of the elements that differ in the dims of `mask` (or in the others), in row-major order. */
static void fill_offsets(int64_t *offsets, const graft_dl_tensor *t, uint32_t mask, bool reduced) {
  int64_t strides[GRAFT_MAX_DIMS], index[GRAFT_MAX_DIMS] = {0};
  tns_contiguous_strides(t->ndim, t->shape, strides);
  int64_t offset = 0;
  for (int64_t n = 0;; n++) {
    offsets[n] = offset;
    int32_t i = t->ndim - 1;
    for (; i >= 0; i--) {
      if ((mask >> i & 1) != (unsigned)reduced) continue;
      offset += strides[i];
      if (++index[i] < t->shape[i]) break;
      offset -= strides[i] * t->shape[i];
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

static bool lines_make(lines *l, const graft_dl_tensor *t, uint32_t mask) {
  l->outputs = l->length = 1;
  for (int32_t i = 0; i < t->ndim; i++) *(mask >> i & 1 ? &l->length : &l->outputs) *= t->shape[i];
  l->starts = ref_zeros(l->outputs, sizeof *l->starts);
  l->steps = ref_zeros(l->length, sizeof *l->steps);
  if (!l->starts || !l->steps) return false;
  if (l->outputs) fill_offsets(l->starts, t, mask, false);
  if (l->length) fill_offsets(l->steps, t, mask, true);
  return true;
}

static void lines_free(lines *l) {
  free(l->starts);
  free(l->steps);
}

/* One line of n values; im NULL for real dtypes. The function may write over re and im. */
typedef struct line {
  graft_dtype dtype;
  ref_real *re, *im;
  int64_t n;
  ref_real p; /* the norm's order, the variance's correction */
} line;
typedef ref_complex (*line_fn)(const line *l);

static void gather(const lines *ls, int64_t output, const ref_array *x, ref_array *buffer) {
  for (int64_t i = 0; i < ls->length; i++) ref_take(buffer, i, x, ls->starts[output] + ls->steps[i]);
}

static graft_status reduce_with(const graft_tensor_desc *self, const graft_tensor_desc *out, uint32_t mask, line_fn fn,
                                ref_real p) {
  __attribute__((cleanup(lines_free))) lines ls = {0};
  REF_OWNED ref_array x = ref_read(self), y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  if (!x.re || !y.re || !lines_make(&ls, &self->dl, mask)) return ref_no_memory();
  REF_OWNED ref_array buffer = ref_new(ls.length, x.im != NULL);
  if (!buffer.re) return ref_no_memory();
  for (int64_t o = 0; o < ls.outputs; o++) {
    gather(&ls, o, &x, &buffer);
    ref_complex value = fn(&(line){self->dl.dtype, buffer.re, buffer.im, ls.length, p});
    y.re[o] = creall(value);
    if (y.im) y.im[o] = cimagl(value);
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

static uint32_t list_mask(graft_int_list dims) {
  uint32_t mask = 0;
  for (uint64_t i = 0; i < dims.count; i++) mask |= 1u << dims.items[i];
  return mask;
}

static uint32_t dim_mask(const int64_t *dim) {
  return dim ? 1u << *dim : UINT32_MAX;
}

/* --- functions of a line --- */

/* CMPLXL keeps infinities and NaN apart; x + y * I does not. */
static ref_complex pair(ref_real re, ref_real im) {
  return CMPLXL(re, im);
}

static ref_complex line_sum(const line *l) {
  return pair(ref_sum(l->dtype, l->re, 1, l->n), l->im ? ref_sum(l->dtype, l->im, 1, l->n) : 0);
}

static ref_complex line_mean(const line *l) {
  ref_complex sum = line_sum(l);
  return pair(creall(sum) / (ref_real)l->n, cimagl(sum) / (ref_real)l->n);
}

static ref_complex line_prod(const line *l) {
  if (dt_is_integral(l->dtype, true)) {
    uint64_t product = 1;
    for (int64_t i = 0; i < l->n; i++) product *= ref_bits(l->re[i]);
    return ref_of_bits(l->dtype, product);
  }
  ref_real re = 1, im = 0;
  for (int64_t i = 0; i < l->n; i++) {
    ref_real a = re, b = im;
    re = a * l->re[i] - (l->im ? b * l->im[i] : 0);
    im = l->im ? a * l->im[i] + b * l->re[i] : 0;
    if (ref_mode & REF_NARROW) re = dt_round(dt_accumulate(dt_real(l->dtype)), re);
  }
  return pair(re, im);
}

static ref_complex line_xor(const line *l) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < l->n; i++) bits ^= ref_bits(l->re[i]);
  return ref_of_bits(l->dtype, bits);
}

/* The first of the largest (sign 1) or smallest (sign -1); NaN goes before all. */
static int64_t extremum(const line *l, int sign) {
  int64_t best = 0;
  for (int64_t i = 0; i < l->n; i++) {
    if (isnan(l->re[i])) return i;
    if (sign > 0 ? l->re[i] > l->re[best] : l->re[i] < l->re[best]) best = i;
  }
  return best;
}

static ref_complex line_max(const line *l) {
  return l->re[extremum(l, 1)];
}
static ref_complex line_min(const line *l) {
  return l->re[extremum(l, -1)];
}
static ref_complex line_argmax(const line *l) {
  return (ref_real)extremum(l, 1);
}
static ref_complex line_argmin(const line *l) {
  return (ref_real)extremum(l, -1);
}

static ref_complex line_any(const line *l) {
  for (int64_t i = 0; i < l->n; i++) {
    if (l->re[i] != 0 || (l->im && l->im[i] != 0)) return 1;
  }
  return 0;
}

static ref_complex line_all(const line *l) {
  for (int64_t i = 0; i < l->n; i++) {
    if (l->re[i] == 0 && !(l->im && l->im[i] != 0)) return 0;
  }
  return 1;
}

static ref_complex line_count(const line *l) {
  int64_t count = 0;
  for (int64_t i = 0; i < l->n; i++) count += l->re[i] != 0 || (l->im && l->im[i] != 0);
  return (ref_real)count;
}

static ref_complex line_nansum(const line *l) {
  for (int64_t i = 0; i < l->n; i++) {
    if (isnan(l->re[i])) l->re[i] = 0;
  }
  return line_sum(l);
}

static ref_complex line_logsumexp(const line *l) {
  ref_real shift = l->n ? l->re[extremum(l, 1)] : 0;
  if (isinf(shift)) shift = 0;
  if (!l->im) {
    for (int64_t i = 0; i < l->n; i++) l->re[i] = expl(l->re[i] - shift);
    return logl(ref_sum(l->dtype, l->re, 1, l->n)) + shift;
  }
  ref_complex sum = 0;
  for (int64_t i = 0; i < l->n; i++) sum += cexpl(pair(l->re[i] - shift, l->im[i]));
  return clogl(sum) + shift;
}

static ref_real squares(graft_dtype dtype, ref_real *x, int64_t n) {
  ref_real mean = ref_sum(dtype, x, 1, n) / (ref_real)n;
  for (int64_t i = 0; i < n; i++) x[i] -= mean;
  return ref_dot(dtype, x, 1, x, 1, n);
}

static ref_complex line_var(const line *l) {
  graft_dtype dtype = dt_real(l->dtype);
  ref_real sum = squares(dtype, l->re, l->n) + (l->im ? squares(dtype, l->im, l->n) : 0);
  ref_real freedom = (ref_real)l->n - l->p;
  return sum / (freedom > 0 ? freedom : 0);
}

static ref_complex line_std(const line *l) {
  return sqrtl(creall(line_var(l)));
}

static ref_complex line_norm(const line *l) {
  graft_dtype dtype = dt_real(l->dtype);
  if (l->p == 2) {
    return sqrtl(ref_dot(dtype, l->re, 1, l->re, 1, l->n) + (l->im ? ref_dot(dtype, l->im, 1, l->im, 1, l->n) : 0));
  }
  for (int64_t i = 0; i < l->n; i++) l->re[i] = l->im ? hypotl(l->re[i], l->im[i]) : fabsl(l->re[i]);
  if (isinf(l->p)) return l->p > 0 ? line_max(l) : line_min(l);
  for (int64_t i = 0; i < l->n && l->p != 1; i++) l->re[i] = l->p == 0 ? l->re[i] != 0 : powl(l->re[i], l->p);
  ref_real sum = ref_sum(dtype, l->re, 1, l->n);
  return l->p == 0 || l->p == 1 ? sum : powl(sum, 1 / l->p);
}

/* --- slots --- */

#define REDUCTION(name, mask, fn, p)                                               \
  graft_status kernel_##name(const graft_exec *exec, const graft_args_##name *a) { \
    return reduce_with(a->self, a->out, mask, fn, p);                              \
  }
REDUCTION(sum_dim_IntList, list_mask(a->dim), line_sum, 0)
REDUCTION(mean_dim, list_mask(a->dim), line_mean, 0)
REDUCTION(amax, list_mask(a->dim), line_max, 0)
REDUCTION(amin, list_mask(a->dim), line_min, 0)
REDUCTION(argmax, dim_mask(a->dim), line_argmax, 0)
REDUCTION(argmin, dim_mask(a->dim), line_argmin, 0)
REDUCTION(var_correction, list_mask(a->dim), line_var, ref_scalar(a->correction, 1))
REDUCTION(any, UINT32_MAX, line_any, 0)
REDUCTION(any_dim, dim_mask(&a->dim), line_any, 0)
REDUCTION(any_dims, list_mask(a->dim), line_any, 0)
REDUCTION(prod, UINT32_MAX, line_prod, 0)
REDUCTION(prod_dim_int, dim_mask(&a->dim), line_prod, 0)
REDUCTION(linalg_vector_norm, list_mask(a->dim), line_norm, ref_scalar(a->ord, 2))

REDUCTION(all, UINT32_MAX, line_all, 0)
REDUCTION(all_dim, dim_mask(&a->dim), line_all, 0)
REDUCTION(max, UINT32_MAX, line_max, 0)
REDUCTION(min, UINT32_MAX, line_min, 0)
REDUCTION(std_correction, list_mask(a->dim), line_std, ref_scalar(a->correction, 1))
REDUCTION(norm_ScalarOpt_dim, list_mask(a->dim), line_norm, ref_scalar(a->p, 2))
REDUCTION(nansum, list_mask(a->dim), line_nansum, 0)
REDUCTION(count_nonzero, dim_mask(a->dim), line_count, 0)
REDUCTION(logsumexp, list_mask(a->dim), line_logsumexp, 0)

#define REDUCTION_OF_PRIM(name, fn)                                                \
  graft_status kernel_##name(const graft_exec *exec, const graft_args_##name *a) { \
    return reduce_with(a->inp, a->out, list_mask(a->dims), fn, 0);                 \
  }
REDUCTION_OF_PRIM(prims_prod, line_prod)
REDUCTION_OF_PRIM(prims_xor_sum, line_xor)

#define REDUCTION_PAIR(name, mask, first, fn0, second, fn1, p)                     \
  graft_status kernel_##name(const graft_exec *exec, const graft_args_##name *a) { \
    graft_status status = reduce_with(a->self, a->first, mask, fn0, p);            \
    return status ? status : reduce_with(a->self, a->second, mask, fn1, p);        \
  }
REDUCTION_PAIR(var_mean_correction, list_mask(a->dim), out0, line_var, out1, line_mean, ref_scalar(a->correction, 1))
REDUCTION_PAIR(std_mean_correction, list_mask(a->dim), out0, line_std, out1, line_mean, ref_scalar(a->correction, 1))
REDUCTION_PAIR(aminmax, dim_mask(a->dim), min, line_min, max, line_max, 0)
REDUCTION_PAIR(max_dim, dim_mask(&a->dim), values, line_max, indices, line_argmax, 0)
REDUCTION_PAIR(min_dim, dim_mask(&a->dim), values, line_min, indices, line_argmin, 0)
