/* Trains a two-layer network on handwritten digits through a backend that is loaded at run time.
 *
 *   train_digits DATA [BACKEND [EPOCHS]]
 *
 * DATA is docs/examples/data/digits.bin; BACKEND a name or the path of a plugin (default: opencl). Every fifth digit is
 * held back, and the accuracy on those is printed at the end. Exit status 0 when it is above 95 %.
 *
 * What the example shows: opening a backend, tensors, ops through their typed wrappers, backward, a fused optimizer
 * step, in-place updates, and the counter of what left the device. */
#include <graft/graft.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, RECORD = 1 + PIXELS, BATCH = 128, PARAMETERS = 4 };

/* Ends the program with libgraft's text when a call failed. */
static void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "train_digits: %s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

/* --- data --- */

typedef struct dataset {
  int count;
  float *images;   /* count x PIXELS, 0 to 1 */
  int64_t *labels; /* count */
} dataset;

static void append(dataset *set, const unsigned char *record) {
  for (int i = 0; i < PIXELS; i++) set->images[set->count * PIXELS + i] = (float)record[1 + i] / 16.0f;
  set->labels[set->count++] = record[0];
}

static void load(const char *path, dataset *train, dataset *held_back) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(2);
  }
  unsigned char record[RECORD];
  for (int n = 0; fread(record, RECORD, 1, file) == 1; n++) {
    dataset *set = n % 5 == 4 ? held_back : train;
    if (set->count % 1024 == 0) {
      set->images = realloc(set->images, (size_t)(set->count + 1024) * PIXELS * sizeof *set->images);
      set->labels = realloc(set->labels, (size_t)(set->count + 1024) * sizeof *set->labels);
      if (!set->images || !set->labels) exit(1);
    }
    append(set, record);
  }
  fclose(file);
}

/* --- the network --- */

typedef struct network {
  graft_rt_device *device;
  graft_tensor *parameters[PARAMETERS]; /* weight and bias of each layer; weights are [in, out] */
  graft_tensor *averages[PARAMETERS], *squares[PARAMETERS], *steps[PARAMETERS]; /* AdamW's state */
} network;

static graft_tensor *zeros(graft_rt_device *device, int32_t ndim, const int64_t *sizes) {
  static const int64_t none[1] = {0};
  graft_tensor *t = NULL;
  if (!ndim) sizes = none; /* NULL would mean: no list at all */
  must(graft_op_full(sizes, (uint32_t)ndim, graft_scalar_float(0), GRAFT_F32, device, &t));
  return t;
}

/* Uniform in +-1/sqrt(inputs). */
static graft_tensor *weight(graft_rt_device *device, int64_t inputs, int64_t outputs) {
  float *values = malloc((size_t)(inputs * outputs) * sizeof *values), bound = 1.0f / sqrtf((float)inputs);
  if (!values) exit(1);
  for (int64_t i = 0; i < inputs * outputs; i++) values[i] = ((float)rand() / (float)RAND_MAX * 2 - 1) * bound;
  graft_tensor *t;
  must(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){inputs, outputs}, values, &t));
  free(values);
  return t;
}

static void network_create(network *n, graft_rt_device *device) {
  *n = (network){.device = device};
  n->parameters[0] = weight(device, PIXELS, HIDDEN);
  n->parameters[1] = zeros(device, 1, (int64_t[]){HIDDEN});
  n->parameters[2] = weight(device, HIDDEN, CLASSES);
  n->parameters[3] = zeros(device, 1, (int64_t[]){CLASSES});
  for (int i = 0; i < PARAMETERS; i++) {
    must(graft_tensor_set_requires_grad(n->parameters[i], true));
    n->averages[i] = zeros(device, graft_tensor_ndim(n->parameters[i]), graft_tensor_sizes(n->parameters[i]));
    n->squares[i] = zeros(device, graft_tensor_ndim(n->parameters[i]), graft_tensor_sizes(n->parameters[i]));
    n->steps[i] = zeros(device, 0, NULL);
  }
}

static void network_destroy(network *n) {
  for (int i = 0; i < PARAMETERS; i++) {
    graft_tensor_release(n->parameters[i]);
    graft_tensor_release(n->averages[i]);
    graft_tensor_release(n->squares[i]);
    graft_tensor_release(n->steps[i]);
  }
}

/* log_softmax(relu(x W1 + b1) W2 + b2) */
static graft_tensor *forward(const network *n, graft_tensor *x) {
  graft_tensor *hidden = NULL, *active = NULL, *logits = NULL, *result = NULL;
  graft_scalar one = graft_scalar_int(1);
  must(graft_op_addmm(n->parameters[1], x, n->parameters[0], one, one, &hidden));
  must(graft_op_relu(hidden, &active));
  must(graft_op_addmm(n->parameters[3], active, n->parameters[2], one, one, &logits));
  must(graft_op_log_softmax(logits, 1, false, &result));
  graft_tensor_release(hidden);
  graft_tensor_release(active);
  graft_tensor_release(logits);
  return result;
}

/* One step of AdamW on all parameters at once. graft_call writes into the outputs that it is given: they are the
 * arguments themselves, so it works in place. */
static void update(network *n) {
  graft_tensor *grads[PARAMETERS];
  graft_tensor *outs[4 * PARAMETERS];
  for (int i = 0; i < PARAMETERS; i++) {
    grads[i] = graft_tensor_grad(n->parameters[i]);
    outs[i] = n->parameters[i];
    outs[i + PARAMETERS] = grads[i];
    outs[i + 2 * PARAMETERS] = n->averages[i];
    outs[i + 3 * PARAMETERS] = n->squares[i];
  }
  const graft_value count[] = {graft_value_tensors(n->steps, PARAMETERS), graft_value_int(1)};
  const graft_value adamw[] = {
      graft_value_tensors(n->parameters, PARAMETERS),
      graft_value_tensors(grads, PARAMETERS),
      graft_value_tensors(n->averages, PARAMETERS),
      graft_value_tensors(n->squares, PARAMETERS),
      graft_value_tensors(NULL, 0), /* the largest squares, of AMSGrad */
      graft_value_tensors(n->steps, PARAMETERS),
      graft_value_float(0.01), /* learning rate, betas, weight decay, eps */
      graft_value_float(0.9),
      graft_value_float(0.999),
      graft_value_float(0.01),
      graft_value_float(1e-8),
      graft_value_bool(false),
      graft_value_bool(false),
  };
  bool before = graft_grad_mode_set(false);
  must(graft_call(GRAFT_OP_FOREACH_ADD_SCALAR, count, 2, n->steps, PARAMETERS));
  must(graft_call(GRAFT_OP_FUSED_ADAMW, adamw, 13, outs, 4 * PARAMETERS));
  graft_grad_mode_set(before);
  for (int i = 0; i < PARAMETERS; i++) must(graft_tensor_set_grad(n->parameters[i], NULL));
}

/* One batch: forward, backward, update. Returns the loss, the only value that comes back from the device. */
static float train_batch(network *n, graft_tensor *x, graft_tensor *target) {
  graft_tensor *scores = forward(n, x), *loss = NULL, *total = NULL;
  must(graft_op_nll_loss_forward(scores, target, NULL, 1, -100, &loss, &total));
  must(graft_backward(&loss, NULL, 1, 0));
  update(n);
  graft_scalar value;
  must(graft_tensor_item(loss, &value));
  graft_tensor_release(scores);
  graft_tensor_release(loss);
  graft_tensor_release(total);
  return (float)value.value.f;
}

static float train_epoch(network *n, graft_tensor *images, graft_tensor *labels, int count) {
  float sum = 0;
  int batches = 0;
  for (int64_t begin = 0; begin < count; begin += BATCH, batches++) {
    int64_t end = begin + BATCH < count ? begin + BATCH : count;
    graft_tensor *x = NULL, *target = NULL;
    must(graft_op_slice_Tensor(images, 0, &begin, &end, 1, &x));
    must(graft_op_slice_Tensor(labels, 0, &begin, &end, 1, &target));
    sum += train_batch(n, x, target);
    graft_tensor_release(x);
    graft_tensor_release(target);
  }
  return sum / (float)batches;
}

static double accuracy(const network *n, const dataset *set) {
  graft_tensor *images, *best = NULL;
  must(graft_tensor_from_host(n->device, GRAFT_F32, 2, (int64_t[]){set->count, PIXELS}, set->images, &images));
  bool before = graft_grad_mode_set(false);
  graft_tensor *scores = forward(n, images);
  must(graft_op_argmax(scores, &(int64_t){1}, false, &best));
  graft_grad_mode_set(before);
  int64_t *guesses = malloc((size_t)set->count * sizeof *guesses);
  if (!guesses) exit(1);
  must(graft_tensor_to_host(best, guesses));
  int right = 0;
  for (int i = 0; i < set->count; i++) right += guesses[i] == set->labels[i];
  free(guesses);
  graft_tensor_release(images);
  graft_tensor_release(scores);
  graft_tensor_release(best);
  return 100.0 * right / set->count;
}

static unsigned long long fallbacks(void) {
  graft_fallback_info rows[64];
  size_t count = graft_fallbacks(rows, sizeof *rows, 64);
  unsigned long long sum = 0;
  for (size_t i = 0; i < count && i < 64; i++) sum += rows[i].count;
  return sum;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: train_digits DATA [BACKEND [EPOCHS]]\n");
    return 2;
  }
  int epochs = argc > 3 ? atoi(argv[3]) : 30;
  dataset train = {0}, held_back = {0};
  load(argv[1], &train, &held_back);

  graft_rt_backend *backend;
  graft_rt_device *device;
  must(graft_backend_open(argc > 2 ? argv[2] : "opencl", NULL, &backend));
  must(graft_backend_device(backend, 0, &device));
  printf("%d digits to learn from, %d held back, on %s\n", train.count, held_back.count, graft_device_text(device));

  network n;
  network_create(&n, device);
  graft_tensor *images, *labels;
  must(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){train.count, PIXELS}, train.images, &images));
  must(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){train.count}, train.labels, &labels));
  for (int epoch = 1; epoch <= epochs; epoch++) {
    float loss = train_epoch(&n, images, labels, train.count);
    printf("%sepoch %d of %d, loss %.4f", isatty(1) ? "\r" : epoch > 1 ? "\n" : "", epoch, epochs, loss);
    fflush(stdout);
  }
  double right = accuracy(&n, &held_back);
  printf("\n%.1f %% of the held-back digits are right; %llu calls left the device\n", right, fallbacks());

  graft_tensor_release(images);
  graft_tensor_release(labels);
  network_destroy(&n);
  free(train.images);
  free(train.labels);
  free(held_back.images);
  free(held_back.labels);
  return right > 95.0 ? 0 : 1;
}
