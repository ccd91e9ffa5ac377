/* Chains of _foreach ops: what a call is, a kernel of several, its runs. See chain.h. */
#include "kernels/optimizer/chain.h"
#include "kernels/optimizer/columns.h"

#include <stdlib.h>
#include <string.h>

/* ---- a call ---- */

bool ocl_chain_read(const graft_exec *exec, const graft_graph_node *node, ocl_lists *lists) {
  ocl_call call;
  if (!node->args || ocl_call_of(exec, node->args, &call) != GRAFT_OK || call.op->engine != ocl_foreach) return false;
  ocl_foreach_read(&call, lists);
  return lists->list[0].count > 0 && ocl_lists_are_served(exec->device, lists);
}

static const char *compute_of(const graft_device *device, const ocl_lists *call, uint32_t tensor) {
  return call->column ? call->column->op.compute->compute
                      : ocl_dtype_of(device, call->list[0].items[tensor]->dl.dtype)->compute;
}

bool ocl_chain_alike(const graft_device *device, const ocl_lists *a, const ocl_lists *b) {
  if (a->list[0].count != b->list[0].count) return false;
  for (uint32_t t = 0; t < a->list[0].count; t++) {
    if (ocl_elements(a->list[0].items[t]) != ocl_elements(b->list[0].items[t])) return false;
    if (strcmp(compute_of(device, a, t), compute_of(device, b, t)) != 0) return false;
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

/* Whether both name the same elements, side by side in the same order: calls of single tensors may see other dims. */
static bool is_same_item(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  return a == b ||
         (a->storage_id == b->storage_id && a->dl.byte_offset == b->dl.byte_offset && a->dl.dtype == b->dl.dtype &&
          ocl_elements(a) == ocl_elements(b) && ocl_is_dense(&a->dl) && ocl_is_dense(&b->dl));
}

static bool is_same(const operand *a, const operand *b) {
  if (a->single || b->single) return a->single == b->single;
  bool same = a->list.count == b->list.count;
  for (uint64_t i = 0; i < a->list.count && same; i++) same = is_same_item(a->list.items[i], b->list.items[i]);
  return same;
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

static int numbers_of(const ocl_lists *call, const ocl_list_number **numbers) {
  *numbers = call->column ? call->column->number : call->own;
  return call->column ? call->column->numbers : call->own[0].items != NULL;
}

int ocl_chain_numbers(const ocl_lists *const *calls, int count) {
  const ocl_list_number *numbers;
  int total = 0;
  for (int c = 0; c < count; c++) total += numbers_of(calls[c], &numbers);
  return total;
}

/* ---- a chain ---- */

/* One op of it. Values are numbered: those that are read from memory, and what ops give. */
typedef struct chained {
  const char *expression;
  int in[OCL_INPUTS_MAX], inputs, out;
  int number; /* of its own, the first of a column's; -1: it needs none */
  graft_tensor_list dtypes;
  const ocl_column *column; /* in place of an expression */
  int function;             /* of a column: which of the chain's; -1: it moves a value */
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
  ocl_columns columns;
  ocl_fused_op *functions; /* of columns */
  int nfunctions;
  ocl_lists call;
  ocl_lists_plan plan;
};

/* One that is compiled: the value that each list has by now. */
typedef struct linking {
  const graft_graph_group *group;
  ocl_chain *chain;
  operand known[VALUES_MAX];
  int values[VALUES_MAX], nknown;
  ocl_lists calls[OCL_CHAIN_CALLS + 1]; /* the last: one too many */
} linking;

/* Where each of the tensors is in the list, `missing` of them nowhere. */
static uint32_t locate(const operand *o, uint32_t count, const graft_tensor_desc *const *descs, uint32_t ndescs,
                       uint32_t *at) {
  uint32_t missing = 0;
  for (uint32_t t = 0, next = 0; t < count; t++) {
    uint32_t tried = 0; /* they mostly follow each other */
    for (; tried < ndescs && !is_same_item(descs[next], tensor_of(o, t)); tried++)
      next = next + 1 < ndescs ? next + 1 : 0;
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
  *next = (chained){
      .expression = call->expression, .number = -1, .dtypes = call->list[0], .column = call->column, .function = -1};
  graft_status status = GRAFT_OK;
  for (int k = 1; k < call->operands && status == GRAFT_OK; k++) {
    const operand o = operand_of(call, k);
    status = read_value(l, &o, &next->in[next->inputs++]);
  }
  if (status != GRAFT_OK) return status;
  const ocl_list_number *numbers;
  const int nnumbers = numbers_of(call, &numbers);
  if (chain->call.owns + nnumbers > OCL_LIST_NUMBERS) return GRAFT_UNIMPLEMENTED;
  if (nnumbers > 0) next->number = chain->call.owns;
  for (int k = 0; k < nnumbers; k++) chain->call.own[chain->call.owns++] = numbers[k];
  if (call->column && ocl_fused_computes(&call->column->op)) {
    next->function = chain->nfunctions;
    chain->functions[chain->nfunctions++] = call->column->op;
  }
  const operand out = operand_of(call, 0);
  next->out = chain->nvalues++;
  set_value(l, &out, next->out);
  return GRAFT_OK;
}

/* The lists that the calls leave in memory; each as the last one of them leaves it. */
static graft_status add_outputs(linking *l) {
  ocl_chain *chain = l->chain;
  graft_status status = GRAFT_OK;
  for (int i = 0; i < chain->nops && status == GRAFT_OK; i++) {
    const operand o = {.list = chain->ops[i].dtypes};
    place *written = NULL;
    for (int p = 0; p < chain->nplaces; p++) {
      if (is_same(&chain->places[p].operand, &o)) written = &chain->places[p];
    }
    if (!written) status = add_place(l, &o, true, &written);
    if (written) written->written = l->values[find(l->known, l->nknown, &o)];
  }
  return status;
}

/* The call that begins with node n, and how many nodes it is. */
static bool read_call(const linking *l, const graft_exec *exec, uint32_t n, ocl_lists *call, uint32_t *nodes) {
  *nodes = 1;
  if (ocl_chain_read(exec, l->group->nodes[n], call)) return true;
  const ocl_columns *columns = &l->chain->columns;
  for (uint32_t i = 0; i < columns->count; i++) {
    if (columns->items[i]->first != n) continue;
    *call = columns->items[i]->call;
    *nodes = columns->items[i]->count;
    return true;
  }
  return false;
}

/* Whether the last call fits to those before it. Of the calls of a group alone may come other columns than of those of
 * the graph, which it was made of. */
static bool fits(const linking *l, const graft_device *device, int last) {
  const ocl_lists *call = &l->calls[last];
  bool fits = ocl_chain_alike(device, &l->calls[0], call) && !ocl_chain_clashes(call, call);
  for (int c = 0; c < last && fits; c++)
    fits = !ocl_chain_clashes(&l->calls[c], call) && !ocl_chain_clashes(call, &l->calls[c]);
  return fits;
}

/* Of a column all nodes but the first are no calls of their own. */
static graft_status read_calls(linking *l, const graft_exec *exec) {
  ocl_chain *chain = l->chain;
  graft_status status = ocl_columns_find(exec, l->group->nodes, l->group->node_count, true, &chain->columns);
  uint32_t read = 0, nodes;
  chain->functions = calloc(chain->columns.count + 1u, sizeof *chain->functions);
  if (!chain->functions) return GRAFT_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < l->group->node_count && status == GRAFT_OK; n++) {
    ocl_lists *call = &l->calls[chain->nops];
    if (!read_call(l, exec, n, call, &nodes)) continue;
    if (chain->nops == OCL_CHAIN_CALLS) return GRAFT_UNIMPLEMENTED;
    read += nodes;
    chain->count = (uint32_t)l->calls[0].list[0].count;
    status = fits(l, exec->device, chain->nops) ? add_op(l, call) : GRAFT_UNIMPLEMENTED;
  }
  return status == GRAFT_OK && read != l->group->node_count ? GRAFT_UNIMPLEMENTED : status;
}

/* A mask says nothing of what is computed in. */
static bool is_mask(const operand *o) {
  return tensor_of(o, 0)->dl.dtype == GRAFT_BOOL;
}

/* As the kernels of lists take it: operand 0 says in what is computed. What is written has no tensors yet. */
static graft_status make_call(ocl_chain *chain, const graft_device *device) {
  ocl_lists *call = &chain->call;
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].written < 0 || is_mask(&chain->places[p].operand)) continue;
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
  const bool writes = chain->nplaces > 0 && chain->places[0].written >= 0 && !is_mask(&chain->places[0].operand);
  return writes ? ocl_lists_plan_fill(&chain->plan, device, call) : GRAFT_UNIMPLEMENTED;
}

static void destroy(void *made) {
  ocl_chain *chain = made;
  if (!chain) return;
  for (int p = 0; p < chain->nplaces; p++) free(chain->places[p].at);
  ocl_columns_free(&chain->columns);
  free(chain->functions);
  ocl_lists_plan_release(&chain->plan);
  free(chain);
}

static graft_status compile(const graft_exec *exec, const graft_graph_group *group, void **compiled) {
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
    destroy(chain);
  return status;
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

/* Each dtype that is rounded to once. */
static void write_rounds_of(ocl_text *head, const ocl_dtype *dtype, uint64_t *written) {
  if (!rounds(dtype) || dtype->class == OCL_CLASS_BOOL || *written >> dtype->number & 1) return;
  *written |= UINT64_C(1) << dtype->number;
  ocl_text_add(head, " DEFINE_ROUND(%s)", dtype->name);
}

static void write_rounds(ocl_text *head, const ocl_chain *chain, const graft_device *device, uint32_t tensor) {
  uint64_t written = 0;
  ocl_text_add(head, "#define ROUNDS");
  for (int i = 0; i < chain->nops; i++) {
    const ocl_column *column = chain->ops[i].column;
    write_rounds_of(head, dtype_of(&chain->ops[i], device, tensor), &written);
    for (int k = 1; column && k < column->call.operands; k++)
      write_rounds_of(head, ocl_dtype_of(device, column->call.list[k].items[tensor]->dl.dtype), &written);
  }
}

static void write_numbers(ocl_text *head, const ocl_chain *chain) {
  ocl_text_add(head, "\n#define NUMBERS_OF_CHAIN(record)");
  for (int k = 0; k < chain->call.owns; k++) {
    ocl_text_add(head, " const CT scalar_%d = OWN_NUMBER(record, %d); const VT number_%d = (VT)scalar_%d;", k, k, k, k);
  }
}

static void write_expression(ocl_text *head, const chained *op, const ocl_dtype *dtype) {
  for (int k = 0; k < op->inputs; k++) ocl_text_add(head, " const VT %c = v%d;", 'a' + k, op->in[k]);
  if (op->number >= 0) ocl_text_add(head, " const VT x = number_%d;", op->number);
  ocl_text_add(head, " v%d = ", op->out);
  if (rounds(dtype)) ocl_text_add(head, "round_%s", dtype->name);
  ocl_text_add(head, "(%s);", op->expression);
}

/* A function takes and gives elements as they would lie in memory. */
static void write_function(ocl_text *head, const chained *op, const graft_device *device, const ocl_dtype *dtype) {
  const ocl_operands *o = &op->column->op.operands;
  int value = 0, number = op->number;
  ocl_text arguments = {0};
  for (int k = 0; k < o->inputs; k++) {
    if (ocl_is_value(o->input[k])) {
      ocl_text_add(&arguments, ", scalar_%d", number++);
      continue;
    }
    const char *name = ocl_dtype_of(device, o->input[k]->dl.dtype)->name;
    ocl_text_add(head, " const VEC_OF(RAW(%s)) in_%d = raw_%s(v%d);", name, k, name, op->in[value++]);
    ocl_text_add(&arguments, ", &in_%d", k);
  }
  for (int k = 0; k < OCL_SCALARS_MAX; k++) {
    if (ocl_fused_asks(&op->column->op, k))
      ocl_text_add(&arguments, ", scalar_%d", number++);
    else
      ocl_text_add(&arguments, ", (CT)0");
  }
  ocl_text_add(head, " VEC_OF(RAW(%s)) made; op_%d(&made%s); v%d = of_%s(made);", dtype->name, op->function,
               arguments.failed ? "" : arguments.items, op->out, dtype->name);
  head->failed = head->failed || arguments.failed;
  ocl_text_free(&arguments);
}

static void write_op(ocl_text *head, const chained *op, const graft_device *device, uint32_t tensor) {
  const ocl_dtype *dtype = dtype_of(op, device, tensor);
  ocl_text_add(head, " VT v%d; {", op->out);
  if (!op->column)
    write_expression(head, op, dtype);
  else if (op->function >= 0)
    write_function(head, op, device, dtype);
  else
    ocl_text_add(head, " v%d = v%d;", op->out, op->in[0]);
  ocl_text_add(head, " }");
}

bool ocl_chain_has_functions(const ocl_chain *chain) {
  return chain->nfunctions > 0;
}

void ocl_chain_write_functions(ocl_text *head, const ocl_chain *chain, const graft_device *device, size_t local) {
  ocl_fused_write_functions(head, device, local, chain->functions, chain->nfunctions);
}

void ocl_chain_write(ocl_text *head, const ocl_chain *chain, const graft_device *device, uint32_t tensor) {
  write_rounds(head, chain, device, tensor);
  write_numbers(head, chain);
  ocl_text_add(head, "\n#define CHAIN(i, n) {");
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].read >= 0) ocl_text_add(head, " VT v%d = get_%d(p%d, i, n);", chain->places[p].read, p, p);
  }
  for (int i = 0; i < chain->nops; i++) write_op(head, &chain->ops[i], device, tensor);
  for (int p = 0; p < chain->nplaces; p++) {
    if (chain->places[p].written >= 0) ocl_text_add(head, " put_%d(p%d, i, n, v%d);", p, p, chain->places[p].written);
  }
  ocl_text_add(head, " }\n");
}

/* ---- a run ---- */

static graft_status run(const graft_exec *exec, void *made, const graft_graph_run_args *args) {
  const ocl_chain *chain = made;
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

const ocl_group_kind ocl_chain_kind = {.compile = compile, .run = run, .destroy = destroy};
