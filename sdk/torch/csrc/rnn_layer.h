// One direction of a recurrent layer: graft::rnn_layer and its gradient. They are calls of libgraft, and ops of
// PyTorch's dispatcher, torch.ops.graft.rnn_layer and rnn_layer_backward, for whoever traces.
#pragma once

#include <ATen/Tensor.h>

#include <array>
#include <functional>
#include <optional>

#include "bridge.h"

namespace torch_graft {

// gates: what the inputs and their bias add to them, [steps, batch, gates * size]. cell and bias may be undefined.
struct Layer {
  at::Tensor gates, state, cell, weight, bias;
  const char *mode;
  bool reverse;
};

// How an op of PyTorch's takes one that may be undefined.
inline std::optional<at::Tensor> given(const at::Tensor &tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

using LayerResults = std::array<at::Tensor, 4>;  // undefined: one that the mode has not

// The output, the last state and cell, and the reserve, which a gradient takes.
LayerResults run_layer(const Layer &l, bool train);
// The gradients of the gates, of the part of them that weight and bias are multiplied into where that is another one,
// of state and cell. `grads` are those of the output, the last state and cell; any may be undefined.
LayerResults run_layer_backward(const Layer &l, c10::ArrayRef<at::Tensor> grads, const at::Tensor &output,
                                const at::Tensor &reserve);

// Whether a mode is there that wants to see PyTorch's own ops.
bool ops_are_watched();
// Whether the ops may have it: a tensor as it is, or what PyTorch has in its place while it traces.
bool is_taken(const at::Tensor &tensor);
// Who knows those in Python from other subclasses.
TORCH_GRAFT_API void on_stand_ins(std::function<bool(const at::Tensor &)> knows);

}  // namespace torch_graft
