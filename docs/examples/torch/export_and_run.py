"""Python saves, C runs: a model and a training step go to files that `graft run` and a C program (docs/examples/run_model.c)
take, with the bits of eager mode: export_and_run.py [--build FOLDER]"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import torch_graft

BUILD = Path(__file__).resolve().parents[3] / "build"


class Encoder(torch.nn.Module):
    """A layer of a transformer and a head."""

    def __init__(self, width=32, heads=4, classes=10):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(width)
        self.projection = torch.nn.Linear(width, 3 * width)
        self.feed = torch.nn.Sequential(torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width))
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x):
        parts = self.projection(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + torch.nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        return self.head((x + self.feed(x)).mean(1))


def call(*command, **options):
    child = subprocess.run([str(word) for word in command], capture_output=True, **options)
    if child.returncode:
        sys.exit(f"{command[0]} failed: {child.stderr.decode()}")
    return child.stdout


def save_array(path, tensor):
    numpy.save(path, tensor.detach().cpu().numpy())


def inference(folder, build, backend):
    """The same rows from eager mode, `graft run` and the C program."""
    model = Encoder().eval().to("graft")
    x = torch.randn(4, 16, 32, device="graft")
    with torch.no_grad():
        torch_graft.save(torch.export.export(model, (x,)), folder / "model.graft")
        expected = model(x).cpu()
    save_array(folder / "x.npy", x)
    call(build / "bin/graft", "run", folder / "model.graft", "-b", backend,
         "--input", f"x={folder}/x.npy", "--output", f"output={folder}/y.npy")  # fmt: skip
    from_program = torch.from_numpy(numpy.load(folder / "y.npy"))
    out = call(build / "bin/run_model", folder / "model.graft", backend, input=x.cpu().numpy().tobytes())
    from_c = torch.frombuffer(bytearray(out), dtype=torch.float32).reshape(expected.shape)
    assert torch.equal(from_program, expected), "graft run gives other bits than eager mode"
    assert torch.equal(from_c, expected), "the C program gives other bits than eager mode"
    print("the model from graft run and from C: equal to the bit")


def training(folder, build, backend, steps=5):
    """Forward, backward and optimizer in one file, its weights and momenta in it; `graft run` goes on from run to run."""
    model = Encoder().to("graft")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y = torch.randn(8, 16, 32, device="graft"), torch.randint(0, 10, (8,), device="graft")

    def step(x, y):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach()}

    step(x, y)  # the optimizer makes its state at the first step
    torch_graft.save(step, folder / "step.graft", (x, y), state={"model": model, "optimizer": optimizer})
    save_array(folder / "x.npy", x)
    save_array(folder / "labels.npy", y)
    call(build / "bin/graft", "run", folder / "step.graft", "-b", backend, "--repeat", steps,
         "--input", f"x={folder}/x.npy", "--input", f"y={folder}/labels.npy", "--output", f"loss={folder}/loss.npy",
         "--output", f"model.head.weight={folder}/weight.npy")  # fmt: skip
    again = torch_graft.load_graph(folder / "step.graft")
    losses = [step(x, y)["loss"].item() for _ in range(steps)]
    assert [again(x, y).item() for _ in range(steps)] == losses, "the loaded step learns otherwise"
    assert losses[-1] == numpy.load(folder / "loss.npy").item(), "graft run learns otherwise"
    weight = torch.from_numpy(numpy.load(folder / "weight.npy"))
    assert torch.equal(weight, model.head.weight.detach().cpu()), "graft run has other weights"
    print(f"{steps} training steps from graft run: loss {losses[0]:.4f} to {losses[-1]:.4f}, weights equal to the bit")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=BUILD, help="where Graft was built: its programs are in bin/")
    build = parser.parse_args().build
    backend = torch_graft.devices()[0].plugin
    with tempfile.TemporaryDirectory() as folder:
        inference(Path(folder), build, backend)
        training(Path(folder), build, backend)


if __name__ == "__main__":
    main()
