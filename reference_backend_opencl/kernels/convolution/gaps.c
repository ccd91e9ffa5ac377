/* Plans gaps.cl: what runs after a product that multiplied zeros where a window meets no element. */
#include "kernels/convolution/convolution.h"

/* Whether some window of a dimension meets a place without an element. */
static bool meets_none(const ocl_space *s, int d) {
  int64_t reach = (s->taps[d] - 1) * s->tap[d];
  int64_t first = s->off[d] + (reach < 0 ? reach : 0);
  int64_t last = s->off[d] + (reach < 0 ? 0 : reach) + (s->out_size[d] - 1) * s->mul[d];
  return s->div[d] != 1 || first < 0 || last >= s->in_size[d];
}

/* Products for the gradient of a weight may also go over places between windows, and past a row's last one. */
static bool is_apart(const ocl_space *s, int d) {
  return s->taps[d] != 1 || s->mul[d] != 1 || s->off[d] != 0;
}

bool ocl_forward_has_gaps(const ocl_dtype *dtype, const ocl_space *s) {
  return dtype->class == OCL_CLASS_FLOAT && (meets_none(s, 0) || meets_none(s, 1) || meets_none(s, 2));
}

bool ocl_weight_has_gaps(const ocl_dtype *dtype, const ocl_space *s) {
  return dtype->class == OCL_CLASS_FLOAT && (is_apart(s, 0) || is_apart(s, 1) || is_apart(s, 2));
}

graft_status ocl_gaps_set(ocl_kernel *mend, graft_device *device, ocl_space s, bool forward, int64_t vec) {
  const int64_t each_core = 4, local = device->is_cpu ? 1 : 64;
  int64_t each = forward ? s.batch * ocl_volume(s.out_size) : s.in_channels * ocl_volume(s.taps);
  s.units = ocl_ceil_divide(s.groups * s.out_channels * each, vec);
  s.per_item = device->is_cpu ? ocl_ceil_divide(s.units, each_core * (int64_t)device->compute_units) : 1;
  ocl_kernel_size(mend, ocl_ceil_divide(s.units, s.per_item), (size_t)local);
  return ocl_kernel_set(mend, 1, &(ocl_argument)OCL_VALUE(s));
}

graft_status ocl_gaps_make(ocl_kernel *mend, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                           bool forward) {
  ocl_text head = {0};
  ocl_head_types(&head, dtype, (unsigned)device->vector_width, device->is_cpu ? 1 : 64);
  ocl_text_add(&head, "#define D %s\n%s", dtype->name, forward ? "#define FORWARD\n" : "");
  graft_status status = ocl_kernel_make(mend, device, &head, "convolution/space convolution/gaps", "mend");
  return status == GRAFT_OK ? ocl_gaps_set(mend, device, *s, forward, device->vector_width) : status;
}
