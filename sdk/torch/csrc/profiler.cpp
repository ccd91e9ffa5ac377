// torch.autograd.profiler.profile(use_device=...) and the like: the device's time of each op, between two of its
// events.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "bridge.h"

namespace torch_graft {

namespace {

using Event = torch::profiler::impl::ProfilerVoidEventStub;

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(c10::DeviceIndex *device, Event *event, int64_t *cpu_ns) const override {
    c10::DeviceIndex index = current_device();
    if (device) *device = index;
    if (cpu_ns) *cpu_ns = c10::getTime();
    void *made = nullptr;
    device_guard()->record(&made, current_stream(index), index, c10::EventFlag::BACKEND_DEFAULT);
    *event = Event(made, [index](void *owned) { device_guard()->destroyEvent(owned, index); });
  }

  // In microseconds. What throws here is printed with a stack trace for each op.
  float elapsed(const Event *from, const Event *to) const override {
    try {
      device_guard()->synchronizeEvent(from->get());
      device_guard()->synchronizeEvent(to->get());
      return static_cast<float>(device_guard()->elapsedTime(from->get(), to->get(), current_device()) * 1e3);
    } catch (const c10::Error &error) {
      TORCH_WARN_ONCE("graft: the profiler has no times of the device: ", error.what_without_backtrace());
      return 0;
    }
  }

  void onEachDevice(std::function<void(int)> visit) const override {
    for (c10::DeviceIndex i = 0; i < kCapacity; i++) {
      if (!is_open(i)) continue;
      c10::DeviceIndex before = current_device();
      set_device(i);
      visit(i);
      set_device(before);
    }
  }
  void synchronize() const override { device_guard()->synchronizeDevice(current_device()); }
  bool enabled() const override { return true; }

  // Marks for a tool that watches from outside; there is none.
  void mark(const char *) const override {}
  void rangePush(const char *) const override {}
  void rangePop() const override {}
};

}  // namespace

torch::profiler::impl::ProfilerStubs *profiler_stubs() noexcept {
  static auto *stubs = new Stubs;
  return stubs;
}

}  // namespace torch_graft
