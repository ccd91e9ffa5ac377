"""Ops over lists of tensors: how many launches they take, and that they are right however the tensors lie."""

import threading

import pytest
import torch
import torch_graft

SHAPES = [(64,), (64, 64), (16, 16, 3, 3), (128,), (128, 64), (1,), (10, 128), (256, 256), (17,), (33, 5)] * 10


def tensors(device, shapes=SHAPES, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(shape, generator=generator).add_(0.5).to(device) for shape in shapes]


def parameters(device, shapes=SHAPES, dtype=torch.float32):
    made = [p.to(dtype).requires_grad_() for p in tensors(device, shapes)]
    for p, grad in zip(made, tensors(device, shapes, seed=1)):
        p.grad = grad.to(dtype)
    return made


def launches(call):
    call()
    call()  # the first may make state
    before = torch_graft.statistics().launches
    call()
    return torch_graft.statistics().launches - before


@pytest.mark.parametrize(
    "most, optimizer, options",
    [
        (20, torch.optim.AdamW, {"foreach": True}),
        (20, torch.optim.AdamW, {"foreach": True, "capturable": True}),
        (5, torch.optim.SGD, {"foreach": True, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        (2, torch.optim.AdamW, {"fused": True}),
        (1, torch.optim.SGD, {"fused": True, "momentum": 0.9}),
    ],
)
def test_launches_of_a_step(device, most, optimizer, options):
    mine, theirs = parameters(device), parameters("cpu")
    step = optimizer(mine, **options).step
    assert 0 < launches(step) <= most
    reference = optimizer(theirs, **{**options, "capturable": False} if "capturable" in options else options)
    for _ in range(3):
        reference.step()
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-4, atol=1e-5)


COMPILED = [
    (2, torch.optim.AdamW, {"capturable": True}),  # counts, and what follows from them; all others
    (2, torch.optim.Adam, {"capturable": True, "amsgrad": True, "weight_decay": 0.1}),
    (1, torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.1}),
    (2, torch.optim.RMSprop, {"capturable": True}),
    (2, torch.optim.Adamax, {"capturable": True}),
    (2, torch.optim.Adadelta, {"capturable": True}),
    (2, torch.optim.NAdam, {"capturable": True}),
    # What they have no op on lists for, they do tensor by tensor.
    (2, torch.optim.RAdam, {"capturable": True}),
    (2, torch.optim.Adagrad, {}),
    (2, torch.optim.Rprop, {"capturable": True}),
    (3, torch.optim.ASGD, {"capturable": True}),  # the new rates are copied when the old ones have been read
]


@pytest.mark.parametrize("most, optimizer, options", COMPILED)
def test_launches_of_a_compiled_step(device, most, optimizer, options):
    torch._dynamo.reset()  # which compiles one function for so many optimizers only
    mine, theirs = (parameters(device, SHAPES[:20]) for _ in range(2))
    compiled, eager = (optimizer(made, foreach=True, **options) for made in (mine, theirs))
    step = torch.compile(lambda: compiled.step(), backend="graft")
    for _ in range(4):  # the first makes the state, and its graph is another one
        step()
        eager.step()
    before = torch_graft.statistics().launches
    step()
    assert torch_graft.statistics().launches - before <= most
    eager.step()
    for a, b in zip(mine, theirs):
        assert torch.equal(a.detach(), b.detach())


@pytest.mark.parametrize("most, optimizer, options", COMPILED)
def test_launches_of_a_compiled_step_of_a_half_type(device, most, optimizer, options):
    """Counts are of f32, and meet the parameters in calls that mix dtypes. Held against the same calls one by one: the
    step that PyTorch traces rounds elsewhere than the eager one."""
    torch._dynamo.reset()
    mine, theirs = (parameters(device, SHAPES[:10], torch.bfloat16) for _ in range(2))
    first, second = (optimizer(made, foreach=True, **options) for made in (mine, theirs))
    step = torch.compile(lambda: first.step(), backend="graft")
    calls = torch.compile(lambda: second.step(), backend="graft", options={"passes": "none"})
    for _ in range(4):
        step()
        calls()
    before = torch_graft.statistics().launches
    step()
    assert torch_graft.statistics().launches - before <= most
    calls()
    for a, b in zip(mine, theirs):
        assert torch.equal(a.detach().view(torch.int16), b.detach().view(torch.int16))


def test_a_compiled_step_counts_on_the_device(device):
    """As if the optimizer were capturable, which it then is, from the first step on."""
    mine, theirs = (parameters(device, SHAPES[:10]) for _ in range(2))
    compiled = torch.optim.AdamW(mine, foreach=True)
    eager = torch.optim.AdamW(theirs, foreach=True, capturable=True)
    step = torch.compile(lambda: compiled.step(), backend="graft")
    before = torch_graft.statistics().launches
    step()
    # Two of the step, and what makes the state.
    first, before = torch_graft.statistics().launches - before, torch_graft.statistics().launches
    step()
    assert first - 2 <= 3 * len(mine) and torch_graft.statistics().launches - before == 2
    for _ in range(2):
        eager.step()
    assert all(state["step"].device == mine[0].device and state["step"] == 2 for state in compiled.state.values())
    for a, b in zip(mine, theirs):
        assert torch.equal(a.detach(), b.detach())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_lists_that_mix_dtypes(device, dtype):
    """A number of another floating dtype, without dimensions, decides no dtype: one launch, with the bits of each call."""
    a, b = ([t.to(dtype) for t in tensors(device, SHAPES[:10], seed)] for seed in range(2))
    numbers = tensors(device, [()] * 10, seed=2)
    for name in ("add", "sub", "mul", "div", "maximum", "clamp_min", "addcmul", "addcdiv"):
        lists = (a, b, numbers) if name.startswith("addc") else (a, numbers)
        assert launches(lambda: getattr(torch, "_foreach_" + name)(*lists)) == 1, name
        for ours, *items in zip(getattr(torch, "_foreach_" + name)(*lists), *lists):
            expected = getattr(torch, name)(*items)
            assert ours.dtype == expected.dtype and torch.equal(ours, expected), name


def test_launches_of_calls(device):
    a, b, c = (tensors(device, seed=seed) for seed in range(3))
    numbers = [1 + i / 100 for i in range(len(a))]
    ones = [torch.ones((), device=device) for _ in a]
    calls = {
        "mul": lambda: torch._foreach_mul_(a, 0.99),
        "mul by a tensor": lambda: torch._foreach_mul_(a, torch.ones((), device=device)),
        "lerp": lambda: torch._foreach_lerp_(a, b, 0.1),
        "addcmul": lambda: torch._foreach_addcmul_(a, b, c, value=0.1),
        "addcdiv": lambda: torch._foreach_addcdiv_(a, b, c, numbers),
        "sqrt": lambda: torch._foreach_sqrt(b),
        "div": lambda: torch._foreach_div_(a, numbers),
        "add": lambda: torch._foreach_add_(a, numbers),
        "copy": lambda: torch._foreach_copy_(a, b),
        "zero": lambda: torch._foreach_zero_(c),
        "sub": lambda: torch._foreach_sub_(a, 0.5),
        "clamp from below": lambda: torch._foreach_clamp_min_(a, -0.5),
        "clamp from above": lambda: torch._foreach_clamp_max_(a, numbers),
        "div by an element for each": lambda: torch._foreach_div_(a, ones),
    }
    allowed = {"mul by a tensor": 2}  # one makes the tensor
    counts = {name: launches(call) for name, call in calls.items()}
    assert {name: count for name, count in counts.items() if count > allowed.get(name, 1)} == {}
    assert launches(lambda: torch._foreach_norm(a)) == 2
    found, scale = torch.zeros((), device=device), torch.ones((), device=device)
    assert launches(lambda: torch._amp_foreach_non_finite_check_and_unscale_(a, found, scale)) == 1


def test_dtypes_interleaved(device):
    kinds = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
    theirs = [t.to(kinds[i % 4]) for i, t in enumerate(tensors("cpu"))]
    mine = [t.to(device) for t in theirs]
    assert launches(lambda: torch._foreach_mul(mine, 3)) == len(kinds)
    for a, b in zip(torch._foreach_mul(mine, 3), torch._foreach_mul(theirs, 3)):
        assert torch.equal(a.cpu(), b)


def test_empty_ones_and_views_with_gaps(device):
    base = tensors("cpu", [(0,), (6, 8), (0, 3), (5,), (3, 0), (40, 20), (0,)])
    theirs = [t[:, ::2] if t.dim() == 2 and t.numel() > 50 else t for t in base]
    mine = [t.to(device) for t in base]
    mine = [t[:, ::2] if t.dim() == 2 and t.numel() > 50 else t for t in mine]
    torch._foreach_add_(mine, 2.5)
    torch._foreach_add_(theirs, 2.5)
    torch._foreach_addcdiv_(mine, mine, mine, [0.5] * len(mine))
    torch._foreach_addcdiv_(theirs, theirs, theirs, [0.5] * len(theirs))
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(a.cpu(), b)


# More buffers than a kernel has arguments: each tensor has one of its own.
BUFFERS = """
import torch
x, y = ([torch.full((n,), float(n), device="graft") for n in range(1, 152)] for _ in range(2))
torch._foreach_add_(x, y)
for n, t in enumerate(x, 1):
    assert torch.equal(t.cpu(), torch.full((n,), 2.0 * n)), n
assert [round(v.item()) for v in torch._foreach_norm(x, 1)] == [2 * n * n for n in range(1, 152)]
"""


def test_many_buffers(python):
    python(BUFFERS, GRAFT_NO_MEMORY_CACHING="1").ok()


# The same call on several streams and threads at once, with numbers that change, so that tables come and go.
def test_streams(device):
    wrong = []

    def work(seed):
        stream = torch.graft.Stream()
        with torch.graft.stream(stream):
            mine = [torch.full((i + 1,), float(i), device=device) for i in range(40)]
            for step in range(60):
                torch._foreach_add_(mine, [float(seed + step % 7)] * 40)
            total = sum(float(seed + step % 7) for step in range(60))
            stream.synchronize()
            for i, t in enumerate(mine):
                if not torch.equal(t.cpu(), torch.full((i + 1,), i + total)):
                    wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_a_stack_is_cat_of_views(device, dim):
    lists = [
        tensors(device, [(3, 5)] * 2),
        [x.t() for x in tensors(device, [(3, 5)] * 3)],
        [x[1:, ::2] for x in tensors(device, [(4, 6), (4, 6)])],
        tensors(device, [(3, 0)] * 2),
        tensors(device, [(2, 3)] * 300),
    ]
    for items in lists:
        stacked, expected = torch.stack(items, dim), torch.stack([x.cpu() for x in items], dim)
        assert stacked.stride() == expected.stride() and torch.equal(stacked.cpu(), expected)


def test_a_stack_of_numbers_and_of_pictures_with_channels_last(device):
    numbers = [x.sum() for x in tensors(device, [(7,)] * 100)]
    assert torch.equal(torch.stack(numbers).cpu(), torch.stack([x.cpu() for x in numbers]))
    pictures = [x.contiguous(memory_format=torch.channels_last) for x in tensors(device, [(2, 3, 4, 5)] * 2)]
    for dim in range(5):
        stacked, expected = torch.stack(pictures, dim), torch.stack([x.cpu() for x in pictures], dim)
        assert stacked.stride() == expected.stride() and torch.equal(stacked.cpu(), expected)


def test_what_a_stack_refuses(device):
    x, y = tensors(device, [(3, 5), (3, 4)])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size, but got .3, 5. at entry 0"):
        torch.stack([x, y])
    with pytest.raises(IndexError, match="Dimension out of range .expected to be in range of .-3, 2., but got 3"):
        torch.stack([x, x], 3)
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.stack([x, x.cpu()])
    assert torch.stack([x, x.double()]).dtype == torch.float64


def test_results_of_a_list_have_memory_of_their_own(device):
    items = tensors(device, [(3,)] * 60)
    made = torch._foreach_add(items, 1.0)
    assert len({x.untyped_storage()._cdata for x in [*items, *made]}) == 120
