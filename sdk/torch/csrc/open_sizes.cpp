// Recordings whose sizes are open; see open_sizes.h.
#include "open_sizes.h"

#include <deque>

#include "call.h"

namespace torch_graft {

// --- values ---

OpenValue::~OpenValue() {
  if (owned_) graft_tensor_release(tensor_);
}

static std::vector<int64_t> dims_of(const graft_tensor *tensor, const int64_t *dims) {
  return {dims, dims + graft_tensor_ndim(tensor)};
}

std::vector<int64_t> OpenValue::sizes() const {
  return dims_of(tensor_, graft_tensor_sizes(tensor_));
}

std::vector<int64_t> OpenValue::strides() const {
  return dims_of(tensor_, graft_tensor_strides(tensor_));
}

c10::ScalarType OpenValue::dtype() const {
  return scalar_type_of(graft_tensor_dtype(tensor_));
}

// --- arguments ---

namespace {

// Arguments of a call, and the lists that they point to.
struct Arguments {
  const std::vector<OpenValuePtr> &given;
  std::vector<graft_value> values;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
  std::deque<std::vector<uint8_t>> masks;
  std::deque<std::vector<graft_tensor *>> tensors;
  std::deque<std::string> texts;
};

graft_tensor *tensor_at(const Arguments &arguments, int64_t number) {
  return number < 0 ? nullptr : arguments.given.at(static_cast<size_t>(number))->get();
}

using Fields = decltype(graft_value::as);

template <typename Item>
graft_value list_of(std::deque<std::vector<Item>> &room, graft_value_kind kind, std::vector<Item> items,
                    const Item *Fields::*field) {
  room.push_back(std::move(items));
  graft_value value = {};
  value.kind = kind;
  value.count = static_cast<uint32_t>(room.back().size());
  value.as.*field = room.back().data();
  return value;
}

graft_value tensors_of(Arguments &to, const c10::IValue &numbers) {
  to.tensors.emplace_back();
  for (int64_t number : numbers.toIntVector()) to.tensors.back().push_back(tensor_at(to, number));
  return graft_value_tensors(to.tensors.back().data(), static_cast<uint32_t>(to.tensors.back().size()));
}

graft_value mask_of(Arguments &to, const c10::IValue &list) {
  std::vector<uint8_t> mask;
  for (const bool each : list.toBoolList()) mask.push_back(each);
  return list_of(to.masks, GRAFT_VALUE_MASK, std::move(mask), &Fields::mask);
}

graft_value value_of(Arguments &to, char kind, const c10::IValue &item, graft_rt_device *device) {
  graft_value value = {};
  if (kind == '-' || item.isNone()) return value;
  switch (kind) {
    case 'T': return graft_value_tensor(tensor_at(to, item.toInt()));
    case 'L': return tensors_of(to, item);
    case 'i': return graft_value_int(item.toInt());
    case 'b': return graft_value_bool(item.toBool());
    case 's': return graft_value_scalar(scalar_of(item.toScalar()));
    case 'I': return list_of(to.ints, GRAFT_VALUE_INTS, item.toIntVector(), &Fields::ints);
    case 'F': return list_of(to.floats, GRAFT_VALUE_FLOATS, item.toDoubleVector(), &Fields::floats);
    case 'm': return mask_of(to, item);
    case 'f':
      value.kind = GRAFT_VALUE_FLOAT;
      value.as.f = item.toDouble();
      return value;
    case 'z':
      to.texts.push_back(item.toStringRef());
      check_no_nul(to.texts.back());
      value.kind = GRAFT_VALUE_STR;
      value.as.str = to.texts.back().c_str();
      return value;
    case 'd':
      value.kind = GRAFT_VALUE_DTYPE;
      value.as.dtype = dtype_of(item.toScalarType());
      return value;
    case 'M':
      value.kind = GRAFT_VALUE_MEMORY_FORMAT;
      value.as.i = memory_format_of(item.toMemoryFormat());
      return value;
    case 'V':
      value.kind = GRAFT_VALUE_DEVICE;
      value.as.device = device;
      return value;
    default: TORCH_CHECK(false, "graft: no argument is of kind '", kind, "'");
  }
}

}  // namespace

// --- recording ---

int64_t OpenRecording::size(const std::string &name, int64_t example, int64_t least, int64_t most) {
  int64_t made = 0;
  check(graft_graph_size(graph_, name.c_str(), example, least, most, &made));
  return made;
}

int64_t OpenRecording::size_of(graft_size_op op, int64_t left, int64_t right) {
  int64_t made = 0;
  check(graft_graph_size_of(graph_, op, left, right, &made));
  return made;
}

OpenValuePtr OpenRecording::input(const std::string &name, const at::Tensor &like, const std::vector<int64_t> &sizes,
                                  const std::vector<int64_t> &strides) {
  check_name(name);
  TORCH_CHECK(is_recordable(like, index_) && !like.is_conj() && !like.is_neg(), "graft: ", name,
              " can't be the input of a graph with open sizes");
  graft_tensor *made = nullptr;
  check(graft_graph_input(graph_, name.c_str(), dtype_of(like.scalar_type()), static_cast<int32_t>(sizes.size()),
                          sizes.data(), strides.empty() ? nullptr : strides.data(), &made));
  values_.push_back(std::make_shared<OpenValue>(made));
  inputs_.emplace_back(like);
  return values_.back();
}

std::vector<OpenValuePtr> OpenRecording::call(const std::string &op, const std::string &kinds,
                                              const std::vector<c10::IValue> &args,
                                              const std::vector<OpenValuePtr> &tensors,
                                              const std::vector<OpenValuePtr> &given) {
  Arguments arguments{tensors, {}, {}, {}, {}, {}, {}};
  const uint32_t id = graft_op_find(op.c_str());
  TORCH_CHECK(id, "graft: libgraft has no op ", op);
  for (size_t i = 0; i < kinds.size(); i++)
    arguments.values.push_back(value_of(arguments, kinds[i], args.at(i), device_of(index_)));
  std::vector<graft_tensor *> outs;
  for (const OpenValuePtr &out : given) outs.push_back(out ? out->get() : nullptr);
  const auto nouts = static_cast<uint32_t>(outs.size());
  check(graft_call(id, arguments.values.data(), static_cast<uint32_t>(arguments.values.size()), outs.data(), nouts));
  std::vector<OpenValuePtr> results = given;
  for (size_t i = 0; i < outs.size(); i++) {
    if (!given[i] && outs[i]) results[i] = std::make_shared<OpenValue>(outs[i]);
  }
  return results;
}

void OpenRecording::output(const std::string &name, const OpenValue &value) {
  check_name(name);
  check(graft_graph_output(graph_, name.c_str(), value.get()));
  for (size_t i = 0; i < inputs_.size(); i++)
    inputs_[i].viewed |= graft_tensor_storage(value.get()) == graft_tensor_storage(values_[i]->get());
}

std::shared_ptr<CompiledGraph> OpenRecording::compile(const std::optional<std::string> &passes) const {
  std::vector<GraphInput> inputs = inputs_;
  const std::vector<bool> is_written = written();
  for (size_t i = 0; i < inputs.size(); i++) inputs[i].written = is_written[i];
  Modes modes;
  graft_graph_exec *exec = nullptr;
  check(graft_graph_compile(graph_, device_of(index_), passes ? passes->c_str() : nullptr, &exec));
  return std::make_shared<CompiledGraph>(exec, index_, std::move(inputs), graft_graph_output_count(graph_),
                                         /*is_open=*/true);
}

}  // namespace torch_graft
