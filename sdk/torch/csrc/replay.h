// Captures of libgraft as torch.cuda.graphs has them: what a stream is given is recorded and replayed on the same
// memory.
#pragma once

#include <c10/core/Allocator.h>

#include <memory>

#include "bridge.h"

namespace torch_graft {

// A pool that graphs share is named by a number pair; it lives as long as a graph that has it.
struct ReplayPool;
TORCH_GRAFT_API c10::MempoolId_t new_pool_id() noexcept;

// Whether work on the current stream of the current device, or of the device, is captured. Opens no device.
TORCH_GRAFT_API bool is_captured(c10::DeviceIndex index = -1);

// Makes torch.accelerator.Graph work, where PyTorch has it. Called once the device has its name.
TORCH_GRAFT_API void register_replay();

class TORCH_GRAFT_API Replay {
 public:
  Replay() = default;
  ~Replay();
  Replay(const Replay &) = delete;
  Replay &operator=(const Replay &) = delete;

  // On the current stream of the current device, which is not its default one. {0, 0}: a pool of its own.
  void begin(c10::MempoolId_t pool);
  // Throws what ended the capture before; then it is empty again.
  void end();
  // On the current stream of its device.
  void replay();
  // Empty from now on, whatever it was.
  void reset() noexcept;
  c10::MempoolId_t pool() const;
  // How many calls of the plugin a replay makes.
  uint32_t count() const;

 private:
  void check_captured(const char *what) const;

  graft_graph_capture *capture_ = nullptr;
  bool under_way_ = false;
  std::shared_ptr<ReplayPool> pool_;
};

}  // namespace torch_graft
