// What the bridge registers with PyTorch: the generated rows, what is refused, and the fallback for the rest. The same
// for all plugins; see codegen/ and docs/pytorch_routes.md.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_nested_tensor_size_native.h>
#include <ATen/ops/_nested_tensor_storage_offsets_native.h>
#include <ATen/ops/_nested_tensor_strides_native.h>
#include <torch/library.h>

#include <cstring>
#include <memory>

#include "generated/hot_kernels.h"

namespace torch_graft {

const OpRow kOpRows[] = {
#include "generated/registrations.inc"
};
const size_t kOpRowCount = sizeof kOpRows / sizeof *kOpRows;

namespace {

// --- rows ---

std::optional<c10::OperatorHandle> find(const char *name) {
  const char *dot = std::strchr(name, '.');
  std::string base = dot ? std::string(name, dot) : name;
  return c10::Dispatcher::singleton().findSchema({"aten::" + base, dot ? dot + 1 : ""});
}

// Signs stand for arguments of the op that the overload has not.
bool is_sign(char letter) {
  return std::strchr("0~=@#", letter);
}

bool takes(char letter, c10::TypePtr type) {
  if (letter == '-') return true;
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  bool is_list = type->kind() == c10::TypeKind::ListType, is_tensor = type->kind() == c10::TypeKind::TensorType;
  if (is_out(letter)) return is_list || is_tensor;
  return is_list == !!std::strchr("LxIFSm", letter) && is_tensor == (letter == 'T');
}

// The rows follow PyTorch 2.13; in another version an overload may have other arguments.
bool fits(const OpRow &row, const c10::FunctionSchema &schema) {
  const auto &arguments = schema.arguments();
  size_t position = 0;
  for (const char *letter = row.args; *letter; letter++) {
    if (is_sign(*letter)) continue;
    if (position == arguments.size() || !takes(*letter, arguments[position].type())) return false;
    position++;
  }
  return position == arguments.size();
}

// An op without a rule in libgraft would only fail: PyTorch's composite or the fallback serve it.
bool is_served(const OpRow &row) {
  if (!graft_op_known(row.op_id)) return false;
  auto op = find(row.name);
  return op && fits(row, op->schema());
}

torch::CppFunction kernel_of(const OpRow &row) {
  for (const HotRow &hot : kHotRows) {
    if (!std::strcmp(hot.name, row.name)) return hot.make(row);
  }
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RowKernel>(row));
}

// --- refusals ---

struct Refusal {
  const char *name;
  const char *layout;  // that Graft has not,
  const char *owner;   // or the device types that PyTorch has the overload for
};

constexpr Refusal kRefusals[] = {
#include "generated/refusals.inc"
};

[[noreturn]] void refuse_layout(const char *layout, const c10::OperatorHandle &op) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "graft: ", layout, " tensors are not supported (", op.operator_name(),
                              "); use a dense tensor");
}

class RefusalKernel final : public c10::OperatorKernel {
 public:
  explicit RefusalKernel(const Refusal &refusal) : refusal_(refusal) {}
  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *) {
    if (refusal_.layout) refuse_layout(refusal_.layout, op);
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graft: ", op.operator_name(), " is an op of ", refusal_.owner, " alone");
  }

 private:
  const Refusal &refusal_;
};

template <const char *layout>
void refuse_key(const c10::OperatorHandle &op, torch::jit::Stack *) {
  refuse_layout(layout, op);
}

// Layouts that some ops take; see sparse.cpp.
template <const char *layout>
void refuse_op(const c10::OperatorHandle &op, torch::jit::Stack *) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "graft: ", op.operator_name(), " does not support ", layout,
                              " tensors; use a dense tensor, by to_dense()");
}

constexpr char kCoo[] = "sparse COO", kCompressed[] = "sparse compressed", kNested[] = "nested",
               kQuantized[] = "quantized";

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const OpRow &row : kOpRows) {
    if (is_served(row)) m.impl(row.name, kernel_of(row));
  }
  for (const Refusal &refusal : kRefusals) {
    if (!find(refusal.name)) continue;
    m.impl(refusal.name, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RefusalKernel>(refusal)));
  }
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_op<kCoo>>());
}
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_op<kCompressed>>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_key<kNested>>());
}
// Autograd asks for these where no exception may come from: of a nested tensor that is made of what requires a
// gradient.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_size", TORCH_FN(at::native::_nested_tensor_size));
  m.impl("_nested_tensor_storage_offsets", TORCH_FN(at::native::_nested_tensor_storage_offsets));
  m.impl("_nested_tensor_strides", TORCH_FN(at::native::_nested_tensor_strides));
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_key<kQuantized>>());
}

}  // namespace torch_graft
