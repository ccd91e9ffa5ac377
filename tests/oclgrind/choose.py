"""Chooses what a simulator runs of a selection of cases: choose.py LIST LOG TO, and choose.py --missing KERNELS LOG...

LIST has the ids of the selection. A LOG is of a run in which dry.c says what each case would launch. A case is chosen if
it is small and its values are of ordinary size, or if it launches a kernel of a program that no smaller case launches: so
none is lost. A case that the log does not name is chosen, too. The chosen ids go to the file TO. --missing names the
kernels in the folder of sources KERNELS that no case of any log launches."""
import re
import sys
from pathlib import Path

# A case's size is that of its buffers, in bytes, outputs of each run and workspaces included, and some more for each
# work-item of its launches: on its own such an item takes Oclgrind about as long as these.
ITEM_BYTES = 64
SMALL = 64 << 10 # ten matrices of 33x17 numbers of f32, say, and 670 work-items


class Case:
    def __init__(self):
        self.size, self.launches = 0, set()


def read(log):
    """The cases by id, in their order."""
    cases, now = {}, Case()
    for line in log:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "case":
            now = cases.setdefault(rest, Case())
        elif word == "launch":
            now.launches.add(rest)
        elif word == "buffer":
            now.size += int(rest)
        elif word == "items":
            now.size += ITEM_BYTES * int(rest)
    return cases


def is_usual(name, case):
    return case.size <= SMALL and name.split("/")[4] == "uniform"


def choose(cases):
    """The ids of those to run, in the cases' order; how many of them there are for what they launch alone."""
    chosen, launched, alone = set(), set(), 0
    for name, case in cases.items():
        if is_usual(name, case):
            chosen.add(name)
            launched |= case.launches
    for name in sorted(cases, key=lambda name: cases[name].size):
        if cases[name].launches <= launched:
            continue
        chosen.add(name)
        launched |= cases[name].launches
        alone += 1
    return [name for name in cases if name in chosen], alone


def entries(folder):
    """The names of all kernels in the sources."""
    found = set()
    for path in Path(folder).rglob("*.cl"):
        found |= set(re.findall(r"^KERNEL(?:_OF\([^()]*(?:\([^()]*\)[^()]*)*\))? (\w+)\(", path.read_text(), re.M))
    return found


def cases_of(log):
    with open(log, errors="replace") as lines:
        return read(lines)


def launched_by(cases):
    return set().union(*(case.launches for case in cases.values()))


def write_choice(listed, log, to):
    cases = cases_of(log)
    if not launched_by(cases):
        sys.exit(f"{log}: no case launches anything")
    chosen, alone = choose(cases)
    chosen += [name for name in Path(listed).read_text().split("\n") if name and name not in cases]
    Path(to).write_text("".join(f"{name}\n" for name in chosen))
    print(f"{len(chosen)} of {len(set(cases) | set(chosen))} cases, {alone} of them for what no smaller one launches; "
          f"{len(launched_by(cases))} kernels of programs, none left out")


def tell_missing(kernels, *logs):
    launched = {launch.split()[0] for log in logs for launch in launched_by(cases_of(log))}
    print(f"kernels that no case launches: {' '.join(sorted(entries(kernels) - launched)) or 'none'}")


if __name__ == "__main__":
    if sys.argv[1] == "--missing":
        tell_missing(*sys.argv[2:])
    else:
        write_choice(*sys.argv[1:])
