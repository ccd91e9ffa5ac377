/* The slots of kinds.c, which includes this: one of each kind, none of them fast. */
#ifndef GRAFT_TESTS_FROZEN_KINDS_OPS_H
#define GRAFT_TESTS_FROZEN_KINDS_OPS_H

#if GRAFT_ABI_MINOR >= 1
enum { BAD_INDEX = GRAFT_OUT_OF_RANGE };
#else
enum { BAD_INDEX = GRAFT_INVALID_ARGUMENT };
#endif

static int is_output_of(const graft_tensor_desc *out, const graft_tensor_desc *in) {
  return out->dl.data == in->dl.data && out->dl.byte_offset == in->dl.byte_offset;
}

/* Counts a call, and what is worth knowing of an operand. */
static void count_call(kinds_slot slot) {
  seen.calls[slot]++;
}

static void count_absent(const void *argument) {
  seen.absent_arguments += !argument;
}

static char *bytes_of(const graft_tensor_desc *t) {
  return t->dl.data->data + t->dl.byte_offset;
}

static double number(const graft_scalar *s) {
  return s->dtype == GRAFT_F64 ? s->value.f : (double)s->value.i;
}

/* --- elements anywhere: strides, numbers in host memory, other dtypes --- */

static int64_t position(const graft_tensor_desc *t, int64_t element) {
  int64_t at = 0;
  for (int32_t d = t->dl.ndim - 1; d >= 0; d--) {
    at += element % t->dl.shape[d] * t->dl.strides[d];
    element /= t->dl.shape[d];
  }
  return at;
}

static int is_loadable(graft_dtype dtype) {
  return dtype == GRAFT_F32 || dtype == GRAFT_F64 || dtype == GRAFT_I32 || dtype == GRAFT_I64 || dtype == GRAFT_BOOL;
}

static float load(const graft_tensor_desc *t, int64_t element) {
  const char *data = t->flags & GRAFT_TENSOR_HOST_VALUE ? (const char *)t->dl.data : bytes_of(t);
  const void *at = data + position(t, element) * (int64_t)GRAFT_DTYPE_BYTES(t->dl.dtype);
  switch (t->dl.dtype) {
    case GRAFT_F64: return (float)*(const double *)at;
    case GRAFT_I32: return (float)*(const int32_t *)at;
    case GRAFT_I64: return (float)*(const int64_t *)at;
    case GRAFT_BOOL: return *(const uint8_t *)at;
    default: return *(const float *)at;
  }
}

static void count_operand(const graft_tensor_desc *in, const graft_tensor_desc *out) {
  int is_expanded = 0;
  for (int32_t d = 0; d < in->dl.ndim; d++) is_expanded |= in->dl.strides[d] == 0 && in->dl.shape[d] > 1;
  seen.expanded += (unsigned)is_expanded;
  seen.host_values += (in->flags & GRAFT_TENSOR_HOST_VALUE) != 0;
  seen.mixed += in->dl.dtype != out->dl.dtype;
  seen.in_place += (unsigned)is_output_of(out, in);
}

static int serves_mul(const graft_args_mul_Tensor *args) {
  return args->out->dl.dtype == GRAFT_F32 && is_loadable(args->self->dl.dtype) && is_loadable(args->other->dl.dtype);
}

static graft_status mul_Tensor(const graft_exec *exec, const graft_args_mul_Tensor *args) {
  (void)exec;
  if (!serves_mul(args)) return GRAFT_UNIMPLEMENTED;
  if (has_unknown(args->self->flags | args->other->flags, GRAFT_TENSOR_HOST_VALUE)) return GRAFT_INVALID_ARGUMENT;
  count_call(KINDS_MUL);
  count_operand(args->self, args->out);
  count_operand(args->other, args->out);
  for (int64_t i = 0, n = elements(args->out); i < n; i++)
    f32(args->out)[position(args->out, i)] = load(args->self, i) * load(args->other, i);
  return GRAFT_OK;
}

/* --- one value per element --- */

static graft_status counted_add(const graft_exec *exec, const graft_args_add_Tensor *args) {
  count_call(KINDS_ADD);
  return add_Tensor(exec, args);
}

static graft_status counted_relu(const graft_exec *exec, const graft_args_relu *args) {
  count_call(KINDS_RELU);
  return relu(exec, args);
}

static graft_status clamp(const graft_exec *exec, const graft_args_clamp *args) {
  (void)exec;
  float low = args->min ? (float)number(args->min) : 0, high = args->max ? (float)number(args->max) : 0;
  const float *x = f32(args->self);
  float *out = f32(args->out);
  count_call(KINDS_CLAMP);
  count_absent(args->min);
  count_absent(args->max);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) {
    float value = x[i];
    if (args->min && (value < low || low != low)) value = low;
    if (args->max && (value > high || high != high)) value = high;
    out[i] = x[i] != x[i] ? x[i] : value;
  }
  return GRAFT_OK;
}

static int serves_gelu(const graft_args_gelu *args) {
  return args->approximate == GRAFT_STR_APPROXIMATE_NONE || args->approximate == GRAFT_STR_APPROXIMATE_TANH;
}

static graft_status gelu(const graft_exec *exec, const graft_args_gelu *args) {
  (void)exec;
  if (!serves_gelu(args)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_GELU);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) {
    double x = f32(args->self)[i], shaped = 0.7978845608028654 * (x + 0.044715 * x * x * x);
    double half = args->approximate == GRAFT_STR_APPROXIMATE_TANH ? 1 + tanh(shaped) : erfc(-x * 0.7071067811865476);
    f32(args->out)[i] = (float)(0.5 * x * half);
  }
  return GRAFT_OK;
}

static graft_status prims_sin(const graft_exec *exec, const graft_args_prims_sin *args) {
  (void)exec;
  count_call(KINDS_SIN);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) f32(args->out)[i] = (float)sin(f32(args->self)[i]);
  return GRAFT_OK;
}

static graft_status prims_fmax(const graft_exec *exec, const graft_args_prims_fmax *args) {
  (void)exec;
  count_call(KINDS_FMAX);
  for (int64_t i = 0, n = elements(args->out); i < n; i++)
    f32(args->out)[i] = fmaxf(f32(args->self)[i], f32(args->other)[i]);
  return GRAFT_OK;
}

static int serves_arange(const graft_args_arange_start_step *args) {
  return args->out->dl.dtype == GRAFT_F32;
}

static graft_status arange_start_step(const graft_exec *exec, const graft_args_arange_start_step *args) {
  (void)exec;
  if (!serves_arange(args)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_ARANGE);
  double start = number(args->start), step = number(args->step);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) f32(args->out)[i] = (float)(start + (double)i * step);
  return GRAFT_OK;
}

/* --- matrices: a memo and workspace --- */

typedef struct mm_sizes {
  int64_t rows, inner, columns;
} mm_sizes;

static void destroy_sizes(void *memo) {
  seen.memos_destroyed++;
  free(memo);
}

/* The sizes as this plugin prepared them for such calls; NULL without memory. What is not kept is not ours any more. */
static const mm_sizes *sizes_of(const graft_exec *exec, const graft_args_mm *args, mm_sizes *own) {
  const graft_host *host = exec->device->self->host;
  *own = (mm_sizes){args->self->dl.shape[0], args->self->dl.shape[1], args->mat2->dl.shape[1]};
  if (exec->memo) {
    seen.memos_found++;
    return exec->memo;
  }
  mm_sizes *made = malloc(sizeof *made);
  void *winner = NULL;
  if (!made) return NULL;
  *made = *own;
  if (host->memo_publish(exec, made, destroy_sizes, &winner)) {
    free(made);
    return own;
  }
  seen.memos_made += winner == made;
  return winner;
}

/* The second matrix is transposed in workspace first. */
static graft_status mm_by_columns(const graft_exec *exec, const graft_args_mm *args) {
  const graft_host *host = exec->device->self->host;
  mm_sizes own;
  const mm_sizes *sizes = sizes_of(exec, args, &own);
  if (!sizes) return fail(exec->device->self, GRAFT_OUT_OF_MEMORY, "frozen: no memory for a memo");
  int64_t rows = sizes->rows, inner = sizes->inner, columns = sizes->columns;
  graft_buffer *buffer;
  uint64_t offset;
  graft_status status = host->workspace(exec, (uint64_t)(inner * columns) * sizeof(float), 0, &buffer, &offset);
  if (status) return status;
  count_call(KINDS_MM);
  seen.workspaces++;
  float *turned = (float *)(void *)(buffer->data + offset);
  for (int64_t l = 0; l < inner; l++) {
    for (int64_t j = 0; j < columns; j++) turned[j * inner + l] = f32(args->mat2)[l * columns + j];
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      float sum = 0;
      for (int64_t l = 0; l < inner; l++) sum += f32(args->self)[i * inner + l] * turned[j * inner + l];
      f32(args->out)[i * columns + j] = sum;
    }
  }
  return GRAFT_OK;
}

/* --- lists --- */

enum { MOST_DIMS = 16 };

static graft_status sum_dim_IntList(const graft_exec *exec, const graft_args_sum_dim_IntList *args) {
  const graft_tensor_desc *self = args->self;
  int is_summed[MOST_DIMS] = {0};
  int64_t step[MOST_DIMS] = {0}, n = elements(self), kept = elements(args->out);
  double *sums = self->dl.ndim <= MOST_DIMS ? calloc((size_t)kept, sizeof *sums) : NULL;
  (void)exec;
  if (!sums) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_SUM);
  count_absent(args->dim.items);
  seen.absent_arguments += !args->dtype;
  for (int32_t d = 0; d < self->dl.ndim; d++) is_summed[d] = args->dim.count == 0;
  for (uint64_t i = 0; i < args->dim.count; i++) is_summed[args->dim.items[i]] = 1;
  for (int32_t d = self->dl.ndim - 1; d >= 0; d--) {
    if (is_summed[d]) continue;
    step[d] = 1;
    for (int32_t later = d + 1; later < self->dl.ndim; later++) step[d] *= is_summed[later] ? 1 : self->dl.shape[later];
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = 0, rest = i;
    for (int32_t d = self->dl.ndim - 1; d >= 0; d--) {
      at += rest % self->dl.shape[d] * step[d];
      rest /= self->dl.shape[d];
    }
    sums[at] += f32(self)[i];
  }
  for (int64_t i = 0; i < kept; i++) f32(args->out)[i] = (float)sums[i];
  free(sums);
  return GRAFT_OK;
}

static int64_t product(const graft_tensor_desc *t, int32_t from, int32_t to) {
  int64_t n = 1;
  for (int32_t d = from; d < to; d++) n *= t->dl.shape[d];
  return n;
}

static graft_status cat(const graft_exec *exec, const graft_args_cat *args) {
  const graft_tensor_desc *out = args->out;
  int32_t dim = (int32_t)args->dim, ndim = out->dl.ndim;
  int64_t outer = product(out, 0, dim), row = product(out, dim, ndim), start = 0;
  (void)exec;
  count_call(KINDS_CAT);
  for (uint64_t i = 0; i < args->tensors.count; i++) {
    const graft_tensor_desc *item = args->tensors.items[i];
    if (elements(item) == 0) continue;
    int64_t part = product(item, dim, ndim);
    for (int64_t j = 0; j < outer; j++)
      memcpy(f32(out) + j * row + start, f32(item) + j * part, (size_t)part * sizeof(float));
    start += part;
  }
  return GRAFT_OK;
}

static int64_t index_at(const graft_tensor_desc *index, int64_t i) {
  const void *data = bytes_of(index);
  return index->dl.dtype == GRAFT_I32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

/* One index among dims that are taken whole. */
static int serves_index(const graft_args_index_Tensor *args) {
  int found = 0;
  for (uint64_t i = 0; i < args->indices.count; i++) {
    const graft_tensor_desc *index = args->indices.items[i];
    if (index && index->dl.dtype != GRAFT_I64 && index->dl.dtype != GRAFT_I32) return 0;
    found += index != NULL;
  }
  return found == 1 && args->self->dl.dtype == GRAFT_F32;
}

static graft_status index_Tensor(const graft_exec *exec, const graft_args_index_Tensor *args) {
  const graft_tensor_desc *self = args->self, *index = NULL;
  int32_t dim = 0;
  if (!serves_index(args)) return GRAFT_UNIMPLEMENTED;
  while (!(index = args->indices.items[dim])) dim++;
  int64_t outer = product(self, 0, dim), size = self->dl.shape[dim], inner = product(self, dim + 1, self->dl.ndim);
  int64_t chosen = elements(index);
  for (int64_t i = 0; i < chosen; i++) {
    int64_t at = index_at(index, i);
    if (at >= -size && at < size) continue;
    seen.index_errors++;
    return fail(exec->device->self, BAD_INDEX, "frozen: an index beyond its dim");
  }
  count_call(KINDS_INDEX);
  seen.absent_items += args->indices.count - 1;
  seen.narrow_indices += index->dl.dtype == GRAFT_I32;
  for (int64_t o = 0; o < outer; o++) {
    for (int64_t i = 0; i < chosen; i++) {
      int64_t at = index_at(index, i);
      memcpy(f32(args->out) + (o * chosen + i) * inner, f32(self) + (o * size + (at < 0 ? at + size : at)) * inner,
             (size_t)inner * sizeof(float));
    }
  }
  return GRAFT_OK;
}

static int are_f32(const graft_tensor_list *list) {
  for (uint64_t i = 0; i < list->count; i++) {
    if (list->items[i]->dl.dtype != GRAFT_F32) return 0;
  }
  return 1;
}

static graft_status foreach_add_ScalarList(const graft_exec *exec, const graft_args_foreach_add_ScalarList *args) {
  (void)exec;
  if (!are_f32(&args->self)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_FOREACH_ADD);
  for (uint64_t i = 0; i < args->self.count; i++) {
    const graft_tensor_desc *in = args->self.items[i], *out = args->out.items[i];
    float added = (float)number(&args->scalars.items[i]);
    seen.in_place += (unsigned)is_output_of(out, in);
    for (int64_t j = 0, n = elements(in); j < n; j++) f32(out)[j] = f32(in)[j] + added;
  }
  return GRAFT_OK;
}

static int serves_sgd(const graft_args_fused_sgd *args) {
  return !args->grad_scale && !args->found_inf && are_f32(&args->self);
}

static graft_status fused_sgd(const graft_exec *exec, const graft_args_fused_sgd *args) {
  (void)exec;
  if (!serves_sgd(args)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_SGD);
  count_absent(args->grad_scale);
  float lr = (float)args->lr, momentum = (float)args->momentum, rest = (float)(1 - args->dampening);
  int has_buffers = args->momentum_buffer_list.count > 0;
  for (uint64_t i = 0; i < args->self.count; i++) {
    const float *x = f32(args->self.items[i]), *grads = f32(args->grads.items[i]);
    for (int64_t j = 0, n = elements(args->self.items[i]); j < n; j++) {
      float written = grads[j], g = args->maximize ? -written : written;
      g += (float)args->weight_decay * x[j];
      if (has_buffers && momentum != 0) {
        float buffer = f32(args->momentum_buffer_list.items[i])[j];
        buffer = args->is_first_step ? g : momentum * buffer + rest * g;
        f32(args->momentum_buffer_list_out.items[i])[j] = buffer;
        g = args->nesterov ? g + momentum * buffer : buffer;
      } else if (has_buffers) {
        f32(args->momentum_buffer_list_out.items[i])[j] = f32(args->momentum_buffer_list.items[i])[j];
      }
      f32(args->grads_out.items[i])[j] = written;
      f32(args->self_out.items[i])[j] = x[j] - lr * g;
    }
  }
  return GRAFT_OK;
}

static graft_status prims_as_strided_scatter(const graft_exec *exec, const graft_args_prims_as_strided_scatter *args) {
  (void)exec;
  count_call(KINDS_AS_STRIDED_SCATTER);
  memcpy(bytes_of(args->out), bytes_of(args->self), (size_t)elements(args->self) * sizeof(float));
  for (int64_t i = 0, n = elements(args->src); i < n; i++) {
    int64_t at = args->storage_offset, rest = i;
    for (uint64_t d = args->size.count; d-- > 0; rest /= args->size.items[d])
      at += rest % args->size.items[d] * args->stride.items[d];
    f32(args->out)[at] = f32(args->src)[i];
  }
  return GRAFT_OK;
}

/* --- what is found --- */

static int serves_nonzero(const graft_args_nonzero *args) { return args->self->dl.dtype == GRAFT_F32; }

static graft_status nonzero(const graft_exec *exec, const graft_args_nonzero *args) {
  const graft_host *host = exec->device->self->host;
  const graft_tensor_desc *self = args->self, *out;
  if (!serves_nonzero(args)) return GRAFT_UNIMPLEMENTED;
  int64_t n = elements(self), found = 0, ndim = self->dl.ndim;
  for (int64_t i = 0; i < n; i++) found += f32(self)[i] != 0;
  graft_status status = host->output_shape(exec, args->out, 2, (int64_t[]){found, ndim}, &out);
  if (status) return status;
  count_call(KINDS_NONZERO);
  seen.outputs_found++;
  if (found * ndim == 0) return GRAFT_OK; /* no memory then */
  int64_t *row = (int64_t *)(void *)bytes_of(out);
  for (int64_t i = 0; i < n; i++) {
    if (f32(self)[i] == 0) continue;
    int64_t rest = i;
    for (int64_t d = ndim - 1; d >= 0; d--) {
      row[d] = rest % self->dl.shape[d];
      rest /= self->dl.shape[d];
    }
    row += ndim;
  }
  return GRAFT_OK;
}

/* NaN is the largest; of equals the first counts. */
static graft_status argmax(const graft_exec *exec, const graft_args_argmax *args) {
  const graft_tensor_desc *self = args->self;
  int32_t ndim = self->dl.ndim, dim = args->dim ? (int32_t)*args->dim : 0;
  int64_t outer = args->dim ? product(self, 0, dim) : 1, inner = args->dim && ndim ? product(self, dim + 1, ndim) : 1;
  int64_t n = elements(self) / (outer * inner);
  (void)exec;
  count_call(KINDS_ARGMAX);
  count_absent(args->dim);
  for (int64_t o = 0; o < outer * inner; o++) {
    const float *x = f32(self) + o / inner * n * inner + o % inner;
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
      float most = x[best * inner], value = x[i * inner];
      if (most == most && (value > most || value != value)) best = i;
    }
    ((int64_t *)(void *)bytes_of(args->out))[o] = best;
  }
  return GRAFT_OK;
}

static graft_status equal(const graft_exec *exec, const graft_args_equal *args) {
  (void)exec;
  count_call(KINDS_EQUAL);
  uint8_t all = 1;
  for (int64_t i = 0, n = elements(args->self); i < n; i++) all &= f32(args->self)[i] == f32(args->other)[i];
  *args->out = all;
  return GRAFT_OK;
}

/* --- random numbers --- */

/* Word i of the stream: Philox 4x32-10. */
static uint32_t random_word(const graft_philox *stream, uint64_t i) {
  uint64_t block = stream->offset / 4 + i / 4;
  uint32_t key[2] = {(uint32_t)stream->seed, (uint32_t)(stream->seed >> 32)};
  uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
  for (int round = 0; round < 10; round++) {
    uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ key[1],
                        (uint32_t)a};
    memcpy(c, next, sizeof c);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c[i % 4];
}

static float uniform(const graft_philox *stream, int64_t i) {
  return (float)(random_word(stream, (uint64_t)i) >> 8) * 0x1p-24f;
}

static int serves_dropout(const graft_args_native_dropout *args) {
  return (!args->train || *args->train) && !args->philox->state;
}

static graft_status native_dropout(const graft_exec *exec, const graft_args_native_dropout *args) {
  (void)exec;
  if (!serves_dropout(args)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_DROPOUT);
  count_absent(args->train);
  double keep = 1 - args->p;
  float scale = keep > 0 ? (float)(1 / keep) : 0;
  for (int64_t i = 0, n = elements(args->input); i < n; i++) {
    uint8_t kept = uniform(args->philox, i) < keep;
    f32(args->out0)[i] = f32(args->input)[i] * (kept ? scale : 0);
    ((uint8_t *)bytes_of(args->out1))[i] = kept;
  }
  return GRAFT_OK;
}

static int serves_rrelu(const graft_args_rrelu_with_noise *args) {
  return args->training && !args->philox->state;
}

static graft_status rrelu_with_noise(const graft_exec *exec, const graft_args_rrelu_with_noise *args) {
  (void)exec;
  if (!serves_rrelu(args)) return GRAFT_UNIMPLEMENTED;
  count_call(KINDS_RRELU);
  float low = (float)number(args->lower), range = (float)number(args->upper) - low;
  for (int64_t i = 0, n = elements(args->self); i < n; i++) {
    float x = f32(args->self)[i], slope = x <= 0 ? fmaf(uniform(args->philox, i), range, low) : 1;
    f32(args->noise)[i] = slope;
    f32(args->out)[i] = x * slope;
  }
  return GRAFT_OK;
}

/* --- outputs that may not be wanted --- */

static void layer_norm_row(const graft_args_native_layer_norm_backward *args, int64_t row, int64_t n, double *sums) {
  const float *g = f32(args->grad_out) + row * n, *x = f32(args->input) + row * n;
  double mean = f32(args->mean)[row], rstd = f32(args->rstd)[row], sum = 0, along = 0;
  for (int64_t i = 0; i < n; i++) {
    double gw = g[i] * (args->weight ? (double)f32(args->weight)[i] : 1), normal = (x[i] - mean) * rstd;
    sum += gw;
    along += gw * normal;
    sums[i] += g[i] * normal;
    sums[n + i] += g[i];
  }
  for (int64_t i = 0; args->out0 && i < n; i++) {
    double gw = g[i] * (args->weight ? (double)f32(args->weight)[i] : 1), normal = (x[i] - mean) * rstd;
    f32(args->out0)[row * n + i] = (float)(rstd * (gw - sum / (double)n - normal * along / (double)n));
  }
}

static graft_status native_layer_norm_backward(const graft_exec *exec,
                                               const graft_args_native_layer_norm_backward *args) {
  int64_t n = 1;
  for (uint64_t d = 0; d < args->normalized_shape.count; d++) n *= args->normalized_shape.items[d];
  double *sums = calloc((size_t)(2 * n), sizeof *sums);
  if (!sums) return fail(exec->device->self, GRAFT_OUT_OF_MEMORY, "frozen: no memory for sums");
  count_call(KINDS_LAYER_NORM_BACKWARD);
  count_absent(args->weight);
  seen.unwanted_outputs += (unsigned)!args->out0 + (unsigned)!args->out1 + (unsigned)!args->out2;
  for (int64_t row = 0, rows = elements(args->input) / n; row < rows; row++) layer_norm_row(args, row, n, sums);
  for (int64_t i = 0; i < n; i++) {
    if (args->out1) f32(args->out1)[i] = (float)sums[i];
    if (args->out2) f32(args->out2)[i] = (float)sums[n + i];
  }
  free(sums);
  return GRAFT_OK;
}

static const graft_core_ops core_slots = {
    .struct_size = sizeof core_slots,
    .add_Tensor = counted_add,
    .arange_start_step = arange_start_step,
    .argmax = argmax,
    .cat = cat,
    .clamp = clamp,
    .gelu = gelu,
    .index_Tensor = index_Tensor,
    .mm = mm_by_columns,
    .mul_Tensor = mul_Tensor,
    .native_dropout = native_dropout,
    .native_layer_norm_backward = native_layer_norm_backward,
    .nonzero = nonzero,
    .relu = counted_relu,
    .sum_dim_IntList = sum_dim_IntList,
};

static const graft_train_ops train_slots = {
    .struct_size = sizeof train_slots,
    .equal = equal,
    .foreach_add_ScalarList = foreach_add_ScalarList,
    .fused_sgd = fused_sgd,
    .rrelu_with_noise = rrelu_with_noise,
};

static const graft_prims_ops prims_slots = {
    .struct_size = sizeof prims_slots,
    .as_strided_scatter = prims_as_strided_scatter,
    .fmax = prims_fmax,
    .sin = prims_sin,
};

#endif
