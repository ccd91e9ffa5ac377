// Graft plugins as PyTorch devices, for programs in C++. To load libtorch_graft.so is enough for tensors, autograd,
// modules and optimizers of libtorch; here is what else there is to ask.
//
//   torch::Device device = torch_graft::device();
//   model->to(device);
//
// Compiles with PyTorch 2.11 to 2.13; the library is for the PyTorch that it was built with. Functions are thread-safe,
// and throw c10::Error.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#define TORCH_GRAFT_API __attribute__((visibility("default")))

namespace torch_graft {

// Device `index`, of the device type that PyTorch has for packages from outside. The first call gives that its name:
// what GRAFT_TORCH_DEVICE_NAME says, or "graft". Throws where another package has named it.
TORCH_GRAFT_API c10::Device device(c10::DeviceIndex index = 0);

// How many devices there are. Starts the drivers; 0 (and a warning, once) where none could be started.
TORCH_GRAFT_API c10::DeviceIndex device_count() noexcept;

struct DeviceRow {
  std::string text;    // "opencl:0"
  std::string plugin;  // "opencl"
};
// The devices of all plugins in the order of their indices. Opens the plugins.
TORCH_GRAFT_API std::vector<DeviceRow> devices();
// Adds a plugin by the path of its library or manifest, or by name; returns the index of its first device.
TORCH_GRAFT_API c10::DeviceIndex load(const std::string &path);

// The device that is current in this thread, at first number 0.
TORCH_GRAFT_API c10::DeviceIndex current_device() noexcept;
TORCH_GRAFT_API void set_device(c10::DeviceIndex index);
// Blocks until all work of a device is done; reports a fault of it.
TORCH_GRAFT_API void synchronize(c10::DeviceIndex index = 0);

// Seeds the default generators of all devices, of those not open yet when they are opened. torch::manual_seed does
// this, too.
TORCH_GRAFT_API void seed_all(uint64_t seed);

struct FallbackRow {
  std::string op, device, dtypes, way;  // way: "host kernel" (libgraft's) or "PyTorch CPU"
  uint64_t count;
};
// The calls that left their device since the start or the latest reset.
TORCH_GRAFT_API std::vector<FallbackRow> fallbacks();
TORCH_GRAFT_API void reset_fallbacks();

}  // namespace torch_graft
