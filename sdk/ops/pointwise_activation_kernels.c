/* Reference kernels of activations and of their gradients. Gradients take the cotangent first, then what was saved. */
#include "ops/pointwise_kernels.h"

static long double logistic(long double x) {
  return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
/* NaN stays; where the limits cross, the upper one holds. */
static long double between(long double x, long double low, long double high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

/* P: alpha, scale, input_scale */
REAL(elu, x[0] <= 0 ? expm1l(x[0] * P(2)) * P(0) * P(1) : x[0] * P(1))
REAL(celu, x[0] <= 0 ? expm1l(x[0] / P(0)) * P(0) : x[0])
static long double r_elu_backward(const long double *x, pw_context *c) {
  if (!(x[1] <= 0)) return x[0] * P(1);
  bool is_result = c->mode;
  long double low = P(0) * P(1);
  return x[0] * P(2) * (is_result ? x[1] + low : low * expl(x[1] * P(2)));
}

REAL(hardtanh, between(x[0], P(0), P(1)))
REAL(hardtanh_backward, x[1] <= P(0) || x[1] >= P(1) ? 0 : x[0])
REAL(leaky_relu, x[0] > 0 ? x[0] : x[0] * P(0))
REAL(leaky_relu_backward, x[1] > 0 ? x[0] : x[0] * P(0))
REAL(hardswish, x[0] * between(x[0] + 3, 0, 6) / 6)
REAL(hardswish_backward, x[1] <= -3 ? 0 : x[1] < 3 ? x[0] * (x[1] / 3 + 0.5L) : x[0])
REAL(hardsigmoid, between(x[0] + 3, 0, 6) / 6)
REAL(hardsigmoid_backward, x[1] > -3 && x[1] < 3 ? x[0] / 6 : 0)
REAL(threshold, x[0] <= P(0) ? P(1) : x[0])
REAL(hardshrink, x[0] >= -P(0) && x[0] <= P(0) ? 0 : x[0])
REAL(softshrink, x[0] > P(0) ? x[0] - P(0) : x[0] < -P(0) ? x[0] + P(0) : x[0] * 0)
REAL(shrink_backward, x[1] >= -P(0) && x[1] <= P(0) ? 0 : x[0])
REAL(prelu, x[0] > 0 ? x[0] : x[1] * x[0])

/* P: beta, threshold */
REAL(softplus, x[0] * P(0) > P(1) ? x[0] : log1pl(expl(x[0] * P(0))) / P(0))
REAL(softplus_backward, x[1] * P(0) > P(1) ? x[0] : x[0] * logistic(x[1] * P(0)))

/* The third operand is what the forward has kept: exp(-|x|). */
static long double r_log_sigmoid_backward(const long double *x, pw_context *c) {
  (void)c;
  long double share = x[2] / (1 + x[2]);
  return x[0] * (x[1] < 0 ? 1 - share : share);
}

/* x tanh(log(1 + e^x)) */
static long double mish_gate(long double x) {
  return tanhl(x > 100 ? x : log1pl(expl(x)));
}
REAL(mish, x[0] * mish_gate(x[0]))
static long double r_mish_backward(const long double *x, pw_context *c) {
  (void)c;
  long double gate = mish_gate(x[1]);
  return x[0] * (gate + x[1] * logistic(x[1]) * (1 - gate * gate));
}

INTEGER(hardtanh, (int64_t)between(x[0], (int64_t)P(0), (int64_t)P(1)))
INTEGER(threshold, x[0] <= (int64_t)P(0) ? (int64_t)P(1) : x[0])

static const pw_kernel kernels[] = {
    RO(ELU, elu) RO(CELU, celu) RO(ELU_BACKWARD, elu_backward) RI(HARDTANH, hardtanh)
        RO(HARDTANH_BACKWARD, hardtanh_backward) RO(LEAKY_RELU, leaky_relu) RO(LEAKY_RELU_BACKWARD, leaky_relu_backward)
            RO(HARDSWISH, hardswish) RO(HARDSWISH_BACKWARD, hardswish_backward) RO(HARDSIGMOID, hardsigmoid)
                RO(HARDSIGMOID_BACKWARD, hardsigmoid_backward) RI(THRESHOLD, threshold) RO(HARDSHRINK, hardshrink)
                    RO(SOFTSHRINK, softshrink) RO(HARDSHRINK_BACKWARD, shrink_backward)
                        RO(SOFTSHRINK_BACKWARD, shrink_backward) RO(PRELU_KERNEL, prelu) RO(SOFTPLUS, softplus)
                            RO(SOFTPLUS_BACKWARD, softplus_backward) RO(LOG_SIGMOID_BACKWARD, log_sigmoid_backward)
                                RO(MISH, mish) RO(MISH_BACKWARD, mish_backward)};
PW_KERNELS(activation);
