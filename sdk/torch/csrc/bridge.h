// The PyTorch bridge: any Graft plugin as a PyTorch device, through the PrivateUse1 key.
//
// Nothing about an op's meaning lives here: arguments go from PyTorch's stack to graft_call and results back.
// Everything that all backends need (shape rules, promotion, decompositions, fallback) is libgraft's.
//
//   device.cpp     graft:n is device k of plugin p; the table of devices; errors to exceptions
//   memory.cpp     storages as c10::DataPtr, the caching allocator as c10::DeviceAllocator, pinned memory
//   guard.cpp      current device, streams, events
//   generator.cpp  at::Generator over graft_generator
//   hooks.cpp      what PyTorch asks of an accelerator
//   tensor.cpp     at::Tensor to graft_tensor and back
//   call.cpp       the boxed path of every op; registrations.cpp registers the rows, custom.cpp the ops of plugins
//   factory.cpp    empty, resize, set and view ops on PyTorch's own kernels
//   natives.cpp, compositions.cpp, histograms.cpp, quantization.cpp, sparse.cpp, sparse_mm.cpp  ops made of others
//   sync_batch_norm.cpp, rms_norm.cpp  norms over processes, and of sizes that are open while PyTorch traces
//   rnn.cpp        recurrent networks, a call for a layer's steps
//   copy.cpp       _copy_from, _to_copy and their kin
//   dims.cpp       tensors of more dimensions than libgraft has
//   shared.cpp     writes to tensors whose elements share memory
//   infos.cpp      errors of factorizations that ask for them
//   graph.cpp      graphs for torch.compile: recordings, and runs of what was compiled (graph.h)
//   replay.cpp     captures, as torch.cuda.graphs has them (replay.h)
//   replayed_run.cpp  runs of compiled programs that are captured and replayed (replayed_run.h)
//   fallback.cpp   what leaves the device: PyTorch's CPU kernels, counted
//   autocast.cpp   the autocast lists
//   profiler.cpp   the device's time of each op for PyTorch's legacy profiler
//   kineto.cpp     what ran on the device for torch.profiler
//   module.cpp     the Python module torch_graft._C, over the library of all the others, libtorch_graft.so, which needs
//                  no Python
//
// Compiles with PyTorch 2.11 to 2.13.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "graft/bridge.h"
#include "graft/graft.h"
#include "torch_graft.h"  // the public part of what follows

namespace at {
struct HostAllocator;
}
namespace c10::impl {
struct DeviceGuardImplInterface;
}
namespace torch::profiler::impl {
struct ProfilerStubs;
}

namespace torch_graft {

// --- device.cpp ---

// The engine of PyTorch's autograd sizes its queues by the number of devices at the first backward, and devices may be
// added later: this many it is told of.
constexpr int kCapacity = 16;

// Device n of the table. Opens its plugin at the first use. Throws where there is no such device, naming those there
// are.
TORCH_GRAFT_API graft_rt_device *device_of(c10::DeviceIndex index);
// Where a device of libgraft stands in the table; the reference device included if it is listed. -1: nowhere.
c10::DeviceIndex index_of(const graft_rt_device *device) noexcept;
// Whether a driver has been started by this process, without starting one.
TORCH_GRAFT_API bool is_initialized() noexcept;
// Whether this process is the child of a fork and a driver was in use before.
TORCH_GRAFT_API bool is_forked() noexcept;
// Whether device n has been opened, without opening it.
bool is_open(c10::DeviceIndex index) noexcept;
// Throws where there is no such device, naming those there are.
void check_index(c10::DeviceIndex index);
// Calls visit for each device that is open; none is opened meanwhile.
void each_open(const std::function<void(c10::DeviceIndex, graft_rt_device *)> &visit);

// Throws what a status means, with libgraft's text: torch.OutOfMemoryError, NotImplementedError, torch.AcceleratorError
// where the device or a stream has failed, else RuntimeError.
[[noreturn]] TORCH_GRAFT_API void raise(graft_status status);
[[noreturn]] TORCH_GRAFT_API void raise(graft_status status, const std::string &text);
inline void check(graft_status status) {
  if (C10_UNLIKELY(status != GRAFT_OK)) raise(status);
}

// --- guard.cpp ---

// The table entry of a device, where index -1 is the one that is current in this thread.
inline graft_rt_device *device_of(c10::Device device) {
  return device_of(device.index() < 0 ? current_device() : device.index());
}
graft_rt_stream *stream_of(const c10::Stream &stream);
c10::Stream current_stream(c10::DeviceIndex index);
TORCH_GRAFT_API const c10::impl::DeviceGuardImplInterface *device_guard() noexcept;
// Waits until the threads that the autograd engine has started need Python's lock no more: one that still waits for it
// when the interpreter ends aborts the process. For an atexit handler, without that lock.
TORCH_GRAFT_API void wait_for_engine() noexcept;

// --- memory.cpp ---

// A DataPtr that owns the caller's reference to a storage; its context is the storage.
c10::DataPtr data_ptr_of(graft_storage *storage, c10::DeviceIndex index);
// The storage under a tensor on our device, borrowed; from the context of its DataPtr, never by address. Throws for
// memory that is not libgraft's.
graft_storage *storage_of(const c10::StorageImpl *storage);
// Whether its memory is libgraft's.
bool is_own_memory(const c10::StorageImpl *storage);
// What stands in for the memory of a tensor that has none; borrowed.
graft_storage *empty_storage(c10::DeviceIndex index);
// Whether any has become smaller since the process began: PyTorch keeps its tensors inside all others.
extern std::atomic<bool> any_storage_shrank;
// A new PyTorch storage over that of a result (takes the reference).
c10::Storage wrap_storage(const graft_tensor_parts &parts);
TORCH_GRAFT_API c10::Allocator *device_allocator() noexcept;
// Work on the stream uses the memory too: it is not reused before that is done.
void use_on_stream(const c10::DataPtr &pointer, const c10::Stream &stream);
// Keeps what fits of the values.
void resize_storage(c10::StorageImpl *storage, size_t bytes);
// Limits what is reserved on a device to a part of its memory.
TORCH_GRAFT_API void set_memory_fraction(double fraction, c10::DeviceIndex index);
at::HostAllocator *host_allocator() noexcept;
// Whether it lies in memory of host_allocator(), of whichever device.
bool is_pinned_pointer(const void *pointer);

// --- generator.cpp ---

// The libgraft generator behind an at::Generator of our device.
graft_generator *generator_of(const at::Generator &generator);
TORCH_GRAFT_API const at::Generator &default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);
void seed_opened(graft_rt_device *device);  // for device.cpp

// --- hooks.cpp ---

// False where another package had taken PrivateUse1 before: then nothing of the above is registered.
TORCH_GRAFT_API bool is_registered() noexcept;

// --- tensor.cpp ---

graft_dtype dtype_of(c10::ScalarType type);  // throws for types that Graft has not
c10::ScalarType scalar_type_of(graft_dtype dtype);
graft_scalar scalar_of(const c10::Scalar &scalar);
inline bool is_ours(const at::Tensor &tensor) {
  return tensor.device().type() == c10::DeviceType::PrivateUse1;
}
// Describes a tensor of our device, or a CPU tensor (as one of libgraft's reference device), in `space`; valid while
// the tensor lives. Throws for layouts that are not strided.
TORCH_GRAFT_API graft_tensor *borrow(graft_tensor_space *space, const at::Tensor &tensor);
// Likewise as of another shape.
graft_tensor *borrow_as(graft_tensor_space *space, const at::Tensor &tensor, c10::IntArrayRef sizes,
                        c10::IntArrayRef strides);

// Tensors by the storage under them. What it is searched for lies in a row: a list of results asks for each.
class TensorsByStorage {
 public:
  TensorsByStorage() = default;
  TensorsByStorage(c10::ArrayRef<const at::Tensor *> tensors) {
    for (const at::Tensor *tensor : tensors) add(tensor);
  }
  // The tensor must outlive this.
  void add(const at::Tensor *tensor) {
    tensors_.push_back(tensor);
    storages_.push_back(tensor->storage().data_ptr().get_context());
  }
  // NULL: none has it.
  const at::Tensor *find(const void *storage) const {
    const auto found = std::find(storages_.begin(), storages_.end(), storage);
    return found == storages_.end() ? nullptr : tensors_[static_cast<size_t>(found - storages_.begin())];
  }

 private:
  c10::SmallVector<const at::Tensor *, 8> tensors_;
  c10::SmallVector<const void *, 8> storages_;
};

// A PyTorch tensor over the result of a call; takes the reference. `inputs` are searched for the storage, so that a
// result that aliases an input shares its storage in PyTorch, too.
TORCH_GRAFT_API at::Tensor wrap(graft_tensor *tensor, const TensorsByStorage &inputs = {});
// One memory has one version: a result that the caller writes to may be what the backward keeps, under another tensor
// or another view, and so may an input. A new tensor has from now on that of the one with its memory.
void share_version(const at::Tensor &tensor, const TensorsByStorage &others);

// --- replayed_run.cpp ---

// Whether a tensor lies in memory that replays hand out as it is, so that it may be found there again.
TORCH_GRAFT_API bool is_replayed(const at::Tensor &tensor);

// --- call.cpp ---

// How one overload of PyTorch reaches an op of libgraft. The rows are generated: see codegen/.
enum class Form : uint8_t {
  Functional,  // new results
  Mutating     // in place and out forms: results are written to arguments, which are returned as the schema says
};
struct OpRow {
  const char *name;  // "add.out", without "aten::"
  uint32_t op_id;    // GRAFT_OP_*
  Form form;
  // One letter an argument of PyTorch's schema. It becomes a value of:
  //   T tensor, may be absent  L list of tensors  i int  f float  b bool  s Scalar  I int list
  //   F float list  S Scalar list  m bool list of fixed length  z str  d dtype  g generator  M memory format  V device
  //   n Scalar where the op has a tensor  x list of indices and masks, which may be on the CPU; items may be absent
  //   - nothing: an absent argument (layout, pin_memory, ...)   o no argument of the op: an out tensor
  //   O an out tensor whose shape stays where it has as many elements as the result
  //   D dtype; where it is absent the out tensor's
  //   e bool, whether an info that is not 0 is an error: false for the op, and check_infos asks
  // and for arguments of the op that PyTorch's schema has not:
  //   ~ absent   0 the number 0   = the out tensor's dtype   @ its device   # its sizes
  const char *args;
  // Mutating: for each output of the op the argument it is written to, 'a' + index; '.' for one that is not returned.
  const char *outs;
  bool elementwise;  // the shape is that of the tensors broadcast, and says nothing more
};
inline bool is_out(char letter) {
  return letter == 'o' || letter == 'O';
}
inline bool is_out_form(const OpRow &row) {
  return std::strpbrk(row.args, "oO") != nullptr;
}
extern const OpRow kOpRows[];  // registrations.cpp, from generated/registrations.inc
extern const size_t kOpRowCount;
void run(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack);
// Throws PyTorch's error where a tensor of another device stands beside one of ours. Tensors of the CPU without
// dimensions go along as numbers do.
void check_same_device(c10::ArrayRef<const at::Tensor *> tensors, const c10::OperatorHandle &op);

// --- copy.cpp ---

void copy_values(const at::Tensor &to, const at::Tensor &from, bool non_blocking);

// --- dims.cpp ---

inline bool has_many_dims(const at::Tensor &tensor) {
  return C10_UNLIKELY(tensor.dim() > GRAFT_MAX_DIMS);
}
// copy_values where one of them has.
void copy_many_dims(const at::Tensor &to, const at::Tensor &from, bool non_blocking);
// A row's op where one of its tensors has. An elementwise op runs on the device, another one on the CPU.
void run_many_dims(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack);

// --- infos.cpp ---

// Raises PyTorch's error where one of the infos, which a row with 'e' leaves last, is not 0.
void check_infos(const OpRow &row, const at::Tensor &infos, bool one_matrix);

// --- shared.cpp ---

// Runs a row's op that libgraft refused because elements of the tensor that it writes to share memory, if PyTorch does;
// false: it is refused there, too, or was refused for another reason.
bool run_shared(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack);

// --- profiler.cpp ---

torch::profiler::impl::ProfilerStubs *profiler_stubs() noexcept;

// --- kineto.cpp ---

void register_kineto();
void profile_opened(c10::DeviceIndex index, graft_rt_device *device);  // for device.cpp

// --- fallback.cpp ---

// Runs an op by PyTorch's CPU kernel, counted; throws under GRAFT_FALLBACK=error, naming op and dtypes.
void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack);
// Whether GRAFT_FALLBACK=error.
bool fallback_forbidden();

// --- compositions.cpp ---

// Writes what an op of several made to its `out`: resized, cast where PyTorch's promotion allows it.
at::Tensor &write_result(at::Tensor &out, const at::Tensor &result);
// Half types as f32, what norms are counted in.
at::Tensor wide(const at::Tensor &x);
// All dims but the second, that of channels.
std::vector<int64_t> all_but_channels(const at::Tensor &x);
// Moves a running statistic on, where there is one.
void move_on(const std::optional<at::Tensor> &running, const at::Tensor &now, double momentum);

}  // namespace torch_graft
