// The current device of a thread, streams and events, as c10 asks for them.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>

#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "bridge.h"

namespace torch_graft {

// --- the current device ---

namespace {

thread_local c10::DeviceIndex current = -1;  // -1: never set in this thread, which means 0

c10::Device device_at(c10::DeviceIndex index) {
  return c10::Device(c10::kPrivateUse1, index);
}

c10::DeviceIndex index_or_current(c10::DeviceIndex index) {
  return index < 0 ? current_device() : index;
}

bool is_main_thread() {
  return syscall(SYS_gettid) == getpid();
}

// The autograd engine, at the first backward of any device, asks how many devices there are, starts a thread for each
// and makes the device current there before anything else. That neither starts a driver nor fails: a device of that
// index may be loaded later, and until then its first use fails.
std::atomic<bool> engine_has_asked{false};
std::atomic<uint32_t> engine_threads{0};  // bit n: the one of index n has come
constexpr uint32_t kAllThreads = (UINT32_C(1) << kCapacity) - 1;

bool is_engine_thread(c10::DeviceIndex index) {
  return current < 0 && index >= 0 && index < kCapacity && !is_main_thread();
}

}  // namespace

c10::DeviceIndex current_device() noexcept {
  return current < 0 ? 0 : current;
}

void set_device(c10::DeviceIndex index) {
  if (index != current_device()) check_index(index);
  current = index;
}

void wait_for_engine() noexcept {
  constexpr int kPatienceMs = 2000;  // somebody else may have asked
  if (!engine_has_asked.load() || graft_is_forked()) return;
  for (int i = 0; i < kPatienceMs && engine_threads.load() != kAllThreads; i++) usleep(1000);
}

// --- streams ---

namespace {

// PyTorch names a stream by a number and never says that it needs one no more. So streams are made once, up to a number
// for each priority, and given out again in turn; number n is slot n of its device, 0 the default stream.
constexpr int kPoolSize = 32;
constexpr int kPriorities = 3;  // steps above and below the default
constexpr int kPools = 2 * kPriorities + 1;
constexpr int kSlots = 1 + kPools * kPoolSize;

struct Pool {
  std::array<c10::StreamId, kPoolSize> ids;
  int made = 0;
  int next = 0;
};

// A point in a stream's work. Time is measured on a stream of its own, which waits for the point: streams that carry
// work then need no timing, which costs each of their commands something.
struct Streams;
struct Event {
  Streams *streams = nullptr;  // of its device
  graft_rt_event *point = nullptr;
  graft_rt_event *time = nullptr;  // null: not wanted, or the device measures no time
};

struct Streams {
  graft_rt_device *device = nullptr;
  std::mutex mutex;
  std::atomic<int> count{0};
  std::array<std::atomic<graft_rt_stream *>, kSlots> slots{};
  std::array<std::atomic<graft_rt_stream *>, kSlots> clocks{};  // where the events of a slot take their time
  std::array<Pool, kPools> pools;
  int32_t lowest = 0, highest = 0;           // priorities, in the device's own numbers
  std::deque<graft_rt_event *> spare_times;  // destroyed by PyTorch, perhaps not done, oldest first
  bool has_timing = true;
};

std::array<std::atomic<Streams *>, kCapacity> all_streams{};
std::mutex all_streams_mutex;

Streams *find_streams(c10::DeviceIndex index) noexcept {
  return index >= 0 && index < kCapacity ? all_streams[index].load(std::memory_order_acquire) : nullptr;
}

Streams &make_streams(c10::DeviceIndex index) {
  graft_rt_device *device = device_of(index);
  std::lock_guard<std::mutex> lock(all_streams_mutex);
  if (Streams *made = find_streams(index)) return *made;
  auto streams = std::make_unique<Streams>();
  streams->device = device;
  // Nobody but this file changes the current stream, and needs this table to do so: it is the default stream.
  streams->slots[0].store(graft_stream_current(device));
  streams->count.store(1);
  int32_t range[2] = {0, 0};
  size_t size = 0;
  if (!graft_device_query(device, GRAFT_DEVICE_PRIORITIES, range, sizeof range, &size) && size == sizeof range) {
    streams->lowest = range[0];
    streams->highest = range[1];
  }
  all_streams[index].store(streams.get(), std::memory_order_release);
  return *streams.release();
}

Streams &streams_of(c10::DeviceIndex index) {
  Streams *streams = find_streams(index);
  return C10_LIKELY(streams != nullptr) ? *streams : make_streams(index);
}

// [locked]
c10::StreamId append(Streams &streams, graft_rt_stream *stream) {
  int id = streams.count.load(std::memory_order_relaxed);
  streams.slots[id].store(stream, std::memory_order_relaxed);
  streams.count.store(id + 1, std::memory_order_release);
  return id;
}

// PyTorch's priorities, smaller is more urgent, as steps from the default towards the device's highest.
int steps_of(int priority) {
  return std::clamp(-priority, -kPriorities, kPriorities);
}

int32_t priority_of(const Streams &streams, int steps) {
  int32_t least = std::min(streams.lowest, streams.highest), most = std::max(streams.lowest, streams.highest);
  int32_t sign = streams.highest < streams.lowest ? -1 : 1;
  return std::clamp(std::clamp(0, least, most) + sign * steps, least, most);
}

// The pool of the nearest priority that the device has: those that it does not tell apart share one.
Pool &pool_of(Streams &streams, int steps) {
  int32_t priority = priority_of(streams, steps);
  int toward = steps < 0 ? 1 : -1;
  while (steps && priority_of(streams, steps + toward) == priority) steps += toward;
  return streams.pools[steps + kPriorities];
}

c10::Stream take_stream(c10::DeviceIndex index, int priority) {
  Streams &streams = streams_of(index);
  std::lock_guard<std::mutex> lock(streams.mutex);
  int steps = steps_of(priority);
  Pool &pool = pool_of(streams, steps);
  if (pool.made < kPoolSize) {
    graft_rt_stream *stream = nullptr;
    check(graft_stream_create(streams.device, priority_of(streams, steps), 0, &stream));
    pool.ids[pool.made++] = append(streams, stream);
    return c10::Stream(c10::Stream::UNSAFE, device_at(index), pool.ids[pool.made - 1]);
  }
  return c10::Stream(c10::Stream::UNSAFE, device_at(index), pool.ids[pool.next++ % kPoolSize]);
}

c10::StreamId checked_id(const Streams &streams, const c10::Stream &stream) {
  c10::StreamId id = stream.id();
  int count = streams.count.load(std::memory_order_acquire);
  TORCH_CHECK(id >= 0 && id < count, stream.device(), " has no stream ", id, "; it has ", count,
              ", and torch.Stream makes more");
  return id;
}

}  // namespace

graft_rt_stream *stream_of(const c10::Stream &stream) {
  TORCH_CHECK(stream.device_type() == c10::kPrivateUse1, "expected a stream of ",
              c10::DeviceTypeName(c10::kPrivateUse1, true), ", but got one of ", stream.device());
  Streams &streams = streams_of(stream.device_index());
  return streams.slots[checked_id(streams, stream)].load(std::memory_order_relaxed);
}

c10::Stream current_stream(c10::DeviceIndex index) {
  index = index_or_current(index);
  const Streams *streams = find_streams(index);
  if (!streams || streams->count.load(std::memory_order_acquire) == 1) {  // there is no other than the default one
    return c10::Stream(c10::Stream::DEFAULT, device_at(index));
  }
  const graft_rt_stream *stream = graft_stream_current(streams->device);
  c10::StreamId id = streams->count.load(std::memory_order_acquire) - 1;
  while (id > 0 && streams->slots[id].load(std::memory_order_relaxed) != stream) id--;
  return c10::Stream(c10::Stream::UNSAFE, device_at(index), id);
}

// --- events ---

namespace {

// Destroying an event that has a time waits for it, which PyTorch's users do not expect: those that are not done yet
// are kept for the next event. [locked]
graft_rt_event *take_time(Streams &streams) {
  if (streams.spare_times.empty() || graft_event_query(streams.spare_times.front()) == GRAFT_NOT_READY) return nullptr;
  graft_rt_event *time = streams.spare_times.front();
  streams.spare_times.pop_front();
  return time;
}

// An event with a time, and a stream with times to record it on; false where the device has none.
bool prepare_timing(Streams &streams, c10::StreamId id, Event &event) {
  std::lock_guard<std::mutex> lock(streams.mutex);
  if (!streams.has_timing) return false;
  graft_rt_stream *clock = streams.clocks[id].load(std::memory_order_relaxed);
  graft_status status = clock ? GRAFT_OK : graft_stream_create(streams.device, 0, GRAFT_STREAM_TIMING, &clock);
  if (!status) {
    streams.clocks[id].store(clock, std::memory_order_relaxed);
    if (!event.time) event.time = take_time(streams);
    if (!event.time) status = graft_event_create(streams.device, GRAFT_EVENT_TIMING, &event.time);
  }
  if (status == GRAFT_UNIMPLEMENTED) streams.has_timing = false;
  if (status && status != GRAFT_UNIMPLEMENTED) raise(status);
  return status == GRAFT_OK;
}

void record(Event &event, const c10::Stream &stream, bool timing) {
  Streams &streams = streams_of(stream.device_index());
  c10::StreamId id = checked_id(streams, stream);
  if (!event.point) check(graft_event_create(streams.device, 0, &event.point));
  event.streams = &streams;
  check(graft_event_record(event.point, streams.slots[id].load(std::memory_order_relaxed)));
  if (!timing || !prepare_timing(streams, id, event)) return;
  graft_rt_stream *clock = streams.clocks[id].load(std::memory_order_relaxed);
  check(graft_stream_wait(clock, event.point));
  check(graft_event_record(event.time, clock));
}

bool is_done(graft_status status) {
  if (status != GRAFT_NOT_READY) check(status);
  return status == GRAFT_OK;
}

double elapsed(const Event &from, const Event &to) {
  TORCH_CHECK_NOT_IMPLEMENTED(from.time && to.time, graft_device_text(from.streams->device),
                              ": the plugin does not measure time");
  // The points have been reached: these follow without further work.
  check(graft_event_synchronize(from.time));
  check(graft_event_synchronize(to.time));
  double milliseconds = 0;
  check(graft_event_elapsed(from.time, to.time, &milliseconds));
  return milliseconds;
}

void destroy(Event *event) {
  graft_event_destroy(event->point);
  if (event->time && !graft_is_forked()) {
    std::lock_guard<std::mutex> lock(event->streams->mutex);
    event->streams->spare_times.push_back(event->time);
  }
  delete event;
}

// --- what a device can do ---

// In the order of graft_dtype_number.
constexpr graft_dtype kDtypesByNumber[] = {GRAFT_BOOL, GRAFT_U8,  GRAFT_I8,   GRAFT_I16,       GRAFT_I32,    GRAFT_I64,
                                           GRAFT_U16,  GRAFT_U32, GRAFT_U64,  GRAFT_F16,       GRAFT_BF16,   GRAFT_F32,
                                           GRAFT_F64,  GRAFT_C64, GRAFT_C128, GRAFT_F8_E4M3FN, GRAFT_F8_E5M2};
static_assert(std::size(kDtypesByNumber) == GRAFT_NUMBER_F8_E5M2 + 1, "one dtype for each number");
static_assert(c10::kIndex_Float == static_cast<int>(c10::ScalarType::Float), "bits are numbered as scalar types");

c10::DeviceCapability capability_of(c10::DeviceIndex index) {
  uint64_t known = 0;
  size_t size = 0;
  graft_status status = graft_device_query(device_of(index), GRAFT_DEVICE_DTYPES, &known, sizeof known, &size);
  if (status && status != GRAFT_UNIMPLEMENTED) raise(status);
  if (status || size != sizeof known) known = ~UINT64_C(0);  // not told: all that Graft has
  c10::DeviceCapability capability;
  capability.capability_data.capability_bits = 0;
  for (size_t number = 0; number < std::size(kDtypesByNumber); number++) {
    if (!(known & GRAFT_DTYPE_BIT(number))) continue;
    auto type = static_cast<int>(scalar_type_of(kDtypesByNumber[number]));
    capability.capability_data.capability_bits |= UINT64_C(1) << type;
  }
  return capability;
}

// --- all of it as c10 asks for it ---

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  c10::Device exchangeDevice(c10::Device device) const override {
    c10::DeviceIndex before = current_device();
    set_device(index_or_current(device.index()));
    return device_at(before);
  }
  c10::Device getDevice() const override { return device_at(current_device()); }
  void setDevice(c10::Device device) const override {
    if (is_engine_thread(device.index())) {
      current = device.index();
      engine_threads.fetch_or(UINT32_C(1) << current);
    } else {
      set_device(index_or_current(device.index()));
    }
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current = device.index();
  }
  // What the autograd engine makes room for; torch_graft::device_count() says how many there are.
  c10::DeviceIndex deviceCount() const noexcept override {
    engine_has_asked.store(true, std::memory_order_relaxed);
    return kCapacity;
  }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    return capability_of(index_or_current(device.index()));
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    c10::DeviceIndex which = index_or_current(index);
    check_index(which);
    if (is_open(which)) check(graft_device_synchronize(device_of(which)));
  }

  c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device_at(index_or_current(device.index())));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool isHighPriority = false) const override {
    return take_stream(index_or_current(device.index()), isHighPriority ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority = 0) const override {
    return take_stream(index_or_current(device.index()), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::Stream before = current_stream(stream.device_index());
    if (stream != before) graft_stream_set_current(stream_of(stream));
    return before;
  }
  void *getStreamNativeHandle(const c10::Stream stream) const override { return stream_of(stream); }
  bool queryStream(const c10::Stream &stream) const override { return is_done(graft_stream_query(stream_of(stream))); }
  void synchronizeStream(const c10::Stream &stream) const override {
    check(graft_stream_synchronize(stream_of(stream)));
  }

  void record(void **event, const c10::Stream &stream, const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK(index < 0 || index == stream.device_index(), "an event of ", device_at(index),
                " can't be recorded on a stream of ", stream.device());
    if (!*event) *event = new Event;
    torch_graft::record(*static_cast<Event *>(*event), stream, flag == c10::EventFlag::BACKEND_DEFAULT);
  }
  void block(void *event, const c10::Stream &stream) const override {
    if (event) check(graft_stream_wait(stream_of(stream), static_cast<Event *>(event)->point));
  }
  bool queryEvent(void *event) const override {
    return !event || is_done(graft_event_query(static_cast<Event *>(event)->point));
  }
  void synchronizeEvent(void *event) const override {
    if (event) check(graft_event_synchronize(static_cast<Event *>(event)->point));
  }
  double elapsedTime(void *from, void *to, const c10::DeviceIndex) const override {
    return elapsed(*static_cast<Event *>(from), *static_cast<Event *>(to));
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    if (event) destroy(static_cast<Event *>(event));
  }

  void recordDataPtrOnStream(const c10::DataPtr &pointer, const c10::Stream &stream) const override {
    use_on_stream(pointer, stream);
  }
};

}  // namespace

const c10::impl::DeviceGuardImplInterface *device_guard() noexcept {
  static const auto *guard = new Guard;
  return guard;
}

void synchronize(c10::DeviceIndex index) {
  device_guard()->synchronizeDevice(index);
}

}  // namespace torch_graft
