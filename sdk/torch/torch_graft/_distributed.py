"""torch.distributed for tensors of the device: the backend "graft", which is gloo over copies in host memory.

A collective of tensors on the CPU is gloo's own. One of tensors of the device hands copies to gloo when it is called,
and its wait() gives the device's tensors what gloo made of them: that is when they change, and not before.
"""

import contextlib
import datetime
import functools

import torch

from torch_graft._device import device_name, is_ours

BACKEND = "graft"

# What a process group offers, under the names of all versions of PyTorch. The first argument of each is what it writes,
# but for send, which writes nothing, and barrier, which has no tensors.
_COLLECTIVES = (
    "_allgather_base",
    "_reduce_scatter_base",
    "all_gather_single",
    "all_gather_single_coalesced",
    "all_to_all_single",
    "allgather",
    "allgather_coalesced",
    "allgather_into_tensor_coalesced",
    "allreduce",
    "allreduce_coalesced",
    "alltoall",
    "alltoall_base",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "recv_anysource",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "scatter",
    "send",
)

# Of these only the order of the elements counts: gloo, other than what serves other devices, would have the output's first
# dim be as many times the input's as there are processes.
_FLAT = ("_allgather_base", "all_gather_single", "_reduce_scatter_base", "reduce_scatter_single")


def install():
    import torch.distributed as distributed

    _keep_to_one_device(torch.nn.DataParallel)

    if not distributed.is_available() or not distributed.is_gloo_available():
        return
    distributed.Backend.register_backend(BACKEND, _create, devices=[device_name(), "cpu"])
    _serve_with_gloo(distributed.distributed_c10d.BackendConfig)


def _serve_with_gloo(config):
    """init_process_group("gloo") means "cpu:gloo,graft:graft": alone, gloo would refuse the device's tensors."""
    original = config.__init__

    @functools.wraps(original)
    def __init__(self, backend):
        original(self, backend)
        if str(backend).lower() == "gloo":
            self.device_backend_map.setdefault(device_name(), BACKEND)

    config.__init__ = __init__


def _keep_to_one_device(data_parallel):
    """DataParallel copies models between devices by CUDA's own collectives, of which PyTorch has none here."""
    original = data_parallel.__init__

    @functools.wraps(original)
    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        source = getattr(self, "src_device_obj", None)
        if source is None or source.type != device_name():
            return
        if len(self.device_ids) > 1:
            raise RuntimeError(
                f"torch.nn.DataParallel over {len(self.device_ids)} {device_name()} devices is not there: "
                "use DistributedDataParallel with a process a device, or device_ids=[0] for one device"
            )
        # On one device it moves what it is called with, which PyTorch does with CUDA's scatter, too.
        self.device_ids = []
        self.register_forward_pre_hook(lambda module, *call: _moved(call, source), with_kwargs=True)

    data_parallel.__init__ = __init__


def _moved(values, device):
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), values)


def _create(store, rank, size, timeout):
    return _classes()[0](store, rank, size, timeout)


class _Copies:
    """CPU copies of the device's tensors in arguments, one for each tensor."""

    def __init__(self):
        self.pairs = {}

    def of(self, value):
        if isinstance(value, (list, tuple)):
            return [self.of(item) for item in value]
        if not isinstance(value, torch.Tensor) or not is_ours(value):
            return value
        if id(value) not in self.pairs:
            self.pairs[id(value)] = (value, value.detach().cpu().contiguous())
        return self.pairs[id(value)][1]

    def write_back(self, value):
        """Gives the device's tensors in `value` what their copies hold now. As with every backend of PyTorch, autograd
        does not hear of it: parameters are written, no history is added, and no version counted up."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.write_back(item)
        elif id(value) in self.pairs:
            tensor, copy = self.pairs[id(value)]
            with torch.inference_mode():  # under no_grad tensors made in inference mode could not be written
                tensor.data.copy_(copy)


def _collective(name):
    def call(self, *args, **kwargs):
        copies = _Copies()
        there = copies.of(args)
        if name in _FLAT and copies.pairs:
            there = [value.view(-1) if isinstance(value, torch.Tensor) else value for value in there]
        work = getattr(self._gloo, name)(*there, **kwargs)
        if not copies.pairs:
            return work
        return _classes()[1](work, copies, [] if name == "send" else args[0])

    call.__name__ = name
    return _never_traced(call)


def _never_traced(function):
    """In the midst of a compiled model, as where DistributedDataParallel sorts its buckets, Dynamo would trace what is
    called here, and refuse what a process group has beyond PyTorch's."""
    return torch.compiler.disable(function)


_made = None


def _classes():
    """The classes of process groups and of their work, made when the first group is: importing torch.distributed takes
    long."""
    global _made
    if _made is None:
        _made = _process_group(), _work()
    return _made


def _process_group():
    from torch.distributed import ProcessGroup, ProcessGroupGloo

    class GraftProcessGroup(ProcessGroup):
        def __init__(self, store, rank, size, timeout):
            super().__init__(rank, size)
            self._gloo = ProcessGroup(store, rank, size)
            gloo = ProcessGroupGloo(store, rank, size, timeout=timeout)
            for group, kind in (self._gloo, ProcessGroup.BackendType.GLOO), (self, ProcessGroup.BackendType.CUSTOM):
                group._set_default_backend(kind)
                # The group's name is kept in its backends; what asks for the device's gets gloo's properties.
                for device in "cpu", device_name():
                    group._register_backend(torch.device(device), kind, gloo)

        def getBackendName(self):
            return BACKEND

    for name in _COLLECTIVES:
        if hasattr(ProcessGroup, name):
            setattr(GraftProcessGroup, name, _collective(name))
    return GraftProcessGroup


def _work():
    from torch.distributed import Work

    class GraftWork(Work):
        """What gloo does with copies of the device's tensors, which live as long as this does."""

        def __init__(self, gloo, copies, written):
            super().__init__()
            self._gloo, self._copies, self._written = gloo, copies, written

        @_never_traced
        def wait(self, timeout=datetime.timedelta(0)):
            # Once: gloo would wait for another message, and what the tensors hold after the first wait is theirs.
            if self._copies and self._gloo.wait(timeout):
                self._copies.write_back(self._written)
                self._copies = None
            return self._copies is None

        synchronize = wait

        @_never_traced
        def is_completed(self):
            if self._copies and self._gloo.is_completed():
                with contextlib.suppress(RuntimeError):  # of gloo; wait() raises it
                    self.wait()
                return True
            return self._copies is None

        def is_success(self):
            return self._gloo.is_success()

        def exception(self):
            return self._gloo.exception()

        def _source_rank(self):
            return self._gloo._source_rank()

        source_rank = _source_rank

        def result(self):
            return self._written if isinstance(self._written, (list, tuple)) else [self._written]

        def get_future(self):
            """A future that is done: it waits, since nothing here would tell one of the end."""
            self.wait()
            done = torch.futures.Future()
            done.set_result(list(self.result()))
            return done

    return GraftWork
