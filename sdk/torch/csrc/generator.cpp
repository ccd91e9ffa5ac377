// Random generators: at::Generator over libgraft's, so that equal seeds give the numbers of a C program.
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>

#include "bridge.h"

namespace torch_graft {

namespace {

// What get_state() writes and set_state() reads.
struct State {
  uint64_t seed;
  uint64_t offset;
};
static_assert(sizeof(State) == 16, "a state is 16 bytes");

class Generator final : public c10::GeneratorImpl {
 public:
  // A generator of its own, or the device's default one.
  Generator(c10::DeviceIndex index, bool is_default)
      : c10::GeneratorImpl(c10::Device(c10::kPrivateUse1, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        owned_(!is_default) {
    graft_rt_device *device = device_of(index);
    if (is_default) {
      handle_ = graft_generator_default(device);
    } else {
      check(graft_generator_create(device, &handle_));
    }
  }
  ~Generator() override {
    if (owned_) graft_generator_destroy(handle_);
  }

  graft_generator *handle() const { return handle_; }

  void set_current_seed(uint64_t seed) override { graft_generator_seed(handle_, seed); }
  uint64_t current_seed() const override { return state().seed; }
  uint64_t seed() override {
    uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  void set_offset(uint64_t offset) override { set({current_seed(), offset}); }
  uint64_t get_offset() const override { return state().offset; }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    State now = state();
    auto bytes = at::detail::empty_cpu({static_cast<int64_t>(sizeof now)}, c10::TensorOptions(at::kByte));
    std::memcpy(bytes.mutable_data_ptr(), &now, sizeof now);
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl &bytes) override {
    at::detail::check_rng_state(bytes);
    State state;
    TORCH_CHECK(bytes.numel() == sizeof state, "the state of a generator of ", device(), " is ", sizeof state,
                " bytes (seed and offset), but got ", bytes.numel());
    std::memcpy(&state, bytes.data(), sizeof state);
    set(state);
  }

  // A state is two numbers: it is copied, not shared.
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override { return clone(); }
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl> &from) override {
    TORCH_CHECK_TYPE(from && from->device().type() == c10::kPrivateUse1, "expected the state of a generator of ",
                     c10::DeviceTypeName(c10::kPrivateUse1, true));
    set(static_cast<const Generator &>(*from).state());
  }

 private:
  State state() const {
    State now;
    graft_generator_state(handle_, &now.seed, &now.offset);
    return now;
  }
  void set(State state) {
    TORCH_CHECK(state.offset % 4 == 0, "the offset of a generator is a multiple of 4, but got ", state.offset);
    graft_generator_set_state(handle_, state.seed, state.offset);
  }
  Generator *clone_impl() const override {
    auto *copy = new Generator(device().index(), false);
    copy->set(state());
    return copy;
  }

  graft_generator *handle_ = nullptr;
  bool owned_;
};

// The seed for devices that are not open yet: seeding them starts no driver.
std::mutex seed_mutex;
std::optional<uint64_t> seed_for_all;

}  // namespace

graft_generator *generator_of(const at::Generator &generator) {
  TORCH_CHECK(generator.defined(), "expected a generator, but got one that is undefined");
  TORCH_CHECK(generator.device().type() == c10::kPrivateUse1, "expected a generator of ",
              c10::DeviceTypeName(c10::kPrivateUse1, true), ", but got one of ", generator.device());
  return generator.get<Generator>()->handle();
}

const at::Generator &default_generator(c10::DeviceIndex index) {
  static std::mutex mutex;
  static auto *all = new std::array<at::Generator, kCapacity>;
  if (index < 0) index = current_device();
  device_of(index);
  std::lock_guard<std::mutex> lock(mutex);
  at::Generator &generator = (*all)[index];
  if (!generator.defined()) generator = at::make_generator<Generator>(index, true);
  return generator;
}

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<Generator>(index < 0 ? current_device() : index, false);
}

void seed_all(uint64_t seed) {
  {
    std::lock_guard<std::mutex> lock(seed_mutex);
    seed_for_all = seed;
  }
  each_open([seed](c10::DeviceIndex, graft_rt_device *device) {
    graft_generator_seed(graft_generator_default(device), seed);
  });
}

void seed_opened(graft_rt_device *device) {
  std::lock_guard<std::mutex> lock(seed_mutex);
  if (seed_for_all) graft_generator_seed(graft_generator_default(device), *seed_for_all);
}

}  // namespace torch_graft
