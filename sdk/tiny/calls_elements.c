/* Element by element, of tensors and of lists of tensors. */
#include <math.h>

#include "tiny/call.h"

/* "tiny_relu_f32(40, x, out)" and its like: a kernel of one operand. */
static void write_unary(tiny_emitter *e, const char *kernel, const gr_view *x, const gr_view *to) {
  tiny_need_same(e, x, to, "self");
  fprintf(e->to, "  %s(%lld, %s, %s);\n", kernel, (long long)tiny_numel(to), tiny_dense(e, x, GRAFT_F32, "self"),
          tiny_dense(e, to, GRAFT_F32, "the result"));
}

static void emit_relu(tiny_emitter *e) {
  write_unary(e, "tiny_relu_f32", tiny_operand(e, ARG_relu_self), tiny_result(e, OUT_relu_out));
}

static void emit_floor(tiny_emitter *e) {
  write_unary(e, "tiny_floor_f32", tiny_operand(e, ARG_floor_self), tiny_result(e, OUT_floor_out));
}

static void emit_round(tiny_emitter *e) {
  write_unary(e, "tiny_round_f32", tiny_operand(e, ARG_round_self), tiny_result(e, OUT_round_out));
}

static void emit_clone(tiny_emitter *e) {
  write_unary(e, "tiny_copy_f32", tiny_operand(e, ARG_clone_self), tiny_result(e, OUT_clone_out));
}

/* A finite number of f32, as C. */
static double finite_f32(tiny_emitter *e, double number, const char *what) {
  if (!isfinite((float)number)) tiny_refuse(e, "%s is no finite number of f32", what);
  return (double)(float)number;
}

static void emit_clamp(tiny_emitter *e) {
  const gr_view *x = tiny_operand(e, ARG_clamp_self), *to = tiny_result(e, OUT_clamp_out);
  tiny_need_same(e, x, to, "self");
  if (tiny_arg(e, ARG_clamp_min)->kind == GRAFT_VALUE_NONE || tiny_arg(e, ARG_clamp_max)->kind == GRAFT_VALUE_NONE)
    tiny_refuse(e, "a bound alone is not served, only min and max");
  else
    fprintf(e->to, "  tiny_clamp_f32(%lld, %af, %af, %s, %s);\n", (long long)tiny_numel(to),
            finite_f32(e, tiny_number(e, ARG_clamp_min), "min"), finite_f32(e, tiny_number(e, ARG_clamp_max), "max"),
            tiny_in(e, ARG_clamp_self), tiny_out(e, OUT_clamp_out));
}

static void emit_threshold_backward(tiny_emitter *e) {
  const gr_view *to = tiny_result(e, OUT_threshold_backward_out);
  tiny_need_same(e, tiny_operand(e, ARG_threshold_backward_grad_output), to, "grad_output");
  tiny_need_same(e, tiny_operand(e, ARG_threshold_backward_self), to, "self");
  fprintf(e->to, "  tiny_relu_gradient_f32(%lld, %af, %s, %s, %s);\n", (long long)tiny_numel(to),
          finite_f32(e, tiny_number(e, ARG_threshold_backward_threshold), "threshold"),
          tiny_in(e, ARG_threshold_backward_grad_output), tiny_in(e, ARG_threshold_backward_self),
          tiny_out(e, OUT_threshold_backward_out));
}

/* --- sums and products --- */

typedef struct pair {
  const gr_view *a, *b, *to;
  const char *a_name, *b_name;
} pair;

static pair pair_of(const tiny_emitter *e, uint32_t a, uint32_t b) {
  return (pair){tiny_operand(e, a), tiny_operand(e, b), tiny_result(e, 0), e->node->schema->args[a].name,
                e->node->schema->args[b].name};
}

static void need_pair(tiny_emitter *e, const pair *p) {
  tiny_need_same(e, p->a, p->to, p->a_name);
  tiny_need_same(e, p->b, p->to, p->b_name);
}

/* a + scale b; a may be held as i8. */
static void write_add(tiny_emitter *e, const pair *p, double scale) {
  const bool narrow = tiny_is_i8(e, p->a);
  need_pair(e, p);
  fprintf(e->to, "  tiny_add_scaled_%s(%lld, %af, %s, %s, %s);\n", narrow ? "i8" : "f32", (long long)tiny_numel(p->to),
          finite_f32(e, scale, "alpha"), tiny_dense(e, p->a, narrow ? GRAFT_I8 : GRAFT_F32, p->a_name),
          tiny_dense(e, p->b, GRAFT_F32, p->b_name), tiny_dense(e, p->to, GRAFT_F32, "the result"));
}

static void emit_add(tiny_emitter *e) {
  const pair p = pair_of(e, ARG_add_Tensor_self, ARG_add_Tensor_other);
  write_add(e, &p, tiny_number(e, ARG_add_Tensor_alpha));
}

static void emit_sub(tiny_emitter *e) {
  const pair p = pair_of(e, ARG_sub_Tensor_self, ARG_sub_Tensor_other);
  write_add(e, &p, -tiny_number(e, ARG_sub_Tensor_alpha));
}

static void write_scale(tiny_emitter *e, const gr_view *x, const gr_view *to, double scale, const char *what) {
  tiny_need_same(e, x, to, "self");
  fprintf(e->to, "  tiny_scale_f32(%lld, %af, %s, %s);\n", (long long)tiny_numel(to), finite_f32(e, scale, what),
          tiny_dense(e, x, GRAFT_F32, "self"), tiny_dense(e, to, GRAFT_F32, "the result"));
}

/* A mask is 0 or 1. */
static void write_mul(tiny_emitter *e, const pair *p) {
  const bool mask = tiny_is_there(p->b) && p->b->dtype == GRAFT_BOOL;
  need_pair(e, p);
  fprintf(e->to, "  tiny_%s_f32(%lld, %s, %s, %s);\n", mask ? "mask" : "mul", (long long)tiny_numel(p->to),
          tiny_dense(e, p->a, GRAFT_F32, p->a_name), tiny_dense(e, p->b, mask ? GRAFT_BOOL : GRAFT_F32, p->b_name),
          tiny_dense(e, p->to, GRAFT_F32, "the result"));
}

static void emit_mul(tiny_emitter *e) {
  const pair p = pair_of(e, ARG_mul_Tensor_self, ARG_mul_Tensor_other);
  if (tiny_arg(e, ARG_mul_Tensor_other)->kind == GRAFT_VALUE_SCALAR)
    write_scale(e, p.a, p.to, tiny_number(e, ARG_mul_Tensor_other), "other");
  else
    write_mul(e, &p);
}

static void emit_fill(tiny_emitter *e) {
  const gr_view *to = tiny_result(e, OUT_fill_Scalar_out);
  fprintf(e->to, "  tiny_fill_f32(%lld, %af, %s);\n", (long long)tiny_numel(to),
          finite_f32(e, tiny_number(e, ARG_fill_Scalar_value), "value"), tiny_out(e, OUT_fill_Scalar_out));
}

const tiny_op tiny_elements[] = {
    {.id = ID_relu, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_relu},
    {.id = ID_floor, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_floor},
    {.id = ID_round, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_round},
    {.id = ID_clamp, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_clamp},
    {.id = ID_clone, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_clone},
    {.id = ID_threshold_backward, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_threshold_backward},
    {.id = ID_add_Tensor,
     .elementwise = true,
     .kernels = TINY_ELEMENTS,
     .emit = emit_add,
     .i8_args = 1u << ARG_add_Tensor_self,
     .i8_kernels = TINY_QUANTIZE},
    {.id = ID_sub_Tensor,
     .elementwise = true,
     .kernels = TINY_ELEMENTS,
     .emit = emit_sub,
     .i8_args = 1u << ARG_sub_Tensor_self,
     .i8_kernels = TINY_QUANTIZE},
    {.id = ID_mul_Tensor, .elementwise = true, .kernels = TINY_ELEMENTS, .emit = emit_mul},
    {.id = ID_fill_Scalar, .kernels = TINY_ELEMENTS, .emit = emit_fill},
    {0}};

/* --- lists: what optimizers do to all their tensors at once --- */

/* An item is written before the next one is read. */
static void need_items_apart(tiny_emitter *e, uint32_t at) {
  const uint32_t buffer = tiny_result(e, at)->buffer;
  for (uint32_t k = 0; k < e->node->nargs; k++) {
    for (uint32_t i = at + 1; tiny_arg(e, k)->kind == GRAFT_VALUE_TENSORS && i < tiny_arg(e, k)->count; i++) {
      if (tiny_list_operand(e, k, i)->buffer == buffer)
        tiny_refuse(e, "item %u of %s lies in memory that item %u of the result is written to", i,
                    e->node->schema->args[k].name, at);
    }
  }
}

static void each(tiny_emitter *e, void (*write)(tiny_emitter *e, uint32_t at)) {
  for (uint32_t i = 0; i < e->node->nresults; i++) need_items_apart(e, i);
  for (uint32_t i = 0; i < e->node->nresults; i++) write(e, i);
}

static void add_item(tiny_emitter *e, uint32_t at) {
  const pair p = {tiny_list_operand(e, ARG_foreach_add_List_self, at),
                  tiny_list_operand(e, ARG_foreach_add_List_other, at), tiny_result(e, at), "self", "other"};
  write_add(e, &p, tiny_number(e, ARG_foreach_add_List_alpha));
}

static void sub_item(tiny_emitter *e, uint32_t at) {
  const pair p = {tiny_list_operand(e, ARG_foreach_sub_List_self, at),
                  tiny_list_operand(e, ARG_foreach_sub_List_other, at), tiny_result(e, at), "self", "other"};
  write_add(e, &p, -tiny_number(e, ARG_foreach_sub_List_alpha));
}

static void mul_item(tiny_emitter *e, uint32_t at) {
  const pair p = {tiny_list_operand(e, ARG_foreach_mul_List_self, at),
                  tiny_list_operand(e, ARG_foreach_mul_List_other, at), tiny_result(e, at), "self", "other"};
  write_mul(e, &p);
}

static void scale_item(tiny_emitter *e, uint32_t at) {
  write_scale(e, tiny_list_operand(e, ARG_foreach_mul_Scalar_self, at), tiny_result(e, at),
              tiny_number(e, ARG_foreach_mul_Scalar_scalar), "scalar");
}

static void neg_item(tiny_emitter *e, uint32_t at) {
  write_scale(e, tiny_list_operand(e, ARG_foreach_neg_self, at), tiny_result(e, at), -1, "self");
}

static void copy_item(tiny_emitter *e, uint32_t at) {
  write_unary(e, "tiny_copy_f32", tiny_list_operand(e, ARG_foreach_copy_src, at), tiny_result(e, at));
}

static void zero_item(tiny_emitter *e, uint32_t at) {
  fprintf(e->to, "  tiny_fill_f32(%lld, 0, %s);\n", (long long)tiny_numel(tiny_result(e, at)), tiny_out(e, at));
}

static void addcmul_item(tiny_emitter *e, uint32_t at) {
  const gr_view *to = tiny_result(e, at), *self = tiny_list_operand(e, ARG_foreach_addcmul_Scalar_self, at);
  const gr_view *a = tiny_list_operand(e, ARG_foreach_addcmul_Scalar_tensor1, at);
  const gr_view *b = tiny_list_operand(e, ARG_foreach_addcmul_Scalar_tensor2, at);
  tiny_need_same(e, self, to, "self");
  tiny_need_same(e, a, to, "tensor1");
  tiny_need_same(e, b, to, "tensor2");
  fprintf(e->to, "  tiny_addcmul_f32(%lld, %af, %s, %s, %s, %s);\n", (long long)tiny_numel(to),
          finite_f32(e, tiny_number(e, ARG_foreach_addcmul_Scalar_value), "value"),
          tiny_dense(e, self, GRAFT_F32, "self"), tiny_dense(e, a, GRAFT_F32, "tensor1"),
          tiny_dense(e, b, GRAFT_F32, "tensor2"), tiny_out(e, at));
}

static void emit_foreach_add(tiny_emitter *e) {
  each(e, add_item);
}
static void emit_foreach_sub(tiny_emitter *e) {
  each(e, sub_item);
}
static void emit_foreach_mul(tiny_emitter *e) {
  each(e, mul_item);
}
static void emit_foreach_scale(tiny_emitter *e) {
  each(e, scale_item);
}
static void emit_foreach_neg(tiny_emitter *e) {
  each(e, neg_item);
}
static void emit_foreach_copy(tiny_emitter *e) {
  each(e, copy_item);
}
static void emit_foreach_zero(tiny_emitter *e) {
  each(e, zero_item);
}
static void emit_foreach_addcmul(tiny_emitter *e) {
  each(e, addcmul_item);
}

const tiny_op tiny_lists[] = {{.id = ID_foreach_add_List, .kernels = TINY_ELEMENTS, .emit = emit_foreach_add},
                              {.id = ID_foreach_sub_List, .kernels = TINY_ELEMENTS, .emit = emit_foreach_sub},
                              {.id = ID_foreach_mul_List, .kernels = TINY_ELEMENTS, .emit = emit_foreach_mul},
                              {.id = ID_foreach_mul_Scalar, .kernels = TINY_ELEMENTS, .emit = emit_foreach_scale},
                              {.id = ID_foreach_neg, .kernels = TINY_ELEMENTS, .emit = emit_foreach_neg},
                              {.id = ID_foreach_copy, .kernels = TINY_ELEMENTS, .emit = emit_foreach_copy},
                              {.id = ID_foreach_zero, .kernels = TINY_ELEMENTS, .emit = emit_foreach_zero},
                              {.id = ID_foreach_addcmul_Scalar, .kernels = TINY_ELEMENTS, .emit = emit_foreach_addcmul},
                              {0}};
