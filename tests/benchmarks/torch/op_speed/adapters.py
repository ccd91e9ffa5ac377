"""What PyTorch calls on any device, where a line of bench_calls.txt names an op that one kind of device has: torch=NAME.
Each takes the arguments of the line's op."""

import torch
from torch.nn import functional as F


def attention(query, key, value, is_causal=False):
    return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)


def rms_norm(x, shape, weight, eps):
    return F.rms_norm(x, shape, weight, eps)


def stack(tensors, dim):
    return torch.stack(tensors, dim)


ADAPTERS = {function.__name__: function for function in (attention, rms_norm, stack)}
