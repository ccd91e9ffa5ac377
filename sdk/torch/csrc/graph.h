// Graphs of libgraft as torch.compile needs them: what a thread calls on a device is recorded and run again. Which
// calls those are is decided in torch_graft/_program.py.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bridge.h"

namespace torch_graft {

// Whether this thread records: its tensors stand for values that are not there yet.
bool is_recording() noexcept;

// What a graph was recorded for: an input, or the modes of PyTorch that its calls read.
struct GraphInput {
  c10::ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  bool conj, neg;
  bool written;  // by the graph
  bool viewed;   // by an output

  explicit GraphInput(const at::Tensor &like);
  explicit GraphInput(const graft_graph_port &port);
  bool fits(const at::Tensor &tensor) const;
  // The same, whatever its sizes are.
  bool is_alike(const at::Tensor &tensor) const;
};
struct GraphModes {
  graft_exec_flags flags;
  c10::ScalarType default_dtype;

  static GraphModes now();
  bool operator==(const GraphModes &other) const {
    return flags == other.flags && default_dtype == other.default_dtype;
  }
};

// C would take a character 0 for the end.
void check_name(const std::string &name);

// A graph with open sizes can't be made for those of a run. Nothing has run, and other sizes may go.
struct TORCH_GRAFT_API SizesFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A graph that can be run, by any number of threads at once.
class TORCH_GRAFT_API CompiledGraph {
 public:
  // `is_open`: its inputs have sizes that are open; else those that they were recorded with.
  CompiledGraph(graft_graph_exec *exec, c10::DeviceIndex index, std::vector<GraphInput> inputs, uint32_t outputs,
                bool is_open = false);
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph &) = delete;
  CompiledGraph &operator=(const CompiledGraph &) = delete;

  // Whether it was recorded for such inputs, under the modes of now.
  bool fits(const std::vector<at::Tensor> &inputs) const;
  // Whether an input that it writes shares memory with another one; then its calls must be made one by one.
  bool is_shared(const std::vector<at::Tensor> &inputs) const;
  // For inputs that fit and are not shared. Those that let_go names (empty: none) are given up where that can be: their
  // memory is free again, or serves the run, once they are read no more and if nobody else holds them. May throw
  // SizesFailed.
  std::vector<at::Tensor> run(std::vector<at::Tensor> inputs, const std::vector<bool> &let_go = {}) const;
  graft_graph_exec_info info() const;
  // No other one has it.
  uint64_t serial() const { return serial_; }

 private:
  graft_graph_exec *exec_;
  c10::DeviceIndex index_;
  std::vector<GraphInput> inputs_;
  uint32_t outputs_;
  bool is_open_;
  GraphModes modes_;
  uint64_t serial_;
};

// Graphs of one piece of a program, recorded for different inputs. Its methods are called under Python's lock.
class TORCH_GRAFT_API GraphCache {
 public:
  using Found = std::shared_ptr<CompiledGraph>;

  // The one that fits, and is the last to go from now on; or null.
  Found find(const std::vector<at::Tensor> &inputs);
  // Beyond `limit` graphs, the one that was not used for longest goes; its number, or 0.
  uint64_t add(Found graph, size_t limit);
  size_t size() const { return graphs_.size(); }

 private:
  std::vector<Found> graphs_;  // the latest used one last
};

// Whether two tensors of ours may have an element of memory in common.
bool overlap(const at::Tensor &a, const at::Tensor &b);

// Whether a tensor can be an input of a graph for a device: dense, in memory of libgraft's there.
TORCH_GRAFT_API bool is_recordable(const at::Tensor &tensor, c10::DeviceIndex index);

// One recording. begin, the calls and end are one thread's.
class TORCH_GRAFT_API GraphRecording {
 public:
  explicit GraphRecording(c10::DeviceIndex index);
  ~GraphRecording();
  GraphRecording(const GraphRecording &) = delete;
  GraphRecording &operator=(const GraphRecording &) = delete;

  // What stands for an input that lies as `like` does.
  at::Tensor input(const std::string &name, const at::Tensor &like);
  void begin();
  // Throws what ended the recording before.
  void end();
  // Ends it where it has not been, whatever became of it.
  void stop() noexcept;
  void output(const std::string &name, const at::Tensor &value);
  // Which inputs have been written so far.
  std::vector<bool> written() const;
  // Its memory may serve a run once the input is read no more, where that is let go.
  void donate(uint32_t input);
  // What an input begins with where a run is given no other.
  void set_value(uint32_t input, const at::Tensor &value);
  void save(const std::string &path) const;
  uint32_t node_count() const;
  std::shared_ptr<CompiledGraph> compile(const std::optional<std::string> &passes) const;

 protected:
  c10::DeviceIndex index_;
  graft_graph *graph_ = nullptr;
  std::vector<GraphInput> inputs_;

 private:
  std::vector<at::Tensor> placeholders_;
  std::unique_ptr<class Modes> modes_;  // of the thread, while it records
};

// A graph of a file, compiled for a device.
struct GraphFile {
  std::shared_ptr<CompiledGraph> graph;
  std::vector<std::string> inputs, outputs;
  std::vector<std::optional<at::Tensor>> values;  // what inputs begin with
};
TORCH_GRAFT_API GraphFile load_graph(const std::string &path, c10::DeviceIndex index);

}  // namespace torch_graft
