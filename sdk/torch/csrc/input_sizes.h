// Which sizes inputs have whose sizes are open.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bridge.h"

namespace torch_graft {

// Open sizes, what follows from them, and the inputs that have them. Where a size may be open, an int64_t is a number
// or a name that libgraft gave.
class OpenSizes {
 public:
  void add_open(int64_t name, int64_t least, int64_t most);
  void add_formula(int64_t name, graft_size_op op, int64_t left, int64_t right);
  // No strides: contiguous.
  void add_input(std::vector<int64_t> sizes, std::vector<int64_t> strides);
  // Whether there are sizes for which the inputs lie so.
  bool fit(const std::vector<at::Tensor> &inputs) const;
  // Whether each open size is a dimension of an input as it stands.
  bool bound() const;

 private:
  struct Entry {
    graft_size_op op;  // 0: open
    int64_t left, right, least, most;
    std::optional<std::pair<size_t, size_t>> place;  // input and dimension
  };
  std::vector<Entry> entries_;
  std::unordered_map<int64_t, size_t> places_;  // of names
  std::vector<std::vector<int64_t>> sizes_, strides_;

  int64_t value(int64_t number, const std::vector<int64_t> &values) const;
  bool evaluate(const std::vector<at::Tensor> &inputs, std::vector<int64_t> &values) const;
};

}  // namespace torch_graft
