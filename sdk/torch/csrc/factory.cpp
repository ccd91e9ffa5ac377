// Allocation and metadata: PyTorch's own kernels over libgraft's storages; nothing here crosses the ABI but allocation.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

namespace {

// The device that allocations of this scope go to.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) : before_(current_device()), switched_(index != before_) {
    if (switched_) set_device(index);
  }
  ~DeviceScope() {
    if (switched_) set_device(before_);
  }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

 private:
  c10::DeviceIndex before_;
  bool switched_;
};

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::DeviceIndex index_of_option(std::optional<c10::Device> device) {
  return device && device->index() >= 0 ? device->index() : current_device();
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "graft: ", *layout,
              " tensors are not supported; use a dense tensor");
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
}

// torch.utils.deterministic.fill_uninitialized_memory: what was not written reads as NaN or the largest integer.
bool fills_memory() {
  const at::Context &context = at::globalContext();
  return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor filled(at::Tensor made) {
  if (C10_UNLIKELY(fills_memory())) at::native::fill_empty_deterministic_(made);
  return made;
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> format) {
  check_options(layout, pin_memory);
  auto type = c10::dtype_or_default(dtype);
  dtype_of(type);
  DeviceScope scope(index_of_option(device));
  return filled(at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), device_allocator(), kKeys, type, format));
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  auto type = c10::dtype_or_default(dtype);
  dtype_of(type);
  DeviceScope scope(index_of_option(device));
  return filled(at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                                  device_allocator(), kKeys, type));
}

// --- views ---

at::Tensor as_strided(const at::Tensor &self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
  auto plain = offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__)) : std::nullopt;
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), plain);
}

at::Tensor view(const at::Tensor &self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor &self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

// --- storages ---

// Grows the storage where a view of it needs more.
void make_room(at::TensorImpl *impl, size_t bytes) {
  if (impl->numel() == 0) return;
  const c10::Storage &storage = impl->unsafe_storage();
  TORCH_CHECK(storage, "graft: a tensor without a storage can't be resized");
  if (bytes > storage.nbytes()) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(storage, bytes);
}

const at::Tensor &resize_(const at::Tensor &self, c10::SymIntArrayRef size, std::optional<c10::MemoryFormat> format) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto *impl = self.unsafeGetTensorImpl();
  DeviceScope scope(self.device().index());
  const int64_t bytes_before = static_cast<int64_t>(self.storage().nbytes());
  if (self.sizes() != sizes) {
    impl->set_sizes_contiguous(sizes);
    make_room(impl, at::detail::computeStorageNbytesContiguous(sizes, self.itemsize(), self.storage_offset()));
  }
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
    impl->empty_tensor_restride(*format);
  }
  if (C10_UNLIKELY(fills_memory())) at::native::fill_resize_deterministic_(self, bytes_before);
  return self;
}

at::Tensor &set_storage(at::Tensor &self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
  auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto strides = C10_AS_INTARRAYREF_SLOW(stride);
  int64_t first = offset.guard_int(__FILE__, __LINE__);
  at::native::checkSetStorage(self, std::move(source), first, sizes, strides);
  auto *impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(first);
  if (strides.data()) {
    impl->set_sizes_and_strides(sizes, strides);
    make_room(impl, at::detail::computeStorageNbytes(sizes, strides, self.itemsize(), first));
  } else {
    impl->set_sizes_contiguous(sizes);
    make_room(impl, at::detail::computeStorageNbytesContiguous(sizes, self.itemsize(), first));
  }
  return self;
}

at::Tensor &set_whole_storage(at::Tensor &self, at::Storage source) {
  int64_t count = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return set_storage(self, std::move(source), 0, c10::SymIntArrayRef(c10::SymInt(count)), {});
}

at::Tensor &set_tensor(at::Tensor &self, const at::Tensor &source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return set_storage(self, source.storage(), source.sym_storage_offset(), source.sym_sizes(), source.sym_strides());
}

at::Tensor &set_empty(at::Tensor &self) {
  DeviceScope scope(self.device().index());
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, device_allocator()->allocate(0), device_allocator(), true);
  return set_storage(self, std::move(storage), 0, c10::SymIntArrayRef(c10::SymInt(0)), {});
}

void record_stream(at::Tensor &self, c10::Stream stream) {
  check(graft_storage_record_stream(storage_of(self.storage().unsafeGetStorageImpl()), stream_of(stream)));
}

// Parameters keep their identity when a module moves between the CPU and the device, so that tied weights stay tied.
bool has_compatible_shallow_copy_type(const at::Tensor &self, const at::Tensor &from) {
  auto dense = [](const at::Tensor &t) { return t.layout() == c10::kStrided && (is_ours(t) || t.device().is_cpu()); };
  return dense(self) && dense(from);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("record_stream", TORCH_FN(record_stream));
  m.impl("_has_compatible_shallow_copy_type", TORCH_FN(has_compatible_shallow_copy_type));
}

}  // namespace torch_graft
