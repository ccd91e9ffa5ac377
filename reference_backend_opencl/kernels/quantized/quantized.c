/* Fake quantization: values rounded to those that integers of a range stand for, and which of them were in it. The
 * products of the family are in products.c. */
#include "kernels/core/direct.h"

/* The numbers of quantized.cl. */
enum { LOW, HIGH, SCALE, INVERSE, ZERO_POINT, CHANNELS, INNER, COUNT, NUMBERS };

/* Elements that a work-item of a GPU has side by side. */
static unsigned lanes_of(const graft_device *device) {
  return device->is_cpu ? 1 : device->vector_width;
}

static void begin(ocl_direct *call, int64_t *numbers, const graft_device *device, const graft_tensor_desc *self,
                  int64_t low, int64_t high) {
  graft_dtype dtype = self->dl.dtype;
  numbers[LOW] = ocl_direct_number(dtype, (double)low);
  numbers[HIGH] = ocl_direct_number(dtype, (double)high);
  numbers[COUNT] = ocl_elements(self);
  *call = (ocl_direct){.file = "core/direct quantized/quantized",
                       .dtype = dtype,
                       .lanes = lanes_of(device),
                       .numbers = numbers,
                       .count = NUMBERS};
}

static int64_t units_of(const ocl_direct *call) {
  return ocl_ceil_divide(call->numbers[COUNT], call->lanes);
}

graft_status ocl_op_fake_quantize_per_tensor_affine_cachemask(
    const graft_exec *exec, const graft_args_fake_quantize_per_tensor_affine_cachemask *args) {
  int64_t numbers[NUMBERS] = {0};
  ocl_direct call;
  if (!args->output || !args->mask) return GRAFT_UNIMPLEMENTED;
  begin(&call, numbers, exec->device, args->self, args->quant_min, args->quant_max);
  numbers[SCALE] = ocl_direct_number(call.dtype, (float)args->scale);
  numbers[INVERSE] = ocl_direct_number(call.dtype, 1.0f / (float)args->scale);
  numbers[ZERO_POINT] = ocl_direct_number(call.dtype, (double)args->zero_point);
  call.places = 3;
  call.stages[0] =
      (ocl_stage){.entry = "fake_quantize",
                  .units = units_of(&call),
                  .places = {ocl_place_of(args->output), ocl_place_of(args->mask), ocl_place_of(args->self)}};
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_fake_quantize_per_channel_affine_cachemask(
    const graft_exec *exec, const graft_args_fake_quantize_per_channel_affine_cachemask *args) {
  int64_t numbers[NUMBERS] = {0};
  const graft_dl_tensor *self = &args->self->dl;
  graft_dtype zero = args->zero_point->dl.dtype;
  ocl_direct call;
  if (!args->output || !args->mask || args->scale->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  begin(&call, numbers, exec->device, args->self, args->quant_min, args->quant_max);
  numbers[CHANNELS] = self->shape[args->axis];
  numbers[INNER] = 1;
  for (int32_t d = (int32_t)args->axis + 1; d < self->ndim; d++) numbers[INNER] *= self->shape[d];
  call.places = 5;
  call.stages[0] =
      (ocl_stage){.entry = zero == GRAFT_I32   ? "fake_quantize_channels_i32"
                           : zero == GRAFT_F32 ? "fake_quantize_channels_f32"
                                               : "fake_quantize_channels_f16",
                  .units = units_of(&call),
                  .places = {ocl_place_of(args->output), ocl_place_of(args->mask), ocl_place_of(args->self),
                             ocl_place_of(args->scale), ocl_place_of(args->zero_point)}};
  return ocl_direct_run(exec, &call);
}

#define PRODUCTS (GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY | GRAFT_CAP_MIXED_DTYPE)
#define LAYOUTS  (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED)

static const ocl_op ops[] = {
    {OCL_OP(fake_quantize_per_tensor_affine_cachemask), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(fake_quantize_per_channel_affine_cachemask), .inputs = OCL_FLOATS | OCL_BIT(I32), .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_MIXED_DTYPE},
    {OCL_OP(int_mm), .inputs = OCL_BIT(I8) | OCL_BIT(U8), .outputs = OCL_BIT(I32), .flags = PRODUCTS | LAYOUTS},
    {OCL_OP(weight_int8pack_mm), .inputs = OCL_HALVES | OCL_BIT(F32) | OCL_BIT(I8),
     .outputs = OCL_HALVES | OCL_BIT(F32), .flags = PRODUCTS},
    {OCL_OP(weight_int4pack_mm), .inputs = OCL_HALVES | OCL_BIT(F32) | OCL_BIT(U8),
     .outputs = OCL_HALVES | OCL_BIT(F32), .flags = PRODUCTS},
    {OCL_OP(scaled_mm), .inputs = OCL_FLOATS | OCL_FLOAT8, .outputs = OCL_HALVES | OCL_BIT(F32) | OCL_FLOAT8,
     .flags = PRODUCTS | LAYOUTS},
};
OCL_FAMILY(quantized, ops)
