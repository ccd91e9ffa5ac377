"""A convolutional network learns handwritten digits on a Graft device: digits_cnn.py [--epochs N] [--device D]

The data is docs/examples/data/digits.bin; every fifth digit is held back. The weights are made on the CPU, so that a run
on the CPU (--compare trains there, too) starts from the same ones; the two loss curves then differ by rounding alone.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

DATA = Path(__file__).resolve().parents[1] / "data" / "digits.bin"
RECORD = 65  # a byte with the digit, 64 with grey values from 0 to 16


def digits():
    """(images, labels) to learn from, (images, labels) held back."""
    records = torch.frombuffer(bytearray(DATA.read_bytes()), dtype=torch.uint8).view(-1, RECORD)
    labels, images = records[:, 0].long(), (records[:, 1:].float() / 16 - 0.5).view(-1, 1, 8, 8)
    held = torch.arange(len(records)) % 5 == 0
    return (images[~held], labels[~held]), (images[held], labels[held])


def network(channels=(32, 64)):
    first, second = channels
    return nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1), nn.BatchNorm2d(first), nn.ReLU(),
        nn.Conv2d(first, second, 3, padding=1), nn.GroupNorm(8, second), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(second * 16, 10))


def batches(count, size, epoch, device):
    order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
    return order.to(device).split(size)


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum().item()
    model.train()
    return right / len(labels)


def train(device, epochs, size=256, say=print):
    """Returns the loss of each step and the accuracy on the digits held back."""
    torch.manual_seed(1)
    model = network().to(device)
    (images, labels), held = digits()
    images, labels = images.to(device), labels.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2, fused=True)
    losses = []
    for epoch in range(epochs):
        start = time.perf_counter()
        steps = []
        for chosen in batches(len(images), size, epoch, device):
            loss = F.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps.append(loss.detach())
        losses += torch.stack(steps).tolist()  # the only values that leave the device, once an epoch
        say(f"{device}: epoch {epoch + 1} of {epochs}, loss {losses[-1]:.4f}, {time.perf_counter() - start:.1f} s")
    return losses, accuracy(model, *(part.to(device) for part in held))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--device", default="graft")
    parser.add_argument("--compare", action="store_true", help="train on the CPU, too, and compare the loss curves")
    options = parser.parse_args()
    torch.set_num_threads(2)
    losses, right = train(options.device, options.epochs)
    print(f"{options.device}: {100 * right:.1f} % of the digits held back are recognised")
    if options.compare:
        theirs, cpu_right = train("cpu", options.epochs)
        print(f"cpu: {100 * cpu_right:.1f} %")
        first = max(abs(a - b) / b for a, b in zip(losses[:6], theirs[:6]))
        print(f"loss curves: relative difference {first:.1e} over the first epoch, "
              f"{abs(losses[-1] - theirs[-1]):.1e} (absolute) at the last step")


if __name__ == "__main__":
    main()
