"""Mixed precision on a Graft device: autocast to bf16, and to f16 with a gradient scaler: mixed_precision.py [--steps N]"""

import argparse

import torch
import torch.nn.functional as F
from digits_cnn import accuracy, digits, network


def train(device, dtype, steps):
    torch.manual_seed(1)
    model = network().to(device)
    (images, labels), held = digits()
    images, labels = images.to(device), labels.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    kind = torch.device(device).type
    scaler = torch.amp.GradScaler(kind, enabled=dtype == torch.float16)
    for step in range(steps):
        chosen = (torch.arange(128) + 128 * step) % len(images)
        chosen = chosen.to(device)
        with torch.autocast(kind, dtype):
            logits = model(images[chosen])
            assert logits.dtype == dtype, f"autocast computed in {logits.dtype}"
            loss = F.cross_entropy(logits, labels[chosen])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(f"{device} {dtype}: loss {loss.item():.4f}, {100 * accuracy(model, *(p.to(device) for p in held)):.1f} % held "
          f"back, scale {scaler.get_scale():.0f}")
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--device", default="graft")
    options = parser.parse_args()
    for dtype in (torch.bfloat16, torch.float16):
        train(options.device, dtype, options.steps)


if __name__ == "__main__":
    main()
