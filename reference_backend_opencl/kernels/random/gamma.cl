/* Gamma variates, behind random.cl where the head defines DRAWS, and how they move with their shape, for SLOPES. D is the
 * dtype of all tensors. */
#ifdef DRAWS
/* The four uniform numbers of an attempt. */
static void attempt_uniforms(ulong block, uint attempt, ulong seed, CT *u) {
#ifdef WIDE
  for (uint half_way = 0; half_way < 2; half_way++) {
    uint4 w = philox_of(block, 2 * attempt + half_way, seed);
    u[2 * half_way] = (double)(((ulong)w.y << 32 | w.x) >> 11) * 0x1p-53;
    u[2 * half_way + 1] = (double)(((ulong)w.w << 32 | w.z) >> 11) * 0x1p-53;
  }
#else
  uint4 w = philox_of(block, attempt, seed);
  u[0] = (float)(w.x >> 8) * 0x1p-24f, u[1] = (float)(w.y >> 8) * 0x1p-24f;
  u[2] = (float)(w.z >> 8) * 0x1p-24f, u[3] = (float)(w.w >> 8) * 0x1p-24f;
#endif
}

static CT gamma_of(CT shape, ulong block, ulong seed) {
  if (!(shape > 0)) return shape == 0 ? (CT)0 : (CT)NAN;
  if (shape == (CT)INFINITY) return shape;
  CT d = shape < 1 ? shape + K(0.66666666666666666667) : shape - K(0.33333333333333333333), c = 1 / sqrt(9 * d), u[4];
  for (uint attempt = 0; attempt < 64; attempt++) {
    attempt_uniforms(block, attempt, seed, u);
    CT z = sqrt((CT)-2 * log1p(-u[0])) * cospi((CT)2 * u[1]), y = 1 + c * z;
    if (!(y > 0)) continue;
    CT v = y * y * y;
    if (!(log1p(-u[2]) < z * z / 2 + d * (1 - v + log(v)))) continue;
    return shape < 1 ? d * v * exp(log1p(-u[3]) / shape) : d * v;
  }
  return d;
}

#define LEAST_f16 K(0x1p-14)
#define LEAST_bf16 K(0x1p-126)
#define LEAST_f32 K(0x1p-126)
#define LEAST_f64 0x1p-1022

KERNEL draw_gamma(PLACE(out), CONST_PLACE(shapes), ulong seed, ulong first_block, ulong n) {
  ulong i = get_global_id(0);
  if (i >= n) return;
  CT x = gamma_of(LOAD(D, __global, CONST_POINTER(D, shapes) + i), first_block + i, seed);
  CT least = CAT(LEAST_, D);
  STORE(D, __global, POINTER(D, out) + i, x < least ? least : x);
}
#endif

#ifdef SLOPES
/* The slope of log Gamma, right of 0: by recurrence up to 10, then Bernoulli's numbers (pointwise/gamma.cl has it for all
 * numbers, and takes long to compile). */
static CT digamma(CT a) {
  CT sum = 0;
  for (; a < 10; a += 1) sum -= 1 / a;
  CT t = 1 / (a * a), series = fma(K(-0.083333333333333333333), t, K(0.021092796092796092796));
  series = fma(series, t, K(-0.0075757575757575757576));
  series = fma(series, t, K(0.0041666666666666666667));
  series = fma(series, t, K(-0.0039682539682539682540));
  series = fma(series, t, K(0.0083333333333333333333));
  series = fma(series, t, K(-0.083333333333333333333)) * t;
  return sum + log(a) - K(0.5) / a + series;
}

/* Where x is small, by the first terms of the series of the distribution. */
static CT slope_of_series(CT a, CT x) {
  CT factor = 1, divisor = a, sum = 1 / a, squares = 1 / (a * a);
  for (int i = 1; i <= 5; i++) {
    factor *= -x / (CT)i, divisor += 1;
    sum += factor / divisor, squares += factor / (divisor * divisor);
  }
  CT power = pow(x, a), density = pow(x, a - 1) * exp(-x);
  CT slope = -((log(x) - digamma(a)) * power * sum - power * squares) / density;
  return slope != slope ? (CT)0 : slope;
}

/* Of large shapes, by the saddle point; near it, by a polynomial. */
static CT slope_of_saddle(CT a, CT x) {
  if (K(0.9) * a <= x && x <= K(1.1) * a) {
    CT first = 1 + 24 * a * (1 + 12 * a);
    CT second = 1440 * a * a + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
    return first / (a * a) * (second / (a * a)) / 1244160;
  }
  CT ratio = log(x / a), root = sqrt(8 * a), away = a - x;
  CT power = pow(-away - a * ratio, K(-1.5)), pull = root / away + (x < a ? -power : power);
  CT term = ratio * pull - sqrt(2 / a) * (a + x) / (away * away);
  return -(1 + 1 / (12 * a) * (1 + 1 / (24 * a))) * x * term / root;
}

/* Elsewhere by a quotient of polynomials. */
__constant CT rows[3][8] = {{K(0.16009398), K(-0.094634809), K(0.025146376), K(-0.0030648343), K(1.0), K(0.32668115),
                             K(0.10406089), K(0.0014179084)},
                            {K(0.53487893), K(0.1298071), K(0.065735949), K(-0.0015649758), K(0.16639465),
                             K(0.020070113), K(-0.0035938915), K(-0.00058392623)},
                            {K(0.040121004), K(-0.0065914022), K(-0.0026286047), K(-0.0013441777), K(0.017050642),
                             K(-0.0021309326), K(0.00085092367), K(-1.5247877e-07)}};

static CT slope_of_quotient(CT a, CT x) {
  CT u = log(x / a), v = log(a), parts[2] = {0, 0};
  for (int i = 7; i >= 0; i--) parts[i / 4] = parts[i / 4] * v + rows[0][i] + u * (rows[1][i] + u * rows[2][i]);
  return exp(parts[0] / parts[1]);
}

KERNEL slopes(PLACE(out), CONST_PLACE(shapes), CONST_PLACE(in), ulong n) {
  ulong i = get_global_id(0);
  if (i >= n) return;
  CT a = LOAD(D, __global, CONST_POINTER(D, shapes) + i), x = LOAD(D, __global, CONST_POINTER(D, in) + i);
  CT slope = x < K(0.8) ? slope_of_series(a, x) : a > 8 ? slope_of_saddle(a, x) : slope_of_quotient(a, x);
  STORE(D, __global, POINTER(D, out) + i, slope);
}
#endif
