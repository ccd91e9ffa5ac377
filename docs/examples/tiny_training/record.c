/* Records a network that learns handwritten digits, as two graphs in files, and its first weights.
 *
 *   tiny_record FOLDER [UPDATE]
 *
 * FOLDER receives step.safetensors (a batch: forward, loss, gradients, SGD), predict.safetensors (one digit) and a .npy
 * file for each parameter. UPDATE says what a step changes: "all" (default), "biases" or "linear", the last layer.
 * Gradients that nobody asked for are not recorded, and values that only these would read are never kept. */
#include <graft/graft.h>
#include <string.h>

#include "digits.h"

static void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "tiny_record: %s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

/* --- the network --- */

/* max_pool2d(relu(conv2d(x))), the windows 2 by 2; the convolution 3 by 3, with zeros around. */
static graft_tensor *block(graft_tensor *x, graft_tensor *weight, graft_tensor *bias) {
  static const int64_t one[] = {1, 1}, zero[] = {0, 0}, two[] = {2, 2};
  graft_tensor *sums = NULL, *active = NULL, *pooled = NULL, *places = NULL;
  must(graft_op_convolution(x, weight, bias, one, 2, one, 2, one, 2, false, zero, 2, 1, &sums));
  must(graft_op_relu(sums, &active));
  must(graft_op_max_pool2d_with_indices(active, two, 2, two, 2, zero, 2, one, 2, false, &pooled, &places));
  graft_tensor_release(sums);
  graft_tensor_release(active);
  graft_tensor_release(places);
  return pooled;
}

static graft_tensor *forward(graft_tensor *x, graft_tensor *const *p) {
  const graft_scalar one = graft_scalar_int(1);
  graft_tensor *flat = NULL, *scores = NULL;
  graft_tensor *edges = block(x, p[CONV1_WEIGHT], p[CONV1_BIAS]);
  graft_tensor *features = block(edges, p[CONV2_WEIGHT], p[CONV2_BIAS]);
  must(graft_op_view(features, (int64_t[]){graft_tensor_sizes(x)[0], 4 * CHANNELS_2}, 2, &flat));
  must(graft_op_addmm(p[LINEAR_BIAS], flat, p[LINEAR_WEIGHT], one, one, &scores));
  graft_tensor_release(edges);
  graft_tensor_release(features);
  graft_tensor_release(flat);
  return scores;
}

static graft_tensor *cross_entropy(graft_tensor *scores, graft_tensor *target) {
  graft_tensor *logs = NULL, *loss = NULL, *total = NULL;
  must(graft_op_log_softmax(scores, 1, false, &logs));
  must(graft_op_nll_loss_forward(logs, target, NULL, 1, -100, &loss, &total));
  graft_tensor_release(logs);
  graft_tensor_release(total);
  return loss;
}

/* parameter -= rate * its gradient */
static void update(graft_tensor *parameter, double rate) {
  const graft_value call[] = {graft_value_tensor(parameter), graft_value_tensor(graft_tensor_grad(parameter)),
                              graft_value_scalar(graft_scalar_float(rate))};
  const bool before = graft_grad_mode_set(false);
  must(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &parameter, 1));
  graft_grad_mode_set(before);
  must(graft_tensor_set_grad(parameter, NULL));
}

/* --- the graphs --- */

static bool is_updated(int which, const char *choice) {
  if (!strcmp(choice, "all")) return true;
  if (!strcmp(choice, "biases")) return which == CONV1_BIAS || which == CONV2_BIAS || which == LINEAR_BIAS;
  return which == LINEAR_WEIGHT || which == LINEAR_BIAS;
}

static graft_tensor *input(graft_graph *graph, const char *name, graft_dtype dtype, int ndim, const int64_t *sizes) {
  graft_tensor *made;
  must(graft_graph_input(graph, name, dtype, ndim, sizes, NULL, &made));
  return made;
}

static void parameter_inputs(graft_graph *graph, graft_tensor **p) {
  for (int i = 0; i < PARAMETERS; i++)
    p[i] = input(graph, parameters[i].name, GRAFT_F32, parameters[i].ndim, parameters[i].sizes);
}

static void save(graft_graph *graph, const char *folder, const char *name, const char *output, graft_tensor *value) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, output, value));
  must(graft_graph_save(graph, path));
  graft_graph_destroy(graph);
}

static void record_step(const char *folder, const char *choice) {
  graft_graph *graph;
  graft_tensor *p[PARAMETERS];
  must(graft_graph_create(graft_device_reference(), &graph));
  graft_tensor *x = input(graph, "x", GRAFT_F32, 4, (int64_t[]){BATCH, 1, SIDE, SIDE});
  graft_tensor *target = input(graph, "target", GRAFT_I64, 1, (int64_t[]){BATCH});
  parameter_inputs(graph, p);
  for (int i = 0; i < PARAMETERS; i++) must(graft_tensor_set_requires_grad(p[i], is_updated(i, choice)));
  must(graft_graph_record_begin(graph));
  graft_tensor *scores = forward(x, p), *loss = cross_entropy(scores, target);
  must(graft_backward(&loss, NULL, 1, 0));
  for (int i = 0; i < PARAMETERS; i++) {
    if (is_updated(i, choice)) update(p[i], 0.1);
  }
  save(graph, folder, "step.safetensors", "loss", loss);
  graft_tensor_release(x);
  graft_tensor_release(target);
  graft_tensor_release(scores);
  graft_tensor_release(loss);
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(p[i]);
}

static void record_predict(const char *folder) {
  graft_graph *graph;
  graft_tensor *p[PARAMETERS];
  must(graft_graph_create(graft_device_reference(), &graph));
  graft_tensor *x = input(graph, "x", GRAFT_F32, 4, (int64_t[]){1, 1, SIDE, SIDE});
  parameter_inputs(graph, p);
  must(graft_graph_record_begin(graph));
  graft_tensor *scores = forward(x, p);
  save(graph, folder, "predict.safetensors", "scores", scores);
  graft_tensor_release(x);
  graft_tensor_release(scores);
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(p[i]);
}

/* --- the first weights --- */

/* Version 1.0 of the format: magic, the length of a header that is filled up to 64 bytes, the header, the values. */
static void write_npy(const char *folder, int which) {
  static float values[PIXELS * PIXELS];
  const parameter *p = &parameters[which];
  char path[4096], shape[64] = "", header[128];
  snprintf(path, sizeof path, "%s/%s.npy", folder, p->name);
  for (int d = 0; d < p->ndim; d++)
    snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%d,", (int)p->sizes[d]);
  const int used = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
  memset(header + used, ' ', (size_t)(117 - used));
  header[117] = '\n';
  first_values(which, values);
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) == 10 && fwrite(header, 118, 1, file) == 1 &&
              fwrite(values, sizeof *values, (size_t)parameter_count(p), file) == (size_t)parameter_count(p);
  if (file && fclose(file)) good = false;
  if (good) return;
  perror(path);
  exit(1);
}

int main(int argc, char **argv) {
  const char *choice = argc > 2 ? argv[2] : "all";
  if (argc < 2 || (strcmp(choice, "all") != 0 && strcmp(choice, "biases") != 0 && strcmp(choice, "linear") != 0)) {
    fprintf(stderr, "usage: tiny_record FOLDER [all|biases|linear]\n");
    return 2;
  }
  record_step(argv[1], choice);
  record_predict(argv[1]);
  for (int i = 0; i < PARAMETERS; i++) write_npy(argv[1], i);
  return 0;
}
