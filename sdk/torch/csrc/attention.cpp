// Attention: the fused op, which PyTorch asks about through a choice stub and whose results no row can describe, and
// the fast path of nn.MultiheadAttention and nn.TransformerEncoderLayer, composed of ops that any plugin has.
#include <ATen/TensorOperators.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_transformer_encoder_layer_fwd_native.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <torch/library.h>

#include <array>
#include <cmath>

#include "graft/abi/op_ids.h"
#include "hot.h"

namespace torch_graft {

namespace {

using std::optional;

constexpr uint32_t kForward = GRAFT_OP_SCALED_DOT_PRODUCT_FUSED_ATTENTION_OVERRIDEABLE;
constexpr uint32_t kBackward = GRAFT_OP_SCALED_DOT_PRODUCT_FUSED_ATTENTION_OVERRIDEABLE_BACKWARD;

// --- which kernel ---

bool is_served(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value) {
  static const bool known = graft_op_known(kForward) && graft_op_known(kBackward);
  for (const at::Tensor *t : {&query, &key, &value}) {
    if (!known || !is_ours(*t) || t->dim() != 4 || t->scalar_type() != query.scalar_type()) return false;
  }
  // Sizes may be symbols of a trace.
  bool same_heads = query.sym_size(1) == key.sym_size(1) && key.sym_size(1) == value.sym_size(1);
  bool same_batch = query.sym_size(0) == key.sym_size(0) && key.sym_size(0) == value.sym_size(0);
  bool any = query.sym_numel() != 0 && key.sym_numel() != 0 && value.sym_numel() != 0;
  return same_heads && same_batch && query.is_floating_point() && any;
}

int64_t choose(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const optional<at::Tensor> &,
               double, bool, optional<double>, bool) {
  auto backend = is_served(query, key, value) ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math;
  return static_cast<int64_t>(backend);
}

// --- the fused op ---

using FusedResults = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
                                at::Tensor, at::Tensor>;

FusedResults fused_attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                             const optional<at::Tensor> &bias, double dropout, bool is_causal, bool debug_mask,
                             optional<double> scale) {
  CallFrame frame;
  auto add = [&](const auto &argument) {
    graft_value value = {};
    set(frame, value, argument);
    frame.add_arg(value);
  };
  add(query), add(key), add(value), add(bias), add(dropout), add(is_causal), add(debug_mask), add(scale);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_scaled_dot_product_fused_attention_overrideable", "");
  check_same_device(frame.tensors(), op);
  frame.reserve_outs(std::tuple_size_v<FusedResults>);
  check(graft_call(kForward, frame.args, frame.nargs, frame.outs, frame.nouts));
  auto take = [&](uint32_t i) {
    graft_tensor *out = std::exchange(frame.outs[i], nullptr);
    return out ? wrap(out) : at::Tensor();
  };
  return {take(0), take(1), take(2), take(3), query.sym_size(2), key.sym_size(2), take(6), take(7), take(8)};
}

// --- the fast path ---

// What a mask hides, shaped like the scores [batch, heads, queries, keys].
at::Tensor hidden(const at::Tensor &mask, optional<int64_t> kind, const at::Tensor &scores) {
  at::Tensor hides = mask.scalar_type() == at::kBool ? mask : mask.to(at::kBool);
  if (hides.dim() == 4) return hides;
  bool of_keys = kind ? *kind == 1 : hides.size(0) == scores.size(0) && hides.size(-2) != scores.size(2);
  return of_keys ? hides.view({scores.size(0), 1, 1, scores.size(3)}) : hides;
}

at::Tensor heads_of(const at::Tensor &x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

std::array<at::Tensor, 3> project(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value,
                                  const at::Tensor &weight, const at::Tensor &bias) {
  if (key.is_same(query) && value.is_same(query)) {
    auto parts = at::linear(query, weight, bias).chunk(3, -1);
    return {parts[0], parts[1], parts[2]};
  }
  auto weights = weight.chunk(3), biases = bias.chunk(3);
  return {at::linear(query, weights[0], biases[0]), at::linear(key, weights[1], biases[1]),
          at::linear(value, weights[2], biases[2])};
}

std::tuple<at::Tensor, at::Tensor> multi_head_attention(const at::Tensor &query, const at::Tensor &key,
                                                        const at::Tensor &value, int64_t width, int64_t heads,
                                                        const at::Tensor &qkv_weight, const at::Tensor &qkv_bias,
                                                        const at::Tensor &out_weight, const at::Tensor &out_bias,
                                                        const optional<at::Tensor> &mask, bool need_weights,
                                                        bool average_weights, optional<int64_t> mask_kind) {
  TORCH_CHECK(query.dim() == 3 && query.size(2) == width, "expected a query of [batch, length, ", width, "], got ",
              query.sizes());
  auto [q, k, v] = project(query, key, value, qkv_weight, qkv_bias);
  double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  at::Tensor scores = at::matmul(heads_of(q, heads) * scale, heads_of(k, heads).transpose(-2, -1));
  if (mask && mask->defined()) scores = scores.masked_fill(hidden(*mask, mask_kind, scores), -INFINITY);
  at::Tensor weights = at::softmax(scores, -1);
  at::Tensor mixed = at::matmul(weights, heads_of(v, heads)).transpose(1, 2).flatten(2);
  at::Tensor out = at::linear(mixed, out_weight, out_bias);
  if (!need_weights) return {out, at::Tensor()};
  return {out, average_weights ? weights.mean(1) : weights};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(fused_attention));
  m.impl("_native_multi_head_attention", TORCH_FN(multi_head_attention));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(at::native::transformer_encoder_layer_forward));
}

}  // namespace torch_graft

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_graft::choose)
}
