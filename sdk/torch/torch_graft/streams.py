"""Streams and events of the device: torch.Stream and torch.Event that default to it."""

import torch

from torch_graft._device import device_index, device_name, is_ours, library


def _device(device):
    return torch.device(device_name(), device_index(device))


def _typed(stream):
    """The same stream, as the class of this module."""
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


class Stream(torch.Stream):
    """A queue of work that runs in order. priority: lower is more urgent, 0 is usual."""

    def __new__(cls, device=None, priority=0, **known):
        if known:  # stream_id, device_index, device_type
            return super().__new__(cls, priority=priority, **known)
        return super().__new__(cls, device=_device(device), priority=priority)


class _OfTheDevice(type):
    """An event of the device is a torch.graft.Event, whichever class made it."""

    def __instancecheck__(cls, value):
        if cls is not Event:
            return super().__instancecheck__(value)
        return isinstance(value, torch.Event) and is_ours(value)


class Event(torch.Event, metaclass=_OfTheDevice):
    """A point in a stream."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        # elapsed_time takes no subclass of torch.Event.
        return super().__new__(
            torch.Event if cls is Event else cls,
            device=_device(None),
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )


class StreamContext:
    """Context manager: a stream, and its device, are current within. None: no change."""

    def __init__(self, stream):
        self.stream = stream
        self._before = []

    def __enter__(self):
        if self.stream is None:
            return
        self._before.append((library().current_device(), current_stream(self.stream.device)))
        set_stream(self.stream)

    def __exit__(self, *exception):
        if self.stream is None:
            return
        device, before = self._before.pop()
        set_stream(before)
        library().set_device(device)


def stream(stream):
    """Context manager: `stream` is current within."""
    return StreamContext(stream)


def set_stream(stream):
    """Makes a stream, and its device, current in this thread. None: no change."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


def current_stream(device=None):
    """The stream that this thread's work for the device goes to."""
    return _typed(torch._C._accelerator_getStream(device_index(device)))


def default_stream(device=None):
    """The stream that is current where none was chosen."""
    return _typed(library().default_stream(device_index(device)))
