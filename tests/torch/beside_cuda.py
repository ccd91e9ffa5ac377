"""Graft beside CUDA, on a machine with a GPU of NVIDIA's and a PyTorch for it:

    python tests/torch/beside_cuda.py

builds torch_graft for the PyTorch of this Python (with GRAFT_BUILD_DIR: around the libgraft that was built there),
installs it into a folder of its own, and says of each thing that must hold whether it does. Exit status 0: all do.
"""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TRAIN = """
import torch, warnings

def train(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.linspace(-1, 1, 64 * 16).view(64, 16).to(device)
    y = x.sum(1, keepdim=True).sin()
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    return losses
"""

# What a process does, with which variables, and what is looked for in what it says ("": nothing may be said).
CASES = {
    "an installed torch_graft leaves training on cuda alone, and says how to have Graft": (
        TRAIN
        + """
import sys
assert "torch_graft" not in sys.modules and torch._C._get_privateuse1_backend_name() == "privateuseone"
train("cuda")
""",
        {},
        "GRAFT_TORCH_AUTOLOAD=1",
    ),
    "import torch starts no driver: a child that is forked afterwards uses cuda": (
        """
import os, sys, torch
assert not torch.cuda.is_initialized()
child = os.fork()
if child == 0:
    os._exit(7 if torch.ones(3, device="cuda").sum().item() == 3 else 8)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == 7, status
""",
        {},
        "GRAFT_TORCH_AUTOLOAD=1",
    ),
    "workers of a data loader, forked after import, and pinned memory": (
        TRAIN
        + """
from torch.utils.data import DataLoader
rows = [torch.full((4,), float(i)) for i in range(8)]
total = sum(batch.to("cuda", non_blocking=True).sum() for batch in DataLoader(rows, num_workers=2, pin_memory=True))
assert total.item() == 4 * 28
train("cuda")
""",
        {},
        "GRAFT_TORCH_AUTOLOAD=1",
    ),
    "GRAFT_TORCH_AUTOLOAD=0: the same, and nothing is said": (
        TRAIN + "train('cuda')\n",
        {"GRAFT_TORCH_AUTOLOAD": "0"},
        "",
    ),
    "`import torch_graft` takes Graft's devices, which learn as cuda does; at its first use cuda is said to lose": (
        TRAIN
        + """
import torch_graft
print("graft:0 is", torch_graft.devices()[0].name)
losses = train("graft")
print("without cuda", flush=True)
assert torch.ones(3, device="cuda").sum().item() == 3
try:
    torch.ones(3, device="cuda", requires_grad=True).sum().backward()
    print("backward() on cuda works now beside Graft: the warning may go")
except RuntimeError as error:
    print("backward() on cuda:", str(error).splitlines()[0])
""",
        {},
        "PyTorch's autograd serves one accelerator a process, and here that is graft",
    ),
    "GRAFT_TORCH_AUTOLOAD=1: `import torch` is enough, and nothing is said": (
        TRAIN + "train('graft')\n",
        {"GRAFT_TORCH_AUTOLOAD": "1"},
        "",
    ),
    "with no GPU to be seen Graft's devices are there by themselves": (
        TRAIN + "train('graft')\n",
        {"CUDA_VISIBLE_DEVICES": ""},
        "",
    ),
}


def install(folder):
    """The wheel of this tree, in a folder without anything else."""
    print(f"building torch_graft for {sys.executable}", flush=True)
    pip = [sys.executable, "-m", "pip"]
    options = ["-q", "--no-deps", "--no-index"]
    wheels = folder / "wheels"
    subprocess.run([*pip, "wheel", *options, "--no-build-isolation", "-w", wheels, ROOT / "sdk/torch"], check=True)
    site = folder / "site"
    subprocess.run([*pip, "install", *options, "--target", site, *wheels.glob("*.whl")], check=True)
    return site


def holds(title, site, code, variables, said):
    environment = {name: value for name, value in os.environ.items() if name != "GRAFT_TORCH_AUTOLOAD"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    environment["GRAFT_FALLBACK"] = "allow"
    process = subprocess.run(
        [sys.executable, "-c", code], env=environment | variables, capture_output=True, text=True, timeout=300
    )
    lines = [line for line in process.stderr.splitlines() if "torch_graft" in line and "Warning" in line]
    right = process.returncode == 0 and (any(said in line for line in lines) if said else not lines)
    print(f"{'holds' if right else 'FAILS'}: {title}")
    print(textwrap.indent(process.stdout + ("" if right else process.stderr), "    "), end="", flush=True)
    return right


def main():
    import torch

    if not torch.cuda.is_available():
        sys.exit(f"PyTorch {torch.__version__} finds no device for cuda here; this needs one")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    with tempfile.TemporaryDirectory() as folder:
        site = install(Path(folder))
        failed = [title for title, case in CASES.items() if not holds(title, site, *case)]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
