#include "conformance/mutants/bugs.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/mutants/parts.h"

/* ---- geometry ---- */

static void mut_contiguous(graft_tensor_desc *d, int64_t strides[GRAFT_MAX_DIMS]) {
  tns_contiguous_strides(d->dl.ndim, d->dl.shape, strides);
  d->dl.strides = strides;
}

/* The last elements stay as they were when their number is no multiple of a vector. */
static graft_status mut_tail(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  int64_t n = mut_numel(out);
  unsigned char before[32] = {0};
  if (n) memcpy(before, mut_at(out, n - 1), dt_bytes(out->dl.dtype));
  graft_status s = c->inner(c->exec, c->args);
  if (s == GRAFT_OK && n % 16) memcpy(mut_at(out, n - 1), before, dt_bytes(out->dl.dtype));
  return s;
}

static graft_status mut_edit_strides(const mut_call *c, const char *name, bool only_expanded) {
  mut_args copy = mut_copy(c);
  const graft_tensor_desc *d = mut_desc(c, name);
  int64_t strides[GRAFT_MAX_DIMS];
  bool expanded = false;
  for (int32_t i = 0; i < d->dl.ndim; i++) expanded |= d->dl.strides[i] == 0 && d->dl.shape[i] > 1;
  graft_tensor_desc edited = *d;
  if (expanded || !only_expanded) mut_contiguous(&edited, strides);
  mut_replace(c, &copy, name, &edited);
  return mut_inner(c, &copy);
}
static graft_status mut_stride(const mut_call *c) {
  return mut_edit_strides(c, "self", false);
}
static graft_status mut_expanded(const mut_call *c) {
  return mut_edit_strides(c, "other", true);
}
static graft_status mut_out_stride(const mut_call *c) {
  return mut_edit_strides(c, "out", false);
}

static graft_status mut_ignored_offset(const mut_call *c) {
  mut_args copy = mut_copy(c);
  graft_tensor_desc edited = *mut_desc(c, "self");
  edited.dl.byte_offset &= ~UINT64_C(511); /* as if buffers began at an aligned address */
  mut_replace(c, &copy, "self", &edited);
  return mut_inner(c, &copy);
}

static graft_status mut_past_end(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  int64_t n = mut_numel(out);
  graft_status s = c->inner(c->exec, c->args);
  if (s == GRAFT_OK && n) memset(mut_at(out, n - 1) + dt_bytes(out->dl.dtype), 0, dt_bytes(out->dl.dtype));
  return s;
}

/* ---- values ---- */

static graft_status mut_f16_sums(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "mat2"), *out = mut_desc(c, "out");
  if (!dt_is_float(out->dl.dtype)) return c->inner(c->exec, c->args);
  int64_t rows = a->dl.shape[0], inner = a->dl.shape[1], columns = b->dl.shape[1];
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      long double sum = 0;
      for (int64_t k = 0; k < inner; k++)
        sum = dt_round(GRAFT_F16, sum + mut_get(a, i * inner + k) * mut_get(b, k * columns + j));
      mut_put(out, i * columns + j, sum);
    }
  return GRAFT_OK;
}

static long double mut_cut_to_tf32(long double value) {
  float x = (float)value;
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= ~UINT32_C(0x1fff);
  memcpy(&x, &bits, sizeof bits);
  return x;
}

/* Where factors may be rounded to tf32, what is too much of them is cut off. */
static graft_status mut_cut_factors(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "mat2"), *out = mut_desc(c, "out");
  if (out->dl.dtype != GRAFT_F32 || !(c->exec->flags & GRAFT_EXEC_ALLOW_TF32)) return c->inner(c->exec, c->args);
  int64_t rows = a->dl.shape[0], inner = a->dl.shape[1], columns = b->dl.shape[1];
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      long double sum = 0;
      for (int64_t k = 0; k < inner; k++)
        sum += mut_cut_to_tf32(mut_get(a, i * inner + k)) * mut_cut_to_tf32(mut_get(b, k * columns + j));
      mut_put(out, i * columns + j, sum);
    }
  return GRAFT_OK;
}

/* Rounds toward zero: one unit less wherever the exact product does not fit. */
static graft_status mut_truncated(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "other"), *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool same = mut_numel(a) == mut_numel(out) && mut_numel(b) == mut_numel(out);
  if (s != GRAFT_OK || out->dl.dtype != GRAFT_F32 || !same || a->dl.dtype != b->dl.dtype) return s;
  for (int64_t i = 0; i < mut_numel(out); i++) {
    if (mut_at(a, i) == mut_at(out, i) || mut_at(b, i) == mut_at(out, i)) continue; /* in place: gone */
    long double exact = mut_get(a, i) * mut_get(b, i), rounded = mut_get(out, i);
    if (isfinite(rounded) && fabsl(rounded) > fabsl(exact)) mut_put(out, i, nextafterf((float)rounded, 0.0f));
  }
  return s;
}

/* f32 to bf16 by cutting the lower half off. */
static graft_status mut_cut(const mut_call *c) {
  const graft_tensor_desc *from = mut_desc(c, "self"), *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK || out->dl.dtype != GRAFT_BF16 || from->dl.dtype != GRAFT_F32) return s;
  for (int64_t i = 0; i < mut_numel(out); i++) memcpy(mut_at(out, i), mut_at(from, i) + 2, 2);
  return s;
}

static graft_status mut_nan_dropped(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "other"), *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool same = mut_numel(a) == mut_numel(out) && mut_numel(b) == mut_numel(out);
  for (int64_t i = 0; s == GRAFT_OK && same && i < mut_numel(out); i++)
    if (isnan(mut_get(out, i))) mut_put(out, i, isnan(mut_get(a, i)) ? mut_get(b, i) : mut_get(a, i));
  return s;
}

static graft_status mut_zero_sign(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && dt_is_float(out->dl.dtype) && i < mut_numel(out); i++)
    if (mut_get(out, i) == 0) mut_put(out, i, 0.0L);
  return s;
}

static graft_status mut_flushed(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && out->dl.dtype == GRAFT_F32 && i < mut_numel(out); i++)
    if (fabsl(mut_get(out, i)) < 0x1p-126L) mut_put(out, i, 0.0L);
  return s;
}

static graft_status mut_saturated(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "other"), *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool same = mut_numel(a) == mut_numel(out) && mut_numel(b) == mut_numel(out);
  if (s != GRAFT_OK || out->dl.dtype != GRAFT_I64 || a->dl.dtype != GRAFT_I64 || !same) return s;
  for (int64_t i = 0; i < mut_numel(out); i++)
    if (mut_get(a, i) > 0 && mut_get(b, i) > 0 && mut_get(out, i) < 0) mut_put(out, i, INT64_MAX);
  return s;
}

/* ---- order and memory ---- */

static graft_status mut_changed_input(const mut_call *c) {
  const graft_tensor_desc *a = mut_desc(c, "self");
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && i < mut_numel(a); i++)
    if (mut_get(a, i) < 0) mut_put(a, i, 0);
  return s;
}

/* Work put on another thread and not joined to the stream. */
typedef struct mut_late {
  pthread_t thread;
  bool running;
  mut_slot inner;
  graft_exec exec;
  mut_args args;
  graft_tensor_desc self, out;
  int64_t shape[2][GRAFT_MAX_DIMS], strides[2][GRAFT_MAX_DIMS];
} mut_late;

static void *mut_late_run(void *context) {
  mut_late *l = context;
  struct timespec pause = {0, 20000000};
  nanosleep(&pause, NULL);
  l->inner(&l->exec, &l->args.head);
  return NULL;
}

static void mut_late_desc(graft_tensor_desc *to, const graft_tensor_desc *from, int64_t *shape, int64_t *strides) {
  *to = *from;
  for (int32_t i = 0; i < from->dl.ndim; i++) shape[i] = from->dl.shape[i], strides[i] = from->dl.strides[i];
  to->dl.shape = shape, to->dl.strides = strides;
}

static graft_status mut_missing_wait(const mut_call *c) {
  static mut_late l;
  if (l.running) pthread_join(l.thread, NULL);
  l.inner = c->inner, l.exec = *c->exec, l.args = mut_copy(c);
  mut_late_desc(&l.self, mut_desc(c, "self"), l.shape[0], l.strides[0]);
  mut_late_desc(&l.out, mut_desc(c, "out"), l.shape[1], l.strides[1]);
  mut_replace(c, &l.args, "self", &l.self);
  mut_replace(c, &l.args, "out", &l.out);
  l.running = pthread_create(&l.thread, NULL, mut_late_run, &l) == 0;
  return GRAFT_OK;
}

/* What was computed for the first shape met serves all others. */
static graft_status mut_stale_memo(const mut_call *c) {
  static _Atomic(int64_t) first;
  const graft_tensor_desc *out = mut_desc(c, "out");
  int64_t n = mut_numel(out), none = 0;
  if (n) atomic_compare_exchange_strong(&first, &none, n);
  int64_t known = atomic_load(&first);
  unsigned char before[32] = {0};
  if (n > known) memcpy(before, mut_at(out, known), dt_bytes(out->dl.dtype));
  graft_status s = c->inner(c->exec, c->args);
  if (s == GRAFT_OK && n > known) memcpy(mut_at(out, known), before, dt_bytes(out->dl.dtype));
  return s;
}

/* Zeroes the output before it reads the inputs, one of which it may be. */
static graft_status mut_in_place(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  for (int64_t i = 0; i < mut_numel(out); i++) mut_put(out, i, 0);
  return c->inner(c->exec, c->args);
}

static graft_status mut_not_deterministic(const mut_call *c) {
  static _Atomic(unsigned) calls;
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool other = atomic_fetch_add(&calls, 1) % 2;
  for (int64_t i = 0; s == GRAFT_OK && other && out->dl.dtype == GRAFT_F32 && i < mut_numel(out); i += 3) {
    float v = (float)mut_get(out, i); /* the last bit, as another order of the sum would */
    if (isfinite(v) && v != 0 && v != rintf(v)) mut_put(out, i, nextafterf(v, 0.0f));
  }
  return s;
}

/* A sum of no terms is +0 or -0, as it comes. */
static graft_status mut_other_zero(const mut_call *c) {
  static _Atomic(unsigned) calls;
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool other = atomic_fetch_add(&calls, 1) % 2;
  for (int64_t i = 0; s == GRAFT_OK && other && i < mut_numel(out); i++)
    if (mut_get(out, i) == 0) mut_put(out, i, -0.0L);
  return s;
}

/* The last bit of imaginary parts. */
static graft_status mut_other_imaginary(const mut_call *c) {
  static _Atomic(unsigned) calls;
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  bool other = atomic_fetch_add(&calls, 1) % 2;
  for (int64_t i = 0; s == GRAFT_OK && other && out->dl.dtype == GRAFT_C64 && i < mut_numel(out); i++) {
    float parts[2];
    memcpy(parts, mut_at(out, i), sizeof parts);
    parts[1] = nextafterf(parts[1], 0.0f);
    memcpy(mut_at(out, i), parts, sizeof parts);
  }
  return s;
}

static graft_status mut_crash(const mut_call *c) {
  graft_status s = c->inner(c->exec, c->args);
  raise(SIGSEGV);
  return s;
}

static graft_status mut_hang(const mut_call *c) {
  while (c) pause();
  return GRAFT_OK;
}

/* ---- arguments and formulas ---- */

static graft_status mut_clear_argument(const mut_call *c, const char *name, size_t bytes) {
  mut_args copy = mut_copy(c);
  memset(mut_field(c, &copy, name), 0, bytes);
  return mut_inner(c, &copy);
}
static graft_status mut_no_alpha(const mut_call *c) {
  return mut_clear_argument(c, "alpha", sizeof(void *));
}
static graft_status mut_no_accumulate(const mut_call *c) {
  return mut_clear_argument(c, "accumulate", 1);
}
static graft_status mut_no_pad_count(const mut_call *c) {
  return mut_clear_argument(c, "count_include_pad", 1);
}
static graft_status mut_no_weight(const mut_call *c) {
  return mut_clear_argument(c, "weight", sizeof(void *));
}
static graft_status mut_no_descending(const mut_call *c) {
  return mut_clear_argument(c, "descending", 1);
}
static graft_status mut_no_largest(const mut_call *c) {
  return mut_clear_argument(c, "largest", 1);
}

static graft_status mut_no_correction(const mut_call *c) {
  static const graft_scalar one = {GRAFT_I64, 0, {.i = 1}};
  mut_args copy = mut_copy(c);
  const graft_scalar *p = &one;
  memcpy(mut_field(c, &copy, "correction"), &p, sizeof p);
  return mut_inner(c, &copy);
}

static graft_status mut_no_groups(const mut_call *c) {
  static const int64_t ones[] = {1, 1, 1};
  mut_args copy = mut_copy(c);
  graft_int_list *dilation = mut_field(c, &copy, "dilation");
  dilation->items = ones;
  return mut_inner(c, &copy);
}

static graft_status mut_overwrites(const mut_call *c) {
  mut_args copy = mut_copy(c); /* scatter.src has the same arguments */
  mut_slot scatter = mut_reference_slot(GRAFT_OP_SCATTER_SRC);
  copy.head.op_id = GRAFT_OP_SCATTER_SRC;
  return scatter ? scatter(c->exec, &copy.head) : GRAFT_UNIMPLEMENTED;
}

static graft_status mut_no_statistics(const mut_call *c) {
  const graft_tensor_desc *mean = mut_desc(c, "running_mean");
  long double before[64];
  int64_t n = mean ? mut_numel(mean) : 0;
  for (int64_t i = 0; i < n && i < 64; i++) before[i] = mut_get(mean, i);
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && i < n && i < 64; i++) mut_put(mean, i, before[i]);
  return s;
}

static graft_status mut_philox(const mut_call *c) {
  mut_args copy = mut_copy(c);
  const graft_philox *given;
  memcpy(&given, copy.bytes + c->schema->philox_offset, sizeof given);
  graft_philox edited = *given, *p = &edited;
  edited.offset = 0;
  memcpy(copy.bytes + c->schema->philox_offset, &p, sizeof p);
  return mut_inner(c, &copy);
}

static graft_status mut_negated(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && i < mut_numel(out); i++) mut_put(out, i, -mut_get(out, i));
  return s;
}

/* g y instead of g y (1 - y): a gradient that is right in sign and size. */
static graft_status mut_half_gradient(const mut_call *c) {
  const graft_tensor_desc *g = mut_desc(c, "grad_output"), *y = mut_desc(c, "output"), *out = mut_desc(c, "out");
  for (int64_t i = 0; i < mut_numel(out); i++) mut_put(out, i, mut_get(g, i) * mut_get(y, i));
  return GRAFT_OK;
}

/* Of equal values the last along dim 1 of a matrix, not the first. */
static graft_status mut_last_tie(const mut_call *c) {
  const graft_tensor_desc *x = mut_desc(c, "self"), *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK || x->dl.ndim != 2 || mut_numel(out) != x->dl.shape[0]) return s;
  for (int64_t row = 0; row < x->dl.shape[0]; row++) {
    int64_t columns = x->dl.shape[1], at = (int64_t)mut_get(out, row);
    for (int64_t k = at + 1; k < columns; k++)
      if (mut_get(x, row * columns + k) == mut_get(x, row * columns + at)) mut_put(out, row, k);
  }
  return s;
}

/* The sum leaves the last row or column out. */
static graft_status mut_short_sum(const mut_call *c) {
  mut_args copy = mut_copy(c);
  graft_tensor_desc edited = *mut_desc(c, "self");
  graft_int_list dims;
  memcpy(&dims, mut_field(c, &copy, "dim"), sizeof dims);
  int64_t shape[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < edited.dl.ndim; i++) shape[i] = edited.dl.shape[i];
  if (dims.count == 1 && edited.dl.ndim > 0 && shape[dims.items[0]] > 1) shape[dims.items[0]]--;
  edited.dl.shape = shape;
  mut_replace(c, &copy, "self", &edited);
  return mut_inner(c, &copy);
}

/* ---- indices ---- */

/* Rows picked wherever an index points. */
static void mut_pick_rows(const mut_call *c) {
  const graft_tensor_desc *weight = mut_desc(c, "weight"), *indices = mut_desc(c, "indices"), *out = mut_desc(c, "out");
  int64_t width = weight->dl.shape[1], each = (int64_t)dt_bytes(weight->dl.dtype);
  for (int64_t i = 0; i < mut_numel(out); i++) {
    int64_t row = (int64_t)mut_get(indices, i / width);
    int64_t at = row * weight->dl.strides[0] + i % width * weight->dl.strides[1];
    memcpy(mut_at(out, i), mut_at(weight, 0) + at * each, (size_t)each);
  }
}

static graft_status mut_unchecked_index(const mut_call *c) {
  mut_pick_rows(c);
  return GRAFT_OK;
}

/* It says so, but only after it has read. */
static graft_status mut_late_check(const mut_call *c) {
  graft_status s = c->inner(c->exec, c->args);
  if (s == GRAFT_OUT_OF_RANGE) mut_pick_rows(c);
  return s;
}

/* Indices lose their upper half before they are checked. They are read-only: what is cut is put back. */
static graft_status mut_short_index(const mut_call *c) {
  const graft_tensor_desc *index = mut_desc(c, "index");
  int64_t n = mut_numel(index), given[4096];
  if (n > 4096 || index->dl.dtype != GRAFT_I64) return c->inner(c->exec, c->args);
  for (int64_t i = 0; i < n; i++) {
    given[i] = (int64_t)mut_get(index, i);
    mut_put(index, i, (int32_t)(uint32_t)(uint64_t)given[i]);
  }
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; i < n; i++) mut_put(index, i, given[i]);
  return s;
}

/* ---- factors ---- */

/* The last number of the first result is off in its tenth bit. */
static graft_status mut_rough(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, c->schema->rets[0].name ? c->schema->rets[0].name : "out");
  graft_status s = c->inner(c->exec, c->args);
  int64_t n = s == GRAFT_OK ? mut_numel(out) : 0;
  if (n) mut_put(out, n - 1, mut_get(out, n - 1) * (1 + 0x1p-10L));
  return s;
}

static graft_status mut_no_pivot(const mut_call *c) {
  mut_args copy = mut_copy(c);
  *(uint8_t *)mut_field(c, &copy, "pivot") = 0;
  return mut_inner(c, &copy);
}

/* The first two values, and their vectors, stand the other way round. */
static graft_status mut_no_order(const mut_call *c) {
  const graft_tensor_desc *values = mut_desc(c, "eigenvalues"), *vectors = mut_desc(c, "eigenvectors");
  graft_status s = c->inner(c->exec, c->args);
  int64_t n = values->dl.shape[values->dl.ndim - 1];
  if (s != GRAFT_OK || n < 2 || mut_numel(vectors) < n * n) return s;
  for (int64_t i = -1; i < n; i++) {
    const graft_tensor_desc *d = i < 0 ? values : vectors;
    int64_t at = i < 0 ? 0 : i * n;
    long double kept = mut_get(d, at);
    mut_put(d, at, mut_get(d, at + 1));
    mut_put(d, at + 1, kept);
  }
  return s;
}

static graft_status mut_no_upper(const mut_call *c) {
  mut_args copy = mut_copy(c);
  uint32_t lower = GRAFT_STR_UPLO_L;
  memcpy(mut_field(c, &copy, "UPLO"), &lower, sizeof lower);
  return mut_inner(c, &copy);
}

/* Rows counted from 0. */
static graft_status mut_pivots_from_0(const mut_call *c) {
  const graft_tensor_desc *pivots = mut_desc(c, "pivots");
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && i < mut_numel(pivots); i++) mut_put(pivots, i, mut_get(pivots, i) - 1);
  return s;
}

/* ---- workspaces ---- */

/* Asks for one of 100 bytes and writes one beside it: at -1 or at 100. */
static graft_status mut_beside_workspace(const mut_call *c, int64_t at) {
  graft_buffer *buffer;
  uint64_t offset;
  graft_status s = ref_host()->workspace(c->exec, 100, 0, &buffer, &offset);
  if (s == GRAFT_OK) buffer->data[(int64_t)offset + at] = 0;
  return s == GRAFT_OK ? c->inner(c->exec, c->args) : s;
}

static graft_status mut_before_workspace(const mut_call *c) {
  return mut_beside_workspace(c, -1);
}

static graft_status mut_behind_workspace(const mut_call *c) {
  return mut_beside_workspace(c, 100);
}

/* Adds what it finds in a workspace that it never wrote, the bytes of a number of 0 by luck; where `mends`, no NaN. */
static graft_status mut_found_in_workspace(const mut_call *c, bool mends) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_buffer *buffer;
  uint64_t offset;
  float found;
  graft_status s = ref_host()->workspace(c->exec, sizeof found, 0, &buffer, &offset);
  if (s == GRAFT_OK) s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK) return s;
  memcpy(&found, buffer->data + offset, sizeof found);
  if (mends && isnan(found)) return s;
  for (int64_t i = 0; i < mut_numel(out); i++) mut_put(out, i, mut_get(out, i) + found);
  return s;
}

static graft_status mut_stale_workspace(const mut_call *c) {
  return mut_found_in_workspace(c, false);
}

static graft_status mut_stale_number(const mut_call *c) {
  return mut_found_in_workspace(c, true);
}

/* ---- the table ---- */

const mut_bug mut_bugs[] = {
    {"tail", "aten::add.Tensor", "off by one at a tail", mut_tail, 0},
    {"tail_copy", "aten::flip", "off by one at a tail", mut_tail, 0},
    {"stride", "aten::exp", "ignored stride", mut_stride, 0},
    {"expanded", "aten::sub.Tensor", "ignored stride 0", mut_expanded, 0},
    {"out_stride", "aten::abs", "ignored stride of the output", mut_out_stride, 0},
    {"offset", "aten::sqrt", "ignored offset", mut_ignored_offset, 0},
    {"past_end", "aten::neg", "write past the end", mut_past_end, 0},
    {"f16_sums", "aten::mm", "f16 accumulator", mut_f16_sums, 0},
    {"before_workspace", "aten::mm", "write beside a workspace", mut_before_workspace, 0},
    {"behind_workspace", "aten::sum.dim_IntList", "write beside a workspace", mut_behind_workspace, 0},
    {"stale_workspace", "aten::mm", "unwritten workspace read", mut_stale_workspace, 0},
    {"stale_number", "aten::erf", "unwritten workspace read", mut_stale_number, 0},
    {"truncated", "aten::mul.Tensor", "wrong rounding", mut_truncated, 0},
    {"cut", "aten::_to_copy", "wrong rounding", mut_cut, 0},
    {"cut_factors", "aten::mm", "wrong rounding", mut_cut_factors, 0},
    {"nan_dropped", "aten::maximum", "NaN dropped", mut_nan_dropped, 0},
    {"zero_sign", "aten::floor", "sign of zero lost", mut_zero_sign, 0},
    {"flushed", "aten::relu", "denormals flushed", mut_flushed, 0},
    {"saturated", "aten::add.Tensor", "integer overflow saturates", mut_saturated, 0},
    {"changed_input", "aten::sigmoid", "changed input", mut_changed_input, 0},
    {"missing_wait", "aten::tanh", "missing wait", mut_missing_wait, 0},
    {"stale_memo", "aten::cos", "stale memo for another shape", mut_stale_memo, 0},
    {"in_place", "aten::sin", "reads after it wrote in place", mut_in_place, 0},
    {"not_deterministic", "aten::cumsum", "not deterministic", mut_not_deterministic, 0},
    {"other_zero", "aten::embedding_dense_backward", "not deterministic", mut_other_zero, 0},
    {"other_imaginary", "aten::baddbmm", "not deterministic", mut_other_imaginary, 0},
    {"crash", "aten::log", "crash", mut_crash, 0},
    {"hang", "aten::erf", "hang", mut_hang, 0},
    {"no_alpha", "aten::sub.Tensor", "ignored argument", mut_no_alpha, 0},
    {"no_accumulate", "aten::index_put", "overwrite instead of accumulate", mut_no_accumulate, 0},
    {"overwrites", "aten::scatter_add", "overwrite instead of accumulate", mut_overwrites, 0},
    {"no_pad_count", "aten::avg_pool2d", "ignored argument", mut_no_pad_count, 0},
    {"no_weight", "aten::native_layer_norm", "ignored argument", mut_no_weight, 0},
    {"no_descending", "aten::sort", "ignored argument", mut_no_descending, 0},
    {"no_largest", "aten::topk", "ignored argument", mut_no_largest, 0},
    {"no_correction", "aten::var.correction", "ignored argument", mut_no_correction, 0},
    {"no_dilation", "aten::convolution", "ignored argument", mut_no_groups, 0},
    {"no_statistics", "aten::native_batch_norm", "statistics not written", mut_no_statistics, 0},
    {"philox", "aten::rand", "Philox offset not used", mut_philox, 0},
    {"philox_dropout", "aten::native_dropout", "Philox offset not used", mut_philox, 0},
    {"negated", "aten::_softmax_backward_data", "wrong gradient", mut_negated, 0},
    {"half_gradient", "aten::sigmoid_backward", "wrong gradient", mut_half_gradient, 0},
    {"last_tie", "aten::argmax", "wrong tie", mut_last_tie, 0},
    {"unchecked_index", "aten::embedding", "index not checked", mut_unchecked_index, 0},
    {"late_check", "aten::embedding", "index checked after it was used", mut_late_check, 0},
    {"short_index", "aten::gather", "index of 32 bits", mut_short_index, 0},
    {"rough_lu", "aten::linalg_lu_factor_ex", "too few digits of a factor", mut_rough, 0},
    {"rough_cholesky", "aten::linalg_cholesky_ex", "too few digits of a factor", mut_rough, 0},
    {"rough_inverse", "aten::linalg_inv_ex", "too few digits of a solution", mut_rough, 0},
    {"rough_determinant", "aten::_linalg_det", "too few digits of a determinant", mut_rough, 0},
    {"rough_q", "aten::linalg_qr", "too few digits of a factor", mut_rough, 0},
    {"rough_reflectors", "aten::geqrf", "too few digits of a factor", mut_rough, 0},
    {"rough_eigenvalue", "aten::_linalg_eigh", "too few digits of a value", mut_rough, 0},
    {"rough_vectors", "aten::_linalg_svd", "too few digits of a factor", mut_rough, 0},
    {"no_order", "aten::_linalg_eigh", "values in another order", mut_no_order, 0},
    {"no_upper", "aten::_linalg_eigh", "ignored argument", mut_no_upper, 0},
    {"no_pivot", "aten::linalg_lu_factor_ex", "ignored argument", mut_no_pivot, 0},
    {"pivots_from_0", "aten::linalg_lu_factor_ex", "rows counted from 0", mut_pivots_from_0, 0},
    {"short_sum", "aten::sum.dim_IntList", "off by one in a reduction", mut_short_sum, 0},

    {"lost_depth", "aten::mm", "end of the parts lost", mut_lost_depth, 0},
    {"stale_strip", "aten::mm", "missing barrier", mut_stale_strip, 0},
    {"lost_team", "aten::sum.dim_IntList", "end of the parts lost", mut_lost_team, 0},
    {"lost_loss", "aten::mse_loss", "end of the parts lost", mut_lost_loss, 0},
    {"lost_block", "aten::scatter_add", "end of the parts lost", mut_lost_block, 0},
    {"lost_carry", "aten::cumsum", "a tile by itself", mut_lost_carry, 0},
    {"first_tile", "aten::topk", "a tile by itself", mut_first_tile, 0},
    {"unstable_tiles", "aten::sort.stable", "wrong tie", mut_unstable_tiles, 0},
    {"early_merge", "aten::sort.stable", "off by one where parts are merged", mut_early_merge, 0},
    {"stale_row", "aten::native_layer_norm", "missing barrier", mut_stale_row, 0},
    {"same_block", "aten::native_dropout", "one block of Philox for several", mut_same_block, 0},
    {"not_scaled", "aten::_scaled_dot_product_fused_attention_overrideable", "wrong accumulator", mut_not_scaled, 0},
    {"tile_tail", "aten::convolution", "off by one at a tail", mut_tail, 0},

    {"right_reversed", NULL, "right: sums in the other order, narrow", NULL, REF_NARROW | REF_REVERSED},
    {"right_narrow", NULL, "right: sums in the accumulator's own precision", NULL, REF_NARROW},
    {"right_no_fma", NULL, "right: products rounded before they are added", NULL, REF_NARROW | REF_NO_FMA},
};
const size_t mut_bug_count = sizeof mut_bugs / sizeof *mut_bugs;

static graft_status mut_slot_of(const void *table, const op_schema *schema, mut_slot *slot) {
  memcpy(slot, (const char *)table + schema->slot_offset, sizeof *slot);
  return *slot ? GRAFT_OK : GRAFT_UNIMPLEMENTED;
}

mut_slot mut_reference_slot(uint32_t op_id) {
  const op_schema *schema = op_schema_of(op_id);
  mut_slot slot = NULL;
  if (!schema || schema->route != OPROUTE_SLOT) return NULL;
  if (schema->table == OPT_CORE) mut_slot_of(ref_core(), schema, &slot);
  if (schema->table == OPT_PRIMS) mut_slot_of(ref_prims(), schema, &slot);
  if (schema->table == OPT_TRAIN) mut_slot_of(ref_train(), schema, &slot);
  return slot;
}
