"""The networks of training.py, each as (a function that gives its loss, its parameters): those of docs/examples/torch, a
residual network as ResNet-18 is built, an encoder as BERT's, and a language model of two LSTM layers."""

import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs" / "examples" / "torch"))
LETTERS = 8192  # of the encoder and the language model


def cnn(device):
    import digits_cnn

    model = digits_cnn.network((32, 64)).to(device)
    (images, labels), _ = digits_cnn.digits()
    images, labels = images[:256].to(device), labels[:256].to(device)
    return model, lambda: F.cross_entropy(model(images), labels)


def gpt(device):
    import char_gpt

    ids, letters = char_gpt.corpus()
    model = char_gpt.GPT(len(letters), 4, 256, 4, 128).to(device)
    window = ids[: 16 * 129].view(16, 129).to(device)

    def loss():
        return F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

    return model, loss


class Residual(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.first, self.second = nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))
        self.past = nn.Identity()
        if stride > 1 or before != width:
            self.past = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.past(x))


def resnet(device):
    """ResNet-18 for 10 classes: 32 images of 3 x 64 x 64."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width in (64, 128, 256, 512):
        layers += [Residual(before, width, 2 if width > before else 1), Residual(width, width, 1)]
        before = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)).to(device)
    images, labels = torch.randn(32, 3, 64, 64).to(device), torch.randint(10, (32,)).to(device)
    return model, lambda: F.cross_entropy(model(images), labels)


class Encoder(nn.Module):
    """BERT-like: 6 layers of width 256, 4 heads, GELU, dropout; each position tells its letter."""

    def __init__(self):
        super().__init__()
        self.letter, self.place = nn.Embedding(LETTERS, 256), nn.Embedding(128, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.1, "gelu", batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 6), nn.Linear(256, LETTERS)

    def forward(self, ids):
        return self.head(self.layers(self.letter(ids) + self.place.weight))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter, self.lstm = nn.Embedding(LETTERS, 256), nn.LSTM(256, 256, 2, batch_first=True)
        self.head = nn.Linear(256, LETTERS)

    def forward(self, ids):
        return self.head(self.lstm(self.letter(ids))[0])


def of_letters(model, batch, length, device):
    ids = torch.randint(LETTERS, (batch, length + 1)).to(device)
    return model, lambda: F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def encoder(device):
    return of_letters(Encoder().to(device), 16, 128, device)


def lstm(device):
    return of_letters(Language().to(device), 32, 64, device)


MODELS = {"cnn": cnn, "gpt": gpt, "resnet": resnet, "encoder": encoder, "lstm": lstm}
STEPS = {"cnn": 20, "gpt": 4, "resnet": 2, "encoder": 2, "lstm": 4}  # of a turn


def step_of(name, device, compiled):
    """A training step: forward, gradients, those clipped, fused AdamW. It returns the loss."""
    torch.manual_seed(1)
    model, loss_of = MODELS[name](device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    run = torch.compile(loss_of) if compiled else loss_of

    def step():
        loss = run()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def kept():
        """Bytes that parameters and the optimizer hold between steps."""
        state = [value for each in optimizer.state.values() for value in each.values() if torch.is_tensor(value)]
        return sum(t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers(), *state])

    return step, kept
