/* @NAME@: a Graft backend.
 *
 * It works as it stands, on host memory, and serves three ops, and one of its own. Make it yours from top to bottom:
 * put your driver's calls behind memory, streams and events, then add kernels op by op. What a function must do stands
 * in its header in graft/abi; whatever you leave out, the host does by other means. */
#include <graft/abi/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- objects ---
 * The ABI's handles are yours to define. What belongs to the plugin belongs to its instance: a process may open it
 * several times. */

typedef struct instance {
  graft_plugin table;     /* what the host holds */
  const graft_host *host; /* for logs and error texts */
} instance;

struct graft_device {
  instance *self;
};

struct graft_buffer {
  char *data;
};

struct graft_stream {
  int unused; /* your queue */
};

struct graft_event {
  int unused; /* your fence */
};

static graft_status fail(const instance *self, graft_status status, const char *text) {
  self->host->set_error(self->host->context, text);
  return status;
}

/* Flags in the low half must be understood: a call with one that we do not know is refused. */
static int has_unknown(uint32_t flags, uint32_t known) {
  return (flags & 0xffff & ~known) != 0;
}

/* --- memory ---
 * The host keeps a cache above this: it asks for large blocks, seldom. */

static graft_status allocate(graft_device *device, graft_allocation *request) {
  if (request->kind != GRAFT_MEMORY_DEVICE) return GRAFT_UNIMPLEMENTED;
  if (has_unknown(request->flags, 0)) return GRAFT_INVALID_ARGUMENT;
  uint64_t alignment = request->alignment > 64 ? request->alignment : 64;
  graft_buffer *buffer = malloc(sizeof *buffer);
  if (!buffer) return fail(device->self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for a buffer");
  buffer->data = aligned_alloc(alignment, (request->bytes + alignment - 1) / alignment * alignment);
  if (!buffer->data) {
    free(buffer);
    return fail(device->self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for a buffer");
  }
  request->buffer = buffer;
  return GRAFT_OK;
}

static graft_status release(graft_device *device, graft_buffer *buffer) {
  (void)device;
  free(buffer->data);
  free(buffer);
  return GRAFT_OK;
}

static graft_status copy_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                   uint64_t bytes, graft_copy_flags flags) {
  (void)stream;
  if (has_unknown(flags, GRAFT_COPY_SOURCE_REUSABLE)) return GRAFT_INVALID_ARGUMENT;
  memcpy(to->data + offset, from, bytes);
  return GRAFT_OK;
}

static graft_status copy_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                                 graft_copy_flags flags) {
  (void)stream;
  if (has_unknown(flags, 0)) return GRAFT_INVALID_ARGUMENT;
  memcpy(to, from->data + offset, bytes);
  return GRAFT_OK;
}

static graft_status copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                         uint64_t from_offset, uint64_t bytes) {
  (void)stream;
  memcpy(to->data + to_offset, from->data + from_offset, bytes);
  return GRAFT_OK;
}

static graft_status fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                         uint32_t pattern_bytes) {
  (void)stream;
  char *at = to->data + offset;
  if (bytes) memcpy(at, pattern, pattern_bytes);
  for (uint64_t done = pattern_bytes; done < bytes; done *= 2)
    memcpy(at + done, at, done < bytes - done ? done : bytes - done);
  return GRAFT_OK;
}

static const graft_memory_api memory = {
    .struct_size = sizeof memory,
    .allocate = allocate,
    .release = release,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy = copy,
    .fill = fill,
};

/* --- streams and events ---
 * Work here is done when it is submitted, so everything submitted is always done. Nothing is timed: neither takes the
 * flag TIMING, and there is no event_elapsed (stream.h). */

static graft_status stream_create(graft_device *device, int32_t priority, graft_stream_flags flags,
                                  graft_stream **stream) {
  (void)priority;
  if (has_unknown(flags, 0)) return GRAFT_INVALID_ARGUMENT;
  graft_stream *made = calloc(1, sizeof *made);
  if (!made) return fail(device->self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for a stream");
  *stream = made;
  return GRAFT_OK;
}

static graft_status stream_destroy(graft_stream *stream) {
  free(stream);
  return GRAFT_OK;
}

static graft_status stream_done(graft_stream *stream) {
  (void)stream;
  return GRAFT_OK;
}

static graft_status event_create(graft_device *device, graft_event_flags flags, graft_event **event) {
  if (has_unknown(flags, 0)) return GRAFT_INVALID_ARGUMENT;
  graft_event *made = calloc(1, sizeof *made);
  if (!made) return fail(device->self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for an event");
  *event = made;
  return GRAFT_OK;
}

static graft_status event_destroy(graft_event *event) {
  free(event);
  return GRAFT_OK;
}

static graft_status event_record(graft_event *event, graft_stream *stream) {
  (void)event, (void)stream;
  return GRAFT_OK;
}

static graft_status stream_wait(graft_stream *stream, graft_event *event) {
  (void)stream, (void)event;
  return GRAFT_OK;
}

static graft_status event_done(graft_event *event) {
  (void)event;
  return GRAFT_OK;
}

static graft_status failure(graft_device *device, graft_stream *stream, char *text, size_t capacity, size_t *length,
                            graft_failure_scope *scope) {
  (void)device, (void)stream;
  if (capacity) text[0] = 0;
  *length = 0;
  *scope = GRAFT_FAILURE_NONE;
  return GRAFT_OK;
}

static const graft_stream_api streams = {
    .struct_size = sizeof streams,
    .create = stream_create,
    .destroy = stream_destroy,
    .query = stream_done,
    .synchronize = stream_done,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_query = event_done,
    .event_synchronize = event_done,
    .failure = failure,
};

/* --- ops ---
 * The host has promoted, broadcast, checked and allocated. With capabilities left at zero, tensors come contiguous,
 * aligned, non-empty and of one dtype. A case that you do not serve is GRAFT_UNIMPLEMENTED, before any side effect. */

static float *f32(const graft_tensor_desc *t) {
  return (float *)(void *)(t->dl.data->data + t->dl.byte_offset);
}

static int64_t elements(const graft_tensor_desc *t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->dl.ndim; i++) n *= t->dl.shape[i];
  return n;
}

static graft_status add_Tensor(const graft_exec *exec, const graft_args_add_Tensor *args) {
  (void)exec;
  double alpha = args->alpha->dtype == GRAFT_F64 ? args->alpha->value.f : (double)args->alpha->value.i;
  const float *a = f32(args->self), *b = f32(args->other), factor = (float)alpha;
  float *out = f32(args->out);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) out[i] = a[i] + factor * b[i];
  return GRAFT_OK;
}

static graft_status relu(const graft_exec *exec, const graft_args_relu *args) {
  (void)exec;
  const float *a = f32(args->self);
  float *out = f32(args->out);
  for (int64_t i = 0, n = elements(args->out); i < n; i++) out[i] = a[i] <= 0 ? 0 : a[i]; /* NaN stays NaN */
  return GRAFT_OK;
}

static graft_status mm(const graft_exec *exec, const graft_args_mm *args) {
  (void)exec;
  const float *a = f32(args->self), *b = f32(args->mat2);
  float *out = f32(args->out);
  int64_t n = args->self->dl.shape[0], k = args->self->dl.shape[1], m = args->mat2->dl.shape[1];
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < m; j++) {
      float sum = 0;
      for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * b[l * m + j];
      out[i * m + j] = sum;
    }
  }
  return GRAFT_OK;
}

static const graft_core_ops core = {
    .struct_size = sizeof core,
    .add_Tensor = add_Tensor,
    .mm = mm,
    .relu = relu,
};

/* --- an op of your own ---
 * What is in no table of Graft's: @NAME@::scale_add, x + alpha y, and its gradient. Extension "graft.custom_ops"
 * (graft/abi/extension.h) says how schema and args struct go together; remove it all if you need none. */

#define OP_SCALE_ADD          (GRAFT_OP_VENDOR_IDS + 1)
#define OP_SCALE_ADD_BACKWARD (GRAFT_OP_VENDOR_IDS + 2)

typedef struct args_scale_add {
  graft_args head;
  const graft_tensor_desc *x, *y;
  double alpha;
  const graft_tensor_desc *out;
} args_scale_add;

/* A cotangent for each result, then the arguments; a gradient for each tensor among them. */
typedef struct args_scale_add_backward {
  graft_args head;
  const graft_tensor_desc *grad, *x, *y;
  double alpha;
  const graft_tensor_desc *grad_x, *grad_y;
} args_scale_add_backward;

static graft_status like(const graft_tensor_desc *t, graft_custom_result *result) {
  result->dtype = t->dl.dtype;
  result->ndim = t->dl.ndim;
  for (int32_t i = 0; i < t->dl.ndim; i++) result->shape[i] = t->dl.shape[i];
  return GRAFT_OK;
}

static graft_status infer_scale_add(void *self, const graft_args *args, graft_custom_result *const *results,
                                    uint32_t count) {
  const args_scale_add *a = (const args_scale_add *)(const void *)args;
  (void)count;
  int same = a->x->dl.dtype == a->y->dl.dtype && a->x->dl.ndim == a->y->dl.ndim;
  for (int32_t i = 0; same && i < a->x->dl.ndim; i++) same = a->x->dl.shape[i] == a->y->dl.shape[i];
  if (!same) return fail(self, GRAFT_INVALID_ARGUMENT, "x and y must have one shape and one dtype");
  return like(a->x, results[0]);
}

static graft_status infer_scale_add_backward(void *self, const graft_args *args, graft_custom_result *const *results,
                                             uint32_t count) {
  const args_scale_add_backward *a = (const args_scale_add_backward *)(const void *)args;
  (void)self, (void)count;
  like(a->x, results[0]);
  return like(a->y, results[1]);
}

static graft_status scale_add(const graft_exec *exec, const graft_args *args) {
  const args_scale_add *a = (const args_scale_add *)(const void *)args;
  (void)exec;
  if (a->x->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  const float *x = f32(a->x), *y = f32(a->y), alpha = (float)a->alpha;
  float *out = f32(a->out);
  for (int64_t i = 0, n = elements(a->out); i < n; i++) out[i] = x[i] + alpha * y[i];
  return GRAFT_OK;
}

static graft_status scale_add_backward(const graft_exec *exec, const graft_args *args) {
  const args_scale_add_backward *a = (const args_scale_add_backward *)(const void *)args;
  (void)exec;
  if (a->x->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  const float *grad = f32(a->grad), alpha = (float)a->alpha;
  float *grad_x = f32(a->grad_x), *grad_y = f32(a->grad_y);
  for (int64_t i = 0, n = elements(a->grad); i < n; i++) grad_x[i] = grad[i], grad_y[i] = alpha * grad[i];
  return GRAFT_OK;
}

/* The same in plain host memory, in f64 for the conformance suite and in f32 for tensors of the host. */
static double get(const graft_tensor_desc *t, int64_t i) {
  const void *data = (const void *)t->dl.data;
  return t->dl.dtype == GRAFT_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void set(const graft_tensor_desc *t, int64_t i, double value) {
  void *data = (void *)t->dl.data;
  if (t->dl.dtype == GRAFT_F64)
    ((double *)data)[i] = value;
  else
    ((float *)data)[i] = (float)value;
}

static int is_known(const graft_tensor_desc *t) {
  return t->dl.dtype == GRAFT_F64 || t->dl.dtype == GRAFT_F32;
}

static graft_status scale_add_reference(void *self, const graft_args *args) {
  const args_scale_add *a = (const args_scale_add *)(const void *)args;
  (void)self;
  if (!is_known(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = elements(a->out); i < n; i++) set(a->out, i, get(a->x, i) + a->alpha * get(a->y, i));
  return GRAFT_OK;
}

static graft_status scale_add_backward_reference(void *self, const graft_args *args) {
  const args_scale_add_backward *a = (const args_scale_add_backward *)(const void *)args;
  (void)self;
  if (!is_known(a->x)) return GRAFT_UNIMPLEMENTED;
  for (int64_t i = 0, n = elements(a->grad); i < n; i++) {
    set(a->grad_x, i, get(a->grad, i));
    set(a->grad_y, i, a->alpha * get(a->grad, i));
  }
  return GRAFT_OK;
}

static const graft_custom_op row_scale_add = {
    .struct_size = sizeof row_scale_add,
    .op_id = OP_SCALE_ADD,
    .gradient_id = OP_SCALE_ADD_BACKWARD,
    .schema = "@NAME@::scale_add(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor",
    .infer = infer_scale_add,
    .slot = scale_add,
    .reference = scale_add_reference,
    .cases = "T[33,17] T[33,17] alpha=0.5\nT[1025] T[1025]\nT[] T[] alpha=-2.0",
};

static const graft_custom_op row_scale_add_backward = {
    .struct_size = sizeof row_scale_add_backward,
    .op_id = OP_SCALE_ADD_BACKWARD,
    .schema = "@NAME@::scale_add_backward(Tensor grad, Tensor x, Tensor y, *, float alpha=1.0) -> (Tensor, Tensor)",
    .infer = infer_scale_add_backward,
    .slot = scale_add_backward,
    .reference = scale_add_backward_reference,
};

static const graft_custom_op *const own_rows[] = {&row_scale_add, &row_scale_add_backward};
static const graft_custom_ops_api own_ops = {
    .struct_size = sizeof own_ops,
    .count = sizeof own_rows / sizeof *own_rows,
    .ops = own_rows,
};

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self;
  if (strcmp(name, GRAFT_EXTENSION_CUSTOM_OPS) != 0 || minimum > GRAFT_CUSTOM_OPS_VERSION) return GRAFT_UNIMPLEMENTED;
  *table = &own_ops;
  return GRAFT_OK;
}

/* The struct is as long as the host knows it, and only what fits is written. */
static graft_status op_caps(graft_device *device, uint32_t op_id, graft_op_caps *out) {
  graft_op_caps mine = {.struct_size = out->struct_size}, *caps = &mine;
  (void)device;
  switch (op_id) {
    case GRAFT_OP_ADD_TENSOR:
    case GRAFT_OP_RELU: caps->flags = GRAFT_CAP_IN_PLACE | GRAFT_CAP_DETERMINISTIC; break;
    case OP_SCALE_ADD:
    case OP_SCALE_ADD_BACKWARD:
    case GRAFT_OP_MM: caps->flags = GRAFT_CAP_DETERMINISTIC; break;
    default: return GRAFT_UNIMPLEMENTED;
  }
  caps->input_dtypes = caps->output_dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  memcpy(out, caps, out->struct_size < sizeof mine ? out->struct_size : sizeof mine);
  return GRAFT_OK;
}

/* --- devices --- */

static graft_status device_count(void *self, int32_t *count) {
  (void)self;
  *count = 1;
  return GRAFT_OK;
}

static graft_status answer(const void *from, size_t bytes, void *value, size_t capacity, size_t *size) {
  *size = bytes;
  if (bytes > capacity) return GRAFT_INVALID_ARGUMENT;
  memcpy(value, from, bytes);
  return GRAFT_OK;
}

static graft_status device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                                 size_t *size) {
  static const char name[] = "@NAME@ on host memory";
  static const uint64_t dtypes = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  (void)self, (void)index;
  switch (key) {
    case GRAFT_DEVICE_NAME: return answer(name, sizeof name, value, capacity, size);
    case GRAFT_DEVICE_DTYPES:
    case GRAFT_DEVICE_DENORMALS: return answer(&dtypes, sizeof dtypes, value, capacity, size);
    default: return GRAFT_UNIMPLEMENTED; /* the host takes its default */
  }
}

static graft_status device_open(void *self, int32_t index, graft_device **device) {
  if (index != 0) return GRAFT_INVALID_ARGUMENT;
  graft_device *made = calloc(1, sizeof *made);
  if (!made) return fail(self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for a device");
  made->self = self;
  *device = made;
  return GRAFT_OK;
}

static graft_status device_close(graft_device *device) {
  free(device);
  return GRAFT_OK;
}

/* --- the plugin --- */

static graft_status close_instance(void *self) {
  free(self);
  return GRAFT_OK;
}

/* Opening touches no driver: device_count is the first that may. */
graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  if (options && *options) { /* "key=value": read yours here, and refuse the others */
    char text[256];
    snprintf(text, sizeof text, "@NAME@: the option \"%.128s\" is not known; it takes none", *options);
    host->set_error(host->context, text);
    return GRAFT_INVALID_ARGUMENT;
  }
  instance *self = calloc(1, sizeof *self);
  if (!self) return GRAFT_OUT_OF_MEMORY;
  self->host = host;
  self->table = (graft_plugin){
      .struct_size = sizeof self->table,
      .abi_major = GRAFT_ABI_MAJOR,
      .abi_minor = GRAFT_ABI_MINOR,
      .self = self,
      .name = "@NAME@",
      .vendor = "you",
      .version = "0.1.0",
      .close = close_instance,
      .device_count = device_count,
      .device_query = device_query,
      .device_open = device_open,
      .device_close = device_close,
      .memory = &memory,
      .stream = &streams,
      .core = &core,
      .op_caps = op_caps,
      .extension = extension,
  };
  *plugin = &self->table;
  return GRAFT_OK;
}
