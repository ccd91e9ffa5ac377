// Ops that plugins bring, and what of the boxed path they share.
#pragma once

#include "call.h"

namespace torch_graft {

// An argument of PyTorch's stack as what its letter says (OpRow); call.cpp.
graft_value value_of(CallFrame &frame, const OpRow &row, char letter, const c10::IValue &from);

// An op that a plugin brought, for whoever gives it its gradients.
struct CustomOp {
  std::string name, plugin;      // "acme::scale_add"
  std::string gradient;          // the name of its gradient op; empty: it has none
  std::vector<int> gradient_of;  // for each argument the result of the gradient op that is its; -1: none
};
using CustomOps = std::vector<CustomOp>;
// Makes the ops of plugins that were opened since the last call known to PyTorch; a problem is a warning. Called with
// no lock held.
void register_custom_ops();
// Who is told of them, now of those that are there, later of the others.
TORCH_GRAFT_API void on_custom_ops(std::function<void(const CustomOps &)> listener);

}  // namespace torch_graft
