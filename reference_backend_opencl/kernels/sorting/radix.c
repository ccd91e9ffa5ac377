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

bool ocl_order_is_one_tile(const graft_device *device, const ocl_dtype *dtype, int64_t size) {
  return ocl_radix_plan_of(device, 1, size, key_bits(dtype), is_narrow(dtype)).one_tile;
}

static graft_status make_pass(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                              const ocl_order *order, int pass, ocl_kernel kernels[OCL_RADIX_KERNELS]) {
  const ocl_radix_plan *plan = &ordering->plan;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, plan->local);
  ocl_order_head(&head, dtype, order->descending);
  ocl_radix_head(&head, plan);
  ocl_text_add(&head, "%s%s", pass == 0 ? "#define FROM_ELEMENTS\n" : "",
               ordering->to_results && pass == plan->passes - 1 ? "#define TO_RESULTS\n" : "");
  graft_status status =
      ocl_radix_init(kernels, device, &head, "core/items sorting/items sorting/radix core/warps core/sums core/radix", plan);
  ocl_text_free(&head);
  return status;
}

static ocl_kernel *kernels_of(ocl_ordering *ordering, int pass) {
  if (pass == 0) return ordering->first;
  return pass == ordering->plan.passes - 1 ? ordering->last : ordering->middle;
}

graft_status ocl_order_prepare(ocl_ordering *ordering, graft_device *device, const ocl_dtype *dtype,
                               const ocl_order *order) {
  ocl_radix_plan *plan = &ordering->plan;
  *plan = ocl_radix_plan_of(device, order->lines, order->size, key_bits(dtype), is_narrow(dtype));
  plan->inner = order->inner;
  plan->skipped = order->skipped;
  plan->kept = order->kept;
  ordering->to_results = order->to_results;
  ordering->work_bytes =
      plan->one_tile && order->to_results ? 0 : 2 * plan->items_bytes + (plan->one_tile ? 0 : plan->counts_bytes);
  graft_status status = make_pass(ordering, device, dtype, order, 0, ordering->first);
  for (int pass = 1; pass < plan->passes && status == GRAFT_OK; pass++) {
    ocl_kernel *kernels = kernels_of(ordering, pass);
    if (!kernels[OCL_RADIX_MOVE].handle) status = make_pass(ordering, device, dtype, order, pass, kernels);
  }
  return status;
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
