// Replays of whole runs: see replayed_run.h.
#include "replayed_run.h"

#include <algorithm>
#include <deque>
#include <map>

namespace torch_graft {

namespace {

c10::StorageImpl *storage_impl(const at::Tensor &tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

// Memory that is handed out as it is, each of one run, and whether somebody holds it for good.
std::mutex handed_mutex;
using Held = std::shared_ptr<std::atomic<bool>>;
std::map<const graft_storage *, Held> &handed() {
  static auto *all = new std::map<const graft_storage *, Held>;
  return *all;
}

// Whether each element has a place of its own, where dimensions of stride 0 count once.
bool is_spread(c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == 0) return true;
    if (sizes[i] > 1 && strides[i]) dims.emplace_back(strides[i], sizes[i]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t last = 0;  // the furthest element of the dimensions before
  for (auto [stride, size] : dims) {
    if (stride <= last) return false;
    last += (size - 1) * stride;
  }
  return true;
}

}  // namespace

struct ReplayedRun::Input {
  GraphInput like;
  at::Tensor given;               // to the captured run; gone behind its end where it is in place
  const void *address = nullptr;  // in place: where it is
  bool written;
  std::vector<int64_t> once;  // copied: the sizes, 1 where elements are repeated
};

// What a replay writes its results to.
struct ReplayedRun::Memory {
  graft_storage *storage;  // a reference of its own
  bool copied;             // each replay gives the caller memory of its own instead
  bool shared = false;     // copied, and what is handed out lies there, too: a replay writes it, and it is copied then
  uint64_t bytes;
  Held held;                                                      // where it is not copied
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> last;  // that was handed out

  // As PyTorch sees it.
  c10::Storage hand_out(c10::DeviceIndex index) {
    graft_storage_retain(storage);
    auto made = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                      data_ptr_of(storage, index), device_allocator(),
                                                      /*resizable=*/true);
    last.emplace(made);
    return c10::Storage(std::move(made));
  }
};

struct ReplayedRun::Output {
  bool of_input;  // a view of one, else of memory
  size_t at;
  c10::ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  int64_t offset;  // from the input's first element, or the memory's
  bool conj, neg;
};

// --- capturing ---

ReplayedRun::ReplayedRun(const std::vector<at::Tensor> &inputs, const std::vector<bool> &in_place,
                         const std::vector<bool> &written)
    : index_(current_device()), stream_(graft_stream_current(device_of(index_))), modes_(GraphModes::now()) {
  for (size_t i = 0; i < inputs.size(); i++) {
    const at::Tensor &tensor = inputs[i];
    TORCH_CHECK(is_recordable(tensor, index_), "an input is no dense tensor in memory of the device's allocator");
    Input input{GraphInput(tensor), {}, nullptr, written[i], {}};
    if (in_place[i] && tensor.numel()) {
      input.address = tensor.data_ptr();
      input.given = tensor.variable_data();  // its version is not the caller's: nothing is written yet
    } else {
      TORCH_CHECK(!tensor.is_conj() && !tensor.is_neg(), "an input has the bit of a conjugate or negative");
      TORCH_CHECK(is_spread(tensor.sizes(), tensor.strides()), "elements of an input share memory");
      for (int64_t d = 0; d < tensor.dim(); d++) input.once.push_back(tensor.stride(d) ? tensor.size(d) : 1);
      input.given = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().requires_grad(false));
    }
    writes_ |= input.written;
    inputs_.push_back(std::move(input));
  }
  TORCH_CHECK(!copies_what_is_written(inputs), "an input that is written shares memory with another one");
}

ReplayedRun::~ReplayedRun() {
  reset();
}

std::vector<at::Tensor> ReplayedRun::begin() {
  graft_rt_device *device = device_of(index_);
  TORCH_CHECK(graft_stream_current(device) != stream_, "a run is captured on another stream than it is replayed on");
  check(graft_graph_pool_create(device, &pool_));
  check(graft_graph_capture_begin(device, pool_, &capture_));
  std::vector<at::Tensor> given;
  for (const Input &input : inputs_) given.push_back(input.given);
  return given;
}

size_t ReplayedRun::memory_of(const at::Tensor &tensor, bool copied) {
  graft_storage *storage = storage_of(storage_impl(tensor));
  for (size_t i = 0; i < memories_.size(); i++) {
    if (memories_[i].storage == storage && memories_[i].copied == copied) return i;
  }
  graft_storage_retain(storage);
  memories_.push_back({storage, copied, false, graft_storage_bytes(storage), {}, {}});
  if (copied) return memories_.size() - 1;
  memories_.back().held = std::make_shared<std::atomic<bool>>(false);
  std::lock_guard<std::mutex> lock(handed_mutex);
  handed()[storage] = memories_.back().held;
  return memories_.size() - 1;
}

void ReplayedRun::add_output(const at::Tensor &tensor, bool copied) {
  Output output{false,
                0,
                tensor.scalar_type(),
                tensor.sizes().vec(),
                tensor.strides().vec(),
                tensor.storage_offset(),
                tensor.is_conj(),
                tensor.is_neg()};
  const auto input = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input &each) {
    return storage_of(storage_impl(each.given)) == storage_of(storage_impl(tensor));
  });
  output.of_input = input != inputs_.end();
  if (output.of_input) {
    TORCH_CHECK(input->given.scalar_type() == output.dtype, "a result views an input as another dtype");
    output.at = static_cast<size_t>(input - inputs_.begin());
    output.offset -= input->given.storage_offset();
  } else {
    output.at = memory_of(tensor, copied);
  }
  outputs_.push_back(std::move(output));
}

void ReplayedRun::end(const std::vector<at::Tensor> &outputs, const std::vector<bool> &copied) {
  check(graft_graph_capture_end(capture_));
  for (size_t i = 0; i < outputs.size(); i++) {
    TORCH_CHECK(is_recordable(outputs[i], index_), "a result is no dense tensor in memory of the device's allocator");
    add_output(outputs[i], copied[i]);
  }
  for (Memory &memory : memories_) {
    memory.shared = memory.copied && std::any_of(memories_.begin(), memories_.end(), [&](const Memory &other) {
                      return !other.copied && other.storage == memory.storage;
                    });
  }
  for (Input &input : inputs_) {
    if (input.address) input.given.reset();
  }
}

void ReplayedRun::reset() noexcept {
  for (Memory &memory : memories_) {
    if (!memory.copied) {
      std::lock_guard<std::mutex> lock(handed_mutex);
      handed().erase(memory.storage);
    }
    graft_storage_release(memory.storage);
  }
  memories_.clear();
  outputs_.clear();
  graft_graph_capture_destroy(capture_);
  capture_ = nullptr;
  graft_graph_pool_release(pool_);
  pool_ = nullptr;
}

uint32_t ReplayedRun::count() const {
  return capture_ ? graft_graph_capture_count(capture_) : 0;
}

bool is_replayed(const at::Tensor &tensor) {
  if (!tensor.has_storage() || !is_own_memory(storage_impl(tensor))) return false;
  std::lock_guard<std::mutex> lock(handed_mutex);
  return handed().count(storage_of(storage_impl(tensor))) > 0;
}

void hold_for_good(const graft_storage *storage) {
  std::lock_guard<std::mutex> lock(handed_mutex);
  const auto found = handed().find(storage);
  if (found != handed().end()) *found->second = true;
}

// --- replaying ---

bool ReplayedRun::copies_what_is_written(const std::vector<at::Tensor> &inputs) const {
  for (size_t i = 0; writes_ && i < inputs.size(); i++) {
    for (size_t other = 0; inputs_[i].written && other < inputs.size(); other++) {
      if (!inputs_[other].address && overlap(inputs[i], inputs[other])) return true;
    }
  }
  return false;
}

bool ReplayedRun::fits(const std::vector<at::Tensor> &inputs) const {
  if (graft_stream_current(device_of(index_)) != stream_ || !(modes_ == GraphModes::now())) return false;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!is_recordable(inputs[i], index_) || !inputs_[i].like.fits(inputs[i])) return false;
    if (inputs_[i].address && inputs[i].data_ptr() != inputs_[i].address) return false;
  }
  return !copies_what_is_written(inputs);
}

// What another stream was said to use may still be read there when all have let it go.
bool ReplayedRun::is_free() {
  for (Memory &memory : memories_) {
    if (memory.copied) continue;
    if (*memory.held || (memory.last && !memory.last->expired()) || graft_storage_has_recorded(memory.storage))
      return false;
  }
  return true;
}

namespace {

// A tensor as libgraft sees it, with sizes of its own.
graft_tensor *borrow_once(graft_tensor_space *space, const at::Tensor &tensor, const std::vector<int64_t> &sizes) {
  const graft_view view = {dtype_of(tensor.scalar_type()),
                           static_cast<int32_t>(sizes.size()),
                           sizes.data(),
                           tensor.strides().data(),
                           tensor.storage_offset(),
                           false,
                           false};
  return graft_tensor_borrow(space, storage_of(storage_impl(tensor)), &view);
}

// All bytes of a storage as a tensor.
struct Bytes {
  int64_t size, stride = 1;
  graft_tensor_space space;
  graft_tensor *tensor;

  explicit Bytes(graft_storage *storage) : size(static_cast<int64_t>(graft_storage_bytes(storage))) {
    const graft_view view = {GRAFT_U8, 1, &size, &stride, 0, false, false};
    tensor = graft_tensor_borrow(&space, storage, &view);
  }
};

c10::Storage new_storage(uint64_t bytes, c10::DeviceIndex index) {
  graft_storage *made = nullptr;
  check(graft_storage_new(device_of(index), bytes, &made));
  return {c10::Storage::use_byte_size_t(), bytes, data_ptr_of(made, index), device_allocator(), /*resizable=*/true};
}

void copy_bytes(graft_storage *to, graft_storage *from) {
  if (graft_storage_bytes(from)) check(graft_tensor_copy(Bytes(to).tensor, Bytes(from).tensor));
}

}  // namespace

// What a launch reads and writes in the place of the capture's own memory, and the memory of results.
struct ReplayedRun::StandIns {
  std::deque<graft_tensor_space> spaces;
  std::deque<Bytes> bytes;
  std::vector<graft_graph_stand_in> items;

  void read(const Input &input, const at::Tensor &from) {
    if (input.address || !from.numel()) return;
    graft_tensor *captured = borrow_once(&spaces.emplace_back(), input.given, input.once);
    items.push_back({captured, borrow_once(&spaces.emplace_back(), from, input.once), 0});
  }
  void write(const Memory &memory, graft_storage *to) {
    if (!memory.bytes || memory.shared) return;
    items.push_back({bytes.emplace_back(memory.storage).tensor, bytes.emplace_back(to).tensor, 1});
  }
};

std::optional<std::vector<at::Tensor>> ReplayedRun::replay(const std::vector<at::Tensor> &inputs) {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || !is_free()) return std::nullopt;
  StandIns all;
  for (size_t i = 0; i < inputs.size(); i++) all.read(inputs_[i], inputs[i]);
  std::vector<c10::Storage> storages;
  for (const Memory &memory : memories_) {
    storages.push_back(memory.copied ? new_storage(memory.bytes, index_) : c10::Storage());
    if (memory.copied) all.write(memory, storage_of(storages.back().unsafeGetStorageImpl()));
  }
  check(graft_graph_capture_launch_with(capture_, all.items.data(), static_cast<uint32_t>(all.items.size())));
  for (size_t i = 0; i < memories_.size(); i++) {
    if (!memories_[i].copied) storages[i] = memories_[i].hand_out(index_);
    if (memories_[i].shared) copy_bytes(storage_of(storages[i].unsafeGetStorageImpl()), memories_[i].storage);
  }
  for (size_t i = 0; i < inputs.size(); i++) {
    if (inputs_[i].written && !inputs[i].is_inference()) inputs[i].unsafeGetTensorImpl()->bump_version();
  }
  std::vector<at::Tensor> results;
  results.reserve(outputs_.size());
  TensorsByStorage seen;
  for (const at::Tensor &input : inputs) seen.add(&input);
  for (const Output &output : outputs_) {
    c10::Storage storage = output.of_input ? inputs[output.at].storage() : storages[output.at];
    auto result =
        at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                                 c10::scalarTypeToTypeMeta(output.dtype));
    c10::TensorImpl *impl = result.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(output.sizes, output.strides);
    impl->set_storage_offset(output.offset + (output.of_input ? inputs[output.at].storage_offset() : 0));
    if (output.conj) impl->_set_conj(true);
    if (output.neg) impl->_set_neg(true);
    results.push_back(std::move(result));
    share_version(results.back(), seen);
    seen.add(&results.back());
  }
  return results;
}

}  // namespace torch_graft
