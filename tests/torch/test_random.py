"""Random numbers: equal seeds give the numbers of the C host on every device, and the state can be kept."""

import numpy
import philox
import pytest
import torch
import torch.utils.checkpoint
import torch_graft


def test_numbers_are_those_of_the_specification(device, other):
    for where in (device, other):
        torch.manual_seed(2**33 + 5)
        first, second = torch.rand(10, device=where), torch.rand(3, 5, device=where)
        assert numpy.array_equal(first.cpu().numpy(), philox.uniform(2**33 + 5, 0, 10))
        assert numpy.array_equal(second.cpu().numpy().ravel(), philox.uniform(2**33 + 5, 12, 15))


EXACT = ["rand", "dropout", "rrelu", "bernoulli", "randperm", "randint"]
ROUNDED = ["randn", "exponential", "cauchy", "geometric", "log_normal"]


@pytest.mark.parametrize("draw", EXACT + ROUNDED)
def test_devices_of_different_plugins_draw_the_same(device, other, draw):
    def numbers(where):
        torch.manual_seed(11)
        torch_graft.reset_fallbacks()
        x = torch.ones(33, 17, device=where)
        result = {
            "rand": lambda: torch.rand(33, 17, device=where),
            "randn": lambda: torch.randn(33, 17, device=where),
            "dropout": lambda: torch.nn.functional.dropout(x, 0.3),
            "rrelu": lambda: torch.nn.functional.rrelu(-x, training=True),
            "bernoulli": lambda: torch.bernoulli(x * 0.3),
            "randperm": lambda: torch.randperm(100, device=where),
            "randint": lambda: torch.randint(0, 1000, (33, 17), device=where),
            "exponential": lambda: x.exponential_(),
            "cauchy": lambda: x.cauchy_(),
            "geometric": lambda: x.geometric_(0.2),
            "log_normal": lambda: x.log_normal_(),
        }[draw]()
        drawn_elsewhere = [row for row in torch_graft.fallbacks() if row.way == "PyTorch CPU"]
        assert drawn_elsewhere == [], "by another generator"
        return result.cpu(), torch.graft.get_rng_state(where)

    (a, state_a), (b, state_b) = numbers(device), numbers(other)
    assert torch.equal(a, b) if draw in EXACT else torch.allclose(a, b, rtol=1e-5, atol=1e-6)
    assert torch.equal(state_a, state_b), "both advance the offset alike"


def test_rrelu_scales_what_is_not_positive(device):
    x = torch.randn(33, 17, device=device, requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.25, 0.5, training=True)
    (slopes,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(x * slopes, y)
    assert (slopes[x > 0] == 1).all() and ((slopes[x <= 0] >= 0.25) & (slopes[x <= 0] <= 0.5)).all()
    assert slopes[x <= 0].cpu().unique().numel() > 100
    torch.manual_seed(3)
    out = torch.nn.functional.rrelu(x.detach(), 0.25, 0.5, training=True)
    torch.manual_seed(3)
    assert torch.equal(torch.nn.functional.rrelu_(x.detach().clone(), 0.25, 0.5, training=True), out)
    torch.testing.assert_close(torch.nn.RReLU().eval()(x).cpu(), torch.nn.RReLU().eval()(x.cpu()))


def test_seeds(device):
    torch.manual_seed(5)
    a = torch.rand(4, device=device)
    assert torch.graft.initial_seed() == 5
    torch.graft.manual_seed(5)
    assert torch.equal(torch.rand(4, device=device), a)
    assert not torch.equal(torch.rand(4, device=device), a)
    torch.graft.manual_seed_all(5)
    assert torch.equal(torch.rand(4, device=device), a)
    torch.graft.seed()
    assert not torch.equal(torch.rand(4, device=device), a)
    torch.graft.seed_all()
    assert len({torch.graft.default_generators[i].initial_seed() for i in range(2)}) == 1


def test_negative_seeds_wrap_around_as_on_the_cpu(device):
    for seed, same in (-1, 2**64 - 1), (-(2**63), 2**63):
        assert torch.manual_seed(seed).initial_seed() == same and torch.graft.initial_seed() == same
        x = torch.rand(5, device=device)
        torch.graft.manual_seed_all(same)
        assert torch.equal(torch.rand(5, device=device), x)
    for seed in 2**64, -(2**63) - 1:
        with pytest.raises(ValueError, match=str(seed)):
            torch.graft.manual_seed_all(seed)


def test_a_seed_set_before_the_first_use_counts(python):
    outcome = python(
        """
        import torch
        torch.manual_seed(77)
        print([torch.rand(1, device=f"graft:{i}").item() for i in range(2)], torch.graft.initial_seed())
        """
    ).ok()
    number = float(philox.uniform(77, 0, 1)[0])
    assert outcome.out.strip() == f"{[number, number]} 77"


def test_state(device):
    state = torch.graft.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.numel() == 16
    a = torch.rand(6, device=device)
    torch.graft.set_rng_state(state)
    assert torch.equal(torch.rand(6, device=device), a)
    states = torch.graft.get_rng_state_all()
    b = torch.randn(6, device=device)
    torch.graft.set_rng_state_all(states)
    assert torch.equal(torch.randn(6, device=device), b)
    with pytest.raises((RuntimeError, TypeError)):
        torch.graft.set_rng_state(state[:7])


def test_fork_rng(device):
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0], device_type="graft"):
        a = torch.rand(3, device=device)
    assert torch.equal(torch.rand(3, device=device), a)


def test_generators(device):
    generator = torch.Generator(device=device)
    generator.manual_seed(9)
    default = torch.graft.get_rng_state()
    a = torch.rand(5, device=device, generator=generator)
    assert torch.equal(torch.graft.get_rng_state(), default), "the default generator is not touched"
    assert numpy.array_equal(a.cpu().numpy(), philox.uniform(9, 0, 5))
    later = torch.rand(5, device=device, generator=generator)
    assert numpy.array_equal(later.cpu().numpy(), philox.uniform(9, 8, 5))
    generator.set_state(_seeded(device, 9).get_state())
    assert torch.equal(torch.rand(5, device=device, generator=generator), a)
    x = torch.empty(100, device=device).normal_(generator=_seeded(device, 3))
    assert abs(x.mean().item()) < 0.5
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(3, device=device, generator=torch.Generator())


def test_a_generator_of_another_device_is_refused(device, other):
    theirs = torch.Generator(device=other)
    text = f"Expected a '{device}' generator device but found '{other}'"
    x = torch.ones(4, device=device)
    for use in (
        lambda: torch.rand(4, device=device, generator=theirs),
        lambda: torch.randperm(4, device=device, generator=theirs),
        lambda: x.normal_(generator=theirs),
        lambda: x.bernoulli(generator=theirs),
        lambda: x.multinomial(2, generator=theirs),
        lambda: torch.normal(x, x, generator=theirs),
        lambda: torch.binomial(x, x / 2, generator=theirs),  # drawn on the CPU
    ):
        with pytest.raises(RuntimeError, match=text):
            use()
    with pytest.raises(RuntimeError, match=f"Expected a 'cpu' generator device but found '{other}'"):
        torch.ones(4).random_(generator=theirs)
    assert torch.rand(4, device=other, generator=theirs).device == other


def _seeded(device, seed):
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return generator


def test_checkpoint_draws_the_same_mask_again(device):
    torch.manual_seed(4)
    layer = torch.nn.Linear(16, 16).to(device)
    x = torch.randn(8, 16, device=device, requires_grad=True)
    masks = []

    def block(value):
        dropped = torch.nn.functional.dropout(layer(value), 0.5)
        masks.append((dropped != 0).cpu())
        return dropped

    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        for reentrant in (False, True):
            masks.clear()
            torch.utils.checkpoint.checkpoint(block, x, use_reentrant=reentrant).sum().backward()
            assert len(masks) == 2 and torch.equal(*masks)


def test_multinomial_and_moments(device):
    counts = torch.multinomial(torch.tensor([1.0, 3.0, 0.0], device=device), 4000, replacement=True)
    counts = counts.cpu().bincount(minlength=3)
    assert counts[2] == 0 and abs(counts[1] - 3000) < 5 * (4000 * 0.75 * 0.25) ** 0.5
    x = torch.randn(10000, device=device)
    assert abs(x.mean().item()) < 0.05 and abs(x.std().item() - 1) < 0.04


DRAWN_ON_THE_CPU = {
    "poisson": lambda x, generator: torch.poisson(x * 9, generator=generator),
    "binomial": lambda x, generator: torch.binomial(x * 20, x / 2, generator=generator),
}


@pytest.mark.parametrize("draw", DRAWN_ON_THE_CPU.values(), ids=DRAWN_ON_THE_CPU)
def test_what_the_cpu_draws_follows_the_seed_of_the_device(device, other, draw):
    def numbers(where, generator):
        return draw(torch.ones(50, device=where), generator).cpu()

    torch_graft.reset_fallbacks()
    torch.graft.manual_seed_all(21)
    cpu = torch.get_rng_state()
    first, second = numbers(device, None), numbers(device, None)
    assert [row.way for row in torch_graft.fallbacks() if row.device.startswith("opencl")] == ["PyTorch CPU"]
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), cpu), "the CPU's generator is not touched"
    torch.rand(3)
    torch.graft.manual_seed_all(21)
    assert torch.equal(numbers(device, None), first)
    assert torch.equal(numbers(other, None), first)
    assert torch.equal(numbers(device, _seeded(device, 21)), first)
    default = torch.graft.get_rng_state()
    numbers(device, _seeded(device, 4))
    assert torch.equal(torch.graft.get_rng_state(), default)
    with pytest.raises(RuntimeError, match="expected a generator of graft, but got one of cpu"):
        numbers(device, torch.Generator())


def test_normal_numbers_about_tensors(device):
    mean, deviation = torch.tensor([[-50.0], [70.0]]), torch.tensor([0.0, 2.0, 5.0])
    on = (mean.expand(2, 3).to(device), deviation.to(device))
    torch_graft.reset_fallbacks()
    x = torch.normal(on[0], on[1].expand(4000, 2, 3)).cpu()
    assert x.shape == (4000, 2, 3) and torch.equal(x[..., 0], mean.expand(4000, 2, 1)[..., 0])
    assert torch.allclose(x.mean(0), mean.expand(2, 3), atol=0.5)
    assert torch.allclose(x.std(0), deviation.expand(2, 3), atol=0.5)
    for some in (torch.normal(on[0], 1.0), torch.normal(3.0, on[1]), torch.normal(*on, out=torch.empty(0, device=device))):
        assert some.device == device and some.shape[-1] == 3
    assert torch_graft.fallbacks() == []
    with pytest.raises(RuntimeError, match="std >= 0"):
        torch.normal(on[0], -on[1])
