"""The code of docs/pytorch.md runs as it stands there."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"


def test_code_of_the_page(python, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the code writes its files
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    outcome = python("\n".join(blocks)).ok()
    assert "0 opencl:0 opencl\n" in outcome.out
