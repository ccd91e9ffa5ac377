/* ops/: all that is known about an op in one place. A folder a family, and in it for each op one row of a table of
 * op_def (families.c lists the tables): how arguments are prepared, the shape, stride and dtype rule, the
 * decomposition, the gradient and the reference kernel, which reference/ puts behind the ABI. core/ is what the
 * families are written with: this file for rules, fx.h for decompositions and gradients, ref.h for reference kernels.
 *
 * Everything here is right for all backends at once, so it is held against fixtures made with PyTorch.
 *
 * Depends on tensor/. Rules (infer) only look at shapes and numbers; decompositions and gradients run ops through fx.h
 * and never look at memory. */
#ifndef GRAFT_SDK_OP_H
#define GRAFT_SDK_OP_H

#include "base/arena.h"
#include "base/error.h"
#include "graft/abi/plugin.h"
#include "graft/value.h"
#include "ops/core/fx.h"
#include "ops/core/schema.h"
#include "ops/generated/inputs.h"
#include "ops/generated/kernels.h"
#include "ops/generated/names.h"
#include "tensor/tensor.h"

enum { OP_MAX_ARGS = 24, OP_MAX_OUTS = 10 };

/* A call while it is being resolved. infer reads the arguments, checks them, rewrites them in canonical form (dims
 * non-negative and complete, defaults filled in, lists at their full length) and fills in out and compute. Kernels,
 * decompositions and gradients see the canonical form. */
typedef struct op_call {
  const op_schema *schema;
  const struct op_def *def;
  graft_rt_device *device;
  graft_value args[OP_MAX_ARGS];
  graft_meta out[OP_MAX_OUTS];   /* one for each output of the schema; unused for a Tensor[] */
  uint32_t nouts;                /* what def->host makes has one each */
  bool out_wanted[OP_MAX_OUTS];  /* false: an output the call does not produce (an output mask) */
  int8_t list_like[OP_MAX_OUTS]; /* Tensor[]: the list argument it is aligned with, and shaped like unless the op has
                                  * list_item; -1: a Tensor */
  bool decompose_only;           /* this very call is not for a slot: a list whose items change dtype, say */
  bool no_decompose;             /* this very call is for a slot or the reference kernel only */
  graft_dtype compute;           /* dtype that 'b' and 'v' arguments are brought to; NONE: each keeps its own */
  uint64_t only_read;            /* bit n: argument n, which calls may write into, is not written by this very call */
  bool dynamic;                  /* the first output is an upper bound only; the op says its shape */
  uint64_t draws;                /* random ops: 32-bit words drawn, a multiple of 4 */
  arena *lists;                  /* where canonical lists live */
} op_call;

typedef graft_status (*op_infer_fn)(op_call *call);
/* Refuses a late number (OP_LATE_NUMBERS) of a call that has been through its rule, as it was given. args are complete;
 * the call's own tensors are those of another call. */
typedef graft_status (*op_bind_fn)(const op_call *call, const graft_value *args, int arg, const graft_value *number);
/* Makes call->nouts results from completed arguments, which it may make canonical for the gradient. Given a tensor
 * without memory, it gives such results. */
typedef graft_status (*op_host_fn)(op_call *call, graft_tensor **outs);
/* Gives outs[i] for each output, as tensors owned by the scope. Inputs are call->args, already promoted and, for half
 * types, widened to f32; the caller rounds once. */
typedef void (*op_decompose_fn)(fx *s, const op_call *call, graft_tensor **outs);

/* One call's gradient. results are owned by the scope; leave NULL where there is none. Gradients of broadcast ('b')
 * arguments are summed to the argument's shape, and all are cast to its dtype, by the caller. */
typedef struct op_vjp {
  fx *s;
  const op_schema *schema;
  const graft_value *args;      /* canonical; tensors not named in saves have a shape but no memory */
  graft_tensor *const *outs;    /* likewise */
  graft_tensor *const *g;       /* cotangents, one an output; NULL: zero */
  uint64_t needs;               /* bit n: argument n wants a gradient */
  bool create_graph;            /* the gradient is to be differentiated in its turn: only calls that have gradients */
  graft_tensor **results;       /* one an argument */
  graft_tensor ***list_results; /* for Tensor[] arguments: an array of the list's length, filled with NULLs */
} op_vjp;
typedef void (*op_vjp_fn)(op_vjp *v);
/* One item of a Tensor[] output, where it is not simply like the item it is aligned with. */
typedef graft_status (*op_list_item_fn)(const op_call *call, uint32_t ret, uint32_t item, graft_meta *meta);

/* What a row saves: OP_SAVE_ARGS(mm, self, mat2), OP_SAVE_OUT(topk, indices), joined by |. */
#define OP_SAVE_ARG(op, name)                     (UINT64_C(1) << ARG_##op##_##name)
#define OP_SAVE_ARGS(op, ...)                     OP_SAVE_PICK(__VA_ARGS__, 7, 6, 5, 4, 3, 2, 1)(op, __VA_ARGS__)
#define OP_SAVE_OUT(op, name)                     (UINT64_C(1) << (32 + OUT_##op##_##name))
#define OP_SAVE_PICK(a, b, c, d, e, f, g, n, ...) OP_SAVE_##n
#define OP_SAVE_1(op, a)                          OP_SAVE_ARG(op, a)
#define OP_SAVE_2(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_1(op, __VA_ARGS__)
#define OP_SAVE_3(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_2(op, __VA_ARGS__)
#define OP_SAVE_4(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_3(op, __VA_ARGS__)
#define OP_SAVE_5(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_4(op, __VA_ARGS__)
#define OP_SAVE_6(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_5(op, __VA_ARGS__)
#define OP_SAVE_7(op, a, ...)                     OP_SAVE_ARG(op, a) | OP_SAVE_6(op, __VA_ARGS__)
/* Bits of outputs, for without_grad. */
#define OP_OUT_BIT(op, name) (1u << OUT_##op##_##name)
static inline bool op_saves_arg(uint64_t saves, uint32_t arg) {
  return saves >> arg & 1;
}
static inline bool op_saves_out(uint64_t saves, uint32_t out) {
  return saves >> (32 + out) & 1;
}

/* How each tensor argument reaches a kernel: one letter an argument of kind Tensor or Tensor[], in schema order.
 *   b  value, broadcast to the output's shape, converted to `compute`
 *   c  broadcast to the output's shape, keeping its dtype (a condition or mask)
 *   v  value, its own shape, converted to `compute`
 *   i  index: its own shape, i64 (or i32)
 *   k  kept as it is */
enum {
  OP_ELEMENTWISE = 1,    /* flags: every output element depends on the elements at its own position only */
  OP_NO_WIDEN = 2,       /* the decomposition takes half types as they are */
  OP_NUMBER_FORM = 4,    /* X.Scalar: has a number where X.Tensor has a tensor */
  OP_READS_FIRST = 8,    /* the reference kernel reads an item of its lists before it writes it: in place is fine */
  OP_SECOND_FIRST = 16,  /* PyTorch's iterator takes the second operand first, which shows in the result's strides */
  OP_TAKES_NUMBER = 32,  /* a number may stand for the last tensor, which does not promote with the others */
  OP_EXACT_OUT = 64,     /* a given output has the result's dtype, as in PyTorch; elsewhere the result is cast to it */
  OP_ITEM_BY_ITEM = 128, /* the decomposition writes to outputs that it finds in place, each before it reads the next */
  OP_COPY = 256, /* the values of the last tensor argument, as they are: tensor/copy.c does it, any two devices */
  OP_LIKE = 512, /* only sizes, strides and dtype of the first tensor count: it may lie on another device */
  /* The values of its numbers (floats, Scalars and lists of these) change neither what the rule gives nor what it
   * refuses, except those in rule_reads: kernels, decompositions and gradients alone read them. */
  OP_LATE_NUMBERS = 1024,
  /* A number may stand for a tensor of role b or c; elsewhere rules and kernels read what only tensors have. */
  OP_PROMOTES_NUMBERS = 2048,
  /* The last argument, a tensor without dimensions, is a number that the dtype computed in must hold. */
  OP_HOLDS_LAST = 8192,
  OP_BY_LINES =
      32768,        /* the same of the elements of its line: a result may lie over an operand where a slot takes that */
  OP_FILLS = 16384, /* all elements are the op's number: of the tensor nothing but its shape and dtype counts */
  OP_SINCE_1_2 = 4096 /* what it gives is said since ABI 1.2: the slots of older plugins are not called */
};

typedef graft_status (*op_slot)(const graft_exec *exec, const void *args);
/* A row's op and, as its `reference`, the kernel of its name, behind the same ABI as a plugin's and checked against the
 * slot's type: .op_id = OP_WITH_KERNEL(mm) takes kernel_mm. */
#define OP_WITH_KERNEL(name) \
  ID_##name, .reference = _Generic(&kernel_##name, graft_##name##_fn : (op_slot)(void *)&kernel_##name)

typedef struct op_def {
  uint32_t op_id;
  const char *roles;
  op_infer_fn infer;
  op_bind_fn bind;           /* NULL: any late number will do */
  op_host_fn host;           /* a view, or memory as it comes: done by the host alone, without a rule and a slot */
  op_decompose_fn decompose; /* NULL: none */
  op_vjp_fn vjp;             /* NULL: not differentiable */
  uint64_t saves;            /* OP_SAVE_*: what vjp reads the memory of */
  uint32_t without_grad;     /* bit n: output n is a workspace or a statistic that nothing is differentiated through */
  uint32_t flags;
  op_slot reference;         /* NULL: by decomposition only */
  uint64_t rule_reads;       /* bit n: argument n is no late number; see OP_LATE_NUMBERS */
  const void *row;           /* the family's own; op_row gives it */
  op_list_item_fn list_item; /* NULL: items are like those of list_like */
} op_def;

const op_def *op_def_of(uint32_t op_id); /* NULL: libgraft knows no rule for it */
void op_def_add(const op_def *def);      /* of an op that a plugin brings; before its schema is published */
static inline const void *op_row(uint32_t op_id) {
  return op_def_of(op_id)->row;
}

/* What the elements of an index tensor may be: low and up, below high; or `passed` where that is let through. */
typedef struct op_range {
  int64_t low, high, size; /* size: of what is indexed, for a text */
  bool from_one;           /* 0 is out of it wherever it begins */
  bool passes;
  int64_t passed;
} op_range;
static inline bool op_in_range(const op_range *range, int64_t index) {
  if (range->passes && index == range->passed) return true;
  return index >= range->low && index < range->high && !(range->from_one && index == 0);
}
/* Whether what argument `arg` holds are indices that the call reads. */
bool op_reads_indices(const op_schema *schema, const graft_value *args, uint32_t arg);
/* The range of argument `arg`, or of item `item` of it where it is a list. args are complete. False: it holds no
 * indices (a mask in their place, too). */
bool op_index_range(const op_schema *schema, const graft_value *args, uint32_t arg, uint32_t item, op_range *range);

/* The letter of argument `arg`; 'k' where roles name none. */
char op_role(const op_schema *schema, const op_def *def, uint32_t arg);

static inline bool op_call_writes(const op_call *call, uint32_t arg) {
  return op_mutates(call->schema, arg) && !(call->only_read >> arg & 1);
}

/* --- helpers for infer --- */
static inline bool op_absent(const op_call *c, int i) {
  return c->args[i].kind == GRAFT_VALUE_NONE;
}
/* For what several ops share though an argument stands elsewhere in each: where it stands, -1 where this op has none;
 * and its value, absent where there is none. */
int op_arg_named(const op_schema *schema, const char *name);
const graft_value *op_value_named(const op_schema *schema, const graft_value *args, const char *name);
graft_tensor *op_tensor(const op_call *call, int arg); /* NULL: absent or a number */
int64_t op_int(const op_call *call, int arg);
double op_float(const op_call *call, int arg);
bool op_bool(const op_call *call, int arg);
graft_dtype op_dtype(const op_call *call, int arg); /* NONE: absent */
graft_scalar op_scalar(const op_call *call, int arg);

/* How many bytes a list or a string points to: what a copy that outlives the call must have. 0 for all others. The
 * pointers of a value's union are one. */
size_t op_value_bytes(const graft_value *value);
/* Makes a copy of the numbers the argument's value. OUT_OF_MEMORY, with the argument as it was, is all that can fail.
 */
graft_status op_set_ints(op_call *call, int arg, const int64_t *items, uint32_t count);
void op_set_int(op_call *call, int arg, int64_t value);
void op_set_dtype(op_call *call, int arg, graft_dtype dtype);

/* Wraps a dim of a rank into [0, rank); rank 0 counts as 1. */
graft_status op_wrap_dim(const op_call *call, int64_t *dim, int32_t ndim);
/* Makes argument `arg` (an int list of dims, absent or empty: all when empty_means_all) canonical: wrapped, sorted,
 * distinct. *mask receives a bit a dim. */
graft_status op_wrap_dims(op_call *call, int arg, int32_t ndim, bool empty_means_all, uint32_t *mask);

/* What a Python number weighs: bool, i64, the default float, the default complex. */
graft_dtype op_number_dtype(const graft_scalar *number);
/* The promoted dtype of the arguments from `first` to `last`, with PyTorch's three categories. */
graft_dtype op_promote(const op_call *call, int first, int last);
/* The same of everything that stands in a tensor's place; Scalar arguments have no say. */
graft_dtype op_promote_tensors(const op_call *call);

/* PyTorch's refusal of a number that a dtype can't hold: a finite one beyond its range, infinity where it has none, an
 * imaginary part. Negative numbers wrap in unsigned types. */
graft_status op_number_fits(const op_call *call, int arg, graft_dtype dtype);
/* The same of the value that an argument has or is to have; and for integer dtypes alone: floating ones take any number
 * that stands beside their operands. */
graft_status op_value_fits(const op_call *call, int arg, const graft_value *value, graft_dtype dtype);
graft_status op_integer_holds(const op_call *call, int arg, const graft_value *value, graft_dtype dtype);
/* An argument's value as it takes part in the call: an integer that promotes with tensors is brought to the dtype
 * computed in, modulo 2 to its bits, as PyTorch makes an element of it; else kernels that compute in wider integers
 * would have another result. The call has been through its rule. */
graft_value op_wrapped_number(const op_call *call, int arg, graft_value value);

/* A number of a window (its size, step, dilation, padding): `least` at least, and none so large that sums and products
 * of two of them overflow. */
graft_status op_check_step(const op_call *call, const char *name, int64_t number, int64_t least);
/* An int list that is a shape: at most GRAFT_MAX_DIMS sizes, none negative, and a number of elements. */
graft_status op_check_sizes(const op_call *call, int arg);

/* Fills out[n]: contiguous strides; or those of a like tensor; or as PyTorch's TensorIterator gives for broadcast
 * operands. */
void op_out(op_call *call, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes);
void op_out_like(op_call *call, int n, graft_dtype dtype, const graft_tensor *like); /* preserve: dense strides kept */
void op_out_format(op_call *call, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                   graft_memory_format format);
/* The broadcast shape of the 'b' and 'c' arguments into out[n], with TensorIterator's strides. */
graft_status op_out_broadcast(op_call *call, int n, graft_dtype dtype);

/* The strides TensorIterator gives a result of out's sizes; they come in contiguous. A number among the operands is
 * NULL. */
void op_iterator_strides(graft_meta *out, const graft_tensor *const *operands, int count);

/* Output n is a Tensor[] aligned with list argument `like`. */
void op_out_list(op_call *call, int n, int like);

/* The flat outputs of a call after infer: how many, and each one's shape (dtype NONE: not produced). */
uint32_t op_flat_count(const op_call *call);
graft_status op_flat_outputs(const op_call *call, graft_meta *metas, bool *wanted, uint32_t capacity);

/* An error that names the op: "aten::mm: self f32[2,3] and mat2 f32[4,5]: …". The format continues after "OP: ". */
__attribute__((format(printf, 3, 4))) graft_status op_fail(const op_call *call, graft_status status, const char *format,
                                                           ...);
#define op_error(call, ...) op_fail(call, GRAFT_INVALID_ARGUMENT, __VA_ARGS__)
/* An index, or a dim, beyond what it addresses; PyTorch raises an IndexError. */
#define op_out_of_range(call, ...) op_fail(call, GRAFT_OUT_OF_RANGE, __VA_ARGS__)
/* "f32[2,3]" of an argument, in one of a few rotating thread-local buffers. */
const char *op_show(const op_call *call, int arg);
/* All tensor arguments with their names: "self f32[2,3], other f32[4]". */
const char *op_show_tensors(const op_call *call);
/* An argument is not what it must be: "aten::floor: self is c64[2]; expected a real dtype". */
__attribute__((format(printf, 3, 4))) graft_status op_refuse(const op_call *call, int arg, const char *expected, ...);
/* What a tensor argument must be, if it is there. Floating: float8, in which nothing is computed, does not count. */
graft_status op_check_floating(const op_call *call, int arg);
graft_status op_check_dtype(const op_call *call, int arg, graft_dtype dtype);
graft_status op_check_same_dtype(const op_call *call, int arg, int other);

/* --- helpers for gradients --- */
static inline bool vjp_needs(const op_vjp *v, int arg) {
  return (v->needs >> arg) & 1;
}
static inline graft_tensor *vjp_arg(const op_vjp *v, int arg) {
  return v->args[arg].kind == GRAFT_VALUE_TENSOR ? v->args[arg].as.tensor : NULL;
}

#endif
