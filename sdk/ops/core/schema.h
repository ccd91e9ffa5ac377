/* What the op descriptions (plugin_api/ops) say, as tables: generated/schema.inc holds the rows. */
#ifndef GRAFT_SDK_SCHEMA_H
#define GRAFT_SDK_SCHEMA_H

#include "graft/abi/op_ids.h"
#include "graft/value.h"

enum op_kind {
  OPK_TENSOR,
  OPK_TENSORS,
  OPK_INT,
  OPK_FLOAT,
  OPK_BOOL,
  OPK_SCALAR,
  OPK_INTS,
  OPK_FLOATS,
  OPK_SCALARS,
  OPK_MASK,
  OPK_STR,
  OPK_DTYPE,
  OPK_GENERATOR,
  OPK_DEVICE,
  OPK_LAYOUT,
  OPK_MEMORY_FORMAT,
  OPK_FLAG
};
enum {
  OPA_OPTIONAL = 1,
  OPA_KWARG = 2,
  OPA_MUTATED = 4,
  OPA_ALIASED = 8,
  OPA_DROPPED = 16,
  OPA_OPTIONAL_ITEMS = 32 /* Tensor?[]: an item may be NULL */
};
enum { OPR_DYNAMIC = 1, OPR_ALIASED = 2, OPR_NO_VALUE = 4 }; /* no value: a mask, indices or counts */
enum { OPT_CORE, OPT_PRIMS, OPT_TRAIN, OPT_CUSTOM };         /* custom: ops that plugins bring */
enum { OPROUTE_SLOT, OPROUTE_HOST, OPROUTE_COMPOSITE };
enum { OPS_CONTIGUOUS, OPS_POINTWISE, OPS_LIKE, OPS_SUGGEST, OPS_VIEW, OPS_NONE };
enum { OPF_RANDOM = 1, OPF_DYNAMIC = 2 };

/* Whose size an index lies below. */
enum {
  OPI_ELEMENTS,  /* the number of elements of tensor `of` */
  OPI_DIM,       /* its size in `dim` */
  OPI_DIM_GIVEN, /* its size in the dim that argument `dim` names */
  OPI_OWN_DIM,   /* of an item of a list: its size in the dim at the item's own place */
  OPI_LAST_DIMS, /* its last `dim` dims together */
  OPI_NUMBER     /* int argument `of`; of a list the product */
};
enum { OPI_NOTHING, OPI_LITERAL, OPI_ARGUMENT };

/* What the elements of an index argument may be. */
typedef struct op_index {
  uint8_t size; /* OPI_* */
  int8_t of, dim;
  bool from_one;  /* 0 is none, and the size itself is: elements are counted from 1 */
  bool ends;      /* the size itself is one, too: what is addressed lies between elements */
  bool wraps;     /* negative ones count from the end */
  uint8_t passes; /* one more value is let through: the number `passed`, or that of argument `passed` */
  int8_t passed;
  bool is_asked; /* they are read where bool argument `asked` is true alone */
  int8_t asked;
} op_index;

typedef struct op_arg {
  const char *name;
  uint8_t kind;
  uint8_t flags;
  uint16_t offset;             /* of the field in the args struct */
  uint16_t bytes;              /* N of bool[N]; the expected length of int[N] */
  const graft_value *fallback; /* the schema's default; NULL: required, or None */
  const char *const *strings;  /* the values of a str argument, NULL-terminated; enum value = index + 1; NULL: any
                                * text, which then is the field */
  const op_index *index;       /* NULL: it holds no indices */
} op_arg;

typedef struct op_ret {
  const char *name;
  uint8_t kind;
  uint8_t flags;
  uint16_t offset;
} op_ret;

typedef struct op_equal_arg {
  int16_t source; /* index of the prim's argument, -1: the constant */
  const graft_value *constant;
} op_equal_arg;

typedef struct op_equal {
  uint32_t op_id;
  uint32_t count;
  const op_equal_arg *args;
} op_equal;

typedef struct op_schema {
  uint32_t id;
  const char *name;   /* "aten::add.Tensor" */
  const char *schema; /* as PyTorch prints it */
  const char *family;
  uint8_t table, route, strides;
  int8_t strides_arg;
  uint8_t nargs, nrets;
  uint8_t level; /* 0 to 4: how early a backend wants it; the levels stand in plugin_api/ops/README.md */
  uint32_t flags;
  const op_arg *args;
  const op_ret *rets;
  uint32_t args_size;   /* of the args struct */
  uint32_t slot_offset; /* of the slot in its table */
  uint16_t philox_offset;
  uint64_t mutates; /* bit n: argument n is written beyond the schema */
  const op_equal *equal;
} op_schema;

/* The row of an op id, or of a name ("aten::add.Tensor", "aten.add.Tensor", ".default" may be added); NULL: unknown. */
const op_schema *op_schema_of(uint32_t op_id);
const op_schema *op_schema_find(const char *name);
/* All rows of the tables in id order. */
const op_schema *op_schema_all(size_t *count);

/* Ops that plugins bring have rows, too, with ids from GRAFT_OP_VENDOR_IDS on in the order in which they came; they
 * stay for as long as the process. Additions are serialised by their one caller. */
enum { OP_MAX_CUSTOM = 1024 };
const op_schema *op_schema_custom(uint32_t number); /* NULL: there are not so many */
/* Gives the row the next id; with `number`, that many are there before. The row is found when it is published. */
void op_schema_number(op_schema *schema, uint32_t number);
void op_schema_publish(const op_schema *schema);
/* For arrays with one item a row: every row has a place, below this bound. */
size_t op_schema_places(void);
size_t op_schema_place(const op_schema *schema);
bool op_is_own_namespace(const char *name);          /* PyTorch's or Graft's: no plugin takes it */
bool op_schema_has_indices(const op_schema *schema); /* in an argument */
/* Whether calls may write into argument `arg`. */
static inline bool op_mutates(const op_schema *schema, uint32_t arg) {
  return (schema->mutates >> arg & 1) || (schema->args[arg].flags & OPA_MUTATED);
}

#endif
