"""Work that is captured once and replayed, as torch.cuda.graphs has it: a replay gives all of it to the device again, on
the same memory, without Python, PyTorch or a look-up."""

import gc

import torch
from torch.utils import _pytree as pytree

from torch_graft._device import device_name, is_ours, library
from torch_graft.streams import Stream, StreamContext

_NO_POOL = (0, 0)


def is_current_stream_capturing():
    """Whether work on the current stream is captured instead of run."""
    return library().is_captured()


def graph_pool_handle():
    """The name of a pool that graphs may share. The pool lives as long as a graph that has it."""
    return library().new_pool_id()


class Graph:
    """What a stream was given between capture_begin() and capture_end(). It reads and writes the tensors of then: fill
    those it reads, replay, read those it wrote."""

    def __init__(self, keep_graph=False):
        self._replay = library().Replay()

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """Captures the current stream, which is not the default one. Work of other streams runs on, so all error modes
        are one."""
        if capture_error_mode not in ("default", "global", "thread_local", "relaxed"):
            raise ValueError(f"capture_error_mode is {capture_error_mode!r}; expected global, thread_local or relaxed")
        self._replay.begin(_NO_POOL if pool is None else tuple(pool))

    def capture_end(self):
        """The stream runs its work again. Raises what could not be captured; the graph is then empty. Warns where there
        was nothing to capture."""
        self._replay.end()

    def instantiate(self):
        """Nothing is left to do: what was captured is ready."""
        self._replay.count()

    def replay(self):
        """Gives it all to the current stream."""
        self._replay.replay()

    def reset(self):
        """Forgets what was captured, also while it is; waits for the device."""
        self._replay.reset()

    def pool(self):
        """The name of its pool, for another graph to share."""
        return self._replay.pool()

    def register_generator_state(self, generator):
        """Of the device's default generator, which each replay draws from."""
        if generator != torch.get_device_module(generator.device).default_generators[generator.device.index]:
            raise NotImplementedError("a graph draws from its device's default generator only")

    def count(self):
        """How many calls of the plugin a replay makes."""
        return self._replay.count()


class graph:
    """Context manager: what is called within is captured into a Graph, on a stream of its own unless one is given. What
    is raised within passes through, and the graph is then empty."""

    _own_stream = {}  # by device

    def __init__(self, graft_graph, pool=None, stream=None, capture_error_mode="global"):
        self.graph, self.pool, self.stream, self.mode = graft_graph, pool, stream, capture_error_mode

    def __enter__(self):
        device = library().current_device() if self.stream is None else self.stream.device.index
        torch.accelerator.synchronize(device)
        gc.collect()  # what only a cycle holds is no input
        if self.stream is None:
            self.stream = self._own_stream.setdefault(device, None) or Stream()
            self._own_stream[device] = self.stream
        self.context = StreamContext(self.stream)
        self.context.__enter__()
        try:
            self.graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self.context.__exit__()
            raise

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.graph.capture_end()
            else:
                self.graph.reset()
        finally:
            self.context.__exit__()
        return False


# --- parts of a network ---


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules (one, or a tuple of them with a tuple of their arguments) whose forward and backward are
    replayed. A module is changed in place, and runs as before where its training flag is another one. Arguments are
    tensors that lie as those of sample_args and require grad as they do; what is returned is overwritten by the next
    call. Several share a pool, and run in their order. There are no gradients of gradients."""
    if torch.is_autocast_enabled() and torch.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables: autocast must not cache; enter it with cache_enabled=False")
    single = not isinstance(callables, tuple)
    pairs = [(callables, sample_args)] if single else list(zip(callables, sample_args, strict=True))
    pieces = [_Piece(function, args, allow_unused_input) for function, args in pairs]
    pool = graph_pool_handle() if pool is None else pool
    torch.accelerator.synchronize()
    with StreamContext(Stream()):
        for piece in pieces:
            piece.warm_up(num_warmup_iters)
    torch.accelerator.synchronize()
    # In the order in which they will run, so that none overwrites what another one still needs.
    for piece in pieces:
        piece.capture_forward(pool)
    for piece in reversed(pieces):
        piece.capture_backward(pool)
    made = tuple(piece.install() for piece in pieces)
    return made[0] if single else made


class _Piece:
    """One function, its two graphs and the tensors that these read and write."""

    def __init__(self, function, args, allow_unused):
        self.function, self.args, self.allow_unused = function, args, allow_unused
        given = pytree.tree_leaves(args)
        if not all(isinstance(value, torch.Tensor) for value in given):
            raise TypeError("make_graphed_callables: sample_args holds tensors only")
        _check_device("of sample_args a tensor", given)
        self.parameters = ()
        if isinstance(function, torch.nn.Module):
            self.parameters = tuple(function.parameters())
            _check_module(function)
        self.given = len(given)
        self.inputs = (*given, *self.parameters)
        self.differentiable = tuple(value for value in self.inputs if value.requires_grad)
        self.forward, self.backward = Graph(), Graph()

    def _gradients(self, outputs, cotangents):
        return torch.autograd.grad(outputs, self.differentiable, cotangents, allow_unused=self.allow_unused)

    def warm_up(self, times):
        for _ in range(times):
            results = [value for value in pytree.tree_leaves(self.function(*self.args)) if value.requires_grad]
            if results and self.differentiable:
                self._gradients(results, [torch.ones_like(value) for value in results])

    def capture_forward(self, pool):
        with graph(self.forward, pool=pool):
            results = self.function(*self.args)
        self.outputs, self.shape = pytree.tree_flatten(results)

    def capture_backward(self, pool):
        self.cotangents = tuple(torch.empty_like(o) if o.requires_grad else None for o in self.outputs)
        results = [value for value in self.outputs if value.requires_grad]
        found = iter(())
        if results and self.differentiable:
            with graph(self.backward, pool=pool):
                found = iter(self._gradients(results, [c for c in self.cotangents if c is not None]))
        self.gradients = tuple(next(found, None) if value.requires_grad else None for value in self.inputs)
        # Their history would keep nodes of parameters alive that belong to the stream of the capture.
        self.outputs = [value.detach() for value in self.outputs]

    def call(self, *args):
        results = _Replayed.apply(self, *pytree.tree_leaves(args), *self.parameters)
        return pytree.tree_unflatten(list(results), self.shape)

    def install(self):
        if not isinstance(self.function, torch.nn.Module):
            return self.call
        module, plain, training = self.function, self.function.forward, self.function.training

        def forward(*args, **named):
            return self.call(*args, **named) if module.training == training else plain(*args, **named)

        module.forward = forward
        return module


def _check_device(what, tensors):
    for tensor in tensors:
        if not is_ours(tensor):
            raise ValueError(
                f"make_graphed_callables: {what} ({tensor.dtype}, {list(tensor.shape)}) is on {tensor.device}; "
                f"expected {device_name()}"
            )


def _check_module(module):
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        _check_device(name, [tensor])
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks:
        raise RuntimeError("make_graphed_callables: hooks of a module are registered after it is captured")
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise RuntimeError("make_graphed_callables: of a module parameters alone may require grad, no buffers")


def _fill(static, value):
    if static is not None and static.data_ptr() != value.data_ptr():
        static.copy_(value)


class _Replayed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, piece, *inputs):
        ctx.piece = piece
        for static, value in zip(piece.inputs[: piece.given], inputs[: piece.given], strict=True):
            _fill(static, value)
        piece.forward.replay()
        results = tuple(value.detach() for value in piece.outputs)
        ctx.mark_non_differentiable(*(r for r, c in zip(results, piece.cotangents, strict=True) if c is None))
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *cotangents):
        piece = ctx.piece
        for static, value in zip(piece.cotangents, cotangents, strict=True):
            _fill(static, value)
        piece.backward.replay()
        # As they are, for which the piece is a second holder: a .grad must not become what the next replay overwrites.
        return (None, *piece.gradients)
