"""Which checks run a line: a map that ./run mutate --reach makes of the tree without a mutant.

A check that does not run the line of a mutant can't tell it. The suite is asked op by op, and a test program test by test, in
a build that writes down what it runs (tests/mutate/reached). What one has not run there it may still run another time, where
threads or the clock decide; a line that none runs is a hole in the tests. The map serves as long as nothing of the tree
has changed but text.
"""

import collections
import gzip
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from places import Places

CONFIGURE = ["-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
             "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG", "-DGRAFT_REACHED=ON"]
PATIENCE = {"CK_TIMEOUT_MULTIPLIER": "20"}
SUITES = {  # of the suite: the name in labels, the backend, what the run is told
    "cpu": ("opencl", [], {"GRAFT_OPENCL_KERNELS": "cpu", "GRAFT_OPENCL_OPTIMIZE": "no"}),
    "gpu": ("opencl", [], {"GRAFT_OPENCL_KERNELS": "gpu", "GRAFT_OPENCL_OPTIMIZE": "no"}),
    "reference": ("reference", ["--ways", "all"], {}),
}
TESTS_IN = re.compile(r"\b(?:ONCE|EACH)\((\w+)")


@dataclass(frozen=True)
class Task:
    """One command, and what it says it runs: label, or a label and the name that the suite gives."""
    label: str
    command: list
    environment: dict = field(default_factory=dict)
    of_suite: bool = False


class Map:
    """Of each line that has code, the labels that run it: "cpu aten.mm.default", "test_opencl streams_are_in_order". `seconds`
    has what the tests took, without those of programs that were cut off; `cut` are the suites that were."""

    def __init__(self, state, labels, seconds, cut, sets, lines):
        self.state, self.labels, self.seconds, self.sets, self.lines = state, labels, seconds, sets, lines
        self.cut = cut

    def of(self, path, line):
        """Labels; None where the line has no code of its own, nor has one that it continues."""
        lines = self.lines.get(path)
        if not lines:
            return None
        if str(line) not in lines:
            return None
        return {self.labels[at] for at in self.sets[lines[str(line)]]}

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            json.dump(vars(self), file)

    @classmethod
    def read(cls, path, state):
        """None where there is none, or one of another tree."""
        if not path.exists():
            return None
        with gzip.open(path, "rt") as file:
            found = cls(**json.load(file))
        return found if found.state == state else None


def tests_of(root, name):
    """The tests of a program, by its source."""
    return list(dict.fromkeys(TESTS_IN.findall((root / f"tests/{name}.c").read_text())))


def tasks_of(root, build, tests, shards):
    graft = str(build / "bin/graft")
    for name, (backend, options, environment) in SUITES.items():
        for shard in range(1, shards + 1):
            yield Task(name, [graft, "conformance", "-b", backend, "--level", "mustpass", "--jobs=1", "--time-limit", "600",
                              "--shard", f"{shard}/{shards}", *options], environment, of_suite=True)
    for program in tests:
        for test in tests_of(root, program):
            yield Task(f"{program} {test}", [str(build / "tests" / program)], {"CK_RUN_CASE": test})
    yield Task("prepared", [str(build / "tests/prepared"), "tests/fixtures/data"])


class Alone:
    """How commands are started where nobody keeps them: see Children in mutate.py."""

    @staticmethod
    def start(command, **more):
        return subprocess.Popen(command, start_new_session=True, **more)

    @staticmethod
    def ended(process):
        pass


def run_task(task, tree, folder, through, limit_s, children=Alone):
    """Seconds, None where it was cut off; what it runs is written into the folder when its processes end."""
    folder.mkdir(parents=True)
    begin, nothing = time.monotonic(), subprocess.DEVNULL
    process = children.start([*through, *task.command], cwd=tree, stdout=nothing, stderr=nothing, stdin=nothing,
                             env={**os.environ, **PATIENCE, **task.environment, "GRAFT_REACHED": str(folder)})
    try:
        status = process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
    finally:
        children.ended(process)
    return time.monotonic() - begin if status >= 0 else None


def take(task, folder, places, reached):
    """What one task ran, into `reached`: of (source, line) the labels."""
    by_module = collections.defaultdict(set)
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            parts = line.split("\t")
            if len(parts) == 3:
                label = f"{task.label} {parts[0]}".rstrip() if task.of_suite else task.label
                by_module[label, parts[1]].update(parts[2].split())
    for (label, module), offsets in by_module.items():
        if not os.path.exists(module):
            continue
        for offset in offsets:
            for place in places.lines_at(module, int(offset, 16)):
                reached[place].add(label)


def objects_of(build, paths, root):
    """The object file of each source, by what the build has compiled."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(entry["file"], root)
        made = Path(entry["directory"], entry.get("output") or re.search(r" -o (\S+)", entry["command"])[1])
        if path in paths and made.exists():
            found.setdefault(path, made)
    return found


def make(tree, build, paths, tests, jobs, state, through=(), say=print, limit_s=900, children=Alone):
    """The map of the sources `paths` of a tree that has no mutant."""
    begin = time.monotonic()
    if not (build / "build.ninja").exists():
        subprocess.run([*through, "cmake", "-S", str(tree), "-B", str(build), *CONFIGURE], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*through, "ninja", "-C", str(build), f"-j{jobs}"], check=True, stdout=subprocess.DEVNULL)
    say(f"built in {time.monotonic() - begin:.0f} s")
    folder = build / "reached"
    shutil.rmtree(folder, ignore_errors=True)
    tasks = list(tasks_of(tree, build, tests, max(jobs, 2)))
    with ThreadPoolExecutor(jobs) as threads:
        seconds = list(threads.map(lambda at: run_task(tasks[at], tree, folder / str(at), through, limit_s, children), range(len(tasks))))
    say(f"run in {time.monotonic() - begin:.0f} s")
    places, reached = Places(objects_of(build, paths, tree), jobs), collections.defaultdict(set)
    for at, task in enumerate(tasks):
        take(task, folder / str(at), places, reached)
    shutil.rmtree(folder)
    found = made_of(state, reached, places.lines, list(zip(tasks, seconds)))
    for label in cut_off(zip(tasks, seconds)):
        say(f"cut off, so that it is not known what it runs: {label}")
    say(f"{len(found.labels)} labels, {sum(map(len, found.lines.values()))} lines in {time.monotonic() - begin:.0f} s")
    return found


def cut_off(times):
    """Suites and programs of which a task was."""
    return sorted({task.label.partition(" ")[0] for task, time_s in times if time_s is None})


def made_of(state, reached, lines, times):
    """`times`: tasks, and the seconds they took."""
    cut = cut_off(times)
    seconds = {task.label: round(time_s, 1) for task, time_s in times
               if not task.of_suite and task.label.partition(" ")[0] not in cut}
    labels = sorted({label for of_place in reached.values() for label in of_place})
    number, sets, known = {label: at for at, label in enumerate(labels)}, [], {}
    found = {}
    for path, of_path in lines.items():
        for line in sorted(of_path):
            key = frozenset(reached.get((path, line), ()))
            if key not in known:
                known[key] = len(sets)
                sets.append(sorted(number[label] for label in key))
            found.setdefault(path, {})[str(line)] = known[key]
    return Map(state, labels, seconds, [label for label in cut if label in SUITES], sets, found)


# ---- what a line's checks are ----

LAUNCHES = "test_opencl_launches"  # which takes ops, too
MOST_OPS = 60  # as many are named one by one; what more of them share meets what the plan says
MOST_LETTERS = 3500  # of a list of ops, for which the suite has 4096
MOST_TESTS = 8  # of a program that are run by their names
UNKNOWN_S = 300  # what a program is taken to cost that was cut off


def option_of(check, option):
    words = check.command
    return words[words.index(option) + 1] if option in words[:-1] else None


def without(words, options):
    """A command without these options, each of which has a value."""
    return [word for before, word in zip(["", *words], words) if word not in options and before not in options]


def of_suite(check, labels, cut):
    """The same with the ops that run the line, or nothing; as it is where that is not known."""
    backend = option_of(check, "-b")
    suite = check.environment.get("GRAFT_OPENCL_KERNELS", "cpu") if backend == "opencl" else "reference"
    ops = sorted(label.removeprefix(f"{suite} ") for label in labels if label.startswith(f"{suite} "))
    if not ops and suite not in cut:
        return []
    if suite in cut or len(ops) > MOST_OPS or len(",".join(ops)) > MOST_LETTERS:
        return [check]
    return [replace(check, command=[*without(check.command, ("--family", "--shard", "--op")), "--op", ",".join(ops)])]


def of_launches(check, labels):
    """The same of the ops that run the line on some device, where they are known and few."""
    ops = sorted({label.partition(" ")[2] for label in labels if label.startswith(("cpu ", "gpu "))})
    if not ops or len(ops) > MOST_OPS or len(",".join(ops)) > MOST_LETTERS:
        return check
    return replace(check, command=[check.command[0], "--op", ",".join(ops)])


def of_program(check, program, labels, known):
    """The same, its tests that run the line by their names where these are few, or nothing; as it is where that is not known."""
    if not any(label.partition(" ")[0] == program for label in known):
        return [check]
    tests = sorted(label for label in labels if label == program or label.startswith(f"{program} "))
    if not tests or len(tests) == sum(label.startswith(f"{program} ") for label in known) or len(tests) > MOST_TESTS:
        return [check] if tests else []
    return [replace(check, environment={**check.environment, "CK_RUN_CASE": label.partition(" ")[2]})
            if " " in label else check for label in tests]


def narrowed(checks, found, labels):
    """What of the checks runs a line, by its labels in a map."""
    made = []
    for check in checks:
        program = Path(check.command[0]).name
        if "conformance" in check.command:
            made += of_suite(check, labels, found.cut)
        else:
            tests = of_program(check, program.removesuffix(".sh"), labels, found.seconds)
            made += [of_launches(test, labels) for test in tests] if program == LAUNCHES else tests
    return sorted(made, key=lambda check: cost_of(check, found))


def cost_of(check, found):
    """Roughly, in powers of 4 seconds: what costs as much stays in its order."""
    if "conformance" in check.command:
        ops = (option_of(check, "--op") or "").count(",") + 1 if option_of(check, "--op") else MOST_OPS
        each_s = 0.05 if option_of(check, "-b") == "reference" else 0.5
        cost_s = 1 + ops * each_s * (4 if option_of(check, "--level") == "mustpass" else 1)
    else:
        program, test = Path(check.command[0]).name.removesuffix(".sh"), check.environment.get("CK_RUN_CASE")
        known = {label: time_s for label, time_s in found.seconds.items() if label.partition(" ")[0] == program}
        cost_s = sum(time_s for label, time_s in known.items() if not test or label == f"{program} {test}") if known else UNKNOWN_S
        cost_s = cost_s / 10 if len(check.command) > 1 else cost_s  # of a family, or of some ops
    if "ASAN_OPTIONS" in check.environment:
        cost_s = 60 + 5 * cost_s
    return math.ceil(math.log(max(cost_s, 1), 4))
