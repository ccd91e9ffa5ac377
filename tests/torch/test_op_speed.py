"""The instrument for the speed of ops (tests/benchmarks/torch/ops.py): it gives figures, a wrong result gives none, and
what was measured is gone on with. How long anything takes is not asked here."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "torch"
sys.path.append(str(FOLDER))
from op_speed import both, cases, page, report, text  # noqa: E402

SCRIPT = FOLDER / "ops.py"
TEN = ["add.Tensor f32?16? f32?16?", "relu f32?16?", "sum.dim_IntList f32?16? *", "cat {f32?8?*", "mm f32?4,4? *",
       "_softmax f32?4,4? *", "native_layer_norm f32?4,4? *", "embedding f32?4,4? *", "item() *", "linear f32?4,4? *"]  # fmt: skip


def ops(*arguments):
    environment = {**os.environ, "GRAFT_FALLBACK": "error"}
    done = subprocess.run([sys.executable, SCRIPT, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def chosen(globs):
    return [word for glob in globs for word in ("--op", glob)]


def test_ten_cases_have_figures(tmp_path):
    kept = tmp_path / "ten.jsonl"
    found = json.loads(ops("--json", "--seconds", "60", "--report", kept, *chosen(TEN)))
    assert len(found["cases"]) == 10
    for record in found["cases"]:
        assert "problem" not in record, record
        for times in record["times"].values():
            assert all(math.isfinite(value) and value > 0 for side in times.values() for value in side.values()), record
    assert {mode for record in found["cases"] for mode in record["times"]} == {"kept", "new"}
    assert all(peaks["copy"] > 0 for peaks in found["head"]["peaks"].values())
    # What is there is not measured again, and a half-written line is measured as if it was not there.
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([*lines[:-1], lines[-1][:20]]))
    assert lines[-1].startswith('{"case": "item() f32[16]"')
    assert "item() f32[16]" in ops("--seconds", "60", "--report", kept, *chosen(TEN))
    now = kept.read_text().splitlines()
    assert now[:-2] == lines[:-1] and json.loads(now[-1])["case"] == json.loads(lines[-1])["case"]


class Spoiled:
    """A side whose answers about results are changed on the way."""

    def __init__(self, change):
        self.change = change

    def ask(self, what, **arguments):
        return {"seconds": 1e-3}

    def send(self, what, **arguments):
        pass

    def answer(self, seconds):
        sample = {"dtype": "torch.float32", "shape": [2], "whole": 5.0, "values": [3.0, 4.0]}
        return {"first": 1.0, "bytes": 8.0, "samples": {"new": [self.change(sample)]}}


@pytest.mark.parametrize("change, problem", [
    ({}, None),
    ({"values": [3.0, 4.0005], "whole": 5.0004}, None),
    ({"values": [3.0, 4.01]}, "result 0: off by 0.002 of the norm"),
    ({"whole": 6.0}, "result 0: off by 0.2 of the norm"),
    ({"values": [3.0, math.nan]}, "result 0: one is finite and the other is not"),
    ({"shape": [1, 2]}, "result 0: shape [1, 2] instead of [2]"),
    ({"dtype": "torch.float64"}, "result 0: dtype torch.float64 instead of torch.float32"),
])  # fmt: skip
def test_a_wrong_result_is_not_timed(change, problem):
    case = cases.every()["mm f32[512,512] f32[512,512]"]
    sides = both.Sides(Spoiled(lambda sample: {**sample, **change}), Spoiled(lambda sample: sample), 0)
    record = both.measured(case, sides, 1)
    assert record.get("problem") == (problem and f"results differ, new: {problem}")
    assert ("times" in record) == (problem is None)


def test_what_is_random_has_a_shape():
    ours, theirs = ({"dtype": "torch.float32", "shape": [2], "whole": w, "values": [w, w]} for w in (1.0, 2.0))
    assert both.judged("none", [ours], [theirs]) is None
    assert both.judged("1", [ours, theirs], [theirs, theirs]) is None
    assert both.judged("1", [theirs, ours], [theirs, theirs]) == "result 1: off by 0.5 of the norm"
    assert both.judged("none", [ours], []) == "1 results instead of 0"


def test_a_side_that_ends_is_said():
    process = both.Process(SCRIPT, "cpu")
    with pytest.raises(both.Ended, match="KeyError: 'no such case'"):
        process.ask("make", case="no such case")
    assert process.ask("hello")["type"] == "cpu"
    os.kill(process.process.pid, signal.SIGSTOP)
    with pytest.raises(both.Ended, match="takes more than 0.1 s"):
        process.ask("hello", seconds=0.1)
    assert process.ask("hello")["type"] == "cpu"
    process.end()


def test_cases():
    every = cases.every()
    assert len(every) >= 150
    assert {case.family for case in every.values()} == set(cases.families().values()) | {"sparse"}
    assert len(cases.selected(["mm"], False)) < len(cases.selected(["mm"], True))
    assert [case.key for case in cases.selected(["aten::relu"], False)] == ["relu f32[16]", "relu f32[8,256,56,56]"]


def test_operations_are_counted_as_pytorch_does():
    counted = 0
    for line in cases.lines():
        case = cases.case_of(line)
        name, places, named = text.parsed(line.partition(" | ")[0])
        arguments = dict(zip((argument.name for argument in text.overload(name)._schema.arguments), places))
        grouped = case.op == "aten::convolution_backward" and arguments["groups"] > 1  # counted as if they were not
        if not case.flops or grouped or case.op not in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::convolution",
                                             "aten::convolution_backward"):  # fmt: skip
            continue
        positional, keywords = text.arranged(name, places, named)
        make = lambda spec: torch.empty_strided(spec.sizes, spec.strides, dtype=spec.dtype, device="meta")  # noqa: E731
        with FlopCounterMode(display=False) as counter:
            text.overload(name)(*[cases.with_tensors(value, make) for value in positional], **keywords)
        assert case.flops == counter.get_total_flops(), line
        counted += 1
    assert counted > 30


def record_of(case, group, device, peer):
    times = {"new": {side: {"median": value, "least": value} for side, value in (("device", device), ("peer", peer))}}
    return {"case": case, "family": group, "group": group, "flops": 0, "bytes": 1e6, "times": times}


HEAD = {"machine": "a machine", "device": "ours", "peer": "theirs", "torch": "2", "command": "./run bench ops",
        "peaks": {side: {"copy": 1e9, "fma": 0.0} for side in ("device", "peer")}}  # fmt: skip


def test_what_is_lost_comes_first(tmp_path):
    rows = [record_of("quick", "a", 1e-3, 4e-3), record_of("slow", "a", 4e-3, 1e-3), record_of("slower", "b", 9e-3, 1e-3)]
    records = {row["case"]: row for row in rows}
    assert [row["case"] for row in report.timed(records)] == ["slower", "slow", "quick"]
    means = [(name, count, round(new, 3)) for name, count, _, new in report.groups(records)]
    assert means == [("b", 1, 9.0), ("a", 2, 1.0), ("all", 3, 2.08)]
    assert report.cells(rows[1], HEAD)[-3:] == ["0.25 GB/s, 25 %", "1 GB/s, 100 %", "3 ms"]
    then = {**records, "slow": record_of("slow", "a", 2e-3, 1e-3), "gone": rows[0]}
    lines = report.comparison(then, records).splitlines()
    assert lines[1].split() == ["slow", "new", "2.00", "1.00", "2.00", "4.00"] and lines[-1] == "only then: gone"


def test_the_least_of_the_runs():
    record = record_of("x", "a", 2.0, 4.0)
    record["times"]["new"]["peer"]["least"] = 1.0
    records = {"x": record, "y": {"case": "y", "problem": "none"}}
    assert report.ratio(record, "new") == 0.5 and report.ratio(report.leasts(records)["x"], "new") == 2.0
    assert report.leasts(records)["y"] == records["y"]


def test_a_page_names_no_file_of_its_maker():
    words = ["--report", "/home/me/a report", "--op", "mm *", "--compare=/home/me/old", "--page", "docs/page.md"]
    assert page.command_of(words) == "./run bench ops --report FILE --op 'mm *' --compare=FILE --page docs/page.md"


def test_a_page_keeps_the_other_section(tmp_path):
    path = tmp_path / "page.md"
    records = {"x": record_of("x", "a", 1e-3, 4e-3), "y": {"case": "y", "group": "a", "problem": "why | not"}}
    page.write(path, "cuda", HEAD, records)
    assert path.read_text().count("Not measured yet.") == 1
    page.write(path, "cpu", {**HEAD, "machine": "another"}, records, "Loaded.")
    first = path.read_text()
    assert "a machine" in first and "another" in first and "Not measured" not in first and r"why \| not" in first
    page.write(path, "cpu", {**HEAD, "machine": "another"}, records, "Loaded.")
    assert path.read_text() == first
