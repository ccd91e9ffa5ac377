/* What the files that write calls ask of a node. A function looks whether the kernel does what the node asks, and
 * writes the call; the first error stays, so that what is written after it need not ask. */
#ifndef GRAFT_SDK_TINY_CALL_H
#define GRAFT_SDK_TINY_CALL_H

#include "ops/generated/names.h"
#include "tiny/emitter.h"

/* Rows of ops, which a row of id 0 ends. */
extern const tiny_op tiny_products[], tiny_elements[], tiny_lists[], tiny_quantized[], tiny_reductions[];

__attribute__((format(printf, 2, 3))) void tiny_refuse(tiny_emitter *e, const char *format, ...);

/* --- arguments, by their numbers --- */
const graft_value *tiny_arg(const tiny_emitter *e, uint32_t number);
double tiny_number(tiny_emitter *e, uint32_t number);
/* The same of a scalar that is no argument of its own; what: for an error. */
double tiny_scalar(tiny_emitter *e, const graft_scalar *s, const char *what);
/* A number of a list of two, of which one stands for both. */
long long tiny_item(tiny_emitter *e, uint32_t number, uint32_t at);

/* --- views --- */
const gr_view *tiny_operand(const tiny_emitter *e, uint32_t number);
/* Item `at` of a list of tensors. */
const gr_view *tiny_list_operand(const tiny_emitter *e, uint32_t number, uint32_t at);
const gr_view *tiny_result(const tiny_emitter *e, uint32_t number);
bool tiny_is_there(const gr_view *view);
int64_t tiny_numel(const gr_view *view);
/* Whether its memory holds i8, of whatever dtype it is in the graph. */
bool tiny_is_i8(const tiny_emitter *e, const gr_view *view);

/* --- what a kernel needs; dtypes are those that memory holds --- */
void tiny_need_dtype(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what);
/* What a kernel reads while it writes to it would be lost. */
void tiny_need_apart(tiny_emitter *e);
/* As many elements as `to`, and in the same order or in other memory. */
void tiny_need_same(tiny_emitter *e, const gr_view *from, const gr_view *to, const char *what);

/* --- places, as C; after an error they are of no use --- */
const char *tiny_place(tiny_emitter *e, const gr_view *view);
/* Of elements that follow each other. */
const char *tiny_dense(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what);
/* The same of an argument and of a result that are f32. */
const char *tiny_in(tiny_emitter *e, uint32_t number);
const char *tiny_out(tiny_emitter *e, uint32_t number);
/* Elements of one sample follow each other; the next sample may be anywhere. */
const char *tiny_samples(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what);

#endif
