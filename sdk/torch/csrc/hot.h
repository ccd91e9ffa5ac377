// Typed kernels of the ops that models call most (generated/hot_kernels.h): what call.cpp does with values from the
// stack, done with the arguments as PyTorch passes them. Any call that does not simply succeed goes the boxed way,
// which knows about shapes of out tensors, fallbacks and errors.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <array>
#include <tuple>

#include "bridge.h"
#include "call.h"

namespace torch_graft {

using RowKernel = KernelOf<OpRow, run>;

// --- arguments ---

// The tensors of a call and what the values point to.
template <size_t kTensors>
struct HotFrame {
  graft_tensor_space spaces[kTensors + 1];
  uint32_t used = 0;
  graft_tensor *list[kTensors + 1];
  char text[24];
  bool fits = true;  // false: not the usual case, and no call is made here
  Modes modes;

  graft_tensor *borrow(const at::Tensor &tensor) {
    if (C10_UNLIKELY(!is_ours(tensor) && tensor.dim() > 0)) fits = false;  // refused on the boxed way
    if (C10_UNLIKELY(tensor._is_zerotensor()) || has_many_dims(tensor)) {
      fits = false;
      return nullptr;
    }
    return torch_graft::borrow(&spaces[used++], tensor);
  }
};

// Numbers of the usual types are written where they are read: a copy of what was just written in parts would wait for
// it.
inline void set_number(graft_scalar &to, graft_dtype dtype, int64_t number) {
  to.dtype = dtype;
  to.value.i = number;
}

inline void set_number(graft_scalar &to, double number) {
  to.dtype = GRAFT_F64;
  to.value.f = number;
}

// A Python number comes as a tensor of the CPU; its value is read without a call.
inline void set_number_of(graft_scalar &to, const at::Tensor &tensor) {
  const void *data = tensor.const_data_ptr();
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Long: return set_number(to, GRAFT_I64, *static_cast<const int64_t *>(data));
    case c10::ScalarType::Double: return set_number(to, *static_cast<const double *>(data));
    case c10::ScalarType::Bool: return set_number(to, GRAFT_BOOL, *static_cast<const bool *>(data));
    default: to = scalar_of(tensor.item());
  }
}

inline void set_number_of(graft_scalar &to, const at::Scalar &number) {
  switch (number.type()) {
    case c10::ScalarType::Long: return set_number(to, GRAFT_I64, number.toLong());
    case c10::ScalarType::Double: return set_number(to, number.toDouble());
    default: to = scalar_of(number);
  }
}

template <class Frame>
void set(Frame &frame, graft_value &value, const at::Tensor &tensor) {
  if (!tensor.defined()) return;
  if (C10_UNLIKELY(tensor.unsafeGetTensorImpl()->is_wrapped_number() && tensor.is_cpu())) {
    value.kind = GRAFT_VALUE_SCALAR;
    set_number_of(value.as.scalar, tensor);
    return;
  }
  value.kind = GRAFT_VALUE_TENSOR;
  value.as.tensor = frame.borrow(tensor);
}

template <size_t N>
void set(HotFrame<N> &frame, graft_value &value, const at::ITensorListRef &tensors) {
  value.kind = GRAFT_VALUE_TENSORS;
  value.as.tensors = frame.list;
  for (const at::Tensor &tensor : tensors) {
    frame.fits &= value.count < N && tensor.defined();
    if (!frame.fits) return;
    frame.list[value.count++] = frame.borrow(tensor);
  }
}

template <class Frame>
void set(Frame &, graft_value &value, const at::Scalar &number) {
  value.kind = GRAFT_VALUE_SCALAR;
  set_number_of(value.as.scalar, number);
}

template <class Frame>
void set(Frame &, graft_value &value, int64_t number) {
  value.kind = GRAFT_VALUE_INT;
  value.as.i = number;
}

template <class Frame>
void set(Frame &, graft_value &value, const c10::SymInt &number) {
  value.kind = GRAFT_VALUE_INT;
  value.as.i = number.guard_int(__FILE__, __LINE__);
}

template <class Frame>
void set(Frame &, graft_value &value, double number) {
  value.kind = GRAFT_VALUE_FLOAT;
  value.as.f = number;
}

template <class Frame>
void set(Frame &, graft_value &value, bool flag) {
  value.kind = GRAFT_VALUE_BOOL;
  value.as.i = flag;
}

template <class Frame>
void set(Frame &, graft_value &value, at::IntArrayRef list) {
  value.kind = GRAFT_VALUE_INTS;
  value.count = static_cast<uint32_t>(list.size());
  value.as.ints = list.data();
}

template <class Frame>
void set(Frame &frame, graft_value &value, c10::SymIntArrayRef list) {
  set(frame, value, C10_AS_INTARRAYREF_SLOW(list));
}

template <class Frame, size_t kLength>
void set(Frame &, graft_value &value, const std::array<bool, kLength> &mask) {
  static_assert(sizeof(bool) == sizeof(uint8_t));
  value.kind = GRAFT_VALUE_MASK;
  value.count = kLength;
  value.as.mask = reinterpret_cast<const uint8_t *>(mask.data());
}

template <class Frame>
void set(Frame &, graft_value &value, at::ScalarType type) {
  value.kind = GRAFT_VALUE_DTYPE;
  value.as.dtype = dtype_of(type);
}

template <class Frame>
void set(Frame &frame, graft_value &value, std::string_view text) {
  check_no_nul(text);
  if (text.size() >= sizeof frame.text) {
    frame.fits = false;
    return;
  }
  std::copy(text.begin(), text.end(), frame.text);
  frame.text[text.size()] = 0;
  value.kind = GRAFT_VALUE_STR;
  value.as.str = frame.text;
}

template <class Frame, class T>
void set(Frame &frame, graft_value &value, const std::optional<T> &maybe) {
  if (maybe) set(frame, value, *maybe);
}

template <class Frame, class T>
void set(Frame &frame, graft_value &value, const c10::OptionalArrayRef<T> &maybe) {
  if (maybe) set(frame, value, *maybe);
}

// How many tensors an argument may hold; more than that of a list goes the boxed way.
template <class T>
constexpr size_t kTensorsIn = std::is_same_v<T, at::Tensor> || std::is_same_v<T, std::optional<at::Tensor>> ? 1 : 0;
template <>
constexpr size_t kTensorsIn<at::ITensorListRef> = 8;

// --- kernels ---

// In place ops have their written tensor first, out forms last, where it is no argument of the op.
template <class T>
constexpr bool kIsWritten = std::is_same_v<T, at::Tensor &>;

template <class Result>
constexpr uint32_t kOutsOf = 1;
template <class... Results>
constexpr uint32_t kOutsOf<std::tuple<Results...>> = sizeof...(Results);

template <class Op, class Signature = typename Op::schema>
class HotKernel;

// Op is a struct of at::_ops.
template <class Op, class Result, class... Args>
class HotKernel<Op, Result(Args...)> {
 public:
  static torch::CppFunction make(const OpRow &row) {
    row_ = &row;
    return torch::CppFunction(TORCH_FN(call));
  }

 private:
  static constexpr size_t kArgs = sizeof...(Args);
  static constexpr uint32_t kOuts = kOutsOf<Result>;
  static constexpr bool kMutating = kIsWritten<Result>;
  static constexpr bool kInPlace = kMutating && kIsWritten<std::tuple_element_t<0, std::tuple<Args...>>>;
  static constexpr size_t kWritten = kInPlace ? 0 : kArgs - 1;
  using Frame = HotFrame<(kTensorsIn<std::remove_cvref_t<Args>> + ...)>;

  inline static const OpRow *row_ = nullptr;

  static Result call(Args... args) {
    Frame frame;
    graft_value values[kArgs] = {};
    uint32_t count = 0;
    (add<Args>(frame, values, count, args), ...);
    graft_tensor *outs[kOuts] = {};
    if constexpr (kMutating) {
      frame.fits &= is_ours(written(args...));
      outs[0] = kInPlace || !frame.fits ? values[0].as.tensor : frame.borrow(written(args...));
    }
    if (C10_LIKELY(frame.fits)) {
      graft_status status = graft_call(row_->op_id, values, count, outs, kOuts);
      if (C10_LIKELY(status == GRAFT_OK)) {
        if constexpr (kMutating)
          return written(args...);
        else
          return results(outs, std::make_index_sequence<kOuts>());
      }
      // What the boxed way may do better; what else failed may have begun, and is not done again.
      if (status != GRAFT_INVALID_ARGUMENT && status != GRAFT_UNIMPLEMENTED) raise(status);
    }
    return boxed(std::forward<Args>(args)...);
  }

  template <class Arg, class Value>
  static void add(Frame &frame, graft_value *values, uint32_t &count, const Value &value) {
    if constexpr (kInPlace || !kIsWritten<Arg>) set(frame, values[count++], value);
  }

  static at::Tensor &written(Args &...args) { return std::get<kWritten>(std::tie(args...)); }

  template <size_t... kIndex>
  static Result results(graft_tensor **outs, std::index_sequence<kIndex...>) {
    return Result((outs[kIndex] ? wrap(outs[kIndex]) : at::Tensor())...);
  }

  C10_NOINLINE static Result boxed(Args... args) {
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name);
    static const auto kernel = c10::BoxedKernel::makeFromFunctor(std::make_unique<RowKernel>(*row_));
    return c10::impl::BoxedKernelWrapper<Result(Args...)>::call(
        kernel, op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), std::forward<Args>(args)...);
  }
};

struct HotRow {
  const char *name;
  torch::CppFunction (*make)(const OpRow &);
};

}  // namespace torch_graft
