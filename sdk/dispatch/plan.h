/* A call resolved once: what each operand becomes, which way it goes, and the args struct but for its tensors. */
#ifndef GRAFT_SDK_PLAN_H
#define GRAFT_SDK_PLAN_H

#include "dispatch/dispatch.h"

/* How a tensor of the call reaches the slot. */
typedef enum dsp_action {
  DSP_ABSENT,     /* NULL */
  DSP_DIRECT,     /* its own memory, seen with the plan's geometry */
  DSP_HOST_VALUE, /* a number in host memory */
  DSP_TEMPORARY, /* inputs: a contiguous copy in the plan's dtype; outputs: a new tensor that is copied to the result */
  DSP_DYNAMIC    /* an output whose shape the op finds */
} dsp_action;

typedef struct dsp_operand {
  uint8_t action;
  bool is_output, mutated;
  int16_t arg;  /* argument, or for outputs the schema's return */
  int32_t item; /* item of a list, or -1; for outputs the index among the flat outputs */
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];           /* as the slot sees it */
  int64_t view_sizes[GRAFT_MAX_DIMS], view_strides[GRAFT_MAX_DIMS]; /* of the source, before a temporary */
} dsp_operand;

/* Where tensors go in the args struct. */
typedef struct dsp_field {
  uint16_t offset;
  bool is_list;
  uint32_t first, count; /* operands */
} dsp_field;

/* What a plugin keeps for a plan, and the end of just that. */
typedef struct dsp_memo {
  void *value;
  void (*destroy)(void *value);
} dsp_memo;

typedef struct dsp_plan {
  struct dsp_plan *next;  /* in the cache's bucket */
  struct dsp_plan *newer; /* in the cache, by age */
  bool used;              /* since its age was last looked at */
  uint64_t hash;
  uint32_t key_words;
  uint64_t *key;
  atomic_uint refs;
  graft_rt_device *device;
  _Atomic(int) route;
  op_call call;          /* canonical; its tensors are those of the first call and only say which argument is one */
  uint32_t nouts;        /* flat */
  graft_meta *out_metas; /* flat */
  bool *out_wanted;      /* flat */
  bool empty;            /* no output has an element: nothing to run */
  bool in_order;         /* an item of a list is read only when those before it are written */
  const op_schema *slot_schema; /* of the slot: the call's own, or the equal one */
  op_slot slot;
  uint32_t noperands, nfields, nlist_items;
  dsp_operand *operands;
  dsp_field *fields;
  unsigned char *args; /* template */
  bool simple;         /* all operands direct or host values, and nothing is looked at before: no temporaries */
  bool checks_indices; /* as the slot asks for it */
  bool lacking;        /* nothing on the device is known to compute in this dtype: no part of a decomposition */
  arena memory;        /* of everything that is pointed to above */
  uint64_t late;       /* bit n: argument n is a number that each call brings anew: it is not in the key */
  _Atomic(dsp_memo *) memo;
} dsp_plan;

/* The key of a call. */
enum { DSP_KEY_LOCAL = 320 };
typedef struct dsp_key {
  uint64_t *words;
  uint32_t count, capacity;
  uint64_t local[DSP_KEY_LOCAL];
} dsp_key;
/* False when host memory runs out. */
bool dsp_key_build(dsp_key *key, const op_schema *schema, const graft_value *args, uint32_t nargs,
                   graft_tensor *const *outs, uint32_t nouts, uint64_t late);
void dsp_key_free(dsp_key *key);

/* The cache: found plans are retained; dsp_plan_release gives them back. */
dsp_plan *dsp_plan_find(graft_rt_device *device, const dsp_key *key);
dsp_plan *dsp_plan_insert(graft_rt_device *device, const dsp_key *key, dsp_plan *plan);
void dsp_plan_release(dsp_plan *plan);
void dsp_plan_free(dsp_plan *plan);

/* How outputs that were given share memory with each other; for lists that go item by item also with an item of another
 * place. The worst there is: PARTIAL, MAYBE, FULL, NONE. What is not NONE does not show in the key. */
tns_overlap dsp_written_overlap(const op_schema *schema, const graft_value *args, uint32_t nargs,
                                graft_tensor *const *outs, uint32_t nouts);

/* Makes a plan for a canonical call. outs may hold tensors (out form); fewer than the call has are an error. */
graft_status dsp_resolve(op_call *call, graft_tensor *const *outs, uint32_t nouts, dsp_plan **plan);

/* An args struct with all but the tensors, and what its members point to. */
typedef struct dsp_packed {
  unsigned char *bytes;
  graft_scalar *scalars; /* by argument */
  uint64_t *small;       /* optional ints, doubles and bools */
} dsp_packed;
/* False when host memory runs out. */
bool dsp_pack_values(arena *memory, const op_schema *schema, const graft_value *values, dsp_packed *packed);
/* Makes the template of the args struct of a slot with this schema; `values` are in the schema's order. False when host
 * memory runs out. */
bool dsp_make_args(dsp_plan *plan, const op_schema *schema, const graft_value *values);

/* Runs a plan's slot. args are complete (see dsp_complete); outs receive new tensors where NULL. */
graft_status dsp_run_slot(dsp_plan *plan, const graft_value *args, graft_tensor **outs);

/* OUT_OF_RANGE where an index lies outside what it addresses; waits for the device. args are complete. */
graft_status dsp_check_indices(const op_call *call, const graft_value *args);

/* The other ways. */
graft_status dsp_run_decomposition(dsp_plan *plan, const graft_value *args, graft_tensor **outs);
graft_status dsp_run_reference(dsp_plan *plan, const graft_value *args, graft_tensor **outs);
graft_status dsp_run_copy(const op_call *call, graft_tensor **outs);
/* The same while calls are recorded. */
graft_status dsp_record_copy(const op_call *call, graft_tensor **outs);
/* A copy as the slot of conversions would make it: the plan, retained, and what goes into its args, OP_MAX_ARGS long.
 */
graft_status dsp_find_conversion(graft_tensor *to, graft_tensor *from, dsp_plan **plan, graft_value *full);
/* How such an op is run: what is more than bytes to be moved goes through the slot of *equal, else host memory. */
dsp_route dsp_copy_route(graft_rt_device *device, uint32_t *equal);
/* The device that a call runs on, found from its arguments. */
graft_rt_device *dsp_device_of_call(const op_call *call);
/* Completes the arguments and applies the op's rule. */
graft_status dsp_infer(op_call *call, const op_schema *schema, const graft_value *args, uint32_t nargs);
/* The same for a copy; for an op of the host, which has no rule, arguments alone. */
graft_status dsp_complete_planless(op_call *call, const op_def *def, const op_schema *schema, const graft_value *args,
                                   uint32_t nargs);
/* The plan of a call, found or made, retained; and its arguments in full: canonical values and this call's tensors. */
graft_status dsp_find_plan(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                           graft_tensor **outs, uint32_t nouts, dsp_plan **plan);
void dsp_full_args(const dsp_plan *plan, const graft_value *args, uint32_t nargs, graft_value *full);

/* Runs a plan's way; after UNIMPLEMENTED the next one, for this and all later calls. Records no history. */
graft_status dsp_run_plan(dsp_plan *plan, const graft_value *args, graft_tensor **outs, dsp_route *taken);

/* Moves a plan to the way behind the one that was tried and said UNIMPLEMENTED, unless another thread has done so; the
 * last one is DSP_ROUTE_NONE. */
void dsp_next_route(dsp_plan *plan, dsp_route tried);

/* Room for the canonical lists of most calls, on the stack; see op_call.lists. */
typedef union dsp_room {
  max_align_t alignment;
  char bytes[1024];
} dsp_room;

/* Whether a value names items, or a text, that are not there. */
static inline bool dsp_lacks_items(const graft_value *v) {
  const uint32_t lists = 1u << GRAFT_VALUE_TENSORS | 1u << GRAFT_VALUE_INTS | 1u << GRAFT_VALUE_FLOATS |
                         1u << GRAFT_VALUE_SCALARS | 1u << GRAFT_VALUE_MASK;
  if (v->as.ints || v->kind > GRAFT_VALUE_STR) return false; /* the pointers share their place */
  return (lists >> v->kind & 1 && v->count) || v->kind == GRAFT_VALUE_STR;
}

/* Whether a schema has as many arguments as were given. */
graft_status dsp_check_count(const op_schema *schema, uint32_t nargs);
/* Whether what the schema requires was given; for an op whose arguments are about to become another's. */
graft_status dsp_check_given(const op_schema *schema, const graft_value *args, uint32_t nargs);

/* The arguments whose values need not be in the key of a call on this device, a bit each: the rule does not look at
 * them, and the plugin says that its memos do not, either (GRAFT_CAP_MEMO_IGNORES_SCALARS). */
uint64_t dsp_late_numbers(graft_rt_device *device, const op_schema *schema, const op_def *def);
/* Whether a device says that its kernels do not compute in a dtype; masks and indices are exempt. */
bool dsp_lacks_dtype(const graft_rt_device *device, graft_dtype dtype);
/* Whether a device offers a prim that is equal to an op. */
bool dsp_offers_prim(graft_rt_device *device, const op_schema *schema);
/* A late number of a call, in full: an argument's value, of the kind that kernels see. */
graft_value dsp_complete_number(const op_arg *arg, const graft_value *given);

/* Completes arguments in schema order: defaults, numbers, lists of one. */
graft_status dsp_complete(op_call *call, const op_schema *schema, const graft_value *args, uint32_t nargs);

/* The capabilities of an op on a device, asked once. False: the slot is NULL or the op unknown to the plugin. */
bool dsp_caps(graft_rt_device *device, const op_schema *schema, op_slot *slot, graft_op_caps *caps);

/* Whether the plugin serves the call of a plan whose args are made; *caps, what it says of the op, becomes what it says
 * of the call. */
graft_status dsp_query(dsp_plan *plan, graft_op_caps *caps);
/* Has the plugin compile what a plan's calls need. */
graft_status dsp_prepare(dsp_plan *plan);

/* Refuses a call for numbers that its rule can't look at; full: its arguments in full. A number in device memory is
 * asked for where the call comes from outside: formulas know theirs. */
graft_status dsp_check_bound(const dsp_plan *plan, const graft_value *full, const graft_value *args, uint32_t nargs,
                             bool from_outside);

/* Turns a canonical call of an aten op into one of the prim that equals it; false where it does not fit. */
bool dsp_to_prim(const op_call *call, const op_schema *prim, graft_value *args);
const op_schema *dsp_equal_prim(const op_schema *schema, uint32_t nth);

/* A new tensor of a flat output. */
graft_status dsp_new_output(const dsp_plan *plan, uint32_t index, graft_tensor **out);

/* While set, random ops of this thread draw from here: a call repeated on another way draws the same numbers. */
typedef struct dsp_philox_override {
  bool active;
  uint64_t seed, offset;
} dsp_philox_override;
extern _Thread_local dsp_philox_override dsp_philox;

/* What graft_exec.host_context points to. */
enum { DSP_MAX_LOSERS = 4, DSP_MAX_WORKSPACES = 8 }; /* of one call; the ABI promises as many workspaces */
typedef struct dsp_frame {
  dsp_plan *plan;
  graft_rt_device *device;
  graft_rt_stream *stream;
  mem_block *workspaces[DSP_MAX_WORKSPACES];
  uint64_t workspace_bytes[DSP_MAX_WORKSPACES]; /* as asked for */
  uint32_t workspace_count;
  dsp_memo losers[DSP_MAX_LOSERS]; /* memos that came too late; they are destroyed once the stream's lock is free */
  uint32_t loser_count;
} dsp_frame;

/* Around each workspace of a call there are zones of this device's, of 0 bytes unless dsp_zones asks for some: room for
 * a workspace with its zones, filled in; and whether the zones are as they were, which waits for the stream and says
 * how that went. */
uint64_t dsp_zone_bytes(const graft_rt_device *device);
graft_status dsp_zone_allocate(dsp_frame *frame, uint64_t bytes, mem_block **block);
graft_status dsp_zone_check(const dsp_frame *frame);

/* Outputs whose shape the op finds lie among the first few of a call: unique has one in the third place. */
enum { DSP_MAX_DYNAMIC = 3 };
struct graft_output {
  dsp_plan *plan;
  uint32_t index;
  graft_tensor *tensor;
  graft_tensor_desc desc;
};

/* Calls a plan's slot on a stream, under its lock, and ends the frame, which need not be filled in. As the plugin says.
 */
graft_status dsp_enter_slot(dsp_plan *plan, const graft_args *args, graft_exec_flags flags, graft_rt_stream *stream,
                            dsp_frame *frame);

/* Gives back what a plugin asked for during its call. */
void dsp_frame_end(dsp_frame *frame);
/* While this thread records for a plugin ("graft.capture"): takes over the workspaces of calls, which run later. */
extern _Thread_local void (*dsp_keep_workspace)(mem_block *block);

/* Puts the numbers of this call into an args struct of the plan's slot; those in the template are of the first one. */
void dsp_fill_late(const dsp_plan *plan, const graft_value *args, unsigned char *packed);
/* A number as the one element of a tensor of its dtype: 16 bytes hold any. */
void dsp_scalar_element(const graft_scalar *scalar, void *element);

void dsp_fill_desc(graft_tensor_desc *desc, const graft_tensor *t, graft_dtype dtype, int32_t ndim,
                   const int64_t *sizes, const int64_t *strides);
/* Counts a call that leaves the device; an error that names it under GRAFT_FALLBACK=error. */
graft_status dsp_allow_fallback(const dsp_plan *plan, const graft_value *args);

#endif
