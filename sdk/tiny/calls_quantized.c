/* What quantized networks are made of: grids, casts and random numbers for rounding. */
#include <math.h>

#include "tiny/call.h"

/* --- to whole numbers --- */

/* Numbers of the argument as f32 has them, exactly. */
static float whole(tiny_emitter *e, uint32_t number) {
  const int64_t v = tiny_arg(e, number)->as.i;
  if (v < -(1 << 24) || v > 1 << 24) tiny_refuse(e, "%s is beyond 2^24", e->node->schema->args[number].name);
  return (float)v;
}

enum {
  FAKE_SELF = ARG_fake_quantize_per_tensor_affine_cachemask_self,
  FAKE_SCALE = ARG_fake_quantize_per_tensor_affine_cachemask_scale,
  FAKE_ZERO = ARG_fake_quantize_per_tensor_affine_cachemask_zero_point,
  FAKE_LOW = ARG_fake_quantize_per_tensor_affine_cachemask_quant_min,
  FAKE_HIGH = ARG_fake_quantize_per_tensor_affine_cachemask_quant_max,
  FAKE_OUTPUT = OUT_fake_quantize_per_tensor_affine_cachemask_output,
  FAKE_MASK = OUT_fake_quantize_per_tensor_affine_cachemask_mask
};

/* Whole numbers of an i8, as they are. */
static bool fake_gives_i8(const tiny_emitter *e, const gr_node *node) {
  (void)e;
  return node->args[FAKE_SCALE].as.f == 1 && node->args[FAKE_ZERO].as.i == 0 && node->args[FAKE_LOW].as.i >= INT8_MIN &&
         node->args[FAKE_HIGH].as.i <= INT8_MAX;
}

static void emit_fake_quantize(tiny_emitter *e) {
  const gr_view *x = tiny_operand(e, FAKE_SELF), *to = tiny_result(e, FAKE_OUTPUT);
  const float scale = (float)tiny_arg(e, FAKE_SCALE)->as.f, low = whole(e, FAKE_LOW), high = whole(e, FAKE_HIGH);
  const long long count = (long long)tiny_numel(to);
  tiny_need_apart(e);
  const char *from = tiny_dense(e, x, GRAFT_F32, "self");
  const char *mask = tiny_dense(e, tiny_result(e, FAKE_MASK), GRAFT_BOOL, "mask");
  if (!isfinite(scale) || !isfinite(1 / scale) || scale == 0) tiny_refuse(e, "scale is %g", (double)scale);
  if (tiny_is_i8(e, to))
    fprintf(e->to, "  tiny_quantize_i8(%lld, %d, %d, %s, %s, %s);\n", count, (int)low, (int)high, from,
            tiny_dense(e, to, GRAFT_I8, "the result"), mask);
  else
    fprintf(e->to,
            "  tiny_fake_quantize_f32(&(const tiny_grid){.scale = %af, .inverse = %af, .zero = %af, .low = %af, .high "
            "= %af}, %lld, %s, %s, %s);\n",
            (double)scale, (double)(1 / scale), (double)whole(e, FAKE_ZERO), (double)low, (double)high, count, from,
            tiny_out(e, FAKE_OUTPUT), mask);
}

/* --- casts --- */

static bool cast_gives_i8(const tiny_emitter *e, const gr_node *node) {
  (void)e;
  return node->operands[0].view.dtype == GRAFT_I8;
}

/* By what memory holds on both sides; NULL: there is none. */
static const char *cast_kernel(graft_dtype from, graft_dtype to) {
  static const struct cast {
    graft_dtype from, to;
    const char *kernel;
  } casts[] = {{GRAFT_I8, GRAFT_F32, "tiny_widen_i8"},  {GRAFT_I32, GRAFT_F32, "tiny_widen_i32"},
               {GRAFT_F32, GRAFT_I8, "tiny_to_i8"},     {GRAFT_F32, GRAFT_I32, "tiny_to_i32"},
               {GRAFT_F32, GRAFT_F32, "tiny_copy_f32"}, {GRAFT_I8, GRAFT_I8, "tiny_copy_i8"}};
  for (size_t i = 0; i < sizeof casts / sizeof *casts; i++) {
    if (casts[i].from == from && casts[i].to == to) return casts[i].kernel;
  }
  return NULL;
}

static void write_cast(tiny_emitter *e, const gr_view *from, const gr_view *to) {
  if (e->same[to->buffer] != GR_NONE) return; /* it lies there already */
  const graft_dtype before = e->held[from->buffer], after = e->held[to->buffer];
  const char *kernel = cast_kernel(before, after);
  if (!kernel) {
    tiny_refuse(e, "there is no kernel from %s to %s", graft_dtype_name(before), graft_dtype_name(after));
    return;
  }
  tiny_need_same(e, from, to, "self");
  fprintf(e->to, "  %s(%lld, %s, %s);\n", kernel, (long long)tiny_numel(to), tiny_dense(e, from, before, "self"),
          tiny_dense(e, to, after, "the result"));
}

static void emit_to_copy(tiny_emitter *e) {
  write_cast(e, tiny_operand(e, ARG_to_copy_self), tiny_result(e, OUT_to_copy_out));
}

static void emit_copy(tiny_emitter *e) {
  const gr_view *to = tiny_result(e, OUT_copy_out);
  tiny_need_same(e, tiny_operand(e, ARG_copy_src), to, "src");
  write_cast(e, tiny_operand(e, ARG_copy_src), to);
}

/* --- random numbers --- */

static void emit_rand(tiny_emitter *e) {
  fprintf(e->to, "  tiny_rand_f32(%lld, %s_random, %s);\n", (long long)tiny_numel(tiny_result(e, OUT_rand_out)),
          e->options->name, tiny_out(e, OUT_rand_out));
}

const tiny_op tiny_quantized[] = {
    {.id = ID_fake_quantize_per_tensor_affine_cachemask,
     .kernels = TINY_QUANTIZE,
     .emit = emit_fake_quantize,
     .gives_i8 = fake_gives_i8},
    {.id = ID_to_copy,
     .kernels = TINY_ELEMENTS | TINY_QUANTIZE,
     .emit = emit_to_copy,
     .i8_args = 1u << ARG_to_copy_self,
     .gives_i8 = cast_gives_i8},
    {.id = ID_copy, .kernels = TINY_ELEMENTS | TINY_QUANTIZE, .emit = emit_copy, .i8_args = 1u << ARG_copy_src},
    {.id = ID_rand, .kernels = TINY_RANDOM, .emit = emit_rand},
    {0}};
