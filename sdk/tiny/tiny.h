/* tiny/: a graph as one C source, for machines that have neither libgraft nor a heap: a microcontroller that learns.
 *
 * - emit.c: the whole source: what it offers, its constants, its memory, its calls
 * - calls.c: which ops there are kernels of; calls_*.c: a node as a call of a kernel, and a row for each op; call.h:
 *   what these ask of a node
 * - whole.c: which values of f32 are held as i8
 * - names.c: what memory is called in C
 * - kernels/: the kernels, texts that become a part of each source (C11, <stdint.h>, <string.h>, <math.h>)
 *
 * Sizes, strides and places are numbers in the source. Memory is one static array in which values lie as
 * graph/plan_memory.c says; the passes have run, so what nobody asked for has neither a call nor memory.
 *
 * Part of the program `graft`, not of libgraft. Begin reading in calls_elements.c. */
#ifndef GRAFT_SDK_TINY_H
#define GRAFT_SDK_TINY_H

#include <stdio.h>

#include "graft/graph.h"

typedef struct tiny_options {
  const char *name; /* what all names of the source begin with: a C identifier */
  /* By input: its first values, which the source then holds as a static array; NULL: it is an argument of the call.
   * The array may be NULL. */
  graft_tensor *const *values;
} tiny_options;

/* What the source takes, in bytes; its enum has the same numbers. */
typedef struct tiny_info {
  uint64_t arena_bytes;    /* values in between, gradients among them */
  uint64_t updated_bytes;  /* inputs that are written */
  uint64_t constant_bytes; /* what is only read: constants, and inputs with values */
} tiny_info;

/* Writes it. Values are on the reference device. Errors: UNIMPLEMENTED naming the node, and its op where no kernel
 * does it, or what a kernel does not do (a stride, a dtype); INVALID_ARGUMENT: a name that C does not allow. What was
 * written to `to` before an error is of no use. */
graft_status tiny_emit(const graft_graph *graph, const tiny_options *options, FILE *to, tiny_info *info);

#endif
