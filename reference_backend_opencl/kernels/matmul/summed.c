/* See summed.h. */
#include "kernels/matmul/summed.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/matmul/product.h"

typedef struct calls {
  const graft_args_mm *product;
  ocl_reduction_call sum;
  ocl_reduction_pass pass;
} calls;

typedef struct summed {
  ocl_product *product;
  int a, b;             /* which of the group's inputs */
  int out, row_sums_to; /* which of its outputs */
} summed;

/* ---- what they are ---- */

static bool read_sum(const graft_exec *exec, const graft_graph_node *node, ocl_reduction_call *sum) {
  ocl_call call;
  return node->args && ocl_call_of(exec, node->args, &call) == GRAFT_OK && call.op->id == OCL_ID_sum_dim_IntList &&
         ocl_reduction_read(&call, sum);
}

static ocl_product_call product_of(const calls *c) {
  return (ocl_product_call){.a = c->product->self,
                            .b = c->product->mat2,
                            .out = c->product->out,
                            .row_sums_to = c->sum.out,
                            .row_sums_pass = &c->pass};
}

static bool begin_together(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  return a->storage_id == b->storage_id && a->dl.byte_offset == b->dl.byte_offset && a->dl.dtype == b->dl.dtype;
}

static bool read_calls(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count, calls *c) {
  if (!exec->device->is_cpu || count != OCL_SUMMED_CALLS) return false;
  const bool first = (c->product = ocl_node_args(exec, nodes[0], (ocl_slot)ocl_op_mm, OCL_ID_mm)) != NULL;
  if (!first) c->product = ocl_node_args(exec, nodes[1], (ocl_slot)ocl_op_mm, OCL_ID_mm);
  if (!c->product || !read_sum(exec, nodes[first], &c->sum) || !begin_together(c->product->self, c->sum.in))
    return false;
  if (ocl_elements(c->sum.in) == 0 || ocl_elements(c->product->out) == 0) return false;
  if (ocl_reduction_plan(exec->device, &c->sum, c->sum.out, c->sum.formula, &c->pass) != GRAFT_OK) return false;
  const ocl_product_call product = product_of(c);
  return ocl_product_sums_rows(exec->device, &product);
}

bool ocl_summed_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count) {
  calls c;
  return read_calls(exec, nodes, count, &c);
}

/* ---- an executable ---- */

static graft_status compile(const graft_exec *exec, const graft_graph_group *group, void **result) {
  calls c;
  if (!read_calls(exec, group->nodes, group->node_count, &c)) return GRAFT_UNIMPLEMENTED;
  summed made = {.a = ocl_group_place(group->inputs, group->input_count, c.product->self),
                 .b = ocl_group_place(group->inputs, group->input_count, c.product->mat2),
                 .out = ocl_group_place(group->outputs, group->output_count, c.product->out),
                 .row_sums_to = ocl_group_place(group->outputs, group->output_count, c.sum.out)};
  if (made.a < 0 || made.b < 0 || made.out < 0 || made.row_sums_to < 0) return GRAFT_UNIMPLEMENTED;
  const ocl_product_call call = product_of(&c);
  graft_status status = ocl_product_make(exec, &call, NULL, &made.product);
  void *kept = status == GRAFT_OK ? malloc(sizeof made) : NULL;
  if (!kept) {
    ocl_product_destroy(made.product);
    return status == GRAFT_OK ? GRAFT_OUT_OF_MEMORY : status;
  }
  *result = memcpy(kept, &made, sizeof made);
  return GRAFT_OK;
}

static graft_status run(const graft_exec *exec, void *made, const graft_graph_run_args *args) {
  const summed *summed = made;
  const ocl_product_call call = {.a = args->inputs[summed->a],
                                 .b = args->inputs[summed->b],
                                 .out = args->outputs[summed->out],
                                 .row_sums_to = args->outputs[summed->row_sums_to]};
  return ocl_product_run(exec, summed->product, &call, call.out, 0, NULL);
}

static void destroy(void *made) {
  summed *summed = made;
  ocl_product_destroy(summed->product);
  free(summed);
}

const ocl_group_kind ocl_summed_kind = {.compile = compile, .run = run, .destroy = destroy};
