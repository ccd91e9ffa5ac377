"""Random numbers of the devices: each has a generator, Philox with a seed and an offset, 16 bytes of state."""

import torch

from torch_graft._device import device_index, library


def _generator(device):
    return library().default_generator(device_index(device))


def _all():
    return range(library().device_count())


def manual_seed(seed):
    """Seeds the current device."""
    _generator(None).manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds all devices, also those added later. Negative seeds wrap around, as PyTorch has them on the CPU."""
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"expected a seed from -2**63 to 2**64 - 1, but got {seed}")
    library().manual_seed_all(seed % 2**64)


def seed():
    """Seeds the current device with a number that is hard to guess."""
    _generator(None).seed()


def seed_all():
    """Seeds all devices with one number that is hard to guess."""
    manual_seed_all(_generator(None).seed())


def initial_seed():
    """The seed of the current device."""
    return _generator(None).initial_seed()


def get_rng_state(device=None):
    """The state of a device's generator, a ByteTensor."""
    return _generator(device).get_state()


def set_rng_state(new_state, device=None):
    """Sets the state of a device's generator to what get_rng_state gave."""
    _generator(device).set_state(new_state)


def get_rng_state_all():
    """The states of all devices."""
    return [get_rng_state(index) for index in _all()]


def set_rng_state_all(new_states):
    """Sets the states of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
