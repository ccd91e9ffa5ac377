/* A case, and the call that it makes: what rows' limits and the runner both look at. run/ makes and runs them. */
#ifndef GRAFT_CF_CALL_H
#define GRAFT_CF_CALL_H

#include "conformance/judge/array.h"
#include "conformance/judge/row.h"
#include "conformance/text/text.h"

/* What random ops of a case draw from. The counter of Philox's blocks carries into its high word ten blocks on. */
#define CF_PHILOX_SEED   UINT64_C(0x243F6A8885A308D3)
#define CF_PHILOX_OFFSET UINT64_C(0x4FFFFFFFD8)

enum { CF_MAX_TENSORS = 24 };

typedef enum cf_level { CF_SMOKE, CF_MUSTPASS, CF_FULL } cf_level;

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
  CF_TF32,          /* products of f32 may round their factors */
  CF_LAYOUTS
} cf_layout;

typedef enum cf_fill { CF_UNIFORM, CF_INTEGERS, CF_EXPONENTS, CF_SPECIALS, CF_FILLS } cf_fill;
typedef enum cf_mode {
  CF_FORWARD,
  CF_VJP,
  CF_VJP_ZERO,
  CF_VJP_EXPANDED,
  CF_ADJOINT,
  CF_GROUPED,     /* in a graph, with neighbours that the plugin compiles together with it */
  CF_RANGE_PAST,  /* one element of tensor `variant`, an index, lies just beyond what it addresses */
  CF_RANGE_BELOW, /* just below it */
  CF_RANGE_FAR,   /* so far that its lower half is a right index */
  CF_MODES
} cf_mode;

/* Plain numbers, so that a case crosses a pipe. */
typedef struct cf_case {
  uint16_t topic, op, text; /* where the row stands: cf_topics[topic]->ops[op].texts[text] */
  uint16_t level;
  uint32_t op_id; /* what is called: the row's op, or a prim that equals it */
  graft_dtype dtype;
  uint8_t layout, fill, mode;
  uint8_t variant; /* a range case: which tensor; else 0 */
  uint32_t way;    /* dsp_route that dispatch is made to take; DSP_ROUTE_NONE: the one that it chooses */
} cf_case;

/* What the last two dims are. Such a tensor is never expanded, which would make its matrices singular. */
typedef enum cf_matrices {
  CF_ANY_MATRIX,
  CF_GENERAL,    /* as drawn */
  CF_ALIKE,      /* one number: of rank one, and soon nothing is left of it but roundings of roundings */
  CF_SINGULAR,   /* as drawn, but for rows and columns of zeros at the end: pivots there are 0 in any arithmetic */
  CF_HERMITIAN,  /* its own adjoint */
  CF_DEFINITE,   /* and with eigenvalues of 1 and more */
  CF_DOMINANT,   /* a diagonal of 1 and more, sums of about 1 beside it: triangles of it are well conditioned, too */
  CF_FACTOR,     /* and a diagonal of real numbers, as Cholesky's factors have */
  CF_PIVOTS,     /* of the last dim: 1-based, none before its own place */
  CF_PAIRS,      /* likewise, and two of four are one negative pivot */
  CF_REFLECTORS, /* below the diagonal vectors of the length that makes a reflector with any of CF_SCALES unitary */
  CF_SCALES,     /* of the last dim: what LAPACK calls tau */
  CF_APART,      /* no matrix: of the integers below the bound none twice among as many that follow each other */
  CF_RISING,     /* no matrix: integers from 0 to the last below the bound, none before a smaller one */
  CF_MASKED      /* no matrix: -inf in all of a third of the rows, in all but the last of another, and here and there */
} cf_matrices;

/* What stands behind a tensor in a row's text. */
typedef struct cf_note {
  cf_matrices matrices;
  bool tested, distinct, positive, constant, has_sentinel, between;
  bool infinities;  /* of a floating dtype: an element in 16 is +inf */
  int64_t bound;    /* 0: none */
  int64_t low;      /* where `between`: numbers in [low, bound), whole ones of integral dtypes */
  int64_t sentinel; /* what a fourth of the elements are */
  long double value;
} cf_note;

typedef struct cf_call {
  const cf_case *c;
  const cf_op *op;
  const op_schema *schema;       /* of what is called */
  txt_call text;                 /* of the row's own op */
  graft_value args[OP_MAX_ARGS]; /* as parsed; tensors NULL */
  uint32_t ntensors;
  txt_tensor *specs; /* of text: dtype, sizes; strides and offset as the layout has them */
  uint32_t spec_arg[CF_MAX_TENSORS];
  cf_note notes[CF_MAX_TENSORS];
  cf_array in[CF_MAX_TENSORS]; /* what every side is given, rounded to the tensor's dtype */
} cf_call;

/* The row's own arguments by name, also where a prim that equals its op is called; `otherwise` where absent. */
double cf_arg_number(const cf_call *call, const char *name, double otherwise);
dt_value cf_arg_complex(const cf_call *call, const char *name, double otherwise);
long double cf_arg_size(const cf_call *call, const char *name); /* the modulus; 0 where absent */
bool cf_arg_bool(const cf_call *call, const char *name, bool otherwise);
int64_t cf_arg_int(const cf_call *call, const char *name, int64_t otherwise);

#endif
