"""mode="reduce-overhead": replays give what runs give, to the bit, and nobody sees what he holds overwritten."""

import copy
import gc
import logging
import re
import threading

import pytest
import torch
from compiled import assert_same, train
from torch import nn
from torch._dynamo.utils import counters
from torch_graft import _replays

RUNS = 6  # more than it takes until runs are replayed


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters["graft"].clear()


@pytest.fixture
def reasons(caplog):
    """What the log says, as a function of nothing."""
    with caplog.at_level(logging.INFO, logger="torch_graft._program"):
        yield lambda: caplog.text


def replayed(function, **options):
    return torch.compile(function, backend="graft", mode="reduce-overhead", **options)


def captured_runs():
    return counters["graft"]["captured runs"]


class Network(nn.Module):
    def __init__(self, dropout=0.2, norm=nn.LayerNorm):
        super().__init__()
        self.first, self.norm = nn.Linear(8, 16), norm(16)
        self.dropout, self.last = nn.Dropout(dropout), nn.Linear(16, 4)

    def forward(self, x):
        return self.last(self.dropout(self.norm(torch.nn.functional.gelu(self.first(x)))))


def network(**options):
    torch.manual_seed(1)
    return Network(**options).to("graft")


# --- inference ---


@pytest.mark.parametrize("route", ["graft", "inductor"])
def test_inference(route):
    model = network().eval()
    compiled = torch.compile(model, backend=route, mode="reduce-overhead")
    with torch.no_grad():
        results = []
        for seed in range(RUNS):
            torch.manual_seed(seed)
            x = torch.randn(3, 8, device="graft")
            torch.compiler.cudagraph_mark_step_begin()
            results.append((compiled(x), model(x)))
        # All of them, at the end: none was overwritten.
        for ours, expected in results:
            assert_same(ours, expected)
    assert captured_runs() == 1


def test_modes_without_replays():
    model, x = network().eval(), torch.randn(3, 8, device="graft")
    compiled = torch.compile(model, mode="max-autotune-no-cudagraphs")
    with torch.no_grad():
        for _ in range(RUNS):
            compiled(x)
    assert captured_runs() == 0


def test_a_replay_makes_no_calls_of_pytorch():
    """What the mode is for: of the program's ops none is called by PyTorch."""
    model, x = network().eval(), torch.randn(3, 8, device="graft")
    compiled = replayed(model)
    with torch.no_grad():
        for _ in range(RUNS):
            compiled(x)
        with torch.profiler.profile() as profile:
            compiled(x)
    assert not [event.name for event in profile.events() if event.name in ("aten::addmm", "aten::gelu", "aten::linear")]


LAYOUTS = {
    "strided": lambda x: x[:, ::2],
    "transposed": lambda x: x.t(),
    "expanded": lambda x: x[:1].expand(5, 6),
    "offset": lambda x: x[1:],
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_of_any_layout(layout):
    def function(x):
        return (x * 2).exp(), x.sum()

    compiled = replayed(function)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        x = LAYOUTS[layout](torch.randn(5, 6, device="graft"))
        assert_same(compiled(x), function(x))
    assert captured_runs() == 1


def test_results_that_share_memory():
    def function(x):
        y = x.exp()
        return y, y[1:], x[:, 1], x

    compiled = replayed(function)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        x = torch.randn(4, 4, device="graft")
        ours, theirs = compiled(x), function(x)
        assert_same(ours, theirs)
        assert ours[3] is x and ours[2].data_ptr() == x[:, 1].data_ptr()
        ours[0].zero_()
        assert not ours[1].any() and x.all()
    assert captured_runs() == 1


def test_random_numbers_go_on():
    def function(x):
        return torch.dropout(x, 0.5, True) + torch.rand_like(x)

    compiled = replayed(function)
    x = torch.ones(50, device="graft")
    torch.manual_seed(3)
    expected = [function(x) for _ in range(RUNS)], torch.graft.get_rng_state()
    torch.manual_seed(3)
    assert_same(([compiled(x) for _ in range(RUNS)], torch.graft.get_rng_state()), expected)
    assert captured_runs() == 1


def test_numbers_and_sizes():
    """Each size has a capture of its own."""

    def function(x, factor):
        return x * factor + x.shape[0] if factor > 1 else x

    compiled = replayed(function, dynamic=True)
    for i in range(4 * RUNS):
        x = torch.full((2 + i % 2, 3), float(i), device="graft")
        assert_same(compiled(x, 2), function(x, 2))
    assert captured_runs() == 2


def test_sizes_that_change_each_time():
    compiled = replayed(lambda x: x.exp().sum(), dynamic=True)
    for size in range(2, 40):
        x = torch.randn(size, device="graft")
        assert_same(compiled(x), x.exp().sum())
    assert captured_runs() == 0


# --- what is written ---


def test_buffers_are_written_in_place():
    ours, theirs = network(norm=nn.BatchNorm1d), network(norm=nn.BatchNorm1d)
    compiled = replayed(ours)
    for seed in range(RUNS):
        for model, run in ((ours, compiled), (theirs, theirs)):
            torch.manual_seed(seed)
            x = torch.randn(6, 8, device="graft")
            run(x).sum().backward()
    assert_same(dict(ours.state_dict()), dict(theirs.state_dict()))
    assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
    assert captured_runs() >= 2


def test_an_input_that_is_written():
    def function(x, y):
        x.add_(y)
        return x * 2

    compiled = replayed(function)
    kept, other = torch.zeros(5, device="graft"), torch.zeros(5, device="graft")
    for i in range(RUNS):
        y = torch.full((5,), float(i), device="graft")
        version = kept._version
        assert_same(compiled(kept, y), function(other, y))
        assert_same(kept, other)
        assert kept._version > version
    assert captured_runs() == 1
    for i in range(RUNS):  # elsewhere each time
        x = torch.full((5,), float(i), device="graft")
        assert compiled(x, kept).tolist() == (2 * x).tolist()
    x = torch.ones(5, device="graft")
    for _ in range(RUNS):
        expected = x * 4
        assert_same(compiled(x, x), expected)


def test_an_input_that_is_written_under_another_one():
    def function(x, y):
        x.add_(1)
        return x * y

    compiled, without = replayed(function), torch.compile(function, backend="graft")
    ours, theirs = torch.zeros(8, device="graft"), torch.zeros(8, device="graft")
    for i in range(RUNS):
        y = torch.full((5,), float(i), device="graft")
        assert_same(compiled(ours[:5], y), without(theirs[:5], y))
    assert captured_runs() == 1
    for _ in range(RUNS):
        assert_same(compiled(ours[:5], ours[2:7]), without(theirs[:5], theirs[2:7]))
        assert_same(ours, theirs)


def test_an_optimizer():
    def state():
        torch.manual_seed(5)
        weight = torch.randn(6, 6, device="graft", requires_grad=True)
        return weight, torch.optim.AdamW([weight], lr=0.1, fused=True)

    weight, optimizer = state()
    other, expected = state()
    compiled = replayed(optimizer.step)
    for i in range(2 * RUNS):
        weight.grad, other.grad = (torch.full((6, 6), i - 3.0, device="graft") for _ in range(2))
        compiled(), expected.step()
        assert_same(weight, other)


# --- training ---


def batches(count=RUNS + 4):
    torch.manual_seed(2)
    return [(torch.randn(6, 8, device="graft"), torch.randn(6, 4, device="graft")) for _ in range(count)]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}])
def test_training(options):
    ours, theirs = network(), network()
    expected = train(theirs, torch.compile(theirs, backend="graft"), batches(), lr=0.1, **options)
    state = torch.graft.get_rng_state()
    losses = train(ours, replayed(ours), batches(), lr=0.1, **options)
    assert_same((losses, dict(ours.state_dict())), (expected, dict(theirs.state_dict())))
    assert torch.equal(torch.graft.get_rng_state(), state)
    assert captured_runs() == 2  # forward and backward


def test_a_loss_that_is_kept():
    """The loss, with its graph, lives on behind the next forward."""
    ours, theirs = network(), network()
    compiled = replayed(lambda x: ours(x).square().mean())
    losses = []
    for x, _ in batches(3 * RUNS):
        results = []
        for model, run in ((ours, compiled), (theirs, lambda x: theirs(x).square().mean())):
            torch.manual_seed(4)
            loss = run(x)
            loss.backward()
            results.append((loss.detach(), [p.grad for p in model.parameters()]))
            losses.append(loss)
            for p in model.parameters():
                p.grad = None
        assert_same(*results)
    assert captured_runs() >= 2


def test_gradients_add_up():
    ours, theirs = network(), network()
    compiled = replayed(ours)
    for x, y in batches(3 * RUNS):
        for run in (compiled, theirs):
            torch.manual_seed(4)
            (run(x) * y).sum().backward()
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_gradients_that_are_kept():
    ours, theirs = network(), network()
    compiled, kept = replayed(ours), []
    for x, y in batches(3 * RUNS):
        for run in (compiled, theirs):
            torch.manual_seed(4)
            (run(x) * y).sum().backward()
        kept.append([[p.grad for p in model.parameters()] for model in (ours, theirs)])
        ours.zero_grad(), theirs.zero_grad()
    for mine, expected in kept:
        assert_same(mine, expected)


def test_forwards_ahead_of_backwards():
    ours, theirs = network(dropout=0), network(dropout=0)
    compiled = replayed(ours)
    data = batches(6)
    for _ in range(RUNS):
        for count in (1, 2, 6):
            for run in (compiled, theirs):
                losses = [(run(x) * y).sum() for x, y in data[:count]]
                for loss in reversed(losses):
                    loss.backward()
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_a_backward_runs_twice():
    ours, theirs = network(dropout=0), network(dropout=0)
    compiled = replayed(ours)
    for x, y in batches():
        for run in (compiled, theirs):
            loss = (run(x) * y).sum()
            loss.backward(retain_graph=True)
            loss.backward()
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_parameters_that_move():
    ours, theirs = network(dropout=0), network(dropout=0)
    compiled = replayed(ours)
    for i, (x, y) in enumerate(batches(4 * RUNS)):
        if i % RUNS == RUNS - 1:
            for model in (ours, theirs):
                for p in model.parameters():
                    p.data = p.data.clone() * 0.5
        for run in (compiled, theirs):
            (run(x) * y).sum().backward()
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_a_storage_that_is_taken_away():
    """Gradients lie in the capture's memory; a resized one leaves that."""
    ours, theirs = network(dropout=0), network(dropout=0)
    compiled = replayed(ours)
    for x, y in batches():
        for run in (compiled, theirs):
            (run(x) * y).sum().backward()
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
        for model in (ours, theirs):
            for p in model.parameters():
                p.grad.untyped_storage().resize_(0)
            model.zero_grad()
    assert captured_runs() == 2


def test_memory_that_another_library_has():
    ours, kept = network(dropout=0), []
    compiled = replayed(ours)
    for x, y in batches():
        (compiled(x) * y).sum().backward()
        gradient = ours.first.weight.grad
        kept.append((gradient.clone(), torch.utils.dlpack.to_dlpack(gradient)))
        ours.zero_grad()
        del gradient
    for expected, capsule in kept:
        assert_same(torch.utils.dlpack.from_dlpack(capsule), expected)


def test_memory_that_another_stream_uses():
    ours = network(dropout=0)
    compiled, side = replayed(ours), torch.graft.Stream()
    for x, y in batches():
        (compiled(x) * y).sum().backward()
        expected = [p.grad.clone() for p in ours.parameters()]
        for p in ours.parameters():
            p.grad.record_stream(side)
        assert_same([p.grad for p in ours.parameters()], expected)
        ours.zero_grad()
    assert captured_runs() == 1 + _replays.GENERATIONS


# --- where they run ---


def test_streams():
    model, x = network().eval(), torch.randn(3, 8, device="graft")
    compiled = replayed(model)
    with torch.no_grad():
        expected = model(x)
        torch.graft.synchronize()
        for _ in range(RUNS):
            for stream in (torch.graft.default_stream(), torch.graft.Stream()):
                with torch.graft.stream(stream):
                    result = compiled(x)
                stream.synchronize()
                assert_same(result, expected)


def test_threads():
    model = network().eval()
    compiled, failures = replayed(model), []
    inputs = [torch.randn(3, 8, device="graft") for _ in range(4)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        for _ in range(RUNS):
            compiled(inputs[0])

    def work(x, result):
        with torch.no_grad():
            for _ in range(30):
                if not torch.equal(compiled(x), result):
                    failures.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert not failures


def test_within_a_capture_of_the_users():
    model, x = network().eval(), torch.randn(3, 8, device="graft")
    compiled = replayed(model)
    with torch.no_grad():
        for _ in range(RUNS):
            compiled(x)
        graph = torch.graft.Graph()
        with torch.graft.graph(graph):
            y = compiled(x)
        x.copy_(torch.randn(3, 8))
        graph.replay()
        assert_same(y, model(x))


def test_modes_of_the_thread():
    def function(x):
        return x @ x, x + torch.ones(4, device="graft")

    compiled = replayed(function)
    x = torch.randn(4, 4, device="graft")
    for deterministic in (False, True, False):
        torch.use_deterministic_algorithms(deterministic)
        try:
            for _ in range(RUNS):
                assert_same(compiled(x), function(x))
        finally:
            torch.use_deterministic_algorithms(False)


# --- what is not replayed ---


def _with_an_item(x):
    return x * x.sum().item()


def _with_a_break(x):
    y = x.exp()
    torch._dynamo.graph_break()
    return y * 2


def _with_a_fallback(x):
    return torch.poisson(x.abs()) * 0 + x


def _with_a_tensor_elsewhere(x):
    return (x + 1) * torch.arange(5.0).cumsum(0).to(x.device)


NEVER = {
    "a fallback": (_with_a_fallback, "poisson.* runs eagerly"),
    "a tensor elsewhere": (_with_a_tensor_elsewhere, "runs eagerly: it takes or gives a tensor on cpu"),
    "a number that is read": (_with_an_item, None),
    "a break": (_with_a_break, None),
}


@pytest.mark.parametrize("what", NEVER)
def test_what_is_not_replayed_runs(what, reasons):
    function, reason = NEVER[what]
    compiled = replayed(function)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        x = torch.randn(5, device="graft")
        assert_same(compiled(x), function(x))
    if reason:
        assert re.search(f"is not replayed: .*{reason}", reasons()), reasons()
        assert captured_runs() == 0


def test_memory_goes_with_the_program():
    model = network(dropout=0)
    x, y = batches(1)[0]
    (model(x) * y).sum().backward()
    torch.graft.synchronize()
    model.zero_grad()
    gc.collect()
    torch.graft.empty_cache()
    before = torch.graft.memory_allocated()
    compiled = replayed(model)
    for _ in range(RUNS):
        (compiled(x) * y).sum().backward()
    model.zero_grad()
    assert torch.graft.memory_allocated() > before
    del compiled
    torch._dynamo.reset()
    gc.collect()
    assert torch.graft.memory_allocated() == before


def test_a_copy_of_a_model():
    """Each has captures of its own addresses."""
    ours = network(dropout=0)
    other = copy.deepcopy(ours)
    with torch.no_grad():
        other.last.weight.mul_(2)
    compiled = [replayed(model) for model in (ours, other)]
    for x, _ in batches():
        for model, run in zip((ours, other), compiled):
            assert_same(run(x), model(x))
