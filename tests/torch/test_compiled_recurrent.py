"""torch.compile of models with recurrent layers: one graph, and bit for bit what they give and learn eagerly."""

import copy
import functools

import pytest
import torch
from compiled import assert_as_eager, assert_same, assert_trains_as_eager, beside_graphs, graphs_of
from test_recurrent import KINDS, OPTIONS
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint


class Model(nn.Module):
    """A recurrent layer between two others."""

    def __init__(self, kind, **options):
        super().__init__()
        self.before, self.layers = nn.Linear(3, 5), KINDS[kind](5, 6, **options)
        width = options.get("proj_size") or 6
        self.behind = nn.Linear(width * (2 if self.layers.bidirectional else 1), 2)

    def forward(self, x, states=None):
        output, last = self.layers(self.before(x), states)
        return self.behind(output), last


class Output(Model):
    def forward(self, x):
        return super().forward(x)[0]


def batches_of(device, shapes=((3, 4), (3, 4), (3, 4))):
    return [(torch.randn(*shape, 3, device=device), torch.randn(*shape, 2, device=device)) for shape in shapes]


def ops_of(programs):
    return [{node.target for node in program.plan.nodes} for program in programs]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_training(device, programs, kind, options):
    model = Output(kind, **OPTIONS[options]).to(device)
    assert_trains_as_eager(model, batches_of(device), {"fullgraph": True}, lr=0.5)
    assert graphs_of(programs) == len(programs) == 2 and not beside_graphs(programs)


@pytest.mark.parametrize("kind", KINDS)
def test_inference_with_given_states(device, programs, kind):
    model = Model(kind, num_layers=2).to(device)
    states = [torch.randn(2, 4, 6, device=device) for _ in range(2)]
    states = tuple(states) if kind == "lstm" else states[0]
    x = torch.randn(3, 4, 3, device=device)
    compiled = torch.compile(model, backend="graft", fullgraph=True)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            for _ in range(2):
                assert_same(compiled(x, states), model(x, states))
    assert not beside_graphs(programs)
    result = compiled(x, states)[0]
    result.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_other_devices_are_left_alone(device):
    """A model of the CPU is parted where it ever was, in the same process."""
    torch._dynamo.reset()
    model = Output("lstm")
    x = torch.randn(3, 4, 3)
    torch.compile(copy.deepcopy(model).to(device), backend="graft", fullgraph=True)(x.to(device))
    assert not torch._dynamo.config.allow_rnn
    with pytest.raises(torch._dynamo.exc.Unsupported, match="RNN"):
        torch.compile(model, backend="eager", fullgraph=True)(x)
    compiled = torch.compile(model, backend="aot_eager")
    assert_same(compiled(x), model(x))


def test_a_model_that_moves(device, programs):
    model, x = Output("gru").to(device), torch.randn(3, 4, 3)
    compiled = torch.compile(model, backend="graft")
    assert_same(compiled(x.to(device)), model(x.to(device)))
    count = len(programs)
    model.cpu()
    assert_same(compiled(x), model(x))
    assert len(programs) == count > 0


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_that_change(device, programs, kind):
    """One graph serves all batches and lengths."""
    model = Output(kind, bidirectional=True).to(device)
    shapes = (7, 4), (5, 4), (6, 2), (4, 9)
    assert_trains_as_eager(model, batches_of(device, shapes), {"fullgraph": True, "dynamic": True}, lr=0.5)
    assert graphs_of(programs) == len(programs) == 2 and set(beside_graphs(programs)) <= {"mul"}  # of sizes


class Checkpointed(Output):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def test_checkpoints(device, programs):
    """The layers are seen as such, though a mode of checkpointing looks on."""
    model = Checkpointed("lstm", num_layers=2).to(device)
    assert_trains_as_eager(model, batches_of(device), {"fullgraph": True}, lr=0.5)
    assert graphs_of(programs) == len(programs) == 2 and not beside_graphs(programs)
    assert all(torch.ops.graft.rnn_layer.default in found for found in ops_of(programs))


def test_dropout_between_layers(device, programs):
    model = Output("lstm", num_layers=3, dropout=0.4).to(device)
    assert_trains_as_eager(model, batches_of(device), {"fullgraph": True}, lr=0.5)
    with torch.no_grad():
        assert_as_eager(model, torch.randn(3, 4, 3, device=device), fullgraph=True)
    assert not beside_graphs(programs)


def test_what_is_kept_for_the_backward(device, programs):
    """Not the gates of the inputs, which eager mode keeps for gradients of gradients."""
    model = Output("lstm").to(device)
    x = torch.randn(7, 4, 3, device=device)
    torch.compile(model, backend="graft")(x).sum().backward()
    ops = ops_of(programs)
    forward = next(each for each, found in zip(programs, ops) if torch.ops.graft.rnn_layer.default in found)
    kept = [node.meta["val"].shape for node in forward.plan.output.args[0] if isinstance(node, torch.fx.Node)]
    assert (7, 4, 30) in kept and (7, 4, 24) not in kept


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS)
def test_autocast(device, programs, kind, dtype):
    model, x = Model(kind, num_layers=2).to(device), torch.randn(3, 4, 3, device=device)

    def lowered(x, run=model):
        with torch.autocast("graft", dtype):
            return run(x)

    inside = torch.compile(lowered, backend="graft", fullgraph=True)
    around = functools.partial(lowered, run=torch.compile(model, backend="graft", fullgraph=True))
    found = []
    for run in (lowered, inside, around):
        model.zero_grad()
        output, last = run(x)
        output.float().square().mean().backward()
        found.append((output.detach(), last, [p.grad.clone() for p in model.parameters()]))
    assert_same(*found[:2])
    assert_same(found[0], found[2])
    assert not beside_graphs(programs)


@pytest.mark.parametrize("options", [{"proj_size": 4}, {"proj_size": 4, "bidirectional": True, "num_layers": 2}])
def test_projections(device, programs, options):
    """As eagerly, by PyTorch's composition."""
    model = Output("lstm", **options).to(device)
    assert_trains_as_eager(model, batches_of(device), {"fullgraph": True}, lr=0.5)
    assert graphs_of(programs) == len(programs) == 2 and not beside_graphs(programs)


class Cells(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.cell, self.behind = kind(5, 6, **options), nn.Linear(6, 2)

    def forward(self, x):
        state, results = None, []
        for step in x.unbind(0):
            state = self.cell(step, state)
            results.append(self.behind(state[0] if isinstance(state, tuple) else state))
        return torch.stack(results)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(device, programs, kind, dynamic, bias):
    shapes = (3, 4), (3, 7), (3, 9)
    batches = [(torch.randn(*shape, 5, device=device), torch.randn(*shape, 2, device=device)) for shape in shapes]
    model = Cells(kind, bias=bias).to(device)
    for x, _ in batches:
        torch._dynamo.mark_static(x, 0)
    assert_trains_as_eager(model, batches if dynamic else batches[:1] * 3, {"fullgraph": True, "dynamic": dynamic}, lr=0.5)
    assert graphs_of(programs) == len(programs) == 2 and set(beside_graphs(programs)) <= {"mul"}  # of sizes


def test_one_sequence_without_a_batch(device, programs):
    model = Model("gru").to(device)
    with torch.no_grad():
        assert_as_eager(model, torch.randn(4, 3, device=device), torch.randn(1, 6, device=device), fullgraph=True)
    assert not beside_graphs(programs)


class Packed(Model):
    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.before(x), lengths, enforce_sorted=False)
        output, last = self.layers(packed)
        return self.behind(pad_packed_sequence(output)[0]).tanh()


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_part_a_program(device, programs, kind):
    """What stands before and behind is compiled; the layer runs as eagerly."""
    model = Packed(kind, bidirectional=True).to(device)
    lengths = torch.tensor([2, 4, 3])
    found = []
    for run in (model, torch.compile(model, backend="graft")):
        for _ in range(2):
            model.zero_grad()
            x = torch.linspace(-1, 1, 36).view(4, 3, 3).to(device)
            output = run(x, lengths)
            output.square().sum().backward()
        found.append((output.detach(), [p.grad.clone() for p in model.parameters()]))
    assert_same(*found)
    assert graphs_of(programs) >= 4
    names = [str(node.target) for program in programs for node in program.plan.nodes]
    assert any("tanh" in name for name in names) and not any("rnn" in name for name in names)


def test_replays(device, programs):
    model = Output("lstm", num_layers=2).to(device)
    assert_trains_as_eager(model, batches_of(device) * 2, {"fullgraph": True, "mode": "reduce-overhead"}, lr=0.5)
