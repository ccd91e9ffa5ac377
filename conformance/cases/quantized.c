#include <math.h>

#include "conformance/cases/rows.h"

#define CF_HALVES_AND_F32 (CF_BIT(F32) | CF_BIT(F16) | CF_BIT(BF16))

/* x w and a scale: the sum of absolute terms, n of them, and two roundings more. */
static void cf_l_weights(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *w = &k->in[1], *scales = &k->in[2];
  int64_t depth = x->sizes[1], columns = w->sizes[0];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double terms = 0;
    for (int64_t d = 0; d < depth; d++)
      terms += fabsl(x->v[i / columns * depth + d].re * w->v[i % columns * depth + d].re);
    limits[i] = cf_limit_of(k, out, i, (cf_growth((long double)depth) + 2) * terms * fabsl(scales->v[i % columns].re));
  }
}

/* The weights are (q - 8) scale + zero, in two roundings, which may be to the tested dtype. */
static void cf_l_int4(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *scales = &k->in[2];
  int64_t depth = x->sizes[1], columns = k->in[1].sizes[0], group = depth / scales->sizes[0];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double terms = 0;
    for (int64_t d = 0; d < depth; d++) {
      const dt_value *scale = &scales->v[(d / group * columns + i % columns) * 2];
      terms += fabsl(x->v[i / columns * depth + d].re) * (8 * fabsl(scale[0].re) + fabsl(scale[1].re));
    }
    limits[i] = cf_limit_of(k, out, i, (cf_growth((long double)depth) + 2) * terms);
  }
}

/* The products of float8 are exact in f32; their sum, two scales, a bias and a last scale are rounded, and the oracle's
 * result, too. */
static void cf_l_scaled(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *x = &k->in[0], *w = &k->in[1], *scale_a = cf_arg_array(k, "scale_a"),
                 *scale_b = cf_arg_array(k, "scale_b"), *bias = cf_arg_array(k, "bias"),
                 *last = cf_arg_array(k, "scale_result");
  int64_t depth = x->sizes[1], columns = w->sizes[1];
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double terms = 0;
    for (int64_t d = 0; d < depth; d++)
      terms += fabsl(x->v[i / columns * depth + d].re * w->v[d * columns + i % columns].re);
    terms *= fabsl(scale_a->v[scale_a->numel == 1 ? 0 : i / columns].re *
                   scale_b->v[scale_b->numel == 1 ? 0 : i % columns].re);
    if (bias) terms += fabsl(bias->v[i % columns].re);
    if (last && dt_is_float8(dtype)) terms *= fabsl(last->v[0].re);
    limits[i] =
        (cf_growth((long double)depth) + 5) * cf_u(GRAFT_F32) * terms + 1.5L * cf_ulp(dtype, k->outs[out].v[i].re);
  }
}

static const cf_op cf_quantized_ops[] = {
    {"aten::_int_mm",
     CF_TEXTS("s T[33,17] T[17,129]", "m T[1,1] T[1,1]", "m T[3,13] T[13,1]", "m T[13,1025] T[1025,3]",
              "m T[5,0] T[0,7]", "m T[0,5] T[5,7]", "m u8[17,33] T[33,5]"),
     CF_BIT(I8), CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    /* Enough for tiles of tensor cores: their ends, steps of K beyond whole strips, lines that begin where 16 bytes do
     * and others, K cut in four, and each size of a tile. */
    {"aten::_int_mm",
     CF_TEXTS("m T[72,144] T[144,88]", "m T[77,131] T[131,91]", "m u8[77,144] T[144,91]", "m T[72,1040] T[1040,40]",
              "f T[1304,32] T[32,1096]", "f T[1400,20] T[20,3070]"),
     CF_BIT(I8), CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    /* What a processor makes of panels of 32 columns and steps of 1024 along K: their ends, B by rows and by columns;
     * and sums that 24 bits don't hold. */
    {"aten::_int_mm",
     CF_TEXTS("m T[19,1098] T[1098,70]", "m T[9,1030]=-128 T[1030,37]=-128", "m u8[9,1000]=255 T[1000,35]=-127"),
     CF_BIT(I8), CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    /* The sum of products; the scale, and in half types the one rounding of both. */
    {"aten::_weight_int8pack_mm",
     CF_TEXTS("s T[5,33] i8[17,33] T[17]", "m T[1,129] i8[3,129] T[3]", "m T[33,1] i8[129,1] T[129]",
              "m T[3,0] i8[5,0] T[5]", "m T[0,5] i8[3,5] T[3]", "m T[2,37] i8[3,37] T[3]"),
     CF_HALVES_AND_F32, CF_R_CUSTOM(cf_l_weights), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::_weight_int4pack_mm",
     CF_TEXTS("s T[5,64] u8[17,32]<256 32 T[2,17,2]", "m T[1,256] u8[3,128]<256 128 T[2,3,2]",
              "m T[3,256] u8[8,128]<256 256 T[1,8,2]", "m T[0,64] u8[3,32]<256 64 T[1,3,2]",
              "m T[2,64] u8[3,32]<256 32 T[2,3,2]"),
     CF_HALVES_AND_F32, CF_R_CUSTOM(cf_l_int4), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::_scaled_mm",
     CF_TEXTS("s f8_e4m3fn[33,16] f8_e4m3fn[16,17] T[] T[] out_dtype=f32",
              "m f8_e4m3fn[3,129] f8_e5m2[129,5] T[1] T[1,1] out_dtype=bf16",
              "m f8_e5m2[13,16] f8_e4m3fn[16,5] T[13,1] T[1,5] bias=T[5] out_dtype=f16",
              "m f8_e4m3fn[5,3] f8_e4m3fn[3,7] T[] T[]",
              "s f8_e5m2[5,3] f8_e5m2[3,7] T[] T[] bias=T[7] scale_result=T[]",
              "m f8_e4m3fn[0,3] f8_e4m3fn[3,7] T[] T[] out_dtype=f32"),
     CF_BIT(F32), CF_R_CUSTOM(cf_l_scaled), CF_VALUES, CF_NATIVE, CF_G_NONE},
    /* Enough for tiles of tensor cores. */
    {"aten::_scaled_mm",
     CF_TEXTS("m f8_e4m3fn[72,136] f8_e4m3fn[136,88] T[] T[] out_dtype=f32",
              "m f8_e5m2[77,131] f8_e4m3fn[131,91] T[77,1] T[1,91] bias=f16[91] out_dtype=bf16",
              "m f8_e4m3fn[72,520] f8_e5m2[520,43] T[72,1] T[1] bias=T[43] scale_result=T[]",
              "m f8_e5m2[77,136] f8_e5m2[136,88] T[] T[1,88] bias=bf16[88] out_dtype=f16"),
     CF_BIT(F32), CF_R_CUSTOM(cf_l_scaled), CF_VALUES, CF_NATIVE, CF_G_NONE},
    /* Computed in f32 for half types and f32, whatever an oracle could do better; the gradient goes straight through.
     */
    {"aten::fake_quantize_per_tensor_affine_cachemask",
     CF_TEXTS("s T[33,17] 0.0125 3 -128 127", "m T[3,13,17] 0.25 0 -8 7", "m T[1025] 0.01 100 0 255", "m T[] 0.1 0 0 1",
              "m T[0,3] 0.1 0 0 255", "m T[33,17] -0.1 5 5 5"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_NATIVE | CF_SPECIAL | CF_NO_ADJOINT | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::fake_quantize_per_channel_affine_cachemask",
     CF_TEXTS("m T[33,17] f32[17]+ i32[17]<128 1 0 127", "m T[3,13,17] f32[13]+ i32[13]<8 1 -8 7",
              "m T[1025] f32[1025]+ i32[1025]<1 0 0 255", "m T[3,0] f32[3]+ i32[3]<8 0 0 255"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_NATIVE | CF_NO_ADJOINT | CF_ANY_ZERO, CF_G_SELECT(0)},
    /* A zero point that is no integer rounds once more. */
    {"aten::fake_quantize_per_channel_affine_cachemask",
     CF_TEXTS("m T[33,17] f32[33]+ f32[33] 0 -128 127", "m T[33,17] f32[33]+ f16[33] 0 -128 127"), CF_FLOATS,
     CF_R_ULPS(2), CF_VALUES, CF_NATIVE | CF_NO_ADJOINT | CF_ANY_ZERO, CF_G_SELECT(0)},
};

CF_TOPIC(quantized, "quantized", cf_quantized_ops);
