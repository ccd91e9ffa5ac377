"""Two plugins in one process: copies both ways, and the same masks of dropout from both: two_plugins.py"""

import torch
import torch_graft


def main():
    devices = torch_graft.devices()
    for device in devices:
        print(f"graft:{device.index} is {device.name}")
    first, second = (torch.device("graft", device.index) for device in devices[:2])

    values = torch.randn(4, 5)
    here = values.to(first)
    there = here.t().to(second)  # strided, from plugin to plugin
    assert torch.equal(there.cpu(), values.t()) and torch.equal(there.to(first).cpu(), values.t())
    print("copies between the plugins: right")

    masks = []
    for device in (first, second):
        torch.manual_seed(7)
        masks.append(torch.nn.functional.dropout(torch.ones(1000, device=device), 0.3).cpu())
    assert torch.equal(*masks) and 0.6 < (masks[0] > 0).float().mean() < 0.8
    print("masks of dropout: the same, bit for bit")

    try:
        here + there.t()
    except RuntimeError as error:
        print(f"tensors of both in one call: {str(error).splitlines()[0]}")
    else:
        raise SystemExit("tensors of two devices were added without an error")


if __name__ == "__main__":
    main()
