// What leaves the device: PyTorch's CPU kernels for ops that libgraft does not know, and the counts of both kinds.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "bridge.h"
#include "call.h"
#include "graph.h"
#include "replay.h"

namespace torch_graft {

namespace {

struct Key {
  std::string op, device, dtypes;
  bool operator<(const Key &other) const {
    return std::tie(op, device, dtypes) < std::tie(other.op, other.device, other.dtypes);
  }
};

std::mutex lock;
std::map<Key, uint64_t> &counts() {
  static auto *map = new std::map<Key, uint64_t>;  // outlives the threads that may still count
  return *map;
}
std::map<std::string, uint64_t> &forgotten() {  // libgraft's counts at the latest reset
  static auto *map = new std::map<std::string, uint64_t>;
  return *map;
}

// The tensors among the arguments, those in lists included.
using Tensors = c10::SmallVector<const at::Tensor *, 8>;

Tensors tensors_of(c10::ArrayRef<c10::IValue> arguments) {
  Tensors tensors;
  auto add = [&tensors](const c10::IValue &value) {
    if (value.isTensor() && value.toTensor().defined()) tensors.push_back(&value.toTensor());
  };
  for (const c10::IValue &value : arguments) {
    add(value);
    if (!value.isList()) continue;
    for (const c10::IValue &item : value.toListRef()) add(item);
  }
  return tensors;
}

// The device that the op was meant for: of a tensor, or for an op that makes one, its argument.
c10::Device device_of_call(c10::ArrayRef<c10::IValue> arguments, const Tensors &tensors) {
  for (const at::Tensor *tensor : tensors) {
    if (is_ours(*tensor)) return tensor->device();
  }
  for (const c10::IValue &value : arguments) {
    if (value.isDevice()) return value.toDevice();
  }
  return c10::Device(c10::kPrivateUse1, current_device());
}

Key key_of(const c10::OperatorHandle &op, const Tensors &tensors, c10::Device device) {
  Key key;
  key.op = c10::toString(op.operator_name());
  if (device.type() == c10::kPrivateUse1) key.device = graft_device_text(device_of(device));
  for (const at::Tensor *tensor : tensors) {
    if (!key.dtypes.empty()) key.dtypes += ',';
    const bool has_name = is_ours(*tensor) && tensor->layout() == c10::kStrided;
    key.dtypes += has_name ? graft_dtype_name(dtype_of(tensor->scalar_type())) : c10::toString(tensor->scalar_type());
  }
  return key;
}

bool is_generator(const c10::Argument &argument) {
  c10::TypePtr type = argument.type();
  if (auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == c10::TypeKind::GeneratorType;
}

// A CPU kernel takes a generator of the CPU. It gets one whose seed is drawn from the device's: equal seeds of the
// device give equal numbers, whatever the CPU has drawn.
void replace_generators(const c10::OperatorHandle &op, torch::jit::Stack *stack, c10::Device device) {
  const auto &arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); i++) {
    if (!is_generator(arguments[i])) continue;
    c10::IValue &value = torch::jit::peek(*stack, i, arguments.size());
    at::Generator ours = value.isNone() ? default_generator(device.index()) : value.toGenerator();
    generator_of(ours);  // throws for one of another device
    at::Tensor seed = at::empty({1}, at::TensorOptions(at::kLong).device(device)).random_(ours);
    value = at::detail::createCPUGenerator(static_cast<uint64_t>(seed.item<int64_t>()));
  }
}

void count(const Key &key) {
  std::lock_guard<std::mutex> guard(lock);
  uint64_t &times = counts()[key];
  if (times++ == 0 && graft_fallback_policy_get() == GRAFT_FALLBACK_WARN) {
    TORCH_WARN("graft: ", key.op, " (", key.dtypes, ") has no kernel for ", key.device,
               " and runs on the CPU; torch_graft.fallbacks() counts such calls, GRAFT_FALLBACK=error forbids them, "
               "GRAFT_FALLBACK=allow silences this");
  }
}

std::string row_key(const graft_fallback_info &row) {
  return std::to_string(row.op_id) + '|' + row.device + '|' + row.dtypes;
}

std::vector<graft_fallback_info> libgraft_rows() {
  std::vector<graft_fallback_info> rows(graft_fallbacks(nullptr, 0, 0));
  size_t have = graft_fallbacks(rows.data(), sizeof(graft_fallback_info), rows.size());
  rows.resize(std::min(rows.size(), have));
  return rows;
}

}  // namespace

bool fallback_forbidden() {
  return graft_fallback_policy_get() == GRAFT_FALLBACK_ERROR;
}

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  auto arguments = torch::jit::last(*stack, op.schema().arguments().size());
  Tensors tensors = tensors_of(arguments);
  check_same_device(tensors, op);
  c10::Device device = device_of_call(arguments, tensors);
  Key key = key_of(op, tensors, device);
  TORCH_CHECK_NOT_IMPLEMENTED(!fallback_forbidden(), "graft: ", key.op, " has no kernel for ", key.dtypes, " on ",
                              key.device.empty() ? "this device" : key.device,
                              ", and GRAFT_FALLBACK=error forbids running it on the CPU");
  TORCH_CHECK_NOT_IMPLEMENTED(!is_recording(), "graft: ", key.op, " (", key.dtypes,
                              ") has no kernel for the device and runs on the CPU, which a graph can't hold");
  TORCH_CHECK_NOT_IMPLEMENTED(device.type() != c10::kPrivateUse1 || !is_captured(device.index()), "graft: ", key.op,
                              " (", key.dtypes,
                              ") has no kernel for the device and runs on the CPU, which can't be captured");
  count(key);
  replace_generators(op, stack, device);
  at::native::cpu_fallback(op, stack);
}

std::vector<FallbackRow> fallbacks() {
  std::vector<FallbackRow> rows;
  std::lock_guard<std::mutex> guard(lock);
  for (const auto &[key, times] : counts()) rows.push_back({key.op, key.device, key.dtypes, "PyTorch CPU", times});
  for (const graft_fallback_info &row : libgraft_rows()) {
    auto before = forgotten().find(row_key(row));
    uint64_t times = row.count - (before == forgotten().end() ? 0 : before->second);
    if (times) rows.push_back({graft_op_name(row.op_id), row.device, row.dtypes, "host kernel", times});
  }
  return rows;
}

void reset_fallbacks() {
  std::lock_guard<std::mutex> guard(lock);
  counts().clear();
  for (const graft_fallback_info &row : libgraft_rows()) forgotten()[row_key(row)] = row.count;
}

}  // namespace torch_graft
