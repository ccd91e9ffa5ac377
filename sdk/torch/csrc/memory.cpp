// Memory: libgraft's storages as c10::DataPtr, its caching allocator as c10::DeviceAllocator, its pinned memory as
// at::HostAllocator.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "graph.h"

namespace torch_graft {

// --- storages ---

namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingDeviceAllocator::DeviceStats;

c10::Device device_at(c10::DeviceIndex index) {
  return c10::Device(c10::kPrivateUse1, index);
}

graft_memory_statistics statistics_of(graft_rt_device *device) {
  graft_memory_statistics statistics = {};
  statistics.struct_size = sizeof statistics;
  check(graft_memory_stats(device, &statistics));
  return statistics;
}

// For torch.profiler(profile_memory=True).
void report(const graft_storage *storage, c10::DeviceIndex index, int64_t sign) {
  graft_rt_device *device = graft_storage_device(storage);
  graft_memory_statistics now = {};
  now.struct_size = sizeof now;
  if (graft_memory_stats(device, &now)) return;
  c10::reportMemoryUsageToProfiler(graft_storage_address(storage),
                                   sign * static_cast<int64_t>(graft_storage_bytes(storage)),
                                   static_cast<size_t>(now.allocated_bytes.current),
                                   static_cast<size_t>(now.reserved_bytes.current), device_at(index));
}

// The deleter of our DataPtrs, by which they are known.
void release(void *context) {
  auto *storage = static_cast<graft_storage *>(context);
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) report(storage, index_of(graft_storage_device(storage)), -1);
  graft_storage_release(storage);
}

graft_storage *new_storage(c10::DeviceIndex index, uint64_t bytes) {
  graft_storage *storage = nullptr;
  check(graft_storage_new(device_of(index), bytes, &storage));
  return storage;
}

}  // namespace

graft_storage *empty_storage(c10::DeviceIndex index) {
  static std::array<std::atomic<graft_storage *>, kCapacity> all{};
  graft_rt_device *device = device_of(index);
  std::atomic<graft_storage *> &slot = all[index_of(device)];
  graft_storage *storage = slot.load(std::memory_order_acquire);
  if (storage) return storage;
  graft_storage *made = new_storage(index, 0);
  if (slot.compare_exchange_strong(storage, made)) return made;
  graft_storage_release(made);
  return storage;
}

c10::DataPtr data_ptr_of(graft_storage *storage, c10::DeviceIndex index) {
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) report(storage, index, 1);
  return c10::DataPtr(graft_storage_address(storage), storage, release, device_at(index));
}

bool is_own_memory(const c10::StorageImpl *storage) {
  return storage->data_ptr().get_deleter() == release;
}

graft_storage *storage_of(const c10::StorageImpl *storage) {
  const c10::DataPtr &pointer = storage->data_ptr();
  if (C10_LIKELY(is_own_memory(storage))) return static_cast<graft_storage *>(pointer.get_context());
  TORCH_CHECK(!pointer && !storage->nbytes(), "graft: a tensor on ", storage->device(),
              " has memory that Graft did not allocate (wrapped by its address, or shared by another library); clone() "
              "it on its own device first");
  return empty_storage(storage->device().index());
}

c10::Storage wrap_storage(const graft_tensor_parts &parts) {
  c10::DeviceIndex index = index_of(parts.device);
  if (C10_UNLIKELY(c10::memoryProfilingEnabled())) report(parts.storage, index, 1);
  return c10::Storage(c10::Storage::use_byte_size_t(), parts.bytes,
                      c10::DataPtr(parts.address, parts.storage, release, device_at(index)), device_allocator(),
                      /*resizable=*/true);
}

void use_on_stream(const c10::DataPtr &pointer, const c10::Stream &stream) {
  if (pointer.get_deleter() != release) return;  // memory that is not reused through us
  check(graft_storage_record_stream(static_cast<graft_storage *>(pointer.get_context()), stream_of(stream)));
}

std::atomic<bool> any_storage_shrank{false};

void resize_storage(c10::StorageImpl *storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  c10::DeviceIndex index = storage->device().index();
  graft_storage *before = storage_of(storage);
  if (bytes < storage->nbytes()) any_storage_shrank = true;
  c10::DataPtr pointer = data_ptr_of(new_storage(index, bytes), index);
  int64_t kept = static_cast<int64_t>(std::min(storage->nbytes(), bytes));
  TORCH_CHECK(!is_recording() || !kept, "graft: a graph's values keep the size that they are made with");
  if (kept > 0) {
    const int64_t stride = 1;
    const graft_view view = {GRAFT_U8, 1, &kept, &stride, 0, false, false};
    // The copy may run on another stream than the one that the old memory goes back to.
    check(graft_storage_record_stream(before, graft_stream_current(device_of(index))));
    graft_tensor_space to, from;
    auto *after = static_cast<graft_storage *>(pointer.get_context());
    check(graft_tensor_copy(graft_tensor_borrow(&to, after, &view), graft_tensor_borrow(&from, before, &view)));
  }
  storage->set_data_ptr_noswap(std::move(pointer));
  storage->set_nbytes(bytes);
}

// --- the device's allocator ---

namespace {

// What a device had counted when its accumulated statistics were reset: libgraft counts on.
std::mutex baseline_mutex;
std::array<graft_memory_statistics, kCapacity> baselines{};

struct StatName {
  graft_memory_stat graft_memory_statistics::*graft;
  StatArray DeviceStats::*torch;
};
constexpr StatName kStats[] = {
    {&graft_memory_statistics::allocation, &DeviceStats::allocation},
    {&graft_memory_statistics::segment, &DeviceStats::segment},
    {&graft_memory_statistics::active, &DeviceStats::active},
    {&graft_memory_statistics::inactive_split, &DeviceStats::inactive_split},
    {&graft_memory_statistics::allocated_bytes, &DeviceStats::allocated_bytes},
    {&graft_memory_statistics::reserved_bytes, &DeviceStats::reserved_bytes},
    {&graft_memory_statistics::active_bytes, &DeviceStats::active_bytes},
    {&graft_memory_statistics::inactive_split_bytes, &DeviceStats::inactive_split_bytes},
    {&graft_memory_statistics::requested_bytes, &DeviceStats::requested_bytes},
};

struct CounterName {
  int64_t graft_memory_statistics::*graft;
  int64_t DeviceStats::*torch;
};
constexpr CounterName kCounters[] = {
    {&graft_memory_statistics::num_alloc_retries, &DeviceStats::num_alloc_retries},
    {&graft_memory_statistics::num_ooms, &DeviceStats::num_ooms},
    {&graft_memory_statistics::num_device_alloc, &DeviceStats::num_device_alloc},
    {&graft_memory_statistics::num_device_free, &DeviceStats::num_device_free},
};

constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// 0 where the plugin does not tell.
uint64_t ask_bytes(graft_rt_device *device, graft_device_key key) {
  uint64_t bytes = 0;
  size_t size = 0;
  graft_status status = graft_device_query(device, key, &bytes, sizeof bytes, &size);
  if (status && status != GRAFT_UNIMPLEMENTED) raise(status);
  return status ? 0 : bytes;
}

uint64_t total_memory(graft_rt_device *device) {
  uint64_t total = ask_bytes(device, GRAFT_DEVICE_TOTAL_MEMORY);
  TORCH_CHECK_NOT_IMPLEMENTED(total, graft_device_text(device), ": the plugin does not tell how much memory there is");
  return total;
}

class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::DeviceIndex index = current_device();
    return data_ptr_of(new_storage(index, bytes), index);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // the context is not the address
  // By address alone PyTorch copies only memory whose context is its address.
  void copy_data(void *, const void *, size_t) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graft: device memory can't be copied by its address; copy the tensor");
  }
  bool is_simple_data_ptr(const c10::DataPtr &) const override { return false; }

  bool initialized() override { return is_initialized(); }
  void emptyCache(c10::MempoolId_t = {0, 0}) override {
    for (c10::DeviceIndex i = 0; i < kCapacity; i++) {
      if (is_open(i)) check(graft_memory_empty_cache(device_of(i)));
    }
  }
  void recordStream(const c10::DataPtr &pointer, c10::Stream stream) override { use_on_stream(pointer, stream); }

  DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    DeviceStats stats;
    check_index(index);
    if (!is_open(index)) return stats;
    graft_memory_statistics now = statistics_of(device_of(index));
    std::lock_guard<std::mutex> lock(baseline_mutex);
    const graft_memory_statistics &before = baselines[index];
    for (const StatName &name : kStats) {
      const graft_memory_stat &stat = now.*name.graft;
      (stats.*name.torch)[kAll] = Stat{stat.current, stat.peak, stat.allocated - (before.*name.graft).allocated,
                                       stat.freed - (before.*name.graft).freed};
    }
    for (const CounterName &name : kCounters) stats.*name.torch = now.*name.graft - before.*name.graft;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    check_index(index);
    if (!is_open(index)) return;
    graft_memory_statistics now = statistics_of(device_of(index));
    std::lock_guard<std::mutex> lock(baseline_mutex);
    baselines[index] = now;
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    check_index(index);
    if (is_open(index)) graft_memory_reset_peak(device_of(index));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    graft_rt_device *device = device_of(index);
    uint64_t total = total_memory(device), free = ask_bytes(device, GRAFT_DEVICE_FREE_MEMORY);
    if (!free) {  // not told: what this process leaves
      uint64_t held = static_cast<uint64_t>(statistics_of(device).reserved_bytes.current);
      free = total - std::min(total, held);
    }
    return {free, total};
  }
};

}  // namespace

c10::Allocator *device_allocator() noexcept {
  static auto *allocator = new Allocator;
  return allocator;
}

void set_memory_fraction(double fraction, c10::DeviceIndex index) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "the fraction of memory is ", fraction, "; expected 0 to 1");
  graft_rt_device *device = device_of(index);
  double bytes = std::floor(static_cast<double>(total_memory(device)) * fraction);
  graft_memory_set_limit(device, std::max<uint64_t>(1, static_cast<uint64_t>(bytes)));  // 0 would mean: no limit
}

// --- pinned memory ---

namespace {

struct Pinned {
  graft_rt_device *device;
  void *pointer;
  size_t bytes;
};

// What was given out and is not free yet, by address.
std::mutex pinned_mutex;
std::atomic<size_t> pinned_count{0};
at::HostStats pinned_stats;

std::map<uintptr_t, const Pinned *> &all_pinned() {
  static auto *all = new std::map<uintptr_t, const Pinned *>;
  return *all;
}

void count_pinned(const Pinned &pinned, bool in_use) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  // libgraft does not tell what its cache holds besides: the two pairs are the same.
  for (Stat *stat : {&pinned_stats.active_requests, &pinned_stats.allocations}) {
    in_use ? stat->increase(1) : stat->decrease(1);
  }
  for (Stat *stat : {&pinned_stats.active_bytes, &pinned_stats.allocated_bytes}) {
    in_use ? stat->increase(pinned.bytes) : stat->decrease(pinned.bytes);
  }
  auto address = reinterpret_cast<uintptr_t>(pinned.pointer);
  if (in_use) {
    all_pinned().emplace(address, &pinned);
  } else {
    all_pinned().erase(address);
  }
  pinned_count.store(all_pinned().size());
}

void free_pinned(void *context) {
  auto *pinned = static_cast<Pinned *>(context);
  count_pinned(*pinned, false);
  graft_pinned_free(pinned->device, pinned->pointer);
  delete pinned;
}

class HostAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return c10::DataPtr(nullptr, c10::kCPU);
    auto pinned = std::make_unique<Pinned>(Pinned{device_of(current_device()), nullptr, bytes});
    check(graft_pinned_allocate(pinned->device, bytes, &pinned->pointer));
    count_pinned(*pinned, true);
    void *pointer = pinned->pointer;
    return c10::DataPtr(pointer, pinned.release(), free_pinned, c10::kCPU);
  }
  void copy_data(void *to, const void *from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool record_event(void *pointer, void *, c10::Stream stream) override {
    graft_rt_device *device = device_of(stream.device());
    check(graft_pinned_record_stream(device, pointer, stream_of(stream)));
    return graft_pinned_owns(device, pointer, 1);
  }
  // libgraft empties the cache of a device and its pinned memory in one.
  void empty_cache() override { c10::getDeviceAllocator(c10::kPrivateUse1)->emptyCache(); }

  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    return pinned_stats;
  }
  void reset_accumulated_stats() override {
    each_stat([](Stat &stat) { stat.reset_accumulated(); });
  }
  void reset_peak_stats() override {
    each_stat([](Stat &stat) { stat.reset_peak(); });
  }

 private:
  template <typename Visit>
  void each_stat(Visit visit) {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    for (Stat *stat : {&pinned_stats.active_requests, &pinned_stats.active_bytes, &pinned_stats.allocations,
                       &pinned_stats.allocated_bytes}) {
      visit(*stat);
    }
  }
};

}  // namespace

at::HostAllocator *host_allocator() noexcept {
  static auto *allocator = new HostAllocator;
  return allocator;
}

bool is_pinned_pointer(const void *pointer) {
  if (!pinned_count.load()) return false;
  std::lock_guard<std::mutex> lock(pinned_mutex);
  auto address = reinterpret_cast<uintptr_t>(pointer);
  auto behind = all_pinned().upper_bound(address);
  if (behind == all_pinned().begin()) return false;
  const Pinned &pinned = *std::prev(behind)->second;
  return address - reinterpret_cast<uintptr_t>(pinned.pointer) < pinned.bytes;
}

}  // namespace torch_graft
