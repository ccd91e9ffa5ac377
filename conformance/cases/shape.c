#include "conformance/cases/rows.h"

#define CF_MOVE(n, flags, grad, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_MOVABLE, CF_R_EXACT, CF_VALUES, flags, grad }
/* More dims than a kernel is likely to have loops for; every second one is of size 1 or goes together with none. */
#define CF_MANY_DIMS(n, ...) \
  { "aten::" n, CF_TEXTS(__VA_ARGS__), CF_BIT(F32), CF_R_EXACT, CF_VALUES, 0, CF_G_LINEAR(0) }
#define CF_ALL_DIMS(n, text) \
  { "aten::" n, CF_TEXTS("s " text), CF_BIT(F32), CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_LINEAR(0) }
#define CF_SPECIALS_TOO (CF_SPECIAL | CF_WIDE)
/* Prims that copy into another shape or other strides. */
#define CF_INTO(n, ...) \
  { "prims::" n, CF_TEXTS(__VA_ARGS__), CF_MOVABLE, CF_R_EXACT, CF_VALUES, CF_SPECIALS_TOO, CF_G_NONE }
/* Views: done by the host, so that only their gradients run anything. */
#define CF_VIEW(n, ...)                                                                                    \
  {                                                                                                        \
    "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS | CF_BIT(I64) | CF_BOOLS, CF_R_EXACT, CF_VALUES, CF_FLAT, \
        CF_G_LINEAR(0)                                                                                     \
  }

static const cf_op cf_shape_ops[] = {
    {"aten::_to_copy",
     CF_TEXTS("s T[33,17] dtype=f16", "s T[33,17] dtype=f32", "m T[1025] dtype=bf16", "m T[33] dtype=f64",
              "m T[] dtype=f32", "m T[0] dtype=f16", "m T[33,17]", "f T[2,3,1,17] dtype=f32"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIALS_TOO, CF_G_SELECT(1)},
    {"aten::_to_copy",
     CF_TEXTS("s T[33,17] dtype=i32", "m T[33] dtype=bool", "m T[1025] dtype=i64", "m T[33] dtype=u8",
              "m T[33] dtype=i8", "m T[33] dtype=i16"),
     CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_BOOLS, CF_R_EXACT, CF_PROBABILITY, 0, CF_G_NONE},
    {"aten::_to_copy",
     CF_TEXTS("s T[33,17] dtype=f8_e4m3fn", "m T[1025] dtype=f8_e5m2", "m T[129] dtype=f8_e4m3fn",
              "m T[] dtype=f8_e5m2"),
     CF_BIT(F32) | CF_BIT(F16) | CF_BIT(BF16) | CF_BIT(I32), CF_R_EXACT, CF_VALUES, CF_SPECIALS_TOO, CF_G_NONE},
    {"aten::_to_copy", CF_TEXTS("m f8_e4m3fn[33,17] dtype=T", "m f8_e5m2[33,17] dtype=T", "m f8_e5m2[5,3]:1,5 dtype=T"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT | CF_SPECIALS_TOO, CF_G_NONE},
    CF_MOVE("clone", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[33,17]", "m T[1025]", "m T[]", "m T[0]", "m T[3,13,17]",
            "f T[2,1,3,2,2,3]"),
    {"aten::clone", CF_TEXTS("m T[262661]"), CF_BIT(F32), CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE}, /* a megabyte and a tail */
    {"aten::clone", CF_TEXTS("m T[13,5,17]:1,13,65 memory_format='contiguous'"), CF_BIT(F32) | CF_BIT(F16), CF_R_EXACT,
     CF_VALUES, CF_FLAT, CF_G_NONE}, /* turned from the first dim to the last */
    CF_MOVE("copy", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[33,17] T[33,17]", "m T[33,17] T[17]", "m T[1025] T[]",
            "m T[0] T[0]"),
    CF_MOVE("cat", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s {T[33,17];T[5,17]} 0", "s {T[33,17];T[33,3];T[33,1]} 1",
            "s {T[129];T[0];T[13]} 0", "m {T[1];T[131];T[0];T[17];T[64];T[2100];T[1]} 0", "m {T[3,13,17];T[3,1,17]} 1",
            "m {T[33]} 0", "f {T[2,3,1,17];T[2,3,1,5]} -1",
            "s {T[3,2];T[3,5];T[3,1];T[3,4];T[3,0];T[3,9];T[3,3];T[3,1];T[3,2];T[3,6]} 1",
            "m {T[3,0];T[3,0];T[3,0];T[3,0];T[3,0];T[3,0];T[3,0];T[3,0];T[3,5];T[3,2]} 1",
            "m {T[3,13,17];T[3,1,17]} -2"), /* first a launch of none */
    CF_MOVE("constant_pad_nd", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[13,17] [1,2,0,3] 2", "m T[33] [3,1]",
            "m T[3,13,17] [0,0,2,1]", "m T[13,17] [-1,2] 1", "m T[2,3,1,5] [1,1,1,1,1,1,1,1] 3", "s T[0,3] [1,1,1,1]",
            "m T[5001] [33,-5] 1", "m T[9,7,33] [17,2,1,1,-2,3] 1"), /* rows in pieces, and rows of several vectors */
    {"aten::constant_pad_nd", CF_TEXTS("m T[13,17] [1,2,0,3] 0.5-2j"), CF_COMPLEX, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    CF_MOVE("repeat", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[13,17] [2,1,3]", "m T[129] [3]", "m T[] [5]",
            "m T[3,13] [1,0]", "m T[3,1,5] [2,2,2]"),
    CF_MOVE("flip", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[33,17] [0,1]", "m T[1025] [0]", "m T[3,13,17] [1]",
            "m T[0,3] [0]", "m T[33,17] []", "m T[3,13,17] [-1,0]"),
    CF_MOVE("rot90", CF_SPECIALS_TOO, CF_G_LINEAR(0), "m T[33,17]", "m T[3,13,17] 3 [0,2]", "m T[33,17] 2 [-1,0]",
            "m T[13,17] -4", "m T[0,3] 1", "f T[2,3,5,7] 5 [1,3]", "m T[3,13,17] 1 [2,0]"),
    {"aten::tril", CF_TEXTS("m T[65540,5,2] 0"), CF_BIT(F32), CF_R_EXACT, CF_VALUES, 0, CF_G_NONE}, /* many rows */
    CF_MOVE("tril", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[33,17]", "m T[13,17] 3", "m T[17,13] -4", "m T[3,13,17] 1",
            "m T[3,5] 9", "m T[0,3]", "f T[129,1025]"),
    CF_MOVE("triu", CF_SPECIALS_TOO, CF_G_LINEAR(0), "m T[33,17] 1", "m T[13,17] -3", "m T[17,13] 4", "m T[3,13,17]",
            "m T[3,5] -9", "m T[0,3]", "f T[129,1025]"),
    CF_MOVE("roll", CF_SPECIALS_TOO, CF_G_LINEAR(0), "s T[33,17] [5,-3] [0,1]", "m T[33,17] [7]", "m T[1025] [1] [0]",
            "m T[3,13,17] [1,2,3] [2,0,1]", "s T[] [1]", "m T[0] [1] [0]", "m T[13,17] [0,1] [0,1]",
            "m T[3,13,17] [5,-3] [-1,-3]"),
    CF_MOVE("select_scatter", CF_SPECIALS_TOO, CF_G_LINEAR(0), "m T[33,17] T[17] 0 5", "m T[33,17] T[33] 1 -1",
            "m T[3,13,17] T[3,17] 1 12", "m T[17] T[] 0 3", "m T[3,13,17] T[3,17] -2 5"),
    CF_MOVE("slice_scatter", CF_SPECIALS_TOO, CF_G_LINEAR(0), "m T[33,17] T[5,17] 0 3 8", "m T[33,17] T[33,6] 1 2 14 2",
            "m T[1025] T[1025] 0", "m T[3,13,17] T[3,5,17] 1 0 100 3", "s T[33] T[0] 0 5 5",
            "m T[3,13,17] T[3,4,17] -2 1 12 3"),
    CF_MANY_DIMS("clone", "m T[2,1,3,1,2,2,1,3]"),
    CF_MANY_DIMS("cat", "m {T[2,1,3,1,2,2,1,3];T[2,1,3,1,5,2,1,3]} 4"),
    CF_MANY_DIMS("constant_pad_nd", "m T[2,1,3,1,2,2,1,3] [1,0,0,2,1,1,0,0,1,0,0,1,0,0,1,1] 3"),
    CF_MANY_DIMS("constant_pad_nd", "m T[3,33] [4099,2071] 2"), /* by more than what a core takes at a time */
    CF_MANY_DIMS("repeat", "m T[2,1,3,1,2,2,1,3] [1,2,1,3,2,1,2,1]", "m T[2,2,2,2,2,2,2,2] [2,2,2,2,2,2,2,2]"),
    CF_MANY_DIMS("flip", "m T[2,1,3,1,2,2,1,3] [0,2,5,7]"),
    CF_MANY_DIMS("copy", "m T[2,1,3,1,2,2,1,3] T[2,2,1,3]"),
    CF_ALL_DIMS("clone", CF_MOST_DIMS),
    CF_ALL_DIMS("copy", CF_MOST_DIMS " " CF_MOST_DIMS),
    CF_ALL_DIMS("cat", "{" CF_MOST_DIMS ";" CF_MOST_DIMS "} 15"),
    CF_ALL_DIMS("constant_pad_nd", CF_MOST_DIMS " [1,2,1,0] 3"),
    CF_ALL_DIMS("repeat", CF_MOST_DIMS " [1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,2]"),
    CF_ALL_DIMS("flip", CF_MOST_DIMS " [0,15]"),
    CF_ALL_DIMS("rot90", CF_MOST_DIMS " 1 [2,15]"),
    CF_ALL_DIMS("tril", CF_MOST_DIMS),
    CF_ALL_DIMS("roll", CF_MOST_DIMS " [1,1] [0,15]"),
    CF_ALL_DIMS("select_scatter", CF_MOST_DIMS " T[" CF_MOST_BUT_ONE "] 15 1"),
    CF_ALL_DIMS("slice_scatter", CF_MOST_DIMS " T[" CF_MOST_BUT_ONE ",2] 15 1"),
    CF_INTO("collapse", "m T[33,17] 0 1", "m T[3,13,17] 1 2", "m T[] 0 0", "m T[0,3] 0 1"),
    CF_INTO("reshape", "m T[33,17] [17,33]", "m T[3,13,17] [39,17]", "m T[] [1,1]", "m T[0,3] [3,0]"),
    CF_INTO("copy_strided", "m T[33,17] [1,33]", "m T[3,13] [40,3]", "m T[] []", "m T[0,3] [1,1]"),
    {"prims::as_strided_scatter",
     CF_TEXTS("m T[33,17] T[5,3] [5,3] [17,2] 3", "m T[129] T[3,3] [3,3] [20,5] 0", "m T[33] T[] [] [] 32"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_FLAT | CF_SPECIALS_TOO, CF_G_LINEAR(0)},
    {"aten::unfold_backward",
     CF_TEXTS("m T[13,11,7] [13,17] 1 7 1", "m T[33,2,9] [33,17] 1 9 8", "s T[4,13,3] [17,13] 0 3 4",
              "m T[1,5] [5] 0 5 2", "s T[1] [] 0 1 1", "m T[5,0] [4] 0 0 1", "m T[13,8,3] [13,17] -1 3 2"),
     CF_FLOATS | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, 0, CF_G_LINEAR(0)},
    {"prims::broadcast_in_dim",
     CF_TEXTS("m T[33,17] [33,3,17] [0,2]", "m T[13,1,5] [13,3,5] [0,1,2]", "m T[1,13] [5,3,13] [0,2]", "m T[] [5] []"),
     CF_FLOATS | CF_BIT(I64), CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_LINEAR(0)},
    CF_VIEW("alias", "s T[33,17]", "m T[]"),
    CF_VIEW("as_strided", "s T[33,17] [5,3] [17,2]", "m T[33] [3,3] [1,1]"),
    CF_VIEW("diagonal", "s T[33,17]", "m T[13,17] -2", "m T[3,13,17] 1 0 2", "m T[3,13,17] -1 -1 -3"),
    CF_VIEW("expand", "s T[33,1] [33,17]", "m T[17] [3,33,17]", "m T[] [5]"),
    CF_VIEW("permute", "s T[33,17] [1,0]", "m T[3,13,17] [2,0,1]", "m T[] []", "m T[3,13,17] [-1,0,-2]"),
    {"aten::select.int",
     CF_TEXTS("s T[33,17] 1 3", "m T[33,17] 0 -1", "m T[17] 0 5", "m T[3,13,17] 1 0", "m T[3,13,17] -2 7"),
     CF_FLOATS | CF_BIT(I64) | CF_BOOLS, CF_R_EXACT, CF_VALUES, 0, CF_G_LINEAR(0)},
    {"aten::slice.Tensor",
     CF_TEXTS("s T[33,17] 1 3 13 2", "m T[33,17] 0 -5", "m T[17] 0 5 5", "m T[3,13,17] 1 0 100 3",
              "m T[3,13,17] -2 1 12 3"),
     CF_FLOATS | CF_BIT(I64) | CF_BOOLS, CF_R_EXACT, CF_VALUES, 0, CF_G_LINEAR(0)},
    CF_VIEW("split_with_sizes", "s T[33,17] [3,13,17]", "m T[13,17] [5,0,12] 1", "m T[13,5,17] [5,0,8] -3"),
    CF_VIEW("squeeze.dim", "s T[33,1,17] 1", "m T[33,17] 0", "m T[33,17,1] -1"),
    CF_VIEW("squeeze.dims", "s T[1,33,1,17] [0,2]", "m T[33,17] [0]", "m T[1,33,1,17] [-2,0]"),
    CF_VIEW("unsqueeze", "s T[33,17] 1", "m T[] 0", "m T[3,13] -1", "m T[13,3] 0"),
    CF_VIEW("view", "s T[33,17] [17,33]", "m T[3,13,17] [39,-1]", "m T[] [1,1]", "m T[0,3] [3,0]"),
    {"aten::constant_pad_nd", CF_TEXTS("m T[13,17] [1,2,0,3] 2.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::constant_pad_nd", CF_TEXTS("m T[13,17] [1,2,0,3] -2.75"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE}, /* cut to -2 */
};

CF_TOPIC(shape, "shape", cf_shape_ops);
