/* @NAME@: a Graft backend.
 *
 * It works as it stands, on host memory, and serves three ops, and one of its own. Make it yours from top to bottom:
 * put your driver's calls behind memory, streams and events, then add kernels op by op. What a function must do stands
 * in its header in graft/abi; whatever you leave out, the host does by other means. */
#include <graft/abi/plugin.h>
#include <stddef.h>  // @capture
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

/* Your queue. */
struct graft_stream {
  int unused;
  graft_captured *recording;  // @capture
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

/* --- work ---
 * What a stream is given: a function, and a copy of what it works on. Here it is done at once; your queue takes its
 * place. */

typedef void work_run(const void *work);

// @capture: part_capture.c
static graft_status submit(graft_stream *stream, work_run *run, const void *work, size_t bytes) {
  if (stream->recording) return keep(stream->recording, run, work, bytes);  // @capture
  (void)stream, (void)bytes;
  run(work);
  return GRAFT_OK;
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

typedef struct copy_work {
  char *to;
  const char *from;
  uint64_t bytes;
} copy_work;

static void run_copy(const void *work) {
  const copy_work *w = work;
  memcpy(w->to, w->from, w->bytes);
}

static graft_status copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                         uint64_t from_offset, uint64_t bytes) {
  const copy_work w = {to->data + to_offset, from->data + from_offset, bytes};
  return submit(stream, run_copy, &w, sizeof w);
}

typedef struct fill_work {
  char *to;
  uint64_t bytes;
  uint32_t pattern_bytes;
  char pattern[16]; /* as long as one can be */
} fill_work;

static void run_fill(const void *work) {
  const fill_work *w = work;
  if (w->bytes) memcpy(w->to, w->pattern, w->pattern_bytes);
  for (uint64_t done = w->pattern_bytes; done < w->bytes; done *= 2)
    memcpy(w->to + done, w->to, done < w->bytes - done ? done : w->bytes - done);
}

static graft_status fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                         uint32_t pattern_bytes) {
  fill_work w = {.to = to->data + offset, .bytes = bytes, .pattern_bytes = pattern_bytes};
  memcpy(w.pattern, pattern, pattern_bytes);
  return submit(stream, run_fill, &w, sizeof w);
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

/* What one element becomes. */
static float add_one(float a, float b, float factor) {
  return a + factor * b;
}

static float relu_one(float a) {
  return a <= 0 ? 0 : a; /* NaN stays NaN */
}

static float factor_of(const graft_scalar *alpha) {
  return (float)(alpha->dtype == GRAFT_F64 ? alpha->value.f : (double)alpha->value.i);
}

typedef struct add_work {
  const float *a, *b;
  float *out, factor;
  int64_t n;
} add_work;

static void run_add(const void *work) {
  const add_work *w = work;
  for (int64_t i = 0; i < w->n; i++) w->out[i] = add_one(w->a[i], w->b[i], w->factor);
}

static graft_status add_Tensor(const graft_exec *exec, const graft_args_add_Tensor *args) {
  const add_work w = {f32(args->self), f32(args->other), f32(args->out), factor_of(args->alpha), elements(args->out)};
  return submit(exec->stream, run_add, &w, sizeof w);
}

typedef struct relu_work {
  const float *a;
  float *out;
  int64_t n;
} relu_work;

static void run_relu(const void *work) {
  const relu_work *w = work;
  for (int64_t i = 0; i < w->n; i++) w->out[i] = relu_one(w->a[i]);
}

static graft_status relu(const graft_exec *exec, const graft_args_relu *args) {
  const relu_work w = {f32(args->self), f32(args->out), elements(args->out)};
  return submit(exec->stream, run_relu, &w, sizeof w);
}

typedef struct mm_work {
  const float *a, *b;
  float *out;
  int64_t n, k, m;
} mm_work;

static void run_mm(const void *work) {
  const mm_work *w = work;
  for (int64_t i = 0; i < w->n; i++) {
    for (int64_t j = 0; j < w->m; j++) {
      float sum = 0;
      for (int64_t l = 0; l < w->k; l++) sum += w->a[i * w->k + l] * w->b[l * w->m + j];
      w->out[i * w->m + j] = sum;
    }
  }
}

static graft_status mm(const graft_exec *exec, const graft_args_mm *args) {
  const int64_t *a = args->self->dl.shape, *b = args->mat2->dl.shape;
  const mm_work w = {f32(args->self), f32(args->mat2), f32(args->out), a[0], a[1], b[1]};
  return submit(exec->stream, run_mm, &w, sizeof w);
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
  if (a->x->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  const add_work w = {f32(a->x), f32(a->y), f32(a->out), (float)a->alpha, elements(a->out)};
  return submit(exec->stream, run_add, &w, sizeof w);
}

typedef struct scale_add_backward_work {
  const float *grad;
  float *grad_x, *grad_y, alpha;
  int64_t n;
} scale_add_backward_work;

static void run_scale_add_backward(const void *work) {
  const scale_add_backward_work *w = work;
  for (int64_t i = 0; i < w->n; i++) {
    w->grad_x[i] = w->grad[i];
    w->grad_y[i] = w->alpha * w->grad[i];
  }
}

static graft_status scale_add_backward(const graft_exec *exec, const graft_args *args) {
  const args_scale_add_backward *a = (const args_scale_add_backward *)(const void *)args;
  if (a->x->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  const scale_add_backward_work w = {f32(a->grad), f32(a->grad_x), f32(a->grad_y), (float)a->alpha, elements(a->grad)};
  return submit(exec->stream, run_scale_add_backward, &w, sizeof w);
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

// @graph: part_graph.c
/* --- extensions --- */

static const struct offer {
  const char *name;
  uint32_t version;
  const void *table;
} offers[] = {
    {GRAFT_EXTENSION_CUSTOM_OPS, GRAFT_CUSTOM_OPS_VERSION, &own_ops},
    {GRAFT_EXTENSION_GRAPH, GRAFT_GRAPH_VERSION, &graph_api},        // @graph
    {GRAFT_EXTENSION_CAPTURE, GRAFT_CAPTURE_VERSION, &capture_api},  // @capture
};

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  (void)self;
  for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
    if (strcmp(name, offers[i].name) != 0 || minimum > offers[i].version) continue;
    *table = offers[i].table;
    return GRAFT_OK;
  }
  return GRAFT_UNIMPLEMENTED;
}

/* The struct is as long as the host knows it, and only what fits is written. */
static graft_status op_caps(graft_device *device, uint32_t op_id, graft_op_caps *out) {
  graft_op_caps mine = {.struct_size = out->struct_size}, *caps = &mine;
  /* Only an op that gives all its work to submit() can be recorded, and says so (CAPTURING). */  // @capture
  (void)device;
  switch (op_id) {
    case GRAFT_OP_ADD_TENSOR:
    case GRAFT_OP_RELU:
      caps->flags = GRAFT_CAP_IN_PLACE | GRAFT_CAP_DETERMINISTIC;
      caps->exec_flags_known = GRAFT_EXEC_CAPTURING;  // @capture
      break;
    case GRAFT_OP_MM:
    case OP_SCALE_ADD:
    case OP_SCALE_ADD_BACKWARD:
      caps->flags = GRAFT_CAP_DETERMINISTIC;
      caps->exec_flags_known = GRAFT_EXEC_CAPTURING;  // @capture
      break;
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
