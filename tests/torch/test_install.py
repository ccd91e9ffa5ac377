"""The wheel works as whoever installs it: under any umask, which pip applies to what it unpacks."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OPTIONS = ["-q", "--no-deps", "--no-index"]

USE = """
import torch, torch_graft
print(torch_graft.__file__)
print([device.name for device in torch_graft.devices()][0])
assert (torch.ones(3, device="graft") + 1).sum().item() == 6
"""


def run(command, umask, **variables):
    process = subprocess.run(
        [str(word) for word in command],
        env=os.environ | {name: str(value) for name, value in variables.items()},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process


def make_wheel(folder):
    """Of what is built; only the packing is new."""
    built = {"GRAFT_BUILD_DIR": ROOT / "build"} if (ROOT / "build/lib/libgraft.so").exists() else {}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run([*PIP, "wheel", *OPTIONS, "--no-build-isolation", "-w", folder, ROOT / "sdk/torch"], 0o022, PATH=path, **built)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_wheel_under_any_umask(tmp_path):
    wheel = make_wheel(tmp_path)
    for umask in (0o002, 0o000):
        site = tmp_path / f"umask {umask:03o}"
        run([*PIP, "install", *OPTIONS, "--target", site, wheel], umask)
        library = site / "torch_graft/lib/graft/plugins/graft_opencl.so"
        assert library.stat().st_mode & 0o022 == 0o022 & ~umask, "pip follows the umask no more: this tests nothing"
        process = run([sys.executable, "-c", USE], umask, PYTHONPATH=site)
        assert process.stdout.splitlines() == [str(site / "torch_graft/__init__.py"), "opencl:0"], process.stderr
        said = [line for line in process.stderr.splitlines() if "compiling kernels" not in line]  # where that takes a second
        assert said == []
