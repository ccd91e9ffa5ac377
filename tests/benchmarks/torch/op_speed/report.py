"""What was measured: a file of one JSON object a line, first of the machine, then of each case; tables of it; a comparison
with earlier figures."""

import json
import math
from pathlib import Path

MODES = ("kept", "new")
WORST = 40


class Report:
    """Records by case. With a path, they are written as they come, and those that are there are gone on with."""

    def __init__(self, path=None):
        self.path, self.head, self.records = path and Path(path), None, {}
        if self.path and self.path.exists():
            self.head, self.records = read(self.path)

    def begin(self, head):
        if self.head:
            for part in ("device", "peer", "torch"):
                if self.head[part] != head[part]:
                    raise SystemExit(f"ops: {self.path} was measured with {part} {self.head[part]}, this is {head[part]}; "
                                     "take another file")  # fmt: skip
            return
        self.head = head
        self.append({"head": head})

    def add(self, record):
        self.records[record["case"]] = record
        self.append(record)

    def append(self, item):
        if not self.path:
            return
        broken_off = self.path.exists() and self.path.stat().st_size and self.path.read_bytes()[-1:] != b"\n"
        with self.path.open("a") as file:
            file.write("\n" * bool(broken_off) + json.dumps(item) + "\n")


def read(path):
    """Head and records by case, of a report or of what --json printed."""
    words = Path(path).read_text()
    if words.lstrip().startswith("{") and '"cases"' in words:
        whole = json.loads(words)
        return whole["head"], {record["case"]: record for record in whole["cases"]}
    head, records = None, {}
    for line in words.splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            continue  # the end of a line that was never completed
        if "head" in item:
            head = item["head"]
        else:
            records[item["case"]] = item
    return head, records


# --- figures ---


def leasts(records):
    """The records with the least of the runs in place of their medians: what other programs on the machine disturb less."""
    return {key: {**record, "times": least_of(record["times"])} if "times" in record else record
            for key, record in records.items()}  # fmt: skip


def least_of(times):
    return {mode: {side: {**figures, "median": figures["least"]} for side, figures in sides.items()}
            for mode, sides in times.items()}  # fmt: skip


def seconds(record, mode, side):
    return record["times"][mode][side]["median"]


def ratio(record, mode):
    """The device's time / the peer's."""
    return seconds(record, mode, "device") / seconds(record, mode, "peer")


def lost(record):
    """Seconds of a call that the peer doesn't take; negative where it takes more."""
    return max(seconds(record, mode, "device") - seconds(record, mode, "peer") for mode in record["times"])


def rate(record, side):
    """What a call reaches: bytes or operations a second."""
    mode = next(mode for mode in MODES if mode in record["times"])
    return (record["flops"] or record["bytes"]) / seconds(record, mode, side)


def timed(records):
    return sorted((record for record in records.values() if "times" in record), key=lost, reverse=True)


def problems(records):
    return [record for record in records.values() if "problem" in record]


def mean(records, mode):
    """The geometric mean of the ratios; None without any."""
    logs = [math.log(ratio(record, mode)) for record in records if mode in record["times"]]
    return math.exp(sum(logs) / len(logs)) if logs else None


def groups(records):
    """(group, cases, mean kept, mean new), the worst first, and all of them last."""
    done = timed(records)
    names = sorted({record["group"] for record in done})
    rows = [(name, *summary([record for record in done if record["group"] == name])) for name in names]
    rows.sort(key=lambda row: row[3], reverse=True)
    return [*rows, ("all", *summary(done))] if done else []


def summary(records):
    return len(records), mean(records, "kept"), mean(records, "new")


# --- texts ---


def time_text(value):
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if value * factor < 1000:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.3g} s"


def ratio_text(value):
    return "" if value is None else f"{value:.2f}"


def rate_text(record, side, head):
    unit, peak = ("GFLOP/s", "fma") if record["flops"] else ("GB/s", "copy")
    reached, most = rate(record, side), head["peaks"].get(side, {}).get(peak, 0)
    return f"{reached * 1e-9:.3g} {unit}" + (f", {100 * reached / most:.0f} %" if most else "")


def cells(record, head):
    """A row of a table: case, then kept, new (device, peer, ratio each), rates, what is lost."""
    row = [record["case"]]
    for mode in MODES:
        if mode in record["times"]:
            row += [time_text(seconds(record, mode, side)) for side in ("device", "peer")]
            row.append(ratio_text(ratio(record, mode)))
        else:
            row += ["", "", ""]
    small = record["group"] == "small calls"  # no rate of theirs says anything
    row += ["", ""] if small else [rate_text(record, side, head) for side in ("device", "peer")]
    return [*row, time_text(lost(record)) if lost(record) > 0 else ""]


def aligned(cell, width):
    return f"{cell:>{width}}" if width > 0 else f"{cell[: -width - 1]:{-width}}"


def console(head, records, count=WORST):
    lines = [f"{head['device']} against {head['peer']}, PyTorch {head['torch']}"]
    for side, peaks in head["peaks"].items():
        lines.append(f"  {side}: copy {peaks['copy'] * 1e-9:.1f} GB/s, multiply-adds {peaks['fma'] * 1e-9:.0f} GFLOP/s")
    titles = ["", "kept", "peer", "ratio", "new", "peer", "ratio", "reached", "peer", "lost"]
    widths = [-72, 10, 10, 10, 10, 10, 10, 22, 22, 10]  # negative: to the left
    rows = [titles] + [cells(record, head) for record in timed(records)[:count]]
    lines += ["".join(aligned(cell, width) for cell, width in zip(row, widths)) for row in rows]
    lines.append("")
    lines.append(f"{'geometric means of the ratios':32}{'cases':>8}{'kept':>8}{'new':>8}")
    for name, number, kept, new in groups(records):
        lines.append(f"{name:32}{number:8}{ratio_text(kept):>8}{ratio_text(new):>8}")
    lines += [f"no figures: {record['case']}: {record['problem']}" for record in problems(records)]
    return "\n".join(lines)


def comparison(old, new):
    """What changed between two sets of records: the device's time now / then, what slowed down most first."""
    rows = []
    for key, record in new.items():
        before = old.get(key)
        if before and "times" in before and "times" in record:
            for mode in record["times"]:
                if mode in before["times"]:
                    ours = seconds(record, mode, "device") / seconds(before, mode, "device")
                    theirs = seconds(record, mode, "peer") / seconds(before, mode, "peer")
                    rows.append((ours / theirs, ours, theirs, key, mode, ratio(before, mode), ratio(record, mode)))
    rows.sort(reverse=True)
    lines = [f"{'now / then':72}{'device':>8}{'peer':>8}{'ratio then':>12}{'ratio now':>12}"]
    lines += [f"{key[:64]:65}{mode:7}{ours:8.2f}{theirs:8.2f}{before:12.2f}{after:12.2f}"
              for _, ours, theirs, key, mode, before, after in rows]  # fmt: skip
    if rows:
        means = [math.exp(sum(math.log(row[i]) for row in rows) / len(rows)) for i in (1, 2, 5, 6)]
        lines.append(f"{'geometric mean':72}{means[0]:8.2f}{means[1]:8.2f}{means[2]:12.2f}{means[3]:12.2f}")
    lines += [f"only then: {key}" for key in old if key not in new] + [f"only now: {key}" for key in new if key not in old]
    return "\n".join(lines)
