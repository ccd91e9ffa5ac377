/* What a reduction comes to: which dimensions go, in which order, by which formula and in which accumulator. */
#include "kernels/reduction/reduction.h"

#include <math.h>
#include <string.h>

typedef ocl_reduction_call operands;
typedef ocl_reduction_pass pass;

/* ---- A call ---- */

enum { SELF, DIM, KEEPDIM, CORRECTION, ORD, P, INP, DIMS, READS }; /* inp and dims: what prims call self and dim */
const char *const ocl_reduction_reads[] = {
    [SELF] = "self", [DIM] = "dim",   [KEEPDIM] = "keepdim", [CORRECTION] = "correction", [ORD] = "ord", [P] = "p",
    [INP] = "inp",   [DIMS] = "dims", [READS] = NULL};

static uint32_t all_dims(const graft_tensor_desc *in) {
  return (UINT32_C(1) << in->dl.ndim) - 1;
}

static uint32_t dims_to_bits(graft_int_list dims, const graft_tensor_desc *in, bool empty_is_none) {
  if (!dims.items || (dims.count == 0 && !empty_is_none)) return all_dims(in);
  uint32_t bits = 0;
  for (uint64_t i = 0; in->dl.ndim && i < dims.count; i++) bits |= UINT32_C(1) << dims.items[i];
  return bits;
}

bool ocl_reduction_read(const ocl_call *call, operands *out) {
  const ocl_reduction_recipe *recipe = call->op->recipe;
  const graft_scalar *ord = ocl_read_scalar(call, ORD);
  const double order = ocl_real_of_scalar(ord ? ord : ocl_read_scalar(call, P), 2);
  const graft_tensor_desc *in = ocl_read_tensor(call, SELF);
  bool is_prim = in == NULL;
  *out = (operands){.in = is_prim ? ocl_read_tensor(call, INP) : in,
                    .out = ocl_result(call, 0),
                    .keepdim = ocl_read_bool(call, KEEPDIM),
                    .formula = recipe->norm ? ocl_reduction_of_norm(order) : recipe->out,
                    .other = recipe->second ? ocl_result(call, 1) : NULL,
                    .second = recipe->second,
                    .inputs = call->op->inputs,
                    .outputs = call->op->outputs};
  const bool of_truths = out->out && out->out->dl.dtype == GRAFT_BOOL && out->formula;
  if (of_truths && out->formula->of_truths) out->formula = out->formula->of_truths;
  out->correction = ocl_real_of_scalar(ocl_read_scalar(call, CORRECTION), 1);
  out->y = out->formula && out->formula->takes_y ? order : 0;
  out->reduced = dims_to_bits(ocl_read_ints(call, is_prim ? DIMS : DIM), out->in, recipe->empty_is_none);
  return out->out && out->formula;
}

/* ---- Passes ---- */

static void split_geometry(const operands *call, const graft_tensor_desc *to, pass *pass) {
  const graft_dl_tensor *in = &call->in->dl, *out = &to->dl;
  pass->kept.operands = 2;
  pass->reduced.operands = 1;
  int o = out->ndim - 1;
  for (int d = in->ndim - 1; d >= 0; d--) {
    bool is_reduced = call->reduced >> d & 1;
    int64_t strides[OCL_OPERANDS_MAX] = {in->strides[d]};
    if (is_reduced) {
      ocl_geometry_push_outer(&pass->reduced, in->shape[d], strides);
    } else {
      strides[0] = out->strides[o];
      strides[1] = in->strides[d];
      ocl_geometry_push_outer(&pass->kept, in->shape[d], strides);
    }
    if (!is_reduced || call->keepdim) o--;
  }
}

/* The innermost kept dimension should be the input's: the output is the smaller of the two. */
static void order(pass *pass, bool empty) {
  int64_t out[OCL_DIMS_MAX];
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_sort(&pass->kept);
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_collapse(&pass->kept);
  ocl_geometry_sort(&pass->reduced);
  ocl_geometry_collapse(&pass->reduced);
  if (empty) pass->reduced = (ocl_geometry){.rank = 1, .operands = 1, .stride = {{1}}};
  bool wide_columns = pass->kept.stride[1][0] == 1 && pass->kept.size[0] >= COLUMNS_LEAST;
  pass->rows = pass->reduced.stride[0][0] == 1 || !wide_columns;
}

static const ocl_dtype *accumulator(const graft_device *device, const pass *pass) {
  bool counts = pass->formula.in == OCL_COUNTS, of_input = pass->formula.in == OCL_AS_INPUT || counts;
  bool of_complex = pass->in->class == OCL_CLASS_COMPLEX && !pass->formula.asks,
       wide = counts || pass->formula.in == OCL_WIDEST;
  const ocl_dtype *dtype = of_input || of_complex ? pass->in : pass->out;
  if (dtype->class == OCL_CLASS_FLOAT) {
    return ocl_dtype_of(device, dtype->code == GRAFT_F64 || (wide && device->has_f64) ? GRAFT_F64 : GRAFT_F32);
  }
  if (dtype->class == OCL_CLASS_COMPLEX && wide && device->has_f64) return ocl_dtype_of(device, GRAFT_C128);
  return dtype->class == OCL_CLASS_COMPLEX || pass->formula.in == OCL_AS_INPUT ? dtype
                                                                               : ocl_dtype_of(device, GRAFT_I64);
}

/* An explicit dtype converts before it reduces; of complex numbers there are real results, too. Loads convert to the
 * accumulator; where the dtype itself is narrower, *map becomes what rounds to it. False: not served. */
static bool converts(const ocl_dtype *from, const ocl_dtype *to, const char **map) {
  bool half = to->class == OCL_CLASS_FLOAT && to->bytes == 2;
  if (from == to || to->class == OCL_CLASS_COMPLEX) return true;
  if (from->class == OCL_CLASS_COMPLEX) return to->class == OCL_CLASS_FLOAT && 2 * to->bytes == from->bytes;
  if (to->class == OCL_CLASS_BOOL) return false;
  if (to->class == OCL_CLASS_INT) return from->class != OCL_CLASS_FLOAT || to->code == GRAFT_I64;
  if (!half) return true;
  if (from->code == GRAFT_F64 || from->bytes == 8 || *map[0] != 'v' || (*map)[1]) return false; /* two roundings */
  *map = to->code == GRAFT_F16 ? "from_f16(to_f16(v))" : "AS(float, CONVERT(uint, to_bf16(v)) << 16)";
  return true;
}

/* f64 holds sums of 2^29 equal numbers of any narrower dtype exactly: these need no leader. */
static bool is_shifted(const graft_device *device, const pass *pass) {
  bool exact = device->has_f64 && pass->in->code != GRAFT_F64 && pass->in->code != GRAFT_C128;
  return pass->formula.first && !(pass->formula.first->of_one && exact);
}

graft_status ocl_reduction_plan(const graft_device *device, const operands *call, const graft_tensor_desc *to,
                                const ocl_reduction *formula, pass *out) {
  pass only = {.in = ocl_dtype_of(device, call->in->dl.dtype),
               .out = ocl_dtype_of(device, to->dl.dtype),
               .formula = *formula,
               .y = call->y};
  if (!only.in || !only.out || call->in->dl.ndim > OCL_DIMS_MAX || !(call->inputs >> only.in->number & 1) ||
      !(call->outputs >> only.out->number & 1)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (only.in != only.out && !formula->asks && !converts(only.in, only.out, &only.formula.map)) {
    return GRAFT_UNIMPLEMENTED;
  }
  split_geometry(call, to, &only);
  order(&only, ocl_elements(call->in) == 0);
  only.accumulator = accumulator(device, &only);
  bool float_count =
      formula->in == OCL_COUNTS && (only.in->class == OCL_CLASS_FLOAT || only.in->class == OCL_CLASS_COMPLEX);
  if (float_count && !device->has_f64 && ocl_geometry_elements(&only.reduced) > 1 << 24) return GRAFT_UNIMPLEMENTED;
  only.x = fmax(0, (double)ocl_geometry_elements(&only.reduced) - (formula->first ? call->correction : 0));
  only.shifted = is_shifted(device, &only);
  *out = only;
  return GRAFT_OK;
}

pass ocl_reduction_shift(const graft_device *device, const pass *shifted) {
  pass shift = *shifted;
  int64_t stride = 1;
  for (int d = 0; d < shift.kept.rank; d++) {
    shift.kept.stride[0][d] = stride;
    stride *= shift.kept.size[d];
  }
  shift.formula = *shifted->formula.first;
  shift.out = shifted->accumulator;
  shift.x = (double)ocl_geometry_elements(&shifted->reduced);
  if (shift.formula.of_one && shift.x > 1) {
    shift.reduced = (ocl_geometry){.rank = 1, .operands = 1, .size = {1}, .stride = {{1}}};
  }
  shift.shifted = is_shifted(device, &shift);
  return shift;
}

int64_t ocl_reduction_splits(const graft_device *device, const pass *pass) {
  int64_t wanted = 2 * (int64_t)device->compute_units, least = 16384; /* elements for each */
  int64_t outputs = ocl_geometry_elements(&pass->kept), reduced = ocl_geometry_elements(&pass->reduced);
  int64_t splits = wanted / outputs, most = reduced / least;
  if (splits > most) splits = most;
  return splits > 1 ? splits : 1;
}

ocl_number ocl_reduction_number(const pass *pass) {
  const double value = pass->x;
  return (ocl_number){.is_int = value == (double)(int64_t)value, .i = (int64_t)value, .re = value};
}

void ocl_reduction_head(ocl_text *head, const pass *pass, unsigned vec, size_t local) {
  const ocl_dtype *compute = pass->accumulator;
  ocl_head_types(head, compute, vec, local);
  ocl_text_add(head, "#define D_OUT %s\n#define D_IN %s\n%s", pass->out->name, pass->in->name,
               pass->rows ? "#define ROWS\n" : "");
  ocl_text_add(head, "#define INIT (CT)(%s)\n#define MAP(v) %s\n#define COMBINE(a, b) %s\n#define FINISH(v) %s\n",
               pass->formula.init, pass->formula.map, pass->formula.combine, pass->formula.finish);
  bool is_double = compute->code == GRAFT_F64 || compute->code == GRAFT_C128;
  ocl_text_add(head, "#define Y %a%s\n%s", pass->y, is_double ? "" : "f",
               pass->shifted && !pass->finds_first ? "#define SHIFTED\n" : "");
}
