// The frame of a call: graft_value arguments, the tensors they name and their lists, on the stack for usual calls.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "bridge.h"

namespace torch_graft {

// What PyTorch's process-wide modes ask of calls. f32 may be rounded to TF32 in products where CUDA's may:
// torch.set_float32_matmul_precision and torch.backends.fp32_precision, which name no device, are kept with CUDA's
// setting and readable there.
inline graft_exec_flags exec_flags_now() {
  const at::Context &context = at::globalContext();
  const bool tf32 =
      context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32;
  return (context.deterministicAlgorithms() ? GRAFT_EXEC_DETERMINISTIC : 0) | (tf32 ? GRAFT_EXEC_ALLOW_TF32 : 0);
}

// Sends these modes with the calls of this thread, for the time of a call, and the default dtype where it is not f32.
class Modes {
 public:
  Modes() {
    if (const graft_exec_flags flags = exec_flags_now(); C10_UNLIKELY(flags)) {
      flags_before_ = graft_exec_flags_set(flags);
      flags_set_ = true;
    }
    if (C10_UNLIKELY(c10::get_default_dtype_as_scalartype() != c10::ScalarType::Float)) {
      dtype_before_ = graft_default_dtype_get();
      dtype_set_ = graft_default_dtype_set(dtype_of(c10::get_default_dtype_as_scalartype())) == GRAFT_OK;
    }
  }
  ~Modes() {
    if (C10_UNLIKELY(flags_set_)) graft_exec_flags_set(flags_before_);
    if (C10_UNLIKELY(dtype_set_)) graft_default_dtype_set(dtype_before_);
  }
  Modes(const Modes &) = delete;
  Modes &operator=(const Modes &) = delete;

 private:
  graft_exec_flags flags_before_ = 0;
  graft_dtype dtype_before_ = GRAFT_F32;
  bool flags_set_ = false, dtype_set_ = false;
};

// What libgraft calls a memory format of PyTorch's.
int64_t memory_format_of(c10::MemoryFormat format);

// libgraft's texts end at the first NUL: one inside would cut them silently.
inline void check_no_nul(std::string_view text) {
  size_t nul = text.find('\0');
  TORCH_CHECK(nul == text.npos, "graft: a string argument has a NUL in it, behind '", text.substr(0, nul), "'");
}

// Memory for descriptions of a list's tensors, in pieces that a thread keeps from call to call: a list of hundreds
// would ask the heap as often.
class MoreSpaces {
 public:
  MoreSpaces() = default;
  ~MoreSpaces() {
    for (auto &piece : pieces_) {
      if (spares().size() < kSpares) spares().push_back(std::move(piece));
    }
  }
  MoreSpaces(const MoreSpaces &) = delete;
  MoreSpaces &operator=(const MoreSpaces &) = delete;

  graft_tensor_space *at(size_t i) {
    if (i / kPiece == pieces_.size()) pieces_.push_back(new_piece());
    return &pieces_[i / kPiece][i % kPiece];
  }

 private:
  static constexpr size_t kPiece = 32, kSpares = 32;
  using Piece = std::unique_ptr<graft_tensor_space[]>;

  static std::vector<Piece> &spares() {
    thread_local std::vector<Piece> kept;
    return kept;
  }
  static Piece new_piece() {
    if (spares().empty()) return Piece(new graft_tensor_space[kPiece]);  // not zeroed: whoever describes writes all
    Piece piece = std::move(spares().back());
    spares().pop_back();
    return piece;
  }

  std::vector<Piece> pieces_;
};

class CallFrame {
 public:
  static constexpr uint32_t kMaxArgs = 40, kMaxOuts = 16, kSpaces = 8;

  CallFrame() = default;
  ~CallFrame() { discard(); }
  CallFrame(const CallFrame &) = delete;
  CallFrame &operator=(const CallFrame &) = delete;

  graft_value args[kMaxArgs];
  uint32_t nargs = 0;
  graft_tensor *local_outs[kMaxOuts];
  const at::Tensor *local_out_tensors[kMaxOuts];
  graft_tensor **outs = local_outs;
  const at::Tensor **out_tensors = local_out_tensors;
  uint32_t nouts = 0;
  bool has_numbers = false;                      // a Python number stands where the op has a tensor
  bool many_dims = false;                        // a tensor has more than libgraft can be told of
  std::optional<c10::Device> numbers_on_device;  // where such numbers become tensors
  std::optional<c10::Device> generator_device;   // of a generator among the arguments

  void add_arg(const graft_value &value) {
    TORCH_INTERNAL_ASSERT(nargs < kMaxArgs);
    args[nargs++] = value;
  }

  // An output written to `tensor`; null: a new one that is not wanted by the caller.
  void add_out(const at::Tensor *tensor) {
    if (nouts == capacity_) grow();
    owned_outs_ = false;
    outs[nouts] = tensor && tensor->defined() ? borrow(*tensor) : nullptr;
    out_tensors[nouts++] = tensor;
  }

  // New results, owned by the frame until they are taken.
  void reserve_outs(size_t count) {
    while (capacity_ < count) grow();
    nouts = static_cast<uint32_t>(count);
    owned_outs_ = true;
    for (uint32_t i = 0; i < nouts; i++) outs[i] = nullptr;
  }

  // Holds a tensor for as long as the frame.
  const at::Tensor &keep(at::Tensor tensor) {
    kept_.push_back(std::make_unique<at::Tensor>(std::move(tensor)));
    return *kept_.back();
  }

  // Holds the memory that `tensor` has now: what borrowed it may be used though the tensor gets another.
  void keep_memory(const at::Tensor &tensor) {
    graft_storage *storage = storage_of(tensor.storage().unsafeGetStorageImpl());
    graft_storage_retain(storage);
    kept_memory_.push_back(data_ptr_of(storage, tensor.device().index()));
  }

  // `tensor` itself must outlive the frame.
  graft_tensor *borrow(const at::Tensor &tensor) {
    // Zeros that autograd made without memory; most ops are given others by PyTorch, some take them as they are.
    if (C10_UNLIKELY(tensor._is_zerotensor())) return borrow(keep(at::zeros(tensor.sizes(), tensor.options())));
    seen_.push_back(&tensor);
    if (has_many_dims(tensor)) {
      many_dims = true;
      return nullptr;
    }
    return torch_graft::borrow(next_space(), tensor);
  }

  // Likewise as of another shape, where it is one of our device that has memory.
  graft_tensor *borrow_as(const at::Tensor &tensor, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    seen_.push_back(&tensor);
    return torch_graft::borrow_as(next_space(), tensor, sizes, strides);
  }

  template <typename T>
  T *list(size_t count) {
    size_t bytes = (count * sizeof(T) + 7) & ~size_t(7);
    if (C10_LIKELY(arena_used_ + bytes <= sizeof arena_)) {
      T *items = reinterpret_cast<T *>(arena_ + arena_used_);
      arena_used_ += bytes;
      return items;
    }
    more_lists_.push_back(std::make_unique<unsigned char[]>(bytes));
    return reinterpret_cast<T *>(more_lists_.back().get());
  }

  const char *text(const c10::IValue &value) {
    auto view = value.toStringView();
    check_no_nul(view);
    char *copy = list<char>(view.size() + 1);
    std::copy(view.begin(), view.end(), copy);
    copy[view.size()] = 0;
    return copy;
  }

  // The tensors among the arguments.
  c10::ArrayRef<const at::Tensor *> tensors() const { return seen_; }

  // Forgets arguments and results, for a call with other ones.
  void restart() {
    discard();
    nargs = 0;
    used_ = 0;
    arena_used_ = 0;
    seen_.clear();
    has_numbers = false;
    many_dims = false;
  }

  // Releases results that nobody took.
  void discard() {
    for (uint32_t i = 0; owned_outs_ && i < nouts; i++) graft_tensor_release(std::exchange(outs[i], nullptr));
    for (uint32_t i = 0; !owned_outs_ && i < nouts; i++) {
      if (!out_tensors[i]) graft_tensor_release(std::exchange(outs[i], nullptr));
    }
    nouts = 0;
  }

 private:
  void grow() {
    uint32_t larger = capacity_ * 4;
    more_outs_.resize(larger);
    more_out_tensors_.resize(larger);
    if (outs == local_outs) {
      std::copy(local_outs, local_outs + nouts, more_outs_.begin());
      std::copy(local_out_tensors, local_out_tensors + nouts, more_out_tensors_.begin());
    }
    outs = more_outs_.data();
    out_tensors = more_out_tensors_.data();
    capacity_ = larger;
  }

  graft_tensor_space *next_space() {
    if (C10_LIKELY(used_ < kSpaces)) return &spaces_[used_++];
    return more_spaces_.at(used_++ - kSpaces);
  }

  Modes modes_;
  c10::SmallVector<const at::Tensor *, kSpaces> seen_;
  std::vector<std::unique_ptr<at::Tensor>> kept_;
  std::vector<c10::DataPtr> kept_memory_;
  uint32_t used_ = 0;
  graft_tensor_space spaces_[kSpaces];
  MoreSpaces more_spaces_;
  alignas(16) unsigned char arena_[512];
  size_t arena_used_ = 0;
  std::vector<std::unique_ptr<unsigned char[]>> more_lists_;
  uint32_t capacity_ = kMaxOuts;
  bool owned_outs_ = false;
  std::vector<graft_tensor *> more_outs_;
  std::vector<const at::Tensor *> more_out_tensors_;
};

// What runs a row as a boxed kernel. It holds its row, so that a call looks nothing up.
template <typename Row, void (*kRun)(const Row &, const c10::OperatorHandle &, torch::jit::Stack *)>
class KernelOf final : public c10::OperatorKernel {
 public:
  explicit KernelOf(const Row &row) : row_(row) {}
  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    kRun(row_, op, stack);
  }

 private:
  const Row &row_;
};

}  // namespace torch_graft
