"""torch.compile on the device: what becomes a graph, what stays beside it, and that aliases, writes, random numbers and
sizes are eager's."""

import logging
import threading
from types import SimpleNamespace

import pytest
import torch
import torch_graft
from compiled import assert_as_eager, assert_same, beside_graphs, graphs_of, parts
from torch._subclasses import fake_impls
from torch_graft import _device, _program

# --- one graph, by hand ---


def graph_of(function, *inputs):
    """Of what the function calls."""
    library = _device.library()
    recording = library.GraphRecording(inputs[0].device.index)
    values = [recording.input(f"input {i}", tensor) for i, tensor in enumerate(inputs)]
    recording.begin()
    try:
        results = function(*values)
        recording.end()
    finally:
        recording.stop()
    for i, result in enumerate(results if isinstance(results, tuple) else [results]):
        recording.output(f"result {i}", result)
    return recording.compile()


def cache_of(function, *inputs):
    cache = _device.library().GraphCache()
    cache.add(graph_of(function, *inputs), 1)
    return cache


def test_what_a_graph_fits(device):
    x = torch.randn(2, 3, dtype=torch.complex64, device=device)
    cache = cache_of(lambda value: value * 2, x)
    (result,) = cache.run([x])[1]
    assert_same(result, x * 2)
    others = [x.cpu(), x.to(torch.complex128), x[:1], x[0], x.conj(), x.imag, torch._neg_view(x)]
    others += [torch.randn(3, 2, dtype=torch.complex64, device=device).t(), x.to_sparse()]
    assert cache.fits([x]) and not any(cache.fits([other]) for other in others)
    assert all(cache.run([other]) is None for other in others) and cache.run([x, x]) is None
    torch.use_deterministic_algorithms(True)
    try:
        assert not cache.fits([x])
    finally:
        torch.use_deterministic_algorithms(False)


def test_what_a_graph_writes(device):
    cache = cache_of(lambda a, b: a.add_(b), *torch.zeros(2, 4, device=device))
    memory = torch.arange(8.0, device=device)
    first, second, between = memory[:4], memory[4:], memory[2:6]
    before = memory._version
    (result,) = cache.run([first, second])[1]
    assert memory._version > before and first.tolist() == [4, 6, 8, 10] and result.data_ptr() == first.data_ptr()
    assert cache.run([first, between]) is None and first.tolist() == [4, 6, 8, 10]


def test_what_results_share(device):
    """Their storage in PyTorch, too: with each other, and with an input."""
    x = torch.randn(2, 3, device=device)
    cache = cache_of(lambda value: ((doubled := value * 2), doubled.t(), value[1:]), x)
    whole, turned, row = cache.run([x])[1]
    assert_same((whole, turned, row), (x * 2, (x * 2).t(), x[1:]))
    assert turned.untyped_storage()._cdata == whole.untyped_storage()._cdata
    assert row.untyped_storage()._cdata == x.untyped_storage()._cdata


def test_which_graph_goes(device):
    """The one that was not used for longest."""
    sizes = [torch.ones(size, device=device) for size in (2, 3, 4)]
    graphs = [graph_of(lambda value: value + 1, x) for x in sizes]
    cache = _device.library().GraphCache()
    assert [cache.add(graphs[0], 2), cache.add(graphs[1], 2)] == [0, 0]
    assert cache.run([sizes[0]])[0] == graphs[0].serial
    assert cache.add(graphs[2], 2) == graphs[1].serial and len(cache) == 2
    assert [cache.fits([x]) for x in sizes] == [True, False, True]


@pytest.mark.parametrize("read", [lambda x: x.sum().item(), lambda x: x.cpu(), torch.poisson, lambda x: x.nonzero()])
def test_what_is_not_recorded(device, read):
    x = torch.ones(3, device=device)
    state = torch.graft.get_rng_state()
    with pytest.raises(RuntimeError, match="graph|another tensor is on"):
        cache_of(lambda value: read(value * 2), x)
    assert read(x) is not None and (read is torch.poisson or torch.equal(torch.graft.get_rng_state(), state))


# --- aliases and writes ---


def test_an_input_that_is_written(device, programs):
    def function(x, buffer):
        buffer.t()[0].add_(x.sum(1))
        return x.t(), buffer[1:], x + 1

    x, buffer = torch.randn(4, 3, device=device), torch.zeros(4, 3, device=device)
    assert_as_eager(function, x, buffer)
    assert [parts(program.steps) for program in programs] == [["graph"]]
    transposed, tail, _ = torch.compile(function, backend="graft")(x, buffer)
    assert transposed.data_ptr() == x.data_ptr() and tail.data_ptr() == buffer.data_ptr() + 12


def test_a_write_is_counted(device):
    """Autograd sees that what it saved has changed."""
    weight = torch.ones(3, device=device, requires_grad=True)
    buffer = torch.ones(3, device=device)
    saved = (weight * buffer).sum()
    before = buffer._version
    torch.compile(lambda b: b.add_(1), backend="graft")(buffer)
    assert buffer._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


SHARING = {
    "overlapping": (slice(0, 5), slice(2, 7)),
    "between": (slice(0, 8, 2), slice(1, 8, 2)),
    "behind": (slice(4), slice(4, 8)),
}


@pytest.mark.parametrize("name", SHARING)
def test_inputs_that_share_memory(device, name):
    """Overlapping, one's elements between the other's, and behind each other in one storage. The latter two also where a
    graph was recorded for inputs apart; for the first, PyTorch itself goes wrong then, on the CPU, too."""
    first, second = SHARING[name]

    def function(a, b):
        a.add_(1)
        b.mul_(2)
        return a - b

    compiled = torch.compile(function, backend="graft")
    if name != "overlapping":
        compiled(torch.ones(4, device=device), torch.ones(4, device=device))
    ours = torch.arange(8.0, device=device)
    theirs = ours.clone()
    for _ in range(2):
        assert_same((compiled(ours[first], ours[second]), ours), (function(theirs[first], theirs[second]), theirs))


def test_a_view_goes_into_a_graph_that_writes_what_it_views(device, programs):
    def function(x):
        turned, drawn = x.t(), torch.poisson(x)
        result = turned + drawn
        x.add_(drawn)
        return result

    assert_as_eager(function, torch.rand(3, 3, device=device))
    assert "poisson.default" in beside_graphs(programs)


def test_one_tensor_given_twice(device):
    assert_as_eager(lambda x: x.add_(1) * x, torch.randn(3, device=device))
    x = torch.randn(3, device=device)
    assert_same(torch.compile(lambda a, b: a * 2 + b, backend="graft")(x, x), x * 2 + x)


def test_views_of_one_result(device):
    def function(x):
        y = x * 2
        return y, y[1:], y.t(), y.as_strided((2, 2), (1, 2)), y.view(-1)[3:]

    whole, *views = assert_as_eager(function, torch.randn(4, 3, device=device))
    assert all(view.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() for view in views)
    whole.zero_()
    assert not any(view.any() for view in views)


def test_results_lie_as_predicted(device, monkeypatch):
    """Where a kernel's result lies otherwise than its fake tensor, what is returned lies as that does: here as PyTorch
    predicts it of a device that it does not know."""
    convolution, predictions = torch.ops.aten.convolution.default, fake_impls.op_implementations_dict
    monkeypatch.setitem(predictions, convolution, predictions[convolution].__wrapped__)
    layer = torch.nn.Conv2d(3, 4, 3).to(device, memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 6, device=device).contiguous(memory_format=torch.channels_last)
    result = torch.compile(layer, backend="graft")(x)
    assert not layer(x).is_contiguous() and result.is_contiguous()
    torch.testing.assert_close(result, layer(x), rtol=1e-6, atol=1e-6)
    flat = torch.compile(lambda value: layer(value).relu().flatten(1), backend="graft")(x)
    torch.testing.assert_close(flat, layer(x).relu().flatten(1), rtol=1e-6, atol=1e-6)


def test_conjugate_and_negative_bits(device, programs):
    def function(x):
        return torch.view_as_real((x * 2).resolve_conj()), x.imag + 1

    x = torch.randn(3, dtype=torch.complex64, device=device)
    compiled = torch.compile(function, backend="graft")
    for value in (x, x.conj(), x, x.conj()):
        assert_same(compiled(value), function(value))


# --- what is beside graphs ---


def test_a_graph_break(device, programs):
    def function(x):
        y = x * 2
        return (y + 1 if y.sum().item() > 0 else y - 1).relu()

    assert_as_eager(function, torch.ones(5, device=device))
    assert len(programs) == 2 and graphs_of(programs) == 2 and not beside_graphs(programs)


def test_values_and_sizes_that_depend_on_data(device, programs):
    """Captured in one graph of Dynamo's, they are what splits ours."""

    def function(x):
        where = (x * 2).nonzero()
        return (x[where[:, 0]] * 2).sum(), x.new_zeros(int(x.sum().item()))

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        assert_as_eager(function, torch.tensor([1.0, 0, 3], device=device), fullgraph=True)
    (program,) = programs
    assert parts(program.steps)[:2] == ["graph", "nonzero.default"]
    assert "_local_scalar_dense.default" in beside_graphs(programs) and "index.Tensor" not in beside_graphs(programs)


def test_custom_ops_of_the_program(device, programs):
    """A graph would not do again what Python does in them."""
    calls = []

    @torch.library.custom_op("graft_tests::counted", mutates_args=())
    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    counted.register_fake(torch.empty_like)
    assert_as_eager(lambda x: counted(x + 1) - 1, torch.randn(3, device=device), times=3, fullgraph=True)
    assert len(calls) == 6
    assert parts(programs[0].steps) == ["graph", "counted.default", "graph"]


def test_ops_that_leave_the_device(device, programs, caplog):
    with caplog.at_level(logging.INFO, "torch_graft._program"):
        assert_as_eager(lambda x: torch.poisson(x * 2) + torch.rand_like(x), torch.rand(3, device=device))
    assert parts(programs[0].steps) == ["graph", "poisson.default", "graph"]
    assert "poisson (aten.poisson.default) runs eagerly" in caplog.text
    assert "has no kernel for the device and runs on the CPU, which a graph can't hold" in caplog.text
    rows = [row for row in torch_graft.fallbacks() if row.op == "aten::poisson"]
    assert rows and rows[0].way == "PyTorch CPU"


def test_ops_of_several_results_that_leave_the_device(device, programs, monkeypatch):
    """Their results are taken apart beside the graphs, too."""
    record = _program._record_node

    def record_no_sort(node, *arguments):
        if node.target is torch.ops.aten.sort.default:
            raise _program._Refused(node, "planted")
        return record(node, *arguments)

    monkeypatch.setattr(_program, "_record_node", record_no_sort)

    def function(x):
        values, indices = (x * 2).sort()
        return values + 1, indices * 2

    for _ in range(3):
        assert_as_eager(function, torch.randn(5, device=device))
    assert all(parts(each.steps) == ["graph", "sort.default", "getitem", "getitem", "graph"] for each in programs)


def test_tensors_of_the_cpu(device, programs):
    def function(x, host):
        number = host.sum()
        return x * number + torch.tensor([1.0, 2.0], device=x.device), host * 2

    assert_as_eager(function, torch.randn(2, device=device), torch.randn(3))
    assert graphs_of(programs) and "mul.Tensor" in beside_graphs(programs)


def test_numbers_in_tensors_of_the_cpu(device, programs):
    """What the program says is a constant of the graph."""

    def function(x):
        return torch.where(x > torch.tensor(0.5), x, torch.tensor(-1.5, dtype=torch.float64)) * torch.tensor(3)

    assert_as_eager(function, torch.rand(4, device=device, dtype=torch.bfloat16))
    assert graphs_of(programs) == 1 and set(beside_graphs(programs)) == {"lift_fresh_copy.default"}


def test_two_devices(device, other, programs):
    def function(x):
        return ((x * 2).to(other).exp() + 1).to(device) * 3

    assert_as_eager(function, torch.randn(4, device=device))
    assert parts(programs[0].steps) == ["graph", "_to_copy.default", "graph", "_to_copy.default", "graph"]


def test_control_flow(device, programs):
    def function(x):
        return torch.cond(x.sum() > 0, lambda value: value + 1, lambda value: value - 1, (x,)) * 2

    for sign in (1, -1):
        assert_as_eager(function, sign * torch.ones(4, device=device))
    assert parts(programs[0].steps) == ["graph", "cond", "getitem", "graph"]


def test_gradients_of_gradients_are_refused(device):
    x = torch.randn(3, device=device, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.compile(torch.sin, backend="graft")(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        gradient.sum().backward()


def test_a_failing_call_is_that_of_eager(device, programs):
    table, compiled = torch.randn(3, 2, device=device), torch.compile(lambda t, i: t[i] * 2, backend="graft")
    assert_same(compiled(table, torch.tensor([2], device=device)), table[2:] * 2)
    for _ in range(2):
        with pytest.raises((RuntimeError, IndexError), match="out of (range|bounds)"):
            compiled(table, torch.tensor([7], device=device)).tolist()
    assert_same(compiled(table, torch.tensor([1], device=device)), table[1:2] * 2)


# --- random numbers ---


def test_random_ops_draw_what_eager_draws(device, programs):
    def function(x):
        return (
            *(torch.nn.functional.dropout(x, 0.3), torch.rand_like(x), torch.randn(4, device=x.device)),
            *(torch.bernoulli(x.sigmoid()), torch.randint(10, (3,), device=x.device), x.clone().exponential_()),
            *(torch.multinomial(x.softmax(-1), 2), torch.randperm(6, device=x.device), x.clone().normal_(1, 2)),
        )

    assert_as_eager(function, torch.randn(4, 6, device=device), times=3)
    assert graphs_of(programs) == 1 and not beside_graphs(programs)


def test_recording_draws_nothing(device):
    """Also where it fails behind a random op, and the piece is recorded again."""
    assert_as_eager(lambda x: torch.poisson(torch.rand_like(x)) + torch.rand_like(x), torch.ones(3, device=device))


# --- sizes ---


def test_one_graph_serves_all_sizes(device, programs):
    def function(x):
        rows, columns = x.shape
        half = x.view(rows * columns)[: rows * columns // 2]
        return half.sum() * rows, torch.arange(rows, device=x.device) + rows, x.new_zeros(rows, columns * 2)

    compiled = torch.compile(function, backend="graft", dynamic=True)
    for rows in [*range(2, 8), *range(7, 1, -1), 40]:
        x = torch.randn(rows, 11, device=device)
        assert_same(compiled(x), function(x))
    x = torch.randn(5, 23, device=device)
    assert_same(compiled(x), function(x))
    assert len(programs) == 1 and graphs_of(programs) == 1


def test_sizes_that_change_become_open(device, programs):
    """PyTorch compiles once more when a size has changed, and that is for all others."""
    compiled = torch.compile(lambda x: x.exp() @ x.T, backend="graft")
    for rows in (3, 4, 5, 9, 4):
        x = torch.randn(rows, 6, device=device)
        assert_same(compiled(x), x.exp() @ x.T)
    assert [graphs_of([program]) for program in programs] == [1, 1]


def test_one_graph_trains_at_all_sizes(device, programs):
    """Forward and backward; the mean divides by the batch, and a view joins two open sizes."""
    layers = torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
    model = torch.nn.Sequential(*layers).to(device)

    def loss(x, labels):
        return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), labels.flatten())

    compiled = torch.compile(loss, backend="graft", dynamic=True)
    for rows, length in ((4, 5), (3, 7), (2, 2), (9, 4)):
        x, labels = torch.randn(rows, length, 6, device=device), torch.randint(0, 3, (rows, length)).to(device)
        results = []
        for function in (compiled, loss):
            model.zero_grad()
            value = function(x, labels)
            value.backward()
            results.append([value.detach(), *(parameter.grad for parameter in model.parameters())])
        assert_same(*results)
    assert [graphs_of([program]) for program in programs] == [1, 1] and set(beside_graphs(programs)) <= {"mul"}


def test_unsafe_indices_of_all_sizes(device, programs):
    """Ops that F.interpolate and others decompose to; with a gradient, which puts where they took."""

    def function(x, i, j):
        both = torch.ops.aten._unsafe_index(x, [i, j])
        columns = torch.ops.aten._unsafe_index(x, [None, j])
        return both * x.shape[0], columns, torch.ops.aten._unsafe_index_put(x, [None, j], columns * 2, True)

    compiled = torch.compile(function, backend="graft", dynamic=True)
    for rows in (3, 4, 7):
        i, j = torch.randint(0, rows, (rows, 1)).to(device), torch.randint(0, 5, (6,)).to(device)
        results = []
        for each in (compiled, function):
            torch.manual_seed(rows)
            x = torch.randn(rows, 5, device=device, requires_grad=True)
            made = each(x, i, j)
            sum(value.sum() for value in made).backward()
            results.append([*(value.detach() for value in made), x.grad])
        assert_same(*results)
    assert [graphs_of([program]) for program in programs] == [1, 1] and not beside_graphs(programs)


def test_root_mean_square_norms_of_all_sizes(device, programs):
    """PyTorch's own hands an op that takes numbers the sizes that it traces."""

    def function(x, weight):
        return torch.nn.functional.rms_norm(x, x.shape[-1:]) + torch.rms_norm(x, x.shape, weight, 0.25)

    compiled = torch.compile(function, backend="graft", dynamic=True)
    for rows, columns in ((3, 5), (4, 7), (2, 9)):
        results = []
        for each in (compiled, function):
            torch.manual_seed(rows)
            leaves = [torch.randn(rows, columns, device=device, requires_grad=True) for _ in range(2)]
            made = each(*leaves)
            made.square().sum().backward()
            results.append([made.detach(), *(leaf.grad for leaf in leaves)])
        torch.testing.assert_close(*results)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*leaves), function(*leaves))
    with pytest.raises(RuntimeError, match="normalized_shape"):
        torch.compile(lambda x: torch.rms_norm(x, [x.shape[0] + 1]), backend="graft", dynamic=True)(leaves[0])
    assert graphs_of(programs) <= 3


def test_inputs_of_all_sizes_are_written(device, programs):
    def function(x, y):
        y.add_(x.sum(0))
        return y * x.shape[0]

    compiled = torch.compile(function, backend="graft", dynamic=True)
    for rows in (3, 4, 6):
        x, y = torch.randn(rows, 5, device=device), torch.randn(5, device=device)
        expected = y.clone()
        assert_same(compiled(x, y), function(x, expected))
        assert torch.equal(y, expected)
    assert graphs_of(programs) == 1


def test_random_numbers_of_all_sizes(device, programs):
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x), backend="graft", dynamic=True)
    for rows in (3, 4, 6):
        x, results = torch.ones(rows, 5, device=device), []
        for function in (compiled, lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)):
            torch.manual_seed(rows)
            results.append([function(x), torch.rand(2, device=device)])
        assert_same(*results)


def test_sizes_at_which_a_call_cannot_be_made_have_their_own_recording(device, programs, caplog):
    compiled = torch.compile(lambda x: x.exp() * x.shape[0], backend="graft", dynamic=True)
    compiled(torch.randn(3, 5, device=device))

    class Failing:
        def run(self, tensors, let_go):
            raise _device.library().SizesFailed("graft: call 0 of the graph, made for s0 = 4: aten::exp: no")

        def fits(self, tensors):
            return False

        def __len__(self):
            return 1

    piece = next(step for step in programs[0].steps if isinstance(step, _program._Piece))
    next(iter(piece.variants.values())).cache = Failing()
    with caplog.at_level(logging.INFO, "torch_graft._program"):
        for _ in range(2):
            x = torch.randn(4, 5, device=device)
            assert_same(compiled(x), x.exp() * 4)
    assert graphs_of(programs) == 2 and "a recording of its own: graft: call 0 of the graph" in caplog.text


def test_sizes_that_a_graph_cannot_have(device):
    """Its error is one that Python knows; what an input has wrong is another one, of no graph that fits."""
    library = _device.library()
    recording = library.OpenRecording(torch.graft.current_device())
    rows = recording.size("n", 4, 1, 100)
    x = recording.input("x", torch.ones(4, 5, device=device), [rows, recording.size_of(1, rows, 1)], [])
    recording.begin()
    (y,) = recording.call("aten::view", "TI", [0, [2, 10]], [x], [None])
    recording.end()
    recording.output("y", y)
    cache = library.GraphCache()
    cache.add(recording.compile(), 1)
    assert cache.run([torch.ones(4, 5, device=device)])[1][0].shape == (2, 10)
    with pytest.raises(library.SizesFailed, match="made for n = 5"):
        cache.run([torch.ones(5, 6, device=device)])
    assert cache.run([torch.ones(5, 5, device=device)]) is None


def test_what_cannot_be_said_is_recorded_for_each_size(device, programs, caplog):
    """A quotient with a fraction is none of the sizes; the log says so."""

    def function(x):
        return x.exp() * (x.shape[0] / 4)

    compiled = torch.compile(function, backend="graft", dynamic=True)
    with caplog.at_level(logging.INFO, "torch_graft._program"):
        for rows in (3, 4, 5):
            x = torch.randn(rows, 5, device=device)
            assert_same(compiled(x), function(x))
    assert graphs_of(programs) == 3 and "takes truediv, a number with a fraction" in caplog.text


def test_sizes_go_from_graph_to_graph(device, programs):
    """Also those that the first one computes."""

    def function(x):
        doubled = x * 2
        count = x.shape[0] * x.shape[1]
        drawn = torch.poisson(doubled.reshape(count))
        return drawn + torch.arange(count, device=x.device), x.new_ones(count // 2)

    compiled = torch.compile(function, backend="graft", dynamic=True)
    for rows in (3, 4, 7, 3):
        x = torch.rand(rows, 11, device=device)
        torch.manual_seed(rows)
        expected = function(x)
        torch.manual_seed(rows)
        assert_same(compiled(x), expected)
    assert len(programs) == 1 and beside_graphs(programs) in (["poisson.default"], ["mul", "poisson.default"])


def test_graphs_are_not_kept_without_end(device, programs, monkeypatch, caplog):
    """Beyond the limit, sizes that come once run eagerly, and those that come again take the place of the oldest."""
    monkeypatch.setattr(_program, "LIMIT", 3)
    compiled = torch.compile(lambda x: (x + 1) * (x.shape[0] / 4), backend="graft", dynamic=True)

    def graphs_after(rows):
        x = torch.randn(rows, 11, device=device)
        assert_same(compiled(x), (x + 1) * (rows / 4))
        return graphs_of(programs)

    with caplog.at_level(logging.INFO, "torch_graft._program"):
        assert [graphs_after(rows) for rows in range(2, 9)] == [1, 2, 3, 3, 3, 3, 3]
        assert "more than 3 graphs" in caplog.text
        made = torch._dynamo.utils.counters["graft"]["graphs"]
        assert [graphs_after(8), graphs_after(8), graphs_after(4)] == [3, 3, 3]
    assert torch._dynamo.utils.counters["graft"]["graphs"] == made + 1


def test_whole_numbers(device, programs):
    """Where the program gives others, the tensors being as before, it is another graph."""

    def function(x, number):
        return x + number, x[:, :number] * (number / 4)

    compiled, x = torch.compile(function, backend="graft", dynamic=True), torch.randn(3, 11, device=device)
    for number in (2, 3, 5, 3, 2):
        assert_same(compiled(x, number), function(x, number))
    assert graphs_of(programs) == 3 and set(beside_graphs(programs)) <= {"truediv", "mul"}


def test_numbers_with_fractions(device, programs):
    """Each call may have another one, so that none gets a graph of its own."""

    def function(x, number):
        return (x * number).exp()

    compiled, x = torch.compile(function, backend="graft"), torch.randn(3, device=device)
    for number in (0.5, 0.25, 0.7, 1.5):
        assert_same(compiled(x, number), function(x, number))
    assert graphs_of(programs) <= 2


@pytest.mark.skipif(torch.__version__ < "2.13", reason="PyTorch compares the exponent while it traces up to 2.12")
def test_numbers_that_were_read(device, programs):
    def function(x):
        return x.sigmoid() ** x.sum().item()

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend="graft", fullgraph=True)
        for _ in range(3):
            x = torch.rand(3, device=device)
            assert_same(compiled(x), function(x))
    assert graphs_of(programs) == 1 and "_local_scalar_dense.default" in beside_graphs(programs)


def test_empty_tensors(device):
    assert_as_eager(lambda x: torch.cat([x, x * 2]).sum(0), torch.randn(0, 3, device=device))


# --- modes of the process, threads, streams ---


def test_the_default_dtype(device):
    function = lambda x: x.to(torch.int32) / 2  # noqa: E731
    compiled, x = torch.compile(function, backend="graft"), torch.tensor([1.0, 3.0], device=device)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            result = compiled(x)
            assert result.dtype == dtype and result.tolist() == [0.5, 1.5]
    finally:
        torch.set_default_dtype(torch.float32)


def test_deterministic_algorithms(device):
    """A graph that was recorded without is not run with them."""
    compiled = torch.compile(lambda t, i, x: t.index_add(0, i, x), backend="graft")
    arguments = torch.zeros(3, device=device), torch.tensor([0, 1, 0, 0], device=device), torch.randn(4, device=device)
    compiled(*arguments)
    before = torch._dynamo.utils.counters["graft"]["graphs"]
    torch.use_deterministic_algorithms(True)
    try:
        assert_same(compiled(*arguments), arguments[0].index_add(0, *arguments[1:]))
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch._dynamo.utils.counters["graft"]["graphs"] == before + 1


def test_threads(device):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).to(device).requires_grad_(False)
    compiled = torch.compile(model, backend="graft", dynamic=True)
    inputs = [torch.randn(rows, 4, device=device) for rows in range(2, 7)]
    expected, wrong = [model(x) for x in inputs], []
    compiled(inputs[0])

    def work():
        try:
            for x, y in zip(inputs * 3, expected * 3):
                assert_same(compiled(x), y)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_streams(device):
    compiled, x = torch.compile(lambda x: (x @ x).relu(), backend="graft"), torch.randn(8, 8, device=device)
    torch.graft.synchronize()
    stream = torch.graft.Stream()
    for _ in range(2):
        with torch.graft.stream(stream):
            result = compiled(x)
    stream.synchronize()
    assert_same(result, (x @ x).relu())


# --- who is asked ---


def test_the_default_backend(device, programs):
    """Asked with a tensor of the device, and where one is only made inside."""
    assert_same(torch.compile(lambda x: x.sin() + 1)(torch.ones(3, device=device)), torch.ones(3, device=device).sin() + 1)
    result = torch.compile(lambda: torch.ones(3, device="graft").cumsum(0))()
    assert result.tolist() == [1, 2, 3] and result.device == device
    mixed = torch.compile(lambda x: x + torch.ones(3, device="graft").cpu())(torch.ones(3))
    assert mixed.tolist() == [2, 2, 2] and mixed.device.type == "cpu"
    assert len(programs) == 3


def test_graphs_of_the_cpu_are_inductors(python):
    """Untouched, options included, and before and after a graph of ours; ours is named beside the others."""
    python(
        """
        import torch, torch._inductor.compile_fx as compile_fx
        assert "graft" in torch._dynamo.list_backends()
        seen = []
        original = compile_fx.compile_fx.__wrapped__
        def spy(model, inputs, *args, **kwargs):
            seen.append((len(inputs), kwargs.get("config_patches")))
            return model.forward
        compile_fx.compile_fx.__closure__[
            compile_fx.compile_fx.__code__.co_freevars.index("original")
        ].cell_contents = spy
        function = torch.compile(lambda x: x * 2, options={"max_autotune": True})
        for device in ("cpu", "graft", "cpu"):
            torch._dynamo.reset()
            assert function(torch.ones(2, device=device)).tolist() == [2, 2]
        assert len(seen) == 2 and seen[0] == (1, {"max_autotune": True}), seen
        """
    ).ok()


def test_importing_torch_imports_none_of_it(python):
    out = python('import sys, torch; print([m for m in ("torch._dynamo", "torch_graft._program") if m in sys.modules])').ok()
    assert out.out.strip() == "[]"


def test_a_device_of_another_name(python):
    python(
        """
        import torch
        for backend in ("graft", "mychip", "inductor"):
            torch._dynamo.reset()
            result = torch.compile(lambda x: x * 2 + 1, backend=backend)(torch.ones(2, device="mychip"))
            assert result.tolist() == [3, 3] and result.device.type == "mychip"
        """,
        GRAFT_TORCH_DEVICE_NAME="mychip",
    ).ok()


def test_what_is_asked_wrongly(device, monkeypatch):
    x = torch.ones(2, device=device)
    for options, text in [
        ({"mode": "fastest"}, r"has no mode 'fastest'; expected one of"),
        ({"options": {"max_autotune": True}}, r"has no option 'max_autotune'; expected \"passes\""),
    ]:
        torch._dynamo.reset()
        with pytest.raises(Exception, match=text):
            torch.compile(lambda value: value + 1, backend="graft", **options)(x)
    torch._dynamo.reset()
    with pytest.raises(Exception, match="-nonsense"):
        torch.compile(lambda value: value + 1, backend="graft", options={"passes": "-nonsense"})(x)
    torch._dynamo.reset()
    assert torch.compile(lambda value: value + 1, backend="graft", options={"passes": "none"})(x).tolist() == [2, 2]
    torch._dynamo.reset()
    assert torch.compile(lambda value: value + 1, backend="graft", mode="lite")(x).tolist() == [2, 2]
    torch._dynamo.reset()
    monkeypatch.setenv("GRAFT_GRAPH_PASSES", "-nonsense")
    with pytest.raises(Exception, match="GRAFT_GRAPH_PASSES"):
        torch.compile(lambda value: value + 1, backend="graft")(x)


def test_a_refused_graph_is_warned_of(device, monkeypatch):
    library = _device.library()

    class Refusing(library.GraphRecording):
        def compile(self, passes):
            raise RuntimeError("the plugin's answer is wrong")

    parts = {"is_recordable": library.is_recordable, "GraphCache": library.GraphCache}
    monkeypatch.setattr(_device, "library", lambda: SimpleNamespace(GraphRecording=Refusing, **parts))
    x = torch.ones(2, device=device)
    with pytest.warns(UserWarning, match="nodes run eagerly, since their graph was refused: the plugin's answer is wrong"):
        assert torch.compile(lambda value: value + 1, backend="graft")(x).tolist() == [2, 2]
