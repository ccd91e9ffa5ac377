"""Ops that PyTorch has on the CPU and CUDA alone, composed of others: the CPU's results, and nothing leaves the device."""

import pytest
import torch
import torch_graft

aten = torch.ops.aten


def rng(*sizes, seed=3):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device, copy=True)
    return [moved(v, device) for v in value] if isinstance(value, list) else value


def leaves(result):
    return [v for v in (result if isinstance(result, (tuple, list)) else [result]) if v is not None]


QUANT = (torch.tensor([0.1]), torch.tensor([3.0]), -8, 7, 0.5)
CHANNELS = (torch.tensor([0.1, 0.3, 0.05]), torch.tensor([3.0, 0.0, -2.6]), 1, -8, 7, 0.5)



def segments_gradient(how, initial=None, offsets=False):
    """Of two rows of segments, one of them empty; with zeros, and NaNs, but no maximum or minimum twice."""
    data = rng(2, 7, 3)
    data[0, 1, 0] = data[0, 2, 0] = data[1, 5, 1] = 0
    data[0, 4, 2] = data[1, 0, 0] = data[1, 1, 0] = float("nan")
    lengths = torch.tensor([[1, 4, 0, 2], [2, 1, 3, 1]])
    ends = torch.cat([torch.zeros(2, 1, dtype=torch.long), lengths.cumsum(1)], 1)
    parts = {"offsets": ends} if offsets else {"lengths": lengths}

    def gradient(data, grad, part):
        given = dict.fromkeys(parts, part)
        output = torch.segment_reduce(data, how, axis=1, unsafe=True, initial=initial, **given)
        return aten._segment_reduce_backward(grad, output, data, how, axis=1, initial=initial, **given)

    return gradient, data, rng(2, 4, 3, seed=5).abs(), *parts.values()


CALLS = {
    **{f"gradient of segments' {how}": segments_gradient(how) for how in ("sum", "mean", "max", "min", "prod")},
    "gradient of segments' products with a first factor": segments_gradient("prod", initial=2.5),
    "gradient of segments' means, by offsets": segments_gradient("mean", offsets=True),
    "gradient of segments, by autograd": (
        lambda x, ends: torch.autograd.grad(torch.segment_reduce(x, "sum", offsets=ends).sum(), x),
        rng(6).requires_grad_(), torch.tensor([0, 2, 6]),
    ),
    "_unique": (aten._unique, torch.tensor([3, 1, 3, 2]), True, True),
    "unique_dim_consecutive": (aten.unique_dim_consecutive, torch.tensor([[1, 1, 2], [1, 1, 2]]), 1, True, True),
    "isin of a number": (torch.isin, torch.arange(5), 3),
    "isin of a number, inverted": (lambda x: torch.isin(2, x, invert=True), torch.arange(5)),
    "_aminmax": (aten._aminmax, rng(7)),
    "_aminmax.dim": (aten._aminmax.dim, rng(7, 3), 1, True),
    "left shift": (aten.__lshift__, torch.arange(5), torch.tensor([1, 0, 2, 3, 1])),
    "left shift by a number": (aten.__lshift__, torch.arange(5), 2),
    "left shift in place": (lambda x, by: x.__ilshift__(by), torch.arange(5), torch.tensor([1, 0, 2, 3, 1])),
    "right shift": (aten.__rshift__, torch.arange(50, 55), torch.tensor([1, 0, 2, 3, 1])),
    "right shift in place by a number": (lambda x: x.__irshift__(1), torch.arange(50, 55)),
    "_add_relu": (lambda x, y: aten._add_relu(x, y, alpha=2.0), rng(3, 4), rng(4)),
    "_add_relu in place": (lambda x: aten._add_relu_.Scalar(x, 0.5), rng(3, 4)),
    "_compute_linear_combination": (aten._compute_linear_combination, rng(3, 2, 2), rng(4, 3)),
    "_ctc_loss": (
        lambda *arguments: aten._ctc_loss.Tensor(*arguments)[0], rng(6, 2, 4).log_softmax(-1),
        torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 5]), torch.tensor([2, 1]),
    ),
    "narrow_copy": (lambda x: torch.narrow_copy(x, 1, 1, 2), rng(3, 4)),
    "channel_shuffle": (torch.nn.functional.channel_shuffle, rng(2, 6, 3, 2), 3),
    "channel_shuffle, channels last": (
        lambda x: torch.nn.functional.channel_shuffle(x.contiguous(memory_format=torch.channels_last), 2),
        rng(2, 6, 3, 2),
    ),
    "scatter, added": (
        lambda x, i, s: x.scatter(0, i, s, reduce="add"), rng(3, 4), torch.tensor([[0, 2], [0, 1]]), rng(3, 4, seed=4),
    ),
    "scatter, multiplied": (
        lambda x, i: x.scatter(1, i, 1.5, reduce="multiply"), rng(3, 4), torch.tensor([[0, 2], [0, 0]]),
    ),
    "batch_norm_update_stats": (aten.batch_norm_update_stats, rng(4, 3, 5), rng(3), rng(3).abs(), 0.2),
    "_batch_norm_with_update": (
        aten._batch_norm_with_update, rng(4, 3, 5), rng(3), rng(3), torch.zeros(3), torch.ones(3), 0.1, 1e-5,
    ),
    "_slow_conv2d_forward": (aten._slow_conv2d_forward, rng(2, 3, 6, 6), rng(4, 3, 3, 3), [3, 3], rng(4), [1, 2], [1, 0]),
    "_slow_conv2d_backward": (
        aten._slow_conv2d_backward.output_mask, rng(2, 4, 4, 4), rng(2, 3, 6, 6), rng(4, 3, 3, 3), [3, 3], [1, 1], [0, 0],
        [True, True, True],
    ),
    "slow_conv3d": (aten.slow_conv3d_forward, rng(1, 2, 4, 4, 4), rng(3, 2, 2, 2, 2), [2, 2, 2], None, [1, 1, 1], [0, 0, 0]),
    "slow_conv_dilated2d": (
        aten.slow_conv_dilated2d, rng(1, 2, 7, 7), rng(3, 2, 3, 3), [3, 3], None, [1, 1], [0, 0], [2, 2],
    ),
    "slow_conv_transpose2d": (aten.slow_conv_transpose2d, rng(1, 2, 4, 4), rng(2, 3, 3, 3), [3, 3], rng(3), [2, 2]),
    "slow_conv_transpose3d": (aten.slow_conv_transpose3d, rng(1, 2, 3, 3, 3), rng(2, 3, 2, 2, 2), [2, 2, 2]),
    "_transform_bias_rescale_qkv": (aten._transform_bias_rescale_qkv, rng(2, 5, 24), rng(24), 4),
    "learned scale": (aten._fake_quantize_learnable_per_tensor_affine, rng(4, 5), *QUANT),
    "learned scale, gradients": (aten._fake_quantize_learnable_per_tensor_affine_backward, rng(4, 5), rng(4, 5, seed=5), *QUANT),
    "learned scales": (aten._fake_quantize_learnable_per_channel_affine, rng(4, 3, 5), *CHANNELS),
    "learned scales, gradients": (
        aten._fake_quantize_learnable_per_channel_affine_backward, rng(4, 3, 5), rng(4, 3, 5, seed=5), *CHANNELS,
    ),
    "fake quantization switched off": (
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams, rng(4), torch.tensor(0.1),
        torch.tensor(0, dtype=torch.int32), torch.tensor(0), -8, 7,
    ),
    "median with NaNs": (torch.median, torch.tensor([[1.0, float("nan"), 0], [2, 1, 5]]), 1, True),
    "nanmedian of NaNs": (torch.nanmedian, torch.full((2, 3), float("nan")), 0),
    "histogram, weighted": (
        lambda x, w: torch.histogram(x, 4, range=(-1.0, 1.0), weight=w, density=True), rng(50), rng(50, seed=5).abs(),
    ),
    "histogram of no range": (lambda x: torch.histogram(x, 4), torch.ones(5)),
    "histogram by edges": (lambda x, e: torch.histogram(x, e), rng(50), torch.tensor([-1.0, -0.5, 0, 2])),
    "numbers of rank 0 of wider dtypes": (
        lambda x, y, i, j, c: (x * y, torch.maximum(y, x), i + j, c * y),
        rng(5), torch.tensor(1.5, dtype=torch.float64), torch.arange(5, dtype=torch.int32), torch.tensor(3), rng(5) * 1j,
    ),
    "histogramdd": (lambda x: torch.histogramdd(x, [3, 4], density=True)[0], rng(50, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_the_cpus_result_and_stays_on_the_device(device, name):
    function, *arguments = CALLS[name]
    expected = function(*[moved(a, "cpu") for a in arguments])
    torch_graft.reset_fallbacks()
    found = function(*[moved(a, device) for a in arguments])
    assert torch_graft.fallbacks() == []
    for there, here in zip(leaves(found), leaves(expected), strict=True):
        assert there.is_graft
        torch.testing.assert_close(there.cpu(), here, rtol=2e-5, atol=2e-6, equal_nan=True)
        if there.dim() == 4:
            assert there.is_contiguous(memory_format=torch.channels_last) == here.is_contiguous(
                memory_format=torch.channels_last
            )


@pytest.mark.parametrize(
    "arguments", [(1, 5), (1, 5, 2), (0.5, 4.1, 1.25), (5, 1, -1.5), (0, 0)], ids=lambda arguments: str(arguments)
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_range(device, arguments, dtype):
    expected = torch.range(*arguments, dtype=dtype)
    torch.testing.assert_close(torch.range(*arguments, dtype=dtype, device=device).cpu(), expected)


def test_what_is_asserted_on_the_device(device):
    aten._assert_async(torch.tensor(True, device=device))
    with pytest.raises(RuntimeError, match="no luck"):
        aten._assert_async.msg(torch.tensor(0, device=device), "no luck")


def test_what_the_cpu_refuses_is_refused(device):
    with pytest.raises(RuntimeError, match="divisible by groups"):
        torch.nn.functional.channel_shuffle(torch.zeros(1, 5, 2, 2, device=device), 2)
    with pytest.raises(IndexError, match="non-zero size"):
        torch.median(torch.zeros(3, 0, device=device), 1)
    with pytest.raises(RuntimeError, match="not finite"):
        torch.histogram(torch.tensor([float("inf")], device=device), 3)
    with pytest.raises(RuntimeError, match="either add or multiply"):
        torch.zeros(2, device=device).scatter(0, torch.tensor([0], device=device), 1.0, reduce="mean")


def test_adagrad_takes_a_learning_rate_that_is_a_tensor(device):
    weights = [rng(5).to(device).requires_grad_()]
    expected = [weights[0].detach().cpu().requires_grad_()]
    for params, where in ((weights, device), (expected, "cpu")):
        params[0].grad = rng(5, seed=6).to(where)
        torch.optim.Adagrad(params, lr=torch.tensor(0.1), fused=True).step()
    torch.testing.assert_close(weights[0].detach().cpu(), expected[0].detach(), rtol=1e-5, atol=1e-6)
