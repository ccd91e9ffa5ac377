/* The engine of the pointwise ops: one implementation for every row of ops.c. */
#include "kernels/pointwise/pointwise.h"

#include <stdlib.h>
#include <string.h>

typedef ocl_pointwise_recipe recipe;
typedef ocl_operands operands;

/* ---- The arguments of a call ---- */

/* Reads them in the order of the schema; `made` holds what a call gives as floats. */
void ocl_pointwise_read(const ocl_call *call, operands *o, graft_scalar made[OCL_SCALARS_MAX]) {
  const ocl_field *fields = call->signature->fields;
  *o = (operands){.op_id = call->op->id};
  for (uint16_t i = 0; i < call->signature->count; i++) {
    const void *place = ocl_field_in(call->args, &fields[i]);
    switch ((ocl_field_kind)fields[i].kind) {
      case OCL_FIELD_TENSOR: {
        const graft_tensor_desc *desc = *(const graft_tensor_desc *const *)place;
        if (!(fields[i].flags & OCL_FIELD_RESULT))
          o->input[o->inputs++] = desc;
        else
          *(o->out ? &o->second : &o->out) = desc;
        break;
      }
      case OCL_FIELD_SCALAR: o->scalar[o->scalars++] = *(const graft_scalar *const *)place; break;
      case OCL_FIELD_FLOAT: {
        const double *real = fields[i].flags & OCL_FIELD_POINTER ? *(const double *const *)place : place;
        if (real) {
          made[o->scalars] = (graft_scalar){.dtype = GRAFT_F64, .value.f = *real};
          o->scalar[o->scalars] = &made[o->scalars];
        }
        o->scalars++;
        break;
      }
      case OCL_FIELD_STR: o->mode = *(const uint32_t *)place; break;
      case OCL_FIELD_BOOL: o->mode = *(const uint8_t *)place; break;
      case OCL_FIELD_INT: o->mode = (uint32_t) * (const int64_t *)place; break;
      default: break;
    }
  }
}

/* ---- Which dtypes go together ---- */

/* Whether this input takes part in promotion as a tensor with dimensions: one that was expanded whole was of rank 0. */
static bool is_dimensioned(const graft_tensor_desc *desc) {
  bool expanded = desc->dl.ndim > 0;
  for (int d = 0; d < desc->dl.ndim; d++) expanded = expanded && desc->dl.strides[d] == 0;
  return !expanded;
}

/* Whether a complex number of dtype `to` is two of dtype `from`. */
static bool is_part(const ocl_dtype *from, const ocl_dtype *to) {
  return to->code == GRAFT_C64 ? from->code == GRAFT_F32 : to->code == GRAFT_C128 && from->code == GRAFT_F64;
}

/* Whether an operand is complex, so that the others become so. */
static bool has_complex(const operands *call) {
  bool found = false;
  for (int k = 0; k < call->inputs; k++) found = found || (call->input[k] && ocl_is_complex(call->input[k]->dl.dtype));
  for (int k = 0; k < call->scalars; k++) found = found || (call->scalar[k] && call->scalar[k]->dtype == GRAFT_C128);
  return found;
}

/* Whether a value of `from` enters a computation in `to` as promotion would have it, without a rounding in between. */
static bool widens(const ocl_dtype *from, const ocl_dtype *to) {
  if (to->class == OCL_CLASS_COMPLEX) {
    bool whole = from->class == OCL_CLASS_INT || from->class == OCL_CLASS_BOOL;
    return whole || is_part(from, to) || (from->class == OCL_CLASS_FLOAT && from->bytes == 2) ||
           (from->code == GRAFT_F32 && to->code == GRAFT_C128) || (from->code == GRAFT_C64 && to->code == GRAFT_C128);
  }
  if (to->class == OCL_CLASS_FLOAT) {
    return from->class == OCL_CLASS_INT || from->class == OCL_CLASS_BOOL ||
           (from->class == OCL_CLASS_FLOAT && from->bytes < to->bytes);
  }
  bool to_signed = to->code == GRAFT_I16 || to->code == GRAFT_I32 || to->code == GRAFT_I64;
  if (to->class != OCL_CLASS_INT) return false;
  return from->class == OCL_CLASS_BOOL || (from->class == OCL_CLASS_INT && to_signed && from->bytes < to->bytes);
}

/* The host does not say what the promoted dtype is. It is the output's if an input with dimensions has that dtype, or
 * is a part of it and meets a complex number, and all others widen to it; or if truth values meet a whole number of
 * that dtype, or whole numbers a fraction or a complex number (f32 or c64, by the default dtype); anything else goes
 * back to the host. */
static bool mixed_is_served(const graft_device *device, const operands *call, const recipe *recipe) {
  const ocl_dtype *to = ocl_dtype_of(device, call->out->dl.dtype);
  bool anchored = false, fraction = recipe->flags & OCL_FLOAT_RESULT, complex = has_complex(call);
  bool truths = true, whole = false;
  if (to->class == OCL_CLASS_COMPLEX && !complex) return false;
  for (int k = 0; k < call->inputs; k++) {
    const graft_tensor_desc *desc = call->input[k];
    const ocl_dtype *from = desc ? ocl_dtype_of(device, desc->dl.dtype) : to;
    if (!from) return false;
    if (ocl_is_value(desc)) {
      fraction = fraction || (desc && from->class == OCL_CLASS_FLOAT);
      whole = whole || (desc && from == to && to->class == OCL_CLASS_INT);
      continue;
    }
    if (from != to && !widens(from, to)) return false;
    if (is_dimensioned(desc)) {
      truths = truths && from->class == OCL_CLASS_BOOL;
      anchored = anchored || from == to || is_part(from, to);
    } else {
      whole = whole || (from == to && to->class == OCL_CLASS_INT);
    }
  }
  for (int k = 0; k < call->scalars; k++)
    fraction = fraction || (call->scalar[k] && call->scalar[k]->dtype == GRAFT_F64);
  if (anchored || (truths && whole)) return true;
  for (int k = 0; k < call->inputs; k++) {
    const graft_tensor_desc *desc = call->input[k];
    if (!ocl_is_value(desc) && ocl_dtype_of(device, desc->dl.dtype)->class == OCL_CLASS_FLOAT) return false;
  }
  return complex ? to->code == GRAFT_C64 : fraction && to->code == GRAFT_F32;
}

/* Whether a value of `from` that is not 0 stays so in `to`, and not the other way round. Classes are in that order. */
static bool keeps_more(const ocl_dtype *to, const ocl_dtype *from) {
  bool to_whole = to->class <= OCL_CLASS_INT, from_whole = from->class <= OCL_CLASS_INT;
  return to->class == from->class || (to_whole && from_whole) ? to->bytes > from->bytes : to->class > from->class;
}

/* The dtype that all operands of a logical op are converted to without one of them becoming 0. */
static const ocl_dtype *logical_dtype(const graft_device *device, const operands *call, const recipe *recipe) {
  const ocl_dtype *most = NULL;
  bool has_f64 = false;
  for (int k = 0; k < call->inputs; k++) {
    const ocl_dtype *dtype = ocl_dtype_of(device, call->input[k]->dl.dtype);
    if (!dtype || !(recipe->dtypes >> dtype->number & 1)) return NULL;
    if (!most || keeps_more(dtype, most)) most = dtype;
    has_f64 = has_f64 || dtype->code == GRAFT_F64;
  }
  return has_f64 && most->code == GRAFT_C64 ? NULL : most; /* neither has all values of the other */
}

const ocl_dtype *ocl_pointwise_dtype(const graft_device *device, const operands *call, const recipe *recipe) {
  int mask = ocl_mask_of(recipe);
  const ocl_dtype *out = ocl_dtype_of(device, call->out->dl.dtype), *in = NULL;
  bool same = true;
  if (!out) return NULL;
  if (recipe->flags & OCL_LOGICAL) return out->code == GRAFT_BOOL ? logical_dtype(device, call, recipe) : NULL;
  if (mask >= 0 && call->input[mask]->dl.dtype != GRAFT_BOOL) return NULL;
  for (int k = 0; k < call->inputs; k++) {
    if (k == mask || ocl_is_value(call->input[k])) continue;
    const ocl_dtype *dtype = ocl_dtype_of(device, call->input[k]->dl.dtype);
    if (!dtype) return NULL;
    if (!in) in = dtype;
    same = same && dtype == in;
  }
  const ocl_dtype *compute = recipe->flags & (OCL_BOOL_RESULT | OCL_CAST) ? in : out;
  if (!compute || !(recipe->dtypes >> compute->number & 1)) return NULL;
  if (recipe->flags & OCL_CAST) return compute;
  if (recipe->flags & OCL_BOOL_RESULT) return same && out->code == GRAFT_BOOL ? compute : NULL;
  if (!in || (same && in == out)) return compute;
  if (mask >= 0) return NULL;
  return mixed_is_served(device, call, recipe) ? compute : NULL;
}

/* ---- The memo ---- */

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
  bool reports; /* a divisor of 0 */
  bool shares;  /* the program of many ops */
} memo;

/* The operand that integers are divided by, where it is a tensor: -1 for none. */
static int divisor_of(const operands *call, const recipe *recipe, const ocl_dtype *compute) {
  int last = call->inputs - 1;
  bool divides = recipe->flags & OCL_DIVIDES && compute->class == OCL_CLASS_INT;
  return divides && call->scalars == 0 && !ocl_is_value(call->input[last]) ? last : -1;
}

static bool make_geometry(const operands *call, ocl_geometry *geometry) {
  const graft_dl_tensor *out = &call->out->dl;
  *geometry = (ocl_geometry){.operands = call->inputs + 1 + (call->second != NULL)};
  if (out->ndim > OCL_DIMS_MAX) return false;
  for (int d = out->ndim - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX] = {out->strides[d]};
    for (int k = 0; k < call->inputs; k++) {
      if (ocl_is_value(call->input[k])) continue;
      const graft_dl_tensor *in = &call->input[k]->dl;
      if (in->ndim != out->ndim || in->shape[d] != out->shape[d]) return false;
      strides[k + 1] = in->strides[d];
    }
    if (call->second) strides[call->inputs + 1] = call->second->dl.strides[d];
    ocl_geometry_push_outer(geometry, out->shape[d], strides);
  }
  ocl_geometry_sort(geometry);
  ocl_geometry_collapse(geometry);
  return true;
}

/* Whether the functions of complex numbers are needed. */
static bool has_complex_form(const recipe *recipe, const ocl_dtype *compute) {
  return compute->class == OCL_CLASS_COMPLEX && recipe->complex;
}

static const char *expression_of(const recipe *recipe, const ocl_dtype *compute) {
  return has_complex_form(recipe, compute) ? recipe->complex : recipe->expression;
}

void ocl_pointwise_head(ocl_text *head, const graft_device *device, const operands *call, const recipe *recipe,
                        const ocl_dtype *compute) {
  ocl_text_add(head, "#define EXPRESSION %s\n#define MODE %u\n", expression_of(recipe, compute), call->mode);
  if (recipe->second) ocl_text_add(head, "#define SECOND %s\n", recipe->second);
  ocl_text_add(head, "#define D_OUT %s\n", ocl_dtype_of(device, call->out->dl.dtype)->name);
  if (call->second) ocl_text_add(head, "#define D_SECOND %s\n", ocl_dtype_of(device, call->second->dl.dtype)->name);
  if (recipe->flags & OCL_BOOL_RESULT) ocl_text_add(head, "#define BOOL_RESULT\n");
  if (ocl_mask_of(recipe) >= 0) ocl_text_add(head, "#define MASK %d\n", ocl_mask_of(recipe));
  for (int k = 0; k < call->inputs; k++) {
    if (call->input[k]) ocl_text_add(head, "#define HAS_%c\n", 'A' + k);
    if (ocl_is_value(call->input[k]))
      ocl_text_add(head, "#define VALUE_%d\n", k);
    else
      ocl_text_add(head, "#define D_%d %s\n", k, ocl_dtype_of(device, call->input[k]->dl.dtype)->name);
  }
  for (int k = 0; k < call->scalars; k++) {
    if (call->scalar[k]) ocl_text_add(head, "#define HAS_%c\n", 'X' + k);
  }
}

/* Of a small call the kernel asks for strides when it runs: one program serves all of them. */
static void add_inner(ocl_text *head, const char *name, const ocl_geometry *geometry, int operand) {
  if (ocl_geometry_is_small(geometry))
    ocl_text_add(head, "#define INNER_%s (stride == 1)\n", name);
  else
    ocl_text_add(head, "#define INNER_%s %d\n", name, ocl_is_unit(geometry->stride[operand][0]));
}

/* Whether an operand has at most two bytes an element, side by side. */
static bool is_narrow(const graft_tensor_desc *desc, const ocl_geometry *geometry, int operand) {
  return GRAFT_DTYPE_BYTES(desc->dl.dtype) <= 2 && ocl_is_unit(geometry->stride[operand][0]);
}

/* Lanes of a vector. Of what is narrow throughout a GPU's work-item has twice as many: 16 bytes of a half type. */
static unsigned lanes_of(const graft_device *device, const operands *call, const ocl_dtype *compute,
                         const ocl_geometry *geometry) {
  bool complex =
      compute->class == OCL_CLASS_COMPLEX || ocl_dtype_of(device, call->out->dl.dtype)->class == OCL_CLASS_COMPLEX;
  bool narrow = !device->is_cpu && !ocl_geometry_is_small(geometry) && is_narrow(call->out, geometry, 0);
  if (call->second) narrow = narrow && is_narrow(call->second, geometry, call->inputs + 1);
  for (int k = 0; k < call->inputs; k++) {
    if (!ocl_is_value(call->input[k])) narrow = narrow && is_narrow(call->input[k], geometry, k + 1);
  }
  return complex ? 1 : device->vector_width <= 8 && narrow ? 2 * device->vector_width : device->vector_width;
}

static void write_head(ocl_text *head, const graft_device *device, const operands *call, const recipe *recipe,
                       const ocl_dtype *compute, const ocl_geometry *geometry, size_t local) {
  const char *const names[OCL_INPUTS_MAX] = {"0", "1", "2"};
  ocl_head_types(head, compute, lanes_of(device, call, compute, geometry), local);
  ocl_pointwise_head(head, device, call, recipe, compute);
  ocl_text_add(head, "#define RANK %d\n#define INPUTS %d\n", geometry->rank, call->inputs);
  add_inner(head, "OUT", geometry, 0);
  if (call->second) add_inner(head, "SECOND", geometry, call->inputs + 1);
  int divisor = divisor_of(call, recipe, compute);
  if (divisor >= 0) ocl_text_add(head, "#define DIVISOR %c\n#define OP_ID %u\n", 'a' + divisor, call->op_id);
  for (int k = 0; k < call->inputs; k++) {
    if (!ocl_is_value(call->input[k])) add_inner(head, names[k], geometry, k + 1);
  }
  if (recipe->flags & (OCL_SPECIAL | OCL_GAMMA | OCL_BESSEL | OCL_POLYNOMIALS)) ocl_text_add(head, "#define LONG\n");
  if (ocl_geometry_is_small(geometry)) ocl_text_add(head, "#define SMALL\n");
}

static void write_shared_head(ocl_text *head, const graft_device *device, const recipe *recipe,
                              const ocl_dtype *compute, const ocl_geometry *geometry, size_t local) {
  ocl_head_types(head, compute, device->vector_width, local);
  ocl_text_add(head, "#define RANK %d\n", geometry->rank);
  ocl_pointwise_cases(head, recipe, compute);
}

static graft_status set_space(memo *memo, const ocl_geometry *geometry, const ocl_pointwise_shared *shared,
                              int64_t lanes, size_t local) {
  int64_t space[OCL_GEOMETRY_NUMBERS + sizeof(ocl_cut) / sizeof(int64_t) + 4];
  int n = ocl_geometry_numbers(geometry, space);
  ocl_cut cut;
  ocl_kernel_size(&memo->kernel, ocl_geometry_cut(memo->kernel.device, geometry, lanes, &cut), local);
  memcpy(space + n, &cut, sizeof cut);
  n += (int)(sizeof cut / sizeof *space);
  if (shared->shares) {
    const int64_t numbers[] = {shared->op, shared->in_memory, shared->given, shared->mode};
    memcpy(space + n, numbers, sizeof numbers);
    n += 4;
  }
  return ocl_kernel_set(&memo->kernel, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}

/* What a memo is made from. */
typedef struct source {
  const operands *call;
  const recipe *recipe;
} source;

static const char *files_of(const recipe *recipe, const ocl_dtype *compute) {
#define WITH(files) "core/exp " files "pointwise/functions pointwise/step pointwise/pointwise"
  if (has_complex_form(recipe, compute)) return WITH("pointwise/complex ");
  if (recipe->flags & OCL_GAMMA) return WITH("pointwise/special pointwise/gamma ");
  if (recipe->flags & OCL_SPECIAL) return WITH("pointwise/special ");
  if (recipe->flags & OCL_POLYNOMIALS) return WITH("pointwise/polynomials ");
  if (recipe->flags & OCL_POWERS) return WITH("pointwise/power ");
  return recipe->flags & OCL_BESSEL ? WITH("pointwise/bessel ") : WITH("");
#undef WITH
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = ((const source *)from)->call;
  const recipe *recipe = ((const source *)from)->recipe;
  const ocl_dtype *compute = ocl_pointwise_dtype(device, call, recipe);
  ocl_geometry geometry;
  if (!compute || !make_geometry(call, &geometry)) return GRAFT_UNIMPLEMENTED;
  ocl_pointwise_shared shared = {0};
  if (ocl_geometry_is_small(&geometry)) {
    ocl_geometry_widen(&geometry);
    shared = ocl_pointwise_share(call, recipe, compute);
  }
  memo->compute = compute;
  memo->reports = divisor_of(call, recipe, compute) >= 0;
  size_t local = device->is_cpu ? 1 : 128;
  ocl_text head = {0};
  memo->shares = shared.shares;
  if (memo->shares) {
    geometry.operands = 1 + OCL_INPUTS_MAX; /* strides of what an op has not are 0 */
    write_shared_head(&head, device, recipe, compute, &geometry, local);
  } else {
    write_head(&head, device, call, recipe, compute, &geometry, local);
  }
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, files_of(recipe, compute), "pointwise");
  const int64_t lanes = shared.shares ? device->vector_width : lanes_of(device, call, compute, &geometry);
  return status == GRAFT_OK ? set_space(memo, &geometry, &shared, ocl_larger(lanes, device->vector_width), local)
                            : status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

/* ---- A call ---- */

graft_status ocl_pointwise_number(const ocl_plugin *plugin, const ocl_dtype *compute, const recipe *recipe,
                                  const ocl_given_number *given, ocl_number_argument *out) {
  ocl_number number = {.is_int = true, .i = (int64_t)given->absent, .re = given->absent};
  if (given->desc && !ocl_number_of_tensor(given->desc, &number)) return GRAFT_UNIMPLEMENTED;
  if (given->scalar) ocl_number_of_scalar(given->scalar, &number);
  if (given->is_divisor && recipe->flags & OCL_DIVIDES && compute->class == OCL_CLASS_INT && number.i == 0) {
    return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "%s: integer division by zero", ocl_op_name(given->op_id));
  }
  if (recipe->flags & OCL_BOOL_RESULT && compute->bytes == 2 && compute->class == OCL_CLASS_FLOAT) {
    number = (ocl_number){.re = ocl_round_to(compute->code, (float)number.re)};
  }
  out->bytes = ocl_number_as(&number, compute, &out->value);
  return GRAFT_OK;
}

/* What stands for an operand that is a number, or absent. */
static ocl_given_number operand_number(const operands *call, int k) {
  const graft_tensor_desc *desc = call->input[k];
  bool is_divisor = desc && call->scalars == 0 && k == call->inputs - 1;
  return (ocl_given_number){.op_id = call->op_id, .desc = desc, .absent = 1, .is_divisor = is_divisor};
}

ocl_given_number ocl_pointwise_scalar(const operands *call, const recipe *recipe, int k) {
  const graft_scalar *scalar = k < call->scalars ? call->scalar[k] : NULL;
  return (ocl_given_number){.op_id = call->op_id,
                            .scalar = scalar,
                            .absent = recipe->numbers ? recipe->numbers[k] : 1,
                            .is_divisor = scalar != NULL};
}

/* Numbers and places of a launch, as the kernel's `call` has them: numbers of 4, 8 or 16 bytes, then offsets. */
typedef struct given_numbers {
  uint64_t words[(OCL_SCALARS_MAX + OCL_INPUTS_MAX) * 2 + OCL_INPUTS_MAX + 2 + 1];
  size_t bytes;
} given_numbers;

static graft_status give_number(given_numbers *to, const ocl_plugin *plugin, const memo *memo, const recipe *recipe,
                                const ocl_given_number *given) {
  ocl_number_argument number;
  graft_status status = ocl_pointwise_number(plugin, memo->compute, recipe, given, &number);
  if (status != GRAFT_OK) return status;
  memcpy((char *)to->words + to->bytes, &number.value, number.bytes);
  to->bytes += number.bytes;
  return GRAFT_OK;
}

static graft_status give_numbers(given_numbers *to, const ocl_plugin *plugin, const memo *memo, const recipe *recipe,
                                 const operands *call) {
  graft_status status = GRAFT_OK;
  to->bytes = 0;
  for (int k = 0; k < OCL_SCALARS_MAX && status == GRAFT_OK; k++) {
    const ocl_given_number given = ocl_pointwise_scalar(call, recipe, k);
    status = give_number(to, plugin, memo, recipe, &given);
  }
  for (int k = 0; k < OCL_INPUTS_MAX && status == GRAFT_OK; k++) {
    const bool is_number = k < call->inputs && ocl_is_value(call->input[k]);
    const ocl_given_number given = is_number ? operand_number(call, k) : (ocl_given_number){.absent = 1};
    status = give_number(to, plugin, memo, recipe, &given);
  }
  return status;
}

static void give_places(given_numbers *to, const operands *call) {
  const size_t number = to->bytes / (OCL_SCALARS_MAX + OCL_INPUTS_MAX);
  /* The last word fills up what the kernel's struct is aligned to. */
  uint64_t at[2 + OCL_INPUTS_MAX + 1] = {call->out->dl.byte_offset, call->second ? call->second->dl.byte_offset : 0};
  const size_t places = sizeof at - sizeof *at;
  for (int k = 0; k < call->inputs; k++) at[2 + k] = ocl_is_value(call->input[k]) ? 0 : call->input[k]->dl.byte_offset;
  const int64_t end = ocl_round_up((int64_t)(to->bytes + places), ocl_larger((int64_t)number, sizeof *at));
  memcpy((char *)to->words + to->bytes, at, (size_t)end - to->bytes);
  to->bytes = (size_t)end;
}

/* The buffers. In a program of its own an operand that is a number has none; one that many ops share has all of them.
 */
static cl_uint add_buffers(ocl_argument *arguments, const memo *memo, const operands *call) {
  cl_uint n = 0;
  arguments[n++] = (ocl_argument)OCL_BUFFER(call->out->dl.data);
  if (call->second) arguments[n++] = (ocl_argument)OCL_BUFFER(call->second->dl.data);
  for (int k = 0; k < (memo->shares ? OCL_INPUTS_MAX : call->inputs); k++) {
    const bool is_tensor = k < call->inputs && !ocl_is_value(call->input[k]);
    if (is_tensor || memo->shares)
      arguments[n++] = (ocl_argument)OCL_BUFFER(is_tensor ? call->input[k]->dl.data : NULL);
  }
  return n;
}

graft_status ocl_pointwise(const graft_exec *exec, const recipe *recipe, const operands *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, &(source){call, recipe}, &memo);
  given_numbers numbers;
  if (status == GRAFT_OK) status = give_numbers(&numbers, exec->device->plugin, memo, recipe, call);
  if (status != GRAFT_OK) return status;
  give_places(&numbers, call);
  ocl_argument arguments[2 + OCL_INPUTS_MAX + 2];
  cl_uint count = add_buffers(arguments, memo, call);
  arguments[count++] = (ocl_argument){numbers.bytes, numbers.words};
  cl_mem faults;
  if (memo->reports) {
    status = ocl_stream_faults(exec->stream, &faults);
    arguments[count++] = (ocl_argument)OCL_VALUE(faults);
  }
  return status == GRAFT_OK ? ocl_launch(&memo->kernel, exec->stream, count, arguments) : status;
}

graft_status ocl_pointwise_engine(const ocl_call *call) {
  operands operands;
  graft_scalar made[OCL_SCALARS_MAX];
  ocl_pointwise_read(call, &operands, made);
  return ocl_pointwise(call->exec, call->op->recipe, &operands);
}
