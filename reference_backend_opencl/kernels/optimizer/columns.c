/* Which calls of single tensors are columns. Memory that a call on lists reads or writes as item i is of lane i of a
 * family, which has a lane for each item; a call of single tensors is of the lane of what it reads and writes, and so
 * is what else it writes. The calls of a lane, in their order, are held against those of the other lanes: as long as
 * the n-th of each are the same, they are a column. See columns.h. */
#include "kernels/optimizer/columns.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/optimizer/chain.h"

#define NONE UINT32_MAX

/* What is known of a piece of memory. */
typedef struct mark {
  uint64_t storage;
  uint32_t family, lane;   /* NONE: of none yet */
  bool used, made, shared; /* made: by a call of single tensors; shared: of several lanes */
} mark;

typedef enum node_kind { OTHER, OF_LISTS, OF_TENSORS } node_kind;

typedef struct finder {
  const graft_exec *exec;
  const graft_graph_node *const *nodes;
  uint32_t count;
  node_kind *kinds;
  uint32_t *family, *lane;               /* of nodes */
  uint32_t *parents, *lengths, families; /* families that share memory are one */
  mark *marks;
  size_t nmarks; /* a power of 2 */
  ocl_columns *found;
} finder;

/* ---- memory ---- */

static mark *mark_of(const finder *f, uint64_t storage) {
  size_t at = (size_t)(storage * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (f->nmarks - 1);
  while (f->marks[at].used && f->marks[at].storage != storage) at = (at + 1) & (f->nmarks - 1);
  mark *found = &f->marks[at];
  if (!found->used) *found = (mark){.storage = storage, .family = NONE, .lane = NONE, .used = true};
  return found;
}

static uint32_t root_of(const finder *f, uint32_t family) {
  while (f->parents[family] != family) family = f->parents[family];
  return family;
}

/* False: they are families of lists of different lengths. */
static bool unite(const finder *f, uint32_t a, uint32_t b) {
  a = root_of(f, a);
  b = root_of(f, b);
  if (f->lengths[a] != f->lengths[b]) return false;
  f->parents[a < b ? b : a] = a < b ? a : b;
  return true;
}

/* Whether anything is new. */
static bool note(const finder *f, const graft_tensor_desc *desc, uint32_t family, uint32_t lane) {
  mark *m = mark_of(f, desc->storage_id);
  if (m->shared) return false;
  if (m->family == NONE) {
    m->family = family;
    m->lane = lane;
    return true;
  }
  m->shared = m->lane != lane || !unite(f, m->family, family);
  return m->shared;
}

static bool is_number(const graft_tensor_desc *desc) {
  return desc->flags & GRAFT_TENSOR_HOST_VALUE;
}

/* ---- lanes ---- */

static void note_lists(finder *f, const ocl_lists *call) {
  const uint32_t family = f->families++;
  f->parents[family] = family;
  f->lengths[family] = (uint32_t)call->list[0].count;
  for (int k = 0; k < call->operands; k++) {
    for (uint32_t i = 0; !call->single[k] && i < call->list[k].count; i++) note(f, call->list[k].items[i], family, i);
  }
}

/* The lane of what the node reads or writes; false: of several. */
static bool find_lane(const finder *f, const graft_tensor_desc *const *descs, uint32_t count, uint32_t *family,
                      uint32_t *lane) {
  for (uint32_t i = 0; i < count; i++) {
    if (is_number(descs[i])) continue;
    const mark *m = mark_of(f, descs[i]->storage_id);
    if (m->shared || m->family == NONE) continue;
    if (*family == NONE) {
      *family = m->family;
      *lane = m->lane;
    } else if (m->lane != *lane || !unite(f, m->family, *family)) {
      return false;
    }
  }
  return true;
}

/* What the node writes is of its lane, and so is what others made for it. */
static void spread_lane(const finder *f, uint32_t n) {
  const graft_graph_node *node = f->nodes[n];
  for (uint32_t i = 0; i < node->write_count; i++) note(f, node->writes[i], f->family[n], f->lane[n]);
  for (uint32_t i = 0; i < node->read_count; i++) {
    if (!is_number(node->reads[i]) && mark_of(f, node->reads[i]->storage_id)->made)
      note(f, node->reads[i], f->family[n], f->lane[n]);
  }
}

static bool find_lane_of(finder *f, uint32_t n) {
  const graft_graph_node *node = f->nodes[n];
  uint32_t family = NONE, lane = NONE;
  if (f->kinds[n] != OF_TENSORS || f->family[n] != NONE) return false;
  if (!find_lane(f, node->reads, node->read_count, &family, &lane) ||
      !find_lane(f, node->writes, node->write_count, &family, &lane)) {
    f->kinds[n] = OTHER;
    return false;
  }
  if (family == NONE) return false;
  f->family[n] = family;
  f->lane[n] = lane;
  spread_lane(f, n);
  return true;
}

static void find_lanes(finder *f) {
  for (bool any = true; any;) {
    any = false;
    for (uint32_t n = 0; n < f->count; n++) any |= find_lane_of(f, n);
    for (uint32_t n = f->count; n-- > 0;) any |= find_lane_of(f, n);
  }
}

/* ---- a column ---- */

/* Whether a chain could compute it: in floating point, of tensors that lie side by side, or of one element. */
static bool is_plain(const ocl_fused_op *op) {
  if (!op->recipe || op->draws || op->normalizes || op->reduces || op->multiplies || op->operands.second) return false;
  return op->compute->class == OCL_CLASS_FLOAT && op->operands.inputs <= OCL_INPUTS_MAX;
}

static bool has_kind(const finder *f, const graft_tensor_desc *desc, const ocl_dtype *compute) {
  const ocl_dtype *dtype = ocl_dtype_of(f->exec->device, desc->dl.dtype);
  return dtype && (dtype->class == OCL_CLASS_BOOL ||
                   (dtype->class == OCL_CLASS_FLOAT && !strcmp(dtype->compute, compute->compute)));
}

static bool is_spread(const graft_tensor_desc *desc) {
  bool spread = true;
  for (int32_t d = 0; d < desc->dl.ndim && spread; d++) spread = desc->dl.shape[d] == 1 || desc->dl.strides[d] == 0;
  return spread;
}

/* Calls that differ in nothing but their tensors and numbers. */
static bool are_same(const ocl_fused_op *a, const ocl_fused_op *b) {
  const ocl_operands *x = &a->operands, *y = &b->operands;
  bool same = a->recipe == b->recipe && a->compute == b->compute && x->mode == y->mode && x->inputs == y->inputs &&
              x->scalars == y->scalars && x->out->dl.dtype == y->out->dl.dtype;
  for (int k = 0; same && k < x->inputs; k++) {
    same = ocl_is_value(x->input[k]) == ocl_is_value(y->input[k]) && !x->input[k] == !y->input[k] &&
           (ocl_is_value(x->input[k]) || x->input[k]->dl.dtype == y->input[k]->dl.dtype);
  }
  for (int k = 0; same && k < x->scalars; k++) same = !x->scalar[k] == !y->scalar[k];
  return same;
}

static bool takes_operands(const finder *f, const ocl_fused_op *op) {
  const ocl_operands *o = &op->operands;
  bool takes = has_kind(f, o->out, op->compute) && ocl_is_dense(&o->out->dl);
  for (int k = 0; takes && k < o->inputs; k++) {
    if (ocl_is_value(o->input[k]))
      takes = !o->input[k] || o->input[k]->dl.data; /* not a number of each run */
    else
      takes = has_kind(f, o->input[k], op->compute) && (ocl_is_dense(&o->input[k]->dl) || is_spread(o->input[k]));
  }
  return takes;
}

static graft_scalar scalar_of(const ocl_given_number *given) {
  ocl_number number = {.re = given->absent};
  if (given->scalar) return *given->scalar;
  if (given->desc) ocl_number_of_tensor(given->desc, &number);
  graft_scalar scalar = {.dtype = number.is_int ? GRAFT_I64 : GRAFT_F64};
  if (number.is_int)
    scalar.value.i = number.i;
  else
    scalar.value.f = number.re;
  return scalar;
}

/* Item i of its lists and numbers. */
static void put_item(ocl_column *c, const ocl_fused_op *op, uint32_t i) {
  const ocl_operands *o = &op->operands;
  int operand = 0, number = 0;
  c->items[i] = o->out;
  for (int k = 0; k < o->inputs; k++) {
    const ocl_given_number given = {.op_id = o->op_id, .desc = o->input[k], .absent = 1};
    if (ocl_is_value(o->input[k]))
      c->scalars[(uint32_t)number++ * c->count + i] = scalar_of(&given);
    else
      c->items[(uint32_t)++operand * c->count + i] = o->input[k];
  }
  for (int k = 0; k < OCL_SCALARS_MAX; k++) {
    const ocl_given_number given = ocl_pointwise_scalar(o, op->recipe, k);
    if (ocl_fused_asks(op, k)) c->scalars[(uint32_t)number++ * c->count + i] = scalar_of(&given);
  }
  c->numbers = number;
  c->call.operands = operand + 1;
}

static void free_column(ocl_column *c) {
  if (!c) return;
  free(c->nodes);
  free(c->items);
  free(c->scalars);
  free(c);
}

static graft_status new_column(uint32_t count, ocl_column **made) {
  ocl_column *c = *made = calloc(1, sizeof *c);
  if (!c) return GRAFT_OUT_OF_MEMORY;
  c->count = count;
  c->nodes = calloc(count, sizeof *c->nodes);
  c->items = calloc((size_t)count * (OCL_INPUTS_MAX + 1), sizeof *c->items);
  c->scalars = calloc((size_t)count * OCL_COLUMN_NUMBERS, sizeof *c->scalars);
  return c->nodes && c->items && c->scalars ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
}

static void lay_lists(ocl_column *c) {
  for (int k = 0; k < c->call.operands; k++)
    c->call.list[k] = (graft_tensor_list){c->items + (size_t)k * c->count, c->count};
  for (int k = 0; k < c->numbers; k++)
    c->number[k] = (ocl_list_number){c->scalars + (size_t)k * c->count, .each = true};
  c->call.column = c;
}

/* Whether an operand has all elements of the results, or one, in all items. */
static bool has_lists(const ocl_column *c) {
  bool has = true;
  for (int k = 1; has && k < c->call.operands; k++) {
    const bool single = ocl_lists_are_single(&c->call, k);
    for (uint32_t i = 0; has && i < c->count; i++) {
      const graft_tensor_desc *desc = c->call.list[k].items[i];
      has = ocl_elements(desc) == ocl_elements(c->call.list[0].items[i]) &&
            (single ? is_spread(desc) : ocl_is_dense(&desc->dl));
    }
  }
  return has;
}

static graft_status keep(ocl_columns *found, ocl_column *c) {
  ocl_column **items = realloc(found->items, (found->count + 1) * sizeof *items);
  if (!items) return GRAFT_OUT_OF_MEMORY;
  found->items = items;
  items[found->count++] = c;
  return GRAFT_OK;
}

/* Of calls of all lanes, in their order; *same: they are the same calls, whether or not a chain takes them. */
static graft_status add_column(finder *f, const uint32_t *nodes, uint32_t stride, uint32_t count, bool *same) {
  ocl_column *c;
  graft_status status = new_column(count, &c);
  bool takes = true;
  *same = true;
  for (uint32_t i = 0; status == GRAFT_OK && *same && i < count; i++) {
    ocl_fused_op op;
    c->nodes[i] = nodes[i * stride];
    *same = ocl_fused_read(f->exec, f->nodes[c->nodes[i]], &op) && is_plain(&op);
    if (*same && i == 0) ocl_fused_read(f->exec, f->nodes[c->nodes[i]], &c->op); /* not copied: it points into itself */
    *same = *same && are_same(&c->op, &op);
    takes = takes && *same && takes_operands(f, &op);
    if (i == 0 || c->nodes[i] < c->first) c->first = c->nodes[i];
    if (takes) put_item(c, &op, i);
  }
  if (status == GRAFT_OK && takes) {
    lay_lists(c);
    if (has_lists(c) && (status = keep(f->found, c)) == GRAFT_OK) return GRAFT_OK;
  }
  free_column(c);
  return status;
}

/* ---- all columns ---- */

/* How many calls the shortest lane of a family has. */
static uint32_t count_calls(const finder *f, uint32_t family, uint32_t *counts) {
  uint32_t least = NONE;
  memset(counts, 0, f->lengths[family] * sizeof *counts);
  for (uint32_t n = 0; n < f->count; n++) {
    if (f->family[n] == family) counts[f->lane[n]]++;
  }
  for (uint32_t i = 0; i < f->lengths[family]; i++) least = counts[i] < least ? counts[i] : least;
  return least;
}

static graft_status add_columns_of(finder *f, uint32_t family) {
  const uint32_t lanes = f->lengths[family];
  uint32_t *counts = calloc(lanes + 1, sizeof *counts);
  if (!counts) return GRAFT_OUT_OF_MEMORY;
  const uint32_t calls = count_calls(f, family, counts);
  uint32_t *nodes = calloc((size_t)lanes * calls + 1, sizeof *nodes);
  graft_status status = nodes ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  memset(counts, 0, lanes * sizeof *counts);
  for (uint32_t n = 0; status == GRAFT_OK && n < f->count; n++) {
    const uint32_t lane = f->lane[n];
    if (f->family[n] != family || counts[lane] == calls) continue;
    nodes[(size_t)lane * calls + counts[lane]++] = n;
  }
  bool same = true;
  for (uint32_t i = 0; status == GRAFT_OK && same && i < calls; i++)
    status = add_column(f, nodes + i, calls, lanes, &same);
  free(nodes);
  free(counts);
  return status;
}

static graft_status add_columns(finder *f) {
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < f->count; n++) {
    if (f->family[n] != NONE) f->family[n] = root_of(f, f->family[n]);
  }
  for (uint32_t i = 0; i < f->families && status == GRAFT_OK; i++) {
    if (root_of(f, i) == i && f->lengths[i] > 1) status = add_columns_of(f, i);
  }
  return status;
}

/* Without calls on lists: what is connected is a lane, and all are one family. */
static void take_components(finder *f) {
  uint32_t lanes = 0;
  f->parents[0] = 0;
  f->lengths[0] = f->count;
  f->families = 1;
  for (uint32_t n = 0; n < f->count; n++) {
    find_lane_of(f, n);
    if (f->kinds[n] != OF_TENSORS || f->family[n] != NONE) continue;
    f->family[n] = 0;
    f->lane[n] = lanes++;
    spread_lane(f, n);
  }
  f->lengths[0] = lanes;
}

/* Calls of single tensors are looked at only where some may be columns. */
static void read_nodes(finder *f, bool components) {
  for (uint32_t n = 0; n < f->count; n++) {
    ocl_lists lists;
    f->family[n] = f->lane[n] = NONE;
    if (!ocl_chain_read(f->exec, f->nodes[n], &lists)) continue;
    f->kinds[n] = OF_LISTS;
    note_lists(f, &lists);
  }
  for (uint32_t n = 0; (components || f->families > 0) && n < f->count; n++) {
    ocl_fused_op op;
    if (f->kinds[n] == OF_LISTS || !ocl_fused_read(f->exec, f->nodes[n], &op) || !is_plain(&op)) continue;
    f->kinds[n] = OF_TENSORS;
    for (uint32_t i = 0; i < f->nodes[n]->write_count; i++) mark_of(f, f->nodes[n]->writes[i]->storage_id)->made = true;
  }
}

static size_t marks_for(const finder *f) {
  size_t operands = 1, marks = 64;
  for (uint32_t n = 0; n < f->count; n++) operands += f->nodes[n]->read_count + f->nodes[n]->write_count;
  while (marks < 2 * operands) marks *= 2;
  return marks;
}

graft_status ocl_columns_find(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count,
                              bool components, ocl_columns *columns) {
  *columns = (ocl_columns){0};
  finder f = {.exec = exec, .nodes = nodes, .count = count, .found = columns};
  f.nmarks = marks_for(&f);
  f.kinds = calloc(count + 1u, sizeof *f.kinds);
  f.marks = calloc(f.nmarks, sizeof *f.marks);
  uint32_t *numbers = calloc(4 * ((size_t)count + 1), sizeof *numbers);
  graft_status status = f.kinds && f.marks && numbers ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK) {
    f.family = numbers;
    f.lane = numbers + count + 1;
    f.parents = numbers + 2 * ((size_t)count + 1);
    f.lengths = numbers + 3 * ((size_t)count + 1);
    read_nodes(&f, components);
    if (f.families > 0)
      find_lanes(&f);
    else if (components)
      take_components(&f);
    status = add_columns(&f);
  }
  free(f.kinds);
  free(f.marks);
  free(numbers);
  if (status != GRAFT_OK) ocl_columns_free(columns);
  return status;
}

void ocl_columns_free(ocl_columns *columns) {
  for (uint32_t i = 0; i < columns->count; i++) free_column(columns->items[i]);
  free(columns->items);
  *columns = (ocl_columns){0};
}
