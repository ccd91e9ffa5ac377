/* Sampling at the points of a grid, and its gradients. */
#include "kernels/core/direct.h"

typedef struct sampler {
  const graft_tensor_desc *input, *grid;
  int64_t interpolation, padding;
  bool align;
} sampler;

enum { NUMBERS = 11 };
/* As grid.cl has them. */
enum { CUBIC = 2, POINTS_AT_ONCE = 64 };

static ocl_direct direct_of(const graft_exec *exec, const sampler *s, int64_t numbers[NUMBERS]) {
  const graft_dl_tensor *in = &s->input->dl, *grid = &s->grid->dl;
  int dims = in->ndim - 2, front = 3 - dims;
  int64_t points = 1, lanes = exec->device->is_cpu ? 1 : 64;
  for (int d = 0; d < dims; d++) points *= grid->shape[1 + d];
  /* A GPU has more to do than the points: as many channels of each as leave a few hundred work-items for each unit. */
  int64_t each = in->shape[1], enough = 1024 * (int64_t)exec->device->compute_units;
  while (!exec->device->is_cpu && each > 4 && grid->shape[0] * points * ocl_ceil_divide(in->shape[1], each) < enough)
    each = ocl_ceil_divide(each, 2);
  const int64_t all[NUMBERS] = {in->shape[1],
                                front ? 1 : in->shape[2],
                                in->shape[dims],
                                in->shape[dims + 1],
                                points,
                                dims,
                                s->interpolation,
                                s->padding,
                                s->align,
                                lanes,
                                each};
  for (int i = 0; i < NUMBERS; i++) numbers[i] = all[i];
  return (ocl_direct){.file = "core/direct resample/grid", .dtype = in->dtype, .numbers = numbers, .count = NUMBERS};
}

static graft_status sample(const graft_exec *exec, const sampler *s, const graft_tensor_desc *out) {
  int64_t numbers[NUMBERS];
  ocl_direct call = direct_of(exec, s, numbers);
  if (!ocl_elements(out)) return GRAFT_OK;
  const int64_t pixels = numbers[1] * numbers[2] * numbers[3], images = s->grid->dl.shape[0], points = numbers[4];
  const bool plane =
      exec->device->is_cpu && numbers[5] == 2 && numbers[3] >= 2 && s->interpolation != CUBIC && pixels <= INT32_MAX;
  call.places = 3;
  call.stages[0] = (ocl_stage){.entry = plane ? "grid_sample_plane" : "grid_sample",
                               .units = images * (plane ? ocl_ceil_divide(points, POINTS_AT_ONCE)
                                                        : points * ocl_ceil_divide(numbers[0], numbers[10])),
                               .places = {ocl_place_of(out), ocl_place_of(s->input), ocl_place_of(s->grid)}};
  return ocl_direct_run(exec, &call);
}

static graft_status sample_backward(const graft_exec *exec, const sampler *s, const graft_tensor_desc *grad,
                                    const graft_tensor_desc *to_input, const graft_tensor_desc *to_grid) {
  int64_t numbers[NUMBERS], planes = s->input->dl.shape[0] * s->input->dl.shape[1];
  ocl_direct call = direct_of(exec, s, numbers);
  ocl_place work = {0};
  call.places = 5;
  if (to_input && ocl_elements(to_input)) {
    graft_status status = ocl_workspace(exec, (uint64_t)ocl_elements(to_input) * 8, &work);
    if (status != GRAFT_OK) return status;
    call.stages[0] = (ocl_stage){
        .entry = "grid_scatter",
        .units = planes * numbers[9],
        .places = {ocl_place_of(to_input), ocl_place_of(s->input), ocl_place_of(s->grid), ocl_place_of(grad), work}};
  }
  if (to_grid && ocl_elements(to_grid)) {
    call.stages[1] = (ocl_stage){
        .entry = "grid_slopes",
        .units = s->grid->dl.shape[0] * numbers[4],
        .places = {ocl_place_of(to_grid), ocl_place_of(s->input), ocl_place_of(s->grid), ocl_place_of(grad), work}};
  }
  return ocl_direct_run(exec, &call);
}

#define SAMPLER(op)                                                                                     \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                       \
    const sampler s = {args->input, args->grid, args->interpolation_mode, args->padding_mode,           \
                       args->align_corners != 0};                                                       \
    return sample(exec, &s, args->out);                                                                 \
  }                                                                                                     \
  graft_status ocl_op_##op##_backward(const graft_exec *exec, const graft_args_##op##_backward *args) { \
    const sampler s = {args->input, args->grid, args->interpolation_mode, args->padding_mode,           \
                       args->align_corners != 0};                                                       \
    return sample_backward(exec, &s, args->grad_output, args->out0, args->out1);                        \
  }

SAMPLER(grid_sampler_2d)
SAMPLER(grid_sampler_3d)
