// Graphs of libgraft: recorded through the kernels of all other files, run with tensors of PyTorch.
#include "graph.h"

#include <algorithm>
#include <atomic>

#include "call.h"

namespace torch_graft {

namespace {

thread_local bool recording = false;

}  // namespace

bool is_recording() noexcept {
  return recording;
}

// --- what inputs are ---

bool is_recordable(const at::Tensor &tensor, c10::DeviceIndex index) {
  return tensor.defined() && is_ours(tensor) && tensor.device().index() == index && tensor.layout() == c10::kStrided &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch() && !tensor._is_zerotensor() && !has_many_dims(tensor) &&
         is_own_memory(tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
}

GraphInput::GraphInput(const at::Tensor &like)
    : dtype(like.scalar_type()),
      sizes(like.sizes().vec()),
      strides(like.strides().vec()),
      conj(like.is_conj()),
      neg(like.is_neg()),
      written(false),
      viewed(false) {}

GraphInput::GraphInput(const graft_graph_port &port)
    : dtype(scalar_type_of(port.dtype)),
      sizes(port.sizes, port.sizes + port.ndim),
      strides(port.strides, port.strides + port.ndim),
      conj(port.conjugate),
      neg(port.negative),
      written(port.is_written),
      viewed(true) {}  // not known, and nothing of a file's inputs is let go

bool GraphInput::is_alike(const at::Tensor &tensor) const {
  return tensor.scalar_type() == dtype && tensor.is_conj() == conj && tensor.is_neg() == neg;
}

bool GraphInput::fits(const at::Tensor &tensor) const {
  if (!is_alike(tensor) || tensor.sizes() != sizes) return false;
  auto theirs = tensor.strides();
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] > 1 && theirs[i] != strides[i]) return false;
  }
  return true;
}

GraphModes GraphModes::now() {
  return {exec_flags_now(), c10::get_default_dtype_as_scalartype()};
}

namespace {

// The bytes of its storage that a tensor may reach.
std::pair<int64_t, int64_t> span_of(const at::Tensor &tensor) {
  const int64_t bytes = static_cast<int64_t>(tensor.itemsize()), first = tensor.storage_offset() * bytes;
  if (tensor.numel() == 0) return {first, first};
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); i++) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {first, first + (last + 1) * bytes};
}

}  // namespace

bool overlap(const at::Tensor &a, const at::Tensor &b) {
  auto memory = [](const at::Tensor &t) {
    return t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->data_ptr().get_context();
  };
  if (memory(a) != memory(b)) return false;
  const auto own = span_of(a), its = span_of(b);
  return own.first < its.second && its.first < own.second;
}

// --- compiled graphs ---

CompiledGraph::CompiledGraph(graft_graph_exec *exec, c10::DeviceIndex index, std::vector<GraphInput> inputs,
                             uint32_t outputs, bool is_open)
    : exec_(exec),
      index_(index),
      inputs_(std::move(inputs)),
      outputs_(outputs),
      is_open_(is_open),
      modes_(GraphModes::now()) {
  static std::atomic<uint64_t> last{0};
  serial_ = ++last;
}

CompiledGraph::~CompiledGraph() {
  graft_graph_exec_destroy(exec_);
}

bool CompiledGraph::fits(const std::vector<at::Tensor> &inputs) const {
  if (inputs.size() != inputs_.size() || !(modes_ == GraphModes::now())) return false;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!is_recordable(inputs[i], index_)) return false;
    if (is_open_ ? !inputs_[i].is_alike(inputs[i]) : !inputs_[i].fits(inputs[i])) return false;
  }
  if (!is_open_) return true;
  std::vector<graft_tensor_space> spaces(inputs.size());
  std::vector<graft_tensor *> tensors;
  for (size_t i = 0; i < inputs.size(); i++) tensors.push_back(borrow(&spaces[i], inputs[i]));
  return graft_graph_exec_fits(exec_, tensors.data(), static_cast<uint32_t>(tensors.size()));
}

bool CompiledGraph::is_shared(const std::vector<at::Tensor> &inputs) const {
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs_[i].written) continue;
    for (size_t other = 0; other < inputs.size(); other++) {
      if (other != i && overlap(inputs[i], inputs[other])) return true;
    }
  }
  return false;
}

namespace {

// Inputs of a run as libgraft sees them, each borrowed, or its own where it is let go.
struct RunInputs {
  std::vector<graft_tensor_space> spaces;
  std::vector<graft_tensor *> tensors;
  std::vector<uint8_t> let_go;
  // Of replays, which write there again once nobody holds it: not before the calls that read it are made.
  std::vector<c10::Storage> replayed;

  explicit RunInputs(size_t count) : spaces(count), tensors(count, nullptr), let_go(count, 0) {}
  ~RunInputs() {
    for (size_t i = 0; i < let_go.size(); i++) {
      if (let_go[i]) graft_tensor_release(tensors[i]);
    }
  }
  RunInputs(const RunInputs &) = delete;
  RunInputs &operator=(const RunInputs &) = delete;

  void add(size_t i, at::Tensor &input, bool gives_up) {
    tensors[i] = borrow(&spaces[i], input);
    if (!gives_up) return;
    graft_tensor *own = nullptr;
    check(graft_tensor_detach(tensors[i], &own));
    tensors[i] = own;
    let_go[i] = 1;
    if (is_replayed(input)) replayed.push_back(input.storage());
    input.reset();
  }
};

}  // namespace

std::vector<at::Tensor> CompiledGraph::run(std::vector<at::Tensor> inputs, const std::vector<bool> &let_go) const {
  RunInputs given(inputs.size());
  std::vector<graft_tensor *> made(outputs_, nullptr);
  TensorsByStorage seen;
  for (size_t i = 0; i < inputs.size(); i++) {
    // One that an output views keeps its storage, which is that output's, too.
    given.add(i, inputs[i], !let_go.empty() && let_go[i] && !inputs_[i].written && !inputs_[i].viewed);
    if (inputs[i].defined()) seen.add(&inputs[i]);
  }
  graft_status status = graft_graph_run_letting_go(exec_, given.tensors.data(), static_cast<uint32_t>(inputs.size()),
                                                   given.let_go.data(), made.data(), outputs_);
  // What ran before a failing call has been written.
  for (size_t i = 0; i < inputs.size(); i++) {
    if (inputs_[i].written) inputs[i].unsafeGetTensorImpl()->bump_version();
  }
  if (status && status != GRAFT_OUT_OF_MEMORY && graft_graph_last_failure() == GRAFT_GRAPH_SIZES_FAILED)
    throw SizesFailed(graft_last_error());
  check(status);
  std::vector<at::Tensor> outputs;
  outputs.reserve(outputs_);
  for (graft_tensor *tensor : made) {
    outputs.push_back(wrap(tensor, seen));
    share_version(outputs.back(), seen);
    seen.add(&outputs.back());
  }
  return outputs;
}

graft_graph_exec_info CompiledGraph::info() const {
  graft_graph_exec_info info = {};
  check(graft_graph_exec_query(exec_, &info, sizeof info));
  return info;
}

GraphCache::Found GraphCache::find(const std::vector<at::Tensor> &inputs) {
  for (auto graph = graphs_.rbegin(); graph != graphs_.rend(); ++graph) {
    if (!(*graph)->fits(inputs)) continue;
    std::rotate(graph.base() - 1, graph.base(), graphs_.end());
    return graphs_.back();
  }
  return nullptr;
}

uint64_t GraphCache::add(Found graph, size_t limit) {
  uint64_t gone = 0;
  if (graphs_.size() >= limit && !graphs_.empty()) {
    gone = graphs_.front()->serial();
    graphs_.erase(graphs_.begin());
  }
  graphs_.push_back(std::move(graph));
  return gone;
}

// --- recording ---

GraphRecording::GraphRecording(c10::DeviceIndex index) : index_(index) {
  TORCH_CHECK(!recording, "graft: this thread records a graph already");
  empty_storage(index);  // it is made once for all, and must not be made of a recording
  check(graft_graph_create(device_of(index), &graph_));
}

GraphRecording::~GraphRecording() {
  stop();
  placeholders_.clear();
  graft_graph_destroy(graph_);
}

void check_name(const std::string &name) {
  TORCH_CHECK(name.find('\0') == std::string::npos, "graft: the name \"", name.c_str(),
              "...\" of a graph's input or output has a character 0; rename it");
}

at::Tensor GraphRecording::input(const std::string &name, const at::Tensor &like) {
  check_name(name);
  TORCH_CHECK(is_recordable(like, index_), "graft: ", name, " can't be the input of a graph");
  graft_tensor_space space;
  graft_tensor *made = nullptr;
  check(graft_graph_input_like(graph_, name.c_str(), borrow(&space, like), &made));
  placeholders_.push_back(wrap(made));
  inputs_.emplace_back(like);
  return placeholders_.back();
}

void GraphRecording::begin() {
  auto modes = std::make_unique<Modes>();
  check(graft_graph_record_begin(graph_));
  modes_ = std::move(modes);
  recording = true;
}

void GraphRecording::stop() noexcept {
  if (!modes_) return;
  graft_graph_record_end(graph_);
  recording = false;
  modes_.reset();
}

void GraphRecording::end() {
  graft_status status = graft_graph_record_end(graph_);
  recording = false;
  modes_.reset();
  check(status);
}

void GraphRecording::output(const std::string &name, const at::Tensor &value) {
  check_name(name);
  graft_tensor_space space;
  check(graft_graph_output(graph_, name.c_str(), borrow(&space, value)));
  for (size_t i = 0; i < inputs_.size(); i++) inputs_[i].viewed |= value.is_alias_of(placeholders_[i]);
}

void GraphRecording::donate(uint32_t input) {
  check(graft_graph_input_donate(graph_, input));
}

std::vector<bool> GraphRecording::written() const {
  std::vector<bool> written;
  for (uint32_t i = 0; i < graft_graph_input_count(graph_); i++) {
    graft_graph_port port;
    check(graft_graph_input_query(graph_, i, &port, sizeof port));
    written.push_back(port.is_written);
  }
  return written;
}

void GraphRecording::set_value(uint32_t input, const at::Tensor &value) {
  graft_tensor_space space;
  check(graft_graph_input_set_value(graph_, input, borrow(&space, value)));
}

void GraphRecording::save(const std::string &path) const {
  check(graft_graph_save(graph_, path.c_str()));
}

uint32_t GraphRecording::node_count() const {
  return graft_graph_node_count(graph_);
}

std::shared_ptr<CompiledGraph> GraphRecording::compile(const std::optional<std::string> &passes) const {
  // An op that writes to an input counts its writes as PyTorch's kernels do.
  std::vector<GraphInput> inputs = inputs_;
  for (size_t i = 0; i < inputs.size(); i++) inputs[i].written = placeholders_[i]._version() > 0;
  Modes modes;
  graft_graph_exec *exec = nullptr;
  check(graft_graph_compile(graph_, device_of(index_), passes ? passes->c_str() : nullptr, &exec));
  return std::make_shared<CompiledGraph>(exec, index_, std::move(inputs), graft_graph_output_count(graph_));
}

// --- files ---

namespace {

GraphFile describe_graph(graft_graph *graph, graft_rt_device *device, std::vector<GraphInput> &inputs) {
  GraphFile file;
  graft_graph_port port;
  for (uint32_t i = 0; i < graft_graph_input_count(graph); i++) {
    check(graft_graph_input_query(graph, i, &port, sizeof port));
    TORCH_CHECK(!port.on_host, "graft: input ", port.name, " is a number in host memory, which PyTorch has no tensor ",
                "for: run the file with graft run or from C");
    inputs.emplace_back(port);
    file.inputs.emplace_back(port.name);
    graft_tensor *value = nullptr;
    if (port.has_value) check(graft_graph_input_value(graph, i, device, &value));
    file.values.push_back(value ? std::optional<at::Tensor>(wrap(value)) : std::nullopt);
  }
  for (uint32_t i = 0; i < graft_graph_output_count(graph); i++) {
    check(graft_graph_output_query(graph, i, &port, sizeof port));
    file.outputs.emplace_back(port.name);
  }
  return file;
}

}  // namespace

GraphFile load_graph(const std::string &path, c10::DeviceIndex index) {
  graft_rt_device *device = device_of(index);
  graft_graph *loaded = nullptr;
  check(graft_graph_load(device, path.c_str(), &loaded));
  const std::unique_ptr<graft_graph, decltype(&graft_graph_destroy)> graph(loaded, graft_graph_destroy);
  std::vector<GraphInput> inputs;
  GraphFile file = describe_graph(loaded, device, inputs);
  Modes modes;
  graft_graph_exec *exec = nullptr;
  check(graft_graph_compile(loaded, device, nullptr, &exec));
  const auto outputs = static_cast<uint32_t>(file.outputs.size());
  file.graph = std::make_shared<CompiledGraph>(exec, index, std::move(inputs), outputs);
  return file;
}

}  // namespace torch_graft
