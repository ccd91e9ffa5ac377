/* Records a network that learns handwritten digits, as two graphs in files, and its first weights.
 *
 *   tiny_record FOLDER [UPDATE [NUMBERS [RATE [SEED]]]]
 *
 * FOLDER receives step.safetensors (a batch: forward, loss, gradients, SGD), predict.safetensors (one digit) and a .npy
 * file for each parameter. UPDATE says what a step changes: "all" (default), "linear", the last layer, "biases", or
 * "channels", the last layer and half of the second convolution's. NUMBERS are "f32" (default) or "i8", and to see what
 * these need: "i8-unscaled", whose gradients are not scaled, and "i8-nearest", whose weights are rounded to the nearest
 * number. RATE is how far a step goes (0.1), and SEED what the first weights are drawn from (1). Gradients that nobody
 * asked for are not recorded, and values that only these would read are never kept. */
#include <string.h>

#include "network.h"

static graft_tensor *cross_entropy(graft_tensor *scores, graft_tensor *target) {
  graft_tensor *logs = NULL, *loss = NULL, *total = NULL;
  must(graft_op_log_softmax(scores, 1, false, &logs));
  must(graft_op_nll_loss_forward(logs, target, NULL, 1, -100, &loss, &total));
  graft_tensor_release(logs);
  graft_tensor_release(total);
  return loss;
}

/* --- the graphs --- */

static graft_tensor *input(graft_graph *graph, const char *name, graft_dtype dtype, int ndim, const int64_t *sizes) {
  graft_tensor *made;
  must(graft_graph_input(graph, name, dtype, ndim, sizes, NULL, &made));
  return made;
}

static graft_dtype dtype_of(const recipe *r, int which) {
  if (!r->quantized) return GRAFT_F32;
  return parameters[which].inputs ? GRAFT_I8 : GRAFT_I32;
}

static void parameter_inputs(graft_graph *graph, const recipe *r, graft_tensor **p) {
  for (int i = 0; i < PARAMETERS; i++)
    p[i] = input(graph, parameters[i].name, dtype_of(r, i), parameters[i].ndim, parameters[i].sizes);
}

static void save(graft_graph *graph, const char *folder, const char *name, const char *output, graft_tensor *value) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, output, value));
  must(graft_graph_save(graph, path));
  graft_graph_destroy(graph);
}

static void record_step(const char *folder, const recipe *r) {
  graft_graph *graph;
  network n;
  must(graft_graph_create(graft_device_reference(), &graph));
  graft_tensor *x = input(graph, "x", GRAFT_F32, 4, (int64_t[]){BATCH, 1, SIDE, SIDE});
  graft_tensor *target = input(graph, "target", GRAFT_I64, 1, (int64_t[]){BATCH});
  parameter_inputs(graph, r, n.parameters);
  must(graft_graph_record_begin(graph));
  network_begin(&n, r, true);
  graft_tensor *scores = network_forward(&n, x), *loss = cross_entropy(scores, target);
  network_learn(&n, loss);
  network_end(&n);
  save(graph, folder, "step.safetensors", "loss", loss);
  graft_tensor_release(x);
  graft_tensor_release(target);
  graft_tensor_release(scores);
  graft_tensor_release(loss);
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(n.parameters[i]);
}

static void record_predict(const char *folder, const recipe *r) {
  graft_graph *graph;
  network n;
  must(graft_graph_create(graft_device_reference(), &graph));
  graft_tensor *x = input(graph, "x", GRAFT_F32, 4, (int64_t[]){1, 1, SIDE, SIDE});
  parameter_inputs(graph, r, n.parameters);
  must(graft_graph_record_begin(graph));
  network_begin(&n, r, false);
  graft_tensor *scores = network_forward(&n, x);
  network_end(&n);
  save(graph, folder, "predict.safetensors", "scores", scores);
  graft_tensor_release(x);
  graft_tensor_release(scores);
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(n.parameters[i]);
}

/* --- the first weights --- */

/* As the graphs take it, in memory of this function. */
static const void *first_bytes(const recipe *r, int which, const char **descr, size_t *bytes) {
  static float exact[PIXELS * PIXELS];
  static int32_t whole[PIXELS * PIXELS];
  const size_t count = (size_t)parameter_count(&parameters[which]);
  first_values(which, r->seed, exact);
  first_whole_values(which, r->seed, whole);
  *descr = !r->quantized ? "<f4" : parameters[which].inputs ? "|i1" : "<i4";
  *bytes = count * (dtype_of(r, which) == GRAFT_I8 ? 1 : 4);
  return r->quantized ? (const void *)whole : exact;
}

/* Version 1.0 of the format: magic, the length of a header that is filled up to 64 bytes, the header, the values. */
static void write_npy(const char *folder, const recipe *r, int which) {
  const parameter *p = &parameters[which];
  char path[4096], shape[64] = "", header[128];
  const char *descr;
  size_t bytes;
  const void *values = first_bytes(r, which, &descr, &bytes);
  snprintf(path, sizeof path, "%s/%s.npy", folder, p->name);
  for (int d = 0; d < p->ndim; d++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%d,", (int)p->sizes[d]);
  const int used =
      snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
  memset(header + used, ' ', (size_t)(117 - used));
  header[117] = '\n';
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) == 10 && fwrite(header, 118, 1, file) == 1 &&
              fwrite(values, 1, bytes, file) == bytes;
  if (file && fclose(file)) good = false;
  if (good) return;
  perror(path);
  exit(1);
}

/* --- the choice --- */

static const char *const updates[] = {
    [UPDATE_ALL] = "all", [UPDATE_LINEAR] = "linear", [UPDATE_BIASES] = "biases", [UPDATE_CHANNELS] = "channels"};
static const struct numbers {
  const char *name;
  bool quantized, scaled, nearest;
} numbers[] = {{"f32", false, false, false},
               {"i8", true, true, false},
               {"i8-unscaled", true, false, false},
               {"i8-nearest", true, true, true}};

static bool take_update(const char *name, recipe *r) {
  for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
    if (strcmp(name, updates[i]) != 0) continue;
    r->update = (update)i;
    return true;
  }
  return false;
}

static bool take_numbers(const char *name, recipe *r) {
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strcmp(name, numbers[i].name) != 0) continue;
    r->quantized = numbers[i].quantized;
    r->scaled = numbers[i].scaled;
    r->nearest = numbers[i].nearest;
    return true;
  }
  return false;
}

int main(int argc, char **argv) {
  recipe r = {.rate = argc > 4 ? atof(argv[4]) : 0.1, .seed = argc > 5 ? (uint32_t)atoi(argv[5]) : 1};
  if (argc < 2 || argc > 6 || !take_update(argc > 2 ? argv[2] : "all", &r) ||
      !take_numbers(argc > 3 ? argv[3] : "f32", &r) || !(r.rate > 0)) {
    fprintf(stderr,
            "usage: tiny_record FOLDER [all|linear|biases|channels [f32|i8|i8-unscaled|i8-nearest [RATE [SEED]]]]\n");
    return 2;
  }
  record_step(argv[1], &r);
  record_predict(argv[1], &r);
  for (int i = 0; i < PARAMETERS; i++) write_npy(argv[1], &r, i);
  return 0;
}
