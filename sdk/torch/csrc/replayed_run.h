// Runs of programs of torch.compile that were captured and are replayed: mode="reduce-overhead". When one is captured
// is decided in torch_graft/_replays.py.
#pragma once

#include <mutex>

#include "graph.h"

namespace torch_graft {

// One capture: inputs that are found where they were or stand in for tensors of its own, and results that are written
// to new memory of the caller's, or to memory of its own, which is handed out as it is. A replay that would overwrite
// what somebody holds does not happen.
class TORCH_GRAFT_API ReplayedRun {
 public:
  // For inputs like these, on the stream that is current now. in_place: those that a replay finds at the addresses of
  // now; written: those whose contents it changes, which are in place. Throws for inputs that can't be copied.
  ReplayedRun(const std::vector<at::Tensor> &inputs, const std::vector<bool> &in_place,
              const std::vector<bool> &written);
  ~ReplayedRun();
  ReplayedRun(const ReplayedRun &) = delete;
  ReplayedRun &operator=(const ReplayedRun &) = delete;

  // Captures what the current stream, another one, is given until end() or reset(). The inputs to run with.
  std::vector<at::Tensor> begin();
  // What was captured gives these; those that are copied are the caller's alone. Throws what ended the capture before.
  void end(const std::vector<at::Tensor> &outputs, const std::vector<bool> &copied);
  void reset() noexcept;
  // How many calls of the plugin a replay makes.
  uint32_t count() const;

  // Whether a replay does what a run with these inputs would, in this thread, now.
  bool fits(const std::vector<at::Tensor> &inputs) const;
  // For inputs that fit. Nothing where another thread replays it, or somebody holds what the last replay gave.
  std::optional<std::vector<at::Tensor>> replay(const std::vector<at::Tensor> &inputs);

 private:
  struct Input;
  struct Memory;
  struct Output;
  struct StandIns;

  bool is_free();
  bool copies_what_is_written(const std::vector<at::Tensor> &inputs) const;
  void add_output(const at::Tensor &tensor, bool copied);
  size_t memory_of(const at::Tensor &tensor, bool copied);

  c10::DeviceIndex index_;
  graft_rt_stream *stream_;  // that replays are given to
  GraphModes modes_;
  std::vector<Input> inputs_;
  bool writes_ = false;
  graft_graph_pool *pool_ = nullptr;
  graft_graph_capture *capture_ = nullptr;
  std::vector<Memory> memories_;
  std::vector<Output> outputs_;
  std::mutex mutex_;  // held by a replay
};

// Others than PyTorch have got hold of it: no replay writes there any more, if one ever did.
TORCH_GRAFT_API void hold_for_good(const graft_storage *storage);

}  // namespace torch_graft
