/* What a plugin says of its ops, and how slots treat what is not theirs. Whether numbers are right is not asked here.
 */
#include <string.h>

#include "check.h"

/* --- capabilities --- */

static void need_caps(const ck_session *s) {
  if (!s->plugin.op_caps) ck_skip("the plugin has no op_caps");
}

static void check_unknown_op(ck_session *s) {
  static const uint32_t ids[] = {0, 0x00ffffff, GRAFT_OP_VENDOR_IDS - 1}; /* those above may be the plugin's own */
  need_caps(s);
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    graft_op_caps caps = {.struct_size = sizeof caps}, before = caps;
    CK_CALL(GRAFT_UNIMPLEMENTED, s->plugin.op_caps(s->device, ids[i], &caps),
            "op_caps of op %u, which there is none of", ids[i]);
    if (memcmp(&caps, &before, sizeof caps) != 0) ck_fail("it wrote its output all the same");
  }
}

static void check_caps(ck_session *s) {
  size_t count, slots = 0;
  const op_schema *all = op_schema_all(&count);
  need_caps(s);
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i])) continue;
    slots++;
    graft_op_caps caps = ck_caps_of(s, &all[i]), again = ck_caps_of(s, &all[i]);
    if (caps.struct_size != sizeof caps) ck_fail("it changed struct_size");
    if (memcmp(&caps, &again, sizeof caps) != 0) ck_fail("asked twice, it answers differently");
    if (caps.input_dtypes >> 63 || caps.output_dtypes >> 63) ck_fail("a dtype set has bit 63; expected dtype numbers");
    if (caps.exec_flags_known >> 16)
      ck_fail("exec_flags_known is 0x%x; hints do not belong there", caps.exec_flags_known);
    if ((caps.flags & GRAFT_CAP_EXPANDED) && !(caps.flags & GRAFT_CAP_STRIDED) && s->plugin.abi_minor >= 2)
      ck_fail("it says GRAFT_CAP_EXPANDED without GRAFT_CAP_STRIDED, so that nothing expanded ever comes");
    if (caps.args_size_known && caps.args_size_known < sizeof(graft_args)) {
      ck_fail("args_size_known is %u, less than the head of args", caps.args_size_known);
    }
  }
  ck_doing("the op tables");
  if (!slots) ck_skip("the plugin has no slot");
}

/* The first op with a slot, to ask about. */
static const op_schema *any_op(ck_session *s) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (ck_slot_of(s, &all[i])) return &all[i];
  }
  ck_skip("the plugin has no slot");
}

/* Room for the struct and for what must stay as it is. */
typedef union marked_caps {
  graft_op_caps caps;
  unsigned char bytes[2 * sizeof(graft_op_caps)];
} marked_caps;

static void check_caps_fit(ck_session *s) {
  need_caps(s);
  const op_schema *schema = any_op(s);
  for (size_t size = sizeof(size_t); size <= sizeof(graft_op_caps) + 16; size += 8) {
    marked_caps marked;
    memset(&marked, 0xa5, sizeof marked);
    memset(&marked, 0, size);
    marked.caps.struct_size = size;
    ck_doing("op_caps of %s into a struct of %zu bytes", schema->name, size);
    graft_status status = s->plugin.op_caps(s->device, schema->id, &marked.caps);
    ck_is(status, GRAFT_OK);
    if (marked.caps.struct_size != size) ck_fail("it changed struct_size");
    for (size_t i = size; i < sizeof marked; i++) {
      if (marked.bytes[i] != 0xa5) ck_fail("it wrote byte %zu", i);
    }
  }
}

/* --- calls --- */

/* Ops of few arguments, so that a call can be made of any of them: square matrices and the number 1. */
static const char *const probes[] = {"aten::add.Tensor", "aten::mul.Tensor", "aten::neg", "aten::relu",
                                     "aten::abs",        "aten::mm",         "aten::exp", "aten::sub.Tensor"};
enum { PROBES = sizeof probes / sizeof *probes, SIDE = 5, ARGS_BYTES = 512, TENSORS = 4 };

/* Random ops, and those with a str argument, likewise. */
static const char *const random_probes[] = {"aten::rand",        "aten::randn",       "aten::uniform",
                                            "aten::bernoulli.p", "aten::exponential", "aten::random.from"};
static const char *const text_probes[] = {"aten::gelu"};
/* Ops whose indices are a matrix, too. */
static const char *const index_probes[] = {"aten::gather", "aten::scatter_add", "aten::scatter.value",
                                           "aten::scatter.src", "aten::take"};
static const char *const number_probes[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::addcmul",
                                            "aten::lerp.Scalar"};

/* One call with everything it points to. Buffers have red zones around their tensor. */
typedef struct call {
  const op_schema *schema;
  union {
    graft_args head;
    unsigned char bytes[ARGS_BYTES];
  } args, args_before;
  struct {
    graft_exec exec;
    void *unknown[2];
  } exec, exec_before;
  int64_t shape[2], strides[2];
  graft_scalar one;
  graft_philox philox;
  graft_tensor_desc tensors[TENSORS];
  graft_buffer *buffers[TENSORS];
  unsigned char *contents[TENSORS];
  unsigned count; /* the last is the output */
  uint64_t offset, bytes, whole;
} call;

static bool can_call(ck_session *s, const op_schema *schema) {
  if (!schema || !ck_slot_of(s, schema)) return false;
  graft_op_caps caps = ck_caps_of(s, schema);
  uint64_t f32 = GRAFT_DTYPE_BIT(GRAFT_NUMBER_F32);
  return (!caps.input_dtypes || caps.input_dtypes & f32) && (!caps.output_dtypes || caps.output_dtypes & f32);
}

static void put_element(call *c, unsigned tensor, unsigned k, int64_t index) {
  memcpy(c->contents[tensor] + c->offset + k * sizeof index, &index, sizeof index);
}

static const graft_tensor_desc *add_tensor(ck_session *s, call *c, graft_stream *stream) {
  unsigned i = c->count++;
  if (i == TENSORS) ck_fail("too many tensors");
  c->buffers[i] = ck_buffer(s, c->whole);
  c->contents[i] = ck_alloc(c->whole);
  memset(c->contents[i], 0x5a, c->whole);
  for (unsigned k = 0; k < SIDE * SIDE; k++) {
    float value = (float)(k * 7 % 11) - 5.0f + (float)i;
    memcpy(c->contents[i] + c->offset + k * sizeof value, &value, sizeof value);
  }
  ck_write(s, stream, c->buffers[i], 0, c->contents[i], c->whole);
  c->tensors[i] = (graft_tensor_desc){.struct_size = sizeof(graft_tensor_desc),
                                      .dl = {.data = c->buffers[i],
                                             .device_type = 12,
                                             .device_id = s->target->device,
                                             .ndim = 2,
                                             .dtype = GRAFT_F32,
                                             .shape = c->shape,
                                             .strides = c->strides,
                                             .byte_offset = c->offset},
                                      .storage_id = 1 + i,
                                      .storage_version = 1};
  return &c->tensors[i];
}

/* All in range: each row takes its elements backwards. */
static const graft_tensor_desc *add_indices(ck_session *s, call *c, graft_stream *stream) {
  unsigned i = c->count;
  add_tensor(s, c, stream);
  for (unsigned k = 0; k < SIDE * SIDE; k++) put_element(c, i, k, SIDE - 1 - k / SIDE);
  ck_write(s, stream, c->buffers[i], 0, c->contents[i], c->whole);
  c->tensors[i].dl.dtype = GRAFT_I64;
  return &c->tensors[i];
}

static void put(call *c, uint32_t offset, const void *value) {
  memcpy(c->args.bytes + offset, &value, sizeof value);
}

static void put_bytes(call *c, uint32_t offset, const void *value, size_t bytes) {
  memcpy(c->args.bytes + offset, value, bytes);
}

/* Sizes are those of the tensors here, numbers 0, 1, ... in their order. */
static void put_number(call *c, const op_arg *arg, int number) {
  const graft_int_list sizes = {c->shape, 2};
  const double real = number;
  const int64_t integer = number;
  const graft_dtype dtype = GRAFT_F32;
  const uint32_t first_text = 1;
  if (arg->kind == OPK_INTS) put_bytes(c, arg->offset, &sizes, sizeof sizes);
  if (arg->kind == OPK_DTYPE) put_bytes(c, arg->offset, &dtype, sizeof dtype);
  if (arg->kind == OPK_STR) put_bytes(c, arg->offset, &first_text, sizeof first_text);
  if (arg->flags & OPA_OPTIONAL) return; /* a number that may be absent is a pointer */
  if (arg->kind == OPK_FLOAT) put_bytes(c, arg->offset, &real, sizeof real);
  if (arg->kind == OPK_INT) put_bytes(c, arg->offset, &integer, sizeof integer);
}

static void prepare(ck_session *s, call *c, const op_schema *schema, graft_stream *stream) {
  memset(c, 0, sizeof *c);
  uint64_t alignment = ck_property(s, GRAFT_DEVICE_ALIGNMENT, 8, 64);
  c->schema = schema;
  c->shape[0] = c->shape[1] = c->strides[0] = SIDE;
  c->strides[1] = 1;
  c->one = (graft_scalar){.dtype = GRAFT_I64, .value.i = 1};
  c->offset = 2 * alignment;
  c->bytes = SIDE * SIDE * (op_schema_has_indices(schema) ? sizeof(int64_t) : sizeof(float));
  c->whole = (c->offset + c->bytes + 2 * alignment + s->granularity - 1) / s->granularity * s->granularity;
  c->args.head = (graft_args){.struct_size = schema->args_size, .op_id = schema->id};
  int numbers = 0;
  for (unsigned i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    if (arg->kind == OPK_TENSOR) put(c, arg->offset, arg->index ? add_indices(s, c, stream) : add_tensor(s, c, stream));
    if (arg->kind == OPK_SCALAR) put(c, arg->offset, &c->one);
    put_number(c, arg, numbers);
    numbers += arg->kind == OPK_FLOAT || arg->kind == OPK_INT;
  }
  c->philox = (graft_philox){.struct_size = sizeof c->philox, .seed = 7};
  if (schema->philox_offset) put(c, schema->philox_offset, &c->philox);
  put(c, schema->rets[0].offset, add_tensor(s, c, stream));
  c->exec.exec =
      (graft_exec){.struct_size = sizeof(graft_exec), .device = s->device, .stream = stream, .host_context = s};
}

static graft_status run(ck_session *s, call *c) {
  graft_status (*slot)(const graft_exec *, const graft_args *);
  const void *found = ck_slot_of(s, c->schema);
  memcpy(&slot, &found, sizeof slot);
  c->args_before = c->args;
  c->exec_before = c->exec;
  return slot(&c->exec.exec, &c->args.head);
}

/* What the call could reach and must not have changed. `output_too`: nor its output. */
static void check_untouched(ck_session *s, call *c, bool output_too) {
  unsigned char *now = ck_alloc(c->whole);
  ck_doing("%s", c->schema->name);
  if (memcmp(&c->args, &c->args_before, sizeof c->args) != 0) ck_fail("it changed its args");
  if (memcmp(&c->exec, &c->exec_before, sizeof c->exec) != 0) ck_fail("it changed its exec");
  for (unsigned i = 0; i < c->count; i++) {
    ck_read(s, c->exec.exec.stream, c->buffers[i], 0, now, c->whole);
    bool is_output = i == c->count - 1;
    if (is_output && !output_too) {
      memcpy(c->contents[i] + c->offset, now + c->offset, c->bytes); /* its own to write */
    }
    ck_same(now, c->contents[i], c->whole, "%s: the buffer of its %s", c->schema->name, is_output ? "output" : "input");
  }
}

static void each_of(ck_session *s, const char *const *names, unsigned count, void (*visit)(ck_session *s, call *c)) {
  static call c;
  bool called = false;
  for (unsigned i = 0; i < count; i++) {
    const op_schema *schema = op_schema_find(names[i]);
    if (!can_call(s, schema)) continue;
    prepare(s, &c, schema, ck_stream(s, 0));
    visit(s, &c);
    called = true;
  }
  ck_doing("the op tables");
  if (!called) ck_skip("the plugin has none of the simple ops that this check calls, such as %s, in f32", names[0]);
}

static void each_probe(ck_session *s, void (*visit)(ck_session *s, call *c)) {
  each_of(s, probes, PROBES, visit);
}

/* Runs the call into an output full of one byte. */
static graft_status run_into(ck_session *s, call *c, unsigned char poison) {
  const unsigned out = c->count - 1;
  memset(c->contents[out] + c->offset, poison, c->bytes);
  ck_write(s, c->exec.exec.stream, c->buffers[out], 0, c->contents[out], c->whole);
  ck_doing("%s of 5x5 matrices in f32", c->schema->name);
  graft_status status = run(s, c);
  if (status != GRAFT_UNIMPLEMENTED) ck_is(status, GRAFT_OK);
  check_untouched(s, c, status == GRAFT_UNIMPLEMENTED);
  return status;
}

/* What it computes is the same each time, so that a byte that has kept two different ones was not written. */
static void visit_bounds(ck_session *s, call *c) {
  enum { ONE = 0x5a, OTHER = 0xa5 };
  const unsigned char *now = c->contents[c->count - 1] + c->offset;
  unsigned char *first = ck_alloc(c->bytes);
  if (run_into(s, c, ONE) == GRAFT_UNIMPLEMENTED) return;
  memcpy(first, now, c->bytes);
  ck_is(run_into(s, c, OTHER), GRAFT_OK);
  for (uint64_t i = 0; i < c->bytes; i++) {
    if (first[i] == ONE && now[i] == OTHER)
      ck_fail("byte %llu of %llu of its output was left as it was", (unsigned long long)i,
              (unsigned long long)c->bytes);
  }
}

static void check_bounds(ck_session *s) {
  each_probe(s, visit_bounds);
}

static void visit_newer(ck_session *s, call *c) {
  c->args.head.struct_size += 16;
  c->exec.exec.struct_size = sizeof c->exec;
  ck_doing("%s with args and exec of a later minor", c->schema->name);
  graft_status status = run(s, c);
  if (status != GRAFT_UNIMPLEMENTED) ck_is(status, GRAFT_OK);
  check_untouched(s, c, false);
}

static void check_newer(ck_session *s) {
  each_probe(s, visit_newer);
}

/* The same call again, with the memo that the first one left. */
static void visit_memo(ck_session *s, call *c) {
  size_t memos = s->memo_count;
  unsigned char *first = ck_alloc(c->bytes), *second = ck_alloc(c->bytes);
  ck_doing("%s for the first time", c->schema->name);
  if (run(s, c) == GRAFT_UNIMPLEMENTED) return;
  ck_read(s, c->exec.exec.stream, c->buffers[c->count - 1], c->offset, first, c->bytes);
  if (s->memo_count > memos) c->exec.exec.memo = s->memos[memos].value;
  CK_CALL(GRAFT_OK, run(s, c), "%s for the second time, with its memo", c->schema->name);
  ck_read(s, c->exec.exec.stream, c->buffers[c->count - 1], c->offset, second, c->bytes);
  ck_same(second, first, c->bytes, "%s for the second time, with its memo", c->schema->name);
}

static void check_memo(ck_session *s) {
  each_probe(s, visit_memo);
}

static void run_with(ck_session *s, call *c, int64_t number, void *memo, graft_status expected, unsigned char *out) {
  c->one.value.i = number;
  c->exec.exec.memo = memo;
  CK_CALL(expected, run(s, c), "%s with the number %lld%s", c->schema->name, (long long)number,
          memo ? " and the memo of another number" : "");
  ck_read(s, c->exec.exec.stream, c->buffers[c->count - 1], c->offset, out, c->bytes);
}

/* A memo that is said to ignore numbers serves another one, too. */
static void visit_numbers(ck_session *s, call *c) {
  if (!(ck_caps_of(s, c->schema).flags & GRAFT_CAP_MEMO_IGNORES_SCALARS)) return;
  size_t memos = s->memo_count;
  unsigned char *first = ck_alloc(c->bytes), *second = ck_alloc(c->bytes);
  ck_doing("%s with the number 1", c->schema->name);
  graft_status status = run(s, c);
  if (status != GRAFT_UNIMPLEMENTED) ck_is(status, GRAFT_OK);
  void *memo = s->memo_count > memos ? s->memos[memos].value : NULL;
  run_with(s, c, 3, NULL, status, first);
  run_with(s, c, 3, memo, status, second);
  ck_same(second, first, c->bytes, "%s with the number 3 and the memo of another number", c->schema->name);
}

static void check_numbers(ck_session *s) {
  ck_since(s, 2);
  each_of(s, number_probes, sizeof number_probes / sizeof *number_probes, visit_numbers);
}

static void set_dtype(call *c, graft_dtype dtype) {
  for (unsigned i = 0; i < c->count; i++) c->tensors[i].dl.dtype = dtype;
}

/* Dtypes that fit the buffers. */
static void visit_query(ck_session *s, call *c) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F16, GRAFT_I32, GRAFT_U8, GRAFT_BOOL};
  static const unsigned numbers[] = {GRAFT_NUMBER_F32, GRAFT_NUMBER_F16, GRAFT_NUMBER_I32, GRAFT_NUMBER_U8,
                                     GRAFT_NUMBER_BOOL};
  graft_op_caps general = ck_caps_of(s, c->schema);
  for (unsigned i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    if (general.input_dtypes && !(general.input_dtypes & GRAFT_DTYPE_BIT(numbers[i]))) continue;
    set_dtype(c, dtypes[i]);
    graft_op_caps caps = {.struct_size = sizeof caps};
    for (unsigned k = 0; k < c->count; k++) c->tensors[k].dl.data = NULL;
    const char *dtype = graft_dtype_name(dtypes[i]);
    ck_doing("op_query of %s in %s, without buffers", c->schema->name, dtype);
    graft_status said = s->plugin.op_query(&c->exec.exec, &c->args.head, &caps);
    if (said != GRAFT_UNIMPLEMENTED) ck_is(said, GRAFT_OK);
    for (unsigned k = 0; k < c->count; k++) c->tensors[k].dl.data = c->buffers[k];
    ck_doing("%s in %s, where op_query said %s", c->schema->name, dtype, said ? "UNIMPLEMENTED" : "OK");
    ck_is(run(s, c), said);
  }
}

static void check_query(ck_session *s) {
  if (!s->plugin.op_query) ck_skip("the plugin has no op_query");
  each_probe(s, visit_query);
}

/* Once from offset 4, and once from offset 0 with a state that adds 4. */
static void visit_state(ck_session *s, call *c) {
  graft_op_caps caps = ck_caps_of(s, c->schema);
  unsigned char *first = ck_alloc(c->bytes), *second = ck_alloc(c->bytes);
  graft_buffer *there = ck_buffer(s, sizeof(uint64_t));
  const uint64_t added = 4;
  const graft_tensor_desc state = {
      .struct_size = sizeof state,
      .dl = {.data = there, .device_type = 12, .dtype = GRAFT_U64, .shape = c->shape, .strides = c->strides}};
  ck_write(s, c->exec.exec.stream, there, 0, &added, sizeof added);
  c->philox.offset = added;
  ck_doing("%s", c->schema->name);
  graft_status status = run(s, c);
  if (status == GRAFT_UNIMPLEMENTED) return;
  ck_is(status, GRAFT_OK);
  check_untouched(s, c, false);
  memcpy(first, c->contents[c->count - 1] + c->offset, c->bytes);
  c->philox.offset = 0;
  c->philox.state = &state;
  bool reads = caps.flags & GRAFT_CAP_PHILOX_STATE;
  ck_doing("%s with philox.state, which it does%s read", c->schema->name, reads ? "" : " not");
  ck_is(run(s, c), reads ? GRAFT_OK : GRAFT_UNIMPLEMENTED);
  check_untouched(s, c, !reads);
  memcpy(second, c->contents[c->count - 1] + c->offset, c->bytes);
  if (reads) ck_same(second, first, c->bytes, "%s, from the same place of the stream", c->schema->name);
}

static void check_state(ck_session *s) {
  ck_since(s, 2);
  each_of(s, random_probes, sizeof random_probes / sizeof *random_probes, visit_state);
}

static void visit_unknown_text(ck_session *s, call *c) {
  const uint32_t unknown = 99;
  for (unsigned i = 0; i < c->schema->nargs; i++) {
    if (c->schema->args[i].kind == OPK_STR) put_bytes(c, c->schema->args[i].offset, &unknown, sizeof unknown);
  }
  CK_CALL(GRAFT_UNIMPLEMENTED, run(s, c), "%s with the unknown string value 99", c->schema->name);
  check_untouched(s, c, true);
}

static void check_unknown_text(ck_session *s) {
  ck_since(s, 2);
  each_of(s, text_probes, sizeof text_probes / sizeof *text_probes, visit_unknown_text);
}

static unsigned indices_of(const call *c) {
  unsigned i = 0;
  while (c->tensors[i].dl.dtype != GRAFT_I64) i++;
  return i;
}

/* At the call, or by the next wait. */
static graft_status run_and_wait(ck_session *s, call *c) {
  graft_status status = run(s, c);
  return status ? status : s->stream.synchronize(c->exec.exec.stream);
}

/* 25 lies outside of every dim, and of all 25 elements. */
static void visit_index(ck_session *s, call *c) {
  const unsigned indices = indices_of(c), element = 12;
  if (ck_caps_of(s, c->schema).flags & GRAFT_CAP_HOST_CHECKS_INDICES) return;
  ck_doing("%s with indices in range", c->schema->name);
  graft_status status = run_and_wait(s, c);
  if (status == GRAFT_UNIMPLEMENTED) return;
  ck_is(status, GRAFT_OK);
  put_element(c, indices, element, SIDE * SIDE);
  ck_write(s, c->exec.exec.stream, c->buffers[indices], 0, c->contents[indices], c->whole);
  ck_doing("%s with the index %d for matrices of %dx%d", c->schema->name, SIDE * SIDE, SIDE, SIDE);
  status = run_and_wait(s, c);
  if (status == GRAFT_STREAM_FAILED)
    ck_stream_has_failed(s, c->exec.exec.stream);
  else
    ck_is(status, GRAFT_OUT_OF_RANGE);
}

static void check_indices(ck_session *s) {
  ck_since(s, 2);
  each_of(s, index_probes, sizeof index_probes / sizeof *index_probes, visit_index);
}

/* A host of 1.1 knows nothing of GRAFT_CAP_HOST_CHECKS_INDICES. */
static void check_older_host(ck_session *s) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  s->host.abi_minor = 1;
  ck_adopt(s);
  ck_since(s, 2);
  ck_open_device(s);
  need_caps(s);
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i])) continue;
    if (ck_caps_of(s, &all[i]).flags & GRAFT_CAP_HOST_CHECKS_INDICES)
      ck_fail("it asks a host of version 1.1 to check the indices, which that one does not");
  }
}

/* What a device can't compute on, no op of it offers. */
static void check_dtypes(ck_session *s) {
  const uint64_t exempt =
      GRAFT_DTYPE_BIT(GRAFT_NUMBER_BOOL) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I32) | GRAFT_DTYPE_BIT(GRAFT_NUMBER_I64);
  ck_since(s, 2);
  need_caps(s);
  uint64_t dtypes = ck_property(s, GRAFT_DEVICE_DTYPES, 8, 0);
  if (!dtypes) ck_skip("the device does not say GRAFT_DEVICE_DTYPES");
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i]) || all[i].id == GRAFT_OP_TO_COPY) continue; /* a copy computes nothing */
    graft_op_caps caps = ck_caps_of(s, &all[i]);
    if (!caps.input_dtypes || !(caps.input_dtypes & ~exempt) || (caps.input_dtypes & (dtypes | exempt))) continue;
    char taken[CK_DTYPES_BYTES], named[CK_DTYPES_BYTES];
    ck_fail("it takes %s only; GRAFT_DEVICE_DTYPES is %s", ck_dtypes(taken, caps.input_dtypes),
            ck_dtypes(named, dtypes));
  }
}

/* Prepared without buffers, a call gives what it gave before. */
static void visit_prepare(ck_session *s, call *c) {
  unsigned char *first = ck_alloc(c->bytes), *second = ck_alloc(c->bytes);
  ck_doing("%s", c->schema->name);
  if (run(s, c) == GRAFT_UNIMPLEMENTED) return;
  check_untouched(s, c, false);
  memcpy(first, c->contents[c->count - 1] + c->offset, c->bytes);
  size_t memos = s->memo_count;
  graft_stream *stream = c->exec.exec.stream;
  for (unsigned k = 0; k < c->count; k++) c->tensors[k].dl.data = NULL;
  c->exec.exec.stream = NULL;
  ck_doing("prepare of %s, without buffers and stream", c->schema->name);
  graft_status said = s->plugin.prepare(&c->exec.exec, &c->args.head);
  if (said != GRAFT_UNIMPLEMENTED) ck_is(said, GRAFT_OK);
  for (unsigned k = 0; k < c->count; k++) c->tensors[k].dl.data = c->buffers[k];
  c->exec.exec.stream = stream;
  check_untouched(s, c, true);
  if (s->memo_count > memos) c->exec.exec.memo = s->memos[memos].value;
  CK_CALL(GRAFT_OK, run(s, c), "%s, prepared", c->schema->name);
  ck_read(s, stream, c->buffers[c->count - 1], c->offset, second, c->bytes);
  ck_same(second, first, c->bytes, "%s, prepared", c->schema->name);
}

static void check_prepare(ck_session *s) {
  ck_since(s, 2);
  if (!s->plugin.prepare) ck_skip("the plugin has no prepare");
  each_probe(s, visit_prepare);
}

static const ck_check checks[] = {
    {"op.unknown", "op_caps of an id that the plugin does not know is UNIMPLEMENTED.", CK_DEVICE,
     .run = check_unknown_op},
    {"op.caps", "op_caps answers for each slot that is there, always alike.", CK_DEVICE, .run = check_caps},
    {"op.caps_fit", "op_caps answers a host of any minor: it writes what fits into the struct, and nothing else.",
     CK_DEVICE, .run = check_caps_fit},
    {"op.bounds", "A slot writes all of its output and nothing else; UNIMPLEMENTED comes before any side effect.",
     CK_DEVICE, .run = check_bounds},
    {"op.newer_args", "args and exec may be larger than known.", CK_DEVICE, .run = check_newer},
    {"op.memo", "A call that finds its memo gives what the first one gave.", CK_DEVICE, .run = check_memo},
    {"op.numbers", "Memos that are said to ignore numbers serve all of them, and a slot serves all or none.", CK_DEVICE,
     .run = check_numbers},
    {"op.philox_state", "A slot reads philox.state where its capabilities say so, and else refuses it.", CK_DEVICE,
     .run = check_state},
    {"op.unknown_text", "A value of a str argument that a slot does not know is UNIMPLEMENTED.", CK_DEVICE,
     .run = check_unknown_text},
    {"op.indices", "An index out of range is OUT_OF_RANGE, at the call or at the next wait, or the host is to check.",
     CK_DEVICE, .run = check_indices},
    {"op.indices_older_host", "GRAFT_CAP_HOST_CHECKS_INDICES is said only to hosts that know it.", CK_DEVICE,
     .run = check_older_host, .fresh = true},
    {"op.dtypes", "Each op takes a dtype that GRAFT_DEVICE_DTYPES names.", CK_DEVICE, .run = check_dtypes},
    {"op.prepare", "prepare runs nothing, needs no buffers, and what it leaves serves the call.", CK_DEVICE,
     .run = check_prepare},
    {"op.query", "op_query agrees with the slot, and needs no buffers.", CK_DEVICE, .run = check_query},
};

const ck_table ck_op_checks = {checks, sizeof checks / sizeof *checks};
