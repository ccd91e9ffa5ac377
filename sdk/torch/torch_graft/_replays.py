"""mode="reduce-overhead": a program that was run a few times is captured, inputs, graphs and results, and from then on
replayed. A replay does what the run would, to the bit, and where it can't, the program runs as without the mode.

A capture is one of sizes that are no more open: it is found by the sizes of a run, and a program has a limit of such
sizes. It is made right behind a run of the same sizes, for a graph with open ones keeps what it made for the last few
sizes alone, and a call that never ran may turn out to have no kernel.

Parameters and buffers, what the program writes to, and what other replays hand out are found where they are; a run is
captured for their addresses. Other inputs are read where they are, and what a forward or an inference gives its caller is
in new memory, so that nobody sees it overwritten: both stand in for what was captured (graft_graph_capture_launch_with).
What a forward keeps for its backward, and gradients, are handed out as they are, and while somebody holds them that capture
is not replayed: there is another one, or the program runs.
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

# Runs before one is captured: the first one records graphs. A backward waits for one more, which is given what a replay
# of its forward keeps: where that lies is part of what it is captured for.
WARM_UP = 2
WARM_UP_BACKWARD = 3
# Sizes at which one program is replayed. Each has memory of its own.
SIZES = 16
# Captures kept of one program for each of them.
LIMIT = 4
# Captures made for the same inputs, where the results of one are held when the next run comes.
GENERATIONS = 2
# Inputs that were met, captured or not, that are remembered.
MEMORY = 256
# Sizes at which it can't be captured, until that is taken to hold for all.
FAILURES = 4

MADE, SAME = -1, -2
_GIVEN_UP = 1 << 30  # instead of how often inputs were met: they are not captured

_streams = {}  # by device, that runs are captured on


class Role:
    """What a program is in AOTAutograd's scheme, as far as replays need it."""

    def __init__(self, static=(), visible=None, warm_up=WARM_UP):
        self.static = frozenset(static)  # inputs that are parameters or buffers
        self.visible = visible  # how many of the first results the caller sees; None: all
        self.warm_up = warm_up

    def replays(self, program):
        return Replays(program, self)


def role_of(name):
    """For a program that is compiled now; name: "fw", "bw" or "inference"."""
    if name == "bw":
        return Role(visible=0, warm_up=WARM_UP_BACKWARD)
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
        self.runs = {}  # by sizes
        self.tensors, self.numbers = None, None  # the places of each, from the first run on
        self.met = {}
        self.is_full, self.failures = False, 0
        self.lock = threading.Lock()

    def run(self, values):
        if self.numbers is not None:
            runs = self.runs.get(self._sizes_of(values))
            results = runs.run(values) if runs else None
            if results is not None:
                return results
        return self._run_without(values)

    def _run_without(self, values):
        key = self._unless_busy(self._key_if_due, values)
        if key is None:
            return self.program.run(values)
        kept = list(values)
        results = self.program.run(values)
        self._unless_busy(self._capture, kept, key)
        return results

    def _unless_busy(self, function, *args):
        """None where another thread is at it, or nobody will be."""
        if self.reason is not None or not self.lock.acquire(blocking=False):
            return None
        try:
            return function(*args)
        finally:
            self.lock.release()

    def _sizes_of(self, values):
        """The numbers among its inputs: Dynamo gives each size that is open as one."""
        return tuple([values[i] for i in self.numbers])

    def _key_if_due(self, values):
        """What a capture for inputs like these is for, where the program was run often enough with them."""
        if self.tensors is None:
            self.tensors = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
            self.numbers = [i for i, value in enumerate(values) if not isinstance(value, torch.Tensor)]
        if any(not isinstance(values[i], torch.Tensor) for i in self.tensors):
            return self._never("an input is sometimes a tensor")
        key = (self._sizes_of(values), *(self._key_of(i, values[i]) for i in self.tensors))
        if key not in self.met and len(self.met) >= MEMORY:
            self.met.pop(next(iter(self.met)))
        self.met[key] = met = self.met.pop(key, 0) + 1
        behind = met - self.role.warm_up  # captures that there should be, and what they gave is held
        if behind == GENERATIONS:
            self._tell("what the last %d gave is held", GENERATIONS)
        return key if 0 <= behind < GENERATIONS and self._has_room(key) else None

    def _has_room(self, key):
        if key[0] in self.runs or len(self.runs) < SIZES:
            return True
        self.met[key] = _GIVEN_UP
        if not self.is_full:
            self._tell("it has replays at %d other sizes, which is the limit; this one: %s", SIZES, key[0])
        self.is_full = True
        return False

    def _tell(self, text, *values):
        log.info("a run of %d nodes is not replayed: " + text, len(self.program.plan.nodes), *values)

    def _key_of(self, i, tensor):
        if tensor.layout != torch.strided:
            return None
        return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() if self._is_in_place(i, tensor) else None

    def _is_in_place(self, i, tensor):
        return i in self.role.static or i in self.written or library().is_replayed(tensor)

    # --- capturing ---

    def _capture(self, values, key):
        """One more replay, of a run that was just made, where that can be."""
        why = _why_not(self.program.steps)
        if why:
            return self._never(why)
        index = next(iter(_indices(self.program.steps)), None)
        if index != library().current_device() or library().is_captured():
            return
        inputs = [values[i] for i in self.tensors]
        try:
            in_place = [self._is_in_place(i, values[i]) for i in self.tensors]
            run = library().ReplayedRun(inputs, in_place, [i in self.written for i in self.tensors])
            results = self._run_captured(run, values, index)
        except Exception as error:  # of whatever kind: the run itself went well
            return self._failed(key, first_line(error))
        if results is None:
            return
        self._keep(run, values, results, key[0])
        log.info("a run of %d nodes is replayed: %d calls", len(self.program.plan.nodes), run.count)
        counters["graft"]["captured runs"] += 1

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

    def _keep(self, run, values, results, sizes):
        made = set(self._made(results))
        sources = [MADE if i in made else SAME if self.is_made[i] else slot for i, slot in enumerate(self.program.outputs)]
        same = [value if source == SAME else None for value, source in zip(results, sources)]
        if sizes not in self.runs:
            self.runs[sizes] = library().ProgramReplays(self.tensors)
        self.runs[sizes].add(run, same, sources, LIMIT)

    def _failed(self, key, reason):
        """At these sizes; others may be better. Where there are none, or none is, never."""
        self.failures += 1
        if not key[0] or self.failures == FAILURES:
            return self._never(reason)
        self.met[key] = _GIVEN_UP
        self._tell("at %s, %s", key[0], reason)

    def _never(self, reason):
        self._tell("%s", reason)
        self.reason = reason


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
