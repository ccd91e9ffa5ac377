/* What the elements of an index argument may be, from the op's description. */
#include "ops/core/op.h"

static bool is_mask(const graft_tensor *t) {
  return t->dtype == GRAFT_BOOL || t->dtype == GRAFT_U8;
}

/* Which dim of what is indexed an item of a list stands for; a mask stands for as many as it has. */
static int64_t own_dim(const graft_value *list, uint32_t item) {
  int64_t dim = 0;
  for (uint32_t i = 0; i < item; i++) {
    const graft_tensor *t = list->as.tensors[i];
    dim += t && is_mask(t) ? t->ndim : 1;
  }
  return dim;
}

static int64_t size_of_dim(const graft_tensor *t, int64_t dim) {
  if (!t->ndim) return 1;
  if (dim < 0) dim += t->ndim;
  return dim >= 0 && dim < t->ndim ? t->sizes[dim] : 0;
}

static int64_t size_indexed(const op_index *index, const graft_value *args, uint32_t arg, uint32_t item) {
  const graft_value *of = &args[index->of];
  int64_t area = 1;
  if (index->size == OPI_NUMBER) {
    if (of->kind != GRAFT_VALUE_INTS) return of->as.i;
    for (uint32_t d = 0; d < of->count; d++) area *= of->as.ints[d];
    return area;
  }
  const graft_tensor *t = of->as.tensor;
  switch (index->size) {
    case OPI_DIM: return size_of_dim(t, index->dim);
    case OPI_DIM_GIVEN: return size_of_dim(t, args[index->dim].as.i);
    case OPI_OWN_DIM: return size_of_dim(t, own_dim(&args[arg], item));
    case OPI_LAST_DIMS:
      for (int32_t d = t->ndim - index->dim; d < t->ndim; d++) area *= size_of_dim(t, d);
      return area;
    default: return t->numel;
  }
}

bool op_reads_indices(const op_schema *schema, const graft_value *args, uint32_t arg) {
  const op_index *index = schema->args[arg].index;
  if (!index || !index->is_asked) return index != NULL;
  const graft_value *given = &args[index->asked], *usual = schema->args[index->asked].fallback;
  return given->kind == GRAFT_VALUE_NONE && usual ? usual->as.i : given->as.i;
}

bool op_index_range(const op_schema *schema, const graft_value *args, uint32_t arg, uint32_t item, op_range *range) {
  const op_index *index = schema->args[arg].index;
  if (!op_reads_indices(schema, args, arg)) return false;
  const graft_value *v = &args[arg];
  const graft_tensor *t = v->kind == GRAFT_VALUE_TENSORS ? v->as.tensors[item] : v->as.tensor;
  if (v->kind == GRAFT_VALUE_NONE || !t || (v->kind == GRAFT_VALUE_TENSORS && is_mask(t))) return false;
  range->size = size_indexed(index, args, arg, item);
  range->low = index->wraps ? -range->size : index->from_one;
  range->high = range->size + index->ends;
  range->from_one = index->from_one;
  range->passes = index->passes != OPI_NOTHING;
  range->passed = index->passes == OPI_ARGUMENT ? args[index->passed].as.i : index->passed;
  return true;
}
