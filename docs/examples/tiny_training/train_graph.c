/* Learns by running the recorded step again and again with libgraft, on a backend of choice.
 *
 *   tiny_train_graph FOLDER DATA [EPOCHS [PERCENT [BACKEND]]]
 *
 * FOLDER is what tiny_record wrote to, DATA docs/examples/data/digits.bin. Exit status 0 where more than
 * PERCENT (default: 95) of the digits that were held back are right. A step of the reference backend takes 20 ms. */
#include <graft/graft.h>
#include <string.h>

#include "digits.h"

static void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "tiny_train_graph: %s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

static graft_rt_device *device;
static graft_graph_exec *step_exec, *predict_exec;
static graft_tensor *weights[PARAMETERS];

static graft_graph *load(const char *folder, const char *name, graft_graph_exec **exec) {
  char path[4096];
  graft_graph *graph;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  must(graft_graph_load(device, path, &graph));
  must(graft_graph_compile(graph, device, NULL, exec));
  return graph;
}

static void run(graft_graph_exec *exec, graft_tensor **in, uint32_t count, float *values) {
  graft_tensor *out;
  must(graft_graph_run(exec, in, count, &out, 1));
  must(graft_tensor_to_host(out, values));
  graft_tensor_release(out);
}

static graft_tensor *images(const float *x, int64_t count) {
  graft_tensor *made;
  must(graft_tensor_from_host(device, GRAFT_F32, 4, (int64_t[]){count, 1, SIDE, SIDE}, x, &made));
  return made;
}

static void step(const float *x, const int64_t *target, float *loss) {
  graft_tensor *in[2 + PARAMETERS] = {images(x, BATCH)};
  must(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){BATCH}, target, &in[1]));
  memcpy(in + 2, weights, sizeof weights);
  run(step_exec, in, 2 + PARAMETERS, loss);
  graft_tensor_release(in[0]);
  graft_tensor_release(in[1]);
}

static void predict(const float *x, float *scores) {
  graft_tensor *in[1 + PARAMETERS] = {images(x, 1)};
  memcpy(in + 1, weights, sizeof weights);
  run(predict_exec, in, 1 + PARAMETERS, scores);
  graft_tensor_release(in[0]);
}

/* The first weights as the step takes them: in f32, or as whole numbers. */
static void make_weight(int which, graft_dtype dtype) {
  static float values[PIXELS * PIXELS];
  static int32_t whole[PIXELS * PIXELS];
  const parameter *p = &parameters[which];
  first_values(which, 1, values);
  first_whole_values(which, 1, whole);
  must(graft_tensor_from_host(device, dtype, p->ndim, p->sizes, dtype == GRAFT_F32 ? (const void *)values : whole,
                              &weights[which]));
}

static void make_weights(const graft_graph *step_graph) {
  graft_graph_port port;
  for (uint32_t i = 0; i < PARAMETERS; i++) {
    must(graft_graph_input_query(step_graph, 2 + i, &port, sizeof port));
    make_weight((int)i, port.dtype);
  }
}

int main(int argc, char **argv) {
  static digits train, held_back;
  graft_rt_backend *backend;
  if (argc < 3) {
    fprintf(stderr, "usage: tiny_train_graph FOLDER DATA [EPOCHS [PERCENT [BACKEND]]]\n");
    return 2;
  }
  load_digits(argv[2], &train, &held_back);
  must(graft_backend_open(argc > 5 ? argv[5] : "reference", NULL, &backend));
  must(graft_backend_device(backend, 0, &device));
  graft_graph *step_graph = load(argv[1], "step.safetensors", &step_exec);
  graft_graph_destroy(load(argv[1], "predict.safetensors", &predict_exec));
  make_weights(step_graph);
  graft_graph_destroy(step_graph);
  const int epochs = argc > 3 ? atoi(argv[3]) : 4;
  for (int epoch = 1; epoch <= epochs; epoch++) printf("epoch %d, loss %.4f\n", epoch, learn_epoch(&train, step));
  const double right = percent_right(&held_back, predict);
  printf("%.1f %% of the held-back digits are right\n", right);
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(weights[i]);
  graft_graph_exec_destroy(step_exec);
  graft_graph_exec_destroy(predict_exec);
  return right > (argc > 4 ? atof(argv[4]) : 95) ? 0 : 1;
}
