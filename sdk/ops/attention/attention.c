/* Scaled dot product attention: out = dropout(softmax(scale * query key^T + bias)) value, and its gradient.
 *
 * logsumexp of each row of scores goes from forward to backward, which makes the weights again from it; with dropout,
 * the seed and the offset of the Philox stream do the same for the mask. A row that is masked out gives zeros. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* Arguments and results by short names; the gradients come in the order of query, key, value and bias. */
#define FORWARD(name)  ARG_scaled_dot_product_fused_attention_overrideable_##name
#define RESULT(name)   OUT_scaled_dot_product_fused_attention_overrideable_##name
#define BACKWARD(name) ARG_scaled_dot_product_fused_attention_overrideable_backward_##name
#define GRADIENT(name) OUT_scaled_dot_product_fused_attention_overrideable_backward_##name

/* The four from argument `query` on, and their gradients. */
enum { OF_QUERY, OF_KEY = FORWARD(key), OF_VALUE = FORWARD(value), OF_BIAS = FORWARD(attn_bias), GRADIENTS };

/* Batch, heads, lengths of query and key, widths of key and value. */
typedef struct shape {
  int64_t batch, heads, rows, columns, width, value_width;
} shape;

static shape shape_of(const graft_value *args, int query) {
  const graft_tensor *q = args[query].as.tensor, *k = args[query + OF_KEY].as.tensor,
                     *v = args[query + OF_VALUE].as.tensor;
  return (shape){q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2], q->sizes[3], v->sizes[3]};
}

/* --- rules --- */

static graft_status check_sizes(const op_call *c, int arg, const int64_t sizes[4]) {
  if (tns_has_sizes(op_tensor(c, arg), 4, sizes)) return GRAFT_OK;
  return op_refuse(c, arg, "[%lld,%lld,%lld,%lld]", (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                   (long long)sizes[3]);
}

static graft_status check_bias(const op_call *c, int arg, const shape *p) {
  const graft_tensor *t = op_tensor(c, arg);
  const int64_t sizes[] = {p->batch, p->heads, p->rows, p->columns};
  if (!t) return GRAFT_OK;
  if (tns_broadcasts_to(t, 4, sizes)) return GRAFT_OK;
  return op_error(c, "attn_bias does not broadcast to the scores (%s)", op_show_tensors(c));
}

/* query, key and value from argument `query` on, and the bias behind them. */
static graft_status check_inputs(op_call *c, int query, shape *p) {
  for (int i = query; i < query + GRADIENTS; i++) {
    const graft_tensor *t = op_tensor(c, i);
    if (!t) continue;
    graft_status status = op_check_floating(c, i);
    if (status) return status;
    if (t->dtype != op_tensor(c, query)->dtype) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
    if (i < query + OF_BIAS && t->ndim != 4) return op_refuse(c, i, "[batch,heads,length,width]");
  }
  *p = shape_of(c->args, query);
  graft_status status = check_sizes(c, query + OF_KEY, (int64_t[]){p->batch, p->heads, p->columns, p->width});
  if (!status) status = check_sizes(c, query + OF_VALUE, (int64_t[]){p->batch, p->heads, p->columns, p->value_width});
  c->compute = op_tensor(c, query)->dtype;
  return status ? status : check_bias(c, query + OF_BIAS, p);
}

static graft_status check_dropout(op_call *c, int arg) {
  double p = op_float(c, arg);
  if (!(p >= 0 && p <= 1)) return op_error(c, "dropout_p is %g; expected 0 to 1", p);
  c->no_decompose = p > 0; /* what draws from a given place of the stream is the slot and the reference kernel */
  return GRAFT_OK;
}

/* Dims in the order in which the query's lie in memory. */
static void out_as_query(op_call *c, const graft_tensor *query, const int64_t sizes[4]) {
  op_out_like(c, RESULT(output), query->dtype, query);
  if (sizes[3] == query->sizes[3]) return;
  int order[4] = {0, 1, 2, 3}; /* outermost first */
  for (int i = 1; i < 4; i++) {
    for (int k = i; k > 0 && query->strides[order[k - 1]] < query->strides[order[k]]; k--) {
      int swap = order[k];
      order[k] = order[k - 1];
      order[k - 1] = swap;
    }
  }
  op_out(c, RESULT(output), query->dtype, 4, sizes);
  int64_t stride = 1;
  for (int i = 3; i >= 0; i--) {
    c->out[RESULT(output)].strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
}

/* Of the results those of sequences of several lengths and the debug mask are not there. */
static graft_status infer_forward(op_call *c) {
  shape p;
  graft_status status = check_inputs(c, FORWARD(query), &p);
  if (!status) status = check_dropout(c, FORWARD(dropout_p));
  if (!status && op_bool(c, FORWARD(return_debug_mask))) status = op_error(c, "return_debug_mask is not served");
  if (status) return status;
  const graft_tensor *query = op_tensor(c, FORWARD(query));
  const int64_t sizes[] = {p.batch, p.heads, p.rows, p.value_width};
  /* A number for each weight, four a block: those of f32 in every dtype. */
  uint64_t weights = (uint64_t)(p.batch * p.heads * p.rows * p.columns);
  c->draws = c->no_decompose ? (weights + 3) / 4 * 4 : 0;
  out_as_query(c, query, sizes);
  op_out(c, RESULT(logsumexp), dt_is_half(query->dtype) ? GRAFT_F32 : query->dtype, 3, sizes);
  op_out(c, RESULT(philox_seed), GRAFT_I64, 0, NULL);
  op_out(c, RESULT(philox_offset), GRAFT_I64, 0, NULL);
  c->nouts = c->schema->nrets;
  return GRAFT_OK;
}

static graft_status check_number(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  return t->numel == 1 && t->dtype == GRAFT_I64 ? GRAFT_OK : op_refuse(c, arg, "one number of i64");
}

static graft_status infer_backward(op_call *c) {
  shape p;
  graft_status status = check_inputs(c, BACKWARD(query), &p);
  const int64_t sizes[] = {p.batch, p.heads, p.rows, p.value_width};
  for (int i = 0; !status && i < 2; i++) {
    int arg = i ? BACKWARD(out) : BACKWARD(grad_out);
    status = check_sizes(c, arg, sizes);
    if (!status && op_tensor(c, arg)->dtype != c->compute) status = op_refuse(c, arg, "the query's dtype");
  }
  const graft_tensor *lse = op_tensor(c, BACKWARD(logsumexp));
  if (!status && !dt_is_float(lse->dtype)) status = op_refuse(c, BACKWARD(logsumexp), "a floating dtype");
  if (!status && (lse->ndim != 3 || lse->numel != p.batch * p.heads * p.rows || lse->sizes[2] != p.rows)) {
    status = op_refuse(c, BACKWARD(logsumexp), "a number for each row of scores");
  }
  if (!status) status = check_dropout(c, BACKWARD(dropout_p));
  if (!status) status = check_number(c, BACKWARD(philox_seed));
  if (!status) status = check_number(c, BACKWARD(philox_offset));
  if (status) return status;
  c->nouts = GRADIENTS;
  for (int i = 0; i < GRADIENTS; i++) {
    const graft_tensor *like = op_tensor(c, BACKWARD(query) + i);
    if (like && c->args[BACKWARD(grad_input_mask)].as.mask[i]) op_out_like(c, i, like->dtype, like);
  }
  return GRAFT_OK;
}

/* --- kernels --- */

/* What both directions have in common. */
typedef struct attention {
  shape p;
  ref_array q, k, v, bias;
  int64_t bias_stride[4]; /* 0 where the bias broadcasts */
  ref_real scale, keep;   /* keep: what a kept weight is multiplied by */
  double dropout;
  bool causal;
  graft_dtype dtype;
  graft_philox philox;
} attention;

static bool attention_open(attention *a, const graft_tensor_desc *q, const graft_tensor_desc *k,
                           const graft_tensor_desc *v, const graft_tensor_desc *bias, const double *scale,
                           double dropout, bool causal) {
  const int64_t *s = q->dl.shape;
  a->p = (shape){s[0], s[1], s[2], k->dl.shape[2], s[3], v->dl.shape[3]};
  a->q = ref_read(q), a->k = ref_read(k), a->v = ref_read(v), a->bias = ref_read(bias);
  int64_t stride = 1;
  for (int32_t i = bias ? bias->dl.ndim - 1 : -1; i >= 0; i--) {
    if (bias->dl.shape[i] != 1) a->bias_stride[4 - bias->dl.ndim + i] = stride;
    stride *= bias->dl.shape[i];
  }
  a->scale = scale ? (ref_real)*scale : 1 / sqrtl((ref_real)a->p.width);
  a->dropout = dropout;
  a->keep = dropout < 1 ? 1 / (1 - (ref_real)dropout) : 0;
  a->causal = causal;
  a->dtype = q->dl.dtype;
  return a->q.re && a->k.re && a->v.re && (!bias || a->bias.re);
}

static void attention_close(attention *a) {
  ref_array *all[] = {&a->q, &a->k, &a->v, &a->bias};
  for (int i = 0; i < 4; i++) ref_free(all[i]);
}

/* A row of one head: row `at` of query and result; the head's key and value begin at row `first`. */
typedef struct attention_row {
  int64_t at, first, i, bias;
} attention_row;

static attention_row row_of(const attention *a, int64_t at) {
  int64_t head = at / a->p.rows, i = at % a->p.rows;
  const int64_t *s = a->bias_stride;
  int64_t bias = head / a->p.heads * s[0] + head % a->p.heads * s[1] + i * s[2];
  return (attention_row){at, head * a->p.columns, i, bias};
}

static ref_real *vector(const ref_array *a, int64_t row, int64_t width) {
  return a->re + row * width;
}

static ref_real score(const attention *a, const attention_row *r, int64_t j) {
  if (a->causal && j > r->i) return -INFINITY;
  const ref_real *q = vector(&a->q, r->at, a->p.width), *k = vector(&a->k, r->first + j, a->p.width);
  ref_real s = a->scale * ref_dot(a->dtype, q, 1, k, 1, a->p.width);
  return a->bias.re ? s + a->bias.re[r->bias + j * a->bias_stride[3]] : s;
}

/* 0, or what a kept weight is multiplied by. */
static ref_real mask_of(const attention *a, const attention_row *r, int64_t j) {
  if (!a->dropout) return 1;
  uint64_t element = (uint64_t)(r->at * a->p.columns + j);
  return ref_philox_uniform(&a->philox, GRAFT_F32, element) < 1 - a->dropout ? a->keep : 0; /* in f64 */
}

/* One row of the result and its logsumexp; `weights` has room for a row. */
static void attend(const attention *a, int64_t at, ref_real *weights, ref_real *out, ref_real *lse) {
  attention_row r = row_of(a, at);
  ref_real most = -INFINITY;
  for (int64_t j = 0; j < a->p.columns; j++) {
    weights[j] = score(a, &r, j);
    if (weights[j] > most || isnan(weights[j])) most = weights[j];
  }
  *lse = most;
  if (most == -INFINITY) return;
  for (int64_t j = 0; j < a->p.columns; j++) weights[j] = expl(weights[j] - most);
  ref_real sum = ref_sum(a->dtype, weights, 1, a->p.columns);
  *lse = most + logl(sum);
  for (int64_t j = 0; j < a->p.columns; j++) weights[j] = weights[j] / sum * mask_of(a, &r, j);
  for (int64_t e = 0; e < a->p.value_width; e++) {
    out[e] =
        ref_dot(a->dtype, weights, 1, vector(&a->v, r.first, a->p.value_width) + e, a->p.value_width, a->p.columns);
  }
}

static void write_number(const graft_tensor_desc *to, uint64_t value) {
  memcpy(ref_data(to), &value, sizeof value);
}

static uint64_t read_number(const graft_tensor_desc *from) {
  uint64_t value;
  memcpy(&value, ref_data(from), sizeof value);
  return value;
}

graft_status kernel_scaled_dot_product_fused_attention_overrideable(
    const graft_exec *exec, const graft_args_scaled_dot_product_fused_attention_overrideable *args) {
  attention a = {.philox = *args->philox};
  bool ok = attention_open(&a, args->query, args->key, args->value, args->attn_bias, args->scale, args->dropout_p,
                           args->is_causal);
  REF_OWNED ref_array out = ref_new(ref_numel(args->output), false), lse = ref_new(ref_numel(args->logsumexp), false);
  REF_OWNED ref_array weights = ref_new(a.p.columns, false);
  ok &= out.re && lse.re && weights.re;
  for (int64_t at = 0; ok && at < lse.count; at++) {
    attend(&a, at, weights.re, vector(&out, at, a.p.value_width), &lse.re[at]);
  }
  if (ok) {
    ref_write(args->output, &out);
    ref_write(args->logsumexp, &lse);
    write_number(args->philox_seed, a.dropout ? a.philox.seed : 0);
    write_number(args->philox_offset, a.dropout ? ref_philox_offset(&a.philox) : 0);
  }
  attention_close(&a);
  return ok ? GRAFT_OK : ref_no_memory();
}

static void attend_back(const attention *a, int64_t at, const ref_real *grad, const ref_real *out, ref_real lse,
                        ref_array *to) {
  attention_row r = row_of(a, at);
  int64_t width = a->p.width, value_width = a->p.value_width;
  ref_real delta = ref_dot(a->dtype, grad, 1, out, 1, value_width);
  for (int64_t j = 0; j < a->p.columns; j++) {
    ref_real s = score(a, &r, j), weight = s == -INFINITY || lse == -INFINITY ? 0 : expl(s - lse);
    ref_real mask = mask_of(a, &r, j);
    const ref_real *v = vector(&a->v, r.first + j, value_width);
    ref_real slope = weight * (mask * ref_dot(a->dtype, grad, 1, v, 1, value_width) - delta);
    const ref_real *q = vector(&a->q, at, width), *k = vector(&a->k, r.first + j, width);
    if (to[OF_QUERY].re) ref_add_scaled(a->dtype, vector(&to[OF_QUERY], at, width), a->scale * slope, k, width);
    if (to[OF_KEY].re) ref_add_scaled(a->dtype, vector(&to[OF_KEY], r.first + j, width), a->scale * slope, q, width);
    if (to[OF_VALUE].re) {
      ref_add_scaled(a->dtype, vector(&to[OF_VALUE], r.first + j, value_width), weight * mask, grad, value_width);
    }
    if (to[OF_BIAS].re) ref_add_scaled(a->dtype, &to[OF_BIAS].re[r.bias + j * a->bias_stride[3]], 1, &slope, 1);
  }
}

graft_status kernel_scaled_dot_product_fused_attention_overrideable_backward(
    const graft_exec *exec, const graft_args_scaled_dot_product_fused_attention_overrideable_backward *args) {
  attention a = {.philox = {.struct_size = sizeof a.philox,
                            .seed = read_number(args->philox_seed),
                            .offset = read_number(args->philox_offset)}};
  bool ok = attention_open(&a, args->query, args->key, args->value, args->attn_bias, args->scale, args->dropout_p,
                           args->is_causal);
  const graft_tensor_desc *to_desc[] = {args->grad_query, args->grad_key, args->grad_value, args->grad_attn_bias};
  enum { GRAD, RESULT, LSE, INS };
  const graft_tensor_desc *in[INS] = {args->grad_out, args->out, args->logsumexp};
  ref_array all[INS + GRADIENTS];
  ok &= ref_arrays_open(all, in, INS, to_desc, GRADIENTS);
  for (int64_t at = 0; ok && at < all[LSE].count; at++) {
    attend_back(&a, at, vector(&all[GRAD], at, a.p.value_width), vector(&all[RESULT], at, a.p.value_width),
                all[LSE].re[at], all + INS);
  }
  attention_close(&a);
  return ref_arrays_close(all, INS, to_desc, GRADIENTS, ok);
}

/* --- on tensors: decompositions without dropout, and gradients of gradients --- */

static graft_tensor *as_batch(fx *s, graft_tensor *t) {
  if (!t) return NULL;
  return fx_reshape(s, t, 3, (int64_t[]){t->sizes[0] * t->sizes[1], t->sizes[2], t->sizes[3]});
}

static graft_tensor *as_heads(fx *s, graft_tensor *t, const shape *p) {
  if (!t) return NULL;
  return fx_reshape(s, t, 4, (int64_t[]){p->batch, p->heads, t->sizes[1], t->sizes[2]});
}

/* a b of each head; `transposed`: of a with b^T. */
static graft_tensor *product(fx *s, const shape *p, graft_tensor *a, graft_tensor *b, bool transposed) {
  a = as_batch(s, a);
  b = as_batch(s, b);
  if (!a || !b) return NULL;
  return as_heads(s, fx_bmm(s, a, transposed ? fx_transpose(s, b, 1, 2) : b), p);
}
static graft_tensor *flipped(fx *s, graft_tensor *t) {
  return t ? fx_transpose(s, t, 2, 3) : NULL;
}

/* The arguments of either direction. */
typedef struct inputs {
  shape p;
  graft_tensor *q, *k, *v, *bias;
  double scale;
  bool causal;
} inputs;

static inputs inputs_of(const graft_value *args, int query, int scale, int causal) {
  inputs in = {.p = shape_of(args, query),
               .q = args[query].as.tensor,
               .k = args[query + OF_KEY].as.tensor,
               .v = args[query + OF_VALUE].as.tensor,
               .bias = unwrap_tensor(&args[query + OF_BIAS]),
               .causal = args[causal].as.i != 0};
  in.scale = args[scale].kind == GRAFT_VALUE_FLOAT ? args[scale].as.f : 1 / sqrt((double)in.p.width);
  return in;
}

static graft_tensor *minus_infinity(fx *s, graft_tensor *like) {
  return fx_filled(s, like, 0, NULL, -INFINITY, like->dtype);
}

static graft_tensor *scores_of(fx *s, const inputs *in) {
  graft_tensor *scores = fx_muls(s, product(s, &in->p, in->q, in->k, true), in->scale);
  if (in->bias) scores = fx_add(s, scores, in->bias);
  if (!in->causal || s->status) return scores;
  graft_tensor *i = fx_count_up(s, in->p.rows, GRAFT_I64, in->q->device);
  graft_tensor *j = fx_count_up(s, in->p.columns, GRAFT_I64, in->q->device);
  graft_tensor *seen = fx_le_Tensor(s, j, s->status ? NULL : fx_unsqueeze(s, i, 1));
  return s->status ? NULL : fx_where_self(s, seen, scores, minus_infinity(s, scores));
}

/* exp(scores - lse), and 0 in rows without a number. */
static graft_tensor *weights_of(fx *s, graft_tensor *scores, graft_tensor *lse) {
  if (!scores || !lse) return NULL;
  graft_tensor *empty = fx_eq_Scalar(s, lse, graft_scalar_float(-INFINITY));
  graft_tensor *finite = fx_where_self(s, empty, fx_zeros_like(s, lse), lse);
  return s->status ? NULL : fx_exp(s, fx_sub(s, scores, fx_unsqueeze(s, finite, 3)));
}

static void decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  inputs in = inputs_of(c->args, FORWARD(query), FORWARD(scale), FORWARD(is_causal));
  graft_tensor *scores = scores_of(s, &in), *most = s->status ? NULL : fx_amax(s, scores, (int64_t[]){3}, 1, false);
  graft_tensor *unscaled = weights_of(s, scores, most), *sum = fx_sum(s, unscaled, 1u << 3, false);
  if (s->status) return;
  graft_tensor *shift =
      fx_where_self(s, fx_eq_Scalar(s, most, graft_scalar_float(-INFINITY)), fx_zeros_like(s, most), most);
  outs[RESULT(logsumexp)] = fx_add(s, shift, fx_log(s, sum));
  /* A row that has anything left sums to at least 1, the exp of its greatest less itself; another row is all zeros. */
  graft_tensor *divisor = fx_binary(s, GRAFT_OP_MAXIMUM, fx_tensor(sum), fx_float(1));
  outs[RESULT(output)] =
      product(s, &in.p, fx_div(s, unscaled, s->status ? NULL : fx_unsqueeze(s, divisor, 3)), in.v, false);
  outs[RESULT(philox_seed)] = outs[RESULT(philox_offset)] =
      s->status ? NULL : fx_filled(s, in.q, 0, NULL, 0, GRAFT_I64);
}

/* The gradients that `wanted` asks for, from the weights and the sums of grad * out. */
static void gradients(fx *s, const inputs *in, graft_tensor *grad, graft_tensor *weights, graft_tensor *delta,
                      const bool wanted[GRADIENTS], graft_tensor **to) {
  graft_tensor *slope = fx_mul(s, weights, fx_sub(s, product(s, &in->p, grad, in->v, true), delta));
  if (wanted[OF_QUERY]) to[OF_QUERY] = fx_muls(s, product(s, &in->p, slope, in->k, false), in->scale);
  if (wanted[OF_KEY]) to[OF_KEY] = fx_muls(s, product(s, &in->p, flipped(s, slope), in->q, false), in->scale);
  if (wanted[OF_VALUE]) to[OF_VALUE] = product(s, &in->p, flipped(s, weights), grad, false);
  if (wanted[OF_BIAS] && in->bias) to[OF_BIAS] = fx_sum_to(s, slope, in->bias->ndim, in->bias->sizes);
}

static void decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  inputs in = inputs_of(c->args, BACKWARD(query), BACKWARD(scale), BACKWARD(is_causal));
  graft_tensor *grad = op_tensor(c, BACKWARD(grad_out)),
               *lse = fx_cast(s, op_tensor(c, BACKWARD(logsumexp)), in.q->dtype);
  if (s->status) return;
  lse = fx_reshape(s, lse, 3, in.q->sizes);
  graft_tensor *delta = fx_sum(s, fx_mul(s, grad, op_tensor(c, BACKWARD(out))), 1u << 3, true);
  bool wanted[GRADIENTS];
  for (int i = 0; i < GRADIENTS; i++) wanted[i] = c->out_wanted[i];
  gradients(s, &in, grad, weights_of(s, scores_of(s, &in), lse), delta, wanted, outs);
}

static void vjp_again(op_vjp *v, const bool wanted[GRADIENTS]) {
  fx *s = v->s;
  inputs in = inputs_of(v->args, FORWARD(query), FORWARD(scale), FORWARD(is_causal));
  if (v->args[FORWARD(dropout_p)].as.f > 0) {
    fx_fail(s, err_about(GRAFT_UNIMPLEMENTED, v->schema->name, "with dropout its gradient can't be differentiated"));
    return;
  }
  graft_tensor *scores = scores_of(s, &in);
  graft_tensor *weights = s->status ? NULL : fx_safe_softmax(s, scores, 3, GRAFT_DTYPE_NONE);
  graft_tensor *by_weight = fx_mul(s, weights, product(s, &in.p, v->g[RESULT(output)], in.v, true));
  gradients(s, &in, v->g[RESULT(output)], weights, fx_sum(s, by_weight, 1u << 3, true), wanted, v->results);
}

static void vjp_forward(op_vjp *v) {
  const in_scaled_dot_product_fused_attention_overrideable in =
      in_scaled_dot_product_fused_attention_overrideable_of(v->args);
  bool wanted[GRADIENTS];
  uint8_t mask[GRADIENTS];
  for (int i = 0; i < GRADIENTS; i++) mask[i] = wanted[i] = vjp_needs(v, i);
  if (!v->g[RESULT(output)]) return;
  if (v->create_graph) {
    vjp_again(v, wanted);
    return;
  }
  graft_tensor *d[GRADIENTS] = {NULL};
  fx_scaled_dot_product_fused_attention_overrideable_backward(
      v->s, v->g[RESULT(output)], in.query, in.key, in.value, in.attn_bias, mask, v->outs[RESULT(output)],
      v->outs[RESULT(logsumexp)], NULL, NULL, in.query->sizes[2], in.key->sizes[2], in.dropout_p, in.is_causal,
      v->outs[RESULT(philox_seed)], v->outs[RESULT(philox_offset)], in.scale, &d[OF_QUERY], &d[OF_KEY], &d[OF_VALUE],
      &d[OF_BIAS]);
  for (int i = 0; i < GRADIENTS; i++) v->results[i] = mask[i] ? d[i] : NULL;
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(scaled_dot_product_fused_attention_overrideable),
     .roles = "vvvv",
     .infer = infer_forward,
     .decompose = decompose_forward,
     .vjp = vjp_forward,
     .saves = OP_SAVE_ARGS(scaled_dot_product_fused_attention_overrideable, query, key, value, attn_bias) |
              OP_SAVE_OUT(scaled_dot_product_fused_attention_overrideable, output) |
              OP_SAVE_OUT(scaled_dot_product_fused_attention_overrideable, logsumexp) |
              OP_SAVE_OUT(scaled_dot_product_fused_attention_overrideable, philox_seed) |
              OP_SAVE_OUT(scaled_dot_product_fused_attention_overrideable, philox_offset),
     .without_grad = OP_OUT_BIT(scaled_dot_product_fused_attention_overrideable, logsumexp)},
    {.op_id = OP_WITH_KERNEL(scaled_dot_product_fused_attention_overrideable_backward),
     .roles = "vvvvvvkkkkk",
     .infer = infer_backward,
     .decompose = decompose_backward},
};
OP_TABLE(attention, defs)
