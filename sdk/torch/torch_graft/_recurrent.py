"""Recurrent layers under torch.compile: a call or two for each layer, which kernels of the device run (csrc/rnn.cpp).

Dynamo parts a program at nn.LSTM, nn.GRU and nn.RNN, unless torch._dynamo.config.allow_rnn says otherwise, since what other
compilers get of them is each op of each step; and it leaves the whole function around them to eager mode. Those with
parameters on the device are traced; of all others Dynamo decides as ever.
"""

import functools

import torch

from torch_graft._device import device_name

# FakeTensor, and FunctionalTensor, which is AOTAutograd's.
_TRACING = ("torch._subclasses.fake_tensor", "torch._subclasses.functional_tensor")


def install(library):
    library.on_stand_ins(lambda tensor: type(tensor).__module__ in _TRACING)


def trace(builder):
    """For torch._dynamo.variables.builder."""
    plain = builder.VariableBuilder.wrap_module

    @functools.wraps(plain)
    def wrap_module(self, value):
        if not _is_ours(value):
            return plain(self, value)
        with builder.config.patch(allow_rnn=True):  # for this thread
            return plain(self, value)

    builder.VariableBuilder.wrap_module = wrap_module


def describe_cells(fake):
    """For torch._subclasses.fake_impls: what a cell's kernels give. PyTorch has that of an LSTMCell's, if it has biases."""
    for op, made in ((torch.ops.aten._thnn_fused_gru_cell.default, _gru_cell),
                     (torch.ops.aten._thnn_fused_gru_cell_backward.default, _gru_cell_backward),
                     (torch.ops.aten._thnn_fused_lstm_cell.default, _lstm_cell)):  # fmt: skip
        if op not in fake.op_implementations_dict:
            fake.op_implementations_dict[op] = functools.partial(_on_the_device, made)


def _on_the_device(made, mode, _op, *args, **kwargs):
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
    if any(value.device.type != device_name() for value in given):
        return NotImplemented
    with mode:
        return made(*args, **kwargs)


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], 5 * hx.shape[1]))


def _gru_cell_backward(grad_hy, workspace, has_bias):
    rows, width = grad_hy.shape
    gates, bias = (rows, 3 * width), 3 * width
    sizes = gates, gates, (rows, width), bias if has_bias else None, bias if has_bias else None
    return tuple(None if size is None else workspace.new_empty(size) for size in sizes)


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    return cx.new_empty(cx.shape), cx.new_empty(cx.shape), input_gates.new_empty(input_gates.shape)


def _is_ours(module):
    if not isinstance(module, (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)):
        return False
    weights = [weight for weight in module.__dict__.get("_flat_weights", ()) if isinstance(weight, torch.Tensor)]
    return bool(weights) and all(weight.device.type == device_name() for weight in weights)
