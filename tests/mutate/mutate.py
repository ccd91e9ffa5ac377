#!/usr/bin/env python3
"""How strong the tests are: random changes of the source, one at a time, and whether anything fails.

    ./run mutate [--n N] [--seed S] [--paths GLOB[,GLOB]] [--kinds LIST] [--jobs J] [--seconds T] [--report]

Lines, operators and sites are drawn at random from the seed. Each mutant is built in a copy of the tree under
build/mutate (J copies, J mutants at a time), and meets the cases that the change can reach: those of its file's family.
It ends as

    killed     something failed, or took far too long
    stillborn  the compiler refuses it, of C or of OpenCL
    equivalent nothing failed, and equivalent.txt says why nothing could
    survived   nothing failed: a test is missing
    unjudged   all that it meets fails without it, too, or a test of it can't be built; or it took too long, or no kernel
               of the device has the line

Results are kept in build/mutate, by seed: a run that was broken off goes on where it stopped, and --report prints what
there is; a mutant that was being judged then has no result. What a mutant has passed is kept beside them and is not run
again, as long as nothing of the tree has changed but text. A mutant is known by its file and its text, before and after,
so that a change elsewhere does not touch it. --again judges what survived or was not judged once more: with tests that
are new, with more time, or on another device. With GRAFT_OPENCL_DEVICE=gpu that device's kernels are run, and a survivor there is one of
it: --again on PoCL runs both kinds of kernels.
"""

import fcntl
import fnmatch
import functools
import hashlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import plan  # noqa: E402
import reached  # noqa: E402
from draws import draw, draw_each, files_below, files_of, named, read_equivalents, tracked  # noqa: E402
from options import options_of  # noqa: E402
from results import (TOO_SLOW, Passed, lacks_time, latest, left_over, place_of, read_results,  # noqa: E402
                     still_to_judge, summary)

HERE = Path(__file__).resolve().parent
CCACHE = {"CCACHE_NOHASHDIR": "1"}  # what another copy of the tree has compiled serves this one
# Arguments of two types that change places, a text's format among them, are nothing that a programmer gets past the compiler.
REFUSED = ("[-Wincompatible-pointer-types]", "[-Wint-conversion]", "[-Wformat-nonliteral]")
NO_JUDGE = "all that it meets fails without it, too"
NOT_BUILT = "a test of it can't be built"
NOT_RUN = "no check runs the line"
LAST_LINES = 5  # of what a check says that fails without a mutant
SMOKE_SECONDS = 120  # what smoke has for a mutant that something else has killed


# ---- one mutant ----


class Children:
    """The commands that run now, each a process group of its own: a run that is stopped takes them along."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self):
        self.lock, self.alive, self.last_words = threading.Lock(), set(), str
        self.starting, self.stopped = False, None  # whether one is about to be known; the signal that stops the run

    def start(self, command, **more):
        with self.lock:
            if self.stopped:
                raise TimeIsUp
            self.starting = True
            try:
                process = subprocess.Popen(command, start_new_session=True, **more)
                self.alive.add(process)
            finally:
                self.starting = False
            if self.stopped:  # meanwhile
                self.end_all()
        return process

    def ended(self, process):
        with self.lock:
            self.alive.discard(process)

    def stop(self, number, _):
        """Of a signal, which may have come while this thread held the lock, or while one was started that is not known yet:
        who starts it ends all then."""
        self.stopped = number
        if not self.starting:
            self.end_all()

    def end_all(self):
        for process in list(self.alive):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.write(sys.stdout.fileno(), self.last_words().encode())
        os._exit(128 + self.stopped)

    def take_along(self):
        for number in self.SIGNALS:
            signal.signal(number, self.stop)


CHILDREN = Children()


class Sound:
    """Which checks pass without a mutant: asked of what fails with one, once each."""

    def __init__(self, say=print):
        self.say, self.known, self.lock = say, {}, threading.Lock()

    def ask(self, check, passes):
        """passes() runs the check without a mutant: whether it passes, and what it says."""
        with self.lock:
            if check.title in self.known:
                return self.known[check.title]
        good, output = passes()
        with self.lock:
            if check.title not in self.known and not good:
                self.say("\n    ".join([f"fails without a mutant: {check.title}; it judges none", *end_of_text(output)]))
            return self.known.setdefault(check.title, good)

    def judges(self, check):
        """Nothing is known that keeps it from that: that it fails, or what builds it."""
        return self.known.get(check.title, True) and all(self.judges(before) for before in check.after)


def end_of_text(output):
    """Its last lines, errors of a compiler in front of them."""
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines[:-LAST_LINES] if "error" in line]
    return [*errors[:LAST_LINES], *lines[-LAST_LINES:]]


class TimeIsUp(Exception):
    """Of the whole run: the mutant at hand has no result."""


class TookTooLong(Exception):
    """Of one mutant."""


class Bench:
    """A project, its copy of the tree, and how commands are run: each for limit_s at most, all of a mutant's for mutant_s,
    and none past `end`. `clean` is a bench whose tree never has a mutant; without it this one's is built without."""

    def __init__(self, project, through=(), limit_s=900, sound=None, mutant_s=float("inf"), clean=None):
        self.project, self.through, self.limit_s, self.mutant_s = project, list(through), limit_s, mutant_s
        self.sound, self.clean, self.end = sound or Sound(), clean, float("inf")
        self.environment, self.mutant_end, self.asks_smoke = {}, float("inf"), False
        self.building = threading.Lock()  # of a clean bench, which serves several at a time

    def run(self, command, environment=None, limit_s=None):
        """Exit status and output; the status is None where it took too long."""
        left = min(limit_s or self.limit_s, self.mutant_end - time.monotonic(), self.end - time.monotonic())
        process = CHILDREN.start([*self.through, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", cwd=self.project.tree,
                                 env={**os.environ, **CCACHE, "CCACHE_BASEDIR": str(self.project.tree),
                                      **self.environment, **(environment or {})})
        try:
            output = process.communicate(timeout=None if left == float("inf") else max(left, 0))[0]
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        finally:
            CHILDREN.ended(process)
        if time.monotonic() >= self.end:
            raise TimeIsUp
        if time.monotonic() >= self.mutant_end:
            raise TookTooLong
        return None, f"no end in {left:.0f} s"

    def succeeds(self, command, environment=None, never_says="", limit_s=None, good=(0,)):
        status, output = self.run(command, environment, limit_s)
        return status in good and not (never_says and never_says in output), output

    def passes(self, check):
        """What only builds has all the time there is: the first of a tree takes longer than any check."""
        return self.succeeds(check.command, check.environment, check.never_says, float("inf") if check.only_builds else None,
                             check.good)

    def passes_clean(self, check):
        """Of a tree without a mutant, where nothing ran before the check."""
        with self.building:
            for before in check.after:
                built, output = self.passes(before)
                if not built:
                    return False, output
        return self.passes(check)

    def kills(self, check, passes_without):
        """What the check says of the mutant that is built: None where it passes or fails without the mutant, too."""
        good, output = self.passes(check)
        if good:
            return None, True
        narrowed = check.narrowed(output)
        return output if self.sound.ask(narrowed, lambda: passes_without(narrowed)) else None, False

    def judge(self, mutant, checks, passed):
        """`passed` are the titles of checks that this mutant passes, as far as they are known; what it passes now joins them."""
        file = self.project.tree / mutant["path"]
        text = file.read_text()
        lines = text.split("\n")
        if lines[mutant["line"] - 1] != mutant["before"]:
            raise SystemExit(f"{mutant['path']}:{mutant['line']} is not what was drawn")
        lines[mutant["line"] - 1] = mutant["after"]
        changed = "\n".join(lines)

        def passes_without(check):
            if self.clean:
                return self.clean.passes_clean(check.moved(self.project.tree, self.clean.project.tree))
            file.write_text(text)
            build(self, [mutant["path"]])
            good, output = self.passes_clean(check)
            if not good or self.asks_smoke:
                file.write_text(changed)
                self.succeeds(self.project.compile(mutant["path"]))
                for before in check.after:
                    self.passes(before)
            return good, output

        file.write_text(changed)
        self.mutant_end = time.monotonic() + self.mutant_s
        self.environment = self.project.environment(mutant["path"])
        try:
            return self.end_of(mutant, checks, passed, passes_without)
        except TookTooLong:
            return {"end": "unjudged", "by": f"{TOO_SLOW} {self.mutant_s:g} s"}
        finally:
            file.write_text(text)
            self.environment, self.mutant_end = {}, float("inf")

    def end_of(self, mutant, checks, passed, passes_without):
        """A check that fails with the mutant judges it where what failed passes without."""
        built, output = self.succeeds(self.project.compile(mutant["path"]), limit_s=float("inf"))
        if not built or any(words in output for words in REFUSED):
            return {"end": "stillborn", "by": next((line for line in output.splitlines() if "error:" in line or "warning:" in line), "")}
        if not checks:
            return {"end": "survived", "by": NOT_RUN}
        left = [check for check in checks if check.title not in passed]
        builds, unbuilt = {before.title for check in left for before in check.after}, False
        for check in checks:
            unneeded = check not in left and check.title not in builds
            unbuilt = unbuilt or not unneeded and not all(self.sound.judges(before) for before in check.after)
            if unneeded or not self.sound.judges(check):
                continue
            output, passes = self.kills(check, passes_without)
            if passes:
                passed.add(check.title)
            elif output is not None:
                said = [line for line in output.splitlines() if line.startswith(("fail", "crash", "timeout")) or ":F:" in line]
                end = "stillborn" if plan.is_refused(mutant["path"], output) else "killed"
                return {"end": end, "by": check.name, "text": said[0] if said else "",
                        **self.smoke_of(check, checks, passed, passes_without)}
        if unbuilt:
            return {"end": "unjudged", "by": NOT_BUILT}
        judged = any(check.title in passed for check in checks if not check.only_builds)
        return {"end": "survived" if judged else "unjudged", **({} if judged else {"by": NO_JUDGE})}

    def smoke_of(self, killer, checks, passed, passes_without):
        """Whether smoke alone kills what another check has killed: asked of the parts that come behind that check."""
        parts = [check for check in checks if fnmatch.fnmatch(check.name, plan.SMOKE)]
        if not self.asks_smoke or not parts:
            return {}
        self.mutant_end = time.monotonic() + SMOKE_SECONDS
        try:
            kills = killer in parts or any(self.kills(check, passes_without)[0] is not None
                                           for check in parts if check.title not in passed)
        except (TookTooLong, TimeIsUp):
            return {}
        return {"smoke": "killed" if kills else "passed"}


def build(bench, paths):
    """Stops the run where the project does not build without a mutant."""
    for command in {tuple(bench.project.compile(path)): None for path in paths}:
        good, output = bench.succeeds(command, limit_s=float("inf"))
        if not good:
            raise SystemExit(output)


# ---- the run ----


def is_its_copy(source, target):
    """By size and time, which a mutant's file has of its own."""
    of_source, of_target = source.stat(), target.stat()
    return (of_source.st_size, of_source.st_mtime_ns) == (of_target.st_size, of_target.st_mtime_ns)


def copy_tree(root, to):
    """The tracked files as they are now; times stay, so that nothing is built twice. What differs, as a mutant does that was
    being judged when a run was broken off, becomes new, so that it is built again."""
    kept = set(files_of(root))
    for name in kept:
        source, target = Path(root, name), Path(to, name)
        if target.exists() and (is_its_copy(source, target) or target.read_bytes() == source.read_bytes()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copy if target.exists() else shutil.copy2
        copy(source, target)
    for name in set(files_below(Path(to))) - kept:
        Path(to, name).unlink()


class Pool:
    """Benches, each with a copy of the tree; one serves one piece of work at a time."""

    def __init__(self, benches):
        self.all = [*benches, *{bench.clean for bench in benches if bench.clean}]
        self.benches, self.count, self.free = benches, len(benches), queue.SimpleQueue()
        for bench in benches:
            self.free.put(bench)

    def with_bench(self, work):
        bench = self.free.get()
        try:
            return work(bench)
        finally:
            self.free.put(bench)

    def map(self, work, items):
        """work(bench, item) of each; the results as they come in the order of the items."""
        with ThreadPoolExecutor(self.count) as threads:
            yield from threads.map(lambda item: self.with_bench(lambda bench: work(bench, item)), items)


def prepare(pool, paths):
    """Configures and builds what is mutated, on one bench first, whose compiler's cache then serves the others."""
    def ready(bench):
        for command in bench.project.configure(paths):
            good, output = bench.succeeds(command, limit_s=float("inf"))
            if not good:
                raise SystemExit(output)
        build(bench, paths)

    ready(pool.all[0])
    with ThreadPoolExecutor(pool.count) as threads:
        list(threads.map(ready, pool.all[1:]))


def state_of(root, device):
    """A word that changes when anything of the tree does but what is only read: a check passed before says nothing then."""
    digest = hashlib.sha256(str(device).encode())
    for name in sorted(files_of(root)):
        if not name.endswith((".md", ".py")) or name.startswith("tests/mutate/plan"):
            digest.update(name.encode())
            digest.update((root / name).read_bytes())
    return digest.hexdigest()[:16]


def run(pool, mutants, results, say=print, seconds=float("inf"), again=False, baseline=False, quick=0, state=""):
    """Judges the mutants that have no result in the file yet, and adds theirs; what is not judged after `seconds` has none.
    With `baseline` the tests and smoke are run without a mutant before: what fails or takes too long then judges none.
    With `quick` each has so many seconds at first, and those that nothing killed in them have the whole time after that, for
    what they have not passed yet."""
    end = time.monotonic() + seconds
    left = still_to_judge(mutants, read_results(results), again)
    if not left:
        return
    one_at_a_time, done = threading.Lock(), len(latest(mutants)) - len(left)
    paths, passed = sorted({mutant["path"] for mutant in left}), Passed(results.with_suffix(".passed"), state)
    waiting = 0  # how many have no result in this turn

    def asked(bench, number):
        check, start = bench.project.baseline(paths)[number], time.monotonic()
        good = bench.sound.ask(check, lambda: bench.passes_clean(check))
        say(f"{'passes' if good else 'FAILS'} without a mutant: {check.title} ({time.monotonic() - start:.1f} s)")

    def judged(bench, mutant):
        nonlocal done, waiting
        bench.project.share_cores(max(1, waiting), pool.count)
        start, text = time.monotonic(), (bench.project.tree / mutant["path"]).read_text()
        if bench.project.meets(mutant, text):
            found = bench.judge(mutant, bench.project.checks(mutant["path"], mutant["line"]), passed.of(mutant))
        else:
            found = {"end": "unjudged", "by": "no kernel of the device has the line"}
        result = {**mutant, **found, "seconds": round(time.monotonic() - start, 1), "on": bench.project.device or "both"}
        with one_at_a_time, results.open("a") as file:
            file.write(json.dumps(result) + "\n")
            done, waiting = done + 1, waiting - 1
            say(f"{done}/{len(mutants)} {result['end']:9} {mutant['path']}:{mutant['line']} "
                f"{result.get('by', '')[:60]} ({result['seconds']} s)")

    def hurried(bench, mutant):
        whole, bench.mutant_s = bench.mutant_s, quick
        try:
            judged(bench, mutant)
        finally:
            bench.mutant_s = whole

    def work(bench, item):
        if time.monotonic() >= end:
            return
        try:
            item[0](bench, item[1])
        except TimeIsUp:
            pass

    def judge_each(mutants, how, first=()):
        nonlocal waiting
        waiting = len(mutants)
        for _ in pool.map(work, [*((asked, number) for number in first), *((how, mutant) for mutant in mutants)]):
            pass

    for bench in pool.all:
        bench.end = end
    try:
        prepare(pool, paths)
        first = range(pool.with_bench(lambda bench: len(bench.project.baseline(paths)))) if baseline else ()
        judge_each(left, hurried if quick else judged, first)
        if quick:
            found = latest(read_results(results))
            judge_each([mutant for mutant in left if lacks_time(found.get(place_of(mutant), {}))], judged)
    except TimeIsUp:
        say("no time was left to build what is mutated")


def device_asked_for():
    return "gpu" if os.environ.get("GRAFT_OPENCL_DEVICE") == "gpu" else None


def checks_asked_for(options):
    return [glob for glob in options.checks.split(";") if glob]


def refuse_unknown_checks(root, mutants, options):
    """Each glob matches a check that a mutant meets."""
    project = plan.Graft(root, root / "build", device=device_asked_for())
    names = {check.name for path in {mutant["path"] for mutant in mutants} for check in project.all_checks(path, None)}
    for glob in checks_asked_for(options):
        if not fnmatch.filter(names, glob):
            raise SystemExit(f"./run mutate: --checks: no check of these mutants is called {glob!r}; there are: "
                             + "; ".join(sorted(names)))


def bench(root, tree, options, sound, clean=None):
    tree.mkdir(parents=True, exist_ok=True)
    copy_tree(root, tree)
    device, only = device_asked_for(), checks_asked_for(options)
    made = Bench(plan.Graft(tree, tree / "build", 1 if options.jobs > 1 else None, device, only), options.through.split(),
                 limit_s=options.check_seconds, mutant_s=options.mutant_seconds, sound=sound, clean=clean)
    made.asks_smoke = options.smoke
    return made


def drawn(root, options):
    texts = {path: (root / path).read_text()
             for path in tracked(root, [glob for glob in options.paths.split(",") if glob])}
    kinds = [kind for kind in options.kinds.split(",") if kind]
    if options.these:
        mutants = list(named(root, Path(options.these)))
    elif kinds:
        mutants = draw_each(texts, kinds, options.n, options.seed)
    else:
        mutants = draw(texts, options.n, options.seed)
    if not mutants:
        raise SystemExit(f"./run mutate: no file that is mutated matches {options.paths}")
    return mutants


def take_map(root, work, benches, where, options, say):
    """Which checks run a line: the map of this tree, made anew with --reach where there is none."""
    state, path = state_of(root, "reached"), work / "reached.json.gz"
    found = reached.Map.read(path, state)
    if not found and options.reach:
        paths = [path for path in tracked(root, []) if plan.kind_of(path) in ("c", "ops", "table")]
        tree = where.project.tree
        tests = [name for name in plan.ALL_TESTS if name != plan.FAILURES]  # which takes longest, and meets nearly all
        found = reached.make(tree, tree / "build-reached", paths, tests, options.jobs, state, options.through.split(), say,
                             options.check_seconds, CHILDREN)
        found.write(path)
    say(f"known which checks run {sum(map(len, found.lines.values()))} lines" if found else
        "not known which checks run a line: --reach makes a map of it, for this tree")
    for bench in benches:
        bench.project.map = found


def judge_all(root, work, mutants, results, options):
    began = time.monotonic()
    CHILDREN.take_along()
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"./run mutate: another run works in {work}; its --jobs says how many mutants at a time") from None
        say = functools.partial(print, flush=True)
        sound = Sound(say)
        clean = bench(root, work / "clean", options, sound) if options.jobs > 1 else None
        with ThreadPoolExecutor(options.jobs) as threads:
            trees = [work / f"tree{number or ''}" for number in range(options.jobs)]
            benches = list(threads.map(lambda tree: bench(root, tree, options, sound, clean), trees))
        take_map(root, work, benches, clean or benches[0], options, say)
        left = options.seconds - (time.monotonic() - began)
        CHILDREN.last_words = lambda: still_left(mutants, results) + "\n"
        run(Pool(benches), mutants, results, say, left, options.again, options.baseline, options.quick_seconds,
            state_of(root, benches[0].project.device))


def still_left(mutants, results):
    return f"{left_over(mutants, read_results(results))} of {len(latest(mutants))} are left to judge; results in {results}"


def main(arguments):
    options = options_of(arguments, __doc__.split("\n\n")[0])
    root = Path(__file__).resolve().parents[2]
    work = root / "build/mutate"
    name = Path(options.these).name if options.these else options.seed
    results = Path(options.results or work / f"results-{name}.jsonl")
    equivalents = read_equivalents(HERE / "equivalent.txt")
    mutants = drawn(root, options)
    if not options.report:
        if options.list:
            for mutant in mutants:
                print(f"{mutant['path']}:{mutant['line']} {mutant['operator']}\n- {mutant['before']}\n+ {mutant['after']}")
            return
        refuse_unknown_checks(root, mutants, options)
        judge_all(root, work, mutants, results, options)
    print(*summary(read_results(results), equivalents), still_left(mutants, results), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
