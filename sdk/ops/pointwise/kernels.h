/* How the reference kernels of pointwise ops are written: one expression a value, on the operands x[0], x[1], x[2] (x,
 * y, z where complex) and the numbers P(0), P(1), P(2). */
#ifndef GRAFT_SDK_POINTWISE_KERNELS_H
#define GRAFT_SDK_POINTWISE_KERNELS_H

#include "ops/core/ref.h"
#include "ops/pointwise/pointwise.h"

#define REAL(name, expression)                                       \
  static long double r_##name(const long double *x, pw_context *c) { \
    (void)c;                                                         \
    return expression;                                               \
  }
#define INTEGER(name, expression)                            \
  static int64_t i_##name(const int64_t *x, pw_context *c) { \
    (void)c;                                                 \
    return expression;                                       \
  }
#define COMPLEX(name, expression)                                                                \
  static dt_value c_##name(const dt_value *v, pw_context *c) {                                   \
    (void)c;                                                                                     \
    ref_complex x = v[0].re + v[0].im * I, y = v[1].re + v[1].im * I, z = v[2].re + v[2].im * I; \
    (void)x, (void)y, (void)z;                                                                   \
    ref_complex r = expression;                                                                  \
    return (dt_value){creall(r), cimagl(r)};                                                     \
  }
#define P(n)  (c->p[n])
#define CP(n) (c->p[n] + c->pi[n] * I)

/* Rows: which of real, integer and complex there are. */
#define RIC(op, name)    {GRAFT_OP_##op, r_##name, i_##name, c_##name},
#define RC(op, name)     {GRAFT_OP_##op, r_##name, NULL, c_##name},
#define RI(op, name)     {GRAFT_OP_##op, r_##name, i_##name, NULL},
#define RO(op, name)     {GRAFT_OP_##op, r_##name, NULL, NULL},
#define IO(op, name)     {GRAFT_OP_##op, NULL, i_##name, NULL},
#define CO(op, name)     {GRAFT_OP_##op, NULL, NULL, c_##name},
#define PW_KERNELS(name) const pw_kernels pw_##name##_kernels = {kernels, sizeof kernels / sizeof *kernels}

#endif
