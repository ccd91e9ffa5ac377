// See kernels.h. A call's fields become PyTorch's values by the schema's tables, the op runs boxed, and what it returns
// is copied to the outputs.
#include "kernels.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sdk/torch/csrc/dtypes.h"

namespace {

const graft_host *host;
c10::Device computes_on(c10::kCPU);

template <typename T>
T field(const graft_args *args, size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char *>(args) + offset, sizeof value);
  return value;
}

c10::ScalarType scalar_type(graft_dtype dtype) {
  for (const torch_graft::DtypePair &pair : torch_graft::kDtypes) {
    if (pair.graft == dtype) return pair.torch;
  }
  TORCH_CHECK(false, "no dtype of PyTorch for code ", dtype);
}

at::Tensor in_memory(const graft_tensor_desc *desc) {
  if (!desc) return {};
  const auto rank = static_cast<size_t>(desc->dl.ndim);
  const c10::IntArrayRef sizes(desc->dl.shape, rank), strides(desc->dl.strides, rank);
  const auto options = at::TensorOptions().dtype(scalar_type(desc->dl.dtype));
  void *data = tk_data(desc);
  at::Tensor made = data ? at::from_blob(data, sizes, strides, options) : at::empty_strided(sizes, strides, options);
  if (desc->flags & GRAFT_TENSOR_HOST_VALUE) made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

// The same on the device that computes: all that the tensor's strides span is copied, so that they stay as they are.
at::Tensor tensor(const graft_tensor_desc *desc) {
  at::Tensor made = in_memory(desc);
  if (computes_on.is_cpu() || !desc || desc->flags & GRAFT_TENSOR_HOST_VALUE) return made;
  const int64_t span = static_cast<int64_t>(at::detail::computeStorageNbytes(made.sizes(), made.strides(), 1));
  return made.as_strided({span}, {1}).to(computes_on).as_strided(made.sizes(), made.strides());
}

c10::Scalar scalar(const graft_scalar &number) {
  switch (number.dtype) {
    case GRAFT_BOOL: return number.value.i != 0;
    case GRAFT_I64: return number.value.i;
    case GRAFT_U64: return static_cast<uint64_t>(number.value.i);
    case GRAFT_C128: return c10::complex<double>(number.value.c[0], number.value.c[1]);
    default: return number.value.f;
  }
}

c10::IValue tensors(const graft_tensor_list &list, bool optional) {
  if (optional) {
    c10::List<std::optional<at::Tensor>> items;
    for (uint64_t i = 0; i < list.count; i++)
      items.push_back(list.items[i] ? std::make_optional(tensor(list.items[i])) : std::nullopt);
    return items;
  }
  c10::List<at::Tensor> items;
  for (uint64_t i = 0; i < list.count; i++) items.push_back(tensor(list.items[i]));
  return items;
}

template <typename T>
c10::IValue optional_number(const graft_args *args, size_t offset) {
  const auto *pointer = field<const T *>(args, offset);
  return pointer ? c10::IValue(*pointer) : c10::IValue();
}

// Whether a list of numbers is there: an empty one has a pointer, too.
template <typename List>
c10::IValue numbers(const List &list) {
  if (!list.items) return {};
  return c10::List<std::decay_t<decltype(*list.items)>>(
      c10::ArrayRef<std::decay_t<decltype(*list.items)>>(list.items, list.count));
}

c10::IValue scalars(const graft_scalar_list &list) {
  if (!list.items) return {};
  c10::List<c10::Scalar> items;
  c10::impl::GenericList boxed(c10::NumberType::get());
  for (uint64_t i = 0; i < list.count; i++) boxed.push_back(c10::IValue(scalar(list.items[i])));
  return boxed;
}

c10::IValue mask(const op_arg &arg, const graft_args *args) {
  c10::List<bool> items;
  for (uint16_t i = 0; i < arg.bytes; i++) items.push_back(field<uint8_t>(args, arg.offset + i) != 0);
  return items;
}

c10::IValue value_of(const op_arg &arg, const c10::Argument &of_torch, const graft_args *args) {
  const bool optional = arg.flags & OPA_OPTIONAL;
  const size_t at = arg.offset;
  if (arg.kind == OPK_DEVICE) return computes_on;
  if (arg.flags & OPA_DROPPED || arg.kind == OPK_GENERATOR) return of_torch.default_value().value_or(c10::IValue());
  switch (arg.kind) {
    case OPK_TENSOR: {
      const auto *desc = field<const graft_tensor_desc *>(args, at);
      return desc ? c10::IValue(tensor(desc)) : c10::IValue();
    }
    case OPK_TENSORS: return tensors(field<graft_tensor_list>(args, at), arg.flags & OPA_OPTIONAL_ITEMS);
    case OPK_INT: return optional ? optional_number<int64_t>(args, at) : c10::IValue(field<int64_t>(args, at));
    case OPK_FLOAT: return optional ? optional_number<double>(args, at) : c10::IValue(field<double>(args, at));
    case OPK_BOOL: {
      if (!optional) return field<uint8_t>(args, at) != 0;
      const auto *flag = field<const uint8_t *>(args, at);
      return flag ? c10::IValue(*flag != 0) : c10::IValue();
    }
    case OPK_SCALAR: {
      const auto *number = field<const graft_scalar *>(args, at);
      return number ? c10::IValue(scalar(*number)) : c10::IValue();
    }
    case OPK_INTS: return numbers(field<graft_int_list>(args, at));
    case OPK_FLOATS: return numbers(field<graft_f64_list>(args, at));
    case OPK_SCALARS: return scalars(field<graft_scalar_list>(args, at));
    case OPK_MASK: return mask(arg, args);
    case OPK_STR: {
      const auto value = field<uint32_t>(args, at);
      return value ? c10::IValue(std::string(arg.strings[value - 1])) : c10::IValue();
    }
    case OPK_DTYPE: {
      const auto dtype = field<graft_dtype>(args, at);
      return dtype ? c10::IValue(static_cast<int64_t>(scalar_type(dtype))) : c10::IValue();
    }
    default: return of_torch.default_value().value_or(c10::IValue());
  }
}

// PyTorch's kernels for CPUs leave out some results that those for other devices have (the statistics of a
// normalization that only evaluates, the bags of indices), and keep others in the input's half type, those for CUDA
// have some of other shapes: these calls are not served.
void write(const graft_tensor_desc *out, const at::Tensor &result) {
  if (!out || !result.defined()) return;
  at::Tensor target = in_memory(out);
  TORCH_CHECK(target.sizes() == result.sizes() && target.scalar_type() == result.scalar_type(), "PyTorch gives ",
              result.scalar_type(), " ", result.sizes(), ", the host expects ", target.scalar_type(), " ",
              target.sizes());
  target.copy_(result);
}

void write_list(const graft_tensor_list &list, const c10::IValue &made) {
  const auto tensors = made.toTensorVector();
  for (uint64_t i = 0; i < list.count; i++) write(list.items[i], tensors.at(i));
}

void write_result(const op_ret &ret, const graft_exec *exec, const graft_args *args, const c10::IValue &result) {
  if (ret.flags & OPR_DYNAMIC) {
    const at::Tensor made = result.toTensor();
    const graft_tensor_desc *out;
    auto *output = field<graft_output *>(args, ret.offset);
    if (output &&
        host->output_shape(exec, output, static_cast<int32_t>(made.dim()), made.sizes().data(), &out) == GRAFT_OK)
      write(out, made);
  } else if (ret.kind == OPK_TENSOR) {
    write(field<const graft_tensor_desc *>(args, ret.offset), result.toTensor());
  } else if (ret.kind == OPK_TENSORS) {
    write_list(field<graft_tensor_list>(args, ret.offset), result);
  } else if (ret.kind == OPK_INT) {
    *field<int64_t *>(args, ret.offset) = result.toInt();
  } else if (ret.kind == OPK_BOOL) {
    *field<uint8_t *>(args, ret.offset) = result.toBool();
  }
}

// What a call wrote into its arguments, where these were copied to the device that computes.
void write_back(const op_arg &arg, const graft_args *args, const c10::IValue &given) {
  if (computes_on.is_cpu()) return;
  if (arg.kind == OPK_TENSOR && given.isTensor()) {
    write(field<const graft_tensor_desc *>(args, arg.offset), given.toTensor());
  } else if (arg.kind == OPK_TENSORS && given.isTensorList()) {
    write_list(field<graft_tensor_list>(args, arg.offset), given);
  }
}

std::optional<c10::OperatorHandle> find(const op_schema *schema) {
  const std::string name = schema->name;
  const size_t dot = name.rfind('.');
  const bool overload = dot != std::string::npos && dot > name.find("::");
  return c10::Dispatcher::singleton().findSchema(
      {overload ? name.substr(0, dot) : name, overload ? name.substr(dot + 1) : ""});
}

// What failed inside a kernel leaves the process without its device: it ends, so that only this case is lost. Libraries
// report such a failure as one of their own.
[[noreturn]] void end(const char *text) {
  std::fprintf(stderr, "torch_kernels: %s\n", text);
  std::abort();
}

void end_without_device() {
  if (computes_on.is_cpu()) return;
  try {
    at::zeros({1}, at::TensorOptions().device(computes_on)).item();
  } catch (const std::exception &error) {
    end(error.what());
  }
}

graft_status said(graft_status status, const char *text) {
  end_without_device();
  host->set_error(host->context, text);
  return status;
}

}  // namespace

graft_status tk_start(const graft_host *given, const char *device) {
  host = given;
  if (std::string(device) != "cpu" && std::string(device) != "cuda") return GRAFT_INVALID_ARGUMENT;
  computes_on = std::string(device) == "cuda" ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  at::set_num_threads(1);  // the suite's workers are forked
  at::globalContext().setAllowTF32CuDNN(false);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // without it cuBLAS is not deterministic
  return GRAFT_OK;
}

bool tk_has(const op_schema *schema) {
  return find(schema).has_value();
}

graft_status tk_call(const op_schema *schema, const graft_exec *exec, const graft_args *args) {
  try {
    c10::InferenceMode without_autograd;
    const auto op = *find(schema);
    const auto &arguments = op.schema().arguments();
    torch::jit::Stack stack;
    for (size_t i = 0; i < arguments.size(); i++)
      stack.push_back(i < schema->nargs ? value_of(schema->args[i], arguments[i], args)
                                        : arguments[i].default_value().value_or(c10::IValue()));
    const torch::jit::Stack given = stack;
    at::globalContext().setDeterministicAlgorithms(exec->flags & GRAFT_EXEC_DETERMINISTIC, false);
    op.callBoxed(stack);
    for (uint32_t i = 0; i < schema->nargs; i++)
      if (op_mutates(schema, i)) write_back(schema->args[i], args, given.at(i));
    const size_t results = std::min<size_t>(stack.size(), schema->nrets);
    for (size_t i = 0; i < results; i++) write_result(schema->rets[i], exec, args, stack[i]);
    return GRAFT_OK;
  } catch (const c10::AcceleratorError &error) {
    end((std::string(schema->name) + ": " + error.what_without_backtrace()).c_str());
  } catch (const c10::IndexError &error) {
    return said(GRAFT_OUT_OF_RANGE, error.what_without_backtrace());
  } catch (const c10::Error &error) {
    return said(GRAFT_UNIMPLEMENTED, error.what_without_backtrace());
  } catch (const std::exception &error) {
    return said(GRAFT_UNIMPLEMENTED, error.what());
  }
}
