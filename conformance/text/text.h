/* The text form of an op call, as fixtures, rows of cases, case ids and the command line write it:
 *
 *   aten::add.Tensor f32[2,3] i64[] alpha=2
 *
 * The name ("aten::add.Tensor" or "aten.add.Tensor"), then the arguments in the order of the schema, separated by
 * blanks. Trailing ones may be left out and take the schema's default; any may be given as name=value, after which all
 * that follow are. Arguments that Graft drops (layout, pin_memory, ...) and the device are never written.
 *
 *   tensor          f32[2,3]   f32[2,3]:1,2 (strides)   f32[2,3]:1,2@5 (offset, all in elements)   f32[] (rank 0)
 *   tensor list     {f32[2];_;f32[3]}
 *   number          2  -3  2.5  1e-3  true  inf  nan  1+2j      for a Scalar, or a Tensor given as a Python number
 *   int float bool  2  2.5  true
 *   lists           [1,2]  [1.0,2.0]  [1,0,1] (mask)
 *   str             'tanh'
 *   dtype           f32
 *   memory format   'contiguous'  'preserve'  'channels_last'  'channels_last_3d'
 *   absent          _
 *
 * Depends on sdk/ops (schemas) and sdk/tensor. */
#ifndef GRAFT_CF_TEXT_H
#define GRAFT_CF_TEXT_H

#include "ops/core/op.h"

/* A tensor as written, before it exists. */
typedef struct txt_tensor {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t strides[GRAFT_MAX_DIMS];
  int64_t offset; /* elements */
  uint32_t arg;   /* the argument it stands in */
} txt_tensor;

/* A parsed call. args has schema->nargs items, absent ones as NONE. Tensors stand in `specs` in the order of the
 * schema; until txt_make the values that name them hold NULL. */
typedef struct txt_call {
  const op_schema *schema;
  graft_value args[OP_MAX_ARGS];
  uint32_t nargs;
  txt_tensor *specs;
  graft_tensor **tensors; /* one a spec */
  uint32_t ntensors;
  void *memory; /* specs, tensors, lists and strings */
} txt_call;

/* Parses one call. With `rest`, parsing stops at a word "->" and *rest receives what follows it (NULL where there is
 * none); without, such a word is an error. Errors name the column, what was expected and what stands there. On success
 * txt_free ends the call's life. */
graft_status txt_parse_call(const char *line, const char **rest, txt_call *call);

/* Parses one tensor ("f32[2,3]:1,2@5") at *text and moves *text behind it. */
graft_status txt_parse_tensor(const char **text, txt_tensor *spec);

/* Fills tensor `index` of a call; its memory is not initialised. */
typedef graft_status (*txt_fill_fn)(void *context, uint32_t index, graft_tensor *tensor);

/* Makes the tensors of a call on `device`, each with a storage of its own, and gives them to `fill` one by one. With
 * fill NULL they have a shape and no memory, as graft_infer takes them. Device arguments are set to `device`. */
graft_status txt_make(txt_call *call, graft_rt_device *device, txt_fill_fn fill, void *context);

void txt_free(txt_call *call);

/* The other way. Each writes at most `capacity` bytes, NUL included, and returns buffer. Strides are written where they
 * are not those of a contiguous tensor, and for a meta always. */
char *txt_format_call(const op_schema *schema, const graft_value *args, uint32_t nargs, char *buffer, size_t capacity);
char *txt_format_value(const graft_value *value, char *buffer, size_t capacity);
char *txt_format_tensor(const graft_tensor *tensor, char *buffer, size_t capacity);
char *txt_format_meta(const graft_meta *meta, char *buffer, size_t capacity);
char *txt_format_number(const graft_scalar *number, char *buffer, size_t capacity);

#endif
