/* See radix.h. */
#include "kernels/sorting/radix.h"

/* How many bits of a key may differ; f16 has 19 of f32's, with the exponent's. */
static int key_bits(const ocl_dtype *dtype) {
  if (dtype->code == GRAFT_F16) return 19;
  return 8 * (int)dtype->bytes;
}

static bool is_narrow(const ocl_dtype *dtype) {
  return dtype->bytes <= 4;
}

void ocl_order_head(ocl_text *head, const ocl_dtype *dtype, bool descending) {
  ocl_text_add(head, "#define D %s\n#define as_key as_%s\n%s", dtype->name, is_narrow(dtype) ? "uint" : "ulong",
               descending ? "#define DESCENDING\n" : "");
  if (dtype->bytes < 4) {
    ocl_text_add(head, "#define KEY_BITS %d\n%s", key_bits(dtype), dtype->name[0] == 'i' ? "#define IS_SIGNED\n" : "");
  }
}

/* What a work-group sorts at most. */
static int64_t tile_of(const graft_device *device, const ocl_dtype *dtype) {
  return ocl_radix_tile(device, is_narrow(dtype));
}

bool ocl_order_keeps_few(const graft_device *device, const ocl_dtype *dtype, int64_t size, int64_t kept) {
  const int64_t tile = tile_of(device, dtype);
  return size <= tile || ocl_ceil_divide(size, tile) * kept <= tile;
}

static graft_status make_pass(graft_device *device, const ocl_dtype *dtype, const ocl_radix_plan *plan,
                              ocl_kernel kernels[OCL_RADIX_KERNELS], bool descending, const char *ends) {
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, plan->local);
  ocl_order_head(&head, dtype, descending);
  ocl_radix_head(&head, plan);
  ocl_text_append(&head, ends);
  graft_status status = ocl_radix_init(kernels, device, &head,
                                       "core/items sorting/items sorting/radix core/warps core/sums core/radix", plan);
  ocl_text_free(&head);
  return status;
}

static const char *const from_elements = "#define FROM_ELEMENTS\n", *const to_results = "#define TO_RESULTS\n",
                         *const from_to = "#define FROM_ELEMENTS\n#define TO_RESULTS\n";

static ocl_kernel *kernels_of(ocl_ordering *ordering, int pass) {
  if (pass == 0) return ordering->first;
  return pass == ordering->plan.passes - 1 ? ordering->last : ordering->middle;
}

/* The first of each tile of a line, and then the first of those. */
static graft_status prepare_parts(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                                  const ocl_order *order) {
  const int64_t tile = tile_of(device, dtype), parts = ocl_ceil_divide(order->size, tile),
                kept = order->skipped + order->kept;
  ocl_radix_plan *plan = &ordering->plan, *second = &ordering->second;
  *plan = ocl_radix_plan_of(device, order->lines * parts, tile, key_bits(dtype), is_narrow(dtype));
  *second = ocl_radix_plan_of(device, order->lines, parts * kept, key_bits(dtype), is_narrow(dtype));
  plan->inner = second->inner = order->inner;
  plan->length = second->length = order->size;
  plan->parts = parts;
  plan->kept = kept;
  second->skipped = order->skipped;
  second->kept = order->kept;
  ordering->work_bytes = second->items_bytes;
  graft_status status = make_pass(device, dtype, plan, ordering->first, order->descending, from_elements);
  return status == GRAFT_OK ? make_pass(device, dtype, second, ordering->last, order->descending, to_results) : status;
}

static graft_status prepare_passes(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                                   const ocl_order *order) {
  ocl_radix_plan *plan = &ordering->plan;
  *plan = ocl_radix_plan_of(device, order->lines, order->size, key_bits(dtype), is_narrow(dtype));
  plan->inner = order->inner;
  plan->skipped = order->to_results ? order->skipped : 0;
  plan->kept = order->to_results ? order->kept : order->size;
  ordering->work_bytes =
      plan->one_tile && order->to_results ? 0 : 2 * plan->items_bytes + (plan->one_tile ? 0 : plan->counts_bytes);
  graft_status status = GRAFT_OK;
  for (int pass = 0; pass < plan->passes && status == GRAFT_OK; pass++) {
    ocl_kernel *kernels = kernels_of(ordering, pass);
    const bool ends = order->to_results && pass == plan->passes - 1;
    const char *of_ends = pass > 0 ? (ends ? to_results : "") : ends ? from_to : from_elements;
    if (kernels[OCL_RADIX_MOVE].handle) continue;
    status = make_pass(device, dtype, plan, kernels, order->descending, of_ends);
  }
  return status;
}

graft_status ocl_order_prepare(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                               const ocl_order *order) {
  ordering->to_results = order->to_results;
  ordering->in_parts = order->to_results && order->kept < order->size && order->size > tile_of(device, dtype);
  return (ordering->in_parts ? prepare_parts : prepare_passes)(ordering, device, dtype, order);
}

static graft_status run_parts(const graft_exec *exec, ocl_ordering *ordering, const graft_tensor_desc *in,
                              cl_uint count, const ocl_argument *results, ocl_place work) {
  const ocl_argument sink[] = {OCL_PLACE(work)};
  const ocl_place from = ocl_place_of(in);
  graft_status status = ocl_radix_pass(exec, ordering->first, &ordering->plan, 0, from, work, OCL_ALL(sink));
  if (status != GRAFT_OK) return status;
  return ocl_radix_pass(exec, ordering->last, &ordering->second, 0, work, work, count, results);
}

graft_status ocl_order_run(const graft_exec *exec, ocl_ordering *ordering, const graft_tensor_desc *in,
                           const graft_tensor_desc *values, const graft_tensor_desc *indices, ocl_place work,
                           ocl_place *items) {
  const ocl_radix_plan *plan = &ordering->plan;
  ocl_place from = ocl_place_of(in), to = work, other = {work.buffer, work.offset + plan->items_bytes};
  const ocl_place counts = {work.buffer, other.offset + plan->items_bytes};
  graft_status status = GRAFT_OK;
  for (int pass = 0; pass < plan->passes && status == GRAFT_OK; pass++) {
    ocl_kernel *kernels = kernels_of(ordering, pass);
    if (ordering->to_results && pass == plan->passes - 1) {
      const ocl_argument results[] = {OCL_TENSOR(values), OCL_TENSOR(indices), OCL_TENSOR(in)};
      if (ordering->in_parts) return run_parts(exec, ordering, in, OCL_ALL(results), work);
      return ocl_radix_pass(exec, kernels, plan, pass, from, counts, OCL_ALL(results));
    }
    const ocl_argument sink[] = {OCL_PLACE(to)};
    status = ocl_radix_pass(exec, kernels, plan, pass, from, counts, OCL_ALL(sink));
    *items = from = to;
    to = other;
    other = *items;
  }
  return status;
}
