/* Sums of products: matrices and convolutions. */
#include "tiny/call.h"

/* --- products --- */

typedef struct matrix {
  const gr_view *view;
  long long row, column; /* strides */
} matrix;

static matrix matrix_of(const gr_view *view) {
  return (matrix){view, view->strides[0], view->strides[1]};
}

static matrix turned(matrix m) {
  return (matrix){m.view, m.column, m.row};
}

/* The matrix that is added first: a row, a column or one number is broadcast. */
static matrix bias_of(const gr_view *view) {
  const int last = tiny_is_there(view) ? view->ndim - 1 : -1;
  return (matrix){view, last >= 1 && view->sizes[last - 1] > 1 ? view->strides[last - 1] : 0,
                  last >= 0 && view->sizes[last] > 1 ? view->strides[last] : 0};
}

typedef struct product {
  matrix a, b, bias, to;
  long long rows, columns, inner;
} product;

static void write_product(tiny_emitter *e, const char *kernel, const product *p) {
  tiny_need_dtype(e, p->bias.view, GRAFT_F32, "self");
  tiny_dense(e, p->to.view, GRAFT_F32, "the result");
  fprintf(e->to,
          "  %s(&(const tiny_mm){.rows = %lld, .columns = %lld, .inner = %lld, .a_row = %lld, .a_column = %lld, .b_row "
          "= %lld, .b_column = %lld, .bias_row = %lld, .bias_column = %lld, .out_row = %lld, .out_column = %lld}, %s, "
          "%s, %s, %s);\n",
          kernel, p->rows, p->columns, p->inner, p->a.row, p->a.column, p->b.row, p->b.column, p->bias.row,
          p->bias.column, p->to.row, p->to.column, tiny_place(e, p->bias.view), tiny_place(e, p->a.view),
          tiny_place(e, p->b.view), tiny_place(e, p->to.view));
}

static void need_number(tiny_emitter *e, const gr_view *view, const char *what) {
  if (!tiny_is_i8(e, view)) tiny_need_dtype(e, view, GRAFT_F32, what);
}

/* So many products of two i8 are sure to have a sum that i32 holds. */
static void need_i32_sum(tiny_emitter *e, long long terms) {
  if (terms > INT32_MAX / (128 * 128)) tiny_refuse(e, "a sum of %lld products of i8 may be too large for i32", terms);
}

static void emit_product(tiny_emitter *e, const gr_view *bias, const gr_view *left, const gr_view *right) {
  tiny_need_apart(e);
  need_number(e, left, "the left matrix");
  need_number(e, right, "the right matrix");
  const product p = {matrix_of(left), matrix_of(right), bias_of(bias), {tiny_result(e, 0), right->sizes[1], 1},
                     left->sizes[0],  right->sizes[1],  left->sizes[1]};
  /* The transposes, in the other order. */
  const product q = {turned(p.b), turned(p.a), turned(p.bias), turned(p.to), p.columns, p.rows, p.inner};
  if (tiny_is_i8(e, left) && tiny_is_i8(e, right)) {
    need_i32_sum(e, p.inner);
    write_product(e, "tiny_mm_i8", &p);
  } else if (tiny_is_i8(e, right)) {
    write_product(e, "tiny_mm_i8_f32", &q);
  } else {
    write_product(e, tiny_is_i8(e, left) ? "tiny_mm_i8_f32" : "tiny_mm_f32", &p);
  }
}

static void emit_mm(tiny_emitter *e) {
  emit_product(e, &(const gr_view){.buffer = GR_NONE}, tiny_operand(e, ARG_mm_self), tiny_operand(e, ARG_mm_mat2));
}

static void emit_addmm(tiny_emitter *e) {
  if (tiny_number(e, ARG_addmm_beta) != 1 || tiny_number(e, ARG_addmm_alpha) != 1)
    tiny_refuse(e, "beta and alpha other than 1 are not served");
  emit_product(e, tiny_operand(e, ARG_addmm_self), tiny_operand(e, ARG_addmm_mat1), tiny_operand(e, ARG_addmm_mat2));
}

/* What convolutions and their gradients have in common; the numbers of their arguments differ. */
typedef struct convolution {
  const gr_view *x, *weight, *y;
  uint32_t stride, padding, dilation, transposed, groups;
} convolution;

static void need_convolution(tiny_emitter *e, const convolution *c) {
  tiny_need_apart(e);
  if (c->x->ndim != 4) tiny_refuse(e, "convolutions of %d dims are not served, only of 2", c->x->ndim - 2);
  if (tiny_arg(e, c->transposed)->as.i) tiny_refuse(e, "transposed convolutions are not served");
  if (tiny_arg(e, c->groups)->as.i != 1) tiny_refuse(e, "groups are not served");
}

/* "  kernel(&(const tiny_conv){…}": its arguments follow. */
static void write_convolution(tiny_emitter *e, const char *kernel, const convolution *c) {
  need_convolution(e, c);
  fprintf(e->to,
          "  %s(&(const tiny_conv){.batch = %lld, .inputs = %lld, .height = %lld, .width = %lld, .outputs = %lld, "
          ".out_height = %lld, .out_width = %lld, .kernel_height = %lld, .kernel_width = %lld, .stride_y = %lld, "
          ".stride_x = %lld, .padding_y = %lld, .padding_x = %lld, .dilation_y = %lld, .dilation_x = %lld, .x_step = "
          "%lld, .y_step = %lld}",
          kernel, (long long)c->x->sizes[0], (long long)c->x->sizes[1], (long long)c->x->sizes[2],
          (long long)c->x->sizes[3], (long long)c->y->sizes[1], (long long)c->y->sizes[2], (long long)c->y->sizes[3],
          (long long)c->weight->sizes[2], (long long)c->weight->sizes[3], tiny_item(e, c->stride, 0),
          tiny_item(e, c->stride, 1), tiny_item(e, c->padding, 0), tiny_item(e, c->padding, 1),
          tiny_item(e, c->dilation, 0), tiny_item(e, c->dilation, 1), (long long)c->x->strides[0],
          (long long)c->y->strides[0]);
}

static void emit_convolution(tiny_emitter *e) {
  const convolution c = {tiny_operand(e, ARG_convolution_input),
                         tiny_operand(e, ARG_convolution_weight),
                         tiny_result(e, OUT_convolution_out),
                         ARG_convolution_stride,
                         ARG_convolution_padding,
                         ARG_convolution_dilation,
                         ARG_convolution_transposed,
                         ARG_convolution_groups};
  const bool narrow = tiny_is_i8(e, c.x);
  const graft_dtype dtype = narrow ? GRAFT_I8 : GRAFT_F32;
  if (narrow) need_i32_sum(e, (long long)(tiny_numel(c.weight) / (c.y->sizes[1] ? c.y->sizes[1] : 1)));
  write_convolution(e, narrow ? "tiny_conv2d_i8" : "tiny_conv2d_f32", &c);
  fprintf(e->to, ", %s, %s, %s, %s);\n", tiny_samples(e, c.x, dtype, "input"), tiny_dense(e, c.weight, dtype, "weight"),
          tiny_in(e, ARG_convolution_bias), tiny_out(e, OUT_convolution_out));
}

static void write_input_gradient(tiny_emitter *e, const convolution *c, const char *grad) {
  const bool narrow = tiny_is_i8(e, c->weight);
  write_convolution(e, narrow ? "tiny_conv2d_input_gradient_i8" : "tiny_conv2d_input_gradient_f32", c);
  fprintf(e->to, ", %s, %s, %s);\n", grad, tiny_dense(e, c->weight, narrow ? GRAFT_I8 : GRAFT_F32, "weight"),
          tiny_out(e, OUT_convolution_backward_out0));
}

static void write_weight_gradient(tiny_emitter *e, const convolution *c, const char *grad) {
  const bool narrow = tiny_is_i8(e, c->x);
  write_convolution(e, narrow ? "tiny_conv2d_weight_gradient_i8" : "tiny_conv2d_weight_gradient_f32", c);
  fprintf(e->to, ", %s, %s, %s);\n", grad, tiny_samples(e, c->x, narrow ? GRAFT_I8 : GRAFT_F32, "input"),
          tiny_out(e, OUT_convolution_backward_out1));
}

static void emit_convolution_backward(tiny_emitter *e) {
  const convolution c = {tiny_operand(e, ARG_convolution_backward_input),
                         tiny_operand(e, ARG_convolution_backward_weight),
                         tiny_operand(e, ARG_convolution_backward_grad_output),
                         ARG_convolution_backward_stride,
                         ARG_convolution_backward_padding,
                         ARG_convolution_backward_dilation,
                         ARG_convolution_backward_transposed,
                         ARG_convolution_backward_groups};
  need_convolution(e, &c);
  const char *grad = tiny_samples(e, c.y, GRAFT_F32, "grad_output");
  if (tiny_is_there(tiny_result(e, OUT_convolution_backward_out0))) write_input_gradient(e, &c, grad);
  if (tiny_is_there(tiny_result(e, OUT_convolution_backward_out1))) write_weight_gradient(e, &c, grad);
  if (tiny_is_there(tiny_result(e, OUT_convolution_backward_out2)))
    fprintf(e->to, "  tiny_sum_f32(%lld, %lld, %lld, %lld, %s, %s);\n", (long long)c.y->sizes[0],
            (long long)c.y->sizes[1], (long long)(c.y->sizes[2] * c.y->sizes[3]), (long long)c.y->strides[0], grad,
            tiny_out(e, OUT_convolution_backward_out2));
}

const tiny_op tiny_products[] = {
    {.id = ID_mm,
     .kernels = TINY_PRODUCTS,
     .emit = emit_mm,
     .i8_args = 1u << ARG_mm_self | 1u << ARG_mm_mat2,
     .i8_kernels = TINY_PRODUCTS_I8},
    {.id = ID_addmm,
     .kernels = TINY_PRODUCTS,
     .emit = emit_addmm,
     .i8_args = 1u << ARG_addmm_mat1 | 1u << ARG_addmm_mat2,
     .i8_kernels = TINY_PRODUCTS_I8},
    {.id = ID_convolution,
     .kernels = TINY_PRODUCTS,
     .emit = emit_convolution,
     .i8_args = 1u << ARG_convolution_input | 1u << ARG_convolution_weight,
     .i8_together = true,
     .i8_kernels = TINY_PRODUCTS_I8},
    {.id = ID_convolution_backward,
     .kernels = TINY_PRODUCTS | TINY_SUMS,
     .emit = emit_convolution_backward,
     .i8_args = 1u << ARG_convolution_backward_input | 1u << ARG_convolution_backward_weight,
     .i8_kernels = TINY_PRODUCTS_I8},
    {0}};
