/* Losses of rows of scores: multi_margin_loss, multilabel_margin_loss, and their gradients. */
#include "kernels/core/direct.h"
#include "kernels/loss/loss.h"

typedef struct margin {
  uint32_t op_id;
  const graft_tensor_desc *out, *in, *target, *weight, *marks, *grad; /* weight or marks, as the op has it */
  int64_t reduction, numbers[4];                                      /* rows, classes, margin, divisor */
  double power, margin;
  bool labels, summed;
} margin;

static void write_head(ocl_text *head, const void *of) {
  const margin *m = of;
  const char *wide = m->in->dl.dtype == GRAFT_F64 ? "f64" : "f32";
  ocl_text_add(head, "#define P %d\n#define OP_ID %u\n#define EACH_ROW %d\n#define D_LOSS %s\n%s%s", (int)m->power,
               m->op_id, m->grad && ocl_elements(m->grad) > 1, m->summed ? wide : "D",
               m->weight ? "#define WEIGHTED\n" : "", m->labels ? "#define LABELS\n" : "");
}

/* The row losses go to the result, or by way of a workspace to their sum. */
static graft_status place_losses(const graft_exec *exec, const margin *m, ocl_direct *call) {
  call->stages[0].places[0] = ocl_place_of(m->out);
  if (!m->summed) return GRAFT_OK;
  ocl_place losses;
  uint64_t bytes = ((uint64_t)m->numbers[0] + 1) * 8;
  graft_status status = ocl_workspace(exec, bytes, &losses);
  call->stages[0].places[0] = losses;
  call->stages[1] = (ocl_stage){.entry = "margin_sum", .units = 1, .places = {ocl_place_of(m->out), losses}};
  return status;
}

static graft_status run(const graft_exec *exec, margin *m) {
  const graft_dl_tensor *in = &m->in->dl;
  m->numbers[0] = in->ndim == 2 ? in->shape[0] : 1;
  m->numbers[1] = in->ndim ? in->shape[in->ndim - 1] : 1;
  double divisor = (double)m->numbers[1] * (m->reduction == OCL_LOSS_MEAN ? (double)m->numbers[0] : 1);
  m->numbers[2] = ocl_direct_number(in->dtype, m->margin);
  m->numbers[3] = ocl_direct_number(in->dtype, divisor);
  m->summed = !m->grad && m->reduction != OCL_LOSS_EACH;
  if (!m->numbers[0] || m->target->dl.dtype != GRAFT_I64) return GRAFT_UNIMPLEMENTED;
  const graft_tensor_desc *forward[] = {NULL, m->in, m->target, m->weight};
  const graft_tensor_desc *labels[] = {NULL, m->marks, m->in, m->target};
  const graft_tensor_desc *gradient[] = {m->out, m->grad, m->in, m->target, m->labels ? m->marks : m->weight};
  const graft_tensor_desc *const *places = m->grad ? gradient : m->labels ? labels : forward;
  ocl_direct call = {.file = "core/cascade core/direct loss/margin",
                     .dtype = in->dtype,
                     .head = write_head,
                     .of = m,
                     .numbers = m->numbers,
                     .count = 4,
                     .reports = true,
                     .places = m->grad ? 5 : 4};
  call.stages[0] = (ocl_stage){.entry = m->grad ? "margin_gradient" : "margin_rows", .units = m->numbers[0]};
  for (int i = 0; i < call.places; i++) call.stages[0].places[i] = ocl_place_of(places[i]);
  graft_status status = m->grad ? GRAFT_OK : place_losses(exec, m, &call);
  return status == GRAFT_OK ? ocl_direct_run(exec, &call) : status;
}

graft_status ocl_op_multi_margin_loss(const graft_exec *exec, const graft_args_multi_margin_loss *args) {
  return run(exec, &(margin){.op_id = args->head.op_id,
                             .out = args->out,
                             .in = args->self,
                             .target = args->target,
                             .weight = args->weight,
                             .reduction = args->reduction,
                             .power = ocl_real_of_scalar(args->p, 1),
                             .margin = ocl_real_of_scalar(args->margin, 1)});
}

graft_status ocl_op_multi_margin_loss_backward(const graft_exec *exec,
                                               const graft_args_multi_margin_loss_backward *args) {
  return run(exec, &(margin){.op_id = args->head.op_id,
                             .out = args->out,
                             .in = args->self,
                             .target = args->target,
                             .weight = args->weight,
                             .grad = args->grad_output,
                             .reduction = args->reduction,
                             .power = ocl_real_of_scalar(args->p, 1),
                             .margin = ocl_real_of_scalar(args->margin, 1)});
}

graft_status ocl_op_multilabel_margin_loss_forward(const graft_exec *exec,
                                                   const graft_args_multilabel_margin_loss_forward *args) {
  if (!args->output || !args->is_target) return GRAFT_UNIMPLEMENTED;
  return run(exec, &(margin){.op_id = args->head.op_id,
                             .out = args->output,
                             .in = args->self,
                             .target = args->target,
                             .marks = args->is_target,
                             .reduction = args->reduction,
                             .power = 1,
                             .margin = 1,
                             .labels = true});
}

graft_status ocl_op_multilabel_margin_loss_backward(const graft_exec *exec,
                                                    const graft_args_multilabel_margin_loss_backward *args) {
  return run(exec, &(margin){.op_id = args->head.op_id,
                             .out = args->out,
                             .in = args->self,
                             .target = args->target,
                             .marks = args->is_target,
                             .grad = args->grad_output,
                             .reduction = args->reduction,
                             .power = 1,
                             .margin = 1,
                             .labels = true});
}
