/* What emit.c and the files of calls share. */
#ifndef GRAFT_SDK_TINY_EMITTER_H
#define GRAFT_SDK_TINY_EMITTER_H

#include "graph/graph.h"
#include "tiny/tiny.h"

typedef enum tiny_kernels {
  TINY_ELEMENTS = 1,
  TINY_PRODUCTS = 2,
  TINY_SUMS = 4,
  TINY_POOLING = 8,
  TINY_LOSS = 16,
  TINY_QUANTIZE = 32,
  TINY_PRODUCTS_I8 = 64,
  TINY_RANDOM = 128
} tiny_kernels;

typedef struct tiny_emitter {
  const graft_graph *graph; /* after the passes */
  const tiny_options *options;
  FILE *to;
  arena memory; /* of texts */
  /* By input, by output: its name in C, behind "in_", "out_" or that of the source. */
  const char **inputs, **outputs;
  graft_dtype *dtypes; /* by buffer: of all its views */
  graft_dtype *held;   /* by buffer: what its memory holds; that, or i8 where all are whole numbers of i8 */
  uint32_t *same;      /* by buffer: in whose memory its elements lie already; GR_NONE: in its own */
  uint64_t *offsets;   /* by buffer: in the arena of the source; UINT64_MAX: not there */
  uint64_t arena_bytes;
  const gr_node *node; /* that is being looked at, or written; NULL: none */
  graft_status status; /* the first error: what follows it writes nothing that counts */
} tiny_emitter;

/* A row: what is known of an op. */
typedef struct tiny_op {
  uint32_t id;
  /* Element by element: its result may take over the memory of an operand. */
  bool elementwise;
  uint32_t kernels; /* tiny_kernels */
  void (*emit)(tiny_emitter *e);
  /* Bits of the arguments of f32 that may be held as i8, and what kernels that takes; together: all of them, or none.
   */
  uint32_t i8_args, i8_kernels;
  bool i8_together;
  uint32_t unread_args; /* bits of the arguments that only say shapes: the kernel does not read them */
  /* Whether the first result, of f32, is whole numbers of i8, for what e->held says of the operands; NULL: never. */
  bool (*gives_i8)(const tiny_emitter *e, const gr_node *node);
} tiny_op;

/* --- calls.c --- */
/* NULL: no kernel does it. */
const tiny_op *tiny_op_of(const gr_node *node);
/* "convolution, addmm, …": for an error. */
void tiny_op_names(char *text, size_t room);

/* --- whole.c --- */
/* Fills in e->held and e->same. */
void tiny_choose_i8(tiny_emitter *e);
/* Whether an argument of f32 is held as i8. */
bool tiny_has_i8(const tiny_emitter *e, const gr_node *node);
/* Whether it writes to a buffer, as a result or beyond its results. */
bool tiny_writes(const gr_node *node, uint32_t buffer);

/* --- names.c --- */
/* What inputs and outputs are called. Errors: a name that C does not allow, or two that would be one. */
graft_status tiny_take_names(tiny_emitter *e);
/* The name of a dtype in C; NULL: sources have none such. */
const char *tiny_type(graft_dtype dtype);
/* The first values of an input that the source holds; NULL: it is an argument. */
graft_tensor *tiny_held(const tiny_emitter *e, uint32_t input);
/* Where the first element of a view lies, as C: "(x + 8)"; "NULL" where it is absent. */
const char *tiny_pointer(tiny_emitter *e, const gr_view *view);

/* --- kernels.c, generated: each file of kernels/ --- */
typedef struct tiny_kernel_file {
  const char *name, *text;
} tiny_kernel_file;
/* Ends with a row of NULLs. */
extern const tiny_kernel_file tiny_kernel_files[];

#endif
