"""explain.py RESULTS KNOWN...: the failures of a run (results.jsonl) by why they are known; the others are named, and are 1."""

import collections
import fnmatch
import json
import sys
from pathlib import Path


def main(results, *known):
    lines = [line for path in known for line in Path(path).read_text().splitlines()]
    patterns = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    with open(results) as file:
        rows = [json.loads(line) for line in file]
    counts, others = collections.Counter(), []
    for row in rows:
        if row.get("status") not in ("fail", "crash", "timeout"):
            continue
        reason = next((why for pattern, why in patterns if fnmatch.fnmatchcase(row["id"], pattern)), None)
        counts[reason or "not known"] += 1
        if not reason:
            others.append(f"{row['id']}\n     {row['text']}")
    print(*others, sep="\n")
    print("raised:", ", ".join(f"{count} {why}" for why, count in sorted(counts.items())) or "nothing")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
