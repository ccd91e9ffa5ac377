"""mode="reduce-overhead": a program that was run a few times is captured, inputs, graphs and results, and from then on
replayed. A replay does what the run would, to the bit, and where it can't, the program runs as without the mode.

Parameters and buffers, what the program writes to, and what other replays hand out are found where they are; a run is
captured for their addresses. Other inputs are copied into memory of the capture. What a forward or an inference gives its
caller is a copy, so that nobody sees it overwritten; what a forward keeps for its backward, and gradients, are handed out
as they are, and while somebody holds them that capture is not replayed: there is another one, or the program runs.
"""

import contextlib
import logging
import threading

import torch
from torch._dynamo.utils import counters
from torch.utils import _pytree as pytree

from torch_graft import _program
from torch_graft._device import library
from torch_graft._layouts import is_view
from torch_graft._warning import first_line
from torch_graft.streams import Stream, StreamContext

log = logging.getLogger(_program.__name__)

# Runs before one is captured: the first one records graphs.
WARM_UP = 2
# Captures kept of one program for each set of its numbers. Each has memory of its own.
LIMIT = 4
# Captures made for the same inputs, where the results of one are held when the next run comes.
GENERATIONS = 2
# Sets of numbers, and inputs that were met and not captured yet, that are remembered.
MEMORY = 16

MADE, SAME = -1, -2

_streams = {}  # by device, that runs are captured on


class Role:
    """What a program is in AOTAutograd's scheme, as far as replays need it."""

    def __init__(self, static=(), visible=None):
        self.static = frozenset(static)  # inputs that are parameters or buffers
        self.visible = visible  # how many of the first results the caller sees; None: all

    def replays(self, program):
        return Replays(program, self)


def role_of(name):
    """For a program that is compiled now; name: "fw", "bw" or "inference"."""
    if name == "bw":
        return Role(visible=0)
    context = torch._guards.TracingContext.try_get()
    metadata = context and context.fw_metadata
    if not metadata:
        return Role(visible=None if name == "inference" else 0)
    return Role(metadata.static_input_indices or (), metadata.num_forward if name == "fw" else None)


class Replays:
    """The replays of one program, and its runs where there is none."""

    def __init__(self, program, role):
        self.program, self.role = program, role
        self.is_made = [i >= len(program.plan.placeholders) for i in program.outputs]
        self.written = _written(program.plan)
        self.reason = None  # why it will never be captured
        self.runs = {}  # by the numbers among its inputs
        self.tensors, self.numbers = None, None  # the places of each, from the first run on
        self.met = {}
        self.lock = threading.Lock()

    def run(self, values):
        if self.numbers is not None:
            runs = self.runs.get(tuple([values[i] for i in self.numbers]))
            results = runs.run(values) if runs else None
            if results is not None:
                return results
        return self._run_without(values)

    def _run_without(self, values):
        if self.reason is None and self.lock.acquire(blocking=False):
            try:
                if self._is_due(values) and self._capture(values):
                    results = self.runs[self._numbers_of(values)].run(values)
                    if results is not None:
                        return results
            finally:
                self.lock.release()
        return self.program.run(values)

    def _numbers_of(self, values):
        return tuple([values[i] for i in self.numbers])

    def _is_due(self, values):
        """Whether the program was run often enough with inputs like these."""
        if self.tensors is None:
            self.tensors = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
            self.numbers = [i for i, value in enumerate(values) if not isinstance(value, torch.Tensor)]
        if any(not isinstance(values[i], torch.Tensor) for i in self.tensors):
            return self._never("an input is sometimes a tensor")
        key = (self._numbers_of(values), *(self._key_of(i, values[i]) for i in self.tensors))
        if key not in self.met and len(self.met) >= MEMORY:
            self.met.clear()
        self.met[key] = met = self.met.get(key, 0) + 1
        if met == WARM_UP + GENERATIONS + 1:
            log.info("a run of %d nodes is not replayed: what the last %d gave is held", len(self.program.plan.nodes), GENERATIONS)
        return WARM_UP < met <= WARM_UP + GENERATIONS

    def _key_of(self, i, tensor):
        if tensor.layout != torch.strided:
            return None
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() if self._is_in_place(i, tensor) else None

    def _is_in_place(self, i, tensor):
        return i in self.role.static or i in self.written or library().is_replayed(tensor)

    # --- capturing ---

    def _capture(self, values):
        """Whether there is one more replay."""
        why = _why_not(self.program.steps)
        if why:
            return self._never(why)
        index = next(iter(_indices(self.program.steps)), None)
        if index != library().current_device() or library().is_captured():
            return False
        inputs = [values[i] for i in self.tensors]
        try:
            in_place = [self._is_in_place(i, values[i]) for i in self.tensors]
            run = library().ReplayedRun(inputs, in_place, [i in self.written for i in self.tensors])
            results = self._run_captured(run, values, index)
        except Exception as error:  # of whatever kind: the run that follows has its own to raise
            return self._never(first_line(error))
        if results is None:
            return False
        self._keep(run, values, results)
        log.info("a run of %d nodes is replayed: %d calls", len(self.program.plan.nodes), run.count)
        counters["graft"]["captured runs"] += 1
        return True

    def _run_captured(self, run, values, index):
        """What the program gives while it is captured; None where another capture is under way."""
        given = list(values)
        stream = _streams.setdefault(index, None) or Stream(index)
        _streams[index] = stream
        with StreamContext(stream), contextlib.ExitStack() as stack:
            try:
                own = run.begin()
            except RuntimeError as error:
                log.info("a run is not captured now: %s", error)
                return None
            stack.callback(run.reset)
            for i, tensor in zip(self.tensors, own):
                given[i] = tensor
            results = self.program.run(given)
            made = list(self._made(results))
            run.end([results[i] for i in made], [self.role.visible is None or i < self.role.visible for i in made])
            if not run.count:
                raise RuntimeError("it makes no calls")
            stack.pop_all()
        return results

    def _made(self, results):
        """The places of tensors that the program made, or views of its inputs."""
        attributes = {self.program.plan.slots[node] for node in self.program.plan.attributes}
        for i, (value, slot) in enumerate(zip(results, self.program.outputs)):
            if self.is_made[i] and isinstance(value, torch.Tensor) and slot not in attributes:
                yield i

    def _keep(self, run, values, results):
        made = set(self._made(results))
        sources = [MADE if i in made else SAME if self.is_made[i] else slot for i, slot in enumerate(self.program.outputs)]
        same = [value if source == SAME else None for value, source in zip(results, sources)]
        numbers = self._numbers_of(values)
        if numbers not in self.runs:
            if len(self.runs) >= MEMORY:
                self.runs.pop(next(iter(self.runs)))
            self.runs[numbers] = library().ProgramReplays(self.tensors)
        self.runs[numbers].add(run, same, sources, LIMIT)

    def _never(self, reason):
        log.info("a run of %d nodes is not replayed: %s", len(self.program.plan.nodes), reason)
        self.reason = reason
        return False


def _why_not(steps):
    """Why a run of the steps can't be captured, or None."""
    for step in steps:
        if not isinstance(step, _program._Piece):
            return f"{step.node.name} runs eagerly: {step.plan.reasons[step.node]}"
        why = _why_not(step.parts or ())
        if why:
            return why
    if not steps:
        return None
    return "its parts are on several devices" if len(_indices(steps)) > 1 else None


def _indices(steps):
    return {step.index for step in steps}


def _written(plan):
    """The places of inputs that nodes write to."""
    places = {node: i for i, node in enumerate(plan.placeholders)}
    written = set()
    for node in plan.nodes:
        for value in _written_by(node):
            while value not in places and is_view(value) and value.all_input_nodes:
                value = value.all_input_nodes[0]
            if value in places:
                written.add(places[value])
    return written


def _written_by(node):
    """The nodes whose values a node changes."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        yield from (value for value in pytree.tree_leaves(given) if isinstance(value, torch.fx.Node))
