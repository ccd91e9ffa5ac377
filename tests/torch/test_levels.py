"""A backend with the slots of level 0 alone: the examples run and train on it, and nothing leaves the device."""

import json
import os
import sys
from pathlib import Path

import pytest
import torch_graft
from test_examples import EXAMPLES, ROOT, number, run

LIBRARIES = Path(torch_graft.__file__).parent / "lib"


@pytest.fixture(scope="module")
def level_0(tmp_path_factory):
    """The environment in which the OpenCL plugin has no other slots."""
    sys.path.insert(0, str(ROOT / "plugin_api" / "gen"))
    import ops as descriptions

    sys.path.remove(str(ROOT / "plugin_api" / "gen"))
    build = Path(os.environ.get("GRAFT_BUILD_DIR", ROOT / "build"))
    library = build / "tests" / "plugins" / "mask.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    folder = tmp_path_factory.mktemp("mask")
    early = [op for op in descriptions.load(ROOT / "plugin_api" / "ops") if op.level == 0]
    assert 50 < len(early) < 80
    (folder / "slots").write_text("".join(f"{op.table.name} {op.slot}\n" for op in early))
    manifest = json.loads((LIBRARIES / "graft" / "plugins" / "opencl.graft.json").read_text())
    (folder / "mask.so").write_bytes(library.read_bytes())
    (folder / "mask.graft.json").write_text(json.dumps({**manifest, "name": "mask", "library": "mask.so"}))
    for path in [folder, *folder.iterdir()]:
        path.chmod(0o755)
    return {
        "GRAFT_PLUGIN_PATH": str(folder),
        "GRAFT_PLUGINS": "mask",
        "GRAFT_MASK_PLUGIN": str(LIBRARIES / "graft" / "plugins" / "graft_opencl.so"),
        "GRAFT_MASK_SLOTS": str(folder / "slots"),
    }


def test_a_cnn_trains_as_on_the_cpu(level_0):
    out = run(EXAMPLES / "digits_cnn.py", "--epochs", "1", "--compare", environment=level_0)
    assert number(r"relative difference ([\d.e+-]+) over the first epoch", out) < 1e-5


def test_a_transformer_trains_as_on_the_cpu(level_0):
    small = ["--steps", "5", "--layers", "1", "--width", "32", "--context", "16", "--batch", "4", "--compare"]
    out = run(EXAMPLES / "char_gpt.py", *small, environment=level_0)
    assert number(r"largest relative difference ([\d.e+-]+)", out) < 0.01


@pytest.mark.parametrize("example", [("mixed_precision.py", "--steps", "3"), ("two_plugins.py",)], ids=lambda e: e[0])
def test_an_example_runs(level_0, example):
    run(EXAMPLES / example[0], *example[1:], environment=level_0)
