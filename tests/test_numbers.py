"""Numbers in the documents are what a command says, now: test_numbers.py ROOT GRAFT

A number of ops, cases and the like in README.md, CONTRIBUTING.md, docs/ or a README of a folder has to stand in COMMANDS
with the command that counts it. "about" allows for a tenth more or less. Tables of measurements name their commands
themselves, and generated pages have tests of their own.
"""

import re
import subprocess
import sys
from pathlib import Path

GENERATED = {"pytorch_routes.md", "pytorch_op_db.md"}
NUMBER = re.compile(
    r"(?P<about>about )?\b(?P<number>\d[\d,]*)(?: of \d[\d,]*)? "
    r"(?P<what>ops|overloads|cases|slots|samples|kernels|mutants|families|functions|tests|modules)\b"
)


def lines(root, graft, *arguments):
    done = subprocess.run([graft, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def cases(level):
    return lambda root, graft: len(lines(root, graft, "conformance", "--list", "--level", level))


def slots_of(backend):
    def count(root, graft):
        rows = [line.split("\t") for line in lines(root, graft, "ops", "-b", backend)]
        return sum(row[3] == "plugin" for row in rows)

    return count


# (file, its words for what is counted, up to the number) -> how many there are
COMMANDS = {
    ("README.md", "ops"): slots_of("opencl"),
    ("docs/conformance.md", "cases"): {"`smoke`": cases("smoke"), "`mustpass`": cases("mustpass")},
}


def documents(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md")]
    for room in ("sdk", "plugin_api", "conformance", "reference_backend_opencl", "tests"):
        found += root.glob(f"{room}/**/README.md")
    return sorted(path for path in found if path.name not in GENERATED)


def command_of(path, line, match):
    """The command that counts it; of several for one file, the one whose name the line bears."""
    command = COMMANDS.get((path, match["what"]))
    if isinstance(command, dict):
        return next((count for name, count in command.items() if name in line), None)
    return command


def is_right(match, counted):
    said = int(match["number"].replace(",", ""))
    return abs(said - counted) <= (counted / 10 if match["about"] else 0)


def problems(root, graft):
    for path in documents(root):
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in NUMBER.finditer(line):
                command = command_of(name, line, match)
                if command is None:
                    yield f'{name}:{number}: "{match[0]}": nothing here counts them; say it without the number'
                elif not is_right(match, counted := command(root, graft)):
                    yield f'{name}:{number}: "{match[0]}", but there are {counted}'


def unused(root):
    """Commands whose number is gone."""
    said = {(str(path.relative_to(root)), match["what"])
            for path in documents(root)
            for match in NUMBER.finditer(path.read_text(encoding="utf-8"))}
    return [f"{name} has no number of {what} any more; take its command out" for name, what in COMMANDS.keys() - said]


if __name__ == "__main__":
    found = [*problems(Path(sys.argv[1]), sys.argv[2]), *unused(Path(sys.argv[1]))]
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
