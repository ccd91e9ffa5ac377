// The table of devices: index n of PyTorch is device k of a plugin. It is made when the first device is used, from all
// plugins that discovery found, in order of name and the built-in reference backend last; load() appends to it. Rows
// never change or go away, so that an index means the same as long as the process lives.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>

#include "bridge.h"
#include "custom.h"

namespace torch_graft {

namespace {

struct Row {
  graft_rt_backend *backend;
  int32_t number;  // of the device in its backend
};

// Written under the mutex; a row is complete before row_count says that it is there.
std::mutex table_mutex;
std::array<Row, kCapacity> rows;
std::atomic<int> row_count{0};
std::atomic<bool> started{false};
std::array<std::atomic<graft_rt_device *>, kCapacity> open_devices{};  // null: not opened yet

std::string text_of(const Row &row) {
  return std::string(graft_backend_name(row.backend)) + ":" + std::to_string(row.number);
}

std::string name_of(int index) {
  return c10::DeviceTypeName(c10::kPrivateUse1, true) + ":" + std::to_string(index);
}

// "graft:0 (opencl:0), graft:1 (reference:0)"
std::string list() {
  std::string text;
  for (int i = 0; i < row_count.load(std::memory_order_acquire); i++) {
    text += (i ? ", " : "") + name_of(i) + " (" + text_of(rows[i]) + ")";
  }
  return text.empty() ? "none" : text;
}

// --- filling the table [locked] ---

// Returns how many devices found no room.
int append(graft_rt_backend *backend, int32_t device_count) {
  int count = row_count.load(std::memory_order_relaxed);
  int32_t taken = std::min(device_count, kCapacity - count);
  for (int32_t k = 0; k < taken; k++) rows[count + k] = {backend, k};
  row_count.store(count + taken, std::memory_order_release);
  return device_count - taken;
}

void add_backend(const char *name, std::vector<std::string> &problems) {
  graft_rt_backend *backend = nullptr;
  int32_t count = 0;
  if (graft_backend_open(name, nullptr, &backend) || graft_backend_device_count(backend, &count)) {
    problems.push_back("the plugin \"" + std::string(name) + "\" can't be used: " + graft_last_error() +
                       ". Its devices are left out; repair or remove it, or leave it out by GRAFT_PLUGINS");
  } else if (count == 0) {
    problems.push_back("the plugin \"" + std::string(name) +
                       "\" finds no device, and is left out; check that its driver works");
  } else if (int left_out = append(backend, count)) {
    problems.push_back(std::to_string(left_out) + " of the " + std::to_string(count) + " devices of \"" + name +
                       "\" are left out: there is room for " + std::to_string(kCapacity) +
                       "; choose plugins by GRAFT_PLUGINS");
  }
}

// Plugins that were refused when their manifests were read have been told of by then: see _registration.py.
std::vector<std::string> fill() {
  std::vector<std::string> problems;
  const graft_backend_info *const *infos = nullptr;
  size_t count = 0;
  check(graft_backends(&infos, &count));
  row_count.store(0);  // a fork may have come while the table was being made
  for (size_t i = 0; i < count; i++) {
    if (!infos[i]->problem && infos[i]->manifest) add_backend(infos[i]->name, problems);
  }
  const bool has_plugin_device = row_count.load() > 0;
  for (size_t i = 0; i < count; i++) {
    if (!infos[i]->problem && !infos[i]->manifest) add_backend(infos[i]->name, problems);
  }
  // Somebody who names the plugins to use wants it so.
  if (!has_plugin_device && !std::getenv("GRAFT_PLUGINS")) {
    problems.push_back(name_of(0) +
                       " is libgraft's reference device, which is right and slow: no plugin with a device " +
                       "was found; `graft backends` lists where plugins are looked for and why one is not used, and " +
                       "GRAFT_PLUGINS=none silences this");
  }
  return problems;
}

// Starts the drivers, once. Warnings are given when the lock is free again: they may run Python code.
void start() {
  if (C10_LIKELY(started.load(std::memory_order_acquire))) return;
  std::vector<std::string> problems;
  {
    std::lock_guard<std::mutex> lock(table_mutex);
    if (started.load(std::memory_order_relaxed)) return;
    // What another thread holds at a fork would be held in the child for ever.
    pthread_atfork(nullptr, nullptr, [] { new (&table_mutex) std::mutex; });
    problems = fill();
    started.store(true, std::memory_order_release);
  }
  register_custom_ops();
  for (const std::string &problem : problems) TORCH_WARN("graft: ", problem, ".");
}

[[noreturn]] void no_such_device(int index) {
  TORCH_CHECK(false, name_of(index), ": there is no such device; there are: ", list());
}

graft_rt_device *open_device(c10::DeviceIndex index) {
  check_index(index);
  std::lock_guard<std::mutex> lock(table_mutex);
  graft_rt_device *device = open_devices[index].load(std::memory_order_relaxed);
  if (device) return device;
  check(graft_backend_device(rows[index].backend, rows[index].number, &device));
  seed_opened(device);
  profile_opened(index, device);
  open_devices[index].store(device, std::memory_order_release);
  return device;
}

}  // namespace

// --- looking up ---

graft_rt_device *device_of(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  graft_rt_device *device = index < kCapacity ? open_devices[index].load(std::memory_order_acquire) : nullptr;
  return C10_LIKELY(device != nullptr) ? device : open_device(index);
}

void check_index(c10::DeviceIndex index) {
  if (C10_LIKELY(index >= 0 && index < row_count.load(std::memory_order_acquire))) return;
  start();
  if (index < 0 || index >= row_count.load(std::memory_order_acquire)) no_such_device(index);
}

bool is_open(c10::DeviceIndex index) noexcept {
  return index >= 0 && index < kCapacity && open_devices[index].load(std::memory_order_acquire);
}

c10::DeviceIndex index_of(const graft_rt_device *device) noexcept {
  int count = row_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; i++) {
    if (open_devices[i].load(std::memory_order_acquire) == device) return static_cast<c10::DeviceIndex>(i);
  }
  // Opened by libgraft for itself, as the reference device is, and not through the table yet.
  for (int i = 0; i < count; i++) {
    if (is_open(i) || text_of(rows[i]) != graft_device_text(device)) continue;
    try {
      if (open_device(static_cast<c10::DeviceIndex>(i)) == device) return static_cast<c10::DeviceIndex>(i);
    } catch (const c10::Error &) {  // another plugin of that name, whose device does not open
    }
  }
  return -1;
}

c10::DeviceIndex device_count() noexcept {
  try {
    start();
  } catch (const std::exception &) {  // a warning that Python was asked to turn into an error; the table is made
  }
  return static_cast<c10::DeviceIndex>(row_count.load(std::memory_order_acquire));
}

bool is_initialized() noexcept {
  return started.load(std::memory_order_acquire) && !graft_is_forked();
}

bool is_forked() noexcept {
  return graft_is_forked();
}

std::vector<DeviceRow> devices() {
  start();
  std::vector<DeviceRow> all;
  for (int i = 0; i < row_count.load(std::memory_order_acquire); i++) {
    all.push_back({text_of(rows[i]), graft_backend_name(rows[i].backend)});
  }
  return all;
}

c10::DeviceIndex load(const std::string &path) {
  start();
  graft_rt_backend *backend = nullptr;
  int32_t found = 0;
  check(graft_backend_open(path.c_str(), nullptr, &backend));
  check(graft_backend_device_count(backend, &found));
  TORCH_CHECK(found > 0, path, ": the plugin finds no device; check that its driver works");
  register_custom_ops();
  std::lock_guard<std::mutex> lock(table_mutex);
  int count = row_count.load(std::memory_order_relaxed);
  for (int i = 0; i < count; i++) {
    if (rows[i].backend == backend) return static_cast<c10::DeviceIndex>(i);
  }
  TORCH_CHECK(count + found <= kCapacity, path, ": no room for its devices (", found, "): there are ", count,
              " already, and at most ", kCapacity);
  append(backend, found);
  return static_cast<c10::DeviceIndex>(count);
}

void each_open(const std::function<void(c10::DeviceIndex, graft_rt_device *)> &visit) {
  std::lock_guard<std::mutex> lock(table_mutex);
  for (int i = 0; i < kCapacity; i++) {
    if (auto *device = open_devices[i].load(std::memory_order_relaxed)) visit(static_cast<c10::DeviceIndex>(i), device);
  }
}

// --- errors ---

void raise(graft_status status) {
  raise(status, graft_last_error());
}

void raise(graft_status status, const std::string &text) {
  const c10::SourceLocation here = {__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  switch (status) {
    case GRAFT_OUT_OF_MEMORY: throw c10::OutOfMemoryError(here, text);
    case GRAFT_UNIMPLEMENTED: throw c10::NotImplementedError(here, text);
    case GRAFT_DEVICE_LOST:
    case GRAFT_STREAM_FAILED: throw c10::AcceleratorError(here, status, text);
    case GRAFT_OUT_OF_RANGE: throw c10::IndexError(here, text);
    default: throw c10::Error(here, text);
  }
}

}  // namespace torch_graft
