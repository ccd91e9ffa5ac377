/* Matrix products: mm, bmm, and with a matrix to add. All are one batched product with any strides. */
#include "kernels/matmul/product.h"

static bool is_alike(const ocl_operands *call) {
  const graft_dtype dtype = call->out->dl.dtype;
  return call->a->dl.dtype == dtype && call->b->dl.dtype == dtype && (!call->addend || call->addend->dl.dtype == dtype);
}

/* A processor packs a matrix that lies transposed, and one as large as the gradient of many logits would take as much
 * memory again: of such a matrix a launch takes some rows. */
static int64_t parts_of(const graft_device *device, const ocl_operands *call) {
  enum { ROWS = 64 };
  const int64_t part_bytes = 8 << 20;
  const graft_dl_tensor *a = &call->a->dl;
  if (!device->is_cpu || a->ndim != 2 || a->strides[1] == 1 || call->epilogue || call->sums || call->scales) return 1;
  int64_t parts = ocl_elements(call->a) * (int64_t)GRAFT_DTYPE_BYTES(a->dtype) / part_bytes;
  if (parts < 4) return 1;
  while (parts > 1 && a->shape[0] % (parts * ROWS) != 0) parts--;
  return parts;
}

/* A matrix of which a call has rows / parts rows, from those of a part on. */
typedef struct part_of_rows {
  graft_tensor_desc desc;
  int64_t shape[2];
} part_of_rows;

static const graft_tensor_desc *take_part(const graft_tensor_desc *whole, int64_t part, int64_t parts,
                                          part_of_rows *taken) {
  if (!whole) return NULL;
  taken->desc = *whole;
  taken->shape[0] = whole->dl.shape[0] / parts;
  taken->shape[1] = whole->dl.shape[1];
  taken->desc.dl.shape = taken->shape;
  taken->desc.dl.byte_offset +=
      (uint64_t)(part * taken->shape[0] * whole->dl.strides[0]) * GRAFT_DTYPE_BYTES(whole->dl.dtype);
  return &taken->desc;
}

/* The operands of a part; `taken` has room for those that are cut. */
enum { CUT = 3 };
static ocl_operands part_of(const ocl_operands *call, int64_t part, int64_t parts, part_of_rows taken[CUT]) {
  ocl_operands own = *call;
  if (parts == 1) return own;
  own.a = take_part(call->a, part, parts, &taken[0]);
  own.out = take_part(call->out, part, parts, &taken[1]);
  own.addend = take_part(call->addend, part, parts, &taken[2]);
  return own;
}

graft_status ocl_product_prepare(void *pointer, graft_device *device, const void *from) {
  ocl_product *memo = pointer;
  const ocl_operands *call = from;
  const ocl_dtype *dtype = memo->compute = ocl_dtype_of(device, call->out->dl.dtype);
  if (!dtype || dtype->class == OCL_CLASS_BOOL || (!call->mixed && !is_alike(call)) ||
      (call->addend && call->addend->dl.ndim != call->out->dl.ndim)) {
    return GRAFT_UNIMPLEMENTED;
  }
  part_of_rows taken[CUT];
  memo->parts = parts_of(device, call);
  const ocl_operands part = part_of(call, 0, memo->parts, taken);
  return ocl_product_plan(memo, device, &part);
}

bool ocl_product_packs_parts(graft_device *device, const ocl_operands *call) {
  part_of_rows taken[CUT];
  const ocl_operands part = part_of(call, 0, parts_of(device, call), taken);
  return ocl_product_packs_first(device, &part);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(ocl_product), .kernels = 6, .prepare = ocl_product_prepare};

/* ---- A call ---- */

/* Where the product finds a factor: in the tensor, or packed into the workspace; and then subtotals of its rows, if
 * they are asked for. */
static graft_status pack(ocl_kernel *kernel, graft_stream *stream, bool packs, ocl_place work,
                         const graft_tensor_desc *tensor, const ocl_place *subtotals, ocl_place *factor) {
  *factor = work;
  if (ocl_elements(tensor) == 0)
    return GRAFT_OK; /* of no depth: some buffer that is there, since it is not looked at */
  if (!packs) {
    *factor = ocl_place_of(tensor);
    return GRAFT_OK;
  }
  if (subtotals) {
    const ocl_argument arguments[] = {OCL_PLACE(work), OCL_PLACE(*subtotals), OCL_TENSOR(tensor)};
    return ocl_launch(kernel, stream, OCL_ALL(arguments));
  }
  const ocl_argument arguments[] = {OCL_PLACE(work), OCL_TENSOR(tensor)};
  return ocl_launch(kernel, stream, OCL_ALL(arguments));
}

static ocl_place behind(ocl_place place, uint64_t bytes) {
  return (ocl_place){place.buffer, place.offset + bytes};
}

/* Packs what is packed: the second factor, where one part's has served (has_b), not again. *a and *b: where they are
 * read.
 */
static graft_status pack_both(const graft_exec *exec, ocl_product *memo, const ocl_operands *call, ocl_place work,
                              bool has_b, ocl_place *a, ocl_place *b) {
  const ocl_place subtotals = behind(work, memo->skip_subtotals), *first = call->row_sums_to ? &subtotals : NULL;
  graft_status status = pack(&memo->pack_a, exec->stream, memo->packs_a, work, memo->swapped ? call->b : call->a,
                             memo->swapped ? NULL : first, a);
  if (status != GRAFT_OK || has_b) return status;
  return pack(&memo->pack_b, exec->stream, memo->packs_b, behind(work, memo->bytes_a),
              memo->swapped ? call->a : call->b, memo->swapped ? first : NULL, b);
}

/* b: where the second factor is read; made where it is not there yet. */
static graft_status launch_part(const graft_exec *exec, ocl_product *memo, const ocl_operands *call, ocl_place work,
                                bool has_b, ocl_place *b) {
  ocl_argument all[OCL_WRITING_ARGUMENTS_MAX];
  ocl_place a, partial = behind(work, memo->skip_partial);
  graft_status status = pack_both(exec, memo, call, work, has_b, &a, b);
  ocl_value alpha, beta;
  ocl_number one = {.is_int = true, .i = 1, .re = 1}, alpha_number = one, beta_number = one;
  if (call->alpha) ocl_number_of_scalar(call->alpha, &alpha_number);
  if (call->beta) ocl_number_of_scalar(call->beta, &beta_number);
  size_t bytes = ocl_number_as(&alpha_number, memo->compute, &alpha);
  ocl_number_as(&beta_number, memo->compute, &beta);
  ocl_place addend = ocl_place_of(call->addend ? call->addend : call->out); /* not looked at where there is none */
  if (call->scales) addend = behind(work, memo->skip_scales);
  if (call->scales && status == GRAFT_OK) status = ocl_scales_gather(&memo->scale, exec->stream, call->scales, addend);
  int64_t k = 0, end;
  /* Once where K is 0. */
  for (bool first = true; status == GRAFT_OK && (first || k < memo->depth); first = false, k = end) {
    end = k + memo->block < memo->depth ? k + memo->block : memo->depth;
    const ocl_argument arguments[] = {OCL_PLACE(a),          OCL_PLACE(*b),     OCL_PLACE(partial),
                                      OCL_TENSOR(call->out), OCL_PLACE(addend), {bytes, &alpha},
                                      {bytes, &beta},        OCL_VALUE(k),      OCL_VALUE(end)};
    const cl_uint count = ocl_with_followers(all, call, 10, arguments, 4);
    status = ocl_launch(&memo->multiply, exec->stream, count, all);
  }
  if (status != GRAFT_OK || !memo->splits) return status;
  const ocl_argument arguments[] = {
      OCL_PLACE(partial), OCL_TENSOR(call->out), OCL_PLACE(addend), {bytes, &alpha}, {bytes, &beta}};
  const cl_uint count = ocl_with_followers(all, call, 6, arguments, 2);
  return ocl_launch(&memo->combine, exec->stream, count, all);
}

graft_status ocl_product_launch(const graft_exec *exec, ocl_product *memo, const ocl_operands *call) {
  graft_status status = GRAFT_OK;
  ocl_place work = ocl_place_of(call->out); /* not looked at where nothing is packed and K is one block */
  if (memo->workspace_bytes) status = ocl_workspace(exec, memo->workspace_bytes, &work);
  if (status != GRAFT_OK) return status;
  part_of_rows taken[CUT];
  ocl_place b;
  for (int64_t part = 0; part < memo->parts && status == GRAFT_OK; part++) {
    const ocl_operands own = part_of(call, part, memo->parts, taken);
    status = launch_part(exec, memo, &own, work, part > 0 && !memo->swapped, &b);
    if (status != GRAFT_OK || !call->row_sums_to) continue;
    status = ocl_subtotals_launch(&memo->subtotals, exec->stream, memo->compute,
                                  behind(ocl_place_of(call->row_sums_to), (uint64_t)part * memo->row_sums_step),
                                  behind(work, memo->skip_subtotals));
  }
  return status;
}

static graft_status run(const graft_exec *exec, ocl_operands *call) {
  ocl_product *memo;
  call->tf32 = exec->flags & GRAFT_EXEC_ALLOW_TF32;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  return status == GRAFT_OK ? ocl_product_launch(exec, memo, call) : status;
}

graft_status ocl_tensor_mm(const graft_exec *exec, const graft_tensor_desc *a, const graft_tensor_desc *b,
                           const graft_tensor_desc *out, const ocl_scales *scales) {
  ocl_operands call = {.a = a, .b = b, .out = out, .mixed = true, .scales = scales};
  ocl_tensor_plan plan;
  ocl_tile tile;
  return ocl_product_on_tensor_cores(&plan, exec->device, &call, &tile) ? run(exec, &call) : GRAFT_UNIMPLEMENTED;
}

graft_status ocl_op_mm(const graft_exec *exec, const graft_args_mm *args) {
  return run(exec, &(ocl_operands){.a = args->self, .b = args->mat2, .out = args->out});
}

graft_status ocl_op_bmm(const graft_exec *exec, const graft_args_bmm *args) {
  return run(exec, &(ocl_operands){.a = args->self, .b = args->mat2, .out = args->out});
}

graft_status ocl_op_addmm(const graft_exec *exec, const graft_args_addmm *args) {
  return run(exec, &(ocl_operands){.a = args->mat1,
                                   .b = args->mat2,
                                   .out = args->out,
                                   .addend = args->self,
                                   .alpha = args->alpha,
                                   .beta = args->beta});
}

/* gelu stays a launch of its own: PoCL takes minutes to compile it into every element of a tile in bf16. */
graft_status ocl_op_addmm_activation(const graft_exec *exec, const graft_args_addmm_activation *args) {
  if (args->use_gelu) return GRAFT_UNIMPLEMENTED;
  return run(exec, &(ocl_operands){.a = args->mat1,
                                   .b = args->mat2,
                                   .out = args->out,
                                   .addend = args->self,
                                   .alpha = args->alpha,
                                   .beta = args->beta,
                                   .relu = true});
}

graft_status ocl_op_baddbmm(const graft_exec *exec, const graft_args_baddbmm *args) {
  return run(exec, &(ocl_operands){.a = args->batch1,
                                   .b = args->batch2,
                                   .out = args->out,
                                   .addend = args->self,
                                   .alpha = args->alpha,
                                   .beta = args->beta});
}

#define NUMBERS (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)
#define LAYOUTS (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY)

static const ocl_op ops[] = {
    {OCL_OP(mm), .inputs = NUMBERS, .outputs = NUMBERS, .flags = LAYOUTS},
    {OCL_OP(bmm), .inputs = NUMBERS, .outputs = NUMBERS, .flags = LAYOUTS},
    {OCL_OP(addmm), .inputs = NUMBERS, .outputs = NUMBERS, .flags = LAYOUTS},
    {OCL_OP(addmm_activation), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = LAYOUTS},
    {OCL_OP(baddbmm), .inputs = NUMBERS, .outputs = NUMBERS, .flags = LAYOUTS},
    {OCL_OP(dot), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = LAYOUTS},
    {OCL_OP(vdot), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = LAYOUTS},
    {OCL_OP(grouped_mm), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
};
OCL_FAMILY(matmul, ops)
