// Replays of whole runs: see replayed_run.h.
#include "replayed_run.h"

#include <algorithm>
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
  bool copied;
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
  memories_.push_back({storage, copied, graft_storage_bytes(storage), {}, {}});
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

void copy_in(at::Tensor &own, const at::Tensor &from, const std::vector<int64_t> &sizes) {
  graft_tensor_space spaces[2];
  const auto borrow_once = [&](graft_tensor_space *space, const at::Tensor &tensor) {
    const graft_view view = {dtype_of(tensor.scalar_type()),
                             static_cast<int32_t>(sizes.size()),
                             sizes.data(),
                             tensor.strides().data(),
                             tensor.storage_offset(),
                             false,
                             false};
    return graft_tensor_borrow(space, storage_of(storage_impl(tensor)), &view);
  };
  check(graft_tensor_copy(borrow_once(&spaces[0], own), borrow_once(&spaces[1], from)));
}

c10::Storage copy_of(graft_storage *from, uint64_t bytes, c10::DeviceIndex index) {
  graft_storage *to = nullptr;
  check(graft_storage_new(device_of(index), bytes, &to));
  c10::Storage made(c10::Storage::use_byte_size_t(), bytes, data_ptr_of(to, index), device_allocator(),
                    /*resizable=*/true);
  if (!bytes) return made;
  const auto size = static_cast<int64_t>(bytes);
  const int64_t stride = 1;
  const graft_view view = {GRAFT_U8, 1, &size, &stride, 0, false, false};
  graft_tensor_space spaces[2];
  check(graft_tensor_copy(graft_tensor_borrow(&spaces[0], to, &view), graft_tensor_borrow(&spaces[1], from, &view)));
  return made;
}

}  // namespace

std::optional<std::vector<at::Tensor>> ReplayedRun::replay(const std::vector<at::Tensor> &inputs) {
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock || !is_free()) return std::nullopt;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs_[i].address) copy_in(inputs_[i].given, inputs[i], inputs_[i].once);
  }
  check(graft_graph_capture_launch(capture_));
  for (size_t i = 0; i < inputs.size(); i++) {
    if (inputs_[i].written && !inputs[i].is_inference()) inputs[i].unsafeGetTensorImpl()->bump_version();
  }
  std::vector<c10::Storage> storages;
  for (Memory &memory : memories_)
    storages.push_back(memory.copied ? copy_of(memory.storage, memory.bytes, index_) : memory.hand_out(index_));
  std::vector<at::Tensor> results;
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
  }
  return results;
}

}  // namespace torch_graft
