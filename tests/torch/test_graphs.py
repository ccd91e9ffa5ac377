"""Captures, as torch.cuda.graphs has them: what a replay gives is what the calls give, to the bit."""

import gc

import pytest
import torch
import torch_graft

STEPS = 10


def captured(function, **options):
    """The graph of a call, and what the call returned."""
    graph = torch.graft.Graph()
    with torch.graft.graph(graph, **options):
        result = function()
    return graph, result


def equal(a, b):
    return torch.equal(a.cpu(), b.cpu())


# --- replays ---


def test_a_replay_reads_new_contents(device):
    x = torch.randn(5, 7, device=device)

    def call():
        return torch.tanh(x.t().half().float() * 1.5 + x.t()).softmax(0)

    graph, y = captured(call)
    assert graph.count() > 2
    for _ in range(3):
        x.copy_(torch.randn(5, 7))
        graph.replay()
        assert equal(y, call())


def test_captured_calls_do_not_run(device):
    x = torch.zeros(4, device=device)
    graph = torch.graft.Graph()
    assert not torch.graft.is_current_stream_capturing()
    with torch.graft.graph(graph):
        assert torch.graft.is_current_stream_capturing()
        for _ in range(3):
            x += 1
    assert not torch.graft.is_current_stream_capturing()
    assert x.sum().item() == 0
    graph.replay()
    graph.replay()
    assert x.tolist() == [6, 6, 6, 6]


def test_dropout_advances_as_eagerly(device):
    x = torch.ones(100, device=device)

    def call():
        return torch.dropout(x, 0.5, True) + torch.rand(100, device=device)

    torch.manual_seed(7)
    eager = [call().cpu() for _ in range(STEPS)]
    state = torch.graft.get_rng_state()
    torch.manual_seed(7)
    graph, y = captured(call)
    for expected in eager:
        graph.replay()
        assert equal(y, expected)
    assert torch.equal(torch.graft.get_rng_state(), state)


def test_beginning_and_end_by_hand(device):
    x = torch.ones(3, device=device)
    stream, graph = torch.graft.Stream(), torch.graft.Graph()
    with pytest.raises(RuntimeError, match="default one"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="nothing yet"):
        graph.replay()
    torch.graft.synchronize()
    with torch.graft.stream(stream):
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="already"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="under way"):
            torch.graft.Graph().capture_begin()
        y = x * 2
        graph.capture_end()
    graph.replay()
    assert y.tolist() == [2, 2, 2]
    graph.reset()
    with pytest.raises(RuntimeError, match="nothing yet"):
        graph.replay()
    assert y.tolist() == [2, 2, 2]
    with torch.graft.graph(graph):
        z = x * 3
    graph.replay()
    assert z.tolist() == [3, 3, 3]


# --- training ---


def network(device):
    torch.manual_seed(1)
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers).to(device)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_whole_step_is_captured(device, optimizer):
    torch_graft.reset_fallbacks()
    inputs = [(torch.randn(6, 8), torch.randint(4, (6,))) for _ in range(STEPS)]
    x, y = torch.zeros(6, 8, device=device), torch.zeros(6, dtype=torch.int64, device=device)

    def prepared():
        model = network(device)
        return model, OPTIMIZERS[optimizer](model.parameters())

    def step(model, steps):
        steps.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        steps.step()
        return loss

    def warmed():
        model, steps = prepared()
        stream = torch.graft.Stream()
        stream.wait_stream(torch.graft.current_stream())
        with torch.graft.stream(stream):
            for _ in range(3):
                step(model, steps)
        torch.graft.current_stream().wait_stream(stream)
        torch.manual_seed(2)
        return model, steps

    losses = []
    model, steps = warmed()
    for images, labels in inputs:
        x.copy_(images), y.copy_(labels)
        losses.append(step(model, steps).item())
    expected = [p.detach().cpu() for p in model.parameters()]
    x.zero_(), y.zero_()
    model, steps = warmed()
    graph, loss = captured(lambda: step(model, steps))
    for (images, labels), was in zip(inputs, losses, strict=True):
        x.copy_(images), y.copy_(labels)
        graph.replay()
        assert loss.item() == was
    assert all(equal(p, q) for p, q in zip(model.parameters(), expected, strict=True))
    assert not torch_graft.fallbacks()


PLAIN = "Adadelta Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop".split()


@pytest.mark.parametrize("name", PLAIN)
def test_steps_counted_on_the_cpu_are_refused(device, name):
    """A replay would repeat the step's number: Adam's bias correction, for one."""
    model, x = torch.nn.Linear(4, 2).to(device), torch.randn(6, 4, device=device)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
    model(x).sum().backward()
    optimizer.step()
    before = model.weight.detach().cpu()
    with pytest.raises(RuntimeError, match=f"^{name}: step.. is captured on graft:0, but capturable is False"):
        captured(optimizer.step)
    assert equal(model.weight, before)
    optimizer.step()
    assert not equal(model.weight, before)


def test_steps_elsewhere_go_on_during_a_capture(device):
    host = torch.nn.Linear(4, 2)
    optimizer = torch.optim.Adam(host.parameters())
    host(torch.randn(6, 4)).sum().backward()
    before, x = host.weight.detach().clone(), torch.ones(3, device=device)

    def both():
        optimizer.step()
        return x * 2

    captured(both)
    assert not equal(host.weight, before)


@pytest.mark.filterwarnings("error:The AccumulateGrad node")
def test_graphed_callables(device):
    first, second = network(device), torch.nn.Linear(4, 2).to(device)
    plain = network(device), torch.nn.Linear(4, 2).to(device)
    plain[1].load_state_dict(second.state_dict())
    x = torch.randn(6, 8, device=device, requires_grad=True)
    hidden = torch.randn(6, 4, device=device, requires_grad=True)
    graphed = torch.graft.make_graphed_callables((first, second), ((x,), (hidden,)))
    torch.manual_seed(3)
    values = [torch.randn(6, 8) for _ in range(STEPS)]

    def run(models):
        torch.manual_seed(4)
        results = []
        for value in values:
            given = value.to(device).requires_grad_()
            loss = models[1](models[0](given)).square().mean()
            loss.backward()  # gradients add up
            results += [loss.detach().cpu(), given.grad.cpu()]
        return results + [p.grad.cpu() for model in models for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(run(graphed), run(plain), strict=True))
    first.eval(), plain[0].eval()
    assert equal(first(x), plain[0](x))


def test_a_graphed_function_with_outputs_of_both_kinds(device):
    def function(a, b):
        return {"sum": a * b, "largest": a.argmax()}

    a, b = torch.randn(5, device=device, requires_grad=True), torch.randn(5, device=device)
    graphed = torch.graft.make_graphed_callables(function, (a, b))
    given = torch.randn(5, device=device, requires_grad=True)
    result = graphed(given, b)
    result["sum"].sum().backward()
    assert equal(given.grad, b) and result["largest"].item() == given.argmax().item()
    assert not result["largest"].requires_grad
    with pytest.raises(TypeError, match="tensors only"):
        torch.graft.make_graphed_callables(function, (a, 2))


def test_what_is_graphed_is_on_the_device(device):
    x, host = torch.randn(6, 8, device=device), torch.randn(6, 8)
    with pytest.raises(ValueError, match=r"sample_args a tensor \(torch.float32, \[6, 8\]\) is on cpu; expected graft"):
        torch.graft.make_graphed_callables(network(device), (host,))
    with pytest.raises(ValueError, match=r"0.weight .* is on cpu; expected graft"):
        torch.graft.make_graphed_callables(network("cpu"), (x,))
    norm = torch.nn.BatchNorm1d(8).to(device)
    norm.running_var = norm.running_var.cpu()
    with pytest.raises(ValueError, match=r"running_var .* is on cpu; expected graft"):
        torch.graft.make_graphed_callables(norm, (x,))


def test_an_empty_graph_warns(device):
    host = torch.ones(3)
    with pytest.warns(UserWarning, match="The graph is empty"):
        graph, _ = captured(lambda: host + 1)
    assert graph.count() == 0
    graph.replay()


# --- memory ---


def test_graphs_share_a_pool(device):
    pool, x = torch.graft.graph_pool_handle(), torch.ones(1 << 20, device=device)
    assert pool != torch.graft.graph_pool_handle()
    torch.graft.empty_cache()
    before = torch.graft.memory_reserved()

    def call():
        for _ in range(8):
            y = x * 2
        return y.sum()

    first, one = captured(call, pool=pool)
    held = torch.graft.memory_reserved() - before
    second, other = captured(call, pool=first.pool())
    assert first.pool() == second.pool() == pool and second.pool() != captured(call)[0].pool()
    gc.collect()
    torch.graft.empty_cache()
    assert torch.graft.memory_reserved() - before <= held < 16 * x.nbytes
    first.replay(), second.replay()
    assert one.item() == other.item() == 2 << 20
    del first, second, one, other
    gc.collect()
    torch.graft.empty_cache()
    assert torch.graft.memory_reserved() == before


def test_inputs_are_held(device):
    x = torch.full((1000,), 3.0, device=device)
    graph, y = captured(lambda: x * 2)
    del x
    others = [torch.full((1000,), float(i), device=device) for i in range(8)]
    graph.replay()
    assert y.eq(6).all().item() and all(t.eq(i).all().item() for i, t in enumerate(others))


# --- refusals ---

REFUSED = {
    "item": (lambda x: x.sum().item(), "copying to the host can't be captured"),
    "cpu": (lambda x: x.cpu(), "copying to the host can't be captured"),
    "nonzero": (lambda x: x.nonzero(), "nonzero"),
    "mask": (lambda x: x[x > 0], "can't be captured"),
    "from the host": (lambda x: x.copy_(torch.randn(4)), "copying from the host can't be captured"),
    "fallback": (lambda x: torch.poisson(x.abs()), "poisson.*can't be captured"),
    "generator": (lambda x: x.uniform_(generator=torch.Generator(x.device)), "another generator"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_waits_is_refused(device, what):
    call, text = REFUSED[what]
    x = torch.arange(4.0, device=device)
    graph = torch.graft.Graph()
    with pytest.raises((RuntimeError, NotImplementedError), match=text):
        with torch.graft.graph(graph):
            y = x * 2
            call(x)
    assert not torch.graft.is_current_stream_capturing()
    assert x.tolist() == [0, 1, 2, 3]
    with torch.graft.graph(graph):
        y = x * 2
    graph.replay()
    assert y.tolist() == [0, 2, 4, 6]


def test_an_error_passes_through(device):
    x, graph = torch.ones(3, device=device), torch.graft.Graph()
    with pytest.raises(ZeroDivisionError):
        with torch.graft.graph(graph):
            x.add_(1 / 0)
    with pytest.raises(RuntimeError, match="shapes do not broadcast"):
        with torch.graft.graph(graph):
            x + torch.ones(2, device=device)
    assert x.tolist() == [1, 1, 1] and torch.graft.current_stream() == torch.graft.default_stream()


# --- by other names ---


@pytest.mark.skipif(not hasattr(torch.accelerator, "Graph"), reason="PyTorch has it from 2.13 on")
def test_the_accelerator_graph(device):
    x, graph = torch.zeros(5, device=device), torch.accelerator.Graph()
    with torch.graft.Stream(), graph:
        x += 1
    assert x.sum().item() == 0
    graph.replay()
    assert x.tolist() == [1] * 5 and len(graph.pool()) == 2
    graph.reset()
    with pytest.raises(RuntimeError, match="nothing yet"):
        graph.replay()


def test_a_compiled_model_is_captured(device):
    torch._dynamo.reset()
    model = network(device).eval()
    compiled, x = torch.compile(model), torch.randn(6, 8, device=device)
    with torch.no_grad():
        compiled(x)
        graph, y = captured(lambda: compiled(x))
        x.copy_(torch.randn(6, 8))
        graph.replay()
        assert equal(y, model(x))
