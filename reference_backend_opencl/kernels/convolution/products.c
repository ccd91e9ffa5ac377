/* Which convolutions are matrix products on CPUs: those with a window of one element, taken at each place. An image is
 * a matrix there, of a row for each channel; the gradient of the weight is a sum of products, one of each image. */
#include "kernels/convolution/convolution.h"

/* Of fewer channels, tiles would stay empty. */
enum { CHANNELS_LEAST = 8 };
/* Of a tile's row (matmul/plan.c). */
enum { VECTORS = 2 };

static bool is_served(const graft_device *device, const ocl_space *s) {
  for (int d = 0; d < 3; d++) {
    if (s->taps[d] != 1 || s->mul[d] != 1 || s->div[d] != 1 || s->off[d] != 0) return false;
    if (s->in_size[d] != s->out_size[d]) return false;
  }
  return device->is_cpu && s->groups == 1 && s->out_size[0] * s->out_size[1] == 1 &&
         s->out_size[2] >= device->vector_width && s->in_channels >= CHANNELS_LEAST &&
         s->out_channels >= CHANNELS_LEAST;
}

/* Matrices of a batch. */
typedef struct matrices {
  int64_t shape[3], strides[3];
} matrices;

/* As the product sees them before it is run; of 2 dimensions, without the batch. */
static graft_tensor_desc seen(const matrices *m, const ocl_dtype *dtype, int dims) {
  return (graft_tensor_desc){
      .struct_size = sizeof(graft_tensor_desc),
      .dl = {.ndim = dims, .dtype = dtype->code, .shape = m->shape + 3 - dims, .strides = m->strides + 3 - dims}};
}

static graft_status run_forward(const graft_exec *exec, ocl_forward *f, ocl_place work, const ocl_forward_call *call) {
  (void)work;
  const ocl_product_call product = {.a = call->weight, .b = call->in, .addend = call->bias};
  return ocl_product_run(exec, f->product, &product, call->out, call->count, call->arguments);
}

double ocl_products_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  if (!is_served(device, s)) return 0;
  const int64_t channels = ocl_round_up(s->out_channels, CHANNELS_LEAST) * s->in_channels;
  const int64_t vec = device->vector_width > 4 && dtype->bytes > 4 ? device->vector_width / 2 : device->vector_width;
  return (double)(s->batch * channels) * (double)(ocl_round_up(s->out_size[2], VECTORS * vec) / vec);
}

graft_status ocl_products_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                                  bool has_bias) {
  if (!is_served(device, s)) return GRAFT_UNIMPLEMENTED;
  const int64_t n = s->batch, outs = s->out_channels, ins = s->in_channels, width = s->out_size[2];
  const matrices weights = {{n, outs, ins}, {0, s->weight_out, s->weight_in}};
  const matrices inputs = {{n, ins, width}, {ins * width, width, 1}};
  const matrices results = {{n, outs, width}, {outs * width, width, 1}}, added = {{n, outs, width}, {0, 1, 0}};
  const graft_tensor_desc a = seen(&weights, dtype, 3), b = seen(&inputs, dtype, 3), out = seen(&results, dtype, 3);
  const graft_tensor_desc bias = seen(&added, dtype, 3);
  const ocl_product_call call = {.a = &a, .b = &b, .out = &out, .addend = has_bias ? &bias : NULL};
  f->run = run_forward;
  return ocl_product_make_alone(device, &call, f->epilogue, &f->product);
}

static graft_status run_weight(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work,
                               const graft_tensor_desc *in, const graft_tensor_desc *out,
                               const graft_tensor_desc *weight) {
  (void)work;
  const ocl_product_call call = {.a = out, .b = in, .sums = true};
  return ocl_product_run(exec, g->product, &call, weight, 0, NULL);
}

graft_status ocl_products_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                                 const ocl_space *s) {
  if (!is_served(device, s)) return GRAFT_UNIMPLEMENTED;
  const int64_t n = s->batch, outs = s->out_channels, ins = s->in_channels, width = s->out_size[2];
  const matrices grads = {{n, outs, width}, {outs * width, width, 1}};
  const matrices inputs = {{n, width, ins}, {ins * width, 1, width}}, weights = {{1, outs, ins}, {0, ins, 1}};
  const graft_tensor_desc a = seen(&grads, dtype, 3), b = seen(&inputs, dtype, 3), out = seen(&weights, dtype, 2);
  const ocl_product_call call = {.a = &a, .b = &b, .out = &out, .sums = true};
  g->run = run_weight;
  return ocl_product_make_alone(device, &call, NULL, &g->product);
}
