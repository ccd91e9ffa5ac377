/* Chains of _foreach ops: what a call is, a kernel of several, its runs. See chain.h. */
#include "kernels/optimizer/chain.h"

#include <stdlib.h>
#include <string.h>

/* ---- a call ---- */

bool ocl_chain_read(const graft_exec *exec, const graft_graph_node *node, ocl_lists *lists) {
  ocl_call call;
  if (!node->args || ocl_call_of(exec, node->args, &call) != GRAFT_OK || call.op->engine != ocl_foreach) return false;
  ocl_foreach_read(&call, lists);
  return lists->list[0].count > 0 && ocl_lists_are_served(exec->device, lists);
}

bool ocl_chain_alike(const graft_device *device, const ocl_lists *a, const ocl_lists *b) {
  if (a->list[0].count != b->list[0].count) return false;
  for (uint32_t t = 0; t < a->list[0].count; t++) {
    const graft_tensor_desc *x = a->list[0].items[t], *y = b->list[0].items[t];
    const char *of_x = ocl_dtype_of(device, x->dl.dtype)->compute, *of_y = ocl_dtype_of(device, y->dl.dtype)->compute;
    if (ocl_elements(x) != ocl_elements(y) || strcmp(of_x, of_y) != 0) return false;
  }
  return true;
}

/* ---- lists ---- */

/* An operand of a call: a list, or one tensor for all. */
typedef struct operand {
  graft_tensor_list list;
  const graft_tensor_desc *single;
} operand;

static operand operand_of(const ocl_lists *call, int k) {
  return (operand){call->list[k], call->single[k]};
}

static bool is_same(const operand *a, const operand *b) {
  if (a->single || b->single) return a->single == b->single;
  return !memcmp(a->list.items, b->list.items, a->list.count * sizeof *a->list.items);
}

static const graft_tensor_desc *tensor_of(const operand *o, uint32_t tensor) {
  return o->single ? o->single : o->list.items[tensor];
}

/* Whether the operand reads of what is written anything but the same list, whose tensors have memory of their own. */
static bool crosses(const operand *written, const operand *other) {
  const bool same = is_same(written, other);
  const uint64_t count = other->single ? 1 : other->list.count;
  for (uint32_t i = 0; i < written->list.count; i++) {
    for (uint32_t j = 0; j < count; j++) {
      const bool is_itself = same && i == j;
      if (!is_itself && written->list.items[i]->storage_id == tensor_of(other, j)->storage_id) return true;
    }
  }
  return false;
}

bool ocl_chain_clashes(const ocl_lists *a, const ocl_lists *b) {
  const operand written = operand_of(a, 0);
  for (int k = 0; k < b->operands; k++) {
    const operand other = operand_of(b, k);
    if (crosses(&written, &other)) return true;
  }
  return false;
}

/* Where an operand is in a list of them; -1: nowhere. */
static int find(const operand *list, int count, const operand *o) {
  int i = count - 1;
  while (i >= 0 && !is_same(&list[i], o)) i--;
  return i;
}

enum { VALUES_MAX = OCL_CHAIN_CALLS * 4 };

int ocl_chain_operands(const ocl_lists *const *calls, int count,
                       bool (*is_inside)(const void *context, int call, const graft_tensor_desc *desc),
                       const void *context) {
  operand in_memory[VALUES_MAX], inside[OCL_CHAIN_CALLS];
  int operands = 0, ninside = 0;
  for (int c = 0; c < count; c++) {
    for (int k = 1; k <= calls[c]->operands; k++) { /* what is written last */
      const int at = k < calls[c]->operands ? k : 0;
      const operand o = operand_of(calls[c], at);
      if (find(in_memory, operands, &o) >= 0 || find(inside, ninside, &o) >= 0) continue;
      if (at == 0 && is_inside(context, c, o.list.items[0]))
        inside[ninside++] = o;
      else
        in_memory[operands++] = o;
    }
  }
  return operands;
}

/* ---- a chain ---- */

/* One op of it. Values are numbered: those that are read from memory, and what ops give. */
typedef struct chained {
  const char *expression;
  int in[3], inputs, out;
  int number; /* of its own; -1: it needs none */
  graft_tensor_list dtypes;
} chained;

/* A list in memory. */
typedef struct place {
  operand operand;
  int read, written; /* the value that is loaded, and the one that is stored; -1: none */
  /* Where its tensors are among those of a run: of the outputs, or of the inputs. */
  bool is_output;
  uint32_t *at;
} place;

struct ocl_chain {
  chained ops[OCL_CHAIN_CALLS];
  int nops, nvalues, nplaces;
  place places[OCL_LISTS_MAX];
  uint32_t count; /* tensors */
  ocl_lists call;
  ocl_lists_plan plan;
};

/* One that is compiled: the value that each list has by now. */
typedef struct linking {
  const graft_graph_group *group;
  ocl_chain *chain;
  operand known[VALUES_MAX];
  int values[VALUES_MAX], nknown;
} linking;

/* Where each of the tensors is in the list, `missing` of them nowhere. */
static uint32_t locate(const operand *o, uint32_t count, const graft_tensor_desc *const *descs, uint32_t ndescs,
                       uint32_t *at) {
  uint32_t missing = 0;
  for (uint32_t t = 0, next = 0; t < count; t++) {
    uint32_t tried = 0; /* they mostly follow each other */
    for (; tried < ndescs && descs[next] != tensor_of(o, t); tried++) next = next + 1 < ndescs ? next + 1 : 0;
    if (tried == ndescs) missing++;
    at[t] = next;
  }
  return missing;
}

static graft_status add_place(linking *l, const operand *o, bool is_output, place **added) {
  ocl_chain *chain = l->chain;
  const graft_graph_group *group = l->group;
  const uint32_t count = is_output ? group->output_count : group->input_count;
  uint32_t *at = calloc(chain->count, sizeof *at);
  if (!at) return GRAFT_OUT_OF_MEMORY;
  const uint32_t missing = locate(o, chain->count, is_output ? group->outputs : group->inputs, count, at);
  *added = NULL;
  if (missing == chain->count && is_output) return free(at), GRAFT_OK; /* inside */
  if (missing || chain->nplaces == OCL_LISTS_MAX) return free(at), GRAFT_UNIMPLEMENTED;
  *added = &chain->places[chain->nplaces++];
  **added = (place){.operand = *o, .read = -1, .written = -1, .is_output = is_output, .at = at};
  return GRAFT_OK;
}

static void set_value(linking *l, const operand *o, int value) {
  int at = find(l->known, l->nknown, o);
  if (at < 0) at = l->nknown++;
  l->known[at] = *o;
  l->values[at] = value;
}

static graft_status read_value(linking *l, const operand *o, int *value) {
  const int at = find(l->known, l->nknown, o);
  if (at >= 0) return *value = l->values[at], GRAFT_OK;
  place *read;
  const graft_status status = add_place(l, o, false, &read);
  if (status != GRAFT_OK) return status;
  *value = read->read = l->chain->nvalues++;
  set_value(l, o, *value);
  return GRAFT_OK;
}

static graft_status add_op(linking *l, const ocl_lists *call) {
  ocl_chain *chain = l->chain;
  chained *next = &chain->ops[chain->nops++];
  *next = (chained){.expression = call->expression, .number = -1, .dtypes = call->list[0]};
  graft_status status = GRAFT_OK;
  for (int k = 1; k < call->operands && status == GRAFT_OK; k++) {
    const operand o = operand_of(call, k);
    status = read_value(l, &o, &next->in[next->inputs++]);
  }
  if (status != GRAFT_OK) return status;
  if (call->own[0].items) {
    next->number = chain->call.owns;
    chain->call.own[chain->call.owns++] = call->own[0];
  }
  const operand out = operand_of(call, 0);
  next->out = chain->nvalues++;
  set_value(l, &out, next->out);
  return GRAFT_OK;
}

/* The lists that the calls leave in memory; each as the last one of them leaves it. */
static graft_status add_outputs(linking *l) {
  ocl_chain *chain = l->chain;
  operand done[OCL_CHAIN_CALLS];
  int ndone = 0;
  graft_status status = GRAFT_OK;
  for (int i = 0; i < chain->nops && status == GRAFT_OK; i++) {
    const operand o = {.list = chain->ops[i].dtypes};
    if (find(done, ndone, &o) >= 0) continue;
    done[ndone++] = o;
    place *written = NULL;
    for (int p = 0; p < chain->nplaces; p++) {
      if (is_same(&chain->places[p].operand, &o)) written = &chain->places[p];
    }
    if (!written) status = add_place(l, &o, true, &written);
    if (written) written->written = l->values[find(l->known, l->nknown, &o)];
  }
  return status;
}

static graft_status read_calls(linking *l, const graft_exec *exec) {
  graft_status status = GRAFT_OK;
  ocl_lists first, call;
  for (uint32_t n = 0; n < l->group->node_count && status == GRAFT_OK; n++) {
    if (!ocl_chain_read(exec, l->group->nodes[n], &call)) return GRAFT_UNIMPLEMENTED;
    if (n == 0) first = call;
    l->chain->count = (uint32_t)first.list[0].count;
    status = ocl_chain_alike(exec->device, &first, &call) ? add_op(l, &call) : GRAFT_UNIMPLEMENTED;
  }
  return status;
}

/* As the kernels of lists take it: operand 0 says in what is computed. What is written has no tensors yet. */
static graft_status make_call(ocl_chain *chain, const graft_device *device) {
  ocl_lists *call = &chain->call;
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].written < 0) continue;
    const place first = chain->places[0];
    chain->places[0] = chain->places[p];
    chain->places[p] = first;
    break;
  }
  call->operands = chain->nplaces;
  call->chain = chain;
  call->defines = "";
  for (int p = 0; p < chain->nplaces; p++) {
    call->list[p] = chain->places[p].operand.list;
    call->single[p] = chain->places[p].operand.single;
  }
  const bool writes = chain->nplaces > 0 && chain->places[0].written >= 0;
  return writes ? ocl_lists_plan_fill(&chain->plan, device, call) : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_chain_compile(const graft_exec *exec, const graft_graph_group *group, ocl_chain **compiled) {
  if (group->node_count > OCL_CHAIN_CALLS) return GRAFT_UNIMPLEMENTED;
  linking *l = calloc(1, sizeof *l);
  ocl_chain *chain = calloc(1, sizeof *chain);
  graft_status status = l && chain ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK) {
    l->group = group;
    l->chain = chain;
    status = read_calls(l, exec);
  }
  if (status == GRAFT_OK) status = add_outputs(l);
  if (status == GRAFT_OK) status = make_call(chain, exec->device);
  free(l);
  if (status == GRAFT_OK)
    *compiled = chain;
  else
    ocl_chain_destroy(chain);
  return status;
}

void ocl_chain_destroy(ocl_chain *chain) {
  if (!chain) return;
  for (int p = 0; p < chain->nplaces; p++) free(chain->places[p].at);
  ocl_lists_plan_release(&chain->plan);
  free(chain);
}

/* ---- its kernel ---- */

bool ocl_chain_same_dtypes(const ocl_chain *chain, uint32_t a, uint32_t b) {
  for (int i = 0; i < chain->nops; i++) {
    const graft_tensor_list *list = &chain->ops[i].dtypes;
    if (list->items[a]->dl.dtype != list->items[b]->dl.dtype) return false;
  }
  return true;
}

static const ocl_dtype *dtype_of(const chained *op, const graft_device *device, uint32_t tensor) {
  return ocl_dtype_of(device, op->dtypes.items[tensor]->dl.dtype);
}

/* What is computed in its own type is what it will be read as. */
static bool rounds(const ocl_dtype *dtype) {
  return dtype->code != GRAFT_F32 && dtype->code != GRAFT_F64 && dtype->code != GRAFT_I64;
}

static void write_rounds(ocl_text *head, const ocl_chain *chain, const graft_device *device, uint32_t tensor) {
  ocl_text_add(head, "#define ROUNDS");
  for (int i = 0; i < chain->nops; i++) {
    const ocl_dtype *dtype = dtype_of(&chain->ops[i], device, tensor);
    bool is_new = rounds(dtype);
    for (int j = 0; j < i; j++) is_new = is_new && dtype_of(&chain->ops[j], device, tensor) != dtype;
    if (is_new) ocl_text_add(head, " DEFINE_ROUND(%s)", dtype->name);
  }
  ocl_text_add(head, "\n#define NUMBERS_OF_CHAIN(record)");
  for (int k = 0; k < chain->call.owns; k++)
    ocl_text_add(head, " const VT number_%d = (VT)OWN_NUMBER(record, %d);", k, k);
}

static void write_op(ocl_text *head, const chained *op, const ocl_dtype *dtype) {
  ocl_text_add(head, " VT v%d; {", op->out);
  for (int k = 0; k < op->inputs; k++) ocl_text_add(head, " const VT %c = v%d;", 'a' + k, op->in[k]);
  if (op->number >= 0) ocl_text_add(head, " const VT x = number_%d;", op->number);
  ocl_text_add(head, " v%d = ", op->out);
  if (rounds(dtype)) ocl_text_add(head, "round_%s", dtype->name);
  ocl_text_add(head, "(%s); }", op->expression);
}

void ocl_chain_write(ocl_text *head, const ocl_chain *chain, const graft_device *device, uint32_t tensor) {
  write_rounds(head, chain, device, tensor);
  ocl_text_add(head, "\n#define CHAIN(i, n) {");
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].read >= 0) ocl_text_add(head, " VT v%d = get_%d(p%d, i, n);", chain->places[p].read, p, p);
  }
  for (int i = 0; i < chain->nops; i++) write_op(head, &chain->ops[i], dtype_of(&chain->ops[i], device, tensor));
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].written >= 0) ocl_text_add(head, " put_%d(p%d, i, n, v%d);", p, p, chain->places[p].written);
  }
  ocl_text_add(head, " }\n");
}

/* ---- a run ---- */

graft_status ocl_chain_run(const graft_exec *exec, const ocl_chain *chain, const graft_graph_run_args *args) {
  ocl_lists call = chain->call;
  const uint32_t count = chain->count;
  const graft_tensor_desc **items = malloc((size_t)chain->nplaces * count * sizeof *items);
  if (!items) return GRAFT_OUT_OF_MEMORY;
  for (int p = 0; p < chain->nplaces; p++) {
    const place *place = &chain->places[p];
    const graft_tensor_desc *const *from = place->is_output ? args->outputs : args->inputs;
    const graft_tensor_desc **list = items + (size_t)p * count;
    for (uint32_t t = 0; t < count; t++) list[t] = from[place->at[t]];
    call.list[p] = (graft_tensor_list){list, count};
    if (call.single[p]) call.single[p] = list[0];
  }
  const graft_status status = ocl_lists_launch(exec, &call, &chain->plan);
  free(items);
  return status;
}
