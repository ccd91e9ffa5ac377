/* A host of a released minor, as small as one can be, which runs a plugin of today: host PLUGIN. It is compiled with
 * the headers of its minor alone. All that it hands to the plugin is of the sizes of its minor and ends where readable
 * memory ends, so that a plugin that takes a newer host for granted (a field it did not ask GRAFT_HAS for, an answer
 * larger than the struct) crashes here, and one that says what only a newer host honours is told of. */
#include <dlfcn.h>
#include <graft/abi/plugin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SKIPPED = 77, SIDE = 4, COUNT = SIDE * SIDE, ROOM = 1 << 16, MEMO_CALLS = 2 };
/* GRAFT_CAP_HOST_CHECKS_INDICES of 1.2: said to a host that would not do so, indices would be read unchecked. */
enum { CAP_HOST_CHECKS_INDICES = 0x400, ITS_MINOR = 2 };

static const graft_plugin *plugin;
static graft_device *device;
static graft_stream *stream;

static void must(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "frozen host 1.%d: %s\n", GRAFT_ABI_MINOR, what);
  exit(1);
}

/* Zeroed memory, behind which nothing can be read or written. `bytes` is a multiple of 8. */
static void *at_the_edge(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
  char *start = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(start != MAP_FAILED && mprotect(start + whole, page, PROT_NONE) == 0, "no memory");
  return start + whole - bytes;
}

static void *copy_at_the_edge(const void *from, size_t bytes) {
  return memcpy(at_the_edge(bytes), from, bytes);
}

#define AT_THE_EDGE(type, ...) copy_at_the_edge(&(type){__VA_ARGS__}, sizeof(type))

/* --- what the host offers --- */

static void host_log(void *context, graft_log_level level, const char *message) {
  (void)context, (void)level;
  fprintf(stderr, "plugin: %s\n", message);
}

static void host_set_error(void *context, const char *message) {
  host_log(context, GRAFT_LOG_ERROR, message);
}

static graft_buffer *buffers[64]; /* all there are, released at the end */
static size_t buffer_count;

static graft_buffer *allocate(uint64_t bytes) {
  graft_allocation *request = AT_THE_EDGE(graft_allocation, .struct_size = sizeof *request, .bytes = bytes);
  must(plugin->memory->allocate(device, request) == GRAFT_OK && request->buffer, "allocate");
  must(buffer_count < sizeof buffers / sizeof *buffers, "too many buffers");
  return buffers[buffer_count++] = request->buffer;
}

static graft_status host_workspace(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                                   uint64_t *byte_offset) {
  (void)exec, (void)alignment;
  *byte_offset = 0;
  *buffer = allocate((bytes + ROOM - 1) / ROOM * ROOM);
  return GRAFT_OK;
}

static graft_status host_output_shape(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                                      const graft_tensor_desc **desc) {
  (void)exec, (void)output, (void)ndim, (void)shape, (void)desc;
  return GRAFT_INTERNAL; /* no op here asks for it */
}

static struct {
  void *value;
  void (*destroy)(void *value);
} memo;

static graft_status host_memo_publish(const graft_exec *exec, void *value, void (*destroy)(void *value),
                                      void **winner) {
  (void)exec;
  if (memo.value) {
    destroy(value);
  } else {
    memo.value = value;
    memo.destroy = destroy;
  }
  *winner = memo.value;
  return GRAFT_OK;
}

static graft_status host_cache_directory(void *context, char *path, size_t capacity, size_t *length) {
  (void)context, (void)path, (void)capacity, (void)length;
  return GRAFT_UNIMPLEMENTED;
}

static graft_status host_extension(void *context, const char *name, uint32_t minimum, const void **table) {
  (void)context, (void)name, (void)minimum, (void)table;
  return GRAFT_UNIMPLEMENTED;
}

/* --- opening --- */

static void open_plugin(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  must(library != NULL, "dlopen");
  graft_plugin_open_v1_fn entry;
  *(void **)&entry = dlsym(library, GRAFT_PLUGIN_ENTRY);
  must(entry != NULL, "no entry point");
  const graft_host *host = AT_THE_EDGE(
      graft_host, .struct_size = sizeof *host, .abi_major = GRAFT_ABI_MAJOR, .abi_minor = GRAFT_ABI_MINOR,
      .log = host_log, .set_error = host_set_error, .workspace = host_workspace, .output_shape = host_output_shape,
      .memo_publish = host_memo_publish, .cache_directory = host_cache_directory, .extension = host_extension);
  must(entry(host, NULL, &plugin) == GRAFT_OK, "the plugin does not open");
  must(GRAFT_HAS(plugin, graft_plugin, stream) && plugin->abi_major == GRAFT_ABI_MAJOR, "the plugin's table");
  must(GRAFT_HAS(plugin->memory, graft_memory_api, fill), "the memory's table");
  must(GRAFT_HAS(plugin->stream, graft_stream_api, failure), "the streams' table");
}

static void open_device(void) {
  int32_t count = 0;
  must(plugin->device_count(plugin->self, &count) == GRAFT_OK, "device_count");
  if (!count) {
    puts("skipped: there is no device");
    exit(SKIPPED);
  }
  must(plugin->device_open(plugin->self, 0, &device) == GRAFT_OK, "device_open");
  must(plugin->stream->create(device, 0, 0, &stream) == GRAFT_OK, "a stream");
}

/* Each op of the tables is asked: the ids of this minor, and those that it never heard of. */
static void ask_capabilities(void) {
  enum { TABLES = 3, TABLE_IDS = 10000, IDS = 2000 };
  int answered = 0;
  if (!GRAFT_HAS(plugin, graft_plugin, op_caps) || !plugin->op_caps) return;
  graft_op_caps *caps = at_the_edge(sizeof *caps);
  for (uint32_t i = 0; i < TABLES * IDS; i++) {
    uint32_t id = i / IDS * TABLE_IDS + i % IDS;
    *caps = (graft_op_caps){.struct_size = sizeof *caps};
    graft_status status = plugin->op_caps(device, id, caps);
    must(status == GRAFT_OK || status == GRAFT_UNIMPLEMENTED, "op_caps");
    must(caps->struct_size == sizeof *caps, "op_caps changed struct_size");
    must(GRAFT_ABI_MINOR >= ITS_MINOR || !(caps->flags & CAP_HOST_CHECKS_INDICES), "op_caps relies on a newer host");
    answered += status == GRAFT_OK;
  }
  must(answered > 0, "op_caps knows no op");
}

/* --- ops on matrices of f32 --- */

typedef struct matrix {
  graft_buffer *buffer;
  const graft_tensor_desc *desc;
} matrix;

static matrix make(const float *values) {
  static const int64_t shape[2] = {SIDE, SIDE}, strides[2] = {SIDE, 1};
  static uint64_t storages;
  matrix m = {.buffer = allocate(ROOM)};
  m.desc = AT_THE_EDGE(graft_tensor_desc, .struct_size = sizeof *m.desc,
                       .dl = {.data = m.buffer, .ndim = 2, .dtype = GRAFT_F32, .shape = shape, .strides = strides},
                       .storage_id = ++storages);
  if (values) {
    must(plugin->memory->copy_from_host(stream, m.buffer, 0, values, COUNT * sizeof *values,
                                        GRAFT_COPY_SOURCE_REUSABLE) == GRAFT_OK,
         "copy_from_host");
  }
  return m;
}

static const float left[COUNT] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16};
static const float right[COUNT] = {2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 5};
static matrix a, b, out;

typedef graft_status (*any_slot)(const graft_exec *exec, const graft_args *args);

static graft_args head_of(uint32_t op_id, size_t size) {
  return (graft_args){.struct_size = size, .op_id = op_id};
}

#define UNARY(name, id) \
  AT_THE_EDGE(graft_args_##name, .head = head_of(id, sizeof(graft_args_##name)), .self = a.desc, .out = out.desc)

static float expect_neg(int i) {
  return -left[i];
}
static float expect_relu(int i) {
  return left[i] > 0 ? left[i] : 0;
}
static float expect_add(int i) {
  return left[i] + right[i];
}
static float expect_mm(int i) {
  return left[i] * right[i % SIDE * (SIDE + 1)];
} /* right is a diagonal */

static void compare(const char *op, float (*expected)(int i)) {
  float values[COUNT];
  must(plugin->memory->copy_to_host(stream, values, out.buffer, 0, sizeof values, 0) == GRAFT_OK, "copy_to_host");
  must(plugin->stream->synchronize(stream) == GRAFT_OK, "synchronize");
  for (int i = 0; i < COUNT; i++) must(fabsf(values[i] - expected(i)) < 1e-6f, op);
}

/* Called twice: the second time with the memo of the first. Whether the plugin serves it. */
static int call(const char *op, any_slot slot, const graft_args *args, float (*expected)(int i)) {
  if (!slot) return 0;
  memo.value = NULL;
  for (int i = 0; i < MEMO_CALLS; i++) {
    graft_exec *exec =
        AT_THE_EDGE(graft_exec, .struct_size = sizeof *exec, .device = device, .stream = stream, .memo = memo.value);
    graft_status status = slot(exec, args);
    if (status == GRAFT_UNIMPLEMENTED) return 0;
    must(status == GRAFT_OK, op);
    compare(op, expected);
  }
  if (memo.value) memo.destroy(memo.value);
  printf("%s ", op);
  return 1;
}

#define SLOT(name) (GRAFT_HAS(plugin->core, graft_core_ops, name) ? (any_slot)(void (*)(void))plugin->core->name : NULL)

static void call_ops(void) {
  a = make(left);
  b = make(right);
  out = make(NULL);
  const graft_scalar *one = AT_THE_EDGE(graft_scalar, .dtype = GRAFT_I64, .value = {.i = 1});
  int served = call("neg", SLOT(neg), UNARY(neg, GRAFT_OP_NEG), expect_neg);
  served += call("relu", SLOT(relu), UNARY(relu, GRAFT_OP_RELU), expect_relu);
  served += call("add", SLOT(add_Tensor),
                 AT_THE_EDGE(graft_args_add_Tensor, .head = head_of(GRAFT_OP_ADD_TENSOR, sizeof(graft_args_add_Tensor)),
                             .self = a.desc, .other = b.desc, .alpha = one, .out = out.desc),
                 expect_add);
  served += call("mm", SLOT(mm),
                 AT_THE_EDGE(graft_args_mm, .head = head_of(GRAFT_OP_MM, sizeof(graft_args_mm)), .self = a.desc,
                             .mat2 = b.desc, .out = out.desc),
                 expect_mm);
  must(served > 0, "none of the ops is served");
}

static void close_all(void) {
  graft_event *event;
  must(plugin->stream->event_create(device, 0, &event) == GRAFT_OK, "event_create");
  must(plugin->stream->event_record(event, stream) == GRAFT_OK, "event_record");
  must(plugin->stream->event_synchronize(event) == GRAFT_OK, "event_synchronize");
  must(plugin->stream->event_destroy(event) == GRAFT_OK, "event_destroy");
  must(plugin->stream->destroy(stream) == GRAFT_OK, "destroy");
  for (size_t i = 0; i < buffer_count; i++) {
    must(plugin->memory->release(device, buffers[i]) == GRAFT_OK, "release");
  }
  must(plugin->device_close(device) == GRAFT_OK, "device_close");
  must(plugin->close(plugin->self) == GRAFT_OK, "close");
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  open_plugin(argv[1]);
  open_device();
  ask_capabilities();
  call_ops();
  close_all();
  printf("served under a host of 1.%d\n", GRAFT_ABI_MINOR);
  return 0;
}
