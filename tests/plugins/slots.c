/* The asynchronous plugin with slots that do what is rare: say at the call that they don't serve it, fail after an
 * output was made, publish two memos, read all of a list before they write it. Streams and events that are destroyed
 * are kept, so that a use of them is seen. */
#define ASYNC_IS_PART
#include "slots.h"

#include "async.c"

static slots_counters counters;

/* --- streams and events --- */

enum { DEAD = 1 << 30, FAILED = 1 << 29, GRAVES = 4096 };
static graft_stream *graves[GRAVES];
static atomic_int grave_count;

static graft_status destroy_and_keep(graft_stream *stream) {
  st_synchronize(stream);
  stream->flags |= DEAD;
  usleep(100); /* time for a late use */
  pthread_mutex_lock(&stream->lock);
  stream->ends = 1;
  pthread_cond_broadcast(&stream->changed);
  pthread_mutex_unlock(&stream->lock);
  pthread_join(stream->thread, NULL);
  int at = atomic_fetch_add(&grave_count, 1);
  if (at < GRAVES) graves[at] = stream;
  return GRAFT_OK;
}

static graft_status record_on_live(graft_event *event, graft_stream *stream) {
  if (stream->flags & DEAD) {
    counters.late_records++;
    return GRAFT_OK;
  }
  if (counters.failing) event->flags |= FAILED;
  return ev_record(event, stream);
}

static graft_status query_health(graft_event *event) {
  return event->flags & FAILED ? GRAFT_STREAM_FAILED : ev_query(event);
}

/* --- ops --- */

static graft_status refuse_mm(const graft_exec *exec, const graft_args_mm *args) {
  (void)exec, (void)args;
  usleep(100); /* so that other threads come by meanwhile */
  return GRAFT_UNIMPLEMENTED;
}

static graft_status fail_nonzero(const graft_exec *exec, const graft_args_nonzero *args) {
  const graft_host *host = exec->device->self->host;
  const graft_tensor_desc *out;
  graft_status status = host->output_shape(exec, args->out, 2, (int64_t[]){1, args->self->dl.ndim}, &out);
  return status ? status : GRAFT_INTERNAL;
}

static _Thread_local int in_slot;

static void destroy_memo(void *memo) {
  counters.memos++;
  if (in_slot) counters.early_memos++;
  free(memo);
}

static graft_status neg_with_memos(const graft_exec *exec, const graft_args_neg *args) {
  const graft_host *host = exec->device->self->host;
  void *first = malloc(8), *second = malloc(8), *kept;
  in_slot = 1;
  if (exec->memo || host->memo_publish(exec, first, destroy_memo, &kept)) free(first);
  if (exec->memo || host->memo_publish(exec, second, destroy_memo, &kept)) free(second);
  graft_status status = exec->memo || kept == first ? neg(exec, args) : GRAFT_INTERNAL;
  in_slot = 0;
  return status;
}

static uint64_t element_count(const graft_tensor_desc *t) {
  uint64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; i++) n *= (uint64_t)t->dl.shape[i];
  return n;
}

/* As a kernel over all items at once would: nothing that it writes is read. */
static graft_status add_to_all(const graft_exec *exec, const graft_args_foreach_add_Scalar *args) {
  double number = args->scalar->dtype == GRAFT_F64 ? args->scalar->value.f : (double)args->scalar->value.i;
  float *read[8];
  counters.list_calls++;
  if (args->self.count > 8) return GRAFT_UNIMPLEMENTED;
  st_synchronize(exec->stream);
  for (uint64_t i = 0; i < args->self.count; i++) {
    uint64_t n = element_count(args->self.items[i]);
    read[i] = malloc(n * sizeof **read);
    memcpy(read[i], first_byte(args->self.items[i]), n * sizeof **read);
    for (uint64_t j = 0; j < n; j++) read[i][j] += (float)number;
  }
  for (uint64_t i = 0; i < args->self.count; i++) {
    memcpy(first_byte(args->out.items[i]), read[i], element_count(args->out.items[i]) * sizeof **read);
    free(read[i]);
  }
  return GRAFT_OK;
}

static const char *number_at(const graft_tensor_desc *t) {
  return t->flags & GRAFT_TENSOR_HOST_VALUE ? (const char *)t->dl.data : first_byte(t);
}

/* Tensors of complex numbers times one number. */
static graft_status mul_by_number(const graft_exec *exec, const graft_args_mul_Tensor *args) {
  if (args->self->dl.dtype != GRAFT_C64 || args->other->dl.ndim || args->other->dl.dtype != GRAFT_C64)
    return GRAFT_UNIMPLEMENTED;
  st_synchronize(exec->stream);
  const float *x = (const float *)(const void *)first_byte(args->self);
  const float *by = (const float *)(const void *)number_at(args->other);
  float *out = (float *)(void *)first_byte(args->out);
  for (uint64_t i = 0; i < 2 * element_count(args->out); i += 2) {
    float re = x[i] * by[0] - x[i + 1] * by[1], im = x[i] * by[1] + x[i + 1] * by[0];
    out[i] = re;
    out[i + 1] = im;
  }
  return GRAFT_OK;
}

/* Ops with a mask or indices beside values, or in their place; their capabilities list f32 alone. */
static graft_status eq_of_f32(const graft_exec *exec, const graft_args_eq_Tensor *args) {
  counters.beside_calls++;
  st_synchronize(exec->stream);
  const float *a = (const float *)(const void *)first_byte(args->self);
  const float *b = (const float *)(const void *)first_byte(args->other);
  for (uint64_t i = 0; i < element_count(args->out); i++) first_byte(args->out)[i] = a[i] == b[i];
  return GRAFT_OK;
}

static graft_status max_of_f32(const graft_exec *exec, const graft_args_max_dim *args) {
  counters.beside_calls++;
  st_synchronize(exec->stream);
  const float *x = (const float *)(const void *)first_byte(args->self);
  float *values = (float *)(void *)first_byte(args->values);
  int64_t *indices = (int64_t *)(void *)first_byte(args->indices), length = args->self->dl.shape[args->dim];
  for (int64_t i = 0; i < (int64_t)element_count(args->values); i++, x += length) {
    indices[i] = 0;
    for (int64_t k = 1; k < length; k++)
      if (x[k] > x[indices[i]]) indices[i] = k;
    values[i] = x[indices[i]];
  }
  return GRAFT_OK;
}

static graft_status keep_all(const graft_exec *exec, const graft_args_native_dropout *args) {
  counters.beside_calls++;
  st_synchronize(exec->stream);
  memcpy(first_byte(args->out0), first_byte(args->input), element_count(args->input) * sizeof(float));
  memset(first_byte(args->out1), 1, element_count(args->input));
  return GRAFT_OK;
}

static int puts_out_beside(uint32_t op_id) {
  return op_id == GRAFT_OP_EQ_TENSOR || op_id == GRAFT_OP_MAX_DIM || op_id == GRAFT_OP_NATIVE_DROPOUT;
}

/* Lines of a matrix, and elements of what the indices name together, read unchecked; these slots ask the host to check,
 * but for that of take. */
static const int64_t *indices_at(const graft_tensor_desc *t) {
  return (const int64_t *)(const void *)first_byte(t);
}

static graft_status pick_lines(const graft_exec *exec, const graft_args_index_select *args) {
  counters.index_calls++;
  st_synchronize(exec->stream);
  uint64_t bytes = (uint64_t)args->self->dl.shape[1] * sizeof(float);
  if (args->dim) return GRAFT_UNIMPLEMENTED;
  for (uint64_t i = 0; i < element_count(args->index); i++)
    memcpy(first_byte(args->out) + i * bytes, first_byte(args->self) + (uint64_t)indices_at(args->index)[i] * bytes,
           bytes);
  return GRAFT_OK;
}

static graft_status pick_elements(const graft_exec *exec, const graft_args_index_Tensor *args) {
  const graft_tensor_desc *rows = args->indices.items[0], *columns = args->indices.items[1];
  int64_t height = args->self->dl.shape[0], width = args->self->dl.shape[1];
  counters.index_calls++;
  st_synchronize(exec->stream);
  for (uint64_t i = 0; i < element_count(rows); i++) {
    int64_t row = indices_at(rows)[i], column = indices_at(columns)[i];
    int64_t from = (row < 0 ? row + height : row) * width + (column < 0 ? column + width : column);
    memcpy(first_byte(args->out) + i * sizeof(float), first_byte(args->self) + from * (int64_t)sizeof(float),
           sizeof(float));
  }
  return GRAFT_OK;
}

static graft_status take_nothing(const graft_exec *exec, const graft_args_take *args) {
  (void)exec, (void)args;
  counters.index_calls++;
  return GRAFT_OUT_OF_RANGE;
}

static double number_of(const graft_scalar *number) {
  return number->dtype == GRAFT_F64 ? number->value.f : (double)number->value.i;
}

static void lerp_memo_goes(void *memo) {
  counters.lerp_memos_gone++;
  free(memo);
}

static void addcmul_memo_goes(void *memo) {
  counters.addcmul_memos_gone++;
  free(memo);
}

/* The memo that this call finds, or leaves: a copy of its number. */
static graft_status take_memo(const graft_exec *exec, double number, atomic_int *made, void (*destroy)(void *),
                              double **memo) {
  void *kept = exec->memo;
  if (!kept) {
    double *mine = malloc(sizeof *mine);
    *mine = number;
    (*made)++;
    graft_status status = exec->device->self->host->memo_publish(exec, mine, destroy, &kept);
    if (status) return status;
  }
  *memo = kept;
  return GRAFT_OK;
}

static graft_status lerp_by_number(const graft_exec *exec, const graft_args_lerp_Scalar *args) {
  double weight = number_of(args->weight), *memo;
  graft_status status = take_memo(exec, weight, &counters.lerp_memos, lerp_memo_goes, &memo);
  if (status) return status;
  st_synchronize(exec->stream);
  const float *self = (const float *)(const void *)first_byte(args->self);
  const float *end = (const float *)(const void *)first_byte(args->end);
  float *out = (float *)(void *)first_byte(args->out);
  for (uint64_t i = 0; i < element_count(args->out); i++) out[i] = self[i] + (float)weight * (end[i] - self[i]);
  return GRAFT_OK;
}

static graft_status addcmul_by_memo(const graft_exec *exec, const graft_args_addcmul *args) {
  double *memo;
  graft_status status = take_memo(exec, number_of(args->value), &counters.addcmul_memos, addcmul_memo_goes, &memo);
  if (status) return status;
  if (*memo != number_of(args->value)) counters.wrong_memos++;
  st_synchronize(exec->stream);
  const float *self = (const float *)(const void *)first_byte(args->self);
  const float *a = (const float *)(const void *)first_byte(args->tensor1);
  const float *b = (const float *)(const void *)first_byte(args->tensor2);
  float *out = (float *)(void *)first_byte(args->out);
  for (uint64_t i = 0; i < element_count(args->out); i++) out[i] = self[i] + (float)*memo * a[i] * b[i];
  return GRAFT_OK;
}

/* Never asked: tests bring it tensors without elements. */
static graft_status convolution_backward(const graft_exec *exec, const graft_args_convolution_backward *args) {
  (void)exec, (void)args;
  return GRAFT_INTERNAL;
}

static uint32_t host_minor;

static graft_status slots_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  (void)device;
  graft_op_caps known = {.struct_size = caps->struct_size, .flags = GRAFT_CAP_IN_PLACE | GRAFT_CAP_UNALIGNED};
  int unchecked = op_id == GRAFT_OP_INDEX_SELECT || op_id == GRAFT_OP_INDEX_TENSOR;
  if (unchecked && host_minor >= 2) known.flags |= GRAFT_CAP_HOST_CHECKS_INDICES;
  if (op_id == GRAFT_OP_MUL_TENSOR) known.flags |= GRAFT_CAP_HOST_VALUE;
  if (puts_out_beside(op_id)) known.input_dtypes = known.output_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  if (op_id == GRAFT_OP_LERP_SCALAR) known.flags |= GRAFT_CAP_MEMO_IGNORES_SCALARS;
  memcpy(caps, &known, caps->struct_size < sizeof known ? caps->struct_size : sizeof known);
  return GRAFT_OK;
}

/* --- the plugin --- */

static graft_status slots_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self, (void)minimum;
  if (strcmp(name, SLOTS_EXTENSION) != 0) return GRAFT_UNIMPLEMENTED;
  *table = &counters;
  return GRAFT_OK;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  static graft_train_ops train = {.struct_size = sizeof train,
                                  .foreach_add_Scalar = add_to_all,
                                  .lerp_Scalar = lerp_by_number,
                                  .addcmul = addcmul_by_memo,
                                  .take = take_nothing};
  async_instance *self;
  graft_status status = refuse_options(host, options);
  if (!status) status = async_open(host, "slots", &self);
  if (status) return status;
  host_minor = host->abi_minor;
  self->stream.destroy = destroy_and_keep;
  self->stream.event_record = record_on_live;
  self->stream.event_query = query_health;
  self->core.neg = neg_with_memos;
  self->core.mm = refuse_mm;
  self->core.nonzero = fail_nonzero;
  self->core.eq_Tensor = eq_of_f32;
  self->core.max_dim = max_of_f32;
  self->core.index_select = pick_lines;
  self->core.index_Tensor = pick_elements;
  self->core.native_dropout = keep_all;
  self->core.mul_Tensor = mul_by_number;
  self->core.convolution_backward = convolution_backward;
  self->plugin.train = &train;
  self->plugin.op_caps = slots_caps;
  self->plugin.op_query = NULL;
  self->plugin.extension = slots_extension;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
