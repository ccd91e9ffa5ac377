// torch.profiler.profile(activities=[..., ProfilerActivity.PrivateUse1]): what ran on the devices, as events of Kineto.
// The records are libgraft's (graft/profiler.h). Each is linked to the op of PyTorch that submitted it, so that
// key_averages adds up its time there, and stands in the Chrome trace on the row of its stream.
#include "bridge.h"

// Not every PyTorch has the registry; Kineto's headers are in PyTorch's package.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>) && __has_include(<libkineto.h>)
#define USE_KINETO
#define FMT_HEADER_ONLY
#pragma GCC visibility push(default)  // its headers have no marks of their own
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#pragma GCC visibility pop

#include <time.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "graft/profiler.h"

namespace torch_graft {

namespace {

using libkineto::ActivityType;

int64_t clock_ns(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

struct Record {
  c10::DeviceIndex device;
  graft_profile_record of;
  std::string name;
};

ActivityType type_of(graft_record_kind kind) {
  switch (kind) {
    case GRAFT_RECORD_COPY:
    case GRAFT_RECORD_COPY_FROM_HOST:
    case GRAFT_RECORD_COPY_TO_HOST: return ActivityType::GPU_MEMCPY;
    case GRAFT_RECORD_FILL: return ActivityType::GPU_MEMSET;
    default: return ActivityType::CONCURRENT_KERNEL;
  }
}

// Copies are called as Kineto calls those of CUDA; a kernel by its own name and that of its op.
std::string name_of(const graft_profile_record &record) {
  switch (record.kind) {
    case GRAFT_RECORD_COPY: return "Memcpy DtoD";
    case GRAFT_RECORD_COPY_FROM_HOST: return "Memcpy HtoD";
    case GRAFT_RECORD_COPY_TO_HOST: return "Memcpy DtoH";
    case GRAFT_RECORD_FILL: return "Memset";
    default: break;
  }
  const char *op = graft_op_name(record.op_id);
  std::string kernel = *record.name ? record.name : "kernel";
  return op ? kernel + " (" + op + ")" : kernel;
}

class Session;
std::mutex current_mutex;
Session *current = nullptr;  // the one that records, if any

// Ids that are left again when an op, or a range of the user's, ends.
thread_local std::vector<uint64_t> outer_ops, ranges;

class Session final : public libkineto::IActivityProfilerSession {
 public:
  ~Session() override { leave(); }

  void start() override {
    {
      std::lock_guard<std::mutex> lock(current_mutex);
      current = this;
    }
    each_open(profile_opened);
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    leave();
    for (const auto &[index, device] : devices_) graft_profiler_stop(device);
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  // [current_mutex held] A device that is opened meanwhile may come twice.
  void add(c10::DeviceIndex index, graft_rt_device *device) {
    if (devices_.count(index)) return;
    if (graft_profiler_start(device))
      errors_.push_back(graft_last_error());
    else
      devices_[index] = device;
  }

  std::vector<std::string> errors() override { return errors_; }

  void processTrace(libkineto::ActivityLogger &logger) override {
    processTrace(
        logger, [](int32_t) { return nullptr; }, 0, 0);
  }

  void processTrace(libkineto::ActivityLogger &logger, libkineto::getLinkedActivityCallback linked, int64_t,
                    int64_t) override {
    for (const std::string &error : errors_) TORCH_WARN("graft: the profiler has no events of a device: ", error);
    fetch();
    // Records are on a clock that never jumps, Kineto's events on the calendar's.
    shift_ = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    describe(logger);
    for (const Record &record : records_) add_command(record, linked);
    add_ranges(linked);
    for (const auto &activity : buffer_->activities) logger.handleActivity(*activity);
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  void pushCorrelationId(uint64_t id) override {
    outer_ops.push_back(graft_profiler_correlate(id));
    if (ranges.empty()) return;
    std::lock_guard<std::mutex> lock(range_mutex_);
    range_of_op_[id] = ranges.back();
  }
  void popCorrelationId() override {
    if (outer_ops.empty()) return;  // it began before the session
    graft_profiler_correlate(outer_ops.back());
    outer_ops.pop_back();
  }
  void pushUserCorrelationId(uint64_t id) override { ranges.push_back(id); }
  void popUserCorrelationId() override {
    if (!ranges.empty()) ranges.pop_back();
  }

 private:
  void leave() {
    std::lock_guard<std::mutex> lock(current_mutex);
    if (current == this) current = nullptr;
  }

  void fetch() {
    for (const auto &[index, device] : devices_) {
      graft_device_synchronize(device);  // a fault is the business of who waits for it
      uint64_t lost = 0;
      auto context = std::pair(this, index);
      graft_status status = graft_profiler_drain(
          device,
          [](void *taken, const graft_profile_record *record) {
            auto [session, device] = *static_cast<std::pair<Session *, c10::DeviceIndex> *>(taken);
            session->records_.push_back({device, *record, name_of(*record)});
          },
          &context, &lost);
      if (status)
        TORCH_WARN("graft: the profiler has no events of ", graft_device_text(device), ": ", graft_last_error());
      if (lost) TORCH_WARN("graft: the profiler has lost ", lost, " events of ", graft_device_text(device));
    }
  }

  void describe(libkineto::ActivityLogger &logger) {
    std::set<std::pair<c10::DeviceIndex, uint64_t>> streams;
    for (const Record &record : records_) streams.emplace(record.device, record.of.stream);
    int64_t now = clock_ns(CLOCK_REALTIME);
    for (const auto &[index, device] : devices_) {
      c10::Device name(c10::kPrivateUse1, index);
      logger.handleDeviceInfo({index, libkineto::kExceedMaxPid + index, name.str(), graft_device_text(device)}, now);
    }
    for (const auto &[device, stream] : streams) {
      auto id = static_cast<int64_t>(stream);
      logger.handleResourceInfo({id, id, device, "stream " + std::to_string(stream)}, now);
    }
  }

  libkineto::GenericTraceActivity &add_activity(const Record &record, ActivityType type, const std::string &name) {
    buffer_->emplace_activity(buffer_->span, type, name);
    auto &activity = libkineto::CpuTraceBuffer::toRef(buffer_->activities.back());
    activity.startTime = static_cast<int64_t>(record.of.begin_ns) + shift_;
    activity.endTime = static_cast<int64_t>(record.of.end_ns) + shift_;
    activity.device = record.device;
    activity.resource = static_cast<int32_t>(record.of.stream);
    activity.threadId = libkineto::threadId();
    return activity;
  }

  void add_command(const Record &record, const libkineto::getLinkedActivityCallback &linked) {
    auto &activity = add_activity(record, type_of(record.of.kind), record.name);
    activity.id = static_cast<int32_t>(record.of.correlation);
    activity.linked = linked(activity.id);
    activity.addMetadata("device", static_cast<int>(record.device));
    activity.addMetadata("stream", record.of.stream);
    activity.addMetadata("correlation", record.of.correlation);
    if (record.of.bytes) activity.addMetadata("bytes", record.of.bytes);
    if (const char *op = graft_op_name(record.of.op_id)) activity.addMetadataQuoted("op", op);
  }

  // From the first to the last command of each range of the user's, on each stream.
  void add_ranges(const libkineto::getLinkedActivityCallback &linked) {
    std::map<std::tuple<uint64_t, c10::DeviceIndex, uint64_t>, Record> spans;
    for (const Record &record : records_) {
      auto range = range_of_op_.find(record.of.correlation);
      if (range == range_of_op_.end()) continue;
      auto [at, is_new] = spans.try_emplace({range->second, record.device, record.of.stream}, record);
      at->second.of.begin_ns = std::min(at->second.of.begin_ns, record.of.begin_ns);
      at->second.of.end_ns = std::max(at->second.of.end_ns, record.of.end_ns);
    }
    for (const auto &[key, span] : spans) {
      const auto *range = linked(static_cast<int32_t>(std::get<0>(key)));
      if (range) add_activity(span, ActivityType::GPU_USER_ANNOTATION, range->name());
    }
  }

  std::map<c10::DeviceIndex, graft_rt_device *> devices_;
  std::vector<std::string> errors_;
  std::vector<Record> records_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ = [] {
    auto buffer = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer->span = libkineto::TraceSpan(0, 0, "graft");
    return buffer;
  }();
  std::mutex range_mutex_;
  std::unordered_map<uint64_t, uint64_t> range_of_op_;  // correlation ids
  int64_t shift_ = 0;
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string &name() const override {
    static const std::string name = "graft";
    return name;
  }
  const std::set<ActivityType> &availableActivities() const override {
    static const std::set<ActivityType> types = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                                 ActivityType::GPU_MEMSET, ActivityType::GPU_USER_ANNOTATION};
    return types;
  }
  // None where only the CPU is profiled.
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType> &types,
                                                                 const libkineto::Config &) override {
    if (!types.count(ActivityType::CONCURRENT_KERNEL)) return nullptr;
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t, const std::set<ActivityType> &types,
                                                                 const libkineto::Config &config) override {
    return configure(types, config);
  }
};

}  // namespace

void register_kineto() {
  torch::profiler::impl::PrivateUse1ProfilerRegistry::instance().registerFactory(
      [] { return std::make_unique<Profiler>(); });
}

void profile_opened(c10::DeviceIndex index, graft_rt_device *device) {
  std::lock_guard<std::mutex> lock(current_mutex);
  if (current) current->add(index, device);
}

}  // namespace torch_graft

#else

namespace torch_graft {

void register_kineto() {}
void profile_opened(c10::DeviceIndex, graft_rt_device *) {}

}  // namespace torch_graft

#endif
