// Ops that plugins bring (extension graft.custom_ops), as torch.ops.VENDOR.name: on the device, on the CPU where the
// plugin has a reference function, and as a meta function, which is the plugin's infer. Gradients are Python's:
// _custom_ops.py.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "custom.h"
#include "graft/custom_ops.h"

namespace torch_graft {

namespace {

struct Custom {
  std::string name;     // "acme::scale_add"
  std::string letters;  // of its arguments; see OpRow
  OpRow row;
};

std::mutex mutex;
size_t known = 0;                       // of libgraft's rows
std::vector<torch::Library> libraries;  // registrations live as long as these
std::vector<std::unique_ptr<Custom>> customs;
CustomOps told;
std::function<void(const CustomOps &)> listener;

// --- calls ---

void push(torch::jit::Stack *stack, size_t nargs, std::vector<at::Tensor> results) {
  torch::jit::drop(*stack, nargs);
  for (at::Tensor &result : results) stack->emplace_back(std::move(result));
}

void add_args(CallFrame &frame, const Custom &custom, torch::jit::Stack *stack) {
  const size_t nargs = custom.letters.size();
  for (size_t i = 0; i < nargs; i++)
    frame.add_arg(value_of(frame, custom.row, custom.letters[i], torch::jit::peek(*stack, i, nargs)));
  TORCH_CHECK(!frame.many_dims, custom.name, ": tensors have at most ", GRAFT_MAX_DIMS, " dimensions");
}

void run_on_device(const Custom &custom, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  CallFrame frame;
  add_args(frame, custom, stack);
  check_same_device(frame.tensors(), op);
  frame.reserve_outs(op.schema().returns().size());
  check(graft_call(custom.row.op_id, frame.args, frame.nargs, frame.outs, frame.nouts));
  std::vector<at::Tensor> results;
  for (uint32_t i = 0; i < frame.nouts; i++) {
    graft_tensor *out = std::exchange(frame.outs[i], nullptr);
    results.push_back(out ? wrap(out) : at::Tensor());
  }
  push(stack, frame.nargs, std::move(results));
}

// Results as infer describes them; those that the call does not produce are undefined.
std::vector<at::Tensor> new_results(const Custom &custom, const CallFrame &frame, size_t count, c10::Device device) {
  std::vector<graft_meta> metas(count);
  std::vector<at::Tensor> results(count);
  uint32_t made = 0;
  check(graft_infer(custom.row.op_id, frame.args, frame.nargs, metas.data(), sizeof(graft_meta),
                    static_cast<uint32_t>(count), &made));
  for (size_t i = 0; i < count; i++) {
    if (!metas[i].dtype) continue;
    c10::IntArrayRef sizes(metas[i].sizes, static_cast<size_t>(metas[i].ndim));
    results[i] = at::empty(sizes, at::TensorOptions(scalar_type_of(metas[i].dtype)).device(device));
  }
  return results;
}

void run_on_cpu(const Custom &custom, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  CallFrame frame;
  add_args(frame, custom, stack);
  std::vector<at::Tensor> results = new_results(custom, frame, op.schema().returns().size(), c10::kCPU);
  for (const at::Tensor &result : results) frame.add_out(&result);
  check(graft_call(custom.row.op_id, frame.args, frame.nargs, frame.outs, frame.nouts));
  push(stack, frame.nargs, std::move(results));
}

// A tensor without memory. Sizes that torch.compile has left open become those of this trace.
struct Shape {
  explicit Shape(const at::Tensor &tensor) {
    for (const c10::SymInt &size : tensor.sym_sizes()) sizes.push_back(size.guard_int(__FILE__, __LINE__));
    for (const c10::SymInt &stride : tensor.sym_strides()) strides.push_back(stride.guard_int(__FILE__, __LINE__));
    graft_view view = {dtype_of(tensor.scalar_type()),
                       static_cast<int32_t>(sizes.size()),
                       sizes.data(),
                       strides.data(),
                       0,
                       false,
                       false};
    value = graft_tensor_borrow_host(&space, nullptr, 0, &view);
  }
  std::vector<int64_t> sizes, strides;
  graft_tensor_space space;
  graft_tensor *value;
};

void run_meta(const Custom &custom, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  CallFrame frame;
  std::deque<Shape> shapes;
  std::deque<std::vector<graft_tensor *>> lists;
  auto describe = [&shapes](const at::Tensor &tensor) {
    TORCH_CHECK(tensor.dim() <= GRAFT_MAX_DIMS, "tensors have at most ", GRAFT_MAX_DIMS, " dimensions");
    return shapes.emplace_back(tensor).value;
  };
  const size_t nargs = custom.letters.size();
  for (size_t i = 0; i < nargs; i++) {
    const c10::IValue &value = torch::jit::peek(*stack, i, nargs);
    if (value.isTensor() && value.toTensor().defined()) {
      frame.add_arg(graft_value_tensor(describe(value.toTensor())));
    } else if (custom.letters[i] == 'L') {
      auto &items = lists.emplace_back();
      for (const c10::IValue &item : value.toListRef())
        items.push_back(item.isNone() ? nullptr : describe(item.toTensor()));
      frame.add_arg(graft_value_tensors(items.data(), static_cast<uint32_t>(items.size())));
    } else {
      frame.add_arg(value_of(frame, custom.row, custom.letters[i], value));
    }
  }
  push(stack, nargs, new_results(custom, frame, op.schema().returns().size(), c10::kMeta));
}

// --- registration ---

char letter_of(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return 'T';
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return 'i';
    case c10::TypeKind::FloatType: return 'f';
    case c10::TypeKind::BoolType: return 'b';
    case c10::TypeKind::NumberType: return 's';
    case c10::TypeKind::StringType: return 'z';
    case c10::TypeKind::ScalarTypeType: return 'd';
    default: break;
  }
  auto list = type->cast<c10::ListType>();
  TORCH_CHECK(list, "a type that the bridge does not know: ", type->str());
  switch (letter_of(list->getElementType())) {
    case 'T': return 'L';
    case 'i': return 'I';
    case 'f': return 'F';
    case 's': return 'S';
    case 'b': return 'm';
    default: TORCH_CHECK(false, "a type that the bridge does not know: ", type->str());
  }
}

template <void (*kRun)(const Custom &, const c10::OperatorHandle &, torch::jit::Stack *)>
void implement(torch::Library &library, const std::string &name, c10::DispatchKey key, const Custom &custom) {
  auto kernel = std::make_unique<KernelOf<Custom, kRun>>(custom);
  library.impl(name.c_str(), torch::dispatch(key, torch::CppFunction::makeFromBoxedFunctor(std::move(kernel))));
}

// All of it or nothing: a library that goes out of scope takes back what it registered.
void define(const graft_custom_op_info &info) {
  auto custom = std::make_unique<Custom>();
  custom->name = graft_op_name(info.op_id);
  custom->row = {custom->name.c_str(), info.op_id, Form::Functional, "", "", false};
  const size_t colons = custom->name.find("::");
  const std::string space = custom->name.substr(0, colons), name = custom->name.substr(colons + 2);
  torch::Library library(torch::Library::FRAGMENT, space, std::nullopt, __FILE__, __LINE__);
  library.def((custom->name + std::strchr(info.schema, '(')).c_str(), {at::Tag::pt2_compliant_tag});
  const size_t dot = name.find('.');
  auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
      (space + "::" + name.substr(0, dot)).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
  for (const c10::Argument &argument : op.schema().arguments()) custom->letters += letter_of(argument.real_type());
  implement<run_on_device>(library, name, c10::DispatchKey::PrivateUse1, *custom);
  implement<run_on_cpu>(library, name, c10::DispatchKey::CPU, *custom);
  implement<run_meta>(library, name, c10::DispatchKey::Meta, *custom);
  customs.push_back(std::move(custom));
  libraries.push_back(std::move(library));
}

CustomOp describe(const graft_custom_op_info &info) {
  CustomOp op = {graft_op_name(info.op_id), info.plugin, info.gradient_id ? graft_op_name(info.gradient_id) : "", {}};
  for (size_t i = 0; i < customs.back()->letters.size(); i++) op.gradient_of.push_back(info.gradient_of[i]);
  return op;
}

// Below it PyTorch shows the place in the schema, or the stack.
std::string first_line(const std::exception &error) {
  const auto *own = dynamic_cast<const c10::Error *>(&error);
  std::string text = own ? own->what_without_backtrace() : error.what();
  text.erase(0, text.find_first_not_of('\n'));
  return text.substr(0, text.find('\n'));
}

// What PyTorch refuses is left out, and said. [locked]
CustomOps define_new(std::vector<std::string> &problems) {
  CustomOps fresh;
  std::vector<graft_custom_op_info> rows(graft_custom_ops(nullptr, sizeof(graft_custom_op_info), 0));
  graft_custom_ops(rows.data(), sizeof(graft_custom_op_info), rows.size());
  for (; known < rows.size(); known++) {
    try {
      define(rows[known]);
      fresh.push_back(describe(rows[known]));
    } catch (const std::exception &error) {  // somebody else has defined it, say
      problems.push_back(std::string("the op of the plugin ") + rows[known].plugin + ", " + rows[known].schema +
                         ", is not in torch.ops: " + first_line(error));
    }
  }
  told.insert(told.end(), fresh.begin(), fresh.end());
  return fresh;
}

}  // namespace

void register_custom_ops() {
  std::vector<std::string> problems;
  std::function<void(const CustomOps &)> tell;
  CustomOps fresh;
  {
    std::lock_guard<std::mutex> lock(mutex);
    fresh = define_new(problems);
    tell = listener;
  }
  if (tell && !fresh.empty()) tell(fresh);
  for (const std::string &problem : problems) TORCH_WARN("graft: ", problem);  // last: it may become an error
}

void on_custom_ops(std::function<void(const CustomOps &)> tell) {
  CustomOps all;
  {
    std::lock_guard<std::mutex> lock(mutex);
    listener = tell;
    all = told;
  }
  if (!all.empty()) tell(all);
}

}  // namespace torch_graft
