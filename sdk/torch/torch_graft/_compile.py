"""What torch.compile needs, given to its modules when they are imported and not before: importing them takes longer than
importing the rest of PyTorch."""

import functools
import importlib.abc
import importlib.util
import sys

import torch

from torch_graft import _recurrent, device_module
from torch_graft._device import device_name


def install():
    _when_imported("torch._dynamo.device_interface", _register)
    _when_imported("torch._dynamo.backends.registry", _add_backend)
    _when_imported("torch._inductor.compile_fx", _route)
    _when_imported("torch._dynamo.variables.optimizer", _count_on_the_device)
    _when_imported("torch._dynamo.variables.builder", _recurrent.trace)
    _when_imported("torch._subclasses.fake_impls", _lay_convolutions, _recurrent.describe_cells)


def _when_imported(name, *actions):
    if name in sys.modules:
        _call_all(actions, sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, actions))


def _call_all(actions, module):
    for action in actions:
        action(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a module where the other finders do, once, and gives it to the actions when it has been executed."""

    def __init__(self, name, actions):
        self.name, self.actions = name, actions

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader, self.actions)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, original, actions):
        self.original, self.actions = original, actions

    def __getattr__(self, name):
        return getattr(self.original, name)

    def create_module(self, spec):
        return self.original.create_module(spec)

    def exec_module(self, module):
        self.original.exec_module(module)
        module.__spec__.loader = module.__loader__ = self.original
        _call_all(self.actions, module)


def _add_backend(registry):
    """By the name of the device, too, where that is another one."""

    def graft(model, inputs, **options):
        from torch_graft import _backend

        return _backend.graft(model, inputs, **options)

    for name in dict.fromkeys(["graft", device_name()]):
        if name not in registry._COMPILER_FNS:
            registry.register_backend(graft, name=name)


def _route(inductor):
    """Inductor has no code generator for the device: where torch.compile was given no backend, or this one, graphs with
    tensors of the device go to ours, and all others where they went."""
    original = inductor.compile_fx

    @functools.wraps(original)
    def compile_fx(model, inputs, *args, **kwargs):
        from torch_graft import _backend

        if _backend.uses_device(model, inputs):
            _backend.refuse_ahead_of_time()
            return _backend.graft(model, inputs, mode=_mode(inductor, kwargs.get("config_patches")))
        return original(model, inputs, *args, **kwargs)

    inductor.compile_fx = compile_fx


def _lay_convolutions(fake):
    """PyTorch's fake tensors expect of a device that it does not know that convolutions give contiguous tensors. Here they
    lie as the input suggests, or else the weight, in eager mode, and so they should in what was compiled."""
    aten = torch.ops.aten
    for op, first in ((aten.convolution.default, 0), (aten.convolution_backward.default, 1)):  # where the input stands
        plain = fake.op_implementations_dict.get(op)
        if plain is not None:
            fake.op_implementations_dict[op] = _lying_as_eagerly(plain, first)


def _lying_as_eagerly(plain, first):
    from torch._prims_common import suggest_memory_format

    @functools.wraps(plain)
    def convolution(mode, op, *args, **kwargs):
        made = plain(mode, op, *args, **kwargs)
        given = [*args, *(kwargs[name] for name in ("input", "weight") if name in kwargs)]
        formats = [suggest_memory_format(each) for each in given[first : first + 2]]
        format = next((each for each in formats if each != torch.contiguous_format), None)
        if format is None or given[first].device.type != device_name():
            return made
        with mode:
            if isinstance(made, torch.Tensor):
                return made.contiguous(memory_format=format)
            images = [each if each is None else each.contiguous(memory_format=format) for each in made[:2]]
            return (*images, made[2])

    return convolution


def _count_on_the_device(dynamo):
    """A compiled step is traced as if its optimizer were capturable. For parameters on CUDA and XPU that have no state
    yet, PyTorch makes it so, so that the state is made on the device; else each step computes with numbers of the CPU,
    which are brought over one by one."""
    plain = getattr(dynamo.OptimizerVariable, "_set_capturable", None)
    if plain is None:
        return

    @functools.wraps(plain)
    def set_capturable(self, *args, **kwargs):
        for group in self.value.param_groups:
            parameters = group.get("params", [])
            ours = parameters and all(p.device.type == device_name() for p in parameters)
            if ours and "capturable" in group and not any(p in self.value.state for p in parameters):
                group["capturable"] = True
        return plain(self, *args, **kwargs)

    dynamo.OptimizerVariable._set_capturable = set_capturable


def _mode(inductor, patches):
    """What of Inductor's options says something here: whether runs are replayed."""
    replayed = (patches or {}).get("triton.cudagraphs", inductor.config.triton.cudagraphs)
    return "reduce-overhead" if replayed else None


def _register(dynamo):
    class Interface(dynamo.DeviceInterface):
        device = device_module.device
        Event = device_module.Event
        Stream = device_module.Stream
        current_device = staticmethod(device_module.current_device)
        set_device = staticmethod(device_module.set_device)
        exchange_device = staticmethod(device_module._exchange_device)
        maybe_exchange_device = staticmethod(device_module._maybe_exchange_device)
        device_count = staticmethod(device_module.device_count)
        is_available = staticmethod(device_module.is_available)
        stream = staticmethod(device_module.stream)
        current_stream = staticmethod(device_module.current_stream)
        set_stream = staticmethod(device_module.set_stream)
        synchronize = staticmethod(device_module.synchronize)
        memory_allocated = staticmethod(device_module.memory_allocated)
        is_bf16_supported = staticmethod(device_module.is_bf16_supported)

        class Worker:
            """For compile workers, which ask without using the device."""

            set_device = staticmethod(device_module.set_device)
            current_device = staticmethod(device_module.current_device)
            get_device_properties = staticmethod(device_module.get_device_properties)

        @staticmethod
        def _set_stream_by_id(stream_id, device_index, device_type):
            device_module.set_stream(
                device_module.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
            )

    dynamo.register_interface_for_device(device_name(), Interface)
