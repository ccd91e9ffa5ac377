/* Factories: numbers that follow from their place. Those that repeat one number are in fill.c. */
#include <math.h>

#include "runtime/ocl.h"

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype
      *numbers; /* what start and step are given in: the widest there is, so that only the result is rounded */
  int64_t elements, chunk;
} memo;

/* Which kernel a call takes, and over how much. */
typedef struct plan {
  const graft_tensor_desc *out;
  const char *entry;
  graft_dtype compute; /* NONE: the output's own */
  int64_t elements;
  int64_t chunk; /* elements for a work-item of a CPU; 0 for the usual number */
} plan;

/* Numbers for a work-item: a few thousand of them on a CPU; on a GPU a few, once all that can run together have one. */
static int64_t chunk_of(const graft_device *device, const plan *plan) {
  const int64_t most = 8, together = 2048 * (int64_t)device->compute_units;
  if (device->is_cpu) return plan->chunk ? plan->chunk : 8192;
  const int64_t each = plan->elements / together;
  return each > most ? most : ocl_larger(each, 1);
}

static graft_status make_kernel(memo *memo, graft_device *device, const ocl_dtype *dtype, const ocl_dtype *compute,
                                const plan *plan) {
  size_t local = device->is_cpu ? 1 : 256;
  bool whole = compute->class == OCL_CLASS_INT;
  memo->numbers = ocl_dtype_of(device, whole ? GRAFT_I64 : device->has_f64 ? GRAFT_F64 : GRAFT_F32);
  if (compute->class == OCL_CLASS_COMPLEX) memo->numbers = compute;
  memo->elements = plan->elements;
  memo->chunk = chunk_of(device, plan);
  ocl_text head = {0};
  ocl_head_types(&head, compute, 1, local);
  ocl_text_add(&head, "#define D %s\n#define NT %s\n#define SNAP %s\n", dtype->name, memo->numbers->compute,
               dtype->class == OCL_CLASS_INT ? "0x1p-47" : "0");
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, "factory/factory", plan->entry);
  ocl_kernel_size(&memo->kernel, ocl_ceil_divide(memo->elements, memo->chunk), local);
  return status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const plan *plan = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, plan->out->dl.dtype), *compute = dtype;
  if (plan->compute) compute = ocl_dtype_of(device, plan->compute);
  return dtype && compute ? make_kernel(memo, device, dtype, compute, plan) : GRAFT_UNIMPLEMENTED;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

graft_status ocl_op_arange_start_step(const graft_exec *exec, const graft_args_arange_start_step *args) {
  memo *memo;
  if (ocl_is_complex(args->out->dl.dtype) || args->out->dl.dtype == GRAFT_BOOL) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(
      exec, &memo_type, &(plan){.out = args->out, .entry = "arange", .elements = args->out->dl.shape[0]}, &memo);
  if (status != GRAFT_OK) return status;
  ocl_number start_number, step_number = {.is_int = true, .i = 1, .re = 1};
  ocl_number_of_scalar(args->start, &start_number);
  if (args->step) ocl_number_of_scalar(args->step, &step_number);
  ocl_value start, step;
  size_t bytes = ocl_number_as(&start_number, memo->numbers, &start);
  ocl_number_as(&step_number, memo->numbers, &step);
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out), {bytes, &start}, {bytes, &step}, OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

/* What linspace and logspace are made from: the ends, and the step or the base. */
typedef struct ends {
  ocl_number first, last, third;
} ends;

static ocl_number end_of(const graft_scalar *scalar) {
  ocl_number number;
  ocl_number_of_scalar(scalar, &number);
  number.is_int = false;
  return number;
}

static bool is_whole(const graft_exec *exec, const graft_tensor_desc *out) {
  return ocl_dtype_of(exec->device, out->dl.dtype)->class == OCL_CLASS_INT;
}

/* Whole numbers come from f64, too, and are cut: so there must be one. */
static graft_status steps(const graft_exec *exec, const char *entry, const graft_tensor_desc *out, int64_t count,
                          const ends *of) {
  memo *memo;
  bool wide = exec->device->has_f64;
  if (is_whole(exec, out) && !wide) return GRAFT_UNIMPLEMENTED;
  graft_dtype compute = ocl_is_complex(out->dl.dtype) ? (wide ? GRAFT_C128 : GRAFT_C64) : wide ? GRAFT_F64 : GRAFT_F32;
  graft_status status =
      ocl_memo_get(exec, &memo_type, &(plan){.out = out, .entry = entry, .compute = compute, .elements = count}, &memo);
  if (status != GRAFT_OK) return status;
  ocl_value first, last, third;
  size_t bytes = ocl_number_as(&of->first, memo->numbers, &first);
  ocl_number_as(&of->last, memo->numbers, &last);
  ocl_number_as(&of->third, memo->numbers, &third);
  const ocl_argument arguments[] = {OCL_TENSOR(out), {bytes, &first},           {bytes, &last},
                                    {bytes, &third}, OCL_VALUE(memo->elements), OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_linspace(const graft_exec *exec, const graft_args_linspace *args) {
  ends of = {.first = end_of(args->start), .last = end_of(args->end)};
  if (!ocl_dtype_of(exec->device, args->out->dl.dtype)) return GRAFT_UNIMPLEMENTED;
  if (is_whole(exec, args->out)) {
    of.first.re = trunc(of.first.re);
    of.last.re = trunc(of.last.re);
  }
  if (args->steps > 1) {
    of.third.re = (of.last.re - of.first.re) / (double)(args->steps - 1);
    of.third.im = (of.last.im - of.first.im) / (double)(args->steps - 1);
  }
  return steps(exec, "linspace", args->out, args->steps, &of);
}

graft_status ocl_op_logspace(const graft_exec *exec, const graft_args_logspace *args) {
  const ends of = {end_of(args->start), end_of(args->end), {.re = args->base}};
  if (!ocl_dtype_of(exec->device, args->out->dl.dtype)) return GRAFT_UNIMPLEMENTED;
  return steps(exec, "logspace", args->out, args->steps, &of);
}

graft_status ocl_op_eye_m(const graft_exec *exec, const graft_args_eye_m *args) {
  memo *memo;
  graft_status status =
      ocl_memo_get(exec, &memo_type, &(plan){.out = args->out, .entry = "eye", .elements = args->n * args->m}, &memo);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_VALUE(args->m), OCL_VALUE(memo->elements),
                                    OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

/* A work-item takes a row of the triangle, and finds its place by the sum of a progression. */
static graft_status triangle(const graft_exec *exec, const graft_tensor_desc *out, int64_t rows, int64_t columns,
                             int64_t offset, int64_t lower) {
  memo *memo;
  graft_status status = ocl_memo_get(
      exec, &memo_type,
      &(plan){.out = out, .entry = "triangle_indices", .compute = GRAFT_I64, .elements = rows, .chunk = 64}, &memo);
  if (status != GRAFT_OK) return status;
  int64_t count = out->dl.shape[1];
  const ocl_argument arguments[] = {OCL_TENSOR(out),  OCL_VALUE(count), OCL_VALUE(columns),    OCL_VALUE(offset),
                                    OCL_VALUE(lower), OCL_VALUE(rows),  OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_tril_indices(const graft_exec *exec, const graft_args_tril_indices *args) {
  return triangle(exec, args->out, args->row, args->col, args->offset, 1);
}

graft_status ocl_op_triu_indices(const graft_exec *exec, const graft_args_triu_indices *args) {
  return triangle(exec, args->out, args->row, args->col, args->offset, 0);
}
