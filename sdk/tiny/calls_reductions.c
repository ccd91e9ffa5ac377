/* Fewer numbers from many: sums, windows, losses. */
#include <string.h>

#include "tiny/call.h"

/* --- sums --- */

/* Dims before those that stay, those, and dims behind them; anything else is no such sum. */
static void emit_sum(tiny_emitter *e) {
  const gr_view *x = tiny_operand(e, ARG_sum_dim_IntList_self);
  const graft_value *dims = tiny_arg(e, ARG_sum_dim_IntList_dim);
  bool goes[GRAFT_MAX_DIMS] = {0};
  for (uint32_t i = 0; i < dims->count; i++) goes[(dims->as.ints[i] + x->ndim) % (x->ndim ? x->ndim : 1)] = true;
  if (dims->kind != GRAFT_VALUE_INTS || !dims->count) memset(goes, 1, sizeof goes);
  int64_t outer = 1, kept = 1, inner = 1;
  int32_t d = 0;
  for (; d < x->ndim && goes[d]; d++) outer *= x->sizes[d];
  for (; d < x->ndim && !goes[d]; d++) kept *= x->sizes[d];
  for (; d < x->ndim && goes[d]; d++) inner *= x->sizes[d];
  if (d < x->ndim) tiny_refuse(e, "the dims that stay are not beside each other");
  tiny_need_apart(e);
  fprintf(e->to, "  tiny_sum_f32(%lld, %lld, %lld, %lld, %s, %s);\n", (long long)outer, (long long)kept,
          (long long)inner, (long long)(kept * inner), tiny_in(e, ARG_sum_dim_IntList_self),
          tiny_out(e, OUT_sum_dim_IntList_out));
}

/* --- pooling --- */

typedef struct pooling {
  const gr_view *x, *y;
  uint32_t kernel, stride, padding, dilation;
} pooling;

static void write_pooling(tiny_emitter *e, const pooling *p) {
  tiny_need_apart(e);
  if (p->x->ndim < 3) tiny_refuse(e, "self has %d dims; expected 3 or 4", p->x->ndim);
  if (tiny_item(e, p->dilation, 0) != 1 || tiny_item(e, p->dilation, 1) != 1) tiny_refuse(e, "dilation is not served");
  const int64_t *x = p->x->sizes + p->x->ndim - 2, *y = p->y->sizes + p->y->ndim - 2;
  const uint32_t stride = tiny_arg(e, p->stride)->count ? p->stride : p->kernel;
  fprintf(e->to,
          "&(const tiny_pool){.planes = %lld, .height = %lld, .width = %lld, .out_height = %lld, .out_width = %lld, "
          ".kernel_height = %lld, .kernel_width = %lld, .stride_y = %lld, .stride_x = %lld, .padding_y = %lld, "
          ".padding_x = %lld}",
          (long long)tns_numel(p->x->ndim - 2, p->x->sizes), (long long)x[0], (long long)x[1], (long long)y[0],
          (long long)y[1], tiny_item(e, p->kernel, 0), tiny_item(e, p->kernel, 1), tiny_item(e, stride, 0),
          tiny_item(e, stride, 1), tiny_item(e, p->padding, 0), tiny_item(e, p->padding, 1));
}

static void emit_max_pool2d(tiny_emitter *e) {
  const gr_view *places = tiny_result(e, OUT_max_pool2d_with_indices_out1);
  const pooling p = {tiny_operand(e, ARG_max_pool2d_with_indices_self),
                     tiny_result(e, OUT_max_pool2d_with_indices_out0),
                     ARG_max_pool2d_with_indices_kernel_size,
                     ARG_max_pool2d_with_indices_stride,
                     ARG_max_pool2d_with_indices_padding,
                     ARG_max_pool2d_with_indices_dilation};
  const graft_dtype dtype = tiny_is_i8(e, p.x) ? GRAFT_I8 : GRAFT_F32;
  fprintf(e->to, "  tiny_max_pool2d_%s(", graft_dtype_name(dtype));
  write_pooling(e, &p);
  fprintf(e->to, ", %s, %s, %s);\n", tiny_dense(e, p.x, dtype, "self"), tiny_dense(e, p.y, dtype, "the result"),
          tiny_dense(e, places, GRAFT_I64, "the second result"));
}

static void emit_max_pool2d_backward(tiny_emitter *e) {
  const pooling p = {tiny_result(e, OUT_max_pool2d_with_indices_backward_out),
                     tiny_operand(e, ARG_max_pool2d_with_indices_backward_grad_output),
                     ARG_max_pool2d_with_indices_backward_kernel_size,
                     ARG_max_pool2d_with_indices_backward_stride,
                     ARG_max_pool2d_with_indices_backward_padding,
                     ARG_max_pool2d_with_indices_backward_dilation};
  fputs("  tiny_max_pool2d_gradient_f32(", e->to);
  write_pooling(e, &p);
  fprintf(e->to, ", %s, %s, %s);\n", tiny_in(e, ARG_max_pool2d_with_indices_backward_grad_output),
          tiny_dense(e, tiny_operand(e, ARG_max_pool2d_with_indices_backward_indices), GRAFT_I64, "indices"),
          tiny_out(e, OUT_max_pool2d_with_indices_backward_out));
}

/* --- losses --- */

/* The rows of a softmax over the last dim, which has *count elements. */
static long long rows_of(tiny_emitter *e, const gr_view *x, uint32_t dim, long long *count) {
  const int64_t last = tiny_arg(e, dim)->as.i;
  tiny_need_apart(e);
  if (x->ndim < 1 || (last != -1 && last != x->ndim - 1)) tiny_refuse(e, "dim is not the last one");
  *count = x->ndim ? (long long)x->sizes[x->ndim - 1] : 1;
  return *count ? (long long)tiny_numel(x) / *count : 0;
}

static void emit_log_softmax(tiny_emitter *e) {
  long long count, rows = rows_of(e, tiny_operand(e, ARG_log_softmax_self), ARG_log_softmax_dim, &count);
  fprintf(e->to, "  tiny_log_softmax_f32(%lld, %lld, %s, %s);\n", rows, count, tiny_in(e, ARG_log_softmax_self),
          tiny_out(e, OUT_log_softmax_out));
}

static void emit_log_softmax_backward(tiny_emitter *e) {
  const gr_view *logs = tiny_operand(e, ARG_log_softmax_backward_data_output);
  long long count, rows = rows_of(e, logs, ARG_log_softmax_backward_data_dim, &count);
  fprintf(e->to, "  tiny_log_softmax_gradient_f32(%lld, %lld, %s, %s, %s);\n", rows, count,
          tiny_in(e, ARG_log_softmax_backward_data_grad_output), tiny_in(e, ARG_log_softmax_backward_data_output),
          tiny_out(e, OUT_log_softmax_backward_data_out));
}

/* "rows, count, mean, ignored" of a loss: reductions are 0 none, 1 mean, 2 sum. */
static void write_loss(tiny_emitter *e, const gr_view *logs, const gr_view *weight, uint32_t reduction,
                       uint32_t ignored) {
  tiny_need_apart(e);
  if (logs->ndim != 2) tiny_refuse(e, "self has %d dims; expected 2", logs->ndim);
  if (tiny_is_there(weight)) tiny_refuse(e, "weights of classes are not served");
  if (tiny_arg(e, reduction)->as.i == 0) tiny_refuse(e, "a loss of each row is not served, only their mean or sum");
  fprintf(e->to, "%lld, %lld, %d, %lld", (long long)logs->sizes[0], (long long)logs->sizes[1],
          tiny_arg(e, reduction)->as.i == 1, (long long)tiny_arg(e, ignored)->as.i);
}

static void emit_nll_loss(tiny_emitter *e) {
  fputs("  tiny_nll_loss_f32(", e->to);
  write_loss(e, tiny_operand(e, ARG_nll_loss_forward_self), tiny_operand(e, ARG_nll_loss_forward_weight),
             ARG_nll_loss_forward_reduction, ARG_nll_loss_forward_ignore_index);
  fprintf(e->to, ", %s, %s, %s, %s);\n", tiny_in(e, ARG_nll_loss_forward_self),
          tiny_dense(e, tiny_operand(e, ARG_nll_loss_forward_target), GRAFT_I64, "target"),
          tiny_out(e, OUT_nll_loss_forward_output), tiny_out(e, OUT_nll_loss_forward_total_weight));
}

static void emit_nll_loss_backward(tiny_emitter *e) {
  fputs("  tiny_nll_loss_gradient_f32(", e->to);
  write_loss(e, tiny_operand(e, ARG_nll_loss_backward_self), tiny_operand(e, ARG_nll_loss_backward_weight),
             ARG_nll_loss_backward_reduction, ARG_nll_loss_backward_ignore_index);
  fprintf(e->to, ", %s, %s, %s, %s);\n", tiny_in(e, ARG_nll_loss_backward_grad_output),
          tiny_dense(e, tiny_operand(e, ARG_nll_loss_backward_target), GRAFT_I64, "target"),
          tiny_in(e, ARG_nll_loss_backward_total_weight), tiny_out(e, OUT_nll_loss_backward_out));
}

/* Of windows over whole numbers of i8. */
static bool pool_gives_i8(const tiny_emitter *e, const gr_node *node) {
  return e->held[node->operands[0].view.buffer] == GRAFT_I8;
}

const tiny_op tiny_reductions[] = {
    {.id = ID_sum_dim_IntList, .kernels = TINY_SUMS, .emit = emit_sum},
    {.id = ID_max_pool2d_with_indices,
     .kernels = TINY_POOLING,
     .emit = emit_max_pool2d,
     .i8_args = 1u << ARG_max_pool2d_with_indices_self,
     .gives_i8 = pool_gives_i8},
    {.id = ID_max_pool2d_with_indices_backward,
     .kernels = TINY_POOLING,
     .emit = emit_max_pool2d_backward,
     .i8_args = 1u << ARG_max_pool2d_with_indices_backward_self,
     .unread_args = 1u << ARG_max_pool2d_with_indices_backward_self},
    {.id = ID_log_softmax, .kernels = TINY_LOSS, .emit = emit_log_softmax},
    {.id = ID_log_softmax_backward_data, .kernels = TINY_LOSS, .emit = emit_log_softmax_backward},
    {.id = ID_nll_loss_forward, .kernels = TINY_LOSS, .emit = emit_nll_loss},
    {.id = ID_nll_loss_backward, .kernels = TINY_LOSS, .emit = emit_nll_loss_backward},
    {0}};
