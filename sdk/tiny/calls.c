/* A node as a call of a kernel. A function looks whether the kernel does what the node asks, and writes the call; the
 * first error stays, so that what is written after it need not ask. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "ops/generated/names.h"
#include "tiny/emitter.h"

/* --- what a node has --- */

__attribute__((format(printf, 2, 3))) static void refuse(tiny_emitter *e, const char *format, ...) {
  if (e->status) return;
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  e->status = err_about(GRAFT_UNIMPLEMENTED, e->node->schema->name, "%s", text);
}

static const graft_value *arg(const tiny_emitter *e, uint32_t number) {
  return &e->node->args[number];
}

static const gr_view *operand(const tiny_emitter *e, uint32_t number) {
  static const gr_view absent = {.buffer = GR_NONE};
  const graft_value *v = arg(e, number);
  return v->kind == GRAFT_VALUE_TENSOR ? &e->node->operands[v->as.i].view : &absent;
}

static const gr_view *result(const tiny_emitter *e, uint32_t number) {
  return &e->node->results[number].view;
}

static bool is_there(const gr_view *view) {
  return view->buffer != GR_NONE;
}

static int64_t numel(const gr_view *view) {
  return tns_numel(view->ndim, view->sizes);
}

static void need_dtype(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what) {
  if (is_there(view) && view->dtype != dtype)
    refuse(e, "%s is %s; the kernel is for %s", what, graft_dtype_name(view->dtype), graft_dtype_name(dtype));
}

static const char *pointer(tiny_emitter *e, const gr_view *view) {
  return e->status ? "" : tiny_pointer(e, view);
}

/* Of elements that follow each other. */
static const char *dense(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what) {
  need_dtype(e, view, dtype, what);
  if (is_there(view) && !tns_is_contiguous(view->ndim, view->sizes, view->strides))
    refuse(e, "%s is a view whose elements don't follow each other; the kernel takes contiguous ones", what);
  return pointer(e, view);
}

static const char *in(tiny_emitter *e, uint32_t number) {
  return dense(e, operand(e, number), GRAFT_F32, e->node->schema->args[number].name);
}

static const char *out(tiny_emitter *e, uint32_t number) {
  return dense(e, result(e, number), GRAFT_F32, "the result");
}

static double number_of(tiny_emitter *e, uint32_t number) {
  const graft_scalar *s = &arg(e, number)->as.scalar;
  if (arg(e, number)->kind == GRAFT_VALUE_SCALAR && s->dtype == GRAFT_F64) return s->value.f;
  if (arg(e, number)->kind == GRAFT_VALUE_SCALAR && s->dtype == GRAFT_I64) return (double)s->value.i;
  refuse(e, "%s is no real number", e->node->schema->args[number].name);
  return 0;
}

/* A number of a list of two, of which one stands for both. */
static long long item(tiny_emitter *e, uint32_t number, uint32_t at) {
  const graft_value *v = arg(e, number);
  if (v->kind != GRAFT_VALUE_INTS || !v->count) return refuse(e, "%s is absent", e->node->schema->args[number].name), 0;
  return v->as.ints[at < v->count ? at : v->count - 1];
}

/* What a kernel reads while it writes to it would be lost. */
static void need_apart(tiny_emitter *e) {
  for (uint32_t i = 0; i < e->node->nresults; i++) {
    for (uint32_t k = 0; k < e->node->noperands; k++) {
      const gr_view *to = result(e, i), *from = &e->node->operands[k].view;
      if (is_there(to) && to->buffer == from->buffer && !e->node->operands[k].written)
        refuse(e, "it writes to what it reads; only calls element by element may");
    }
  }
}

/* Same elements in the same order, or other memory. */
static void need_same(tiny_emitter *e, const gr_view *a, const char *what) {
  const gr_view *to = result(e, 0);
  if (!is_there(a)) refuse(e, "%s is a number; the kernel takes tensors", what);
  if (numel(a) != numel(to)) refuse(e, "%s is broadcast; the kernel takes operands of one shape", what);
  if (a->buffer == to->buffer && a->offset != to->offset) refuse(e, "%s overlaps the result", what);
}

/* --- products --- */

static void emit_product(tiny_emitter *e, const gr_view *bias, const gr_view *a, const gr_view *b) {
  need_apart(e);
  need_dtype(e, bias, GRAFT_F32, "self");
  need_dtype(e, a, GRAFT_F32, "the left matrix");
  need_dtype(e, b, GRAFT_F32, "the right matrix");
  const int last = bias->ndim - 1; /* a row or one number is broadcast */
  const long long bias_column = is_there(bias) && last >= 0 && bias->sizes[last] > 1 ? bias->strides[last] : 0;
  const long long bias_row = is_there(bias) && last >= 1 && bias->sizes[last - 1] > 1 ? bias->strides[last - 1] : 0;
  const char *to = out(e, 0);
  fprintf(e->to,
          "  tiny_mm_f32(&(const tiny_mm){.rows = %lld, .columns = %lld, .inner = %lld, .a_row = %lld, .a_column = "
          "%lld, .b_row = %lld, .b_column = %lld, .bias_row = %lld, .bias_column = %lld}, %s, %s, %s, %s);\n",
          (long long)a->sizes[0], (long long)b->sizes[1], (long long)a->sizes[1], (long long)a->strides[0],
          (long long)a->strides[1], (long long)b->strides[0], (long long)b->strides[1], bias_row, bias_column,
          pointer(e, bias), pointer(e, a), pointer(e, b), to);
}

static void emit_mm(tiny_emitter *e) {
  emit_product(e, &(const gr_view){.buffer = GR_NONE}, operand(e, ARG_mm_self), operand(e, ARG_mm_mat2));
}

static void emit_addmm(tiny_emitter *e) {
  if (number_of(e, ARG_addmm_beta) != 1 || number_of(e, ARG_addmm_alpha) != 1)
    refuse(e, "beta and alpha other than 1 are not served");
  emit_product(e, operand(e, ARG_addmm_self), operand(e, ARG_addmm_mat1), operand(e, ARG_addmm_mat2));
}

/* What convolutions and their gradients have in common; the numbers of their arguments differ. */
typedef struct convolution {
  const gr_view *x, *weight, *y;
  uint32_t stride, padding, dilation, transposed, groups;
} convolution;

static void write_convolution(tiny_emitter *e, const convolution *c) {
  need_apart(e);
  if (c->x->ndim != 4) refuse(e, "convolutions of %d dims are not served, only of 2", c->x->ndim - 2);
  if (arg(e, c->transposed)->as.i) refuse(e, "transposed convolutions are not served");
  if (arg(e, c->groups)->as.i != 1) refuse(e, "groups are not served");
  fprintf(e->to,
          "&(const tiny_conv){.batch = %lld, .inputs = %lld, .height = %lld, .width = %lld, .outputs = %lld, "
          ".out_height = %lld, .out_width = %lld, .kernel_height = %lld, .kernel_width = %lld, .stride_y = %lld, "
          ".stride_x = %lld, .padding_y = %lld, .padding_x = %lld, .dilation_y = %lld, .dilation_x = %lld}",
          (long long)c->x->sizes[0], (long long)c->x->sizes[1], (long long)c->x->sizes[2], (long long)c->x->sizes[3],
          (long long)c->y->sizes[1], (long long)c->y->sizes[2], (long long)c->y->sizes[3],
          (long long)c->weight->sizes[2], (long long)c->weight->sizes[3], item(e, c->stride, 0), item(e, c->stride, 1),
          item(e, c->padding, 0), item(e, c->padding, 1), item(e, c->dilation, 0), item(e, c->dilation, 1));
}

static void emit_convolution(tiny_emitter *e) {
  const convolution c = {operand(e, ARG_convolution_input), operand(e, ARG_convolution_weight),
                         result(e, OUT_convolution_out),    ARG_convolution_stride,
                         ARG_convolution_padding,           ARG_convolution_dilation,
                         ARG_convolution_transposed,        ARG_convolution_groups};
  fputs("  tiny_conv2d_f32(", e->to);
  write_convolution(e, &c);
  fprintf(e->to, ", %s, %s, %s, %s);\n", in(e, ARG_convolution_input), in(e, ARG_convolution_weight),
          in(e, ARG_convolution_bias), out(e, OUT_convolution_out));
}

static void emit_convolution_backward(tiny_emitter *e) {
  const gr_view *grad = operand(e, ARG_convolution_backward_grad_output);
  const convolution c = {operand(e, ARG_convolution_backward_input),
                         operand(e, ARG_convolution_backward_weight),
                         grad,
                         ARG_convolution_backward_stride,
                         ARG_convolution_backward_padding,
                         ARG_convolution_backward_dilation,
                         ARG_convolution_backward_transposed,
                         ARG_convolution_backward_groups};
  const char *from = in(e, ARG_convolution_backward_grad_output);
  if (is_there(result(e, OUT_convolution_backward_out0))) {
    fputs("  tiny_conv2d_input_gradient_f32(", e->to);
    write_convolution(e, &c);
    fprintf(e->to, ", %s, %s, %s);\n", from, in(e, ARG_convolution_backward_weight),
            out(e, OUT_convolution_backward_out0));
  }
  if (is_there(result(e, OUT_convolution_backward_out1))) {
    fputs("  tiny_conv2d_weight_gradient_f32(", e->to);
    write_convolution(e, &c);
    fprintf(e->to, ", %s, %s, %s);\n", from, in(e, ARG_convolution_backward_input),
            out(e, OUT_convolution_backward_out1));
  }
  if (is_there(result(e, OUT_convolution_backward_out2)))
    fprintf(e->to, "  tiny_sum_f32(%lld, %lld, %lld, %s, %s);\n", (long long)grad->sizes[0], (long long)grad->sizes[1],
            (long long)(grad->sizes[2] * grad->sizes[3]), from, out(e, OUT_convolution_backward_out2));
}

/* --- sums --- */

/* Dims before those that stay, those, and dims behind them; anything else is no such sum. */
static void emit_sum(tiny_emitter *e) {
  const gr_view *x = operand(e, ARG_sum_dim_IntList_self);
  const graft_value *dims = arg(e, ARG_sum_dim_IntList_dim);
  bool goes[GRAFT_MAX_DIMS] = {0};
  for (uint32_t i = 0; i < dims->count; i++) goes[(dims->as.ints[i] + x->ndim) % (x->ndim ? x->ndim : 1)] = true;
  if (dims->kind != GRAFT_VALUE_INTS || !dims->count) memset(goes, 1, sizeof goes);
  int64_t outer = 1, kept = 1, inner = 1;
  int32_t d = 0;
  for (; d < x->ndim && goes[d]; d++) outer *= x->sizes[d];
  for (; d < x->ndim && !goes[d]; d++) kept *= x->sizes[d];
  for (; d < x->ndim && goes[d]; d++) inner *= x->sizes[d];
  if (d < x->ndim) refuse(e, "the dims that stay are not beside each other");
  need_apart(e);
  fprintf(e->to, "  tiny_sum_f32(%lld, %lld, %lld, %s, %s);\n", (long long)outer, (long long)kept, (long long)inner,
          in(e, ARG_sum_dim_IntList_self), out(e, OUT_sum_dim_IntList_out));
}

/* --- element by element --- */

static void emit_relu(tiny_emitter *e) {
  need_same(e, operand(e, ARG_relu_self), "self");
  fprintf(e->to, "  tiny_relu_f32(%lld, %s, %s);\n", (long long)numel(result(e, 0)), in(e, ARG_relu_self),
          out(e, OUT_relu_out));
}

static void emit_threshold_backward(tiny_emitter *e) {
  need_same(e, operand(e, ARG_threshold_backward_grad_output), "grad_output");
  need_same(e, operand(e, ARG_threshold_backward_self), "self");
  fprintf(e->to, "  tiny_relu_gradient_f32(%lld, %af, %s, %s, %s);\n", (long long)numel(result(e, 0)),
          (double)(float)number_of(e, ARG_threshold_backward_threshold), in(e, ARG_threshold_backward_grad_output),
          in(e, ARG_threshold_backward_self), out(e, OUT_threshold_backward_out));
}

/* a + scale b, all of the numbers of arguments. */
static void write_add(tiny_emitter *e, uint32_t a, uint32_t b, double scale) {
  need_same(e, operand(e, a), e->node->schema->args[a].name);
  need_same(e, operand(e, b), e->node->schema->args[b].name);
  if (!isfinite((float)scale)) refuse(e, "alpha is no finite number of f32");
  fprintf(e->to, "  tiny_add_scaled_f32(%lld, %af, %s, %s, %s);\n", (long long)numel(result(e, 0)),
          (double)(float)scale, in(e, a), in(e, b), out(e, 0));
}

static void emit_add(tiny_emitter *e) {
  write_add(e, ARG_add_Tensor_self, ARG_add_Tensor_other, number_of(e, ARG_add_Tensor_alpha));
}

static void emit_sub(tiny_emitter *e) {
  write_add(e, ARG_sub_Tensor_self, ARG_sub_Tensor_other, -number_of(e, ARG_sub_Tensor_alpha));
}

static void emit_mul(tiny_emitter *e) {
  need_same(e, operand(e, ARG_mul_Tensor_self), "self");
  const long long count = (long long)numel(result(e, 0));
  if (arg(e, ARG_mul_Tensor_other)->kind == GRAFT_VALUE_SCALAR) {
    const double scale = number_of(e, ARG_mul_Tensor_other);
    if (!isfinite((float)scale)) refuse(e, "other is no finite number of f32");
    fprintf(e->to, "  tiny_scale_f32(%lld, %af, %s, %s);\n", count, (double)(float)scale, in(e, ARG_mul_Tensor_self),
            out(e, OUT_mul_Tensor_out));
    return;
  }
  need_same(e, operand(e, ARG_mul_Tensor_other), "other");
  fprintf(e->to, "  tiny_mul_f32(%lld, %s, %s, %s);\n", count, in(e, ARG_mul_Tensor_self), in(e, ARG_mul_Tensor_other),
          out(e, OUT_mul_Tensor_out));
}

/* --- pooling --- */

typedef struct pooling {
  const gr_view *x, *y;
  uint32_t kernel, stride, padding, dilation;
} pooling;

static void write_pooling(tiny_emitter *e, const pooling *p) {
  need_apart(e);
  if (p->x->ndim < 3) refuse(e, "self has %d dims; expected 3 or 4", p->x->ndim);
  if (item(e, p->dilation, 0) != 1 || item(e, p->dilation, 1) != 1) refuse(e, "dilation is not served");
  const int64_t *x = p->x->sizes + p->x->ndim - 2, *y = p->y->sizes + p->y->ndim - 2;
  const uint32_t stride = arg(e, p->stride)->count ? p->stride : p->kernel;
  fprintf(e->to,
          "&(const tiny_pool){.planes = %lld, .height = %lld, .width = %lld, .out_height = %lld, .out_width = %lld, "
          ".kernel_height = %lld, .kernel_width = %lld, .stride_y = %lld, .stride_x = %lld, .padding_y = %lld, "
          ".padding_x = %lld}",
          (long long)tns_numel(p->x->ndim - 2, p->x->sizes), (long long)x[0], (long long)x[1], (long long)y[0],
          (long long)y[1], item(e, p->kernel, 0), item(e, p->kernel, 1), item(e, stride, 0), item(e, stride, 1),
          item(e, p->padding, 0), item(e, p->padding, 1));
}

static void emit_max_pool2d(tiny_emitter *e) {
  const gr_view *places = result(e, OUT_max_pool2d_with_indices_out1);
  const pooling p = {operand(e, ARG_max_pool2d_with_indices_self), result(e, OUT_max_pool2d_with_indices_out0),
                     ARG_max_pool2d_with_indices_kernel_size,      ARG_max_pool2d_with_indices_stride,
                     ARG_max_pool2d_with_indices_padding,          ARG_max_pool2d_with_indices_dilation};
  fputs("  tiny_max_pool2d_f32(", e->to);
  write_pooling(e, &p);
  fprintf(e->to, ", %s, %s, %s);\n", in(e, ARG_max_pool2d_with_indices_self), out(e, OUT_max_pool2d_with_indices_out0),
          dense(e, places, GRAFT_I64, "the second result"));
}

static void emit_max_pool2d_backward(tiny_emitter *e) {
  const pooling p = {
      result(e, OUT_max_pool2d_with_indices_backward_out), operand(e, ARG_max_pool2d_with_indices_backward_grad_output),
      ARG_max_pool2d_with_indices_backward_kernel_size,    ARG_max_pool2d_with_indices_backward_stride,
      ARG_max_pool2d_with_indices_backward_padding,        ARG_max_pool2d_with_indices_backward_dilation};
  fputs("  tiny_max_pool2d_gradient_f32(", e->to);
  write_pooling(e, &p);
  fprintf(e->to, ", %s, %s, %s);\n", in(e, ARG_max_pool2d_with_indices_backward_grad_output),
          dense(e, operand(e, ARG_max_pool2d_with_indices_backward_indices), GRAFT_I64, "indices"),
          out(e, OUT_max_pool2d_with_indices_backward_out));
}

/* --- losses --- */

/* The rows of a softmax over the last dim, which has *count elements. */
static long long rows_of(tiny_emitter *e, const gr_view *x, uint32_t dim, long long *count) {
  const int64_t last = arg(e, dim)->as.i;
  need_apart(e);
  if (x->ndim < 1 || (last != -1 && last != x->ndim - 1)) refuse(e, "dim is not the last one");
  *count = x->ndim ? (long long)x->sizes[x->ndim - 1] : 1;
  return *count ? (long long)numel(x) / *count : 0;
}

static void emit_log_softmax(tiny_emitter *e) {
  long long count, rows = rows_of(e, operand(e, ARG_log_softmax_self), ARG_log_softmax_dim, &count);
  fprintf(e->to, "  tiny_log_softmax_f32(%lld, %lld, %s, %s);\n", rows, count, in(e, ARG_log_softmax_self),
          out(e, OUT_log_softmax_out));
}

static void emit_log_softmax_backward(tiny_emitter *e) {
  const gr_view *logs = operand(e, ARG_log_softmax_backward_data_output);
  long long count, rows = rows_of(e, logs, ARG_log_softmax_backward_data_dim, &count);
  fprintf(e->to, "  tiny_log_softmax_gradient_f32(%lld, %lld, %s, %s, %s);\n", rows, count,
          in(e, ARG_log_softmax_backward_data_grad_output), in(e, ARG_log_softmax_backward_data_output),
          out(e, OUT_log_softmax_backward_data_out));
}

/* "rows, count, mean, ignored" of a loss: reductions are 0 none, 1 mean, 2 sum. */
static void write_loss(tiny_emitter *e, const gr_view *logs, const gr_view *weight, uint32_t reduction,
                       uint32_t ignored) {
  need_apart(e);
  if (logs->ndim != 2) refuse(e, "self has %d dims; expected 2", logs->ndim);
  if (is_there(weight)) refuse(e, "weights of classes are not served");
  if (arg(e, reduction)->as.i == 0) refuse(e, "a loss of each row is not served, only their mean or sum");
  fprintf(e->to, "%lld, %lld, %d, %lld", (long long)logs->sizes[0], (long long)logs->sizes[1],
          arg(e, reduction)->as.i == 1, (long long)arg(e, ignored)->as.i);
}

static void emit_nll_loss(tiny_emitter *e) {
  fputs("  tiny_nll_loss_f32(", e->to);
  write_loss(e, operand(e, ARG_nll_loss_forward_self), operand(e, ARG_nll_loss_forward_weight),
             ARG_nll_loss_forward_reduction, ARG_nll_loss_forward_ignore_index);
  fprintf(e->to, ", %s, %s, %s, %s);\n", in(e, ARG_nll_loss_forward_self),
          dense(e, operand(e, ARG_nll_loss_forward_target), GRAFT_I64, "target"), out(e, OUT_nll_loss_forward_output),
          out(e, OUT_nll_loss_forward_total_weight));
}

static void emit_nll_loss_backward(tiny_emitter *e) {
  fputs("  tiny_nll_loss_gradient_f32(", e->to);
  write_loss(e, operand(e, ARG_nll_loss_backward_self), operand(e, ARG_nll_loss_backward_weight),
             ARG_nll_loss_backward_reduction, ARG_nll_loss_backward_ignore_index);
  fprintf(e->to, ", %s, %s, %s, %s);\n", in(e, ARG_nll_loss_backward_grad_output),
          dense(e, operand(e, ARG_nll_loss_backward_target), GRAFT_I64, "target"),
          in(e, ARG_nll_loss_backward_total_weight), out(e, OUT_nll_loss_backward_out));
}

/* --- the ops --- */

static const tiny_op ops[] = {
    {ID_mm, false, TINY_PRODUCTS, emit_mm},
    {ID_addmm, false, TINY_PRODUCTS, emit_addmm},
    {ID_convolution, false, TINY_PRODUCTS, emit_convolution},
    {ID_convolution_backward, false, TINY_PRODUCTS | TINY_SUMS, emit_convolution_backward},
    {ID_sum_dim_IntList, false, TINY_SUMS, emit_sum},
    {ID_relu, true, TINY_ELEMENTS, emit_relu},
    {ID_threshold_backward, true, TINY_ELEMENTS, emit_threshold_backward},
    {ID_add_Tensor, true, TINY_ELEMENTS, emit_add},
    {ID_sub_Tensor, true, TINY_ELEMENTS, emit_sub},
    {ID_mul_Tensor, true, TINY_ELEMENTS, emit_mul},
    {ID_max_pool2d_with_indices, false, TINY_POOLING, emit_max_pool2d},
    {ID_max_pool2d_with_indices_backward, false, TINY_POOLING, emit_max_pool2d_backward},
    {ID_log_softmax, false, TINY_LOSS, emit_log_softmax},
    {ID_log_softmax_backward_data, false, TINY_LOSS, emit_log_softmax_backward},
    {ID_nll_loss_forward, false, TINY_LOSS, emit_nll_loss},
    {ID_nll_loss_backward, false, TINY_LOSS, emit_nll_loss_backward},
};
enum { NOPS = sizeof ops / sizeof *ops };

const tiny_op *tiny_op_of(const gr_node *node) {
  for (uint32_t i = 0; i < NOPS; i++) {
    if (ops[i].id == node->schema->id) return &ops[i];
  }
  return NULL;
}

void tiny_op_names(char *text, size_t room) {
  size_t used = 0;
  for (uint32_t i = 0; i < NOPS && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", op_schema_of(ops[i].id)->name);
}
