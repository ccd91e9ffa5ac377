"""The speed of ops on a Graft device against PyTorch's CPU or CUDA kernels: ops.py [--peer cpu|cuda] [--op GLOB] ...

The cases are the lines of sdk/cli/bench_calls.txt and op_speed/compositions.py. Printed: the cases that lose most time,
the geometric means of each family, and what has no figures. docs/benchmarks_ops.md has the tables that --page writes.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

os.environ.setdefault("GRAFT_FALLBACK", "error")  # what leaves the device must not be timed as if it had not

COPIED = {"cpu": 1 << 24, "cuda": 1 << 27}  # elements that the copy has whose speed is the peak
FMA = Path(__file__).resolve().parents[3] / "build" / "benchmarks" / "fma_peak"


def machine():
    rows = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [row.partition(":")[2].strip() for row in rows if row.startswith("model name")]
    return f"{os.cpu_count()} cores of {names[0] if names else platform.processor()}"


def begun(sides, options):
    """What a report says of the machine."""
    from op_speed import page

    hello = {side: process.ask("hello") for side, process in sides.items()}
    elements = COPIED[options.peer]
    peaks = {side: process.ask("peaks", program=str(options.fma), elements=elements) for side, process in sides.items()}
    return {
        "machine": machine(),
        "device": hello["device"]["name"],
        "peer": hello["peer"]["name"],
        "torch": hello["peer"]["torch"],
        "peaks": peaks,
        "command": page.command_of(options.words),
    }


def run(cases, report, options):
    """Measures what the report lacks, and no longer than it may take."""
    from op_speed import both

    left = [case for case in cases if case.key not in report.records]
    if report.head and not left:
        return
    end = time.monotonic() + options.seconds
    processes = (both.Process(Path(__file__), device) for device in (options.device, options.peer))
    sides = both.Sides(*processes, both.PAUSE.get(options.peer, 0.0))
    try:
        report.begin(begun(sides, options))
        for place, case in enumerate(left):
            share = (end - time.monotonic()) / (len(left) - place)
            if share <= 0:
                print(f"ops: the time is over: {len(left) - place} cases are left (--report FILE goes on)", file=sys.stderr)
                return
            report.add(both.measured(case, sides, min(both.CASE_SECONDS, share)))
            say(f"[{place + 1}/{len(left)}]", report.records[case.key])
    except both.Ended as problem:
        sys.exit(f"ops: {problem}")
    finally:
        sides.end()


def say(place, record):
    ratios = {mode: round(times["device"]["median"] / times["peer"]["median"], 2)
              for mode, times in record.get("times", {}).items()}  # fmt: skip
    print(f"{place} {record['case']}: {record.get('problem') or ratios}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="./run bench ops", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="graft:0", help="the device (default: graft:0)")
    parser.add_argument("--peer", default="cpu", choices=("cpu", "cuda"), help="what it is held against (default: cpu)")
    parser.add_argument("--op", action="append", metavar="GLOB", help="only these: aten::mm, 'mm f32*', 'LSTM*'; repeatable")
    parser.add_argument("--large", action="store_true", help="also cases for GPUs (with --peer cuda they always are)")
    parser.add_argument("--seconds", type=float, default=None, help="the whole run (default: 450 with cuda, else 1800)")
    parser.add_argument("--report", metavar="FILE", help="keeps what was measured there, and goes on with it")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of tables")
    parser.add_argument("--compare", metavar="OLD", help="also what changed since: a report, or what --json printed")
    parser.add_argument("--least", action="store_true", help="tables of the least of all runs, not of medians: where the "
                        "machine is busy")  # fmt: skip
    parser.add_argument("--page", metavar="FILE", help="writes this peer's section of the page")
    parser.add_argument("--note", default="", help="a sentence for the page")
    parser.add_argument("--fma", type=Path, default=FMA, help="the program that measures multiply-adds")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.words = sys.argv[1:]
    options.seconds = options.seconds or (450 if options.peer == "cuda" else 1800)
    return options


def main():
    options = arguments()
    if options.side:
        from op_speed import side

        return side.serve(options.side)
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # this process only asks
    from op_speed import cases, page, report

    chosen = cases.selected(options.op, options.large or options.peer == "cuda")
    if not chosen:
        sys.exit(f"ops: no case matches {' '.join(options.op)}")
    old = report.read(options.compare)[1] if options.compare else None
    kept = report.Report(options.report)
    run(chosen, kept, options)
    shown = report.leasts if options.least else dict
    records = shown(kept.records)
    if options.json:
        print(json.dumps({"head": kept.head, "cases": list(kept.records.values())}, indent=1))
    else:
        print(report.console(kept.head, records))
    if old:
        print(report.comparison(shown(old), records), file=sys.stderr if options.json else sys.stdout)
    if options.page:
        least = "These are the least times of the runs, not medians." if options.least else ""
        head = {**kept.head, "command": page.command_of(options.words)}
        page.write(options.page, options.peer, head, records, " ".join(filter(None, (options.note, least))))
    return any("differ" in record.get("problem", "") for record in report.problems(kept.records))


if __name__ == "__main__":
    sys.exit(main())
