"""docs/benchmarks_ops.md: a section for each peer. A run writes its own and leaves the other as it stands."""

import shlex
import textwrap
from pathlib import Path

from . import report

SECTIONS = {"cpu": "## PoCL against PyTorch's CPU", "cuda": "## A GPU through OpenCL against PyTorch's CUDA kernels"}
HEAD = """# Ops: `./run bench ops`

Written by the command that each section names. The cases are the lines of `sdk/cli/bench_calls.txt`, which `graft bench`
times on any backend without PyTorch, and what is not one call of an op
(`tests/benchmarks/torch/op_speed/compositions.py`). Each side is a process of its own; they take turns, and a case is
timed only where their results agree.

- **ratio**: Graft's time / PyTorch's, medians of three to seven runs in turn; under 1 Graft is faster. Means are geometric.
- **kept**: results are written into tensors that are there (`out=`), where PyTorch has such a form; **new**: each call
  makes its results.
- **reached**: bytes of arguments and results a second, each counted once, or operations a second, kept where there is
  such a figure; beside it the part of the side's own peak, which a copy and a loop of multiply-adds in f32 measure in the
  same run.
- **lost**: the time of a call that PyTorch does not take. The tables are sorted by it.
- Products in f32 are computed in f32 on both sides (no TF32).
"""
NOTHING = "\nNot measured yet.\n"
FILES = ("--report", "--compare")


def table(titles, rows):
    lines = ["| " + " | ".join(titles) + " |", "| " + " | ".join("---" for _ in titles) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def peaks_of(head):
    texts = []
    for side, peaks in head["peaks"].items():
        fma = f", multiply-adds {peaks['fma'] * 1e-9:.0f} GFLOP/s" if peaks["fma"] else ""
        texts.append(f"{'Graft' if side == 'device' else 'PyTorch'}: copy {peaks['copy'] * 1e-9:.1f} GB/s{fma}")
    return "; ".join(texts)


def command_of(words):
    """The command of these words as a page shows it: which file kept what was measured is its maker's own."""
    shown = list(words)
    for place, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name in FILES and equals:
            shown[place] = f"{name}=FILE"
        elif name in FILES and place + 1 < len(words):
            shown[place + 1] = "FILE"
    return "./run bench ops " + shlex.join(shown)


def section(kind, head, records, note):
    measured = (f"{head['machine']}; {head['device']}; PyTorch {head['torch']} on {head['peer']}. "
                f"Peaks: {peaks_of(head)}. {note}")  # fmt: skip
    parts = [SECTIONS[kind], "", f"    {head['command']}", "", textwrap.fill(measured, 120)]
    parts += ["", table(("geometric means", "cases", "kept", "new"),
                        [(name, str(number), report.ratio_text(kept), report.ratio_text(new))
                         for name, number, kept, new in report.groups(records)])]  # fmt: skip
    titles = ("case", "Graft, kept", "PyTorch", "ratio", "Graft, new", "PyTorch", "ratio", "Graft reached",
              "PyTorch reached", "lost")  # fmt: skip
    parts.append(table(titles, [report.cells(record, head) for record in report.timed(records)]))
    bad = report.problems(records)
    if bad:
        parts.append(table(("no figures", "why"), [(row["case"], row["problem"].replace("|", "\\|")) for row in bad]))
    return "\n".join(parts).rstrip() + "\n"


def sections_of(words):
    """The sections of a page by kind."""
    found = {}
    for kind, title in SECTIONS.items():
        if title in words:
            body = words[words.index(title) :]
            ends = [body.index(other, 1) for other in SECTIONS.values() if other in body[1:]]
            found[kind] = body[: min(ends, default=len(body))].rstrip() + "\n"
    return found


def write(path, kind, head, records, note=""):
    path = Path(path)
    old = sections_of(path.read_text()) if path.exists() else {}
    old[kind] = section(kind, head, records, note)
    texts = [old.get(kind, title + "\n" + NOTHING) for kind, title in SECTIONS.items()]
    path.write_text(HEAD + "\n" + "\n".join(texts))
