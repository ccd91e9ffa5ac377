// See input_sizes.h.
#include "input_sizes.h"

#include <algorithm>

namespace torch_graft {

void OpenSizes::add_open(int64_t name, int64_t least, int64_t most) {
  places_[name] = entries_.size();
  entries_.push_back({0, 0, 0, least, most, std::nullopt});
}

void OpenSizes::add_formula(int64_t name, graft_size_op op, int64_t left, int64_t right) {
  places_[name] = entries_.size();
  entries_.push_back({op, left, right, 0, 0, std::nullopt});
}

void OpenSizes::add_input(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  for (size_t d = 0; d < sizes.size(); d++) {
    auto place = places_.find(sizes[d]);
    if (place != places_.end() && !entries_[place->second].place) entries_[place->second].place = {sizes_.size(), d};
  }
  sizes_.push_back(std::move(sizes));
  strides_.push_back(std::move(strides));
}

bool OpenSizes::bound() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry &entry) { return entry.op || entry.place; });
}

namespace {

// Whether there is such a number.
bool compute(graft_size_op op, int64_t a, int64_t b, int64_t *to) {
  const bool divides = b != 0 && !(a == INT64_MIN && b == -1);
  const int64_t rest = divides ? a % b : 0, quotient = divides ? a / b - (rest && (rest < 0) != (b < 0)) : 0;
  switch (op) {
    case GRAFT_SIZE_ADD: return !__builtin_add_overflow(a, b, to);
    case GRAFT_SIZE_SUB: return !__builtin_sub_overflow(a, b, to);
    case GRAFT_SIZE_MUL: return !__builtin_mul_overflow(a, b, to);
    case GRAFT_SIZE_DIV: *to = quotient; return divides;
    case GRAFT_SIZE_MOD: *to = a - quotient * b; return divides;
    case GRAFT_SIZE_MIN: *to = std::min(a, b); return true;
    default: *to = std::max(a, b); return true;
  }
}

}  // namespace

int64_t OpenSizes::value(int64_t number, const std::vector<int64_t> &values) const {
  auto place = places_.find(number);
  return place == places_.end() ? number : values[place->second];
}

bool OpenSizes::evaluate(const std::vector<at::Tensor> &inputs, std::vector<int64_t> &values) const {
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry &entry = entries_[i];
    if (entry.op) {
      if (!compute(entry.op, value(entry.left, values), value(entry.right, values), &values[i])) return false;
      continue;
    }
    const auto [input, dim] = *entry.place;
    if (static_cast<size_t>(inputs[input].dim()) != sizes_[input].size()) return false;
    values[i] = inputs[input].size(static_cast<int64_t>(dim));
    if (values[i] < entry.least || values[i] > entry.most) return false;
  }
  return true;
}

bool OpenSizes::fit(const std::vector<at::Tensor> &inputs) const {
  std::vector<int64_t> values(entries_.size());
  if (!evaluate(inputs, values)) return false;
  for (size_t i = 0; i < inputs.size(); i++) {
    auto sizes = inputs[i].sizes(), strides = inputs[i].strides();
    if (sizes.size() != sizes_[i].size()) return false;
    const bool dense = strides_[i].empty();
    if (dense && !inputs[i].is_contiguous()) return false;
    for (size_t d = 0; d < sizes.size(); d++) {
      if (sizes[d] != value(sizes_[i][d], values)) return false;
      if (!dense && sizes[d] > 1 && strides[d] != value(strides_[i][d], values)) return false;
    }
  }
  return true;
}

}  // namespace torch_graft
