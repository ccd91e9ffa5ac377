"""torch.distributed for tensors of the device: the backend "graft", which is gloo over copies in host memory.

A collective of tensors on the CPU is gloo's own. One of tensors of the device waits for gloo before it returns: what it
gives is right, and nothing overlaps with it.
"""

import torch

from torch_graft import _registration

BACKEND = "graft"

# Which argument of a collective is written.
_WRITTEN = {
    "allgather": 0,
    "all_gather_single": 0,
    "_allgather_base": 0,
    "allreduce": 0,
    "allreduce_coalesced": 0,
    "all_to_all_single": 0,
    "alltoall": 0,
    "alltoall_base": 0,
    "barrier": None,
    "broadcast": 0,
    "gather": 0,
    "recv": 0,
    "reduce": 0,
    "reduce_scatter": 0,
    "reduce_scatter_single": 0,
    "_reduce_scatter_base": 0,
    "scatter": 0,
    "send": None,
}


def install():
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        return
    distributed.Backend.register_backend(BACKEND, _create, devices=[_registration.device_name(), "cpu"])


def _create(store, rank, size, timeout):
    return _process_group()(store, rank, size, timeout)


class _Copies:
    """CPU copies of the device's tensors in arguments, one for each tensor."""

    def __init__(self):
        self.pairs = {}

    def of(self, value):
        if isinstance(value, (list, tuple)):
            return [self.of(item) for item in value]
        if not isinstance(value, torch.Tensor) or value.device.type != _registration.device_name():
            return value
        if id(value) not in self.pairs:
            self.pairs[id(value)] = (value, value.cpu())
        return self.pairs[id(value)][1]

    def write_back(self, value):
        """Gives the device's tensors in `value` what their copies hold now."""
        if isinstance(value, (list, tuple)):
            for item in value:
                self.write_back(item)
        elif id(value) in self.pairs:
            tensor, copy = self.pairs[id(value)]
            tensor.copy_(copy)


def _collective(name, written):
    def call(self, *args, **kwargs):
        copies = _Copies()
        there = copies.of(args)
        work = getattr(self._gloo, name)(*there, **kwargs)
        if not copies.pairs:
            return work
        work.wait()
        if written is not None:
            copies.write_back(args[written])
        done = torch.futures.Future()
        done.set_result(list(args[0]) if isinstance(args[0], (list, tuple)) else [args[0]])
        return torch._C._distributed_c10d._create_work_from_future(done)

    call.__name__ = name
    return call


_class = None


def _process_group():
    """The class, made when the first group is."""
    global _class
    if _class is None:
        from torch.distributed import ProcessGroup, ProcessGroupGloo

        class GraftProcessGroup(ProcessGroup):
            def __init__(self, store, rank, size, timeout):
                super().__init__(rank, size)
                self._gloo = ProcessGroup(store, rank, size)
                gloo = ProcessGroupGloo(store, rank, size, timeout=timeout)
                self._gloo._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, gloo)

            def getBackendName(self):
                return BACKEND

        for name, written in _WRITTEN.items():
            if hasattr(ProcessGroup, name):  # some were renamed between versions of PyTorch
                setattr(GraftProcessGroup, name, _collective(name, written))
        _class = GraftProcessGroup
    return _class
