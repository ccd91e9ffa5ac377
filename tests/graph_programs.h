/* Programs of a few calls, for the tests of graphs: run once as they stand and once as a graph, on inputs alike;
 * results, inputs and the generator must then be the same to the bit. */
#ifndef GRAFT_TESTS_GRAPH_PROGRAMS_H
#define GRAFT_TESTS_GRAPH_PROGRAMS_H

#include <stdlib.h>
#include <string.h>

#include "bad_input.h"
#include "graft/graft.h"
#include "marks.h"
#include "tensor/tensor.h"

#define T(tensor) graft_value_tensor(tensor)
#define NUMBER(x) graft_value_scalar(graft_scalar_float(x))
#define ARGS(...) (const graft_value[]){__VA_ARGS__}, sizeof((const graft_value[]){__VA_ARGS__}) / sizeof(graft_value)

enum { MOST = 8, SCRAP = 512 };

typedef struct program_input {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[4];
  int64_t strides[4]; /* of the storage; all 0: contiguous */
  int64_t bytes;      /* of the storage, where strides are given */
} program_input;

typedef struct program {
  const char *name;
  program_input inputs[MOST];
  void (*run)(graft_tensor **in, graft_tensor **out);
  uint32_t noutputs;
  uint32_t nodes; /* that are left after all passes; 0: not looked at */
} program;

/* --- what programs are written with --- */

static graft_tensor *scrap[SCRAP];
static uint32_t nscrap;

/* Released when the program is over. */
static inline graft_tensor *later(graft_tensor *t) {
  ck_assert_uint_lt(nscrap, SCRAP);
  return scrap[nscrap++] = t;
}
static inline void sweep(void) {
  while (nscrap) graft_tensor_release(scrap[--nscrap]);
}
static inline graft_tensor *retained(graft_tensor *t) {
  graft_tensor_retain(t);
  return t;
}

static inline graft_tensor *calls(uint32_t op, const graft_value *args, size_t nargs) {
  graft_tensor *out = NULL;
  graft_status status = graft_call(op, args, (uint32_t)nargs, &out, 1);
  ck_assert_msg(!status, "%s", graft_last_error());
  return later(out);
}
static inline void writes(uint32_t op, graft_tensor *to, const graft_value *args, size_t nargs) {
  graft_status status = graft_call(op, args, (uint32_t)nargs, &to, 1);
  ck_assert_msg(!status, "%s", graft_last_error());
}
#define CALL(op, ...)      calls(GRAFT_OP_##op, ARGS(__VA_ARGS__))
#define WRITE(to, op, ...) writes(GRAFT_OP_##op, to, ARGS(__VA_ARGS__))
#define INTS(...)          graft_value_ints((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / 8)
#define TOTAL(x)           CALL(SUM_DIM_INTLIST, T(x), graft_value_ints(NULL, 0))
#define INT(x)             graft_value_int(x)

/* --- inputs --- */

static inline bool has_input(const program_input *in) {
  return in->dtype != GRAFT_DTYPE_NONE;
}
static inline uint32_t count_inputs(const program *p) {
  uint32_t n = 0;
  while (n < MOST && has_input(&p->inputs[n])) n++;
  return n;
}

/* Small numbers, some of them negative, none of them the same in neighbours. */
static inline void fill_bytes(graft_dtype dtype, unsigned char *bytes, int64_t count, uint32_t seed) {
  for (int64_t i = 0; i < count; i++) {
    double x = (double)((i * 7 + seed * 5) % 23) / 4 - 2.25;
    if (dtype == GRAFT_I64) x = (double)((i * 7 + seed) % 3);
    dt_store(dtype, bytes + i * (int64_t)dt_bytes(dtype), (dt_value){x, x / 2});
  }
}

static inline graft_tensor *new_input(graft_rt_device *device, const program_input *in, uint32_t seed) {
  int64_t strides[4], count = tns_numel(in->ndim, in->sizes);
  bool own = in->bytes != 0;
  memcpy(strides, in->strides, sizeof strides);
  if (!own) tns_contiguous_strides(in->ndim, in->sizes, strides);
  if (own) count = in->bytes / (int64_t)dt_bytes(in->dtype);
  unsigned char *bytes = malloc((size_t)count * dt_bytes(in->dtype) + 1);
  fill_bytes(in->dtype, bytes, count, seed);
  graft_tensor *whole, *view;
  OK(graft_tensor_from_host(device, in->dtype, 1, &count, bytes, &whole));
  OK(tns_new(whole->storage, device, in->dtype, in->ndim, in->sizes, strides, 0, &view));
  graft_tensor_release(whole);
  free(bytes);
  return view;
}

/* --- what is compared --- */

static inline void expect_same(const program *p, const char *what, uint32_t i, graft_tensor *is,
                               graft_tensor *expected) {
  ck_assert_msg(is->dtype == expected->dtype && tns_same_sizes(is, expected) &&
                    !memcmp(is->strides, expected->strides, (size_t)is->ndim * 8) && is->flags == expected->flags,
                "%s: %s %u is %s, expected %s", p->name, what, i, TNS_SHAPE(is), TNS_SHAPE(expected));
  size_t bytes = (size_t)is->numel * dt_bytes(is->dtype);
  unsigned char *a = malloc(bytes + 1), *b = malloc(bytes + 1);
  OK(graft_tensor_to_host(is, a));
  OK(graft_tensor_to_host(expected, b));
  for (size_t n = 0; n < bytes; n++) {
    ck_assert_msg(a[n] == b[n], "%s: %s %u differs in element %zu", p->name, what, i, n / dt_bytes(is->dtype));
  }
  free(a);
  free(b);
}

/* --- the two ways --- */

static inline void make_inputs(const program *p, graft_rt_device *device, graft_tensor **in) {
  for (uint32_t i = 0; i < count_inputs(p); i++) in[i] = new_input(device, &p->inputs[i], i + 1);
}

static inline void run_calls(const program *p, graft_tensor **in, graft_tensor **out) {
  p->run(in, out);
  sweep();
}

static inline graft_graph *record(const program *p, graft_rt_device *device, graft_tensor *const *like) {
  graft_graph *graph;
  graft_tensor *in[MOST], *out[MOST] = {0};
  char name[8] = "a";
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < count_inputs(p); i++, name[0]++) OK(graft_graph_input_like(graph, name, like[i], &in[i]));
  OK(graft_graph_record_begin(graph));
  p->run(in, out);
  OK(graft_graph_record_end(graph));
  for (uint32_t i = 0; i < p->noutputs; i++, name[0]++) {
    OK(graft_graph_output(graph, name, out[i]));
    graft_tensor_release(out[i]);
  }
  sweep();
  for (uint32_t i = 0; i < count_inputs(p); i++) graft_tensor_release(in[i]);
  return graph;
}

static inline void release_all(graft_tensor **tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) graft_tensor_release(tensors[i]);
}

/* --- tensors of a few values on the reference device --- */

static inline graft_rt_device *reference(void) {
  return graft_device_reference();
}

static inline graft_tensor *host(graft_dtype dtype, int64_t n, const void *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(reference(), dtype, 1, &n, values, &t));
  return t;
}

static inline void assert_says(graft_status is, graft_status expected, const char *text) {
  ck_assert_msg(is == expected, "status %d, expected %d: %s", is, expected, graft_last_error());
  ck_assert_msg(strstr(graft_last_error(), text) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), text);
}

static inline void expect_values(graft_tensor *t, int n, const float *expected) {
  float is[16];
  ck_assert_int_eq(t->numel, n);
  OK(graft_tensor_to_host(t, is));
  for (int i = 0; i < n; i++)
    ck_assert_msg(is[i] == expected[i], "element %d is %g, expected %g", i, is[i], expected[i]);
}

#endif
