"""torch.compile on the device: models that are trained and asked give, bit for bit, what they give eagerly."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torch_graft
from compiled import assert_same, assert_trains_as_eager, beside_graphs, graphs_of, tensors, train
from torch import nn
from torch.utils.checkpoint import checkpoint


def mlp(device):
    layers = nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 3)
    return nn.Sequential(*layers).to(device)


def batches_of(device, sizes=(5, 5, 5)):
    return [(torch.randn(size, 6, device=device), torch.randn(size, 3, device=device)) for size in sizes]


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)
        return x + self.mlp(self.after(x))


class GPT(nn.Module):
    def __init__(self, letters=11, width=16, context=8, checkpointed=False):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, 2, 0.1) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)
        self.checkpointed = checkpointed

    def forward(self, ids):
        x = self.letter(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(self.norm(x))


def letters(device, steps=4):
    ids = torch.randint(11, (steps, 3, 9), device=device)
    return [(row[:, :-1], row[:, 1:].flatten()) for row in ids]


def letter_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets)


def test_mlp(device, programs):
    assert_trains_as_eager(mlp(device), batches_of(device), lr=0.1, momentum=0.9)
    assert graphs_of(programs) == len(programs) == 2 and not beside_graphs(programs)


def test_cnn_with_batch_norm(device, programs):
    model = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 8, 3, stride=2), nn.BatchNorm2d(8), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(8, 3),
    ).to(device)
    batches = [(torch.randn(4, 3, 12, 12, device=device), torch.randn(4, 3, device=device)) for _ in range(3)]
    trained = assert_trains_as_eager(model, batches, lr=0.1, loss=lambda r, y: F.cross_entropy(r, y.softmax(1)))
    assert trained[1].num_batches_tracked.item() == 3 and trained[1].running_mean.abs().sum().item() > 0
    assert not beside_graphs(programs)
    trained.eval()
    with torch.no_grad():
        assert_same(torch.compile(trained, backend="graft")(batches[0][0]), trained(batches[0][0]))


class Turned(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, channels, 3, bias=False), nn.BatchNorm2d(channels), nn.ConvTranspose2d(channels, channels, 3)
        )

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("of_weights, of_input", [(False, True), (True, False), (True, True), (False, False)])
def test_convolutions_lie_as_eagerly(device, of_weights, of_input):
    """Results and gradients: as the input does, or else the weight."""
    formats = {True: torch.channels_last, False: torch.contiguous_format}
    x = torch.randn(2, 3, 8, 8, device=device).contiguous(memory_format=formats[of_input])
    for model in (Turned(6).eval(), Turned(6)):
        ours = copy.deepcopy(model).to(device, memory_format=formats[of_weights])
        theirs = copy.deepcopy(ours)
        inputs = [x.clone().requires_grad_() for _ in range(2)]
        results = [run(each) for run, each in zip((torch.compile(ours, backend="graft"), theirs), inputs)]
        for result in results:
            result.square().sum().backward()
        lies = [[(t.shape, t.stride()) for t in (result, each.grad)] for result, each in zip(results, inputs)]
        assert lies[0] == lies[1]
        torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(inputs[0].grad, inputs[1].grad, rtol=1e-4, atol=1e-4)


def test_channels_last(device):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(144, 3))
    model = model.to(device, memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8, device=device).contiguous(memory_format=torch.channels_last)
    ours = copy.deepcopy(model)
    expected = train(model, model, [(x, torch.randn(2, 3, device=device))] * 3, lr=0.1)
    torch.manual_seed(0)
    compiled = torch.compile(ours, backend="graft")
    torch.testing.assert_close(compiled(x), copy.deepcopy(ours)(x), rtol=1e-5, atol=1e-6)
    assert expected.isfinite().all()
    compiled(x).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in ours.parameters())


def test_gpt_with_dropout(device, programs):
    options = dict(loss=letter_loss, optimizer=torch.optim.AdamW, lr=1e-2, fused=True)
    assert_trains_as_eager(GPT().to(device), letters(device), {"fullgraph": True}, **options)
    assert graphs_of(programs) == 2 and not beside_graphs(programs)


def test_gpt_with_checkpoints(device, programs):
    """What is computed twice draws twice the same; random ops run beside the graphs then."""
    options = dict(loss=letter_loss, optimizer=torch.optim.AdamW, lr=1e-2, fused=True)
    assert_trains_as_eager(GPT(checkpointed=True).to(device), letters(device), **options)
    beside = set(beside_graphs(programs))
    assert beside == {"run_and_save_rng_state", "run_with_rng_state"}


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_batches_of_changing_size(device, dynamic):
    torch._dynamo.reset()
    assert_trains_as_eager(mlp(device), batches_of(device, (5, 3, 7, 5, 1, 3)), {"dynamic": dynamic}, lr=0.1)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(device, dtype, inside):
    """Said in what is compiled, or around it."""
    model, x = mlp(device), torch.randn(4, 6, device=device)

    def in_halves(run):
        with torch.autocast("graft", dtype):
            return run(x)

    results = []
    for compiled in (False, True):
        step = (lambda: in_halves(model)) if inside else model
        step = torch.compile(step, backend="graft") if compiled else step
        model.zero_grad()
        torch.manual_seed(3)
        result = step() if inside else in_halves(step)
        result.float().square().mean().backward()
        results.append([result.detach()] + [p.grad.clone() for p in model.parameters()])
    assert results[0][0].dtype == dtype
    assert_same(*results)


def test_autocast_around_backward(device):
    """What was traced without casts has none."""
    x = torch.randn(4, 6, device=device)
    model = mlp(device).eval()
    expected = torch.autograd.grad(model(x).sum(), model.parameters())
    loss = torch.compile(model, backend="graft")(x).sum()
    with torch.autocast("graft", torch.bfloat16):
        assert_same(torch.autograd.grad(loss, model.parameters()), expected)


def test_inference(device, programs):
    model = mlp(device).eval()
    compiled = torch.compile(model, backend="graft", fullgraph=True)
    x = torch.randn(4, 6, device=device)
    with torch.no_grad():
        for _ in range(2):
            assert_same(compiled(x), model(x))
    with torch.inference_mode():
        result = compiled(compiled(x) @ torch.ones(3, 6, device=device))
        assert result.is_inference() and result.isfinite().all()
    assert not beside_graphs(programs)


class ResidualBlock(nn.Module):
    """As a ResNet has it."""

    def __init__(self, channels):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        (first, second), (norm, last) = self.convolutions, self.norms
        return F.relu(last(second(F.relu(norm(first(x))))) + x)


def test_launches_of_a_block_in_inference(device):
    """The norms, the sum and the activations are made where the convolutions write."""
    x = torch.randn(2, 16, 14, 14, device=device)
    block = ResidualBlock(16).to(device)
    for _ in range(3):  # statistics that are not 0 and 1
        block(x + 1)
    block.eval()
    convolutions = nn.Sequential(*block.convolutions)
    counts = {}
    with torch.no_grad():
        for name, model in {"block": block, "convolutions": convolutions}.items():
            compiled = torch.compile(model, backend="graft")
            for _ in range(3):
                result = compiled(x)
            before = torch_graft.statistics().launches
            compiled(x)
            counts[name] = torch_graft.statistics().launches - before
            assert_same(result, model(x))
    assert counts["block"] <= counts["convolutions"]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes(device, programs, mode):
    """Each by our name and by none: that takes the same way."""
    model, x = mlp(device).eval(), torch.randn(4, 6, device=device)
    for options in ({"backend": "graft"}, {}):
        torch._dynamo.reset()
        with torch.no_grad():
            assert_same(torch.compile(model, mode=mode, **options)(x), model(x))
    assert len(programs) == 2 and graphs_of(programs) == 2


def test_a_compiled_optimizer(device):
    """As PyTorch's own tracing has it, which takes the formula of what is capturable."""
    states = []
    for backend in ("eager", "graft"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = mlp(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        step = torch.compile(optimizer.step, backend=backend)
        for x, y in batches_of(device):
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            step()
        states.append(model.state_dict())
    assert_same(*states)


def test_gradients_are_kept_and_added(device):
    model, x = mlp(device).eval(), torch.randn(4, 6, device=device, requires_grad=True)
    loss = torch.compile(model, backend="graft")(x).square().sum()
    once = torch.autograd.grad(loss, [x, *model.parameters()], retain_graph=True)
    loss.backward()
    assert_same(tensors([x.grad] + [p.grad for p in model.parameters()]), once)


def test_attention_of_any_length(device):
    """The second length makes the sizes symbols."""
    attend = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(attend, backend="graft")
    for length in (8, 9, 12):
        q = torch.randn(2, 2, length, 16, device=device, requires_grad=True)
        ours, theirs = compiled(q, q, q), attend(q, q, q)
        assert_same(ours.detach(), theirs.detach())
        assert_same(torch.autograd.grad(ours.sin().sum(), q), torch.autograd.grad(theirs.sin().sum(), q))


def test_a_weight_that_changes_before_the_backward(device):
    """Eager mode does not save an embedding's."""
    embedding, linear = torch.nn.Embedding(5, 4, device=device), torch.nn.Linear(4, 4, device=device)
    result = torch.compile(lambda at: linear(embedding(at)).sum(), backend="graft")(torch.tensor([1, 2], device=device))
    with torch.no_grad():
        embedding.weight.mul_(0.5)
    result.backward()
    assert embedding.weight.grad[1].isfinite().all() and not embedding.weight.grad[0].any()
