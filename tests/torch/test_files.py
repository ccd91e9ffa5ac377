"""torch_graft.save and load_graph: what is in a file gives eager mode's bits, and what a file can't hold is refused by the
line of the model."""

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
import torch
import torch_graft
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)
        self.scale = torch.tensor(2.0)

    def forward(self, x, pair):
        x = F.relu(self.norm(self.convolution(x))).mean((2, 3))
        with torch.no_grad():
            weights = pair["a"].softmax(-1)
        return {"logits": self.head(x) * self.scale, "rest": (weights.t(), pair["b"] + torch.tensor(3.0))}


def arguments(device):
    return torch.randn(2, 3, 8, 8, device=device), {name: torch.randn(2, 3, device=device) for name in "ab"}


def assert_gives(results, expected):
    leaves = torch.utils._pytree.tree_leaves(expected)
    results = results if isinstance(results, tuple) else (results,)
    assert len(results) == len(leaves)
    for result, value in zip(results, leaves):
        assert (result.shape, result.dtype) == (value.shape, value.dtype) and torch.equal(result, value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.graft"


def refused(*args, **options):
    with pytest.raises(RuntimeError, match="torch_graft.save: ") as error:
        torch_graft.save(*args, **options)
    return str(error.value)


class Held(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("wide", torch.rand(1, 4).expand(3, 4))
        self.bias = torch.rand(3, 1).expand(3, 4)

    def forward(self, x):
        return x * self.wide + self.bias


def test_expanded_tensors_are_held(device, path):
    model, x = Held().to(device), torch.rand(3, 4, device=device)
    model.wide, model.bias = (torch.rand(sizes, device=device).expand(3, 4) for sizes in ((1, 4), (3, 1)))
    torch_graft.save(model, path, (x,))
    assert_gives(torch_graft.load_graph(path)(x), model(x))


def test_results_lie_as_in_eager_mode(device, path):
    model = torch.nn.Conv2d(3, 4, 3).to(device, memory_format=torch.channels_last).requires_grad_(False)
    x = torch.rand(2, 3, 6, 6, device=device).contiguous(memory_format=torch.channels_last)
    torch_graft.save(model, path, (x,))
    result = torch_graft.load_graph(path)(x)
    assert result.stride() == model(x).stride() == (64, 1, 16, 4)
    assert_gives(result, model(x))


@pytest.mark.parametrize("character", ["\0", "\x1b"])
def test_names_of_control_characters_are_refused(device, path, character):
    x = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match='name "t.a\\.\\.\\."|input "t.a\\?b"'):
        torch_graft.save(lambda t: t[f"a{character}b"] * 2, path, ({f"a{character}b": x},))
    with pytest.raises(RuntimeError, match="name|output"):
        torch_graft.save(lambda t: {f"a{character}b": t * 2}, path, (x,))
    assert not path.exists()


@pytest.mark.parametrize("how", ["module", "exported", "decomposed", "exported on the CPU"])
def test_models(device, path, how):
    x, pair = arguments(device)
    model = Model().to(device).eval()
    if how == "module":
        torch_graft.save(model, path, (x, pair))
    else:
        place = "cpu" if how == "exported on the CPU" else device
        there = torch.utils._pytree.tree_map(lambda tensor: tensor.to(place), (x, pair))
        program = torch.export.export(model.to(place), there)
        torch_graft.save(program.run_decompositions({}) if how == "decomposed" else program, path)
        model.to(device)
    graph = torch_graft.load_graph(path)
    assert (graph.inputs, graph.outputs) == (["x", "pair_a", "pair_b"], ["logits", "rest.0", "rest.1"])
    assert not graph.state
    with torch.no_grad():
        expected = model(x, pair)
        assert_gives(graph(x, pair["a"], pair["b"]), expected)
        assert_gives(graph(pair_b=pair["b"], x=x, pair_a=pair["a"]), expected)


@pytest.mark.parametrize("decomposed", [False, True])
def test_buffers_that_are_written_are_state(device, path, decomposed):
    x, pair = arguments(device)
    model = Model().to(device)
    program = torch.export.export(model, (x, pair))
    torch_graft.save(program.run_decompositions({}) if decomposed else program, path)
    graph = torch_graft.load_graph(path)
    assert sorted(graph.state) == ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var"]
    for _ in range(2):
        results = graph(x, pair["a"], pair["b"])
        with torch.no_grad():
            assert_gives(results, model(x, pair))
    for name, value in graph.state.items():
        assert torch.equal(value, model.get_buffer(name)), name


OPTIMIZERS = {
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
    "fused Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.1, fused=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_steps(device, path, name):
    """Forward, backward and optimizer in one; tracing leaves model, optimizer and generator as they were."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)).to(device)
    optimizer = OPTIMIZERS[name](model)
    x, y = torch.randn(6, 4, device=device), torch.randint(0, 2, (6,), device=device)

    def step(batch, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(x, y)
    before = [value.clone() for value in model.state_dict().values()]
    generator = torch.graft.get_rng_state()
    torch_graft.save(step, path, (x, y), state={"model": model, "optimizer": optimizer})
    assert all(map(torch.equal, before, model.state_dict().values()))
    assert torch.equal(generator, torch.graft.get_rng_state())
    graph = torch_graft.load_graph(path)
    assert graph.inputs == ["batch", "labels"] and graph.outputs == ["output"]
    assert {"model.0.weight", "model.2.bias"} < set(graph.state)
    results = [graph(x, y) for _ in range(3)]
    torch.graft.set_rng_state(generator)
    for result in results:
        assert torch.equal(result, step(x, y))
    for parameter, value in model.named_parameters():
        assert torch.equal(graph.state[f"model.{parameter}"], value), parameter


def training(device, optimizer):
    """A model, its optimizer and a step of both."""
    torch.manual_seed(3)
    model = torch.nn.Linear(4, 2).to(device)
    optimizer = optimizer(model)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, optimizer, step


@pytest.mark.parametrize("steps", [0, 1])
def test_saving_leaves_gradients_as_they_were(device, path, steps):
    model, optimizer, step = training(device, lambda model: torch.optim.SGD(model.parameters(), lr=0.1))
    x = torch.randn(6, 4, device=device)
    for _ in range(steps):
        step(x)
    before = [(parameter.grad, parameter.grad is not None and parameter.grad.clone()) for parameter in model.parameters()]
    torch_graft.save(step, path, (x,), state={"model": model, "optimizer": optimizer})
    torch_graft.save(step, path, (x,))
    for parameter, (gradient, value) in zip(model.parameters(), before):
        assert parameter.grad is gradient
        assert gradient is None or torch.equal(gradient, value)
    assert not any(optimizer.state.values())


def test_gradients_that_add_up_do_not_see_the_call(device, path):
    model, x = torch.nn.Linear(4, 2).to(device), torch.randn(6, 4, device=device)

    def step(x):
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    torch_graft.save(step, path, (x,), state={"model": model})
    step(x)
    gradient = model.weight.grad.clone()
    torch_graft.save(step, path, (x,), state={"model": model})
    assert torch.equal(model.weight.grad, gradient)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_before_their_first_step_are_refused(device, path, name, named):
    """Their state would be made anew at each run; that of training that goes on is not touched."""
    model, optimizer, step = training(device, OPTIMIZERS[name])
    x = torch.randn(6, 4, device=device)
    before = [value.clone() for value in model.state_dict().values()]
    text = refused(step, path, (x,), state={"model": model, **({"optimizer": optimizer} if named else {})})
    assert f"the optimizer {'optimizer, ' * named}{type(optimizer).__name__}, made " in text
    assert "call the function once before saving" in text and not path.exists()
    assert all(map(torch.equal, before, model.state_dict().values()))
    assert not any(optimizer.state.values()) and all(parameter.grad is None for parameter in model.parameters())
    _, _, untouched = training(device, OPTIMIZERS[name])
    for _ in range(3):
        assert torch.equal(step(x), untouched(x))


def test_an_error_in_the_step_leaves_all_as_it_was(device, path):
    model, optimizer, step = training(device, OPTIMIZERS["SGD"])

    def failing(x):
        step(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        torch_graft.save(failing, path, (torch.randn(6, 4, device=device),), state={"model": model})
    assert not any(optimizer.state.values()) and model.weight.grad is None


def test_views_that_overlap_are_put_back(device, path):
    buffer, x = torch.zeros(4, device=device), torch.ones(4, device=device)

    def function(x):
        buffer[0].add_(1)
        buffer.mul_(2)
        return buffer + x

    torch_graft.save(function, path, (x,), state={"buffer": buffer})
    assert torch.equal(buffer, torch.zeros(4, device=device))
    graph = torch_graft.load_graph(path)
    assert torch.equal(graph.state["buffer"], buffer)
    assert torch.equal(graph(x), function(x))


def test_running_statistics_are_put_back(device, path):
    norm = torch.nn.BatchNorm1d(3).to(device)
    x = torch.randn(5, 3, device=device) + 2
    torch_graft.save(lambda x: norm(x), path, (x,), state={"norm": norm})
    assert torch.equal(norm.running_mean, torch.zeros(3, device=device))
    assert torch.equal(torch_graft.load_graph(path).state["norm.running_var"], torch.ones(3, device=device))


def test_a_conjugate_is_another_tensor(device, path):
    weight, x = (torch.randn(3, dtype=torch.complex64, device=device) for _ in range(2))
    conjugate = weight.conj()

    def function(x):
        return x * weight + x * conjugate * 2

    torch_graft.save(function, path, (x,))
    assert torch.equal(torch_graft.load_graph(path)(x), function(x))


def test_arguments_that_share_written_state_are_refused(device, path):
    state = torch.arange(4.0, device=device)

    def function(x):
        state.add_(1)
        return x * 2

    assert "state, which is written, shares memory with input x" in refused(function, path, (state[1:],), state={"state": state})
    assert torch.equal(state, torch.arange(4.0, device=device))


def test_weights_that_are_tied_are_one(device, path):
    a, b = torch.nn.Linear(3, 3, device=device), torch.nn.Linear(3, 3, device=device)
    b.weight = a.weight

    def step(x):
        with torch.no_grad():
            a.weight.mul_(2)
            return b(x)

    x = torch.randn(2, 3, device=device)
    torch_graft.save(step, path, (x,), state={"a": a})
    graph = torch_graft.load_graph(path)
    assert list(graph.state) == ["a.weight"]
    for _ in range(2):
        assert torch.equal(graph(x), step(x))


class Returned(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(2, 3))
        self.register_buffer("wide", torch.randn(4, 1).expand(4, 3))

    def forward(self, x):
        return x, self.weight, self.weight.t(), self.wide, x + self.wide[0], self.weight


def test_what_is_held_can_be_returned(device, path):
    model, x = Returned().to(device), torch.randn(5, 3, device=device)
    for program in torch.export.export(model, (x,)), exported_with_rows(model, x):
        torch_graft.save(program, path)
        assert_gives(torch_graft.load_graph(path)(x), model(x))


# --- what is refused ---


class Sizes(torch.nn.Module):
    def forward(self, x):
        return (x + 1).nonzero()


class Reads(torch.nn.Module):
    def forward(self, x):
        return x.cpu() * 2


class Draws(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand(3).to(x.device)


LINES = {
    Sizes: ("nonzero.default is not known beforehand", "return (x + 1).nonzero()"),
    Reads: ("reads values of the device", "return x.cpu() * 2"),
    Draws: ("draws on the CPU", "return x + torch.rand(3)"),
}


@pytest.mark.parametrize("case", LINES)
def test_refusals_name_the_line(device, path, case):
    reason, line = LINES[case]
    path.write_text("what was there")
    text = refused(case(), path, (torch.ones(2, 3, device=device),))
    assert reason in text and f"{__file__}:" in text and line in text, text
    assert path.read_text() == "what was there" and len(list(path.parent.iterdir())) == 1


def exported_with_rows(module, *args):
    rows = torch.export.Dim("rows", min=1, max=64)
    return torch.export.export(module, args, dynamic_shapes=tuple({0: rows} for _ in args))


def test_open_sizes_are_in_the_file(device, path):
    """One file serves all sizes, to the bit; beyond its range it says so."""
    layers = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    model = torch.nn.Sequential(*layers).to(device)
    torch_graft.save(exported_with_rows(model, torch.randn(4, 5, 8, device=device)), path)
    loaded = torch_graft.load_graph(path)
    with torch.no_grad():
        for rows in (4, 2, 1, 9):
            x = torch.randn(rows, 5, 8, device=device)
            assert torch.equal(loaded(x), model(x))
        with pytest.raises(RuntimeError, match="dimension 0 is 65, and the size input.0 goes from 1 to 64"):
            loaded(torch.randn(65, 5, 8, device=device))


class Applied(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


RESAMPLED = {
    **{f"{mode} by {factor}": dict(mode=mode, scale_factor=factor)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area") for factor in (2, 1.5, 0.75)},
    "to a size": dict(mode="bilinear", size=(8, 10)),
    "corners": dict(mode="bilinear", scale_factor=(2, 3), align_corners=True),
    "antialias": dict(mode="bilinear", scale_factor=0.5, antialias=True),
    "factors anew": dict(mode="bilinear", scale_factor=1.5, recompute_scale_factor=True),
}  # fmt: skip


@pytest.mark.parametrize("case", RESAMPLED)
def test_resampling_follows_sizes(device, path, case):
    model = Applied(lambda x: F.interpolate(x, **RESAMPLED[case]))
    assert_open(model, path, device, (2, 3, 4, 5), (2, 3, 7, 9), (3, 3, 2, 3), (2, 3, 8, 4))


@pytest.mark.parametrize("mode, rank", [("linear", 1), ("trilinear", 3), ("nearest", 1), ("nearest", 3)])
def test_resampling_in_other_ranks(device, path, mode, rank):
    model = Applied(lambda x: F.interpolate(x, scale_factor=2, mode=mode))
    assert_open(model, path, device, *[(rows, 3, *sizes[:rank]) for rows, sizes in ((2, (4, 5, 6)), (3, (7, 2, 3)))])


def test_a_size_by_a_formula_and_stacks(device, path):
    def function(x):
        wide = F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] + 3), mode="bilinear")
        return wide, torch.stack([x, x + 1], 1), torch.stack([x, x.mul(2), x], -1), torch.stack([x])

    assert_open(Applied(function), path, device, (2, 3, 4, 5), (3, 3, 7, 2))


def test_a_factor_that_rounds_is_refused(device, path):
    """0.7 of 10 is 7 in floating point, and less than 7 as it is."""
    model = Applied(lambda x: F.interpolate(x, scale_factor=0.7, mode="bilinear"))
    text = refused(exported_at_all_sizes(model, torch.randn(2, 3, 10, 10, device=device)), path)
    assert "its sizes are open until a run, and the size" in text and "0.7" in text


def test_sizes_without_a_least_begin_at_two(device, path):
    """torch.export does not say that its program holds for 1."""
    torch_graft.save(exported_at_all_sizes(Applied(torch.relu), torch.randn(4, 3, device=device)), path)
    with pytest.raises(RuntimeError, match="dimension 0 is 1, and the size x.0 goes from 2 to"):
        torch_graft.load_graph(path)(torch.randn(1, 3, device=device))


def exported_at_all_sizes(model, x):
    open_dims = {d: torch.export.Dim.DYNAMIC for d in range(x.dim()) if d != 1}
    return torch.export.export(model, (x,), dynamic_shapes={"x": open_dims})


def assert_open(model, path, device, *shapes):
    torch_graft.save(exported_at_all_sizes(model, torch.randn(shapes[0], device=device)), path)
    loaded = torch_graft.load_graph(path)
    for shape in shapes:
        x = torch.randn(shape, device=device)
        assert_gives(loaded(x), model(x))


def test_state_is_written_at_all_sizes(device, path):
    class Counted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)

        def forward(self, x):
            return self.norm(x).relu().sum(0), x.shape[0] * x

    model = Counted().to(device).train()
    torch_graft.save(exported_with_rows(model, torch.randn(4, 3, device=device)), path)
    loaded = torch_graft.load_graph(path)
    with torch.no_grad():
        for rows in (4, 2, 7):
            x = torch.randn(rows, 3, device=device)
            for own, expected in zip(loaded(x), model(x)):
                assert torch.equal(own, expected)
    assert torch.equal(loaded.state["norm.running_mean"], model.norm.running_mean)
    assert loaded.state["norm.num_batches_tracked"] == 3


def test_sizes_that_cannot_be_said_are_refused(device, path):
    class Halved(torch.nn.Module):
        def forward(self, x):
            return x * (x.shape[0] / 3)

    text = refused(exported_with_rows(Halved(), torch.randn(4, 3, device=device)), path)
    assert "its sizes are open until a run, and" in text and "with a fraction" in text and "without dynamic_shapes" in text
    assert not path.exists()


def test_state_on_the_cpu_is_refused(device, path):
    """Adam counts its steps there, where it is not fused."""
    model = torch.nn.Linear(3, 1).to(device)
    count = torch.zeros(())
    state = {"count": count}

    def step(x):
        count.add_(1)
        return model(x).detach()

    text = refused(step, path, (torch.ones(2, 3, device=device),), state=state)
    assert "it writes to count, a tensor on the CPU" in text and "fused=True" in text
    assert count == 0 and not path.exists()


def test_functions_that_read_values_are_refused(device, path):
    weight = torch.ones(3, device=device)

    def step(x):
        weight.mul_(2)
        return x * weight.sum().item()  # the line

    text = refused(step, path, (torch.ones(3, device=device),))
    assert "values of a tensor are read" in text and "return x * weight.sum().item()  # the line" in text, text
    assert weight.tolist() == [1, 1, 1] and not path.exists()


def test_control_flow_that_depends_on_values_is_refused(device, path):
    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    assert "cond can't be in a file" in refused(Branches(), path, (torch.ones(3, device=device),))


def test_autocast_is_in_the_file(device, path):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            with torch.autocast("graft", dtype=torch.float16):
                return self.layer(x)

    model, x = Half().to(device), torch.randn(2, 4, device=device)
    torch_graft.save(model, path, (x,))
    result = torch_graft.load_graph(path)(x)
    assert result.dtype == torch.float16 and torch.equal(result, model(x))


def test_shared_state_is_refused(device, path):
    memory = torch.ones(6, device=device)
    first, rest = memory[:4], memory[2:]

    def step(x):
        first.add_(x)
        return rest * 2

    text = refused(step, path, (torch.ones(4, device=device),), state={"first": first, "rest": rest})
    assert "first, which is written, shares memory with rest" in text


def test_arguments_are_checked(device, path):
    x = torch.ones(2, device=device)
    assert "input x is on cpu" in refused(lambda x: x * 2, path, (x.cpu(),))
    assert "output.1 is 3" in refused(lambda x: (x * 2, 3), path, (x,))
    with pytest.raises(TypeError, match="expected an exported program, a module or a function"):
        torch_graft.save(3, path)
    for model in (torch.nn.Tanh(), torch.tanh):
        with pytest.raises(TypeError, match="args is a tuple .* not Tensor"):
            torch_graft.save(model, path, x)
    with pytest.raises(TypeError, match="state is a dict of .* not list"):
        torch_graft.save(lambda x: x * 2, path, (x,), state=[torch.nn.Tanh()])
    torch_graft.save(lambda x, y: x * y, path, (x, x))
    graph = torch_graft.load_graph(path)
    for args, names in [((x,), {}), ((x, x, x), {}), ((x,), {"x": x}), ((x,), {"z": x})]:
        with pytest.raises(TypeError, match="expected the inputs x, y"):
            graph(*args, **names)
    with pytest.raises(TypeError, match="input y: expected a tensor on graft"):
        graph(x, x.cpu())
    with pytest.raises(RuntimeError, match=r"y is .*f32\[3\]|expected f32\[2\]"):
        graph(x, torch.ones(3, device=device))
    with pytest.raises(RuntimeError, match="input x requires grad"):
        graph(x.clone().requires_grad_(), x)


def test_generators_of_ones_own_are_refused(device, path):
    own, x = torch.Generator(device), torch.ones(3, device=device)
    for draw in (lambda x: x + torch.rand(3, device=device, generator=own), lambda x: x.clone().uniform_(generator=own)):
        text = refused(draw, path, (x,))
        assert "draws from a generator other than the device's default" in text, text
    torch_graft.save(lambda x: x.clone().uniform_(generator=torch.graft.default_generators[0]), path, (x,))


def test_another_device_takes_it(device, other, path):
    x = torch.randn(5, device=device)
    torch_graft.save(lambda x: (x * 2 + 1, x.sum()), path, (x,))
    graph = torch_graft.load_graph(path, other)
    results = graph(x.to(other))
    assert results[0].device == other and torch.equal(results[0].cpu(), (x * 2 + 1).cpu())


def compiled_source(path):
    """The function that `graft tiny` makes of a file, compiled and loaded."""
    source, library = path.with_suffix(".c"), path.with_suffix(".so")
    program = Path(os.environ.get("GRAFT_BUILD_DIR", ROOT / "build")) / "bin/graft"
    subprocess.run([program, "tiny", path, "-o", source], check=True)
    subprocess.run(["gcc", "-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", source, "-o", library,
                    "-lm"], check=True)
    return ctypes.CDLL(library).graph_run


def whole_numbers_(model):
    """Weights and arithmetic that nothing rounds: halves and quarters at most, for a few steps."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape))
    return model


@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": 0.5, "weight_decay": 0.5}, {"momentum": 0.5, "nesterov": True}, {"momentum": 0.5, "foreach": False}],
    ids=["plain", "momentum", "nesterov", "single"],
)
def test_a_step_becomes_a_source_without_libgraft(device, path, options):
    model = whole_numbers_(torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25, **options)
    x, labels = torch.randint(-2, 3, (4, 6)).float(), torch.tensor([0, 2, 1, 2])

    def step(x, labels):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), labels, reduction="sum")
        loss.backward()
        optimizer.step()
        return loss.detach()

    step(x.to(device), labels.to(device))
    torch_graft.save(step, path, (x.to(device), labels.to(device)), state={"model": model, "optimizer": optimizer})
    run = compiled_source(path)
    for _ in range(2):
        loss = torch.zeros(())
        run(*(ctypes.c_void_p(t.data_ptr()) for t in (x, labels, loss)))
        assert torch.equal(loss, step(x.to(device), labels.to(device)).cpu())
