"""Sums up what Oclgrind said in the logs of a run: reports.py LOG...; exit status 1 if it said anything.

A report begins with a line that is followed by indented ones, which name the kernel and the line of its source.
`graft conformance --verbose` names the case that what follows belongs to."""
import re
import sys


def reports(lines):
    """Yields (what, case) for each report of a log."""
    case = None
    for i, line in enumerate(lines):
        if line.startswith("case "):
            case = line[5:]
        elif line.startswith("OCLGRIND FATAL ERROR"):
            yield " ".join(lines[i + 1 : i + 3]), case
        elif line and not line[0].isspace() and lines[i + 1 : i + 2] and lines[i + 1].startswith("\t"):
            yield what(lines, i), case


def what(lines, i):
    words = [re.sub("0x[0-9a-f]+", "...", lines[i])]
    for k in range(i + 1, len(lines)):
        line = lines[k]
        if not line.startswith("\t"):
            break
        if re.match(r"\t(Kernel|Function|Error):", line):
            words.append(" ".join(line.split()))
        if line.startswith("\tAt line") and lines[k + 1].strip() not in words:
            words.append(lines[k + 1].strip())
    return "\n        ".join(words)


def main(paths):
    seen = {}
    for path in paths:
        with open(path, errors="replace") as log:
            for text, case in reports(log.read().split("\n")):
                seen.setdefault(text, []).append(case)
    for text, cases in sorted(seen.items()):
        print(f"{len(cases):6d}  {text}\n        in {len(set(cases))} cases, first: graft case {cases[0]}")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
