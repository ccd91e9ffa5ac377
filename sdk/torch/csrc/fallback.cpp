// What leaves the device: PyTorch's CPU kernels for ops that libgraft does not know, and the counts of both kinds.
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "bridge.h"
#include "call.h"

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

void note(const at::Tensor &tensor, Key *key) {
  if (!tensor.defined()) return;
  if (!key->dtypes.empty()) key->dtypes += ',';
  key->dtypes += is_ours(tensor) && tensor.layout() == c10::kStrided ? graft_dtype_name(dtype_of(tensor.scalar_type()))
                                                                     : c10::toString(tensor.scalar_type());
  if (key->device.empty() && is_ours(tensor)) key->device = graft_device_text(device_of(tensor.device()));
}

Key key_of(const c10::OperatorHandle &op, const torch::jit::Stack *stack) {
  Key key;
  key.op = c10::toString(op.operator_name());
  const size_t nargs = op.schema().arguments().size();
  for (size_t i = 0; i < nargs; i++) {
    const c10::IValue &value = torch::jit::peek(*stack, i, nargs);
    if (value.isTensor()) note(value.toTensor(), &key);
    if (value.isDevice() && key.device.empty()) key.device = graft_device_text(device_of(value.toDevice()));
    if (!value.isList()) continue;
    for (const c10::IValue &item : value.toListRef()) {
      if (item.isTensor()) note(item.toTensor(), &key);
    }
  }
  return key;
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
  std::vector<graft_fallback_info> rows(graft_fallbacks(nullptr, 0));
  size_t have = graft_fallbacks(rows.data(), rows.size());
  rows.resize(std::min(rows.size(), have));
  return rows;
}

}  // namespace

bool fallback_forbidden() {
  return graft_fallback_policy_get() == GRAFT_FALLBACK_ERROR;
}

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  Key key = key_of(op, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(!fallback_forbidden(), "graft: ", key.op, " has no kernel for ", key.dtypes, " on ",
                              key.device.empty() ? "this device" : key.device,
                              ", and GRAFT_FALLBACK=error forbids running it on the CPU");
  count(key);
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
