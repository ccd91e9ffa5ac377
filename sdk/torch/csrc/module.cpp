// The Python module torch_graft._C: what the Python side needs and torch.accelerator does not give.
#include <ATen/DLConvertor.h>
#include <ATen/dlpack.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <optional>
#include <tuple>

#include "bridge.h"
#include "custom.h"
#include "graph.h"
#include "open_sizes.h"
#include "replay.h"
#include "replayed_run.h"
#include "rnn_layer.h"

namespace py = pybind11;

namespace torch_graft {

namespace {

c10::DeviceIndex narrow(int64_t index) {
  TORCH_CHECK(index >= 0 && index < kCapacity, "graft: ", index, " is not a device index; there are ",
              static_cast<int>(device_count()), " devices");
  return static_cast<c10::DeviceIndex>(index);
}

// --- backends and devices ---

using BackendRow = std::tuple<std::string, std::string, std::string>;

// Reads manifests; opens nothing.
std::vector<BackendRow> backends() {
  const graft_backend_info *const *infos = nullptr;
  size_t count = 0;
  check(graft_backends(&infos, &count));
  std::vector<BackendRow> rows;
  for (size_t i = 0; i < count; i++) {
    rows.emplace_back(infos[i]->name, infos[i]->manifest ? infos[i]->manifest : "",
                      infos[i]->problem ? infos[i]->problem : "");
  }
  return rows;
}

std::vector<std::pair<std::string, std::string>> device_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const DeviceRow &row : devices()) rows.emplace_back(row.text, row.plugin);
  return rows;
}

template <typename T>
std::optional<T> query(graft_rt_device *device, graft_device_key key) {
  T value{};
  size_t size = 0;
  graft_status status = graft_device_query(device, key, &value, sizeof value, &size);
  return status == GRAFT_OK && size == sizeof value ? std::optional<T>(value) : std::nullopt;
}

std::string query_text(graft_rt_device *device, graft_device_key key) {
  char text[512] = "";
  size_t size = 0;
  return graft_device_query(device, key, text, sizeof text, &size) == GRAFT_OK ? text : "";
}

// The dtypes that kernels of the device compute on, all where it does not say.
py::list dtypes_of(c10::DeviceIndex index) {
  auto bits = device_guard()->getDeviceCapability({c10::kPrivateUse1, index}).capability_data.capability_bits;
  py::list dtypes;
  for (int type = 0; type < static_cast<int>(c10::ScalarType::NumOptions) && type < 64; type++) {
    if (bits >> type & 1) dtypes.append(py::cast(static_cast<c10::ScalarType>(type)));
  }
  return dtypes;
}

py::dict device_properties(int64_t index) {
  constexpr const char *kKinds[] = {"other", "cpu", "gpu", "accelerator"};
  graft_rt_device *device = device_of(narrow(index));
  uint32_t kind = query<uint32_t>(device, GRAFT_DEVICE_KIND).value_or(0);
  py::dict row;
  row["text"] = graft_device_text(device);
  row["name"] = query_text(device, GRAFT_DEVICE_NAME);
  row["vendor"] = query_text(device, GRAFT_DEVICE_VENDOR);
  row["driver_version"] = query_text(device, GRAFT_DEVICE_DRIVER_VERSION);
  row["kind"] = kKinds[kind < std::size(kKinds) ? kind : 0];
  row["total_memory"] = query<uint64_t>(device, GRAFT_DEVICE_TOTAL_MEMORY).value_or(0);
  row["max_allocation"] = query<uint64_t>(device, GRAFT_DEVICE_MAX_ALLOCATION).value_or(0);
  row["unified_memory"] = query<uint32_t>(device, GRAFT_DEVICE_UNIFIED_MEMORY).value_or(0) != 0;
  row["vector_width"] = query<uint32_t>(device, GRAFT_DEVICE_VECTOR_WIDTH).value_or(1);
  row["compute_units"] = query<uint32_t>(device, GRAFT_DEVICE_COMPUTE_UNITS).value_or(0);
  row["dtypes"] = dtypes_of(narrow(index));
  return row;
}

// Addresses of a table that the device's plugin offers beyond the ABI and of what its functions take first.
std::optional<std::pair<uintptr_t, uintptr_t>> extension(int64_t index, const std::string &name, uint32_t version) {
  const void *table = nullptr;
  void *self = nullptr;
  graft_status status = graft_device_extension(device_of(narrow(index)), name.c_str(), version, &table, &self);
  if (status == GRAFT_UNIMPLEMENTED) return std::nullopt;
  check(status);
  return std::pair(reinterpret_cast<uintptr_t>(table), reinterpret_cast<uintptr_t>(self));
}

std::string op_route(const std::string &op, int64_t index) {
  return graft_op_route(device_of(narrow(index)), graft_op_find(op.c_str()));
}

std::pair<size_t, size_t> memory_info(int64_t index) {
  return static_cast<c10::DeviceAllocator *>(device_allocator())->getMemoryInfo(narrow(index));
}

int64_t exchange_device(int64_t index) {
  int64_t before = current_device();
  if (index >= 0 && index != before) set_device(narrow(index));
  return before;
}

c10::Stream default_stream(int64_t index) {
  return device_guard()->getDefaultStream({c10::kPrivateUse1, narrow(index)});
}

// --- ops that plugins bring ---

// The listener gets rows of name, plugin, gradient op or "", and its result for each argument or -1.
void tell_of_custom_ops(const py::object &listener) {
  auto *kept = new py::object(listener);  // never released: the interpreter may have ended by then
  on_custom_ops([kept](const CustomOps &ops) {
    py::gil_scoped_acquire gil;
    py::list rows;
    for (const CustomOp &op : ops) rows.append(py::make_tuple(op.name, op.plugin, op.gradient, op.gradient_of));
    (*kept)(rows);
  });
}

// --- tracing ---

void know_stand_ins(const py::object &knows) {
  auto *kept = new py::object(knows);
  on_stand_ins([kept](const at::Tensor &tensor) {
    py::gil_scoped_acquire gil;
    return (*kept)(tensor).cast<bool>();
  });
}

// --- what left the device ---

using FallbackTuple = std::tuple<std::string, std::string, std::string, std::string, uint64_t>;

std::vector<FallbackTuple> fallback_rows() {
  std::vector<FallbackTuple> rows;
  for (const FallbackRow &row : fallbacks()) rows.emplace_back(row.op, row.device, row.dtypes, row.way, row.count);
  return rows;
}

// --- DLPack: libgraft makes and reads what is exchanged, so that C programs on the same libgraft take part ---

struct Versioned {
  using Managed = DLManagedTensorVersioned;
  static constexpr const char *kName = "dltensor_versioned";
  static constexpr const char *kUsed = "used_dltensor_versioned";
  static constexpr auto kExport = graft_tensor_to_dlpack;
  static constexpr auto kImport = graft_tensor_from_dlpack;
};

struct Unversioned {
  using Managed = DLManagedTensor;
  static constexpr const char *kName = "dltensor";
  static constexpr const char *kUsed = "used_dltensor";
  static constexpr auto kExport = graft_tensor_to_dlpack_old;
  static constexpr auto kImport = graft_tensor_from_dlpack_old;
};

// Of a capsule that nobody consumed; the consumer renames it.
template <typename Kind>
void drop_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, Kind::kName)) return;
  auto *managed = static_cast<typename Kind::Managed *>(PyCapsule_GetPointer(capsule, Kind::kName));
  managed->deleter(managed);
}

template <typename Kind>
py::object make_capsule(const at::Tensor &tensor) {
  TORCH_CHECK_TYPE(is_ours(tensor), "to_dlpack: expected a tensor of this device, but got one on ", tensor.device());
  graft_tensor_space space;
  graft_tensor *owned = nullptr;
  check(graft_tensor_detach(borrow(&space, tensor), &owned));
  hold_for_good(graft_tensor_storage(owned));
  typename Kind::Managed *managed = nullptr;
  graft_status status = Kind::kExport(owned, &managed);
  graft_tensor_release(owned);
  check(status);
  managed->dl_tensor.device = {kDLExtDev, tensor.device().index()};
  PyObject *capsule = PyCapsule_New(managed, Kind::kName, drop_capsule<Kind>);
  if (!capsule) {
    managed->deleter(managed);
    throw py::error_already_set();
  }
  return py::reinterpret_steal<py::object>(capsule);
}

py::object to_dlpack(const at::Tensor &tensor, bool versioned) {
  return versioned ? make_capsule<Versioned>(tensor) : make_capsule<Unversioned>(tensor);
}

template <typename Kind>
std::optional<at::Tensor> take_capsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, Kind::kName)) return std::nullopt;
  auto *managed = static_cast<typename Kind::Managed *>(PyCapsule_GetPointer(capsule, Kind::kName));
  if (managed->dl_tensor.device.device_type != kDLExtDev) return std::nullopt;
  graft_tensor *tensor = nullptr;
  check(Kind::kImport(managed, &tensor));
  PyCapsule_SetName(capsule, Kind::kUsed);
  return wrap(tensor);
}

// None for a capsule of memory that is no extension device's: that is PyTorch's own business.
std::optional<at::Tensor> from_dlpack(const py::object &capsule) {
  auto tensor = take_capsule<Versioned>(capsule.ptr());
  return tensor ? tensor : take_capsule<Unversioned>(capsule.ptr());
}

// --- graphs for torch.compile ---

// SizesFailed as Python has it.
PyObject *sizes_failed;

// What the graph that fits gave, with its number; None where none does, or where its calls must be made one by one.
// Where there is one, inputs that are let go leave the list.
std::optional<std::pair<uint64_t, std::vector<at::Tensor>>> run_graph(GraphCache &cache, const py::list &list,
                                                                      const std::vector<bool> &let_go) {
  auto inputs = list.cast<std::vector<at::Tensor>>();
  GraphCache::Found graph = cache.find(inputs);
  if (!graph || graph->is_shared(inputs)) return std::nullopt;
  for (size_t i = 0; i < let_go.size(); i++) {
    if (let_go[i]) list[i] = py::none();
  }
  try {
    py::gil_scoped_release no_gil;
    return std::pair(graph->serial(), graph->run(std::move(inputs), let_go));
  } catch (const SizesFailed &error) {
    PyErr_SetString(sizes_failed, error.what());
    throw py::error_already_set();
  }
}

py::dict graph_info(const CompiledGraph &graph) {
  const graft_graph_exec_info info = graph.info();
  py::dict row;
  row["nodes"] = info.nodes;
  row["arena_bytes"] = info.arena_bytes;
  row["constant_bytes"] = info.constant_bytes;
  return row;
}

// With whatever it is given: libgraft says what does not fit.
std::vector<at::Tensor> run_loaded(const CompiledGraph &graph, const std::vector<at::Tensor> &inputs) {
  py::gil_scoped_release no_gil;
  return graph.run(inputs);
}

py::tuple load_file(const std::string &path, int64_t index) {
  GraphFile file;
  {
    py::gil_scoped_release no_gil;
    file = load_graph(path, narrow(index));
  }
  return py::make_tuple(file.graph, file.inputs, file.values, file.outputs);
}

c10::Scalar number_of(const py::handle &item) {
  if (PyBool_Check(item.ptr())) return item.cast<bool>();
  if (PyLong_Check(item.ptr())) return item.cast<int64_t>();
  if (PyFloat_Check(item.ptr())) return item.cast<double>();
  return item.cast<c10::complex<double>>();
}

// An argument of a call with open sizes, by the letter of its kind.
c10::IValue argument_of(char kind, const py::handle &item) {
  if (item.is_none()) return {};
  switch (kind) {
    case 'T':
    case 'i': return item.cast<int64_t>();
    case 'L':
    case 'I': return item.cast<std::vector<int64_t>>();
    case 'F': return item.cast<std::vector<double>>();
    case 'm': {
      c10::List<bool> mask;
      for (const auto &each : item) mask.push_back(each.cast<bool>());
      return mask;
    }
    case 'f': return item.cast<double>();
    case 'b': return item.cast<bool>();
    case 's': return number_of(item);
    case 'z': return item.cast<std::string>();
    case 'd': return item.cast<c10::ScalarType>();
    case 'M': return item.cast<c10::MemoryFormat>();
    default: return true;
  }
}

std::vector<OpenValuePtr> call_open(OpenRecording &recording, const std::string &op, const std::string &kinds,
                                    const py::list &args, const std::vector<OpenValuePtr> &tensors,
                                    const std::vector<OpenValuePtr> &given) {
  std::vector<c10::IValue> values;
  for (size_t i = 0; i < kinds.size(); i++) values.push_back(argument_of(kinds[i], args[i]));
  return recording.call(op, kinds, values, tensors, given);
}

void bind_graphs(py::module &m) {
  sizes_failed = py::exception<SizesFailed>(m, "SizesFailed", PyExc_RuntimeError).release().ptr();
  py::class_<CompiledGraph, std::shared_ptr<CompiledGraph>>(m, "CompiledGraph")
      .def_property_readonly("serial", &CompiledGraph::serial)
      .def("run", torch::wrap_pybind_function(run_loaded))
      .def("fits", &CompiledGraph::fits)
      .def("info", torch::wrap_pybind_function(graph_info));
  py::class_<GraphCache>(m, "GraphCache")
      .def(py::init<>())
      .def("__len__", &GraphCache::size)
      .def("fits",
           [](GraphCache &cache, const std::vector<at::Tensor> &inputs) { return cache.find(inputs) != nullptr; })
      .def("add", [](GraphCache &cache, std::shared_ptr<CompiledGraph> graph,
                     size_t limit) { return cache.add(std::move(graph), limit); })
      .def("run", torch::wrap_pybind_function(run_graph), py::arg("inputs"), py::arg("let_go") = std::vector<bool>());
  py::class_<GraphRecording>(m, "GraphRecording")
      .def(py::init(
          torch::wrap_pybind_function([](int64_t index) { return std::make_unique<GraphRecording>(narrow(index)); })))
      .def("input", torch::wrap_pybind_function(&GraphRecording::input))
      .def("begin", torch::wrap_pybind_function(&GraphRecording::begin))
      .def("end", torch::wrap_pybind_function(&GraphRecording::end))
      .def("stop", &GraphRecording::stop)
      .def("output", torch::wrap_pybind_function(&GraphRecording::output))
      .def("donate", torch::wrap_pybind_function(&GraphRecording::donate))
      .def_property_readonly("written", &GraphRecording::written)
      .def("set_value", torch::wrap_pybind_function(&GraphRecording::set_value))
      .def("save", torch::wrap_pybind_function_no_gil(&GraphRecording::save))
      .def_property_readonly("node_count", &GraphRecording::node_count)
      .def("compile", torch::wrap_pybind_function(&GraphRecording::compile), py::arg("passes") = py::none());
  py::class_<OpenValue, std::shared_ptr<OpenValue>>(m, "OpenValue")
      .def(py::init<const at::Tensor &>())
      .def_property_readonly("sizes", &OpenValue::sizes)
      .def_property_readonly("strides", &OpenValue::strides)
      .def_property_readonly("dtype", &OpenValue::dtype);
  py::class_<OpenRecording, GraphRecording>(m, "OpenRecording")
      .def(py::init(
          torch::wrap_pybind_function([](int64_t index) { return std::make_unique<OpenRecording>(narrow(index)); })))
      .def("size", torch::wrap_pybind_function(&OpenRecording::size))
      .def("size_of", torch::wrap_pybind_function(&OpenRecording::size_of))
      .def("input", torch::wrap_pybind_function(&OpenRecording::input))
      .def("call", torch::wrap_pybind_function(call_open))
      .def("output", torch::wrap_pybind_function(&OpenRecording::output))
      .def("compile", torch::wrap_pybind_function(&OpenRecording::compile), py::arg("passes") = py::none());
  m.def("load_graph", torch::wrap_pybind_function(load_file));
  m.def("is_recordable", torch::wrap_pybind_function([](const at::Tensor &tensor, int64_t index) {
          return is_recordable(tensor, narrow(index));
        }));
}

// --- captures ---

using PoolId = std::pair<uint64_t, uint64_t>;

// One of them, and where each result of the program comes from: an input, by its place; or the replay, or what it was
// when the run was captured.
struct ProgramReplay {
  static constexpr int64_t kMade = -1, kSame = -2;

  std::shared_ptr<ReplayedRun> run;
  py::list results;
  std::vector<int64_t> sources;
};

// The replays of a program for one set of its numbers. All under Python's lock.
class ProgramReplays {
 public:
  // tensors: the places of its tensors in the list of its values.
  explicit ProgramReplays(std::vector<size_t> tensors) : tensors_(std::move(tensors)) {}

  void add(std::shared_ptr<ReplayedRun> run, py::list results, std::vector<int64_t> sources, size_t limit) {
    if (all_.size() >= limit && !all_.empty()) all_.erase(all_.begin());
    all_.push_back({std::move(run), std::move(results), std::move(sources)});
  }

  // The program's results, and then the list is empty; None where no replay fits, or none is free.
  py::object run(const py::list &values) {
    std::vector<at::Tensor> inputs;
    inputs.reserve(tensors_.size());
    for (size_t place : tensors_) {
      PyObject *value = PyList_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(place));
      if (!THPVariable_Check(value)) return py::none();
      inputs.push_back(THPVariable_Unpack(value));
    }
    for (size_t i = all_.size(); i-- > 0;) {
      if (!all_[i].run->fits(inputs)) continue;
      const ProgramReplay replay = all_[i];  // others may come and go meanwhile
      auto made = replayed(*replay.run, inputs);
      if (!made) continue;
      return results_of(replay, *made, values);
    }
    return py::none();
  }

  size_t size() const { return all_.size(); }

 private:
  static std::optional<std::vector<at::Tensor>> replayed(ReplayedRun &run, const std::vector<at::Tensor> &inputs) {
    py::gil_scoped_release no_gil;
    return run.replay(inputs);
  }

  static py::list results_of(const ProgramReplay &replay, std::vector<at::Tensor> &made, const py::list &values) {
    py::list results(replay.sources.size());
    size_t next = 0;
    for (size_t i = 0; i < replay.sources.size(); i++) {
      const int64_t source = replay.sources[i];
      if (source >= 0)
        results[i] = values[static_cast<size_t>(source)];
      else
        results[i] = source == ProgramReplay::kMade ? py::cast(std::move(made[next++])) : py::object(replay.results[i]);
    }
    if (PyList_SetSlice(values.ptr(), 0, PyList_GET_SIZE(values.ptr()), nullptr)) throw py::error_already_set();
    return results;
  }

  std::vector<size_t> tensors_;
  std::vector<ProgramReplay> all_;
};

void bind_replayed_runs(py::module &m) {
  using Tensors = std::vector<at::Tensor>;
  using Flags = std::vector<bool>;
  py::class_<ReplayedRun, std::shared_ptr<ReplayedRun>>(m, "ReplayedRun")
      .def(py::init(torch::wrap_pybind_function([](const Tensors &inputs, const Flags &in_place, const Flags &written) {
        return std::make_shared<ReplayedRun>(inputs, in_place, written);
      })))
      .def("begin", torch::wrap_pybind_function(&ReplayedRun::begin))
      .def("end", torch::wrap_pybind_function(&ReplayedRun::end))
      .def("reset", &ReplayedRun::reset, py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("count", &ReplayedRun::count);
  py::class_<ProgramReplays>(m, "ProgramReplays")
      .def(py::init<std::vector<size_t>>())
      .def("add", &ProgramReplays::add)
      .def("__len__", &ProgramReplays::size)
      .def("run", torch::wrap_pybind_function(&ProgramReplays::run));
  m.def("is_replayed", torch::wrap_pybind_function(is_replayed));
}

void bind_replay(py::module &m) {
  py::class_<Replay>(m, "Replay")
      .def(py::init<>())
      .def("begin", torch::wrap_pybind_function([](Replay &self, PoolId pool) { self.begin(pool); }))
      .def("end", torch::wrap_pybind_function(&Replay::end))
      .def("replay", torch::wrap_pybind_function_no_gil(&Replay::replay))
      .def("reset", &Replay::reset, py::call_guard<py::gil_scoped_release>())
      .def("pool", torch::wrap_pybind_function([](const Replay &self) { return PoolId(self.pool()); }))
      .def("count", torch::wrap_pybind_function(&Replay::count));
  m.def("new_pool_id", [] { return PoolId(new_pool_id()); });
  m.def("is_captured", torch::wrap_pybind_function([] { return is_captured(); }));
  m.def("register_replay", [] { register_replay(); });
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The C++ part of torch_graft; use torch_graft and torch.graft.";
  auto def = [&m](const char *name, auto function, auto... extra) {
    m.def(name, torch::wrap_pybind_function(function), extra...);
  };
  auto def_without_gil = [&m](const char *name, auto function, auto... extra) {
    m.def(name, torch::wrap_pybind_function_no_gil(function), extra...);
  };
  m.attr("version") = graft_version();
  def("backends", backends);
  def_without_gil("devices", device_rows);
  def_without_gil(
      "load", +[](const std::string &path) { return static_cast<int64_t>(load(path)); });
  def_without_gil(
      "device_count", +[] { return static_cast<int64_t>(device_count()); });
  def(
      "is_initialized", +[] { return is_initialized(); });
  def(
      "is_forked", +[] { return is_forked(); });
  def(
      "is_registered", +[] { return is_registered(); });
  def_without_gil(
      "wait_for_engine", +[] { wait_for_engine(); });
  def("device_properties", device_properties);
  def("extension", extension);
  def("op_route", op_route);
  def(
      "current_device", +[] { return static_cast<int64_t>(current_device()); });
  def(
      "set_device", +[](int64_t index) { set_device(narrow(index)); });
  def("exchange_device", exchange_device);
  def("default_stream", default_stream);
  def("memory_info", memory_info);
  def(
      "set_memory_fraction", +[](double fraction, int64_t index) { set_memory_fraction(fraction, narrow(index)); });
  def(
      "default_generator", +[](int64_t index) { return default_generator(narrow(index)); });
  def(
      "manual_seed_all", +[](uint64_t seed) { seed_all(seed); });
  def("on_custom_ops", tell_of_custom_ops);
  def("on_stand_ins", know_stand_ins);
  def("fallbacks", fallback_rows);
  def("reset_fallbacks", reset_fallbacks);
  def("to_dlpack", to_dlpack);
  def("from_dlpack", from_dlpack);
  bind_graphs(m);
  bind_replay(m);
  bind_replayed_runs(m);
}

}  // namespace torch_graft
