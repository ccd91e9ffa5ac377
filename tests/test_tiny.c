/* Graphs as C sources: what a compiled source gives is what libgraft gives on the reference backend.
 *
 * A source is compiled as its users are told to, without a warning, and may ask the linker for expf, logf and the
 * functions of <string.h> alone. Bounds of errors: a sum of n products in f32, in any order, is off by at most
 * (n + 2) 2^-24 times the same sum of absolute values, and the reference, which rounds once, by one more of these; that
 * sum is the same graph run on absolute values. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graft/graft.h"
#include "suite.h"
#include "tiny/tiny.h"

#define OK(call) ck_assert_msg((call) == GRAFT_OK, "%s", graft_last_error())
enum { MOST_PORTS = 8 };

/* --- graphs --- */

typedef struct recorded {
  graft_graph *graph;
  graft_tensor *in[MOST_PORTS];
  uint32_t nin;
} recorded;

static void begin(recorded *r) {
  *r = (recorded){0};
  OK(graft_graph_create(graft_device_reference(), &r->graph));
}

static graft_tensor *take(recorded *r, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  char name[16];
  snprintf(name, sizeof name, "x%u", r->nin);
  OK(graft_graph_input(r->graph, name, dtype, ndim, sizes, NULL, &r->in[r->nin]));
  return r->in[r->nin++];
}
#define F32(r, ...) \
  take(r, GRAFT_F32, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void record(recorded *r) {
  OK(graft_graph_record_begin(r->graph));
}

static void give(recorded *r, const char *name, graft_tensor *value) {
  OK(graft_graph_output(r->graph, name, value));
  graft_tensor_release(value);
}

static void end(recorded *r) {
  OK(graft_graph_record_end(r->graph));
  for (uint32_t i = 0; i < r->nin; i++) graft_tensor_release(r->in[i]);
}

/* --- sources --- */

static char folder[] = "/tmp/test_tiny_XXXXXX";

static void make_folder(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static void shell(const char *format, const char *what) {
  char command[1024];
  snprintf(command, sizeof command, format, folder, what);
  ck_assert_msg(system(command) == 0, "%s", command);
}

static tiny_info emit(const graft_graph *graph, graft_tensor *const *values) {
  char path[64];
  tiny_info info;
  snprintf(path, sizeof path, "%s/source.c", folder);
  FILE *to = fopen(path, "w");
  ck_assert_ptr_nonnull(to);
  OK(tiny_emit(graph, &(tiny_options){.name = "graph", .values = values}, to, &info));
  fclose(to);
  return info;
}

/* Beside the source, a function that takes the arguments as an array: its signature is none that C can make up. */
static void write_caller(uint32_t count) {
  char path[64];
  snprintf(path, sizeof path, "%s/caller.c", folder);
  FILE *to = fopen(path, "w");
  ck_assert_ptr_nonnull(to);
  fputs("#define TINY_DECLARATIONS\n#include \"source.c\"\nvoid call(void **p);\nvoid call(void **p) { graph_run(", to);
  for (uint32_t i = 0; i < count; i++) fprintf(to, "%sp[%u]", i ? ", " : "", i);
  fputs("); }\n", to);
  fclose(to);
}

typedef void (*caller)(void **arguments);

/* The source, built beside its caller and loaded. */
static void *compiled(uint32_t arguments) {
  char path[64];
  write_caller(arguments);
  shell("cd %s && gcc -std=c11 -Os -Wall -Wextra -Werror -fPIC -c source.c%s", "");
  shell("cd %s && ! nm -u source.o | grep -vE ' (expf|logf|memset|memcpy|_GLOBAL_OFFSET_TABLE_)$' | grep .%s", "");
  shell("cd %s && gcc -std=c11 -fPIC -shared -o source.so caller.c source.o -lm%s", "");
  snprintf(path, sizeof path, "%s/source.so", folder);
  void *library = dlopen(path, RTLD_NOW);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

/* --- values --- */

static float drawn(uint32_t *state, int whole) {
  *state = *state * 1664525u + 1013904223u;
  const float unit = (float)(*state >> 8) / 16777216.0f * 2 - 1;
  return whole ? rintf(unit * 2) : unit;
}

typedef struct ports {
  void *data[MOST_PORTS];
  graft_dtype dtypes[MOST_PORTS];
  size_t counts[MOST_PORTS];
  uint32_t count;
} ports;

static void add_port(ports *p, const graft_graph_port *port) {
  size_t count = 1;
  for (int32_t d = 0; d < port->ndim; d++) count *= (size_t)port->sizes[d];
  p->data[p->count] = calloc(count, 8);
  p->dtypes[p->count] = port->dtype;
  p->counts[p->count++] = count;
}

static ports inputs_of(const graft_graph *graph, int whole) {
  ports p = {0};
  graft_graph_port port;
  uint32_t state = 11;
  for (uint32_t i = 0; i < graft_graph_input_count(graph); i++) {
    OK(graft_graph_input_query(graph, i, &port, sizeof port));
    add_port(&p, &port);
    for (size_t k = 0; k < p.counts[i]; k++) {
      const float v = drawn(&state, whole);
      if (p.dtypes[i] == GRAFT_F32)
        ((float *)p.data[i])[k] = v;
      else
        ((int64_t *)p.data[i])[k] = (int64_t)(k % 3);
    }
  }
  return p;
}

static ports outputs_of(const graft_graph *graph) {
  ports p = {0};
  graft_graph_port port;
  for (uint32_t i = 0; i < graft_graph_output_count(graph); i++) {
    OK(graft_graph_output_query(graph, i, &port, sizeof port));
    add_port(&p, &port);
  }
  return p;
}

static void free_ports(ports *p) {
  for (uint32_t i = 0; i < p->count; i++) free(p->data[i]);
}

/* By libgraft; inputs that are written come back in `in`. */
static ports run_graph(const graft_graph *graph, ports *in, uint32_t absolute) {
  ports out = outputs_of(graph);
  graft_graph_exec *exec;
  graft_tensor *given[MOST_PORTS], *made[MOST_PORTS];
  OK(graft_graph_compile(graph, graft_device_reference(), NULL, &exec));
  for (uint32_t i = 0; i < in->count; i++) {
    graft_graph_port port;
    OK(graft_graph_input_query(graph, i, &port, sizeof port));
    for (size_t k = 0; k < in->counts[i] && absolute >> i & 1; k++)
      ((float *)in->data[i])[k] = fabsf(((float *)in->data[i])[k]);
    OK(graft_tensor_from_host(graft_device_reference(), port.dtype, port.ndim, port.sizes, in->data[i], &given[i]));
  }
  OK(graft_graph_run(exec, given, in->count, made, out.count));
  for (uint32_t i = 0; i < in->count; i++) OK(graft_tensor_to_host(given[i], in->data[i]));
  for (uint32_t i = 0; i < out.count; i++) OK(graft_tensor_to_host(made[i], out.data[i]));
  for (uint32_t i = 0; i < in->count; i++) graft_tensor_release(given[i]);
  for (uint32_t i = 0; i < out.count; i++) graft_tensor_release(made[i]);
  graft_graph_exec_destroy(exec);
  return out;
}

static ports run_source(const graft_graph *graph, caller call, ports *in) {
  ports out = outputs_of(graph);
  void *arguments[2 * MOST_PORTS];
  memcpy(arguments, in->data, sizeof in->data);
  memcpy(arguments + in->count, out.data, sizeof out.data);
  call(arguments);
  return out;
}

/* --- a row: a graph, and how far off a source may be --- */

static const int64_t one[] = {1, 1}, zero[] = {0, 0};

static void products(recorded *r) {
  const graft_scalar unit = graft_scalar_int(1);
  graft_tensor *a = F32(r, 5, 7), *b = F32(r, 6, 7), *bias = F32(r, 6), *column = F32(r, 5, 1);
  graft_tensor *turned = NULL, *back = NULL, *mm = NULL, *addmm = NULL, *other = NULL;
  record(r);
  OK(graft_op_permute(b, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_mm(a, turned, &mm));
  OK(graft_op_addmm(bias, a, turned, unit, unit, &addmm));
  OK(graft_op_permute(a, (int64_t[]){1, 0}, 2, &back));
  OK(graft_op_addmm(column, a, back, unit, unit, &other));
  graft_tensor_release(turned);
  graft_tensor_release(back);
  give(r, "mm", mm);
  give(r, "addmm", addmm);
  give(r, "column", other);
}

enum { OUT_HEIGHT = 4, OUT_WIDTH = 3 }; /* of 7 by 8, by a kernel of 3 by 2 with the steps below */
static const int64_t stride[] = {2, 3}, padding[] = {1, 2}, dilation[] = {1, 3};

static void convolution(recorded *r) {
  graft_tensor *x = F32(r, 2, 3, 7, 8), *weight = F32(r, 4, 3, 3, 2), *bias = F32(r, 4), *y = NULL, *plain = NULL;
  record(r);
  OK(graft_op_convolution(x, weight, bias, stride, 2, padding, 2, dilation, 2, false, zero, 2, 1, &y));
  OK(graft_op_convolution(x, weight, NULL, one, 2, zero, 2, one, 2, false, zero, 2, 1, &plain));
  give(r, "y", y);
  give(r, "plain", plain);
}

static void convolution_gradients(recorded *r) {
  static const uint8_t all[] = {1, 1, 1};
  graft_tensor *grad = F32(r, 2, 4, OUT_HEIGHT, OUT_WIDTH), *x = F32(r, 2, 3, 7, 8), *weight = F32(r, 4, 3, 3, 2);
  graft_tensor *dx = NULL, *dweight = NULL, *dbias = NULL;
  record(r);
  OK(graft_op_convolution_backward(grad, x, weight, (int64_t[]){4}, 1, stride, 2, padding, 2, dilation, 2, false, zero,
                                   2, 1, all, &dx, &dweight, &dbias));
  give(r, "dx", dx);
  give(r, "dweight", dweight);
  give(r, "dbias", dbias);
}

static void sums(recorded *r) {
  graft_tensor *x = F32(r, 3, 4, 5), *outer = NULL, *inner = NULL, *both = NULL;
  record(r);
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){0}, 1, true, GRAFT_F32, &outer));
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){-1, 1}, 2, false, GRAFT_F32, &inner));
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){0, 2}, 2, false, GRAFT_F32, &both));
  give(r, "outer", outer);
  give(r, "inner", inner);
  give(r, "both", both);
}

/* A step in place: parameter -= 0.3 gradient, and what was before it as it is seen after it. */
static void step_in_place(recorded *r) {
  graft_tensor *weight = F32(r, 30), *grad = F32(r, 30), *scaled = NULL, *sum = NULL, *product = NULL;
  record(r);
  OK(graft_op_mul_Tensor(weight, grad, &scaled));
  OK(graft_op_add_Tensor(scaled, grad, graft_scalar_float(0.7), &sum));
  OK(graft_op_mul_Tensor(sum, scaled, &product)); /* the sum may not lie where `scaled` still is */
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_float(-0.3))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  graft_tensor_release(scaled);
  graft_tensor_release(sum);
  give(r, "product", product);
}

static void rectified(recorded *r) {
  graft_tensor *x = F32(r, 40), *grad = F32(r, 40), *y = NULL, *dx = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  OK(graft_op_threshold_backward(grad, x, graft_scalar_float(0.25), &dx));
  give(r, "y", y);
  give(r, "dx", dx);
}

/* Windows that overlap and reach over the edge. */
static void pooling(recorded *r) {
  static const int64_t kernel[] = {3, 2}, steps[] = {2, 1}, edge[] = {1, 1};
  graft_tensor *x = F32(r, 2, 3, 7, 6), *grad = F32(r, 2, 3, 4, 7), *y = NULL, *places = NULL, *dx = NULL;
  record(r);
  OK(graft_op_max_pool2d_with_indices(x, kernel, 2, steps, 2, edge, 2, one, 2, false, &y, &places));
  OK(graft_op_max_pool2d_with_indices_backward(grad, x, kernel, 2, steps, 2, edge, 2, one, 2, false, places, &dx));
  give(r, "y", y);
  give(r, "places", places);
  give(r, "dx", dx);
}

/* Two gradients of two losses; the second label of each three is one that does not count. */
static void losses(recorded *r) {
  enum { ROWS_ = 6, CLASSES = 10, IGNORED = 1 };
  graft_tensor *x = F32(r, ROWS_, CLASSES), *grad = F32(r, ROWS_, CLASSES);
  graft_tensor *target = take(r, GRAFT_I64, 1, (int64_t[]){ROWS_}), *loss_grad = F32(r, 1);
  graft_tensor *logs = NULL, *dx = NULL, *scalar = NULL;
  record(r);
  OK(graft_op_log_softmax(x, 1, false, &logs));
  OK(graft_op_log_softmax_backward_data(grad, logs, 1, GRAFT_F32, &dx));
  OK(graft_op_view(loss_grad, NULL, 0, &scalar));
  for (int64_t mean = 1; mean <= 2; mean++) { /* 2: the sum */
    graft_tensor *loss = NULL, *total = NULL, *dlogs = NULL;
    OK(graft_op_nll_loss_forward(logs, target, NULL, mean, IGNORED, &loss, &total));
    OK(graft_op_nll_loss_backward(scalar, logs, target, NULL, mean, IGNORED, total, &dlogs));
    give(r, mean == 1 ? "mean" : "sum", loss);
    give(r, mean == 1 ? "dmean" : "dsum", dlogs);
    graft_tensor_release(total);
  }
  graft_tensor_release(scalar);
  give(r, "logs", logs);
  give(r, "dx", dx);
}

/* A step of a network on whole numbers and a loss without a softmax: nothing is rounded anywhere, so all bits agree,
 * whatever lies where in memory. */
static void exact_step(recorded *r) {
  static const int64_t two[] = {2, 2};
  graft_tensor *x = F32(r, 2, 2, 6, 6), *target = take(r, GRAFT_I64, 1, (int64_t[]){2});
  graft_tensor *parameters[] = {F32(r, 3, 2, 3, 3), F32(r, 3), F32(r, 27, 4), F32(r, 4)};
  graft_tensor *sums_ = NULL, *active = NULL, *pooled = NULL, *places = NULL, *flat = NULL, *scores = NULL;
  graft_tensor *loss = NULL, *total = NULL;
  const graft_scalar unit = graft_scalar_int(1);
  for (int i = 0; i < 4; i++) OK(graft_tensor_set_requires_grad(parameters[i], true));
  record(r);
  OK(graft_op_convolution(x, parameters[0], parameters[1], one, 2, one, 2, one, 2, false, zero, 2, 1, &sums_));
  OK(graft_op_relu(sums_, &active));
  OK(graft_op_max_pool2d_with_indices(active, two, 2, two, 2, zero, 2, one, 2, false, &pooled, &places));
  OK(graft_op_view(pooled, (int64_t[]){2, 27}, 2, &flat));
  OK(graft_op_addmm(parameters[3], flat, parameters[2], unit, unit, &scores));
  OK(graft_op_nll_loss_forward(scores, target, NULL, 2, -100, &loss, &total));
  OK(graft_backward(&loss, NULL, 1, 0));
  graft_grad_mode_set(false);
  for (int i = 0; i < 4; i++) {
    const graft_value call[] = {graft_value_tensor(parameters[i]), graft_value_tensor(graft_tensor_grad(parameters[i])),
                                graft_value_scalar(graft_scalar_float(0.25))};
    OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &parameters[i], 1));
    OK(graft_tensor_set_grad(parameters[i], NULL));
  }
  graft_grad_mode_set(true);
  graft_tensor *inner[] = {sums_, active, pooled, places, flat, scores, total};
  for (int i = 0; i < 7; i++) graft_tensor_release(inner[i]);
  give(r, "loss", loss);
}

/* A batch of none: there is no value that takes memory, but calls that name where one would lie. */
static void empty_batch(recorded *r) {
  graft_tensor *x = F32(r, 0, 4), *weight = F32(r, 4, 3), *image = F32(r, 0, 2, 5, 5), *filter = F32(r, 2, 2, 3, 3);
  graft_tensor *active = NULL, *scores = NULL, *logs = NULL, *filtered = NULL;
  record(r);
  OK(graft_op_relu(x, &active));
  OK(graft_op_mm(active, weight, &scores));
  OK(graft_op_log_softmax(scores, 1, false, &logs));
  OK(graft_op_convolution(image, filter, NULL, one, 2, one, 2, one, 2, false, zero, 2, 1, &filtered));
  graft_tensor_release(active);
  graft_tensor_release(scores);
  give(r, "logs", logs);
  give(r, "filtered", filtered);
}

/* An argument is written from values without elements: only what is read lies where values do. */
static void empty_sum(recorded *r) {
  graft_tensor *x = F32(r, 3, 0), *weight = F32(r, 0, 2), *sum = F32(r, 3, 2), *active = NULL;
  record(r);
  OK(graft_op_relu(x, &active));
  OK(graft_call(GRAFT_OP_MM, (graft_value[]){graft_value_tensor(active), graft_value_tensor(weight)}, 2, &sum, 1));
  graft_tensor_release(active);
}

/* terms: of the longest sum; its bound is (terms + 3) 2^-24 times the sum of absolute values, which is what the graph
 * gives for the absolute values of the inputs in the mask `absolute`. flat: a bound of its own, in 2^-24, for what is
 * no such sum. Both 0: to the bit. */
static const struct row {
  const char *name;
  void (*record)(recorded *r);
  int terms;
  uint32_t absolute;
  double flat;
  int whole;
} rows[] = {
    {"products", products, 8, 15, 0, 0},
    {"convolution", convolution, 3 * 3 * 2 + 1, 7, 0, 0},
    {"convolution_gradients", convolution_gradients, 2 * OUT_HEIGHT *OUT_WIDTH, 7, 0,
     0}, /* a weight's; an x's: 4 * 6 */
    {"sums", sums, 20, 1, 0, 0},
    {"step_in_place", step_in_place, 4, 3, 0, 0}, /* 0.7 in f32, two products, two sums */
    {"rectified", rectified, 0, 0, 0, 0},
    {"pooling", pooling, 6, 2, 0, 0}, /* an x lies in at most 2 by 2 windows */
    /* Of 10 numbers from -1 to 1: log_softmax is off by its exp (the argument, 2 at most, and 2 for expf), 9 sums,
     * logf (2 of log 10 < 3), two subtractions (2 + 5): 30; its gradient by exp of those 30 and 3 more, times the sum
     * of at most 10, and by 9 of that sum and one product and one subtraction each: 30 * 10 + 9 * 10 + 2 * 10 + 11; a
     * loss by six of the first and as many sums of numbers up to 5. */
    {"losses", losses, 0, 0, 30 * 10 + 9 * 10 + 2 * 10 + 11, 0},
    {"exact_step", exact_step, 0, 0, 0, 1},
    {"empty_batch", empty_batch, 0, 0, 0, 0},
    {"empty_sum", empty_sum, 0, 0, 0, 0},
};

static void compare(const struct row *row, const ports *got, const ports *wanted, const ports *sums_,
                    const char *what) {
  for (uint32_t i = 0; i < got->count; i++) {
    for (size_t k = 0; k < got->counts[i]; k++) {
      if (got->dtypes[i] != GRAFT_F32) {
        ck_assert_int_eq(((int64_t *)got->data[i])[k], ((int64_t *)wanted->data[i])[k]);
        continue;
      }
      const double g = ((float *)got->data[i])[k], w = ((float *)wanted->data[i])[k];
      const double most = row->terms ? (row->terms + 3) * fabs((double)((float *)sums_->data[i])[k]) : row->flat;
      ck_assert_msg(fabs(g - w) <= most * 0x1p-24, "%s: %s %u, element %zu is %.9g, on the reference %.9g", row->name,
                    what, i, k, g, w);
    }
  }
}

START_TEST(gives_what_the_graph_gives) {
  const struct row *row = &rows[_i];
  recorded r;
  begin(&r);
  row->record(&r);
  end(&r);
  emit(r.graph, NULL);
  caller call = (caller)dlsym(compiled(r.nin + graft_graph_output_count(r.graph)), "call");
  ports in = inputs_of(r.graph, row->whole), mine = inputs_of(r.graph, row->whole),
        sum_in = inputs_of(r.graph, row->whole);
  ports wanted = run_graph(r.graph, &in, 0), sums_ = run_graph(r.graph, &sum_in, row->absolute);
  ports got = run_source(r.graph, call, &mine);
  compare(row, &got, &wanted, &sums_, "output");
  compare(row, &mine, &in, &sum_in, "input");
  ports *all[] = {&in, &mine, &sum_in, &wanted, &sums_, &got};
  for (int i = 0; i < 6; i++) free_ports(all[i]);
  graft_graph_destroy(r.graph);
}
END_TEST

/* An input with values is an array of the source, which a run changes where the graph writes to it. */
START_TEST(holds_first_values) {
  recorded r;
  begin(&r);
  graft_tensor *weight = F32(&r, 3), *grad = F32(&r, 3);
  record(&r);
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_int(1))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  end(&r);
  graft_tensor *values[2] = {NULL};
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){3}, (float[]){1, -0.1f, INFINITY},
                            &values[0]));
  const tiny_info info = emit(r.graph, values);
  ck_assert_uint_eq(info.arena_bytes, 0);
  ck_assert_uint_eq(info.updated_bytes, 12);
  ck_assert_uint_eq(info.constant_bytes, 0);
  void *library = compiled(1);
  caller run = (caller)dlsym(library, "call");
  const float *held = dlsym(library, "graph_x0");
  ck_assert(held[0] == 1 && held[1] == -0.1f && held[2] == INFINITY);
  run((void *[]){(float[]){0.5f, 0, 0}});
  ck_assert(held[0] == 0.5f && held[1] == -0.1f && held[2] == INFINITY);
  graft_tensor_release(values[0]);
  graft_graph_destroy(r.graph);
}
END_TEST

static graft_tensor *take_named(recorded *r, const char *name) {
  OK(graft_graph_input(r->graph, name, GRAFT_F32, 1, (int64_t[]){2}, NULL, &r->in[r->nin]));
  return r->in[r->nin++];
}

/* weight -= grad, as modules of PyTorch name such inputs, and the weight again under a name with a point. */
static void dotted_step(recorded *r) {
  begin(r);
  graft_tensor *weight = take_named(r, "model.0.weight"), *grad = take_named(r, "0.grad");
  record(r);
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_int(1))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  OK(graft_graph_output(r->graph, "stepped.0", weight));
  end(r);
}

static void expect_step(void *library, float first, float second) {
  float stepped[2] = {0};
  const float *held = dlsym(library, "graph_model_0_weight");
  ck_assert_ptr_nonnull(held);
  ((caller)dlsym(library, "call"))((void *[]){(float[]){0.5f, 4}, stepped});
  ck_assert(held[0] == first && held[1] == second);
  ck_assert(stepped[0] == first && stepped[1] == second);
}

/* By the program, with these options, from the graph in the folder. */
static void emit_by_program(const char *options) {
  shell("cd %s && " GRAFT_BINARY_DIR "/bin/graft tiny graph.safetensors %s -o source.c >said 2>&1 || ! cat said",
        options);
}

/* A point is _ in C, and an input that has a value in the file begins with it where no other is given. */
START_TEST(holds_values_of_the_file) {
  recorded r;
  char path[64];
  graft_tensor *value;
  dotted_step(&r);
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){2}, (float[]){2, 8}, &value));
  OK(graft_graph_input_set_value(r.graph, 0, value));
  snprintf(path, sizeof path, "%s/graph.safetensors", folder);
  OK(graft_graph_save(r.graph, path));
  emit_by_program("");
  void *library = compiled(2);
  expect_step(library, 1.5f, 4);
  expect_step(library, 1, 0);
  emit_by_program("-i model.0.weight=random:1");
  shell("cd %s && ! grep -q '0x1p+1f, 0x1p+3f' source.c && grep -q 'float graph_model_0_weight.2. = {' source.c%s", "");
  graft_tensor_release(value);
  graft_graph_destroy(r.graph);
}
END_TEST

/* --- what is refused --- */

static void unknown_op(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_gelu(x, "none", &y));
  give(r, "y", y);
}

static void turned_operand(recorded *r) {
  graft_tensor *x = F32(r, 3, 2), *turned = NULL, *y = NULL;
  record(r);
  OK(graft_op_permute(x, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_log_softmax(turned, 1, false, &y));
  graft_tensor_release(turned);
  give(r, "y", y);
}

static void broadcast(recorded *r) {
  graft_tensor *x = F32(r, 3, 2), *row = F32(r, 2), *y = NULL;
  record(r);
  OK(graft_op_add_Tensor(x, row, graft_scalar_int(1), &y));
  give(r, "y", y);
}

static void number(recorded *r) {
  graft_tensor *x = F32(r, 1), *y = NULL;
  record(r);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(x), graft_value_float(2)}, 2, &y, 1));
  give(r, "y", y);
}

static void doubles(recorded *r) {
  graft_tensor *x = take(r, GRAFT_F64, 1, (int64_t[]){3}), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

static void whole_numbers(recorded *r) {
  graft_tensor *x = take(r, GRAFT_I32, 1, (int64_t[]){3}), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

static void grouped(recorded *r) {
  graft_tensor *x = F32(r, 1, 2, 4, 4), *weight = F32(r, 2, 1, 3, 3), *y = NULL;
  record(r);
  OK(graft_op_convolution(x, weight, NULL, one, 2, one, 2, one, 2, false, zero, 2, 2, &y));
  give(r, "y", y);
}

static void odd_name(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "layer 0", y);
}

static void one_name(recorded *r) {
  graft_tensor *x = take_named(r, "a.b_c"), *other = take_named(r, "a_b.c"), *y = NULL;
  record(r);
  OK(graft_op_mul_Tensor(x, other, &y));
  give(r, "y", y);
}

static void one_output_name(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL, *z = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  OK(graft_op_mul_Tensor(x, y, &z));
  give(r, "y.0", y);
  give(r, "y_0", z);
}

static void spread_windows(recorded *r) {
  static const int64_t kernel[] = {2, 2}, two[] = {2, 2};
  graft_tensor *x = F32(r, 1, 5, 5), *y = NULL, *places = NULL;
  record(r);
  OK(graft_op_max_pool2d_with_indices(x, kernel, 2, one, 2, zero, 2, two, 2, false, &y, &places));
  graft_tensor_release(places);
  give(r, "y", y);
}

static void taken_name(recorded *r) {
  graft_tensor *x = take_named(r, "ARENA.BYTES"), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

static const struct refused {
  void (*record)(recorded *r);
  const char *says[2];
} refusals[] = {
    {unknown_op, {"aten::gelu", "aten::convolution"}},
    {turned_operand, {"aten::_log_softmax", "follow each other"}},
    {broadcast, {"aten::add.Tensor", "broadcast"}},
    {number, {"aten::add.Tensor", "other is a number"}},
    {doubles, {"x0", "f64"}},
    {whole_numbers, {"aten::relu", "i32"}},
    {grouped, {"aten::convolution", "groups"}},
    {odd_name, {"'layer 0'", "letters"}},
    {one_name, {"inputs 'a.b_c' and 'a_b.c'", "a_b_c"}},
    {one_output_name, {"outputs 'y.0' and 'y_0'", "otherwise"}},
    {spread_windows, {"aten::max_pool2d_with_indices", "dilation"}},
    {taken_name, {"'ARENA_BYTES'", "otherwise"}},
};

START_TEST(refuses) {
  recorded r;
  tiny_info info;
  begin(&r);
  refusals[_i].record(&r);
  end(&r);
  FILE *to = fopen("/dev/null", "w");
  ck_assert_int_ne(tiny_emit(r.graph, &(tiny_options){.name = "graph"}, to, &info), GRAFT_OK);
  for (int i = 0; i < 2; i++)
    ck_assert_msg(strstr(graft_last_error(), refusals[_i].says[i]) != NULL, "%s", graft_last_error());
  fclose(to);
  graft_graph_destroy(r.graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(gives_what_the_graph_gives, ROWS(rows)),
                              ONCE(holds_first_values),
                              ONCE(holds_values_of_the_file),
                              EACH(refuses, ROWS(refusals)),
                              {0}};
  return run_suite("tiny", tests, (suite_options){.timeout_s = 120, .setup = make_folder, .teardown = remove_folder});
}
