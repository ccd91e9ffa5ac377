/* What is tested, as the rows of cases/ say it: an op, its argument texts and dtypes, and how far a right answer and a
 * right gradient may be from the oracle's. */
#ifndef GRAFT_CF_ROW_H
#define GRAFT_CF_ROW_H

#include "tensor/dtype.h"

/* Sets of dtypes, bits of GRAFT_NUMBER_*. */
#define CF_BIT(name) (1u << GRAFT_NUMBER_##name)
#define CF_FLOATS    (CF_BIT(F32) | CF_BIT(F64) | CF_BIT(F16) | CF_BIT(BF16))
#define CF_INTS      (CF_BIT(I32) | CF_BIT(I64) | CF_BIT(I16) | CF_BIT(I8) | CF_BIT(U8))
#define CF_BOOLS     CF_BIT(BOOL)
#define CF_COMPLEX   (CF_BIT(C64) | CF_BIT(C128))
#define CF_SIGNED    (CF_INTS & ~CF_BIT(U8))
#define CF_REALS     (CF_FLOATS | CF_INTS)
#define CF_ANY_DTYPE (CF_FLOATS | CF_INTS | CF_BOOLS)
#define CF_FLOAT8    (CF_BIT(F8_E4M3FN) | CF_BIT(F8_E5M2))
/* Of ops that move elements as they are: float8, too, in which nothing is computed. */
#define CF_MOVABLE (CF_ANY_DTYPE | CF_COMPLEX | CF_FLOAT8)

/* ---- how far a result may be ---- */

/* The classes of the tolerance table (tolerance.c says the limit of each). */
typedef enum cf_class {
  CF_EXACT,    /* bit-equal; NaN matches NaN */
  CF_ROUNDED,  /* + - x: correctly rounded */
  CF_DIVISION, /* 1 ulp; bit-equal in half types. Square root, too */
  CF_ALPHA,    /* fused or not: 1 ulp + 2u x the sum of the absolute terms */
  CF_SCALED,   /* CF_ROUNDED while alpha is 1 or absent, else CF_ALPHA */
  CF_ULPS,     /* `ulps` of the output; 1 in half types */
  CF_GATED,    /* gelu, silu: `ulps` + 2u x |x| */
  CF_SUM,      /* min(2 sqrt n, n) x u_acc x S + 1/2 ulp */
  CF_PROD,     /* n x u_acc x |result| + 1/2 ulp */
  CF_PERMUTED, /* values exact, indices any valid permutation: topk, unstable sort */
  CF_BACKWARD, /* of inputs that are off by `ulps` n u of their norms, as far as that moves the result (condition.h) */
  CF_PROPERTY, /* what the results of `covers` are to the inputs and to each other: `property`; others as CF_BACKWARD */
  CF_CUSTOM    /* `limit`: first-order propagation, beside the row */
} cf_class;

/* How many terms an element of a CF_SUM has. */
typedef enum cf_terms {
  CF_TERMS_RATIO, /* elements of the first tensor per element of the output */
  CF_TERMS_ONES,  /* what the op gives on ones */
  CF_TERMS_WINDOW /* the product of the first int list (a pooling window) */
} cf_terms;

typedef struct cf_check cf_check;     /* tolerance.h */
typedef struct cf_verdict cf_verdict; /* compare.h */
/* Writes one number an element of output `out`; the buffer comes zeroed. */
typedef void (*cf_limit_fn)(const cf_check *check, uint32_t out, long double *limits);

/* Judges results together, by what makes them right whatever their signs. */
typedef void (*cf_property_fn)(const cf_check *check, const cf_array *results, cf_verdict *verdict);

typedef struct cf_rule {
  cf_class klass;
  double ulps; /* CF_ULPS, CF_GATED, CF_BACKWARD; CF_SUM: what 2 sqrt n is scaled by beyond 1, 0 for 1 */
  cf_terms terms;
  cf_limit_fn limit;
  cf_property_fn property;
  uint32_t covers; /* bits of outputs */
  bool absolute;   /* CF_CUSTOM: `limit` reads the results on absolute values, too */
} cf_rule;

#define CF_R_EXACT \
  { .klass = CF_EXACT }
#define CF_R_ROUNDED \
  { .klass = CF_ROUNDED }
#define CF_R_DIVISION \
  { .klass = CF_DIVISION }
#define CF_R_ALPHA \
  { .klass = CF_ALPHA }
#define CF_R_SCALED \
  { .klass = CF_SCALED }
#define CF_R_ULPS(n) \
  { .klass = CF_ULPS, .ulps = (n) }
#define CF_R_GATED(n) \
  { .klass = CF_GATED, .ulps = (n) }
#define CF_R_SUM(how) \
  { .klass = CF_SUM, .terms = (how) }
#define CF_R_PERMUTED \
  { .klass = CF_PERMUTED }
#define CF_R_CUSTOM(f) \
  { .klass = CF_CUSTOM, .limit = (f) }

#define CF_R_BACKWARD(n) \
  { .klass = CF_BACKWARD, .ulps = (n) }
#define CF_R_PROPERTY(f, outs, n) \
  { .klass = CF_PROPERTY, .property = (f), .covers = (outs), .ulps = (n) }

/* ---- how far a gradient may be ---- */

/* Where S, the sum of the absolute terms of a gradient, comes from. */
typedef enum cf_grad_kind {
  CF_GRAD_NONE,
  CF_GRAD_ABS,     /* the same VJP on absolute inputs and cotangents: linear and multilinear ops */
  CF_GRAD_SELECT,  /* the VJP at the inputs themselves with absolute cotangents: ops that choose or scale */
  CF_GRAD_KAPPA,   /* |g| x kappa(x): pointwise ops, kappa the sum of the absolute terms of the derivative */
  CF_GRAD_CUSTOM,  /* `terms`, beside the row */
  CF_GRAD_BACKWARD /* as CF_BACKWARD, of inputs and cotangents, with `steps` in place of `ulps` */
} cf_grad_kind;

typedef struct cf_grad {
  cf_grad_kind kind;
  double steps; /* roundings on the way to the tested dtype, in its u */
  double inner; /* roundings inside kernels, in u_acc: transcendentals, sums along rows */
  long double (*kappa)(long double x);
  cf_limit_fn terms; /* `out` is the index of the input whose gradient it is; writes S */
  /* A letter an output whose columns ('c') or rows ('r') are right with any sign or phase: its cotangent turns with
   * it, being a Hermitian matrix times the output, so that the gradient is that of a function which does not depend on
   * these. 'u': columns that are also right in any order, as values ('v') are: their cotangent is the same function of
   * each. '-': a cotangent as everywhere. NULL: no such output. */
  const char *phases;
} cf_grad;

/* n counts roundings in u: at most six of them are roundings of intermediate tensors to the tested dtype, the others
 * happen inside kernels, at the precision in which these accumulate. */
#define CF_G_STEPS(n) .steps = (n) < 6 ? (n) : 6, .inner = (n)
#define CF_G_NONE \
  { .kind = CF_GRAD_NONE }
#define CF_G_LINEAR(n) \
  { .kind = CF_GRAD_ABS, CF_G_STEPS(n) }
#define CF_G_SELECT(n) \
  { .kind = CF_GRAD_SELECT, CF_G_STEPS(n) }
#define CF_G_KAPPA(f, n) \
  { .kind = CF_GRAD_KAPPA, .kappa = (f), CF_G_STEPS(n) }
#define CF_G_BACKWARD(n) \
  { .kind = CF_GRAD_BACKWARD, .steps = (n) }
#define CF_G_PHASES(which, n) \
  { .kind = CF_GRAD_BACKWARD, .steps = (n), .phases = (which) }
#define CF_G_CUSTOM(f, n) \
  { .kind = CF_GRAD_CUSTOM, .terms = (f), CF_G_STEPS(n) }

/* The function gives the propagated error for a unit roundoff of 1, every rounding counted. */
#define CF_G_PROPAGATED(f) \
  { .kind = CF_GRAD_CUSTOM, .terms = (f), .steps = 1, .inner = 1 }

/* ---- rows ---- */

/* Values that an op's inputs are drawn from. */
typedef enum cf_domain { CF_VALUES, CF_POSITIVE, CF_UNIT, CF_NONZERO, CF_PROBABILITY, CF_ABOVE_ONE } cf_domain;

enum {
  CF_SPECIAL = 1,      /* NaN, infinities, zeros of both signs and denormals are defined inputs */
  CF_WIDE = 2,         /* so are exponents over the whole range */
  CF_ANY_ZERO = 4,     /* the sign of a zero result is free */
  CF_NATIVE = 8,       /* random: the oracle draws in the tested dtype, since draws depend on it */
  CF_FLAT = 16,        /* no layout variants */
  CF_INPLACE = 32,     /* the first tensor may be the output */
  CF_ORDERED = 64,     /* the sum's order may vary between runs: also run deterministic, three times */
  CF_DIFFERENCE = 128, /* alpha is subtracted: its absolute terms are those of a negative alpha */
  CF_NO_ADJOINT = 256, /* the VJP is by definition not the derivative of the forward */
  CF_FACTORS = 512     /* CF_SUM of products: in f32 also run where their factors may be rounded to tf32 */
};

/* One op. texts: argument texts in the grammar of text/text.h where T stands for the tested dtype, each behind its
 * level ("s " smoke, "m " mustpass, "f " full; the first text as it is at smoke, too, if mustpass has it),
 * NULL-terminated. A tensor may be followed by
 *   <N  integers in [0, N)   !  distinct along every dim (with <N)   +  positive   =V  all V   ?N  some of them are N
 *   <A..B  numbers in [A, B)   ^  one in 16 is +inf
 *   ~general, ~hermitian, ~definite, ~dominant, ~factor  matrices of a kind (call.h)   ~pivots  row exchanges
 *   ~pairs  those of an LDL factor   ~reflectors with ~scales  factors of Q as LAPACK has them: each is unitary
 *   <N~apart  integers in [0, N), none twice among N that follow each other
 *   <N~rising  integers from 0 to N - 1, none before a smaller one
 *   ~masked  -inf in whole rows, in all of a row but its last, and here and there */
typedef struct cf_op {
  const char *name;
  const char *const *texts;
  uint32_t dtypes;
  cf_rule rule;
  cf_domain domain;
  uint32_t flags;
  cf_grad grad;
} cf_op;

#define CF_TEXTS(...)     \
  (const char *const[]) { \
    __VA_ARGS__, NULL     \
  }

/* The rows of one file of cases/. */
typedef struct cf_topic {
  const char *family; /* as in the family column of plugin_api/ops */
  const char *file;
  const cf_op *ops;
  uint32_t count;
} cf_topic;

#endif
