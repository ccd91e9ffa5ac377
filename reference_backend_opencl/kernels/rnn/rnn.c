/* Recurrent cells and their gradients; layer.c has whole layers. */
#include "kernels/core/direct.h"

/* As rnn.cl counts them. */
enum { LSTM, GRU };

typedef struct cell {
  int op;
  bool bias, grad_hy, grad_cy;
} cell;

static void write_head(ocl_text *head, const void *of) {
  const cell *c = of;
  ocl_text_add(head, "#define OP %d\n#define HAS_BIAS %d\n#define HAS_GRAD_HY %d\n#define HAS_GRAD_CY %d\n", c->op,
               c->bias, c->grad_hy, c->grad_cy);
}

static int64_t units_of(const graft_tensor_desc *state, unsigned lanes) {
  return state->dl.shape[0] * ocl_ceil_divide(state->dl.shape[1], lanes);
}

enum { FORWARD_PLACES = 8, BACKWARD_PLACES = 10 };

static graft_status forward(const graft_exec *exec, int op, const graft_tensor_desc *const places[FORWARD_PLACES]) {
  const graft_tensor_desc *state = places[5];
  cell c = {op, places[6] != NULL, false, false};
  const unsigned lanes = ocl_direct_lanes(exec->device);
  ocl_direct call = {.file = "core/direct core/exp rnn/rnn",
                     .dtype = state->dl.dtype,
                     .head = write_head,
                     .of = &c,
                     .numbers = state->dl.shape,
                     .count = 2,
                     .lanes = lanes,
                     .places = FORWARD_PLACES};
  call.stages[0] = (ocl_stage){.entry = "cell", .units = units_of(state, lanes)};
  for (int i = 0; i < FORWARD_PLACES; i++) call.stages[0].places[i] = ocl_place_of(places[i]);
  return ocl_direct_run(exec, &call);
}

static graft_status backward(const graft_exec *exec, int op, const graft_tensor_desc *const places[BACKWARD_PLACES]) {
  const graft_tensor_desc *state = places[2];
  cell c = {op, places[3] != NULL, places[5] != NULL, places[6] != NULL};
  const unsigned lanes = ocl_direct_lanes(exec->device);
  ocl_direct call = {.file = "core/direct core/exp rnn/rnn",
                     .dtype = state->dl.dtype,
                     .head = write_head,
                     .of = &c,
                     .numbers = state->dl.shape,
                     .count = 2,
                     .lanes = lanes,
                     .places = BACKWARD_PLACES};
  call.stages[0] = (ocl_stage){.entry = "cell_backward", .units = units_of(state, lanes)};
  call.stages[1] =
      (ocl_stage){.entry = "bias_backward", .units = c.bias ? ocl_ceil_divide(state->dl.shape[1], lanes) : 0};
  for (int i = 0; i < BACKWARD_PLACES; i++) {
    call.stages[0].places[i] = call.stages[1].places[i] = ocl_place_of(places[i]);
  }
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_thnn_fused_lstm_cell(const graft_exec *exec, const graft_args_thnn_fused_lstm_cell *args) {
  return forward(exec, LSTM,
                 (const graft_tensor_desc *const[]){args->out0, args->out1, args->out2, args->input_gates,
                                                    args->hidden_gates, args->cx, args->input_bias, args->hidden_bias});
}

graft_status ocl_op_thnn_fused_gru_cell(const graft_exec *exec, const graft_args_thnn_fused_gru_cell *args) {
  return forward(exec, GRU,
                 (const graft_tensor_desc *const[]){args->out0, NULL, args->out1, args->input_gates, args->hidden_gates,
                                                    args->hx, args->input_bias, args->hidden_bias});
}

graft_status ocl_op_thnn_fused_lstm_cell_backward_impl(const graft_exec *exec,
                                                       const graft_args_thnn_fused_lstm_cell_backward_impl *args) {
  return backward(exec, LSTM,
                  (const graft_tensor_desc *const[]){args->out0, NULL, args->out1, args->out2, NULL, args->grad_hy,
                                                     args->grad_cy, args->cx, args->cy, args->workspace});
}

graft_status ocl_op_thnn_fused_gru_cell_backward(const graft_exec *exec,
                                                 const graft_args_thnn_fused_gru_cell_backward *args) {
  return backward(exec, GRU,
                  (const graft_tensor_desc *const[]){args->out0, args->out1, args->out2, args->out3, args->out4,
                                                     args->grad_hy, NULL, NULL, NULL, args->workspace});
}

static const ocl_op ops[] = {
    {OCL_OP(thnn_fused_lstm_cell), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(thnn_fused_lstm_cell_backward_impl), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(thnn_fused_gru_cell), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(thnn_fused_gru_cell_backward), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(rnn_layer), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(rnn_layer_backward), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED},
};
OCL_HEAVY_FAMILY(rnn, ops)
