"""The device interface of torch.compile, registered when TorchDynamo is imported and not before: importing it takes
longer than importing the rest of PyTorch."""

import importlib.abc
import importlib.util
import sys

from torch_graft import device_module
from torch_graft._device import device_name

MODULE = "torch._dynamo.device_interface"


def install():
    if MODULE in sys.modules:
        _register(sys.modules[MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds MODULE where the other finders do, once, and registers the interface when it has been executed."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, original):
        self.original = original

    def __getattr__(self, name):
        return getattr(self.original, name)

    def create_module(self, spec):
        return self.original.create_module(spec)

    def exec_module(self, module):
        self.original.exec_module(module)
        module.__spec__.loader = module.__loader__ = self.original
        _register(module)


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
