// The boxed path of every op: PyTorch's stack to graft_call and back.
#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstring>

#include "bridge.h"
#include "call.h"

namespace torch_graft {

int64_t memory_format_of(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous: return GRAFT_FORMAT_CONTIGUOUS;
    case c10::MemoryFormat::Preserve: return GRAFT_FORMAT_PRESERVE;
    case c10::MemoryFormat::ChannelsLast: return GRAFT_FORMAT_CHANNELS_LAST;
    case c10::MemoryFormat::ChannelsLast3d: return GRAFT_FORMAT_CHANNELS_LAST_3D;
    default: return GRAFT_FORMAT_DEFAULT;
  }
}

namespace {

[[noreturn]] void raise_kind(const OpRow &row, char letter, const c10::IValue &value) {
  TORCH_CHECK(false, "graft: aten::", row.name, " was given ", value.tagKind(), " where its row says '", letter, "'");
}

// A tensor of the CPU without dimensions, which stands for a number: as it is where the op takes it so.
graft_tensor *borrow_number(CallFrame &frame, const at::Tensor &tensor) {
  frame.has_numbers = true;
  return frame.borrow(frame.numbers_on_device ? frame.keep(tensor.to(*frame.numbers_on_device)) : tensor);
}

bool is_number(const at::Tensor &tensor) {
  return tensor.device().is_cpu() && tensor.dim() == 0;
}

// A tensor, or a Python number in its place.
graft_value tensor_value(CallFrame &frame, const at::Tensor &tensor) {
  graft_value value = {};
  if (!tensor.defined()) return value;
  value.kind = GRAFT_VALUE_TENSOR;
  if (C10_LIKELY(!is_number(tensor))) {
    value.as.tensor = frame.borrow(tensor);
  } else if (frame.numbers_on_device || !tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    value.as.tensor = borrow_number(frame, tensor);
  } else {
    value.kind = GRAFT_VALUE_SCALAR;
    value.as.scalar = scalar_of(tensor.item());
    frame.has_numbers = true;
  }
  return value;
}

// A number where the op takes a tensor. Some ops take the number too.
graft_value number_value(CallFrame &frame, const c10::Scalar &number) {
  graft_value value = {};
  if (frame.numbers_on_device) {
    value.kind = GRAFT_VALUE_TENSOR;
    value.as.tensor = frame.borrow(frame.keep(c10::scalar_to_tensor(number).to(*frame.numbers_on_device)));
  } else {
    value.kind = GRAFT_VALUE_SCALAR;
    value.as.scalar = scalar_of(number);
    frame.has_numbers = true;
  }
  return value;
}

graft_tensor *item_value(CallFrame &frame, const at::Tensor &item) {
  return is_number(item) ? borrow_number(frame, item) : frame.borrow(item);
}

// Indices may be on the CPU whatever is indexed.
graft_tensor *index_value(CallFrame &frame, const at::Tensor &item) {
  if (item.scalar_type() == c10::ScalarType::Byte)
    TORCH_WARN("indexing with a mask of dtype torch.uint8 is deprecated, please use torch.bool instead.");
  if (is_ours(item)) return item_value(frame, item);
  return frame.borrow(frame.keep(item.to(frame.tensors()[0]->device())));
}

template <typename Of>
graft_value tensors_value(CallFrame &frame, const c10::IValue &list, Of of) {
  graft_value value = {};
  value.kind = GRAFT_VALUE_TENSORS;
  auto items = list.toListRef();
  graft_tensor **tensors = frame.list<graft_tensor *>(items.size());
  for (size_t i = 0; i < items.size(); i++) {
    const bool absent = items[i].isNone() || !items[i].toTensor().defined();
    tensors[i] = absent ? nullptr : of(frame, items[i].toTensor());
  }
  value.count = static_cast<uint32_t>(items.size());
  value.as.tensors = tensors;
  return value;
}

int64_t int_of(const c10::IValue &value) {
  return value.isSymInt() ? value.toSymInt().guard_int(__FILE__, __LINE__) : value.toInt();
}

using Fields = decltype(graft_value::as);

// A list of what `of` makes of the items; `field` is its place in a value.
template <typename Item, typename Of>
graft_value list_value(CallFrame &frame, const c10::IValue &list, graft_value_kind kind, const Item *Fields::*field,
                       Of of) {
  graft_value value = {};
  auto items = list.toListRef();
  Item *made = frame.list<Item>(items.size());
  for (size_t i = 0; i < items.size(); i++) made[i] = of(items[i]);
  value.kind = kind;
  value.count = static_cast<uint32_t>(items.size());
  value.as.*field = made;
  return value;
}

graft_value plain_value(CallFrame &frame, const OpRow &row, char letter, const c10::IValue &from) {
  graft_value value = {};
  switch (letter) {
    case 'i':
      value.kind = GRAFT_VALUE_INT;
      value.as.i = int_of(from);
      break;
    case 'f':
      value.kind = GRAFT_VALUE_FLOAT;
      value.as.f = from.toDouble();
      break;
    case 'e': value.kind = GRAFT_VALUE_BOOL; break;
    case 'b':
      value.kind = GRAFT_VALUE_BOOL;
      value.as.i = from.toBool();
      break;
    case 's':
      value.kind = GRAFT_VALUE_SCALAR;
      value.as.scalar = scalar_of(from.toScalar());
      break;
    case 'z':
      value.kind = GRAFT_VALUE_STR;
      value.as.str = frame.text(from);
      break;
    case 'd':
      value.kind = GRAFT_VALUE_DTYPE;
      value.as.dtype = dtype_of(from.toScalarType());
      break;
    case 'g':
      value.kind = GRAFT_VALUE_GENERATOR;
      value.as.generator = generator_of(from.toGenerator());
      frame.generator_device = from.toGenerator().device();
      break;
    case 'M':
      value.kind = GRAFT_VALUE_MEMORY_FORMAT;
      value.as.i = memory_format_of(from.toMemoryFormat());
      break;
    case 'V':
      value.kind = GRAFT_VALUE_DEVICE;
      value.as.device = device_of(from.toDevice());
      break;
    default: raise_kind(row, letter, from);
  }
  return value;
}

}  // namespace

graft_value value_of(CallFrame &frame, const OpRow &row, char letter, const c10::IValue &from) {
  if (letter == '-' || from.isNone()) return {};
  switch (letter) {
    case 'T': return tensor_value(frame, from.toTensor());
    case 'n': return number_value(frame, from.toScalar());
    case 'L': return tensors_value(frame, from, item_value);
    case 'x': return tensors_value(frame, from, index_value);
    case 'I': return list_value(frame, from, GRAFT_VALUE_INTS, &Fields::ints, int_of);
    case 'F':
      return list_value(frame, from, GRAFT_VALUE_FLOATS, &Fields::floats, [](const auto &x) { return x.toDouble(); });
    case 'S':
      return list_value(frame, from, GRAFT_VALUE_SCALARS, &Fields::scalars,
                        [](const auto &x) { return scalar_of(x.toScalar()); });
    case 'm': return list_value(frame, from, GRAFT_VALUE_MASK, &Fields::mask, [](const auto &x) { return x.toBool(); });
    default: return plain_value(frame, row, letter, from);
  }
}

namespace {

// What an op asks for and PyTorch's overload leaves to the tensor that it writes to.
graft_value value_of_out(CallFrame &frame, char letter, const at::Tensor &out) {
  graft_value value = {};
  switch (letter) {
    case '=':
      value.kind = GRAFT_VALUE_DTYPE;
      value.as.dtype = dtype_of(out.scalar_type());
      break;
    case '@':
      value.kind = GRAFT_VALUE_DEVICE;
      value.as.device = device_of(out.device());
      break;
    case '#': {
      auto sizes = out.sizes();
      int64_t *ints = frame.list<int64_t>(sizes.size());
      std::copy(sizes.begin(), sizes.end(), ints);
      value.kind = GRAFT_VALUE_INTS;
      value.count = static_cast<uint32_t>(sizes.size());
      value.as.ints = ints;
      break;
    }
    default: value.kind = GRAFT_VALUE_INT;  // '0'
  }
  return value;
}

// --- results ---

void push_results(CallFrame &frame, const c10::OperatorHandle &op, torch::jit::Stack *stack, size_t nargs) {
  const TensorsByStorage inputs(frame.tensors());
  std::vector<c10::IValue> results;
  const auto &returns = op.schema().returns();
  size_t next = 0;
  for (const auto &ret : returns) {
    if (ret.type()->kind() == c10::TypeKind::ListType) {
      c10::List<at::Tensor> list;
      list.reserve(frame.nouts);
      while (next < frame.nouts) list.push_back(wrap(std::exchange(frame.outs[next++], nullptr), inputs));
      results.emplace_back(std::move(list));
    } else {
      graft_tensor *out = std::exchange(frame.outs[next++], nullptr);
      results.emplace_back(out ? wrap(out, inputs) : at::Tensor());
    }
  }
  torch::jit::drop(*stack, nargs);
  for (auto &result : results) stack->push_back(std::move(result));
}

// In place and out forms return the arguments they write to.
void push_written(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack, size_t nargs) {
  std::vector<c10::IValue> results;
  const size_t nreturns = op.schema().returns().size();
  for (const char *out = row.outs; *out && results.size() < nreturns; out++) {
    if (*out != '.') results.push_back(torch::jit::peek(*stack, static_cast<size_t>(*out - 'a'), nargs));
  }
  torch::jit::drop(*stack, nargs);
  for (auto &result : results) stack->push_back(std::move(result));
}

// PyTorch counts what is written in place where the schema returns it (ADInplaceOrView); _foreach_*_ return nothing and
// count for themselves, else autograd would take values that were overwritten. PyTorch's own _fused_*_ steps of the
// CPU count nothing, nor do these.
c10::IValue counted_list(const OpRow &row, torch::jit::Stack *stack, size_t nargs) {
  constexpr std::string_view kPrefix = "_foreach_";
  const bool counts = row.form == Form::Mutating && !std::strncmp(row.name, kPrefix.data(), kPrefix.size());
  return counts ? torch::jit::peek(*stack, static_cast<size_t>(row.outs[0] - 'a'), nargs) : c10::IValue();
}

void count_writes(const c10::IValue &written) {
  if (C10_LIKELY(!written.isTensorList())) return;
  for (const c10::IValue &item : written.toListRef()) {
    const at::Tensor &tensor = item.toTensor();
    if (tensor.defined() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

// An out tensor whose memory is an input's can't get another shape: the op would read what it writes.
void check_not_read(const CallFrame &frame, const at::Tensor &out) {
  const at::Tensor **outs_end = frame.out_tensors + frame.nouts;
  for (const at::Tensor *tensor : frame.tensors()) {
    const bool reads =
        is_ours(*tensor) && tensor->numel() && std::find(frame.out_tensors, outs_end, tensor) == outs_end;
    TORCH_CHECK(!reads || !tensor->is_alias_of(out),
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation.");
  }
}

// Gives out tensors the shape that the op has for its inputs, as PyTorch does, with its warning for one that held
// values.
bool resize_outs(CallFrame &frame, const OpRow &row) {
  std::vector<graft_meta> metas(frame.nouts);
  uint32_t count = 0;
  if (graft_infer(row.op_id, frame.args, frame.nargs, metas.data(), sizeof(graft_meta), frame.nouts, &count) !=
      GRAFT_OK)
    return false;
  bool changed = false;
  for (uint32_t i = 0; i < count && i < frame.nouts; i++) {
    const at::Tensor *out = frame.out_tensors[i];
    if (!out) continue;
    c10::IntArrayRef sizes(metas[i].sizes, static_cast<size_t>(metas[i].ndim));
    if (out->sizes() == sizes) continue;
    check_not_read(frame, *out);
    frame.keep_memory(*out);  // an input without elements may have it
    at::native::resize_output(*out, sizes);
    c10::IntArrayRef strides(metas[i].strides, static_cast<size_t>(metas[i].ndim));
    if (out->numel() && out->strides() != strides) out->as_strided_(sizes, strides);
    changed = true;
  }
  for (uint32_t i = 0; changed && i < frame.nouts; i++) { /* all: outs may share a storage */
    if (frame.outs[i]) frame.outs[i] = frame.borrow(*frame.out_tensors[i]);
  }
  return changed;
}

// --- errors ---

// libgraft's text, behind the name of the op that was called where another one, which serves it, stands at its head.
std::string text_for(const OpRow &row, const std::string &text) {
  const std::string name = std::string("aten::") + row.name;
  std::string base = name.substr(0, name.find('.'));
  if (base.back() == '_') base.pop_back();  // an in place form
  const size_t end = text.find_first_of(".: ", sizeof "aten::" - 1);
  const bool names_another = text.rfind("aten::", 0) == 0 && text.substr(0, end) != base;
  return names_another ? name + ": " + text : text;
}

// PyTorch's kernels say by an exception of its own that they do not serve a dtype.
[[noreturn]] void raise_of_call(graft_status status, const CallFrame &frame, const OpRow &row,
                                const std::string &said = graft_last_error()) {
  const std::string text = text_for(row, said);
  const bool of_dtype = status == GRAFT_INVALID_ARGUMENT && graft_refuses_dtype(row.op_id, frame.args, frame.nargs);
  TORCH_CHECK_NOT_IMPLEMENTED(!of_dtype, text);
  raise(status, text);
}

// Whether PyTorch fills the output as it is, having as many elements as the result: a piece of another tensor, say.
bool keeps_shape(const CallFrame &frame, const OpRow &row) {
  if (!std::strchr(row.args, 'O')) return false;
  graft_meta meta;
  uint32_t count = 0;
  if (graft_infer(row.op_id, frame.args, frame.nargs, &meta, sizeof meta, 1, &count) != GRAFT_OK) return true;
  return frame.out_tensors[0]->numel() == c10::multiply_integers(meta.sizes, meta.sizes + meta.ndim);
}

// An op whose result's shape depends on data, or is not the output's and need not be, in its out form: a new result is
// copied.
graft_status run_then_copy(CallFrame &frame, const OpRow &row) {
  std::vector<graft_tensor *> fresh(frame.nouts, nullptr);
  graft_status status = graft_call(row.op_id, frame.args, frame.nargs, fresh.data(), frame.nouts);
  if (status != GRAFT_OK) return status;
  for (uint32_t i = 0; i < frame.nouts; i++) {
    if (!fresh[i]) continue;
    at::Tensor result = wrap(fresh[i]);
    if (!frame.out_tensors[i]) continue;
    const at::Tensor &out = *frame.out_tensors[i];
    TORCH_CHECK(out.scalar_type() == result.scalar_type(), "aten::", row.name, ": the given output has scalar type ",
                out.scalar_type(), "; expected scalar type ", result.scalar_type());
    if (!graft_op_is_dynamic(row.op_id))
      result = result.view(out.sizes());
    else
      at::native::resize_output(out, result.sizes());
    out.copy_(result);
  }
  return GRAFT_OK;
}

graft_status call_out_form(CallFrame &frame, const OpRow &row) {
  graft_status status = graft_call(row.op_id, frame.args, frame.nargs, frame.outs, frame.nouts);
  if (C10_LIKELY(status != GRAFT_INVALID_ARGUMENT) || !is_out_form(row))
    return status;  // in place forms are never resized
  if (graft_op_is_dynamic(row.op_id) || keeps_shape(frame, row)) return run_then_copy(frame, row);
  std::string text = graft_last_error();
  if (resize_outs(frame, row)) return graft_call(row.op_id, frame.args, frame.nargs, frame.outs, frame.nouts);
  if (frame.has_numbers) return status;  // tried again without them
  raise_of_call(status, frame, row, text);
}

// A number of the CPU may stand among the inputs, and not for an output.
void add_given(CallFrame &frame, const OpRow &row, const at::Tensor &tensor) {
  if (C10_UNLIKELY(tensor.defined() && !is_ours(tensor) && frame.generator_device)) {
    TORCH_CHECK(false, "Expected a '", tensor.device(), "' generator device but found '", *frame.generator_device, "'");
  }
  TORCH_CHECK(!tensor.defined() || is_ours(tensor),
              "Expected all tensors to be on the same device, but the output of aten::", row.name, " is on ",
              tensor.device());
  frame.add_out(&tensor);
}

// The outputs of an in place or out form, in the op's order.
void collect_outs(CallFrame &frame, const OpRow &row, torch::jit::Stack *stack, size_t nargs) {
  for (const char *letter = row.outs; *letter; letter++) {
    if (*letter == '.') {
      frame.add_out(nullptr);
      continue;
    }
    const c10::IValue &value = torch::jit::peek(*stack, static_cast<size_t>(*letter - 'a'), nargs);
    if (value.isTensor()) {
      add_given(frame, row, value.toTensor());
    } else {
      for (const c10::IValue &item : value.toListRef()) add_given(frame, row, item.toTensor());
    }
  }
}

size_t result_count(const c10::OperatorHandle &op, const CallFrame &frame, const OpRow &row) {
  const auto &returns = op.schema().returns();
  if (returns.size() != 1 || returns[0].type()->kind() != c10::TypeKind::ListType) return returns.size();
  for (uint32_t i = 0; i < frame.nargs; i++) { /* a list of results is as long as the list of inputs */
    if (frame.args[i].kind == GRAFT_VALUE_TENSORS) return frame.args[i].count;
  }
  TORCH_CHECK(false, "graft: aten::", row.name, " returns a list and takes none");
}

void check_devices(const CallFrame &frame, const c10::OperatorHandle &op) {
  check_same_device(frame.tensors(), op);
  if (C10_LIKELY(!frame.generator_device)) return;
  for (const at::Tensor *tensor : frame.tensors()) {
    TORCH_CHECK(!is_ours(*tensor) || tensor->device() == *frame.generator_device, "Expected a '", tensor->device(),
                "' generator device but found '", *frame.generator_device, "'");
  }
}

// What a mutating form writes to first; else its first argument.
const at::Tensor &first_out(const OpRow &row, torch::jit::Stack *stack, size_t nargs) {
  const size_t out = row.form == Form::Mutating ? static_cast<size_t>(row.outs[0] - 'a') : 0;
  return torch::jit::peek(*stack, out, nargs).toTensor();
}

graft_status call(CallFrame &frame, const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack,
                  size_t nargs) {
  size_t position = 0;
  for (const char *letter = row.args; *letter; letter++) {
    if (*letter == '~') {
      frame.add_arg({});
    } else if (std::strchr("=@#0", *letter)) {
      frame.add_arg(value_of_out(frame, *letter, first_out(row, stack, nargs)));
    } else if (*letter == 'D') {
      const c10::IValue &dtype = torch::jit::peek(*stack, position++, nargs);
      frame.add_arg(dtype.isNone() ? value_of_out(frame, '=', first_out(row, stack, nargs))
                                   : value_of(frame, row, 'd', dtype));
    } else if (is_out(*letter)) {
      position++;
    } else {
      frame.add_arg(value_of(frame, row, *letter, torch::jit::peek(*stack, position++, nargs)));
    }
  }
  if (row.form == Form::Mutating) {
    collect_outs(frame, row, stack, nargs);
    check_devices(frame, op);
    return frame.many_dims ? GRAFT_UNIMPLEMENTED : call_out_form(frame, row);
  }
  check_devices(frame, op);
  if (C10_UNLIKELY(frame.many_dims)) return GRAFT_UNIMPLEMENTED;
  frame.reserve_outs(result_count(op, frame, row));
  return graft_call(row.op_id, frame.args, frame.nargs, frame.outs, frame.nouts);
}

}  // namespace

namespace {

// The rare op that takes tensors of the device only, and was given a number for one.
graft_status call_without_numbers(CallFrame &frame, const OpRow &row, const c10::OperatorHandle &op,
                                  torch::jit::Stack *stack, size_t nargs) {
  const std::string text = graft_last_error();
  auto tensors = frame.tensors();
  auto first = std::find_if(tensors.begin(), tensors.end(), [](const at::Tensor *tensor) { return is_ours(*tensor); });
  if (first == tensors.end()) raise_of_call(GRAFT_INVALID_ARGUMENT, frame, row, text);
  c10::Device device = (*first)->device();
  frame.restart();
  frame.numbers_on_device = device;
  return call(frame, row, op, stack, nargs);
}

// What libgraft does not do, and the bridge does in another way; else the error.
void run_otherwise(graft_status status, const CallFrame &frame, const OpRow &row, const c10::OperatorHandle &op,
                   torch::jit::Stack *stack) {
  if (frame.many_dims) return run_many_dims(row, op, stack);
  if (status == GRAFT_INVALID_ARGUMENT && run_shared(row, op, stack)) return;
  if (status != GRAFT_UNIMPLEMENTED || fallback_forbidden()) raise_of_call(status, frame, row);
  fallback(op, stack);
}

}  // namespace

// Tensors of the CPU are refused here: for libgraft they are tensors of its reference device, which may be one of ours.
void check_same_device(c10::ArrayRef<const at::Tensor *> tensors, const c10::OperatorHandle &op) {
  const at::Tensor *first = nullptr, *odd = nullptr;
  for (const at::Tensor *tensor : tensors) {
    if (!is_ours(*tensor)) {
      if (tensor->dim() > 0) odd = tensor;
    } else if (!first) {
      first = tensor;
    } else if (tensor->device() != first->device()) {
      odd = tensor;
    }
  }
  TORCH_CHECK(!odd || !first, "Expected all tensors to be on the same device, but found at least two devices, ",
              first->device(), " and ", odd->device(), "! (", op.operator_name(), ")");
}

void run(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const size_t nargs = op.schema().arguments().size();
  CallFrame frame;
  const c10::IValue counted = counted_list(row, stack, nargs);
  graft_status status = call(frame, row, op, stack, nargs);
  if (C10_UNLIKELY(status == GRAFT_INVALID_ARGUMENT && frame.has_numbers)) {
    status = call_without_numbers(frame, row, op, stack, nargs);
  }
  if (C10_UNLIKELY(status != GRAFT_OK)) {
    frame.discard();
    run_otherwise(status, frame, row, op, stack);
    count_writes(counted);
    return;
  }
  count_writes(counted);
  const char *check = std::strchr(row.args, 'e');
  const bool checks =
      C10_UNLIKELY(check != nullptr) && torch::jit::peek(*stack, static_cast<size_t>(check - row.args), nargs).toBool();
  const bool one = checks && torch::jit::peek(*stack, 0, nargs).toTensor().dim() == 2;
  if (row.form == Form::Mutating)
    push_written(row, op, stack, nargs);
  else
    push_results(frame, op, stack, nargs);
  if (C10_UNLIKELY(checks)) check_infos(row, stack->back().toTensor(), one);
}

}  // namespace torch_graft
