/* conformance/: does a backend compute what PyTorch would, within the error its arithmetic allows?
 *
 * cases/<family>.c   what is tested: one row an op (argument texts, dtypes, tolerance class, gradient)
 * menu.c             rows to cases: dtypes, layouts, fills, gradients, levels
 * call.c             a case's arguments: text to tensors' values; fill.c the values themselves
 * guard.c            tensors between red zones, poisoned outputs, inputs that must not change
 * oracle.c           the same call in long double on the reference device
 * tolerance.c        the limit of the error of each element
 * harness.c, gradient.c   one case from beginning to end
 * worker.c           cases run in a child process, which may crash or hang
 * report*.c          what is told about it; waivers.c what is known and excused until a date
 *
 * Depends on libgraft, its internal headers included. Begin reading in harness.c. */
#ifndef GRAFT_CF_H
#define GRAFT_CF_H

#include <stdio.h>

#include "dispatch/dispatch.h"
#include "dispatch/text.h"
#include "graft/autograd.h"
#include "graft/runtime.h"
#include "graft/value.h"
#include "ops/core/op.h"
#include "tensor/tensor.h"

/* ---- what is tested: rows of cases/<family>.c ---- */

enum { CF_MAX_TENSORS = 24 };

typedef enum cf_level { CF_SMOKE, CF_MUSTPASS, CF_FULL } cf_level;

/* Sets of dtypes, bits of GRAFT_NUMBER_*. */
#define CF_BIT(name) (1u << GRAFT_NUMBER_##name)
#define CF_FLOATS    (CF_BIT(F32) | CF_BIT(F64) | CF_BIT(F16) | CF_BIT(BF16))
#define CF_INTS      (CF_BIT(I32) | CF_BIT(I64) | CF_BIT(I16) | CF_BIT(I8) | CF_BIT(U8))
#define CF_BOOLS     CF_BIT(BOOL)
#define CF_COMPLEX   (CF_BIT(C64) | CF_BIT(C128))
#define CF_REALS     (CF_FLOATS | CF_INTS)
#define CF_ANY_DTYPE (CF_FLOATS | CF_INTS | CF_BOOLS)

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
  CF_CUSTOM    /* `limit`: first-order propagation, beside the row */
} cf_class;

/* How many terms an element of a CF_SUM has. */
typedef enum cf_terms {
  CF_TERMS_RATIO, /* elements of the first tensor per element of the output */
  CF_TERMS_ONES,  /* what the op gives on ones */
  CF_TERMS_WINDOW /* the product of the first int list (a pooling window) */
} cf_terms;

typedef struct cf_check cf_check;
typedef void (*cf_limit_fn)(const cf_check *check, uint32_t out, long double *limits);

typedef struct cf_rule {
  cf_class klass;
  double ulps; /* CF_ULPS, CF_GATED; CF_SUM: what 2 sqrt n is scaled by beyond 1, 0 for 1 */
  cf_terms terms;
  cf_limit_fn limit;
  bool absolute; /* CF_CUSTOM: `limit` reads the results on absolute values, too */
} cf_rule;

/* Where S, the sum of the absolute terms of a gradient, comes from. */
typedef enum cf_grad_kind {
  CF_GRAD_NONE,
  CF_GRAD_ABS,    /* the same VJP on absolute inputs and cotangents: linear and multilinear ops */
  CF_GRAD_SELECT, /* the VJP at the inputs themselves with absolute cotangents: ops that choose or scale */
  CF_GRAD_KAPPA,  /* |g| x kappa(x): pointwise ops, kappa the sum of the absolute terms of the derivative */
  CF_GRAD_CUSTOM  /* `terms`, beside the row */
} cf_grad_kind;

typedef struct cf_grad {
  cf_grad_kind kind;
  double steps; /* roundings on the way to the tested dtype, in its u */
  double inner; /* roundings inside kernels, in u_acc: transcendentals, sums along rows */
  long double (*kappa)(long double x);
  cf_limit_fn terms; /* `out` is the index of the input whose gradient it is; writes S */
} cf_grad;

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
  CF_NO_ADJOINT = 256, /* the VJP is by definition not the derivative of the forward */
  CF_DIFFERENCE = 128  /* alpha is subtracted: its absolute terms are those of a negative alpha */
};

/* One op. texts: argument texts in sdk/dispatch/text.h's grammar where T stands for the tested dtype, each behind its
 * level ("s " smoke, "m " mustpass, "f " full), NULL-terminated. A tensor may be followed by
 *   <N  integers in [0, N)   !  distinct along every dim (with <N)   +  positive   =V  all V */
typedef struct cf_op {
  const char *name;
  const char *const *texts;
  uint32_t dtypes;
  cf_rule rule;
  cf_domain domain;
  uint32_t flags;
  cf_grad grad;
} cf_op;

typedef struct cf_family {
  const char *name;
  const cf_op *ops;
  uint32_t count;
} cf_family;
extern const cf_family *const cf_families[];
extern const uint32_t cf_family_count;

/* Argument texts that many rows share. */
extern const char *const cf_unary[], *const cf_binary[], *const cf_number[], *const cf_reduce_dims[];

/* Rules by name, for rows. */
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
#define CF_R_CUSTOM(f) \
  { .klass = CF_CUSTOM, .limit = (f) }

/* ---- a case ---- */

typedef enum cf_layout {
  CF_CONTIGUOUS,
  CF_TRANSPOSED,    /* the last two dims swapped in memory */
  CF_SLICED,        /* with gaps */
  CF_OFFSET,        /* begins off alignment */
  CF_EXPANDED,      /* stride 0 in the first dim that is larger than 1 */
  CF_CHANNELS_LAST, /* rank 4 */
  CF_OUT,           /* outputs with gaps and an offset */
  CF_IN_PLACE,      /* the first tensor is the output */
  CF_DETERMINISTIC, /* determinism asked for: three identical runs */
  CF_LAYOUTS
} cf_layout;

typedef enum cf_fill { CF_UNIFORM, CF_INTEGERS, CF_EXPONENTS, CF_SPECIALS, CF_FILLS } cf_fill;
typedef enum cf_mode { CF_FORWARD, CF_VJP, CF_VJP_ZERO, CF_VJP_EXPANDED, CF_ADJOINT, CF_MODES } cf_mode;

/* Plain numbers, so that a case crosses a pipe. */
typedef struct cf_case {
  uint16_t family, op, text;
  uint16_t level;
  uint32_t op_id; /* what is called: the row's op, or a prim that equals it */
  graft_dtype dtype;
  uint8_t layout, fill, mode, variant;
} cf_case;

enum { CF_ID_BYTES = 288 };
/* aten.mm.default/f32/33x17,17x129/transposed/uniform/0, then /vjp and so on for gradients. False: the case does not
 * exist (a layout that changes nothing, a prim that can't say it). */
bool cf_case_id(const cf_case *c, char id[CF_ID_BYTES]);
const cf_op *cf_case_op(const cf_case *c);
const char *cf_case_family(const cf_case *c);
const char *cf_layout_name(int layout);
const char *cf_fill_name(int fill);
const char *cf_mode_name(int mode);
int cf_level_parse(const char *name); /* -1: unknown */

typedef struct cf_selection {
  cf_level level;
  const char *op;         /* glob, over "aten.mm.default" and "aten::mm"; NULL: all */
  uint32_t dtypes;        /* 0: all */
  int grad;               /* 0 both, 1 only gradients, -1 none */
  uint32_t shard, shards; /* shards 0: all */
} cf_selection;
/* Visits the cases of a selection in a fixed order, until visit returns false. */
typedef bool (*cf_visit_fn)(void *context, const cf_case *c, const char *id);
void cf_menu(const cf_selection *selection, cf_visit_fn visit, void *context);
/* The case of an id; false: there is none. */
bool cf_case_find(const char *id, cf_case *c);

/* ---- the arguments of a case (call.c, fill.c) ---- */

typedef struct cf_note { /* what stands behind a tensor in a text */
  bool tested, distinct, positive, constant;
  int64_t bound; /* 0: none */
  long double value;
} cf_note;

/* Values in row-major order. */
typedef struct cf_array {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t numel;
  dt_value *v;
} cf_array;

typedef struct cf_call {
  const cf_case *c;
  const cf_op *op;
  const op_schema *schema;
  txt_call text;
  graft_value args[OP_MAX_ARGS]; /* as parsed; tensors NULL */
  uint32_t ntensors;
  txt_tensor *specs; /* of text: dtype, sizes; strides and offset as the layout has them */
  uint32_t spec_arg[CF_MAX_TENSORS];
  cf_note notes[CF_MAX_TENSORS];
  cf_array in[CF_MAX_TENSORS]; /* what every side is given, rounded to the tensor's dtype */
} cf_call;

/* Parses and applies the layout. False with a text in graft_last_error, or with none where the case does not exist. */
bool cf_call_open(const cf_case *c, cf_call *call);
/* Draws the values. `denormals`: the device keeps them. */
void cf_call_fill(cf_call *call, uint64_t seed, bool denormals);
void cf_call_close(cf_call *call);
/* The arguments with these tensors in place (one a spec); items has room for CF_MAX_TENSORS. */
void cf_call_args(const cf_call *call, graft_rt_device *device, graft_tensor *const *tensors, graft_value *args,
                  graft_tensor **items);
/* Whether the op writes into tensor argument `spec`. */
bool cf_call_mutates(const cf_call *call, uint32_t spec);
/* Whether the op returns its first argument, written: it is then called in place. */
bool cf_call_returns_input(const cf_call *call);
/* Output tensors of the call, 0 for one that has no fixed number. */
uint32_t cf_call_outs(const cf_call *call);

bool cf_array_new(cf_array *a, graft_dtype dtype, int32_t ndim, const int64_t *sizes);
void cf_array_free(cf_array *a);
bool cf_array_read(cf_array *a, graft_tensor *tensor); /* waits for the device */

typedef struct cf_random {
  uint64_t state;
} cf_random;
uint64_t cf_random_next(cf_random *r);
long double cf_random_unit(cf_random *r); /* [0, 1) */
uint64_t cf_hash(const char *text);
/* Fills an array with what a fill means for a domain and dtype. */
void cf_fill_values(cf_array *a, const cf_note *note, cf_fill fill, cf_domain domain, bool reduced, bool denormals,
                    cf_random *r);

/* ---- guards ---- */

typedef struct cf_guarded {
  graft_tensor *base, *view; /* the view lies inside the base, red zones around it and in its gaps */
  unsigned char *image;      /* what the base held before the call */
  uint64_t bytes;
} cf_guarded;
graft_status cf_guard_input(graft_rt_device *device, const txt_tensor *spec, const cf_array *values, cf_guarded *g);
graft_status cf_guard_output(graft_rt_device *device, const graft_meta *meta, bool gaps, int poison, cf_guarded *g);
/* Reads the base back: the elements' bytes into *after (malloc'd, whole base). NULL text: intact; else what is wrong.
 */
bool cf_guard_check(const cf_guarded *g, bool may_write, unsigned char **after, char *problem, size_t capacity);
/* The elements of the view in an image of the base. */
bool cf_guard_values(const cf_guarded *g, const unsigned char *image, cf_array *a);
/* An element whose bytes are the poison in both images; -1: none. */
int64_t cf_guard_unwritten(const cf_guarded *a, const unsigned char *after_a, const cf_guarded *b,
                           const unsigned char *after_b);
void cf_guard_free(cf_guarded *g);

/* ---- the oracle ---- */

typedef enum cf_transform { CF_AS_IS, CF_ABSOLUTE, CF_ONES } cf_transform;
typedef struct cf_side { /* the call on one device */
  graft_tensor *in[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS];
  graft_scalar scalars[64];
  uint32_t nscalars;
} cf_side;
/* widen_integers: integers of the tested dtype become wide too, for ops that give floats from them. */
graft_status cf_oracle_open(const cf_call *call, cf_transform transform, bool widen_integers, cf_side *side);
void cf_side_close(cf_side *side);
/* Runs it; outs[i] become arrays. *mutated, one a spec, receives what the op wrote into inputs (NULL: not asked). */
graft_status cf_oracle_run(const cf_call *call, cf_transform transform, bool widen_integers, uint32_t nouts,
                           cf_array *outs, cf_array *mutated);
/* The tensor of an array on the reference device, floating values as long double. */
graft_status cf_oracle_tensor(const cf_array *a, cf_transform transform, bool native, bool widen_integers,
                              graft_tensor **tensor);

/* ---- tolerance ---- */

int cf_mantissa(graft_dtype dtype);      /* bits, the leading one included; 0: not floating */
long double cf_u(graft_dtype dtype);     /* unit roundoff */
long double cf_u_acc(graft_dtype dtype); /* of the dtype in which sums run */
long double cf_ulp(graft_dtype dtype, long double x);
long double cf_normal_min(graft_dtype dtype);
long double cf_max(graft_dtype dtype);
long double cf_modulus(dt_value v);
long double cf_growth(long double n); /* min(2 sqrt n, n) */

struct cf_check {
  const cf_call *call;
  const cf_array *in; /* the call's inputs */
  uint32_t nouts;
  const cf_array *outs;      /* the oracle's */
  const graft_dtype *dtypes; /* of the device's outputs */
  const cf_array *absolute;  /* S: the oracle on absolute values; NULL where no class asks */
  const cf_array *ones;
  const cf_array *g; /* cotangents, for gradients */
};

typedef struct cf_verdict {
  bool ok;
  double ratio; /* the largest error / limit */
  double error;
  int64_t index; /* of the worst element */
  uint32_t out;
  char text[200]; /* what failed */
} cf_verdict;

bool cf_rule_needs_absolute(const cf_rule *rule);
/* The limits of output `out` around the oracle's values, one an element. 0 in an exact class. */
void cf_limits(const cf_check *check, uint32_t out, long double *limits);
/* Compares a result with the oracle. `exact`: the rounded oracle is the only right answer. */
void cf_compare(const cf_array *result, const cf_array *oracle, const long double *limits, bool exact, bool any_zero,
                bool flushes, const char *what, cf_verdict *v);
/* Whether a rule's answer is one value only for this dtype and call. */
bool cf_is_exact(const cf_call *call, uint32_t out, graft_dtype dtype);
void cf_check_permutation(const cf_call *call, const cf_array *values, const cf_array *indices, const cf_array *oracle,
                          cf_verdict *v);

/* Helpers for rules beside rows: how an array divides into rows along a dim. */
typedef struct cf_axis {
  int64_t outer, length, inner;
} cf_axis;
cf_axis cf_axis_of(const cf_array *a, int64_t dim);
int64_t cf_arg_int(const cf_call *call, const char *name, int64_t otherwise);
double cf_arg_number(const cf_call *call, const char *name, double otherwise);
const cf_array *cf_arg_array(const cf_check *check, const char *name); /* NULL: absent */

/* ---- running ---- */

typedef enum cf_outcome { CF_PASS, CF_FAIL, CF_UNSUPPORTED, CF_CRASH, CF_TIMEOUT, CF_WAIVED } cf_outcome;
typedef struct cf_result { /* crosses the pipe: plain bytes */
  cf_case c;
  uint8_t outcome;
  uint8_t route;        /* dsp_route */
  uint8_t fallback;     /* bytes left the device */
  uint8_t waiver_stale; /* waived, and passed */
  uint32_t waiver_line;
  double ratio, error, limit;
  double milliseconds;
  char text[320];
} cf_result;

typedef struct cf_backend {
  graft_rt_device *device;
  bool flushes; /* denormals of f32 may become 0 */
  uint64_t seed;
  const char *dump; /* folder for .npy files; NULL: none */
} cf_backend;

/* A result, and what the plugin counted until then. */
typedef struct cf_answer {
  cf_result result;
  uint64_t programs_built, programs_loaded, build_nanoseconds, launches;
  uint32_t has_statistics;
  uint32_t leaving; /* the device failed: the worker ends after this answer */
} cf_answer;

void cf_run(const cf_backend *backend, const cf_case *c, cf_result *result);
void cf_run_gradient(const cf_backend *backend, cf_call *call, cf_result *result);
void cf_run_adjoint(const cf_backend *backend, cf_call *call, cf_result *result);
/* Marks a case as failed, with a text; false, to return. */
__attribute__((format(printf, 2, 3))) bool cf_fail(cf_result *result, const char *format, ...);
uint64_t cf_fallback_total(void);
bool cf_dump(const char *folder, const char *name, const cf_array *a); /* .npy */
const char *cf_outcome_name(int outcome);
/* "pass", "decomposed", "fallback", "unsupported", "fail", "waived": what a report shows. */
const char *cf_result_word(const cf_result *r);

/* ---- workers ---- */

typedef struct cf_options {
  const char *backend, *plugin_options[16];
  uint32_t plugin_option_count;
  int32_t device;
  cf_selection selection;
  uint32_t jobs;
  uint64_t seed;
  bool fail_fast, verbose;
  const char *waivers, *report, *dump;
  double time_limit_s;
} cf_options;

/* What a worker says of the device it opened; the counts are the parent's sums over all workers. */
typedef struct cf_hello {
  int32_t status; /* 0, or an exit status with its text */
  char device[96], name[160], driver[96], text[512];
  uint64_t programs_built, programs_loaded, build_nanoseconds, launches;
  bool has_statistics;
} cf_hello;

int cf_worker_main(const cf_options *options); /* the child */
/* What the device says once a case is done: a fault that comes late is the case's, too. Whether there was one: it
 * sticks to its stream, so a fresh process goes on, and one faulty case does not turn those after it red. */
bool cf_settle(cf_result *r, graft_status device, const char *text);
graft_status cf_backend_open(const cf_options *options, cf_backend *backend);
typedef struct cf_cases {
  cf_case *items;
  uint32_t count, capacity;
} cf_cases;
typedef bool (*cf_result_fn)(void *context, uint32_t index, const cf_result *r); /* false: stop */
/* Runs cases in workers. Returns an exit status of 2 when no worker could open the device, else 0. */
int cf_workers_run(const cf_options *options, const cf_cases *cases, cf_hello *hello, cf_result_fn visit,
                   void *context);

/* ---- reports and waivers ---- */

typedef struct cf_waivers cf_waivers;
graft_status cf_waivers_read(const char *path, cf_waivers **waivers);
/* Applies a waiver to a result; today as "YYYY-MM-DD". */
void cf_waivers_apply(cf_waivers *waivers, const char *today, const char *id, cf_result *r);
const char *cf_waivers_link(const cf_waivers *waivers, uint32_t line);
void cf_waivers_free(cf_waivers *waivers);

typedef struct cf_tally {
  uint64_t run, passed, failed, decomposed, fallback, unsupported, waived;
} cf_tally;
typedef struct cf_report {
  const cf_options *options;
  cf_hello hello;
  double seconds;
  cf_result *results; /* one a case, in the menu's order; op_id 0: it was not run */
  uint32_t total, done;
  uint64_t slots_selected, executed; /* cases of ops with a slot; cases that the plugin itself computed */
  cf_tally all, families[32];
  cf_waivers *waivers;
} cf_report;
void cf_tally_add(cf_tally *t, const cf_result *r);
int cf_report_status(const cf_report *report);
void cf_report_line(cf_report *report, const cf_result *r); /* progress */
void cf_report_summary(const cf_report *report);
graft_status cf_report_write(const cf_report *report); /* results.jsonl, junit.xml, report.html */
void cf_write_json(FILE *f, const cf_report *report);
void cf_write_junit(FILE *f, const cf_report *report);
void cf_write_html(FILE *f, const cf_report *report);
void cf_reproduce(const cf_report *report, const cf_result *r, char *text, size_t capacity);
void cf_escape_xml(FILE *f, const char *text);

#endif
