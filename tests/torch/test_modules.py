"""Training steps of usual models: gradients and weights, held against the CPU in f64."""

import copy

import pytest
import torch
from torch import nn
from training import OPTIMIZERS, check_two_steps


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.recurrent = kind(8, 8, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0][:, -1])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens), src_key_padding_mask=tokens == 0).mean(1))


class Block(nn.Module):
    """A decoder's block with causal attention and RMSNorm."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.silu(self.up(self.norms[1](x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(16, 5, bias=False)

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))[:, -1]


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 5))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2),
        nn.GroupNorm(4, 16),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


def upsampling():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.LeakyReLU(0.1),
        nn.AvgPool2d(2),
        nn.ConvTranspose2d(6, 4, 2, stride=2),
        nn.Softplus(),
        nn.Flatten(),
        nn.Linear(256, 5),
    )


def bag(mode):
    return nn.Sequential(nn.EmbeddingBag(11, 16, mode=mode, padding_idx=3), nn.Linear(16, 5))


def images():
    return torch.randn(6, 3, 8, 8)


def tokens():
    return torch.randint(1, 11, (6, 7))


MODELS = {
    "mlp": (mlp, images),
    "cnn": (cnn, images),
    "upsampling": (upsampling, images),
    "lstm": (lambda: Recurrent(nn.LSTM), tokens),
    "gru": (lambda: Recurrent(nn.GRU), tokens),
    "mean_of_words": (lambda: bag("mean"), tokens),
    "max_of_words": (lambda: bag("max"), tokens),
    "encoder": (Encoder, tokens),
    "decoder": (Decoder, tokens),
}

def forward(model, batch):
    logits = model(batch["x"])
    return logits, nn.functional.cross_entropy(logits, batch["labels"], label_smoothing=0.1)


def check(name, optimizer, device):
    make, data = MODELS[name]
    check_two_steps(make(), {"x": data(), "labels": torch.randint(0, 5, (6,))}, forward, device, optimizer)


@pytest.mark.parametrize("name", MODELS)
def test_two_training_steps(device, name):
    check(name, OPTIMIZERS["sgd"], device)


@pytest.mark.parametrize("optimizer", [name for name in OPTIMIZERS if name != "sgd"])
def test_optimizers(device, optimizer):
    check("mlp", OPTIMIZERS[optimizer], device)


def test_evaluation_mode_and_running_statistics(device):
    model = cnn()
    x = images()
    twin = copy.deepcopy(model).to(device)
    for m, value in ((model, x), (twin, x.to(device))):
        m(value)
        m.eval()
    for ours, theirs in zip(twin.buffers(), model.buffers(), strict=True):
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-5, atol=1e-6)
    assert torch.allclose(twin(x.to(device)).cpu(), model(x), rtol=1e-4, atol=1e-5)


def test_channels_last_network(device):
    model, x = cnn(), images()
    expected = model(x)
    twin = copy.deepcopy(model).to(device, memory_format=torch.channels_last)
    result = twin(x.to(device, memory_format=torch.channels_last))
    assert torch.allclose(result.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_attention_masks_and_dropout(device):
    q, k, v = (torch.randn(2, 4, 9, 8) for _ in range(3))
    mask = torch.rand(2, 1, 9, 9) > 0.3
    mask[..., 0] = True
    for options in ({}, {"is_causal": True}, {"attn_mask": mask}, {"attn_mask": torch.randn(9, 9)}, {"scale": 0.5}):
        there = {key: value.to(device) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
        leaves = [t.to(device).requires_grad_() for t in (q, k, v)]
        ours = nn.functional.scaled_dot_product_attention(*leaves, **there)
        ours.square().sum().backward()
        twins = [t.clone().requires_grad_() for t in (q, k, v)]
        theirs = nn.functional.scaled_dot_product_attention(*twins, **options)
        theirs.square().sum().backward()
        assert torch.allclose(ours.cpu(), theirs, rtol=1e-4, atol=1e-5), options
        for a, b in zip(leaves, twins):
            assert torch.allclose(a.grad.cpu(), b.grad, rtol=1e-4, atol=1e-4), options
    dropped = nn.functional.scaled_dot_product_attention(*(t.to(device) for t in (q, k, v)), dropout_p=0.5)
    assert dropped.isfinite().all().item()


def test_packed_sequences(device):
    lstm = nn.LSTM(4, 6, batch_first=True)
    x, lengths = torch.randn(3, 5, 4), torch.tensor([5, 3, 2])
    pack = nn.utils.rnn.pack_padded_sequence
    expected, _ = nn.utils.rnn.pad_packed_sequence(lstm(pack(x, lengths, batch_first=True))[0], batch_first=True)
    packed = pack(x.to(device), lengths, batch_first=True)
    assert packed.is_graft
    result, _ = nn.utils.rnn.pad_packed_sequence(copy.deepcopy(lstm).to(device)(packed)[0], batch_first=True)
    assert torch.allclose(result.cpu(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("norm", [None, torch.nn.LayerNorm(8)], ids=["no norm", "norm"])
@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
@pytest.mark.parametrize("aligned", [True, False])
def test_padded_positions_of_an_encoder_are_those_of_the_cpu(device, norm, kind, aligned):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, norm=copy.deepcopy(norm)).eval()
    if norm is not None:
        torch.nn.init.normal_(encoder.norm.bias)
    source = torch.randn(2, 5, 8)
    padded = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0] if aligned else [1, 0, 0, 0, 0]], dtype=torch.bool)
    mask = padded if kind == torch.bool else torch.zeros(2, 5).masked_fill(padded, -torch.inf)
    there = copy.deepcopy(encoder).to(device)
    with torch.no_grad():
        expected = encoder(source, src_key_padding_mask=mask)
        found = there(source.to(device), src_key_padding_mask=mask.to(device))
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
    # with gradients wanted there is no fast path, there as here
    expected, found = encoder(source, src_key_padding_mask=mask), there(source.to(device), src_key_padding_mask=mask.to(device))
    torch.testing.assert_close(found.detach().cpu(), expected.detach(), rtol=1e-5, atol=1e-5)


def test_an_encoder_can_be_scripted_and_traced():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    source = torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = encoder(source)
        assert torch.equal(torch.jit.script(encoder)(source), expected)
        assert torch.equal(torch.fx.symbolic_trace(torch.nn.Sequential(encoder))(source), expected)
