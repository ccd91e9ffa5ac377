#include "conformance/cases/linalg/factors.h"
#include "conformance/cases/rows.h"

#define CF_LAPACK (CF_BIT(F32) | CF_BIT(F64) | CF_COMPLEX)

/* Multiples of n u that the inputs of an algorithm may be off by. Cholesky (Higham, theorem 10.3): n + 1. LU (theorem
 * 9.4): 3 n, times what pivots grow by, which is a few for numbers drawn at random. Triangles (theorem 8.5): n. And as
 * much again for each solution that a gradient is made of. QR (theorem 19.4) and Jacobi's rotations: the same as in
 * factors.c. The exponential: each of the products that its scaling takes (Higham, Functions of Matrices, 10.3).
 */
enum { CF_CHOLESKY = 2, CF_LU = 12, CF_TRIANGLE = 2, CF_QR = 8, CF_EXPONENTIAL = 16 };

/* Behind a matrix: of numbers whose sums of squares f32 doesn't hold, though it holds their factors. */
#define CF_LARGE "<-9000000000000000000..9000000000000000000"

/* Where an operand, which is broadcast, has what stands at element `at` of the result, moved along dim by `by` in a
 * circle. */
static dt_value cf_circled(const cf_array *a, const cf_array *out, int64_t at, int64_t dim, int64_t by) {
  int64_t index = 0, step = 1;
  for (int32_t d = out->ndim - 1; d >= 0; d--) {
    int64_t place = at % out->sizes[d];
    if (d == dim) place = (place + by) % 3;
    if (a->sizes[d] > 1) index += place * step;
    step *= a->sizes[d];
    at /= out->sizes[d];
  }
  return a->v[index];
}

/* Two products, rounded or not, and their difference. */
static void cf_cross_limit(const cf_check *check, uint32_t out, long double *limits) {
  const cf_array *o = &check->outs[out], *a = &check->in[0], *b = &check->in[1];
  int64_t dim = cf_arg_int(check->call, "dim", -1);
  if (dim < 0) dim += o->ndim;
  for (int64_t i = 0; i < o->numel; i++) {
    long double first = cf_modulus(cf_circled(a, o, i, dim, 1)) * cf_modulus(cf_circled(b, o, i, dim, 2));
    long double second = cf_modulus(cf_circled(a, o, i, dim, 2)) * cf_modulus(cf_circled(b, o, i, dim, 1));
    limits[i] = cf_limit_of(check, out, i, 2 * (first + second));
  }
}

static const cf_op cf_linalg_ops[] = {
    {"aten::trace", CF_TEXTS("s T[33,17]", "m T[13,129]", "m T[129,129]", "m T[1,3]", "m T[0,3]"),
     CF_REALS | CF_COMPLEX, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::linalg_cross",
     CF_TEXTS("s T[33,3] T[33,3]", "m T[17,3,13] T[17,3,13] dim=1", "m T[3] T[3]", "m T[5,1,3] T[1,129,3]",
              "m T[3,33] T[3,1] dim=0", "m T[17,13,3] T[17,13,3] dim=2", "m T[17,3,13] T[17,3,13] dim=-2",
              "m T[0,3] T[0,3]"),
     CF_REALS | CF_COMPLEX, CF_R_CUSTOM(cf_cross_limit), CF_VALUES, CF_ANY_ZERO, CF_G_BACKWARD(1)},
    {"aten::linalg_cholesky_ex",
     CF_TEXTS("s T[3,13,13]~definite", "m T[33,33]~definite upper=true", "m T[2,2,17,17]~definite", "m T[1,1]~definite",
              "m T[3,0,0]~definite", "m T[0,3,3]~definite", "m T[67,67]~definite", "m T[129,129]~definite",
              "m T[2,131,131]~definite upper=true"),
     CF_LAPACK, CF_R_BACKWARD(CF_CHOLESKY), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(4 * CF_CHOLESKY)},
    /* PyTorch's gradient of a factor is that of a whole matrix, of which a triangle is read. LAPACK takes it that the
     * diagonal is real. */
    {"aten::cholesky_inverse",
     CF_TEXTS("s T[3,13,13]~factor", "s T[33,33]~factor true", "m T[1,1]~factor", "m T[3,0,0]~factor",
              "m T[97,97]~factor"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_TRIANGLE), CF_VALUES, CF_ORDERED | CF_NO_ADJOINT, CF_G_BACKWARD(4 * CF_TRIANGLE)},
    {"aten::cholesky_solve",
     CF_TEXTS("s T[3,13,5]~general T[3,13,13]~dominant", "m T[33,1]~general T[33,33]~dominant true",
              "m T[2,1,17,3]~general T[5,17,17]~dominant", "m T[13,0]~general T[13,13]~dominant"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_TRIANGLE), CF_VALUES, CF_ORDERED | CF_NO_ADJOINT, CF_G_BACKWARD(4 * CF_TRIANGLE)},
    {"aten::linalg_solve_triangular",
     CF_TEXTS("s T[3,13,13]~dominant T[3,13,5]~general upper=true",
              "m T[33,33]~dominant T[17,33]~general upper=false left=false",
              "m T[2,1,17,17]~dominant T[5,17,3]~general upper=false", "m T[1,1]~dominant T[1,1]~general upper=true",
              "m T[5,13,13]~dominant T[3,13]~general upper=true left=false",
              "m T[3,13,13]~dominant T[13,2]~general upper=false", "m T[0,0]~dominant T[0,3]~general upper=true",
              "m T[13,13]~dominant T[13,5]~general upper=true unitriangular=true",
              "m T[13,13]~dominant T[5,13]~general upper=false left=false unitriangular=true",
              "m T[97,97]~dominant T[97,17]~general upper=false",
              "m T[2,129,129]~dominant T[129,15]~general upper=true",
              "m T[127,127]~dominant T[33,127]~general upper=true left=false unitriangular=true",
              "m T[96,96]~dominant T[16,96]~general upper=false left=false"),
     CF_LAPACK, CF_R_BACKWARD(CF_TRIANGLE), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(3 * CF_TRIANGLE)},
    {"aten::linalg_solve_triangular",
     CF_TEXTS("m T[2,1,1,1,1,1,1,1,1,1,1,1,2,3,5,5]~dominant T[2,1,1,1,1,1,1,1,1,1,1,2,1,5,2]~general upper=true"),
     CF_BIT(F32), CF_R_BACKWARD(CF_TRIANGLE), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(3 * CF_TRIANGLE)},
    {"aten::triangular_solve",
     CF_TEXTS("m T[3,13,5]~general T[3,13,13]~dominant", "m T[33,2]~general T[33,33]~dominant false",
              "m T[17,3]~general T[5,17,17]~dominant true true", "m T[1,1]~general T[1,1]~dominant",
              "m T[13,5]~general T[13,13]~dominant true false true"),
     CF_LAPACK, CF_R_BACKWARD(CF_TRIANGLE), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(3 * CF_TRIANGLE)},
    {"aten::linalg_lu_factor_ex",
     CF_TEXTS("s T[3,13,13]~general", "m T[33,17]~general", "m T[17,33]~general", "m T[1,1]~general",
              "m T[3,0,5]~general", "m T[2,2,5,5]~dominant pivot=false", "m T[69,67]~general", "m T[96,96]~general",
              "s T[2,97,129]~general", "m T[161,127]~general", "m T[129,129]~dominant pivot=false",
              "m T[515,97]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_lu_property, 3, CF_LU), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(2 * CF_LU)},
    {"aten::linalg_lu_factor_ex",
     CF_TEXTS("m T[3,13,13]~singular", "m T[2,17,33]~singular", "m T[3,97,129]~singular", "m T[161,127]~singular"),
     CF_LAPACK, CF_R_PROPERTY(cf_lu_property, 3, CF_LU), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::lu_unpack",
     CF_TEXTS("s T[3,13,5] i32[3,5]~pivots", "m T[5,13] i32[5]~pivots", "m T[2,2,7,7] i32[2,2,7]~pivots",
              "m T[9,4] i32[4]~pivots false true", "s T[4,9] i32[4]~pivots true false", "m T[1,1] i32[1]~pivots",
              "m T[3,0,5] i32[3,0]~pivots", "f T[129,65] i32[65]~pivots"),
     CF_REALS | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::linalg_inv_ex",
     CF_TEXTS("s T[3,13,13]~general", "m T[33,33]~dominant", "m T[2,2,5,5]~general", "m T[1,1]~dominant",
              "m T[3,0,0]~general", "m T[129,129]~dominant"),
     CF_LAPACK, CF_R_BACKWARD(CF_LU), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(2 * CF_LU)},
    {"aten::_linalg_solve_ex",
     CF_TEXTS("s T[3,13,13]~general T[3,13,5]~general", "s T[33,33]~dominant T[33]~general",
              "m T[3,13,13]~dominant T[3,13]~general", "m T[2,1,5,5]~dominant T[3,7,5]~general left=false",
              "m T[13,13]~dominant T[3,13,5]~general", "m T[0,0]~general T[0,3]~general",
              "m T[0,0]~general T[0]~general", "s T[129,129]~dominant T[129,17]~general",
              "m T[2,97,97]~dominant T[3,97]~general left=false"),
     CF_LAPACK, CF_R_PROPERTY(cf_lu_property, 6, CF_LU), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(2 * CF_LU)},
    {"aten::linalg_lu_solve",
     CF_TEXTS("s T[3,13,13]~dominant i32[3,13]~pivots T[3,13,5]~general",
              "m T[33,33]~dominant i32[33]~pivots T[33,17]~general adjoint=true",
              "m T[2,1,5,5]~dominant i32[2,1,5]~pivots T[3,7,5]~general left=false",
              "m T[3,5,5]~dominant i32[3,5]~pivots T[7,5]~general left=false adjoint=true",
              "m T[0,0]~dominant i32[0]~pivots T[0,3]~general",
              "m T[2,129,129]~dominant i32[2,129]~pivots T[129,17]~general adjoint=true",
              "m T[97,97]~dominant i32[97]~pivots T[3,97]~general left=false",
              "m T[96,96]~dominant i32[96]~pivots T[33,96]~general left=false adjoint=true"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_TRIANGLE), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(4 * CF_TRIANGLE)},
    {"aten::linalg_lu_solve",
     CF_TEXTS("m T[2,1,1,1,1,1,1,1,1,1,1,1,2,3,5,5]~dominant i32[2,1,1,1,1,1,1,1,1,1,1,1,2,3,5]~pivots "
              "T[2,1,1,1,1,1,1,1,1,1,1,2,1,5,2]~general"),
     CF_BIT(F32), CF_R_BACKWARD(2 * CF_TRIANGLE), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(4 * CF_TRIANGLE)},
    {"aten::_linalg_det",
     CF_TEXTS("s T[3,5,5]~general", "m T[13,13]~general", "m T[2,2,3,3]~general", "m T[1,1]~general",
              "m T[3,0,0]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_det_property, 6, CF_LU), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(2 * CF_LU)},
    {"aten::_linalg_slogdet",
     CF_TEXTS("m T[3,5,5]~general", "m T[33,33]~general", "m T[2,2,3,3]~general", "m T[1,1]~general",
              "m T[3,0,0]~general", "m T[97,97]~dominant"),
     CF_LAPACK, CF_R_PROPERTY(cf_det_property, 12, CF_LU), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(2 * CF_LU)},
    {"aten::linalg_qr",
     CF_TEXTS("s T[3,13,13]~general", "m T[33,17]~general", "m T[17,33]~general", "m T[2,2,5,5]~general 'complete'",
              "m T[1,1]~general", "m T[3,0,5]~general", "m T[2,97,97]~general", "m T[129,111]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_qr_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_PHASES("cr", 4 * CF_QR)},
    {"aten::linalg_qr",
     CF_TEXTS("m T[33,17]~general 'complete'", "m T[17,33]~general 'r'", "m T[3,5,0]~general 'complete'",
              "m T[20,13]~alike", "m T[127,161]~general", "m T[17,13]" CF_LARGE "~general",
              "m T[129,97]" CF_LARGE "~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_qr_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::geqrf",
     CF_TEXTS("m T[3,13,13]~general", "m T[33,17]~general", "m T[17,33]~general", "m T[1,1]~general",
              "m T[39,35]~general", "m T[2,97,96]~general", "m T[515,96]~general", "m T[4099,3]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_geqrf_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::linalg_householder_product",
     CF_TEXTS("m T[3,13,5]~dominant T[3,5]", "m T[9,9]~dominant T[7]", "m T[1,1]~general T[1]",
              "m T[39,37]~dominant T[35]", "s T[97,65]~reflectors T[33]~scales"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_QR), CF_UNIT, CF_ORDERED, CF_G_BACKWARD(8 * CF_QR)},
    {"aten::ormqr",
     CF_TEXTS("m T[3,13,5]~general T[3,5] T[3,13,4]~general", "m T[9,9]~general T[9] T[4,9]~general false true",
              "m T[9,9]~general T[9] T[9,4]~general true true", "m T[3,5]~general T[3] T[3,4]~general",
              "m T[39,35]~general T[35] T[39,4]~general", "m T[2,97,33]~reflectors T[2,33]~scales T[2,97,9]~general",
              "s T[96,64]~reflectors T[64]~scales T[7,96]~general false true"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_QR), CF_UNIT, CF_ORDERED, CF_G_BACKWARD(8 * CF_QR)},
    {"aten::_linalg_eigh",
     CF_TEXTS("s T[3,13,13]~hermitian", "m T[33,33]~hermitian 'U'", "m T[2,2,5,5]~hermitian", "m T[1,1]~hermitian",
              "m T[3,0,0]~hermitian", "f T[65,65]~hermitian"),
     CF_LAPACK, CF_R_PROPERTY(cf_eigh_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_PHASES("-c", 4 * CF_QR)},
    {"aten::_linalg_eigh",
     CF_TEXTS("m T[17,17]~hermitian compute_v=false", "m T[17,17]~general", "m T[17,17]~general 'U'",
              "m T[20,20]~alike", "s T[65,65]~hermitian 'U'", "f T[2,64,64]~hermitian",
              "m T[13,13]" CF_LARGE "~hermitian", "m T[65,65]" CF_LARGE "~hermitian"),
     CF_LAPACK, CF_R_PROPERTY(cf_eigh_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::_linalg_svd",
     CF_TEXTS("s T[3,13,5]~general", "m T[17,33]~general", "m T[2,2,5,5]~general", "m T[1,1]~general",
              "m T[3,0,5]~general", "f T[65,65]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_svd_property, 7, 1), CF_VALUES, CF_ORDERED, CF_G_PHASES("c-r", 4 * CF_QR)},
    {"aten::_linalg_svd",
     CF_TEXTS("m T[9,5]~general true", "m T[5,9]~general true", "s T[17,5]~general false false", "m T[20,13]~alike",
              "m T[17,13]" CF_LARGE "~general", "m T[65,65]" CF_LARGE "~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_svd_property, 7, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::linalg_ldl_factor_ex",
     CF_TEXTS("m T[3,13,13]~hermitian", "m T[33,33]~general hermitian=true", "m T[1,1]~definite",
              "m T[2,0,0]~hermitian", "m T[3,13,13]~singular", "m T[3,33,33]~singular hermitian=true"),
     CF_LAPACK, CF_R_PROPERTY(cf_ldl_property, 3, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
    /* Two triangles and a block diagonal. Pairs divide by what stands beside the diagonal, which is not 0. */
    {"aten::linalg_ldl_solve",
     CF_TEXTS("m T[3,13,13]~dominant i32[3,13]~pairs T[3,13,5]~general",
              "m T[33,33]~dominant i32[33]~pivots T[33,2]~general",
              "m T[2,1,5,5]~dominant i32[2,1,5]~pairs T[3,5,4]~general hermitian=true",
              "m T[6,6]~dominant i64[6]~pairs T[6,3]~general", "m T[0,0]~dominant i32[0]~pivots T[0,3]~general"),
     CF_LAPACK, CF_R_BACKWARD(3 * CF_TRIANGLE), CF_NONZERO, CF_ORDERED, CF_G_NONE},
    {"aten::linalg_eig", CF_TEXTS("m T[3,5,5]~general", "m T[13,13]~general", "m T[1,1]~general", "m T[2,0,0]~general"),
     CF_LAPACK, CF_R_PROPERTY(cf_eig_property, 3, 1), CF_VALUES, 0, CF_G_PHASES("vu", 4 * CF_QR)},
    {"aten::linalg_matrix_exp",
     CF_TEXTS("m T[3,13,13]~dominant", "m T[33,33]~dominant", "m T[2,2,5,5]~general", "m T[1,1]~general",
              "m T[3,0,0]~general"),
     CF_LAPACK, CF_R_BACKWARD(CF_EXPONENTIAL), CF_UNIT, CF_ORDERED, CF_G_BACKWARD(2 * CF_EXPONENTIAL)},
    {"aten::linalg_matrix_exp", CF_TEXTS("m T[3,13,13]~dominant", "m T[2,5,5]~general", "m T[3,0,0]~general"),
     CF_BIT(F16) | CF_BIT(BF16), CF_R_BACKWARD(CF_EXPONENTIAL), CF_UNIT, CF_ORDERED, CF_G_BACKWARD(2 * CF_EXPONENTIAL)},
    /* What is right is one x, which moves with the inputs: also the condition of a least squares problem. */
    {"aten::linalg_lstsq",
     CF_TEXTS("s T[13,5]~general T[13,3]~general driver='gels'", "m T[3,5,13]~general T[3,5,2]~general driver='gels'",
              "m T[3,17,17]~dominant T[1,17,2]~general driver='gels'",
              "s T[3,13,5]~general T[3,13]~general driver='gels'", "m T[1,1]~dominant T[1]~general driver='gels'",
              "m T[33,5]~general T[33,0]~general driver='gels'", "m T[33,65]~general T[33,17]~general driver='gels'",
              "m T[3,5,13]~general T[3,5]~general driver='gels'", "m T[2,13,5]~general T[1,13,2]~general driver='gels'",
              "s T[2,1,5,13]~general T[1,3,5,2]~general driver='gels'",
              "m T[2,13,5]~general T[2,13,100]~general driver='gels'",
              "m T[2,5,13]~general T[2,5,100]~general driver='gels'",
              "m T[1,1,1,2,1,1,1,1,1,1,13,5]~general T[1,1,1,2,1,1,1,1,1,1,13,3]~general driver='gels'"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_QR), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(4 * CF_QR)},
    {"aten::linalg_lstsq",
     CF_TEXTS("m T[13,5]~general T[13,3]~general", "m T[3,5,13]~general T[3,5,2]~general driver='gelsd'",
              "s T[3,13,5]~general T[3,13,2]~general driver='gelss'",
              "m T[1,13,5]~general T[3,13,2]~general driver='gelsd'", "s T[0,5]~general T[0,3]~general driver='gelsd'",
              "s T[3,5,13]~general T[3,5]~general", "m T[17,5]~general T[17]~general driver='gelss'",
              "m T[2,1,13,5]~general T[1,3,13,2]~general driver='gelss'"),
     CF_LAPACK, CF_R_BACKWARD(2 * CF_QR), CF_VALUES, CF_ORDERED, CF_G_BACKWARD(4 * CF_QR)},
    {"aten::linalg_lstsq",
     CF_TEXTS("m T[13,5]=2 T[13,3]~general driver='gelsd'", "m T[5,13]=-1 T[5,2]~general driver='gelss'",
              "m T[3,13,5]~general T[3,13,2]~general 0.5 driver='gelsd'"),
     CF_LAPACK, CF_R_PROPERTY(cf_lstsq_property, 11, 1), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(linalg, "linalg", cf_linalg_ops);
