"""Graphs in files: what PyTorch traces of a model or of a training step is recorded as a graph of libgraft and saved
with its weights; `graft run`, C and load() run it (docs/graphs.md).

Tensors that the program holds become constants, or, where it writes to them, inputs with a value: state. Which those are
a first recording tells, for which all of them are inputs.
"""

import gc
import inspect
import os
import re
import threading
import traceback

import torch
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from torch_graft import _device, _open_sizes, _program
from torch_graft._device import is_ours
from torch_graft._layouts import hint_of, memory_of


def save(program, path, args=None, kwargs=None, state=None):
    """torch_graft.save."""
    if not isinstance(args, (tuple, list, type(None))):
        raise TypeError(f"torch_graft.save: args is a tuple of arguments, (x,) for one; not {type(args).__name__}")
    if not isinstance(state, (dict, type(None))):
        raise TypeError('torch_graft.save: state is a dict of names and what they are for, {"model": model}; '
                        f"not {type(state).__name__}")  # fmt: skip
    if isinstance(program, torch.nn.Module):
        program = torch.export.export(program, tuple(args or ()), kwargs or {}, strict=False)
    elif args is not None and isinstance(program, torch.export.ExportedProgram):
        raise TypeError("torch_graft.save: an exported program has its arguments; args is for modules and functions")
    if isinstance(program, torch.export.ExportedProgram):
        traced = _exported(program)
    elif callable(program):
        traced = _function(program, tuple(args or ()), kwargs or {}, state or {})
    else:
        raise TypeError(f"torch_graft.save: expected an exported program, a module or a function, not {type(program)}")
    index = _index_of(traced)
    written = _record(traced, index, set(traced.held)).written[len(traced.inputs) :]
    kept = {held for held, is_written in zip(traced.held, written) if is_written}
    _check_shared(traced, kept)
    recording = _record(traced, index, kept)
    for i, held in enumerate((held for held in traced.held if held in kept), start=len(traced.inputs)):
        recording.set_value(i, held.tensor.detach())
    recording.save(os.fspath(path))


_TORCH = os.path.dirname(torch.__file__)


def _refuse(what, advice, node=None):
    raise RuntimeError(f"torch_graft.save: {what}{_line_of(node) if node else ''}; {advice}") from None


def _line_of(node):
    """The line of the model that a node is of, or of a module of PyTorch's that it uses."""
    found = re.findall(r'File "(.*)", line (\d+), in .*\n\s*(.*)', node.meta.get("stack_trace") or "")
    found = [line for line in found if not line[0].startswith("<") and line[0] != __file__]
    own = [line for line in found if not line[0].startswith(_TORCH)]
    for path, number, code in (own or found)[-1:]:
        return f" ({path}:{number}: {code.strip()})"
    return ""


# --- what is traced ---


class _Held:
    """A tensor that the program holds."""

    def __init__(self, name, tensor):
        self.name, self.tensor = name, tensor


class _Traced:
    """A graph of FX, and what its values are."""

    def __init__(self, module):
        self.module = module
        self.inputs = {}  # nodes: name and a tensor that lies like it
        self.held = []  # tensors on a device
        self.held_by = {}  # nodes that are a held one
        self.values = {}  # nodes: numbers and tensors of the CPU
        self.names = {}  # of those tensors of the CPU
        self.outputs = []  # name and node
        self.writes = []  # what is copied at the end: to a node, from a node
        self.ranges = None  # of sizes that are open until a run; None: none is

    def hold(self, node, name, tensor):
        if not is_ours(tensor):
            self.values[node] = tensor.detach()
            self.names[node] = name
            return
        held = next((held for held in self.held if _same_memory(held.tensor, tensor)), None)
        if held is None:
            self.held.append(held := _Held(name, tensor))
        self.held_by[node] = held


def _same_memory(a, b):
    def place(tensor):
        strides = [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]
        bits = tensor.is_conj(), tensor.is_neg()
        return tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, strides, tensor.dtype, bits

    return place(a) == place(b)


def _exported(program):
    device = f"{_device.device_name()}:{_device.library().current_device()}"
    if not any(is_ours(tensor) for tensor in _tensors_of(program)):
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    opens = any(_open_sizes.symbols_of(tensor) for tensor in _tensors_of(program))
    if opens:
        program = program.run_decompositions(_composites())  # libgraft follows each op to other sizes
    traced = _Traced(program.graph_module)
    traced.ranges = program.range_constraints if opens else None
    nodes = {node.name: node for node in program.graph.nodes}
    held = {**program.constants, **program.state_dict}
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind == InputKind.USER_INPUT:
            _add_argument(traced, node, spec.arg)
        elif isinstance(held.get(spec.target), torch.Tensor):
            traced.hold(node, spec.target, held[spec.target])
        else:
            _refuse(f"{spec.target} is no tensor", "a file holds tensors alone")
    paths = pytree.tree_flatten_with_path(pytree.tree_unflatten([0] * program.call_spec.out_spec.num_leaves,
                                                                program.call_spec.out_spec))[0]  # fmt: skip
    names = iter([_name(path, "output") for path, _ in paths])
    of_target = {spec.target: nodes[spec.arg.name] for spec in program.graph_signature.input_specs if spec.target}
    for spec in program.graph_signature.output_specs:
        value = nodes.get(getattr(spec.arg, "name", None))
        if spec.kind == OutputKind.USER_OUTPUT:
            _add_output(traced, next(names), value if isinstance(spec.arg, TensorArgument) else spec.arg.value)
        elif spec.kind == OutputKind.TOKEN:
            _refuse("the program has effects beyond its tensors", "take them out of the model")
        elif spec.target:
            traced.writes.append((of_target.get(spec.target, nodes.get(spec.target)), value))
    return traced


def _composites():
    """How ops that are only names for others become these. Resampling stays: its parts would be other arithmetic."""
    table = torch.export.default_decompositions()
    ops = [op for op in table if isinstance(op, torch._ops.OpOverload) and op._can_decompose()]
    return {op: table[op] for op in ops if op not in _open_sizes.RESAMPLED}


def _tensors_of(program):
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _add_argument(traced, node, argument):
    value = node.meta.get("val")
    if isinstance(argument, TensorArgument):
        _check_sizes(node, value)
        sizes, strides = ([hint_of(number) for number in numbers] for numbers in (value.shape, value.stride()))
        traced.inputs[node] = node.name, torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
    elif isinstance(value, torch.types.py_sym_types):
        _refuse(f"input {node.name} is a number that is open until a run", "export with that number")
    else:
        traced.values[node] = getattr(argument, "value", value)


def _check_sizes(node, value):
    if free_unbacked_symbols(value):
        _refuse(f"input {node.name}, {list(value.shape)}, has sizes without an example", "export with Dim.DYNAMIC or Dim(...)")


def _add_output(traced, name, value):
    if isinstance(value, torch.fx.Node):
        traced.outputs.append((name, value))
    elif value is not None:
        _refuse(f"{name} is {value!r}, which tracing made a constant", "return tensors alone")


def _name(path, otherwise):
    """["logits"][0] as "logits.0"."""
    parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
    if parts and not parts[0].isidentifier():
        parts.insert(0, otherwise)
    return ".".join(parts) or otherwise


# --- functions ---


def _function(function, args, kwargs, state):
    from torch.fx.experimental.proxy_tensor import make_fx

    bound = inspect.signature(function).bind(*args, **kwargs)
    leaves, spec = pytree.tree_flatten_with_path(bound.arguments)
    tensors = [i for i, (_, value) in enumerate(leaves) if isinstance(value, torch.Tensor)]
    names = []

    def flat(*values):
        mine = [value for _, value in leaves]
        for i, value in zip(tensors, values):
            mine[i] = value
        bound.arguments.update(pytree.tree_unflatten(mine, spec))
        results, _ = pytree.tree_flatten_with_path(function(*bound.args, **bound.kwargs))
        names.extend(_name(path, "output") for path, _ in results)
        return [value for _, value in results]

    try:
        with _PutBack() as put_back:
            module = make_fx(flat, record_stack_traces=True)(*[leaves[i][1] for i in tensors])
    except RuntimeError as error:
        if "trying to get value out of a tracing tensor" not in str(error):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_TORCH)]
        line = next(frame for frame in reversed(frames) if frame.filename != __file__)
        _refuse(f"values of a tensor are read ({line.filename}:{line.lineno}: {line.line})",
                "compute with tensors, or return what is read and go on outside")  # fmt: skip
    _refuse_made(put_back.made, state)
    traced = _Traced(module)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, i in zip(placeholders, tensors):
        traced.inputs[node] = _name(leaves[i][0], "input"), leaves[i][1].detach()
    names_of_held = {id(tensor): name for name, tensor in _named_tensors(state)}
    for node in module.graph.nodes:
        value = _program._attribute(module, node.target) if node.op == "get_attr" else None
        if isinstance(value, torch.Tensor):
            traced.hold(node, names_of_held.get(id(value), f"held.{len(traced.held)}"), value)
    output = next(iter(reversed(module.graph.nodes)))
    for name, value in zip(names, output.args[0]):
        _add_output(traced, name, value)
    return traced


def _named_tensors(state):
    for prefix, value in state.items():
        if isinstance(value, torch.nn.Module):
            tensors = {**dict(value.named_parameters()), **dict(value.named_buffers())}
            yield from ((f"{prefix}.{name}", tensor) for name, tensor in tensors.items())
        elif isinstance(value, torch.optim.Optimizer):
            parameters = [parameter for group in value.param_groups for parameter in group["params"]]
            for i, parameter in enumerate(parameters):
                for name, tensor in value.state.get(parameter, {}).items():
                    yield f"{prefix}.{i}.{name}", tensor
        else:
            yield prefix, value


_WRITES_UNSAID = "running_mean", "running_var"  # native_batch_norm does, and its schema does not say so


class _PutBack(TorchDispatchMode):
    """Gives tensors that are written back what they held before, the generators their state, and parameters and
    optimizers what hung on them: training that goes on is as if nothing had been called."""

    def __enter__(self):
        self.before, self.seen, self.optimizers = {}, set(), {}
        self.gradients = [(tensor, tensor.grad) for tensor in _leaves()]
        self.states = torch.get_rng_state(), torch.graft.get_rng_state_all()
        self.thread = threading.get_ident()
        self.hook = register_optimizer_step_pre_hook(self._keep_optimizer)
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.hook.remove()
        self.made = [made for optimizer, state in self.optimizers.items() for made in _made(optimizer, state)]
        for optimizer, state in self.optimizers.items():
            _put_back_state(optimizer, state)
        for tensor, gradient in self.gradients:
            if id(tensor) in self.seen and tensor.grad is not gradient:
                tensor.grad = gradient
        with torch.no_grad():
            for tensor, value in reversed(self.before.values()):  # what overlaps was kept after the first write
                tensor.copy_(value)
        torch.set_rng_state(self.states[0])
        torch.graft.set_rng_state_all(self.states[1])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.seen.update(id(value) for value in pytree.tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor))
        for i, argument in enumerate(function._schema.arguments):
            if argument.name in _WRITES_UNSAID or (argument.alias_info and argument.alias_info.is_write):
                self._keep(args[i] if i < len(args) else kwargs.get(argument.name))
        return function(*args, **kwargs)

    def _keep(self, values):
        for tensor in pytree.tree_leaves(values):
            if isinstance(tensor, torch.Tensor):
                tensor = tensor.detach()
                key = tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.shape, tensor.stride()
                if key not in self.before:
                    self.before[key] = tensor, tensor.clone()

    def _keep_optimizer(self, optimizer, args, kwargs):
        if threading.get_ident() == self.thread and optimizer not in self.optimizers:
            state = {parameter: (values, dict(values)) for parameter, values in optimizer.state.items()}
            self.optimizers[optimizer] = state


def _leaves():
    """All tensors that may have a gradient; the call's use tells which of them it reaches."""
    tensors = [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]
    with torch._C.DisableTorchFunctionSubclass():
        return [tensor for tensor in tensors if tensor.requires_grad and tensor.is_leaf]


def _made(optimizer, before):
    """The optimizer and the name, for what it holds for a parameter and did not before."""
    for parameter, values in optimizer.state.items():
        _, old = before.get(parameter, (None, {}))
        for name, value in values.items():
            if _has_tensors(value) and not _has_tensors(old.get(name)):
                yield optimizer, name


def _has_tensors(value):
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))


def _put_back_state(optimizer, before):
    optimizer.state.clear()
    for parameter, (values, old) in before.items():
        values.clear()
        values.update(old)
        optimizer.state[parameter] = values


def _refuse_made(made, state):
    for optimizer, name in made:
        known = next((f"{key}, " for key, value in state.items() if value is optimizer), "")
        _refuse(f"the optimizer {known}{type(optimizer).__name__}, made {name} during the call, which the file would "
                "forget at each run",
                "an optimizer makes its state at its first step: call the function once before saving")  # fmt: skip


# --- recording ---


def _index_of(traced):
    tensors = [tensor for _, tensor in traced.inputs.values()] + [held.tensor for held in traced.held]
    for name, tensor in traced.inputs.values():
        if not is_ours(tensor):
            _refuse(f"input {name} is on {tensor.device}", f"give one on {_device.device_name()}")
    devices = sorted({str(tensor.device) for tensor in tensors})
    if len(devices) > 1:
        _refuse(f"its tensors are on {' and '.join(devices)}", "a graph is for one device")
    return tensors[0].device.index or 0 if tensors else _device.library().current_device()


def _check_shared(traced, kept):
    inputs = [_Held(f"input {name}", tensor) for name, tensor in traced.inputs.values()]
    for held in kept:
        for other in [*traced.held, *inputs]:
            if other is not held and other.tensor.untyped_storage()._cdata == held.tensor.untyped_storage()._cdata:
                _refuse(f"{held.name}, which is written, shares memory with {other.name}", "give each memory of its own")


def _record_open(traced, index, kept):
    """The same, of a graph whose sizes are open."""
    recording = _device.library().OpenRecording(index)
    places = _open_sizes.places_of([node.meta["val"] for node in traced.inputs])
    try:
        with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
            names, tensors = zip(*traced.inputs.values())
            sizes = _open_sizes.Sizes(recording, places, tensors, {}, names, traced.ranges)
            recorder = _open_sizes.Recorder(recording, sizes, dict(traced.values))
            for node, (name, tensor) in traced.inputs.items():
                recorder.input(node, name, tensor)
            held = {each: each.tensor.detach() for each in traced.held}
            for each, tensor in held.items():
                if each in kept:
                    held[each] = recording.input(each.name, tensor, list(tensor.shape), list(tensor.stride()))
            recorder.values.update((node, held[each]) for node, each in traced.held_by.items())
            recording.begin()
            for node in traced.module.graph.nodes:
                _record_open_node(traced.module, recorder, node)
            for to, value in traced.writes:
                recorder.write(recorder.values[to], recorder.values[value])
            for node in _constant_outputs(traced, kept):
                recorder.values[node] = recorder.op(torch.ops.aten.clone.default, recorder.values[node])
            recording.end()
            for name, node in traced.outputs:
                recording.output(name, recorder.values[node])
    except _open_sizes.NotSayable as reason:
        _refuse(f"its sizes are open until a run, and {reason}", "export without dynamic_shapes, a file for each size")
    finally:
        recording.stop()
    return recording


_CHECKS = "aten::_assert", "aten::sym_constrain"  # of sizes: a run checks them against the inputs


def _record_open_node(module, recorder, node):
    if node in recorder.values or node.op in ("placeholder", "output"):
        return
    if node.op == "get_attr":
        recorder.values[node] = _program._attribute(module, node.target)
    elif isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name.startswith(_CHECKS):
        recorder.values[node] = None
    else:
        _check_node(node, recorder.values)
        recorder.record(node)


def _record(traced, index, kept):
    """The graph, with `kept` of what is held as inputs."""
    if traced.ranges is not None:
        return _record_open(traced, index, kept)
    recording = _device.library().GraphRecording(index)
    outside = {node: value.clone() for node, value in traced.values.items() if isinstance(value, torch.Tensor)}
    versions = [value._version for value in outside.values()]
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        values = {**traced.values, **outside}
        for node, (name, tensor) in traced.inputs.items():
            values[node] = recording.input(name, tensor)
        places = {held: held.tensor.detach() for held in traced.held}
        for held in traced.held:
            if held in kept:
                places[held] = recording.input(held.name, held.tensor.detach())
        values.update((node, places[held]) for node, held in traced.held_by.items())
        recording.begin()
        try:
            _record_nodes(traced.module, values, set())  # results lie as eager mode's do, whatever the trace took them for
            for to, value in traced.writes:
                values[to].copy_(values[value])
            for node in _constant_outputs(traced, kept):
                values[node] = values[node].clone()
            recording.end()
        finally:
            recording.stop()
        for name, node in traced.outputs:
            recording.output(name, _output_value(name, node, values[node]))
    for (node, value), version in zip(outside.items(), versions):
        if value._version != version:
            _refuse(f"it writes to {traced.names[node]}, a tensor on the CPU", "a file has it as it is now, for all runs; move "
                    "it to the device (optimizers: fused=True or capturable=True)")  # fmt: skip
    return recording


def _constant_outputs(traced, kept):
    """Outputs that are what the program holds, or views of it: no values of the graph, as their copies are."""
    constant = {node for node, held in traced.held_by.items() if held not in kept}
    for node in traced.module.graph.nodes:
        given = node.all_input_nodes
        if node.op == "call_function" and given and constant.issuperset(given):
            constant.add(node)
    return [node for node in dict.fromkeys(node for _, node in traced.outputs) if node in constant]


def _output_value(name, node, value):
    if isinstance(value, torch.Tensor) and is_ours(value):
        return value
    _refuse(f"{name} is on the CPU", "return tensors on the device", node)


def _record_nodes(module, values, outputs):
    """Calls the nodes of a graph with the values of others; gives what the graph returns."""
    memories = {memory_of(value) for value in values.values() if isinstance(value, torch.Tensor)}
    for node in module.graph.nodes:
        if node in values or node.op == "placeholder":
            continue
        if node.op == "get_attr":
            values[node] = _program._attribute(module, node.target)
        elif node.op == "output":
            return torch.fx.node.map_arg(node.args[0], values.__getitem__)
        elif getattr(node.target, "namespace", "") == "profiler":  # optimizers mark their steps
            values[node] = None
        elif getattr(node.target, "__name__", "") == "wrap_with_set_grad_enabled":  # no gradients are recorded here
            values[node] = _record_part(node, values)
        else:
            _check_node(node, values)
            values[node] = _record_node(node, values, memories, outputs)


def _record_part(node, values):
    _, part, *args = node.args
    inside = [each for each in values[part].graph.nodes if each.op == "placeholder"]
    given = torch.fx.node.map_arg(tuple(args), values.__getitem__)
    return _record_nodes(values[part], dict(zip(inside, given)), set())


def _record_node(node, values, memories, outputs):
    try:
        return _program._record_node(node, values, memories, outputs)
    except _program._Refused as refused:
        _refuse(f"{node.target} can't be in a file: {refused.reason.removeprefix('graft: ')}",
                "take it out of what is saved, or run it beside the graph", node)  # fmt: skip


def _check_node(node, values):
    given = torch.fx.node.map_arg((node.args, node.kwargs), values.get)
    if any(isinstance(leaf, torch.Generator) and _is_own(leaf) for leaf in pytree.tree_leaves(given)):
        _refuse(f"{node.target} draws from a generator other than the device's default", "give it none; "
                "torch.manual_seed seeds the default one", node)  # fmt: skip
    value = node.meta.get("val")
    leaves = pytree.tree_leaves(value)
    if any(free_unbacked_symbols(leaf) for leaf in leaves if isinstance(leaf, (torch.Tensor, *torch.types.py_sym_types))):
        _refuse(f"the size of the result of {node.target} is not known beforehand",
                "a file holds fixed sizes: compute it outside, or with a size that is given", node)  # fmt: skip
    tags = getattr(node.target, "tags", ())
    on_cpu = isinstance(value, torch.Tensor) and value.device.type == "cpu"
    given = pytree.tree_leaves([each.meta.get("val") for each in node.all_input_nodes])
    if on_cpu and any(isinstance(each, torch.Tensor) and is_ours(each) for each in given):
        _refuse(f"{node.target} reads values of the device", "leave them there, or return them and go on outside", node)
    if on_cpu and torch.Tag.nondeterministic_seeded in tags:
        _refuse(f"{node.target} draws on the CPU, once for all runs", "draw on the device", node)


def _is_own(generator):
    """Whether it is a generator of the device, and not the default one."""
    return is_ours(generator) and generator != torch.graft.default_generators[generator.device.index or 0]


# --- running ---


class Loaded:
    """What torch_graft.load_graph gives."""

    def __init__(self, graph, names, values, outputs):
        self._graph, self._names = graph, names
        self.state = {name: value for name, value in zip(names, values) if value is not None}
        self.inputs = [name for name in names if name not in self.state]
        self.outputs = outputs

    def __call__(self, *args, **kwargs):
        given = dict(zip(self.inputs, args))
        if len(args) > len(self.inputs) or given.keys() & kwargs.keys() or {*given, *kwargs} != {*self.inputs}:
            raise TypeError(f"expected the inputs {', '.join(self.inputs)}; got {len(args)} and {[*kwargs]}")
        given.update(kwargs)
        values = [self.state[name] if name in self.state else given[name] for name in self._names]
        for name, value in zip(self._names, values):
            if not isinstance(value, torch.Tensor) or not is_ours(value):
                raise TypeError(f"input {name}: expected a tensor on {_device.device_name()}")
            if value.requires_grad and torch.is_grad_enabled():
                raise RuntimeError(f"input {name} requires grad, and a loaded graph has no gradient: use torch.no_grad()")
        results = self._graph.run(values)
        return results[0] if len(results) == 1 else tuple(results)


def load(path, device=None):
    """torch_graft.load_graph."""
    return Loaded(*_device.library().load_graph(os.fspath(path), _device.device_index(device)))
