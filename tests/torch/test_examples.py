"""The examples of docs/examples/torch in short form, and a slice of PyTorch's op database; nothing may leave the device."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "torch"

# An op or two of each family.
OPS = """add mul div exp where clamp sum mean amax var cumsum mm bmm addmm nn.functional.conv2d nn.functional.gelu
nn.functional.max_pool2d nn.functional.embedding softmax log_softmax nn.functional.batch_norm cat index_select gather
scatter_add sort topk masked_fill tril searchsorted polar tensor_split native_batch_norm""".split()


def run(script, *options, timeout=400, environment=()):
    child = subprocess.run(
        [sys.executable, str(script), *options],
        env={**os.environ, "GRAFT_FALLBACK": "error", **dict(environment)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert child.returncode == 0, f"{child.stdout}\n{child.stderr}"
    return child.stdout


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, text
    return float(found[1])


def test_digits_cnn_learns_as_on_the_cpu():
    out = run(EXAMPLES / "digits_cnn.py", "--epochs", "12", "--compare")
    assert number(r"([\d.]+) % of the digits held back", out) > 97
    assert number(r"relative difference ([\d.e+-]+) over the first epoch", out) < 1e-5


def test_char_gpt_loss_is_that_of_the_cpu():
    small = ["--steps", "20", "--layers", "2", "--width", "64", "--context", "32", "--batch", "8", "--compare"]
    assert number(r"largest relative difference ([\d.e+-]+)", run(EXAMPLES / "char_gpt.py", *small)) < 0.01


def test_compiled_gpt_is_eager_to_the_bit():
    out = run(EXAMPLES / "compile.py", "--steps", "6", "--layers", "2", "--width", "32", "--context", "16", "--rows", "3")
    assert "losses of all steps: equal to the bit" in out
    assert number(r"a step, least of .*, ([\d.]+) ms compiled", out) > 0


def test_mixed_precision():
    out = run(EXAMPLES / "mixed_precision.py", "--steps", "30")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", out)]
    assert len(losses) == 2 and max(losses) < 1.5, out


def test_two_plugins():
    out = run(EXAMPLES / "two_plugins.py")
    assert "copies between the plugins: right" in out and "bit for bit" in out


def test_export_and_run():
    out = run(EXAMPLES / "export_and_run.py")
    assert "from graft run and from C: equal to the bit" in out and "weights equal to the bit" in out


def test_partition():
    out = run(EXAMPLES / "partition.py")
    assert number(r"opencl:0: (\d+) ops", out) > 5 and number(r"reference:0: (\d+) ops", out) > 0
    assert "cpu: ranks" in out and "equal to the bit" in out


@pytest.mark.parametrize("half", [0, 1])
def test_a_slice_of_the_op_database(half):
    """Forward, backward, in place and out variants of PyTorch's own samples; see op_db.py for the whole."""
    out = run(ROOT / "tests" / "torch" / "op_db.py", "--op", ",".join(OPS[half::2]), "--jobs", "2")
    assert "| f32 | backward |" in out
