#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/rows.h"

/* scatter_reduce, index_reduce: of each element of the result, how many elements come together there, and the sum of
 * their sizes. */
typedef struct cf_meeting {
  long double count, size;
} cf_meeting;

static void cf_meet(const cf_check *k, cf_meeting *of) {
  const cf_array *self = &k->in[0], *index = &k->in[1], *src = &k->in[2];
  const int64_t given = cf_arg_int(k->call, "dim", 0), dim = given < 0 ? given + self->ndim : given;
  bool slices = strcmp(k->call->op->name, "aten::index_reduce") == 0; /* an index for each slice of src */
  const cf_array *places = slices ? src : index;
  for (int64_t i = 0; i < places->numel; i++) {
    int64_t rest = i, to = 0, from = 0, self_step = 1, src_step = 1;
    for (int32_t d = self->ndim - 1; d >= 0; d--) {
      int64_t own = rest % places->sizes[d];
      rest /= places->sizes[d];
      to += (d == dim ? (int64_t)index->v[slices ? own : i].re : own) * self_step;
      from += own * src_step;
      self_step *= self->sizes[d];
      src_step *= src->sizes[d];
    }
    of[to].count += 1;
    of[to].size += fabsl(src->v[from].re);
  }
  for (int64_t i = 0; i < self->numel && cf_arg_int(k->call, "include_self", 1); i++) {
    of[i].count += 1;
    of[i].size += fabsl(self->v[i].re);
  }
}

/* sum: as any sum. mean: it and a division. prod: as any product. amax, amin: exact. */
static void cf_l_scatter_reduce(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  const char *reduce = k->call->text.args[4].as.str;
  long double u = cf_u_acc(k->dtypes[out]);
  cf_meeting *of = calloc((size_t)o->numel + 1, sizeof *of);
  if (of) cf_meet(k, of);
  for (int64_t i = 0; of && i < o->numel; i++) {
    long double n = of[i].count, result = fabsl(o->v[i].re), rounding = cf_ulp(k->dtypes[out], result) / 2;
    if (!strcmp(reduce, "sum")) limits[i] = cf_growth(n) * u * of[i].size + rounding;
    if (!strcmp(reduce, "mean") && n > 0) limits[i] = cf_growth(n) * u * of[i].size / n + 2 * u * result + rounding;
    if (!strcmp(reduce, "prod")) limits[i] = n * u * result + rounding;
  }
  free(of);
}

static const cf_op cf_scatter_ops[] = {
    {"aten::scatter_add",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17 T[33,5]", "m T[33,17] 0 i64[129,17]<33 T[129,17]",
              "m T[13] 0 i64[1025]<13 T[1025]", "m T[3,13,17] 1 i64[3,5,17]<13 T[3,5,17]",
              "s T[33,17] 1 i64[33,0]<17 T[33,0]", "m T[3,13,17] -2 i64[3,5,17]<13 T[3,5,17]"),
     CF_REALS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    /* So many that what sorts them goes over several blocks, line by line or all together where a line of the target is
     * longer than a block; and so many side by side that cores share them out in stretches, the last one shorter. */
    {"aten::scatter_add",
     CF_TEXTS("m T[129,5] 0 i64[9001,5]<129 T[9001,5]", "m T[129,50] 0 i64[517,50]<129 T[517,50]",
              "m T[5,3001] 1 i64[3,1001]<3001 T[3,1001]", "m T[5001] 0 i64[9001]<5001 T[9001]",
              "m T[129,71] 0 i64[517,71]<129 T[517,71]"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::index_put",
     CF_TEXTS("s T[33,17] {i64[5]<33!} T[5,17]", "m T[13,17,3] {_;i64[5]<17!} T[13,5,3]", "m T[33] {i64[3]<33!} T[]",
              "m T[33,17] {i64[0]<33} T[0,17]", "m T[3,5,17] {_;_;i64[7]<17!} T[3,5,7]"),
     CF_ANY_DTYPE | CF_FLOAT8, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::index_put",
     CF_TEXTS("m T[33,17] {bool[33,17]} T[]", "m T[13,17,3] {bool[13,17]} T[1,1]", "m T[33] {bool[33]} T[1]"),
     CF_ANY_DTYPE | CF_FLOAT8, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_LINEAR(0)},
    {"aten::index_put",
     CF_TEXTS("s T[33,17] {i64[5]<33} T[5,17] true", "m T[13,17] {i64[129]<13;i64[129]<17} T[129] true",
              "m T[5] {i64[1025]<5} T[1025] true", "m T[13,17,3] {_;i64[129]<17} T[13,129,3] true"),
     CF_FLOATS | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    /* Rows of two indices, more places than a tile sorts, and one row for many places. */
    {"aten::index_put",
     CF_TEXTS("m T[13,17,3] {i64[129]<13;i64[129]<17} T[129,3] true",
              "m T[13,17] {i64[5001]<13;i64[5001]<17} T[5001] true", "m T[13,3] {i64[9,11]<13} T[9,1,3] true"),
     CF_BIT(F32) | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::index_put", CF_TEXTS("m " CF_MOST_DIMS " {i64[5]<2} T[5,1,3,1,1,1,1,1,1,1,1,1,1,1,2,3] true"), CF_BIT(F32),
     CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::scatter.src",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17! T[33,5]", "m T[33,17] 0 i64[5,17]<33! T[5,17]", "m T[13] 0 i64[3]<13! T[3]",
              "m T[33,17] 1 i64[33,0]<17 T[33,0]", "m T[3,13,17] -2 i64[3,5,17]<13! T[3,5,17]"),
     CF_ANY_DTYPE | CF_FLOAT8, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    /* So many places that they are sorted: in rows, in lines, and more than a tile of them. */
    {"aten::index_put", CF_TEXTS("m T[129,17] {i64[100]<129!} T[100,17]", "m T[6001] {i64[5001]<6001!} T[5001]"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::scatter.src",
     CF_TEXTS("m T[129,17] 0 i64[100,17]<129! T[100,17]", "m T[3,300] 1 i64[3,100]<300! T[3,100]",
              "m T[6001] 0 i64[5001]<6001! T[5001]"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::index_copy", CF_TEXTS("m T[129,17] 0 i64[100]<129! T[100,17]", "m T[6001] 0 i64[5001]<6001! T[5001]"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::put", CF_TEXTS("m T[6001] i64[5001]<6001! T[5001]"), CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_EXACT,
     CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::scatter.value",
     CF_TEXTS("m T[33,17] 1 i64[33,5]<17 2", "m T[33,17] 0 i64[129,17]<33 1", "m T[13] 0 i64[3]<13 2",
              "m T[3,13,17] 1 i64[3,5,17]<13 3", "m T[] 0 i64[]<1 2", "m T[33,17] 1 i64[33,0]<17 2",
              "m T[3,13,17] -2 i64[3,5,17]<13 2"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::_index_put_impl",
     CF_TEXTS("m T[33,17] {i64[5]<33!} T[5,17]", "m T[13,17,3] {_;i64[5]<17!} T[13,5,3] false true",
              "m T[33] {i64[3]<33!} T[]", "m T[33,17] {i64[0]<33} T[0,17]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::_index_put_impl", CF_TEXTS("m T[33,17] {i64[5]<33} T[5,17] true", "m T[5] {i64[1025]<5} T[1025] true"),
     CF_FLOATS | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::index_add",
     CF_TEXTS("s T[33,17] 0 i64[129]<33 T[129,17]", "m T[33,17] 1 i64[5]<17 T[33,5] alpha=2",
              "m T[13] 0 i64[1025]<13 T[1025]", "m T[3,13,17] 1 i32[5]<13 T[3,5,17] alpha=-3",
              "m T[33,17] 1 i64[0]<17 T[33,0]", "s T[] 0 i64[1]<1 T[]", "m T[3,13,17] -2 i64[5]<13 T[3,5,17]"),
     CF_REALS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::index_add", CF_TEXTS("m T[33,17] 0 i64[129]<33 T[129,17] alpha=2.5"), CF_FLOATS, CF_R_SUM(CF_TERMS_ONES),
     CF_VALUES, CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::index_add", CF_TEXTS("m T[13] 0 i64[129]<13 T[129] alpha=-2.5"), CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE}, /* cut to -2 */
    /* Rows that none goes to, among others to which many do. */
    {"aten::index_add", CF_TEXTS("m T[5001,3] 0 i64[5000]<5001 T[5000,3]", "m T[32,17] 0 i64[129]<5 T[129,17]"),
     CF_BIT(F32) | CF_BIT(BF16) | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::index_copy",
     CF_TEXTS("s T[33,17] 1 i64[5]<17! T[33,5]", "m T[33,17] 0 i64[33]<33! T[33,17]",
              "m T[1025] 0 i64[129]<1025! T[129]", "m T[3,13,17] 1 i64[5]<13! T[3,5,17]",
              "m T[33,17] 1 i64[0]<17 T[33,0]", "m T[] 0 i64[1]<1 T[]", "m T[13] 0 i64[]<13 T[]",
              "m T[3,13,17] -2 i64[5]<13! T[3,5,17]"),
     CF_MOVABLE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::index_fill.int_Tensor",
     CF_TEXTS("s T[33,17] 1 i64[5]<17 T[]", "m T[33,17] 0 i64[33]<33 T[]", "m T[1025] 0 i64[129]<1025 T[]",
              "m T[3,13,17] 1 i64[3]=-2 T[]", "m T[33,17] 1 i64[0]<17 T[]", "s T[] 0 i64[1]<1 T[]",
              "m T[13] 0 i64[]=-13 T[]", "m T[3,13,17] -2 i64[5]<13 T[]"),
     CF_MOVABLE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::put",
     CF_TEXTS("m T[33,17] i64[33]<561! T[33]", "m T[1025] i64[39]<1025! T[3,13]", "m T[3,13,17] i64[]=-3 T[1]",
              "m T[33] i64[0]<33 T[0]", "m T[] i64[1]<1 T[]"),
     CF_MOVABLE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::put", CF_TEXTS("m T[33,17] i64[1025]<561 T[1025] true", "m T[13] i64[129]=-5 T[3,43] true"), CF_REALS,
     CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17 T[33,5] 'sum'", "m T[33,17] 0 i64[129,17]<33 T[129,17] 'mean'",
              "m T[33,17] 0 i64[129,17]<33 T[129,17] 'sum' false", "m T[13] 0 i64[1025]<13 T[1025] 'mean' false",
              "m T[3,13,17] 1 i64[3,5,17]<13 T[3,7,17] 'mean'", "m T[] 0 i64[]<1 T[] 'mean'",
              "m T[33,17] 1 i64[33,0]<17 T[33,0] 'sum' false", "m T[3,13,17] -2 i64[3,5,17]<13 T[3,7,17] 'mean'"),
     CF_REALS, CF_R_CUSTOM(cf_l_scatter_reduce), CF_VALUES, CF_ORDERED, CF_G_LINEAR(4)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("m T[33,17] 1 i64[33,5]<17 T[33,5] 'prod'", "m T[33,17] 0 i64[29,17]<33 T[29,17] 'prod' false",
              "m T[3,13,17] 1 i64[3,5,17]<13 T[3,7,17] 'prod'", "m T[] 0 i64[]<1 T[] 'prod' false"),
     CF_REALS, CF_R_CUSTOM(cf_l_scatter_reduce), CF_NONZERO, CF_ORDERED, CF_G_SELECT(16)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("m T[33,17] 1 i64[33,5]<17 T[33,5] 'amax'", "m T[33,17] 0 i64[129,17]<33 T[129,17] 'amin' false",
              "m T[13] 0 i64[1025]<13 T[1025] 'amax' false", "m T[3,13,17] 1 i64[3,5,17]<13 T[3,7,17] 'amin'",
              "s T[] 0 i64[]<1 T[] 'amin' false", "m T[33,17] 1 i64[33,0]<17 T[33,0] 'amax'"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(4)},
    /* What an element begins as that does not count itself. */
    {"aten::scatter_reduce.two", CF_TEXTS("m T[33,17] 0 i64[29,17]<33 T[29,17] 'amin' false"), CF_INTS, CF_R_EXACT,
     CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::scatter_reduce.two", CF_TEXTS("m T[33,17] 0 i64[29,17]<33 T[29,17] 'amax' false"), CF_INTS, CF_R_EXACT,
     CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::index_reduce",
     CF_TEXTS("m T[33,17] 0 i64[129]<33 T[129,17] 'mean'", "s T[13] 0 i64[129]<13 T[129] 'mean' include_self=false",
              "m T[] 0 i64[1]<1 T[] 'mean'", "m T[33,17] 1 i64[0]<17 T[33,0] 'mean'",
              "m T[3,13,17] -2 i64[29]<13 T[3,29,17] 'mean'"),
     CF_REALS, CF_R_CUSTOM(cf_l_scatter_reduce), CF_VALUES, CF_ORDERED, CF_G_LINEAR(4)},
    {"aten::index_reduce",
     CF_TEXTS("s T[33,17] 1 i64[5]<17 T[33,5] 'prod'", "m T[33,17] 0 i32[29]<33 T[29,17] 'prod' include_self=false",
              "m T[3,13,17] 1 i64[5]<13 T[3,5,17] 'prod'", "m T[] 0 i64[1]<1 T[] 'prod' include_self=false"),
     CF_REALS, CF_R_CUSTOM(cf_l_scatter_reduce), CF_NONZERO, CF_ORDERED, CF_G_SELECT(16)},
    {"aten::index_reduce",
     CF_TEXTS("m T[33,17] 1 i64[5]<17 T[33,5] 'amax'", "m T[33,17] 0 i64[129]<33 T[129,17] 'amin' include_self=false",
              "m T[32,17] 0 i64[129]<5 T[129,17] 'amax' include_self=false",
              "m T[13] 0 i64[1025]<13 T[1025] 'amax' include_self=false", "m T[] 0 i64[1]<1 T[] 'amin'"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(4)},
    {"aten::masked_scatter",
     CF_TEXTS("s T[33,17] bool[33,17] T[561]", "m T[33,17] bool[17] T[33,17]", "m T[1025] bool[1025]=1 T[1025]",
              "m T[3,13,17] bool[13,1] T[900]", "m T[33] bool[33]=0 T[0]", "m T[] bool[] T[1]"),
     CF_MOVABLE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::masked_scatter", CF_TEXTS("m T[33001] bool[33001] T[33001]", "m T[5003] bool[5003] T[5003]"),
     CF_BIT(F32) | CF_BIT(U8), CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::scatter.value", CF_TEXTS("m T[33,17] 1 i64[33,5]<17 2.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::scatter.value", CF_TEXTS("m T[33,17] 1 i64[33,5]<17 -2.75"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE}, /* cut to -2 */
    /* Of places that are fewer in each dim than what is written, and than what that is written to. */
    {"aten::scatter.src", CF_TEXTS("m T[13,17] 0 i64[7,5]<13! T[9,11]", "m T[3,13,17] 1 i64[2,5,7]<13! T[3,7,9]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::scatter.value", CF_TEXTS("m T[13,17] 0 i64[7,5]<13 2", "m T[3,13,17] 1 i64[2,5,7]<13 2"), CF_ANY_DTYPE,
     CF_R_EXACT, CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::scatter_add", CF_TEXTS("m T[13,17] 0 i64[7,5]<13 T[9,11]", "m T[3,13,17] 1 i64[2,5,7]<13 T[3,7,9]"),
     CF_REALS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("m T[13,17] 0 i64[7,5]<13 T[9,11] 'sum'", "m T[3,13,17] 1 i64[2,5,7]<13 T[3,7,9] 'mean' false"), CF_REALS,
     CF_R_CUSTOM(cf_l_scatter_reduce), CF_VALUES, CF_ORDERED, CF_G_LINEAR(4)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("m T[13,17] 0 i64[7,5]<13 T[9,11] 'prod'", "m T[3,13,17] 1 i64[2,5,7]<13 T[3,7,9] 'prod' false"),
     CF_REALS, CF_R_CUSTOM(cf_l_scatter_reduce), CF_NONZERO, CF_ORDERED, CF_G_SELECT(16)},
    {"aten::scatter_reduce.two",
     CF_TEXTS("m T[13,17] 0 i64[7,5]<13 T[9,11] 'amax'", "m T[3,13,17] 1 i64[2,5,7]<13 T[3,7,9] 'amin' false"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_ANY_ZERO, CF_G_SELECT(4)},
};

CF_TOPIC(scatter, "scatter", cf_scatter_ops);
