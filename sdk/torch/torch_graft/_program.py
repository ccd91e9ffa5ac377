"""An FX graph of aten ops as a program of graphs of libgraft and of calls beside them.

The nodes stay in their order. Runs of nodes that a graph can hold are pieces: a piece is recorded when it is first run
with inputs of some dtypes, sizes and strides, through the same kernels that eager mode calls, and from then on runs
without Python. Where the sizes are symbols, one recording serves all of them, if libgraft can be told so
(_open_sizes.py). What a graph can't hold is called as eager mode does. Whether it can is asked of each node before
(_nodes.py), and answered by the recording: where that fails at a node, the piece is split there.

TORCH_LOGS="torch_graft" says what became of each graph, and why.
"""

import logging
import threading
import warnings

import torch
from torch._dynamo.utils import counters
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from torch_graft import _device, _open_sizes, _parts, _rng_ops
from torch_graft._layouts import as_expected, is_view, memory_of, strides_of
from torch_graft._nodes import is_number, is_part, is_tensor, spread_last, why_not
from torch_graft._warning import first_line

log = logging.getLogger(__name__)

# Graphs kept of one piece, each for inputs of other sizes.
LIMIT = 16


def compile_graph(module, passes=None, replays=None):
    """A function of a list of values, which it empties; what AOTAutograd calls boxed. replays: of a program, what runs it
    instead."""
    program = Program(module, passes)
    runner = replays(program) if replays else program

    def run(values):
        return runner.run(values)

    run._boxed_call = True
    run.program, run.runner = program, runner
    return run


class Program:
    """One forward, backward or inference graph of AOTAutograd."""

    def __init__(self, module, passes):
        self.plan = plan = _Plan(module, passes)
        self.steps = tuple(_steps(plan, 0, len(plan.nodes)))
        self.outputs = plan.outputs
        log.info("a graph of %d nodes: %s", len(plan.nodes), plan.describe(self.steps))

    def run(self, values):
        if torch._C._is_any_autocast_enabled():  # casts are nodes
            with torch._C._DisableAutocast():
                return self._run(values)
        return self._run(values)

    def _run(self, values):
        env = self.plan.new_values(values)
        values.clear()
        for step in self.steps:
            step.run(env)
            for slot in step.dying:
                env[slot] = None
        return [env[slot] for slot in self.outputs]


class _Plan:
    """The nodes in their order, and the place that each value has in the list of values of a run."""

    def __init__(self, module, passes):
        self.passes = passes
        self.module = module
        _parts.place(module.graph)
        nodes = list(module.graph.nodes)
        self.placeholders = [node for node in nodes if node.op == "placeholder"]
        self.attributes = {node: _attribute(module, node.target) for node in nodes if node.op == "get_attr"}
        for node, value in self.attributes.items():
            node.meta.setdefault("val", value)
        self.output = nodes[-1]
        self.nodes = _with_their_parts([node for node in nodes if node.op.startswith("call_")])
        self.slots = {node: i for i, node in enumerate([*self.placeholders, *self.attributes, *self.nodes])}
        self.positions = {node: i for i, node in enumerate(self.nodes)}
        self.last_use = {node: max((self.position(user) for user in node.users), default=-1) for node in self.slots}
        self.empty = [None] * len(self.slots)
        for node, value in self.attributes.items():
            self.empty[self.slots[node]] = value
        self.outputs = [self._output(value) for value in self.output.args[0]]
        self.reasons = {node: why_not(node) for node in self.nodes}
        self.told = set()

    def _output(self, value):
        """The place of a value that is returned; one of its own for what is no node's."""
        if isinstance(value, torch.fx.Node):
            return self.slots[value]
        self.empty.append(value)
        return len(self.empty) - 1

    def position(self, user):
        return len(self.nodes) if user.op == "output" else self.positions[user]

    def new_values(self, values):
        env = self.empty.copy()
        env[: len(self.placeholders)] = values
        return env

    def dying(self, begin, end):
        """The values that nobody uses behind nodes begin to end; none at the very end, where all go."""
        if end == len(self.nodes):
            return []
        nodes = self.nodes[begin:end]
        used = {value for node in nodes for value in node.all_input_nodes}.union(nodes)
        kept = self.attributes
        return [self.slots[value] for value in used if self.last_use[value] < end and value not in kept]

    def refuse(self, node, reason):
        """It, and what takes its result apart, are called from now on."""
        self.reasons[node] = reason
        for user in node.users:
            if is_part(user):
                self.refuse(user, reason)

    def tell(self, text, *values):
        """Says it once."""
        if (text, values) not in self.told:
            self.told.add((text, values))
            log.info(text, *values)

    def describe(self, steps):
        pieces = sum(isinstance(step, _Piece) for step in steps)
        reasons = {reason: node for node, reason in reversed(self.reasons.items()) if reason}
        why = "".join(f"; {node} runs eagerly: {reason}" for reason, node in reversed(reasons.items()))
        return f"{pieces} to record, {len(steps) - pieces} calls beside them{why}"


def _attribute(module, target):
    for name in target.split("."):
        module = getattr(module, name)
    return module


def _with_their_parts(nodes):
    """Each getitem stands right behind the node whose result it takes apart, so that results are never passed whole; and
    numbers first, where they part no piece."""
    parts = {}
    for node in nodes:
        if is_part(node):
            parts.setdefault(node.args[0], []).append(node)
    ordered = []

    def add(node):
        ordered.append(node)
        for part in parts.get(node, ()):
            add(part)

    for node in sorted(nodes, key=lambda node: not is_number(node)):
        if not (is_part(node) and node.args[0].op.startswith("call_")):
            add(node)
    return ordered


def _index_of(node):
    """Of its device; None where it has no tensors."""
    values = pytree.tree_leaves([value.meta.get("val") for value in [node, *node.all_input_nodes] if not is_number(value)])
    return next((value.device.index or 0 for value in values if isinstance(value, torch.Tensor)), None)


def _steps(plan, begin, end):
    """Pieces, each as long as can be, and calls."""
    first = begin
    index = None

    def piece(to):
        if first < to:
            yield _Piece(plan, first, to, index)

    for i in range(begin, end):
        node = plan.nodes[i]
        own = None if plan.reasons[node] else _index_of(node)
        if plan.reasons[node] or (own is None and index is None) or (own is not None and index not in (None, own)):
            yield from piece(i)
            first, index = i, None
            if plan.reasons[node] or own is None:
                yield _Call(plan, i)
                first = i + 1
                continue
        index = index if own is None else own
    yield from piece(end)


# --- steps ---


class _Call:
    """One node, called as eager mode does."""

    def __init__(self, plan, position):
        self.plan, self.node = plan, plan.nodes[position]
        self.slot = plan.slots[self.node]
        self.dying = plan.dying(position, position + 1)
        self.function = _rng_ops.replacements().get(self.node.target, self.node.target)

    def run(self, env):
        slots = self.plan.slots
        args = map_arg(self.node.args, lambda node: env[slots[node]])
        kwargs = map_arg(self.node.kwargs, lambda node: env[slots[node]])
        value = _call(self.node, self.function, args, kwargs)
        if type(value) is torch.Tensor:
            given = [memory_of(each) for each in pytree.tree_leaves((args, kwargs)) if type(each) is torch.Tensor]
            value = as_expected(self.node, value, given)
        env[self.slot] = value


def _call(node, function, args, kwargs):
    if node.op == "call_function":
        return function(*args, **kwargs)
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return _attribute(node.graph.owning_module, node.target)(*args, **kwargs)


class _Variant:
    """The graphs of a piece for some sizes that are numbers among its inputs."""

    def __init__(self):
        self.cache = _device.library().GraphCache()
        self.numbers = {}  # that the piece gives, by the graph that was recorded with them


# Before the numbers of a variant whose sizes are open.
_OPEN = "open"


class _Open:
    """How one recording of a piece serves all sizes: they are dimensions of its inputs, and where it is given others as
    numbers, it is one recording for each."""

    def __init__(self, piece, places):
        self.places = places
        self.at = tuple(places.values())
        symbols = [_open_sizes.symbols_of(node.meta.get("val")) for node in piece.number_nodes]
        self.free = [i for i, found in enumerate(symbols) if not found or found - places.keys()]
        self.free_slots = [piece.number_slots[i] for i in self.free]
        self.seen, self.refused = set(), set()  # sizes that ran, and that no run can have
        self.numbers = {}  # that the piece gives, by sizes and by what it is given

    @staticmethod
    def of(piece):
        places = _open_sizes.places_of([node.meta.get("val") for node in piece.inputs])
        return _Open(piece, places) if places else None

    def sizes_of(self, tensors):
        return tuple([tensors[i].shape[d] for i, d in self.at])

    def number_of(self, piece, numbers):
        """The numbers of symbols that are no dimensions."""
        known = {}
        for i in self.free:
            value = piece.number_nodes[i].meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
                known[value.node.expr] = numbers[i]
        return known

    def note(self, sizes):
        if sizes not in self.seen:
            self._forget(self.seen)
            self.seen.add(sizes)

    @staticmethod
    def _forget(known):
        """Sizes that change each time are not remembered forever."""
        if len(known) >= 1024:
            known.clear()

    def numbers_at(self, piece, sizes, numbers):
        """What the piece gives as numbers, and where."""
        if not piece.number_outputs:
            return ()
        if (sizes, numbers) not in self.numbers:
            self._forget(self.numbers)
            known = {**dict(zip(self.places, sizes)), **self.number_of(piece, numbers)}
            found = [_open_sizes.value_at(node.meta["val"], known) for node in piece.number_outputs]
            self.numbers[sizes, numbers] = list(zip([piece.plan.slots[node] for node in piece.number_outputs], found))
        return self.numbers[sizes, numbers]


class _Piece:
    """Nodes that follow each other, run as one graph."""

    def __init__(self, plan, begin, end, index):
        self.plan, self.begin, self.end, self.index = plan, begin, end, index
        self.nodes = plan.nodes[begin:end]
        self.dying = plan.dying(begin, end)
        own = set(self.nodes)
        inputs = {value: None for node in self.nodes for value in node.all_input_nodes if value not in own}
        self.constants = [value for value in inputs if is_number(value)]
        for value in self.constants:
            del inputs[value]
        outputs = [node for node in self.nodes if plan.last_use[node] >= end]
        self.inputs = [value for value in inputs if is_tensor(value)]
        self.input_slots = [plan.slots[value] for value in self.inputs]
        # Which of them nobody uses behind it.
        self.let_go = [plan.last_use[value] < end and value not in plan.attributes for value in self.inputs]
        self.number_nodes = [value for value in inputs if not is_tensor(value)]
        self.number_slots = [plan.slots[value] for value in self.number_nodes]
        self.outputs = [node for node in outputs if is_tensor(node)]
        self.output_slots = [plan.slots[node] for node in self.outputs]
        self.number_outputs = [node for node in outputs if not is_tensor(node)]
        self.open = _Open.of(self)
        self.variants = {}
        self.waiting = None  # inputs seen once while no more graphs are kept
        self.parts = None  # what it was split into
        self.calls = None  # its nodes one by one, where they had to run so
        self.lock = threading.RLock()

    def run(self, env):
        tensors = [env[slot] for slot in self.input_slots]
        if self.open is not None and self._run_open(env, tensors):
            return
        variant = self.variants.get(tuple([env[slot] for slot in self.number_slots]))
        for slot, goes in zip(self.input_slots, self.let_go):
            if goes:
                env[slot] = None
        found = variant.cache.run(tensors, self.let_go) if variant else None
        if found is None:
            for slot, tensor in zip(self.input_slots, tensors):
                env[slot] = tensor
            return self._run_first(env, tensors)
        serial, results = found
        for slot, value in zip(self.output_slots, results):
            env[slot] = value
        for slot, value in variant.numbers[serial]:
            env[slot] = value

    def _run_open(self, env, tensors):
        """Whether one recording for all sizes ran. Where it can't at some, that shows when it first should, and inputs
        are still there."""
        variant = self.variants.get((_OPEN, *[env[slot] for slot in self.open.free_slots]))
        sizes = self.open.sizes_of(tensors) if variant else None
        if variant is None or sizes in self.open.refused:
            return False
        first = sizes not in self.open.seen
        for slot, goes in zip(self.input_slots, self.let_go):
            if goes and not first:
                env[slot] = None
        try:
            found = variant.cache.run(tensors, [] if first else self.let_go)
        except _device.library().SizesFailed as error:  # nothing has run
            if not first:
                raise
            self.open.refused.add(sizes)
            self.plan.tell("nodes %s to %s: a recording of its own: %s", self.nodes[0].name, self.nodes[-1].name,
                           first_line(error))  # fmt: skip
            return False
        if found is None:
            for slot, tensor in zip(self.input_slots, tensors):
                env[slot] = tensor
            return False
        self.open.note(sizes)
        _, results = found
        for slot, value in zip(self.output_slots, results):
            env[slot] = value
        for slot, value in self.open.numbers_at(self, sizes, tuple([env[slot] for slot in self.number_slots])):
            env[slot] = value
        return True

    def _run_first(self, env, tensors):
        """With inputs that no graph was recorded for, or for which none can be."""
        with self.lock:
            steps = self.parts or self._prepare(env, tensors)
        if steps is self:
            return self.run(env)
        for step in steps:
            step.run(env)

    def _calls(self):
        self.calls = self.calls or [_Call(self.plan, i) for i in range(self.begin, self.end)]
        return self.calls

    def _prepare(self, env, tensors):
        """Records it; gives the steps to run now: itself, or what it consists of."""
        numbers = tuple([env[slot] for slot in self.number_slots])
        opens = self.open is not None and self.open.sizes_of(tensors) not in self.open.refused
        key = (_OPEN, *[numbers[i] for i in self.open.free]) if opens else numbers
        variant = self.variants.get(key)
        problem = self._problem(numbers, tensors, variant)
        if problem:
            self.plan.tell("nodes %s to %s run eagerly: %s", self.nodes[0].name, self.nodes[-1].name, problem)
            return self._calls()
        if self._is_full() and not self._seen_before(numbers, tensors):
            return self._calls()
        variant = variant or _Variant()
        try:
            graph, values = _record_open(self, numbers, tensors) if opens else _record(self, numbers, tensors)
        except _open_sizes.NotSayable as reason:
            log.info("nodes %s to %s: a recording for each size: %s", self.nodes[0].name, self.nodes[-1].name, reason)
            self.open = None
            return self._prepare(env, tensors)
        except _Refused as refused:
            return self._split(refused)
        if self._is_full():
            self.variants.pop(next(iter(self.variants)))
        if not opens:
            variant.numbers[graph.serial] = [(self.plan.slots[node], values[node]) for node in self.number_outputs]
        variant.numbers.pop(variant.cache.add(graph, LIMIT), None)
        self.variants.pop(key, None)
        self.variants[key] = variant
        return self

    def _problem(self, numbers, tensors, variant):
        for node, number in zip(self.number_nodes, numbers):
            if not isinstance(number, (int, float, complex, str, torch.dtype, torch.device, type(None))):
                return f"{node.name} is neither a tensor nor a number"
        if variant and variant.cache.fits(tensors):
            return "an input that is written shares memory with another one"
        recordable = _device.library().is_recordable
        for node, tensor in zip(self.inputs, tensors):
            if not isinstance(tensor, torch.Tensor) or not recordable(tensor, self.index):
                return f"{node.name} is no dense tensor in memory of the device's allocator"
        return None

    def _is_full(self):
        return sum(len(variant.cache) for variant in self.variants.values()) >= LIMIT

    def _seen_before(self, numbers, tensors):
        """Whether it was run with such inputs the last time, too. Sizes that change each time are not recorded forever."""
        now = numbers, tuple((each.dtype, tuple(each.shape), each.stride()) for each in tensors)
        before, self.waiting = self.waiting, now
        if before != now:
            self.plan.tell("more than %d graphs for nodes %s to %s", LIMIT, self.nodes[0].name, self.nodes[-1].name)
        return before == now

    def _split(self, refused):
        if refused.node is None:
            log.info("nodes %s to %s run eagerly: %s", self.nodes[0].name, self.nodes[-1].name, refused.reason)
            self.parts = self._calls()
            return self.parts
        self.plan.refuse(refused.node, refused.reason)
        log.info("%s (%s) runs eagerly: %s", refused.node.name, refused.node.target, refused.reason)
        self.parts = list(_steps(self.plan, self.begin, self.end))
        return self.parts


# --- recording ---


class _Refused(Exception):
    """No graph of a piece, for want of a node, or of all."""

    def __init__(self, node, reason):
        self.node, self.reason = node, reason


def _record(piece, numbers, tensors):
    """A graph of the nodes, and the value of each while it was recorded."""
    library = _device.library()
    recording = library.GraphRecording(piece.index)
    values = dict(zip(piece.number_nodes, numbers))
    for node in piece.constants:
        values[node] = piece.plan.attributes[node if node.op == "get_attr" else node.args[0]]
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        for node, tensor in zip(piece.inputs, tensors):
            values[node] = recording.input(node.name, tensor)
        for i in _donors(piece, tensors):
            recording.donate(i)
        memories, outputs = {memory_of(values[node]) for node in piece.inputs}, set(piece.outputs)
        recording.begin()
        try:
            for node in piece.nodes:
                values[node] = _record_node(node, values, memories, outputs)
        finally:
            recording.stop()
        graph = _finish(piece, recording, values)
    _tell_recorded(piece, recording, graph)
    return graph, values


def _tell_recorded(piece, recording, graph):
    calls, left = recording.node_count, graph.info()["nodes"]
    log.info("%d nodes from %s to %s are a graph of %d calls, %d after passes",
             len(piece.nodes), piece.nodes[0].name, piece.nodes[-1].name, calls, left)  # fmt: skip
    counters["graft"]["graphs"] += 1
    counters["graft"]["calls in graphs"] += left


def _record_open(piece, numbers, tensors):
    """The same, of a graph that serves all sizes."""
    recording = _device.library().OpenRecording(piece.index)
    with torch.inference_mode(False), torch.no_grad(), _disable_current_modes():
        sizes = _open_sizes.Sizes(recording, piece.open.places, tensors, piece.open.number_of(piece, numbers))
        recorder = _open_sizes.Recorder(recording, sizes, {})
        values = recorder.values
        for node, number in zip(piece.number_nodes, numbers):
            value = node.meta.get("val")
            values[node] = sizes.number(value) if isinstance(value, torch.SymInt) else number
        for node in piece.constants:
            values[node] = piece.plan.attributes[node if node.op == "get_attr" else node.args[0]]
        try:
            for node, tensor in zip(piece.inputs, tensors):
                recorder.input(node, node.name, tensor)
            for i in _donors(piece, tensors):
                recording.donate(i)
            recording.begin()
            for node in piece.nodes:
                _record_open_node(recorder, node, node in piece.outputs)
            recording.end()
            for node in piece.outputs:
                recording.output(node.name, values[node])
            graph = recording.compile(piece.plan.passes)
        except _open_sizes.NotSayable:
            raise
        except Exception as error:
            raise _open_sizes.NotSayable(first_line(error)) from None
        finally:
            recording.stop()
    if not graph.fits(tensors):
        raise _open_sizes.NotSayable("its inputs lie otherwise than the program was told")
    _tell_recorded(piece, recording, graph)
    return graph, values


def _record_open_node(recorder, node, is_output):
    recorder.record(node)
    fake, value = node.meta.get("val"), recorder.values[node]
    if not isinstance(fake, torch.Tensor) or is_view(node) or _writes(node):
        return
    if is_output or any(is_view(user) for user in node.users):
        strides = strides_of(fake, value.sizes)
        if strides is not None and not _open_sizes.lies_so(value, strides):
            recorder.values[node] = recorder.made_dense(node, value, strides)


def _writes(node):
    arguments = node.target._schema.arguments if isinstance(node.target, torch._ops.OpOverload) else ()
    return any(each.alias_info and each.alias_info.is_write for each in arguments)


def _donors(piece, tensors):
    """Inputs that the program itself made, or saved in its forward, that are all of their memory, and that nobody uses
    behind the piece: a run may have them to itself. Of others, parameters for one, somebody else has hold."""
    memories = [memory_of(tensor) for tensor in tensors]
    for i, (node, tensor) in enumerate(zip(piece.inputs, tensors)):
        given = node.op == "placeholder" and node.target.startswith(("primals", "tangents"))
        is_all = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()
        if piece.let_go[i] and not given and is_all and memories.count(memories[i]) == 1:
            yield i


def _finish(piece, recording, values):
    try:
        for node in piece.outputs:
            recording.output(node.name, values[node])
    except Exception as error:
        raise _Refused(None, first_line(error)) from None
    try:
        return recording.compile(piece.plan.passes)
    except Exception as error:  # what was recorded can be compiled, unless a plugin's answer is wrong
        text = first_line(error)
        warnings.warn(f"torch.compile: {len(piece.nodes)} nodes run eagerly, since their graph was refused: {text}")
        raise _Refused(None, text) from None


def _record_node(node, values, memories, outputs):
    args = spread_last(node, map_arg(node.args, values.__getitem__))
    kwargs = map_arg(node.kwargs, values.__getitem__)
    try:
        value = node.target(*args, **kwargs)
        if type(value) is torch.Tensor and (node in outputs or any(is_view(user) for user in node.users)):
            value = as_expected(node, value, memories)
    except Exception as error:
        raise _Refused(node, first_line(error)) from None
    memories.update(memory_of(each) for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor))
    return value
