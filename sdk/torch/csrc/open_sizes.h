// Recordings whose sizes are open: one graph serves all sizes. What is recorded is libgraft's own calls, since what its
// graphs follow to other sizes are its tensors; torch_graft/_open_sizes.py says which those are.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph.h"

namespace torch_graft {

// What a call of such a recording takes and gives.
class TORCH_GRAFT_API OpenValue {
 public:
  explicit OpenValue(graft_tensor *own) : tensor_(own), owned_(true) {}
  explicit OpenValue(const at::Tensor &constant) : kept_(constant), tensor_(borrow(&space_, kept_)) {}
  ~OpenValue();
  OpenValue(const OpenValue &) = delete;
  OpenValue &operator=(const OpenValue &) = delete;

  graft_tensor *get() const { return tensor_; }
  std::vector<int64_t> sizes() const;
  std::vector<int64_t> strides() const;
  c10::ScalarType dtype() const;

 private:
  at::Tensor kept_;
  graft_tensor_space space_ = {};
  graft_tensor *tensor_;
  bool owned_ = false;
};
using OpenValuePtr = std::shared_ptr<OpenValue>;

class TORCH_GRAFT_API OpenRecording : public GraphRecording {
 public:
  using GraphRecording::GraphRecording;

  int64_t size(const std::string &name, int64_t example, int64_t least, int64_t most);
  int64_t size_of(graft_size_op op, int64_t left, int64_t right);
  // No strides: contiguous.
  OpenValuePtr input(const std::string &name, const at::Tensor &like, const std::vector<int64_t> &sizes,
                     const std::vector<int64_t> &strides);
  // An op of libgraft. `kinds` has a letter for each argument, as OpRow has; a size may stand where a whole number
  // does, and a tensor is its number among `tensors`, -1 where it is absent. What is `given` is written to.
  std::vector<OpenValuePtr> call(const std::string &op, const std::string &kinds, const std::vector<c10::IValue> &args,
                                 const std::vector<OpenValuePtr> &tensors, const std::vector<OpenValuePtr> &given);
  void output(const std::string &name, const OpenValue &value);
  std::shared_ptr<CompiledGraph> compile(const std::optional<std::string> &passes) const;

 private:
  std::vector<OpenValuePtr> values_;  // of inputs
};

}  // namespace torch_graft
