/* Quantized, a layer's sums are whole numbers: those of its weight and of what goes in, both from -128 to 127, and of a
 * bias. Times one number they become, rounded and held between 0 and 127, what goes into the next layer. All of it is
 * f32 in the graph, so that gradients flow through it and each backend runs it; `graft tiny` sees what is whole, and
 * holds it as i8. */
#include "network.h"

#include <string.h>

void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "tiny_record: %s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

static graft_tensor *retained(graft_tensor *t) {
  graft_tensor_retain(t);
  return t;
}

/* What a whole number stands for where it goes into a layer: pixels in sixty-fourths, which are exact, and the rest by
 * the largest that came out of the layers of the f32 network after its 20 epochs (4.7 and 13.5). */
static const float input_scale[] = {
    [CONV1_WEIGHT] = 1.0f / 64, [CONV2_WEIGHT] = 5.0f / LARGEST_I8, [LINEAR_WEIGHT] = 14.0f / LARGEST_I8};

/* What a layer's sums stand for. */
static float sum_scale(int weight) {
  return weight_scale(weight) * input_scale[weight];
}

/* --- forward --- */

static graft_tensor *times(graft_tensor *x, double factor) {
  graft_tensor *made = NULL;
  const graft_value call[] = {graft_value_tensor(x), graft_value_scalar(graft_scalar_float(factor))};
  must(graft_call(GRAFT_OP_MUL_TENSOR, call, 2, &made, 1));
  return made;
}

/* x times a factor as whole numbers from low to 127; the gradient goes straight through where nothing was cut. */
static graft_tensor *whole_numbers(graft_tensor *x, double factor, int low) {
  graft_tensor *scaled = times(x, factor), *whole = NULL, *inside = NULL;
  must(graft_op_fake_quantize_per_tensor_affine_cachemask(scaled, 1, 0, low, LARGEST_I8, &whole, &inside));
  graft_tensor_release(scaled);
  graft_tensor_release(inside);
  return whole;
}

static graft_tensor *rectified(const network *n, graft_tensor *sums, int weight, int next) {
  graft_tensor *active = NULL;
  if (n->recipe->quantized) return whole_numbers(sums, sum_scale(weight) / input_scale[next], 0);
  must(graft_op_relu(sums, &active));
  return active;
}

static const int64_t one[] = {1, 1}, zero[] = {0, 0}, two[] = {2, 2};

/* The gradient ends at the sums of chosen channels: nothing before them learns. */
static void keep_chosen(network *n, graft_tensor *x, graft_tensor *sums) {
  must(graft_tensor_set_requires_grad(sums, true));
  n->chosen_x = retained(x);
  n->chosen_sums = retained(sums);
}

/* max_pool2d(relu(conv2d(x))), the windows 2 by 2; the convolution 3 by 3, with zeros around. */
static graft_tensor *block(network *n, graft_tensor *x, int weight, int next) {
  graft_tensor *sums = NULL, *pooled = NULL, *places = NULL;
  must(graft_op_convolution(x, n->numbers[weight], n->numbers[weight + 1], one, 2, one, 2, one, 2, false, zero, 2, 1,
                            &sums));
  if (n->learns && n->recipe->update == UPDATE_CHANNELS && weight == CONV2_WEIGHT) keep_chosen(n, x, sums);
  graft_tensor *active = rectified(n, sums, weight, next);
  must(graft_op_max_pool2d_with_indices(active, two, 2, two, 2, zero, 2, one, 2, false, &pooled, &places));
  graft_tensor_release(sums);
  graft_tensor_release(active);
  graft_tensor_release(places);
  return pooled;
}

graft_tensor *network_forward(network *n, graft_tensor *x) {
  const graft_scalar unit = graft_scalar_int(1);
  graft_tensor *flat = NULL, *scores = NULL;
  graft_tensor *pixels =
      n->recipe->quantized ? whole_numbers(x, 1 / input_scale[CONV1_WEIGHT], -LARGEST_I8) : retained(x);
  graft_tensor *edges = block(n, pixels, CONV1_WEIGHT, CONV2_WEIGHT);
  graft_tensor *features = block(n, edges, CONV2_WEIGHT, LINEAR_WEIGHT);
  must(graft_op_view(features, (int64_t[]){graft_tensor_sizes(x)[0], 4 * CHANNELS_2}, 2, &flat));
  must(graft_op_addmm(n->numbers[LINEAR_BIAS], flat, n->numbers[LINEAR_WEIGHT], unit, unit, &scores));
  graft_tensor *parts[] = {pixels, edges, features, flat};
  for (int i = 0; i < 4; i++) graft_tensor_release(parts[i]);
  if (!n->recipe->quantized) return scores;
  graft_tensor *meant = times(scores, sum_scale(LINEAR_WEIGHT));
  graft_tensor_release(scores);
  return meant;
}

/* --- what is learned --- */

static bool is_bias(int which) {
  return !parameters[which].inputs;
}

static bool is_updated(const recipe *r, int which) {
  if (r->update == UPDATE_ALL) return true;
  if (r->update == UPDATE_BIASES) return is_bias(which);
  return which == LINEAR_WEIGHT || which == LINEAR_BIAS;
}

/* What one whole number of a parameter stands for. */
static double scale_of(int which) {
  return is_bias(which) ? sum_scale(which - 1) : weight_scale(which);
}

/* Up or down at random, by how near the two are: steps far below 1 count, in the long run. */
static graft_tensor *rounded(const network *n, graft_tensor *x, bool nearest) {
  graft_tensor *chance = NULL, *sum = NULL, *whole = NULL;
  if (nearest) {
    must(graft_op_round(x, &whole));
    return whole;
  }
  must(graft_op_rand(graft_tensor_sizes(x), (uint32_t)graft_tensor_ndim(x), GRAFT_F32,
                     graft_tensor_device(n->numbers[0]), &chance));
  must(graft_op_add_Tensor(x, chance, graft_scalar_int(1), &sum));
  must(graft_op_floor(sum, &whole));
  graft_tensor_release(chance);
  graft_tensor_release(sum);
  return whole;
}

/* The sums of a bias and of products of i8 are exact in f32 up to 2^24. */
enum { LARGEST_BIAS = 1 << 22 };

/* parameter -= rate scale^-2 gradient, as whole numbers: those of the gradient are `scale` times those of what the
 * parameter stands for, which in its turn is 1 / scale of them. */
static void update_quantized(const network *n, int which, graft_tensor *to, graft_tensor *numbers, graft_tensor *grad) {
  const recipe *r = n->recipe;
  const double scale = r->scaled ? scale_of(which) : 1, most = is_bias(which) ? LARGEST_BIAS : LARGEST_I8;
  graft_tensor *moved = NULL, *held = NULL;
  must(graft_op_sub_Tensor(numbers, grad, graft_scalar_float(r->rate / (scale * scale)), &moved));
  graft_tensor *whole = rounded(n, moved, is_bias(which) || r->nearest);
  must(graft_op_clamp(whole, graft_scalar_float(-most), graft_scalar_float(most), &held));
  must(graft_tensor_copy(to, held));
  graft_tensor_release(moved);
  graft_tensor_release(whole);
  graft_tensor_release(held);
}

/* Of a parameter, or of some channels of it. */
static void update_with(const network *n, int which, graft_tensor *to, graft_tensor *numbers, graft_tensor *grad) {
  const graft_value call[] = {graft_value_tensor(to), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_float(n->recipe->rate))};
  if (n->recipe->quantized)
    update_quantized(n, which, to, numbers, grad);
  else
    must(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &to, 1));
}

static graft_tensor *chosen(graft_tensor *x, int64_t dim) {
  const int64_t first = 0, end = CHOSEN_CHANNELS;
  graft_tensor *made = NULL;
  must(graft_op_slice_Tensor(x, dim, &first, &end, 1, &made));
  return made;
}

static void update_chosen(const network *n, int which, graft_tensor *grad) {
  graft_tensor *to = chosen(n->parameters[which], 0), *numbers = chosen(n->numbers[which], 0);
  update_with(n, which, to, numbers, grad);
  graft_tensor_release(to);
  graft_tensor_release(numbers);
}

/* The gradients of some channels of the second convolution, from those of their sums alone. */
static void learn_chosen(const network *n) {
  static const uint8_t wanted[] = {0, 1, 1};
  const int64_t biases = CHOSEN_CHANNELS;
  graft_tensor *grad = chosen(graft_tensor_grad(n->chosen_sums), 1), *weight = chosen(n->numbers[CONV2_WEIGHT], 0);
  graft_tensor *none = NULL, *weight_grad = NULL, *bias_grad = NULL;
  must(graft_op_convolution_backward(grad, n->chosen_x, weight, &biases, 1, one, 2, one, 2, one, 2, false, zero, 2, 1,
                                     wanted, &none, &weight_grad, &bias_grad));
  update_chosen(n, CONV2_WEIGHT, weight_grad);
  update_chosen(n, CONV2_BIAS, bias_grad);
  graft_tensor *parts[] = {grad, weight, weight_grad, bias_grad};
  for (int i = 0; i < 4; i++) graft_tensor_release(parts[i]);
  must(graft_tensor_set_grad(n->chosen_sums, NULL));
}

void network_learn(network *n, graft_tensor *loss) {
  must(graft_backward(&loss, NULL, 1, 0));
  const bool before = graft_grad_mode_set(false);
  for (int i = 0; i < PARAMETERS; i++) {
    if (!is_updated(n->recipe, i)) continue;
    update_with(n, i, n->parameters[i], n->numbers[i], graft_tensor_grad(n->numbers[i]));
    must(graft_tensor_set_grad(n->numbers[i], NULL));
  }
  if (n->chosen_sums) learn_chosen(n);
  graft_grad_mode_set(before);
}

/* --- from parameters to numbers --- */

static graft_tensor *numbers_of(graft_tensor *parameter) {
  graft_tensor *made = NULL;
  if (graft_tensor_dtype(parameter) == GRAFT_F32) return retained(parameter);
  must(graft_op_to_copy(parameter, GRAFT_F32, NULL, 0, &made));
  return made;
}

void network_begin(network *n, const recipe *recipe, bool learns) {
  n->recipe = recipe;
  n->learns = learns;
  n->chosen_x = n->chosen_sums = NULL;
  for (int i = 0; i < PARAMETERS; i++) {
    n->numbers[i] = numbers_of(n->parameters[i]);
    must(graft_tensor_set_requires_grad(n->numbers[i], learns && is_updated(recipe, i)));
  }
}

void network_end(network *n) {
  for (int i = 0; i < PARAMETERS; i++) graft_tensor_release(n->numbers[i]);
  graft_tensor_release(n->chosen_x);
  graft_tensor_release(n->chosen_sums);
}
