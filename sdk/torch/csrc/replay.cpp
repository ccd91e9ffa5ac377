// Captures: their pools by PyTorch's numbers, and the place of torch.accelerator.Graph.
#include "replay.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#define HAS_ACCELERATOR_GRAPH 1
#else  // before 2.13
#define HAS_ACCELERATOR_GRAPH 0
#endif

#include <atomic>
#include <map>
#include <mutex>

namespace torch_graft {

struct ReplayPool {
  ReplayPool(c10::MempoolId_t its_id, c10::DeviceIndex its_index) : id(its_id), index(its_index) {
    check(graft_graph_pool_create(device_of(index), &handle));
  }
  ~ReplayPool() { graft_graph_pool_release(handle); }
  ReplayPool(const ReplayPool &) = delete;
  ReplayPool &operator=(const ReplayPool &) = delete;

  const c10::MempoolId_t id;
  const c10::DeviceIndex index;
  graft_graph_pool *handle = nullptr;
};

namespace {

std::mutex pools_mutex;

using Pools = std::map<c10::MempoolId_t, std::weak_ptr<ReplayPool>>;
Pools &all_pools() {
  static auto *all = new Pools;
  return *all;
}

std::shared_ptr<ReplayPool> pool_of(c10::MempoolId_t id, c10::DeviceIndex index) {
  if (id == c10::MempoolId_t{0, 0}) id = new_pool_id();
  std::lock_guard<std::mutex> lock(pools_mutex);
  std::erase_if(all_pools(), [](const auto &entry) { return entry.second.expired(); });
  if (auto found = all_pools()[id].lock()) {
    TORCH_CHECK(found->index == index, "the pool is one of graft:", static_cast<int>(found->index),
                ", and the graph is captured on graft:", static_cast<int>(index));
    return found;
  }
  auto made = std::make_shared<ReplayPool>(id, index);
  all_pools()[id] = made;
  return made;
}

}  // namespace

c10::MempoolId_t new_pool_id() noexcept {
  static std::atomic<uint64_t> last{0};
  return {0, ++last};
}

bool is_captured(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  return is_open(index) && graft_stream_is_captured(graft_stream_current(device_of(index)));
}

// --- a graph ---

Replay::~Replay() {
  reset();
}

void Replay::begin(c10::MempoolId_t pool) {
  TORCH_CHECK(!capture_, "the graph has captured something already; reset() it, or take another one");
  const c10::DeviceIndex index = current_device();
  graft_rt_device *device = device_of(index);
  TORCH_CHECK(current_stream(index).id() != 0,
              "a graph is captured on a stream that is not the default one, which all threads use: "
              "with torch.Stream(), or by the context manager graph()");
  auto its_pool = pool_of(pool, index);
  check(graft_graph_capture_begin(device, its_pool->handle, &capture_));
  pool_ = std::move(its_pool);
  under_way_ = true;
}

void Replay::end() {
  TORCH_CHECK(under_way_, "no capture of this graph is under way");
  under_way_ = false;
  graft_status status = graft_graph_capture_end(capture_);
  if (status == GRAFT_OK) {
    if (graft_graph_capture_count(capture_) == 0)
      TORCH_WARN("The graph is empty: nothing was given to the captured stream, perhaps to another device or stream");
    return;
  }
  const std::string text = graft_last_error();
  reset();
  TORCH_CHECK(false, text);
}

void Replay::check_captured(const char *what) const {
  TORCH_CHECK(capture_ && !under_way_, what, ": the graph has captured nothing yet");
}

void Replay::replay() {
  check_captured("replay");
  check(graft_graph_capture_launch(capture_));
}

void Replay::reset() noexcept {
  graft_graph_capture_destroy(capture_);
  capture_ = nullptr;
  under_way_ = false;
  pool_.reset();
}

c10::MempoolId_t Replay::pool() const {
  TORCH_CHECK(pool_, "pool: the graph has captured nothing yet");
  return pool_->id;
}

uint32_t Replay::count() const {
  check_captured("count");
  return graft_graph_capture_count(capture_);
}

// --- torch.accelerator.Graph ---

#if HAS_ACCELERATOR_GRAPH
namespace {

class AcceleratorGraph final : public at::GraphImplInterface {
 public:
  // What is captured can be replayed at once: there is nothing between to keep.
  explicit AcceleratorGraph(const at::GraphImplArgs &) {}

  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode) override { graph_.begin(pool); }
  void capture_end() override { graph_.end(); }
  void instantiate() override { graph_.count(); }
  void replay() override { graph_.replay(); }
  void reset() override { graph_.reset(); }
  c10::MempoolId_t pool() const override { return graph_.pool(); }
  void enable_debug_mode() override {}
  void debug_dump(const std::string &) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "graft: a capture can't be dumped; GRAFT_GRAPH_DUMP writes compiled graphs");
  }

 private:
  Replay graph_;
};

}  // namespace

void register_replay() {
  const std::string name = c10::DeviceTypeName(c10::kPrivateUse1, false);
  if (at::GraphImplRegistry()->Has(name)) return;
  at::GraphImplRegistry()->Register(name, [](const at::GraphImplArgs &args) -> std::unique_ptr<at::GraphImplInterface> {
    return std::make_unique<AcceleratorGraph>(args);
  });
}
#else
void register_replay() {}
#endif

}  // namespace torch_graft
