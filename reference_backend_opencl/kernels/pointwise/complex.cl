/* Functions of complex numbers, in front of kernels that compute with them: VT is one number, its parts PARTs. Formulas
 * are chosen so that errors are small beside the modulus, and nothing overflows on the way to what does not. For zeros,
 * infinities and NaN results are those of C11, annex G, where these are specified. */
#ifdef IS_DOUBLE
#define MANY 512                      /* an exponent whose exponential is far from overflow, */
#define E_MANY 2.2844135865397565e222 /* which is this */
#define FLAT 20                       /* beyond it, exp(-2 x) is nothing beside 1 */
#define FAR 0x1p500                   /* beyond it, so is 1 / x^2, and x^2 is still finite */
#define LARGE 0x1p1020                /* of numbers beyond it the root is taken of a sixteenth, */
#define SMALL 0x1p-960                /* of those below, of RAISE times as much */
#define RAISE 0x1p104
#define RAISED_ROOT 0x1p-52
#else
#define MANY 64
#define E_MANY 6.2351490808116168e27f
#define FLAT 11
#define FAR 0x1p30f
#define LARGE 0x1p124f
#define SMALL 0x1p-100f
#define RAISE 0x1p50f
#define RAISED_ROOT 0x1p-25f
#endif
#define LN_2 K(0.69314718055994530942)
#define HALF_PI K(1.57079632679489661923)

static VT conjugate(VT a) { return (VT)(a.x, -a.y); }
/* i a, and a / i: sine and tangent are hyperbolic functions of a number that was turned. */
static VT turned(VT a) { return (VT)(-a.y, a.x); }
static VT turned_back(VT a) { return (VT)(a.y, -a.x); }
static PART larger_part(VT a) { return fmax(fabs(a.x), fabs(a.y)); }
static int is_nan(VT a) { return (a.x != a.x) | (a.y != a.y); }
static int is_finite(VT a) { return (a.x - a.x == 0) & (a.y - a.y == 0); }
static int is_infinite(VT a) { return (fabs(a.x) == INFINITY) | (fabs(a.y) == INFINITY); }
/* The product, in which 0 is stronger than infinity and NaN. */
static PART strong_zero(PART a, PART b) {
  PART product = a * b;
  return product == product ? product : a == 0 ? a : b == 0 ? b : product;
}

/* ---- Products and quotients ---- */

/* By a number, which mostly is a real one: infinities of b then stay what they are. */
static VT complex_scaled(VT x, VT b) { return x.y == 0 ? x.x * b : complex_mul(x, b); }

static int exponent_of(VT a) {
  PART most = larger_part(a);
  return (most > 0) & (most < INFINITY) ? ilogb(most) : 0;
}
/* Both scaled to about 1 first. */
static VT complex_div(VT a, VT b) {
  int up = exponent_of(a), down = exponent_of(b);
  VT n = (VT)(ldexp(a.x, -up), ldexp(a.y, -up)), d = (VT)(ldexp(b.x, -down), ldexp(b.y, -down));
  PART size = fma(d.x, d.x, d.y * d.y);
  VT q = (VT)(fma(n.x, d.x, n.y * d.y) / size, fma(n.y, d.x, -(n.x * d.y)) / size);
  q = (VT)(ldexp(q.x, up - down), ldexp(q.y, up - down));
  if (!((q.x != q.x) & (q.y != q.y))) return q;
  if ((b.x == 0) & (b.y == 0)) return copysign((PART)INFINITY, b.x) * a;
  VT signs_a = (VT)(copysign((PART)(fabs(a.x) == INFINITY), a.x), copysign((PART)(fabs(a.y) == INFINITY), a.y));
  VT signs_b = (VT)(copysign((PART)(fabs(b.x) == INFINITY), b.x), copysign((PART)(fabs(b.y) == INFINITY), b.y));
  if (is_infinite(a) && is_finite(b)) return (PART)INFINITY * complex_mul(signs_a, conjugate(b));
  if (is_infinite(b) && is_finite(a)) return (PART)0 * complex_mul(a, conjugate(signs_b));
  return q;
}
/* For what is not finite, and for the signs of zeros, as PyTorch has it, by R. Smith's quotient: NaN where both parts are
 * infinite, or one is beside NaN; a part that is 0 has the sign of the larger part of a. */
static VT complex_reciprocal(VT a) {
  if (is_infinite(a) & (is_nan(a) | (fabs(a.x) == fabs(a.y)))) return (VT)(NAN, NAN);
  VT q = complex_div((VT)(1, 0), a);
  bool wide = fabs(a.x) >= fabs(a.y);
  if ((q.x == 0) & (wide | (a.x == 0) | (fabs(a.y) == INFINITY))) q.x = copysign((PART)0, wide ? a.x : a.y);
  if ((q.y == 0) & wide & ((a.y == 0) | (fabs(a.x) == INFINITY))) q.y = copysign((PART)0, a.x);
  return q;
}

static VT complex_lerp(VT a, VT b, VT weight) {
  VT step = b - a, rest = (VT)(1, 0) - weight;
  return hypot(weight.x, weight.y) < K(0.5) ? a + complex_scaled(weight, step) : b - complex_scaled(rest, step);
}

/* Scaled by a power of two first, so that the modulus is within range, and no denormal. */
static VT complex_sign(VT a) {
  VT scaled = a * (larger_part(a) > 1 ? K(0.5) : RAISE);
  return (a.x == 0) & (a.y == 0) ? (VT)0 : scaled / hypot(scaled.x, scaled.y);
}

/* ---- Exponentials and logarithms ---- */

/* Where y is not finite, there is no angle: beside a finite x, which does not make it 0 however small its exponential is,
 * all is NaN; infinity stays. */
static int has_no_angle(PART x, PART y) { return (y - y != 0) & (x > -INFINITY); }
static VT of_no_angle(PART x) { return (VT)(x == INFINITY ? INFINITY : NAN, NAN); }

/* scale e^x (cos y + i sin y), where e^x alone may overflow. */
static VT scaled_exp(PART scale, PART x, PART y) {
  PART part = x > MANY ? E_MANY : 1, size = exp(x > MANY ? x - MANY : x) * scale;
  if (has_no_angle(x, y)) return of_no_angle(x);
  return (VT)(strong_zero(size, cos(y)) * part, strong_zero(size, sin(y)) * part);
}
static VT complex_exp(VT a) { return scaled_exp(1, a.x, a.y); }
static VT complex_exp2(VT a) {
  PART size = exp2(a.x), y = a.y * LN_2;
  if (has_no_angle(a.x, y)) return of_no_angle(a.x);
  return (VT)(strong_zero(size, cos(y)), strong_zero(size, sin(y)));
}
/* Where a part is not finite, plain products, as in PyTorch. */
static VT complex_expm1(VT a) {
  PART chord = sin(a.y * K(0.5));
  if (!is_finite(a)) return (VT)(expm1(a.x) * cos(a.y) - 2 * chord * chord, exp(a.x) * sin(a.y));
  if (a.x > 1) return complex_exp(a) - (VT)(1, 0);
  return (VT)(expm1(a.x) * cos(a.y) - 2 * chord * chord, strong_zero(exp(a.x), sin(a.y)));
}

/* Near the unit circle, where the modulus would lose all its digits, from the difference of its square to 1. */
static PART log_modulus(VT a) {
  PART most = larger_part(a), least = fmin(fabs(a.x), fabs(a.y)), ratio = least / most;
  if (most == INFINITY) return INFINITY;
  if (is_nan(a)) return NAN;
  if (most == 0) return -INFINITY;
  bool near = (most > K(0.5)) & (most < 2);
  PART square = near ? (most - 1) * (most + 1) + least * least : ratio * ratio;
  return (near ? 0 : log(most)) + log1p(square) * K(0.5);
}
static VT complex_log(VT a) { return (VT)(log_modulus(a), atan2(a.y, a.x)); }
static VT complex_log1p(VT a) {
  VT sum = (VT)(1 + a.x, a.y);
  if (is_nan(a)) return (VT)(NAN, NAN);
  if (larger_part(a) > K(0.5)) return complex_log(sum);
  PART less = a.x * (2 + a.x) + a.y * a.y; /* the modulus's square, less 1; of 0 the sign stays */
  return (VT)(less == 0 ? a.x : log1p(less) * K(0.5), atan2(a.y, sum.x));
}

/* log(exp(a) + exp(b)). Infinities without a difference stay as they are. */
static VT complex_log_add(VT a, VT b) {
  VT most = b.x > a.x ? b : a, least = b.x > a.x ? a : b;
  if ((a.x == b.x) & (fabs(a.x) == INFINITY) & ((a.x < 0) | (a.y == b.y))) return a;
  return most + complex_log1p(complex_exp(least - most));
}

/* By modulus and angle, of which the first is as accurate as a power of real numbers. */
static VT complex_pow(VT a, VT b) {
  if ((b.x == 0) & (b.y == 0)) return (VT)(1, 0);
  if ((b.x == 2) & (b.y == 0)) return complex_mul(a, a);
  PART angle = atan2(a.y, a.x), turn = b.x * angle, size = pow(hypot(a.x, a.y), b.x);
  if (b.y != 0) {
    turn += b.y * log_modulus(a);
    size *= exp(-b.y * angle);
  }
  return (VT)(strong_zero(size, cos(turn)), strong_zero(size, sin(turn)));
}

static VT complex_sigmoid(VT a) { return complex_reciprocal((VT)(1, 0) + complex_exp(-a)); }
static VT complex_silu(VT a) { return complex_div(a, (VT)(1, 0) + complex_exp(-a)); }
static VT complex_silu_slope(VT a) {
  VT s = complex_sigmoid(a);
  return complex_mul(s, (VT)(1, 0) + complex_mul(a, (VT)(1, 0) - s));
}

/* ---- Roots ---- */

static VT complex_sqrt(VT a) {
  PART most = larger_part(a), by = 1, back = 1;
  if (fabs(a.y) == INFINITY) return (VT)(INFINITY, a.y);
  if ((a.x == 0) & (a.y == 0)) return (VT)(0, a.y);
  if (most > LARGE) by = 0.0625f, back = 4;
  if (most < SMALL) by = RAISE, back = RAISED_ROOT;
  VT scaled = a * by;
  PART root = sqrt((fabs(scaled.x) + hypot(scaled.x, scaled.y)) * K(0.5)) * back, other = fabs(a.y) / root * K(0.5);
  return a.x >= 0 ? (VT)(root, copysign(other, a.y)) : (VT)(other, copysign(root, a.y));
}

/* ---- Hyperbolic and trigonometric functions ---- */

static VT complex_cosh(VT a) {
  if (!(fabs(a.x) > FLAT)) return (VT)(strong_zero(cosh(a.x), cos(a.y)), strong_zero(sinh(a.x), sin(a.y)));
  VT e = scaled_exp(K(0.5), fabs(a.x), a.y);
  return (VT)(e.x, a.x < 0 ? -e.y : e.y);
}
static VT complex_sinh(VT a) {
  if (!(fabs(a.x) > FLAT)) return (VT)(strong_zero(sinh(a.x), cos(a.y)), strong_zero(cosh(a.x), sin(a.y)));
  VT e = scaled_exp(K(0.5), fabs(a.x), a.y);
  return (VT)(a.x < 0 ? -e.x : e.x, e.y);
}
/* W. Kahan, "Branch cuts for complex elementary functions", 1987; so are the inverse functions. */
static VT complex_tanh(VT a) {
  if ((a.y - a.y != 0) & (a.x - a.x == 0) & (a.x != 0)) return (VT)(NAN, NAN);
  if (fabs(a.x) > FLAT) {
    return (VT)(copysign((PART)1, a.x), strong_zero(4 * exp(-2 * fabs(a.x)), sin(a.y) * cos(a.y)));
  }
  PART t = tan(a.y), beta = 1 + t * t, s = sinh(a.x), rho = sqrt(1 + s * s), size = 1 + beta * s * s;
  return (VT)(strong_zero(s, beta * rho / size), t == 0 ? t : t / size);
}
/* sin(pi a) / (pi a): by the period of 2 what is left of a is exact. */
static VT complex_sinc(VT a) {
  const PART pi = K(3.1415926535897932385);
  VT turn = (VT)(pi * (a.x - 2 * rint(a.x * K(0.5))), pi * a.y);
  if ((a.x == 0) & (a.y == 0)) return (VT)(1, 0);
  return complex_div(turned_back(complex_sinh(turned(turn))), pi * a);
}
static VT complex_cos(VT a) { return complex_cosh(turned(a)); }
static VT complex_sin(VT a) { return turned_back(complex_sinh(turned(a))); }
static VT complex_tan(VT a) { return turned_back(complex_tanh(turned(a))); }

/* Where a part is exact whatever the other one is, it is so beside NaN, too, as C99 has it. */
static VT complex_asin(VT a) {
  if (larger_part(a) > FAR) return (VT)(atan2(a.x, fabs(a.y)), copysign(log_modulus(a) + LN_2, a.y));
  VT left = complex_sqrt((VT)(1 - a.x, -a.y)), right = complex_sqrt((VT)(1 + a.x, a.y));
  PART angle = a.x == 0 ? a.x : atan2(a.x, left.x * right.x - left.y * right.y);
  return (VT)(angle, asinh(left.x * right.y - left.y * right.x));
}
static VT complex_acos(VT a) {
  if (larger_part(a) > FAR) return (VT)(atan2(fabs(a.y), a.x), -copysign(log_modulus(a) + LN_2, a.y));
  VT left = complex_sqrt((VT)(1 - a.x, -a.y)), right = complex_sqrt((VT)(1 + a.x, a.y));
  PART angle = a.x == 0 ? HALF_PI : 2 * atan2(left.x, right.x);
  return (VT)(angle, asinh(right.x * left.y - right.y * left.x));
}
static VT complex_acosh(VT a) {
  VT turn = complex_acos(a);
  return (VT)(fabs(turn.y), copysign(turn.x, a.y));
}
static VT complex_atanh(VT a) {
  PART x = fabs(a.x), y = a.y, left = 1 - x, most = larger_part(a);
  if (most > FAR) {
    PART size = most < INFINITY ? complex_reciprocal(a).x : copysign((PART)0, a.x);
    return (VT)(size, y == y ? copysign(HALF_PI, y) : y);
  }
  bool is_edge = (x == 1) & (fabs(y) < K(1e-10));
  PART size = is_edge ? (LN_2 - log(fabs(y))) * K(0.5) : log1p(4 * x / (left * left + y * y)) * K(0.25);
  return (VT)(x == 0 ? a.x : copysign(size, a.x), atan2(2 * y, left * (1 + x) - y * y) * K(0.5));
}
static VT complex_asinh(VT a) { return turned_back(complex_asin(turned(a))); }
static VT complex_atan(VT a) { return turned_back(complex_atanh(turned(a))); }
