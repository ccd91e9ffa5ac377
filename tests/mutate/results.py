"""What became of mutants: a result a line in a file, and beside it what each has passed."""

import collections
import json
import threading
import time

import plan

ENDS = ("killed", "stillborn", "equivalent", "survived", "unjudged")
TOO_SLOW = "nothing failed in"


def key_of(mutant):
    return mutant["path"], mutant["before"].strip(), mutant["after"].strip()


def read_lines(path, fields):
    """An object a line, which has these fields."""
    found = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        try:
            read = json.loads(line)
            missing = [field for field in fields if not isinstance(read, dict) or field not in read]
            wrong = f"it has no {missing[0]}" if missing else None
        except json.JSONDecodeError as error:
            wrong = error
        if wrong:
            raise SystemExit(f"./run mutate: {path}: line {number} is no result ({wrong}): take it out, or name another file "
                             "with --results") from None
        found.append(read)
    return found


def read_results(path):
    return read_lines(path, ("path", "line", "before", "after", "end"))


def place_of(mutant):
    return (*key_of(mutant), mutant["line"])


def latest(results):
    """The last result of each mutant: what was judged again has two."""
    return {place_of(result): result for result in results}


def still_to_judge(mutants, results, again=False):
    """Those without a result, each once; with `again` behind them also what survived or was not judged."""
    found = latest(results)
    known = {place for place, result in found.items() if not (again and result["end"] in ("survived", "unjudged"))}
    left = {place: mutant for place, mutant in latest(mutants).items() if place not in known}
    return [left[place] for place in sorted(left, key=lambda place: place in found)]


def lacks_time(result):
    return result.get("by", "").startswith(TOO_SLOW)


def left_over(mutants, results):
    """How many have no result, or one for lack of time: what a later run judges."""
    found = latest(results)
    return sum(place not in found or lacks_time(found[place]) for place in latest(mutants))


class Passed:
    """What mutants have passed, kept in a file: a run that was broken off is not made again. `state` is of the tree and the
    device; what was passed in another state counts nothing."""

    def __init__(self, path, state):
        self.path, self.state, self.lock = path, state, threading.Lock()
        self.known = collections.defaultdict(set)
        for line in read_lines(path, ("state", "mutant", "title")):
            if line["state"] == state:
                self.known[tuple(line["mutant"])].add(line["title"])

    def of(self, mutant):
        return PassedOf(self, place_of(mutant))

    def add(self, place, title, seconds):
        with self.lock, self.path.open("a") as file:
            if title not in self.known[place]:
                file.write(json.dumps({"state": self.state, "mutant": place, "title": title, "seconds": seconds}) + "\n")
            self.known[place].add(title)


class PassedOf:
    """Titles of the checks that one mutant has passed."""

    def __init__(self, passed, place):
        self.passed, self.place, self.since = passed, place, time.monotonic()

    def __contains__(self, title):
        return title in self.passed.known[self.place]

    def __len__(self):
        return len(self.passed.known[self.place])

    def add(self, title):
        now = time.monotonic()
        self.passed.add(self.place, title, round(now - self.since, 1))
        self.since = now


def summary(results, equivalents, kind_of=plan.kind_of):
    """Lines of text: a table by kind of file, then what survived."""
    counts, survivors, smoke = {}, [], collections.Counter()
    for result in latest(results).values():
        end = result["end"]
        if end == "survived" and key_of(result) in equivalents:
            end = "equivalent"
        if end == "survived":
            survivors.append(result)
        counts.setdefault(kind_of(result["path"]), dict.fromkeys(ENDS, 0))[end] += 1
        smoke[kind_of(result["path"]), result.get("smoke") if end == "killed" else None] += 1
    yield f"{'kind':8}" + "".join(f"{end:>12}" for end in ENDS) + f"{'killed, %':>12}{'of smoke, %':>13}"
    for kind, row in sorted(counts.items()):
        judged = row["killed"] + row["survived"]
        share = f"{100 * row['killed'] / judged:.1f}" if judged else "-"
        asked = smoke[kind, "killed"] + smoke[kind, "passed"]
        alone = f"{100 * smoke[kind, 'killed'] / asked:.1f}" if asked else "-"
        yield f"{kind:8}" + "".join(f"{row[end]:>12}" for end in ENDS) + f"{share:>12}{alone:>13}"
    for mutant in survivors:
        yield f"\n{mutant['path']}:{mutant['line']} ({mutant['operator']}) survived"
        yield f"- {mutant['before'].strip()}"
        yield f"+ {mutant['after'].strip()}"
