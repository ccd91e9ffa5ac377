"""PyTorch's profilers: what ran on the device and when, memory, ranges, stacks."""

import json
import time

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

ACTIVITIES = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def commands(trace):
    """The events of devices in a Chrome trace: kernels, copies and fills."""
    return [event for event in trace["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """One profile with everything on, its Chrome trace, and the wall time in us of the product that is in it."""
    device = torch.device("graft", 0)
    x = torch.randn(256, 256, device=device)
    host = torch.randn(1000, 1000)

    def multiply():
        torch.graft.synchronize()
        began = time.perf_counter()
        x @ x
        torch.graft.synchronize()
        return (time.perf_counter() - began) * 1e6

    def work():
        with record_function("upload"):
            y = host.to(device)
        took = multiply()
        with record_function("outer"), record_function("inner"):
            (x + 1).relu()
        y.cpu()
        return took

    work()  # programs are built here
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)  # stacks in events(), too
    options = dict(profile_memory=True, with_stack=True, record_shapes=True, experimental_config=verbose)
    with profile(activities=ACTIVITIES, **options) as result:
        took = work()
    x @ x  # after the end
    path = tmp_path_factory.mktemp("profile") / "trace.json"
    result.export_chrome_trace(str(path))
    return result, json.loads(path.read_text()), took


def test_a_products_time_lies_within_the_hosts(profiled):
    result, _, took = profiled
    rows = {row.key: row for row in result.key_averages()}
    assert 0 < rows["aten::mm"].self_device_time_total <= took
    assert rows["aten::matmul"].device_time_total == rows["aten::mm"].device_time_total
    assert "aten::mm" in result.key_averages().table(sort_by="self_device_time_total")


def test_the_trace_has_kernels_with_their_ops(profiled):
    _, trace, _ = profiled
    kernels = [event for event in commands(trace) if event["cat"] == "kernel"]
    ops = [event["args"]["op"] for event in kernels]
    assert set(ops) == {"aten::mm", "aten::add.Tensor", "aten::relu"}, ops  # and nothing from before or after
    assert ops.count("aten::relu") == 1
    assert all(event["dur"] >= 0 and event["args"]["device"] == 0 for event in kernels)
    (relu,) = (event for event in kernels if event["args"]["op"] == "aten::relu")
    (op,) = (event for event in trace["traceEvents"] if event.get("name") == "aten::relu" and event["ph"] == "X")
    assert relu["args"]["External id"] == op["args"]["External id"]


def test_copies_say_their_bytes(profiled):
    _, trace, _ = profiled
    copies = {event["name"]: event["args"]["bytes"] for event in commands(trace) if event["cat"] == "gpu_memcpy"}
    assert copies == {"Memcpy HtoD": 4_000_000, "Memcpy DtoH": 4_000_000}


def test_ranges_span_what_they_gave_the_device(profiled):
    result, trace, _ = profiled
    on_device = {event["name"]: event for event in trace["traceEvents"] if event.get("cat") == "gpu_user_annotation"}
    assert set(on_device) == {"upload", "inner"}  # a range within a range has it
    kernels = [e for e in commands(trace) if e["args"].get("op") in ("aten::add.Tensor", "aten::relu")]
    inner = on_device["inner"]
    assert inner["ts"] == pytest.approx(min(e["ts"] for e in kernels), abs=0.01)
    assert inner["ts"] + inner["dur"] == pytest.approx(max(e["ts"] + e["dur"] for e in kernels), abs=0.01)
    rows = {row.key: row for row in result.key_averages() if row.device_type.name == "CPU"}
    assert rows["outer"].device_time_total == pytest.approx(
        rows["aten::add"].device_time_total + rows["aten::relu"].device_time_total
    )


def test_memory_of_the_device_is_in_the_timeline(profiled, tmp_path):
    result, trace, _ = profiled
    changes = [e["args"] for e in trace["traceEvents"] if e.get("name") == "[memory]"]
    ours = [c["Bytes"] for c in changes if c["Device Type"] == 20 and c["Device Id"] == 0]
    assert 4_000_000 in ours and -4_000_000 in ours
    assert any(row.key == "aten::mm" and row.self_device_memory_usage == 256 * 256 * 4 for row in result.key_averages())
    path = tmp_path / "timeline.raw.json.gz"
    with pytest.warns(FutureWarning):
        result.export_memory_timeline(str(path), device="graft:0")
    assert path.stat().st_size > 0


def test_stacks_lead_to_the_python_code(device):
    """Of several calls, since PyTorch's tracer now and then loses the innermost frame of one on a loaded machine."""
    x = torch.randn(16, 16, device=device)

    def multiply():
        return x @ x

    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with profile(activities=ACTIVITIES, with_stack=True, experimental_config=verbose) as result:
        for _ in range(5):
            multiply()
    stacks = [event.stack for event in result.events() if event.name == "aten::mm"]
    assert len(stacks) == 5
    assert sum(any("multiply" in frame for frame in stack) for stack in stacks) >= 3, stacks


def test_only_the_cpu(device):
    x = torch.randn(4, 4, device=device)
    with profile(activities=[ProfilerActivity.CPU]) as result:
        (x @ x).relu()
    rows = {row.key: row for row in result.key_averages()}
    assert {"aten::mm", "aten::relu"} <= set(rows)
    assert all(row.device_time_total == 0 for row in rows.values())


@pytest.mark.parametrize("use_kineto", [False, True])
def test_the_old_profiler_measures_the_device(python, use_kineto):
    """Each op's time on the device, in microseconds; nothing is said meanwhile."""
    outcome = python(
        f"""
        import collections
        import torch
        x = torch.randn(512, 512, device="graft")
        x @ x, x.relu()
        torch.graft.synchronize()
        with torch.autograd.profiler.profile(use_device="graft", use_kineto={use_kineto}) as profile:
            with torch.graft.stream(torch.graft.Stream()):
                for _ in range(3):
                    (x @ x).relu()
        # PyTorch gives an op whose time is 0, as clocks of a loaded machine have it, a row of its own.
        counts, times = collections.Counter(), collections.Counter()
        for row in profile.key_averages():
            assert 0 <= row.device_time_total < 60e6, row
            counts[row.key] += row.count
            times[row.key] += row.device_time_total
        assert counts["aten::mm"] == counts["aten::relu"] == 3, counts
        assert times["aten::mm"] > counts["aten::mm"], times
        assert "aten::mm" in profile.key_averages().table(sort_by="device_time_total")
        """
    ).ok()
    assert [line for line in outcome.err.splitlines() if not line.startswith("USDT:")] == []  # Kineto's own


def test_where_a_plugin_measures_no_time(python, plugin_of):
    """One line each, and times of 0."""
    outcome = python(
        f"""
        import torch, torch_graft
        torch.graft.set_device(torch_graft.load({str(plugin_of("null.c"))!r}))
        x = torch.ones(3, device="graft")
        for use_kineto in (False, True):
            with torch.autograd.profiler.profile(use_device="graft", use_kineto=use_kineto) as profile:
                -x, -x
            assert all(row.device_time_total == 0 for row in profile.key_averages())
        """
    ).ok()
    assert outcome.err.count('it has no extension "graft.profiler"') == 1
    assert outcome.err.count("does not measure time") == 1 and "frame #" not in outcome.err, outcome.err
