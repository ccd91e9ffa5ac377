// The least a call can cost on a PrivateUse1 device: hand-written, unboxed kernels that allocate their output and
// compute nothing. What a bridge adds is measured from here.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>
#include <torch/library.h>

namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);
const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// A fixed block for every tensor: an allocator without cost.
struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t) override {
    static char block[1 << 20];
    return {block, nullptr, &ignore, kDevice};
  }
  static void ignore(void *) {}
  c10::DeleterFnPtr raw_deleter() const override { return &ignore; }
  void copy_data(void *, const void *, std::size_t) const override {}
};
Allocator allocator;

at::Tensor empty_like_shape(c10::IntArrayRef sizes) {
  return at::detail::empty_generic(sizes, &allocator, kKeys, c10::kFloat, std::nullopt);
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType>, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat>) {
  return empty_like_shape(size);
}

at::Tensor add(const at::Tensor &a, const at::Tensor &, const c10::Scalar &) {
  return empty_like_shape(a.sizes());
}

at::Tensor &add_out(const at::Tensor &, const at::Tensor &, const c10::Scalar &, at::Tensor &out) {
  return out;
}

at::Tensor convolution(const at::Tensor &input, const at::Tensor &, const std::optional<at::Tensor> &, c10::IntArrayRef,
                       c10::IntArrayRef, c10::IntArrayRef, bool, c10::IntArrayRef, int64_t) {
  return empty_like_shape(input.sizes());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("add.Tensor", TORCH_FN(add));
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
