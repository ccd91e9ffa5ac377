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
from torch_graft._device import library

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


# --- open sizes ---


def recorded():
    return counters["graft"]["graphs"]


@pytest.fixture
def few_sizes(monkeypatch):
    """The limit of sizes that have replays."""
    monkeypatch.setattr(_replays, "SIZES", 3)
    return 3


def test_one_recording_is_replayed_at_each_size():
    model = network().eval()
    compiled, results = replayed(model, dynamic=True), []
    with torch.no_grad():
        for seed in range(RUNS):
            for size in (3, 5, 8, 4):
                torch.manual_seed(seed)
                x = torch.randn(size, 8, device="graft")
                results.append((compiled(x), model(x)))
        for ours, expected in results:
            assert_same(ours, expected)
    assert (captured_runs(), recorded()) == (4, 1)


def test_two_open_sizes():
    def function(x, y):
        return (x @ y).relu().sum(0), x.new_full((y.shape[1], x.shape[0]), x.shape[0] * 2)

    compiled = replayed(function, dynamic=True)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        for rows, columns in ((3, 4), (4, 3), (3, 3), (5, 4)):
            x, y = torch.randn(rows, 6, device="graft"), torch.randn(6, columns, device="graft")
            assert_same(compiled(x, y), function(x, y))
    assert captured_runs() == 4


def test_a_size_that_turns_out_to_be_open():
    """Without dynamic=True the second size makes it so."""
    model = network().eval()
    compiled = replayed(model)
    with torch.no_grad():
        for size in [3] * RUNS + [4, 5, 6] * RUNS:
            x = torch.randn(size, 8, device="graft")
            assert_same(compiled(x), model(x))
    assert (captured_runs(), recorded()) == (4, 2)


def test_beyond_the_limit_of_sizes(few_sizes, reasons):
    model = network().eval()
    compiled, sizes = replayed(model, dynamic=True), range(2, 9)
    with torch.no_grad():
        for seed in range(RUNS):
            torch.manual_seed(seed)
            for size in sizes:
                x = torch.randn(size, 8, device="graft")
                assert_same(compiled(x), model(x))
    assert (captured_runs(), recorded()) == (few_sizes, 1)
    assert reasons().count("is not replayed: it has replays at 3 other sizes, which is the limit") == 1


def test_more_sizes_than_a_graph_keeps():
    """libgraft has made the graph for 16 sizes, and a replay is made of a size whose turn comes when it is forgotten."""
    compiled = replayed(lambda x: x.exp().sum(), dynamic=True)
    for seed in range(RUNS):
        torch.manual_seed(seed)
        for size in range(2, 22):
            x = torch.randn(size, device="graft")
            assert_same(compiled(x), x.exp().sum())
    assert (captured_runs(), recorded()) == (_replays.SIZES, 1)


def sized_batches(sizes, count):
    torch.manual_seed(2)
    return [(torch.randn(n, 8, device="graft"), torch.randn(n, 4, device="graft")) for n in list(sizes) * count]


def train_both(ours, compiled, theirs, without, data):
    """Each as it is and without replays, with the same random numbers; gradients and losses are equal, to the bit."""
    for seed, group in enumerate(data):
        for model, run in ((ours, compiled), (theirs, without)):
            torch.manual_seed(seed)
            losses = [(run(x) * y).square().mean() for x, y in group]
            for loss in losses:
                loss.backward()
            model.losses = [loss.detach() for loss in losses]
        assert_same(ours.losses, theirs.losses)
        assert_same([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])
        for model in (ours, theirs):
            for p in model.parameters():
                with torch.no_grad():
                    p -= 0.1 * p.grad
                p.grad = None


def dynamic_pair():
    ours, theirs = network(), network()
    without = torch.compile(theirs, backend="graft", dynamic=True)
    return ours, replayed(ours, dynamic=True), theirs, without


def test_training_at_several_sizes():
    train_both(*dynamic_pair(), [[each] for each in sized_batches((6, 4, 7), 2 * RUNS)])
    assert captured_runs() == 2 * 3  # a forward and a backward for each


def test_a_backward_finds_what_its_forward_kept(monkeypatch):
    """It is captured once that comes from replays, which it need not copy."""
    capture, found = _replays.Replays._capture, []

    def watching(self, values, key):
        if self.role.warm_up == _replays.WARM_UP_BACKWARD:
            found.append(any(library().is_replayed(values[i]) for i in self.tensors))
        return capture(self, values, key)

    monkeypatch.setattr(_replays.Replays, "_capture", watching)
    train_both(*dynamic_pair(), [[each] for each in sized_batches((6, 4), 2 * RUNS)])
    assert found == [True, True]


def test_training_beyond_the_limit_of_sizes(few_sizes, reasons):
    train_both(*dynamic_pair(), [[each] for each in sized_batches((6, 4, 7, 2, 3), 2 * RUNS)])
    assert captured_runs() == 2 * few_sizes
    assert "which is the limit" in reasons()


def test_sizes_change_between_forward_and_backward():
    """The forward of another size, or two, run before the backward of the first."""
    data = sized_batches((6, 4, 7), 3 * RUNS)
    groups = [data[i : i + 1 + i % 3] for i in range(len(data) - 2)]
    train_both(*dynamic_pair(), groups)
    assert captured_runs() >= 2 * 3


def test_a_buffer_is_written_at_each_size():
    ours, theirs = network(norm=nn.BatchNorm1d), network(norm=nn.BatchNorm1d)
    without = torch.compile(theirs, backend="graft", dynamic=True)
    train_both(ours, replayed(ours, dynamic=True), theirs, without, [[each] for each in sized_batches((6, 4), 2 * RUNS)])
    assert_same(dict(ours.state_dict()), dict(theirs.state_dict()))
    assert captured_runs() == 2 * 2


def test_what_cannot_be_captured_at_one_size(monkeypatch, reasons):
    capture = _replays.Replays._run_captured

    def refusing(self, run, values, index):
        if self._sizes_of(values) == (3,):
            raise RuntimeError("not this one")
        return capture(self, run, values, index)

    monkeypatch.setattr(_replays.Replays, "_run_captured", refusing)
    compiled = replayed(lambda x: x.exp().sum(), dynamic=True)
    for _ in range(RUNS):
        for size in (3, 4, 5):
            x = torch.randn(size, device="graft")
            assert_same(compiled(x), x.exp().sum())
    assert captured_runs() == 2
    assert reasons().count("is not replayed: at (3,), not this one") == 1


def test_what_cannot_be_captured_at_any_size(monkeypatch, reasons):
    def refusing(self, run, values, index):
        raise RuntimeError("not this one")

    monkeypatch.setattr(_replays.Replays, "_run_captured", refusing)
    compiled = replayed(lambda x: x.exp().sum(), dynamic=True)
    for _ in range(RUNS):
        for size in range(2, 12):
            x = torch.randn(size, device="graft")
            assert_same(compiled(x), x.exp().sum())
    assert captured_runs() == 0
    assert reasons().count("not this one") == _replays.FAILURES


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


def test_threads_that_train_one_model():
    """A backward that is not replayed reads what a replay of its forward has left until its calls are made: no replay in
    another thread may write there before."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 9)).to("graft")
    targets = torch.arange(8, device="graft")

    def loss(x):
        return nn.functional.cross_entropy(model(x), targets)

    def gradients(run, x):
        return [gradient.cpu() for gradient in torch.autograd.grad(run(x), list(model.parameters()))]

    inputs = [[torch.randn(8, 32, device="graft") for _ in range(200)] for _ in range(4)]
    expected = [[gradients(loss, x) for x in of_thread] for of_thread in inputs]
    run, wrong = torch.compile(loss, mode="reduce-overhead"), []
    for _ in range(8):
        gradients(run, inputs[0][0])

    def work(k):
        for i, x in enumerate(inputs[k]):
            wrong.extend((k, i) for a, b in zip(gradients(run, x), expected[k][i]) if not torch.equal(a, b))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


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
