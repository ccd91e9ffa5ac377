// What PyTorch asks of an accelerator, and where everything of these files is registered: when the library is loaded.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <cstdlib>

#include "bridge.h"

namespace torch_graft {

namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  // The reference device is always there; to count the others would start their drivers.
  bool isAvailable() const override { return true; }
  void init() const override {}  // a device is opened when it is first used
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return is_open(index) && !graft_is_forked(); }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { set_device(index); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    c10::DeviceIndex before = current_device();
    set_device(index);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current_device() : exchangeDevice(index);
  }

  c10::Allocator *getPinnedMemoryAllocator() const override { return host_allocator(); }
  bool isPinnedPtr(const void *pointer) const override { return is_pinned_pointer(pointer); }
  // An address may be one of a range that only stands for memory of the device.
  c10::Device getDeviceFromPtr(void *pointer) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the device of memory at ", pointer,
                                " can't be told from its address; name the device");
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), bytes);
  }

  const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index = -1) const override { return new_generator(index); }
};

// PyTorch takes the hooks of one package only, and throws at a second one, which would end the process here.
bool register_all() {
  if (at::isPrivateUse1HooksRegistered()) return false;
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  c10::impl::registerDeviceGuard(c10::kPrivateUse1, device_guard());
  c10::SetAllocator(c10::kPrivateUse1, device_allocator());
  at::setHostAllocator(c10::kPrivateUse1, host_allocator());
  torch::profiler::impl::registerPrivateUse1Methods(profiler_stubs());
  register_kineto();
  return true;
}

const bool registered = register_all();

}  // namespace

bool is_registered() noexcept {
  return registered;
}

c10::Device device(c10::DeviceIndex index) {
  static const bool named = [] {
    TORCH_CHECK(registered, "graft: another package has taken PyTorch's device type for packages from outside");
    const char *name = std::getenv("GRAFT_TORCH_DEVICE_NAME");
    c10::register_privateuse1_backend(name && *name ? name : "graft");
    return true;
  }();
  (void)named;
  return c10::Device(c10::kPrivateUse1, index);
}

}  // namespace torch_graft
