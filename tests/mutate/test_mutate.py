"""The mutation run itself: test_mutate.py. A tiny project whose answers are known, and the operators on lines of C."""

import contextlib
import fcntl
import fnmatch
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import mutate  # noqa: E402
import operators  # noqa: E402
import plan  # noqa: E402
import reach  # noqa: E402
import reached  # noqa: E402
import results  # noqa: E402

SOURCE = """/* a < b in a comment is no site; neither is "a < b" */
#define LIMIT 1 + 2
#include "value.h"
int larger(int a, int b) {
  if (a > b) return a;
  return b;
}

int unused(int a) {
  return a + 1;
}
"""
TEST = """#include <stdlib.h>
int larger(int a, int b);
int main(void) {
  if (larger(1, 2) != 2 || larger(2, 1) != 2) abort();
  return 0;
}
"""
ENDLESS = """#include <unistd.h>
int larger(int a, int b);
int main(void) {
  while (larger(1, 2) != 2) pause();
  return 0;
}
"""


class Tiny:
    """Two files and a compiler; nothing tells > from >= where the larger of equal numbers is asked for."""

    device = None

    def __init__(self, folder):
        self.tree = Path(folder)
        (self.tree / "source.c").write_text(SOURCE)
        (self.tree / "value.h").write_text("")
        (self.tree / "test.c").write_text(TEST)

    def configure(self, paths):
        return []

    def compile(self, path):
        return ["cc", "-o", str(self.tree / "test"), str(self.tree / path), str(self.tree / "test.c")]

    def environment(self, path):
        return {}

    def meets(self, mutant, text):
        return True

    def share_cores(self, mutants, cores):
        pass

    def checks(self, path, line):
        return [plan.Check("test", [str(self.tree / "test")])]


def changes(line):
    return {site.operator + ": " + site.after.strip() for site in operators.sites(line)}


class Operators(unittest.TestCase):
    def test_each_operator(self):
        self.assertEqual(changes("if (n < 4) sum += x;"),
                         {"relation: if (n <= 4) sum += x;", "constant: if (n < 5) sum += x;",
                          "constant: if (n < 3) sum += x;", "condition: if (!(n < 4)) sum += x;",
                          "assignment: if (n < 4) sum -= x;", "statement: if (n < 4) ;"})
        self.assertEqual(changes("return SUB(x, MAXIMUM(y, z));"), {"arguments: return SUB(MAXIMUM(y, z), x);"})
        self.assertEqual(changes("return x * -y;"), {"arithmetic: return x / -y;", "sign: return x * y;"})
        self.assertEqual(changes("  store(out, value);"), {"arguments: store(value, out);", "statement: ;"})
        self.assertEqual(changes("x = a && !b;"),
                         {"logic: x = a || !b;", "sign: x = a && b;", "statement: ;"})
        self.assertEqual(changes("if (fits || !x) return -1;") & {"statement: ;"}, set())
        self.assertEqual(changes("return 0.5f;"), {"constant: return 0.75f;", "constant: return 1.5f;"})

    def test_what_is_no_code(self):
        for line in ("// a < b", "/* a + b */", "#define A (1 + 2)", 'say("a < b");'[4:12], "const char *name;",
                     "static int *p;", "}"):
            self.assertEqual(changes(line), set(), line)
        self.assertEqual(changes('say("a < b", 1);') & {'relation: say("a <= b", 1);'}, set())

    def test_strings_of_another_language(self):
        found = operators.sites('ROW(relu, 1 + 2, "a < (T)0 ? b : a"), /* "c < d" */', strings=True)
        self.assertEqual({(site.operator, site.after.split('"')[1]) for site in found},
                         {("relation", "a <= (T)0 ? b : a"), ("constant", "a < (T)1 ? b : a")})

    def test_a_comment_over_lines_hides_them(self):
        self.assertEqual([site.line for site in operators.sites("/* a < b\n c < d */\nreturn e < f;")], [2])


class Draws(unittest.TestCase):
    def test_the_seed_decides(self):
        texts = {"source.c": SOURCE}
        self.assertEqual(mutate.draw(texts, 4, 7), mutate.draw(texts, 4, 7))
        self.assertNotEqual(mutate.draw(texts, 4, 7), mutate.draw(texts, 4, 8))
        every = mutate.draw(texts, 1000, 1)
        self.assertEqual(len(every), len({results.key_of(mutant) for mutant in every}))
        self.assertEqual({mutant["line"] for mutant in every}, {5, 10})
        self.assertEqual(mutate.draw(texts, 3, 7), mutate.draw(texts, 4, 7)[:3])

    def test_each_kind_has_its_own(self):
        texts = {"sdk/ops/scan/rules.c": SOURCE, "reference_backend_opencl/runtime/queue.c": SOURCE.replace("2", "3")}
        found = mutate.draw_each(texts, ["ops", "c"], 3, 7)
        self.assertEqual([plan.kind_of(mutant["path"]) for mutant in found], ["ops", "c"] * 3)
        self.assertEqual(found[::2], mutate.draw({"sdk/ops/scan/rules.c": SOURCE}, 3, 7))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.said = []
        self.bench = mutate.Bench(Tiny(folder.name), limit_s=20, sound=mutate.Sound(self.said.append))
        self.results = Path(folder.name, "results.jsonl")

    def run_all(self, mutants):
        mutate.run(mutate.Pool([self.bench]), mutants, self.results, self.said.append)
        return {result["after"].strip(): result["end"] for result in mutate.read_results(self.results)}

    def mutants(self):
        return mutate.draw({"source.c": SOURCE}, 1000, 1)

    def test_known_answers(self):
        ends = self.run_all(self.mutants())
        self.assertEqual(ends["if (a >= b) return a;"], "survived")
        self.assertEqual(ends["if (!(a > b)) return a;"], "killed")
        self.assertEqual(ends["return a - 1;"], "survived")
        self.assertEqual((self.bench.project.tree / "source.c").read_text(), SOURCE)

    def test_what_does_not_compile(self):
        mutant = {"path": "source.c", "line": 6, "before": "  return b;", "after": "  return c;", "operator": "name"}
        self.assertEqual(self.run_all([mutant]), {"return c;": "stillborn"})

    def test_a_run_goes_on_where_it_stopped(self):
        mutants = self.mutants()
        self.run_all(mutants[:2])
        self.said.clear()
        self.run_all(mutants)
        self.assertEqual(len(self.said), len(mutants) - 2)
        self.said.clear()
        self.run_all(mutants)
        self.assertEqual(self.said, [])

    def test_a_project_that_fails_kills_nothing(self):
        (self.bench.project.tree / "test.c").write_text(TEST.replace("!= 2", "!= 3"))
        self.assertEqual(set(self.run_all(self.mutants()).values()), {"unjudged"})
        self.assertEqual(self.said[0], "fails without a mutant: test; it judges none")

    def test_a_check_that_fails_judges_none_and_the_others_do(self):
        project, works = self.bench.project, self.bench.project.checks("source.c", 5)
        project.checks = lambda path, line: [plan.Check("broken", ["false"]), *works]
        self.assertEqual(self.run_all(self.mutants())["if (a >= b) return a;"], "survived")
        self.assertEqual(self.said[0], "fails without a mutant: false; it judges none")

    def test_no_mutant_is_begun_past_the_time(self):
        mutate.run(mutate.Pool([self.bench]), self.mutants(), self.results, self.said.append, seconds=0)
        self.assertFalse(self.results.exists())

    def test_a_mutant_that_is_cut_off_has_no_result_and_is_judged_next_time(self):
        (self.bench.project.tree / "test.c").write_text(ENDLESS)
        mutant = [mutant for mutant in self.mutants() if "!(a > b)" in mutant["after"]]
        began = time.monotonic()
        mutate.run(mutate.Pool([self.bench]), mutant, self.results, self.said.append, seconds=3)
        self.assertLess(time.monotonic() - began, 10)
        self.assertFalse(self.results.exists())
        self.assertEqual((self.bench.project.tree / "source.c").read_text(), SOURCE)
        self.bench.limit_s = 2
        self.assertEqual(self.run_all(mutant), {"if (!(a > b)) return a;": "killed"})

    def test_a_mutant_that_takes_too_long_is_not_judged(self):
        (self.bench.project.tree / "test.c").write_text(ENDLESS)
        self.bench.mutant_s = 2
        mutants = [mutant for mutant in self.mutants() if mutant["line"] == 5]
        self.assertEqual(self.run_all(mutants)["if (!(a > b)) return a;"], "unjudged")
        self.assertEqual(self.run_all(mutants)["if (a >= b) return a;"], "survived")

    def test_what_nothing_kills_quickly_is_judged_at_the_end(self):
        slow = plan.Check("slow", ["sh", "-c", "sleep 2; ! grep -q 'a - 1' source.c"])
        self.bench.project.checks = lambda path, line: [plan.Check("quick", ["sh", "-c", "! grep -q '!(' source.c"]), slow]
        mutants = [mutant for mutant in self.mutants() if "a - 1" in mutant["after"] or "!(" in mutant["after"]]
        mutate.run(mutate.Pool([self.bench]), mutants, self.results, self.said.append, quick=1)
        self.assertEqual([(result["after"].strip(), result["end"]) for result in mutate.read_results(self.results)
                          if "a - 1" in result["after"]], [("return a - 1;", "unjudged"), ("return a - 1;", "killed")])
        ends = {result["after"].strip(): result["by"] for result in mutate.latest(mutate.read_results(self.results)).values()}
        self.assertEqual(ends, {"return a - 1;": "slow", "if (!(a > b)) return a;": "quick"})

    def test_what_was_passed_quickly_is_not_run_again(self):
        def check(name, script, **more):
            return plan.Check(name, ["sh", "-c", f"echo {name} >> ran; {script}"], **more)

        build, slow = check("build", "true"), "! grep -q 'a - 1' source.c || sleep 2"
        self.bench.project.checks = lambda path, line: [
            check("first", "true"), build, check("slow", slow, after=(build,)), check("last", "! grep -q 'a - 1' source.c")]
        mutants = [mutant for mutant in self.mutants() if "a - 1" in mutant["after"]]
        mutate.run(mutate.Pool([self.bench]), mutants, self.results, self.said.append, quick=1)
        self.assertEqual((self.bench.project.tree / "ran").read_text().split(),
                         ["first", "build", "slow", "build", "slow", "last", "last"])  # the last without the mutant, too
        self.assertEqual([result["end"] for result in mutate.read_results(self.results)], ["unjudged", "killed"])

    def test_what_was_passed_before_the_end_is_not_run_by_the_next_run(self):
        slow = plan.Check("slow", ["sh", "-c", "echo slow >> ran; test ! -e is_slow || sleep 30; ! grep -q 'a - 1' source.c"])
        first = plan.Check("first", ["sh", "-c", "echo first >> ran"])
        self.bench.project.checks = lambda path, line: [first, slow]
        mutants = [mutant for mutant in self.mutants() if "a - 1" in mutant["after"]]
        tree = self.bench.project.tree
        (tree / "is_slow").write_text("")
        pool = mutate.Pool([self.bench])
        mutate.run(pool, mutants, self.results, self.said.append, seconds=3)
        self.assertEqual(mutate.left_over(mutants, mutate.read_results(self.results)), 1)
        (tree / "is_slow").unlink()
        mutate.run(pool, mutants, self.results, self.said.append, again=True)
        self.assertEqual((tree / "ran").read_text().split(), ["first", "slow", "slow", "slow"])  # the last without the mutant
        self.assertEqual(mutate.left_over(mutants, mutate.read_results(self.results)), 0)
        self.results.unlink()
        (tree / "ran").unlink()
        mutate.run(pool, mutants, self.results, self.said.append, state="another tree")
        self.assertEqual((tree / "ran").read_text().split(), ["first", "slow"])

    def test_what_builds_tests_judges_none(self):
        build = plan.Check("build", ["true"], only_builds=True)
        self.bench.project.checks = lambda path, line: [build, plan.Check("broken", ["false"], after=(build,))]
        self.assertEqual(set(self.run_all(self.mutants()).values()), {"unjudged"})

    def test_smoke_is_asked_of_what_another_check_kills(self):
        def check(name, kills):
            return plan.Check(name, ["sh", "-c", f": {name}; ! grep -q '{kills}' source.c"])

        self.bench.asks_smoke = True
        self.bench.project.checks = lambda path, line: [check("other", "a [-] 1"), check("smoke, cpu kernels", "a - 1"),
                                                        check("last", "a >= b")]
        self.run_all(self.mutants())
        self.assertEqual({result["after"].strip(): result.get("smoke") for result in mutate.read_results(self.results)
                          if result["end"] == "killed"}, {"return a - 1;": "killed", "if (a >= b) return a;": "passed"})
        text = "\n".join(mutate.summary(mutate.read_results(self.results), {}, lambda path: "tiny"))
        self.assertRegex(text, r"tiny .* 50\.0\n")

    def test_a_tree_without_mutants_says_what_passes_without(self):
        self.bench.project.checks = lambda path, line: [plan.Check("fine", ["sh", "-c", "test -e fine"])]
        with tempfile.TemporaryDirectory() as other:
            self.bench.clean = mutate.Bench(Tiny(other), limit_s=20)
            self.assertEqual(set(self.run_all(self.mutants()).values()), {"unjudged"})
            self.results.unlink()
            self.bench.sound.known.clear()
            Path(other, "fine").write_text("")
            self.assertEqual(set(self.run_all(self.mutants()).values()), {"killed"})
        self.assertEqual(plan.Check("a", ["/t/build/a", "-C", "b"]).moved("/t", "/u").command, ["/u/build/a", "-C", "b"])

    def test_a_tree_without_mutants_builds_what_a_check_needs(self):
        built = plan.Check("built", ["touch", "built"])
        kills = plan.Check("kills", ["sh", "-c", "test -e built && ! grep -q 'a - 1' source.c"], after=(built,))
        self.bench.project.checks = lambda path, line: [built, kills]
        with tempfile.TemporaryDirectory() as other:
            self.bench.clean = mutate.Bench(Tiny(other), limit_s=20)
            Path(other, "source.c").write_text(SOURCE)
            self.assertEqual(self.run_all(self.mutants())["return a - 1;"], "killed")

    def test_what_cannot_be_built_without_a_mutant_either_is_not_run(self):
        built = plan.Check("tests", ["sh", "-c", "echo no header; false"], only_builds=True)
        missing = plan.Check("missing", ["./missing"], after=(built,))
        kills = plan.Check("kills", ["sh", "-c", "! grep -q 'a - 1' source.c"])
        self.bench.project.checks = lambda path, line: [built, missing, kills]
        ends = self.run_all(self.mutants())
        self.assertEqual(ends.pop("return a - 1;"), "killed")
        self.assertEqual(set(ends.values()), {"unjudged"})
        self.assertEqual(self.said[0].split("\n")[1:], ["    no header"])

    def test_what_builds_has_more_time_than_a_check(self):
        built = plan.Check("tests", ["sleep", "2"], only_builds=True)
        kills = plan.Check("kills", ["sh", "-c", "! grep -q 'a - 1' source.c"], after=(built,))
        self.bench.project.checks, self.bench.limit_s = lambda path, line: [built, kills], 1
        mutants = [mutant for mutant in self.mutants() if "a - 1" in mutant["after"]]
        self.assertEqual(self.run_all(mutants), {"return a - 1;": "killed"})

    def test_a_compiler_that_takes_long_refuses_nothing(self):
        project, works = self.bench.project, self.bench.project.compile
        project.compile = lambda path: ["sh", "-c", "sleep 2; exec \"$@\"", "sh", *works(path)]
        self.bench.limit_s = 1
        mutants = [mutant for mutant in self.mutants() if "a - 1" in mutant["after"]]
        self.assertEqual(self.run_all(mutants), {"return a - 1;": "survived"})

    def test_options_are_looked_at_first(self):
        for given, says in (("--seconds -1", "--seconds"), ("--check-seconds 0", "--check-seconds"), (f"--results {os.sep}", "folder"),
                            ("--quick-seconds -2", "--quick-seconds"), ("--kinds nosuch", "nosuch"), ("--n 0", "--n"),
                            (f"--these {os.sep}", "--these")):
            errors = io.StringIO()
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(errors):
                mutate.options_of(given.split(), "")
            self.assertIn(says, errors.getvalue())
        options = types.SimpleNamespace(checks="smoke*;nosuch")
        with self.assertRaisesRegex(SystemExit, "'nosuch'"):
            mutate.refuse_unknown_checks(Path(__file__).parents[2], [{"path": "sdk/ops/scan/rules.c"}], options)
        self.results.write_text('{"end"\n')
        with self.assertRaisesRegex(SystemExit, "line 1 is no result"):
            mutate.read_results(self.results)
        self.results.write_text('{"end": "killed"}\n')
        with self.assertRaisesRegex(SystemExit, "it has no path"):
            mutate.read_results(self.results)

    def test_no_mutant_is_judged_twice(self):
        mutants = self.mutants()
        self.assertEqual(mutate.still_to_judge([*mutants, *mutants], []), mutants)
        self.run_all([*mutants, *mutants])
        self.assertEqual(len(mutate.read_results(self.results)), len(mutants))
        self.assertEqual(mutate.still_to_judge(mutants, mutate.read_results(self.results)), [])

    def test_what_survived_is_judged_again_when_asked(self):
        mutants, tree = self.mutants(), self.bench.project.tree
        before = self.run_all(mutants)
        (tree / "test.c").write_text(TEST.replace("if (", "if (unused(2) != 3 || ").replace("int main", "int unused(int);\nint main"))
        mutate.run(mutate.Pool([self.bench]), mutants, self.results, self.said.append, again=True, state="new tests")
        results = mutate.read_results(self.results)
        self.assertEqual(len(results), len(mutants) + list(before.values()).count("survived"))
        ends = {result["after"].strip(): result["end"] for result in mutate.latest(results).values()}
        self.assertEqual((ends["return a - 1;"], ends["if (a >= b) return a;"]), ("killed", "survived"))
        self.assertRegex("\n".join(mutate.summary(results, {}, lambda path: "tiny")), r"tiny +4 +0 +0 +1 +0 +80\.0")

    def test_a_line_that_no_check_runs_survives_at_once(self):
        self.bench.project.checks = lambda path, line: []
        self.assertEqual(set(self.run_all(self.mutants()).values()), {"survived"})
        self.assertEqual({result["by"] for result in mutate.read_results(self.results)}, {mutate.NOT_RUN})

    def test_a_map_is_made_when_asked_and_serves_its_tree(self):
        root, made = self.bench.project.tree, []

        def make(*arguments):
            made.append(arguments)
            return reached.made_of(arguments[5], {}, {}, [])

        def take(reach):
            options = types.SimpleNamespace(reach=reach, jobs=1, through="", check_seconds=1)
            mutate.take_map(root, root / "build", [self.bench], self.bench, options, self.said.append)
            return self.bench.project.map

        with unittest.mock.patch("reached.make", make):
            self.assertIsNone(take(False))
            self.assertIsNotNone(take(True))
            self.assertIsNotNone(take(False))
            self.assertEqual(len(made), 1)
            (root / "source.c").write_text(SOURCE + "\n")
            self.assertIsNone(take(False))

    def test_the_baseline_says_what_judges_none(self):
        project = self.bench.project
        broken = plan.Check("broken", ["false"])
        project.checks, project.baseline = lambda path, line: [broken], lambda paths: [broken, plan.Check("good", ["true"])]
        mutate.run(mutate.Pool([self.bench]), self.mutants()[:1], self.results, self.said.append, baseline=True)
        self.assertRegex("\n".join(self.said), r"(?s)FAILS without a mutant: false.*passes without a mutant: true.*unjudged")

    def test_two_runs_at_once_are_refused(self):
        options = types.SimpleNamespace(jobs=1, seconds=1, again=False, baseline=False, quick_seconds=0)
        with (self.results.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.assertRaisesRegex(SystemExit, "another run"):
                mutate.judge_all(Path(), self.results.parent, [], self.results, options)

    def test_what_a_device_cannot_meet_is_not_judged(self):
        self.bench.project.meets = lambda mutant, text: False
        self.assertEqual(set(self.run_all(self.mutants()).values()), {"unjudged"})

    def test_what_the_compiler_of_kernels_refuses(self):
        script = "echo x.cl does not compile: CL_BUILD_PROGRAM_FAILURE; ! grep -q 'a - 1' source.c"
        self.bench.project.checks = lambda path, line: [plan.Check("conformance", ["sh", "-c", script])]
        mutant = next(mutant for mutant in self.mutants() if "a - 1" in mutant["after"])
        for kind, end in (("cl", "stillborn"), ("c", "killed")):
            self.results.unlink(missing_ok=True)
            with unittest.mock.patch("plan.kind_of", lambda path, kind=kind: kind):
                self.assertEqual(self.run_all([mutant]), {"return a - 1;": end})

    def test_a_project_that_does_not_build_ends_the_run(self):
        (self.bench.project.tree / "test.c").write_text("int main(")
        with self.assertRaises(SystemExit):
            self.run_all(self.mutants())
        self.assertFalse(self.results.exists())

    def test_two_at_a_time(self):
        alone = self.run_all(self.mutants())
        with tempfile.TemporaryDirectory() as other:
            pool, results = mutate.Pool([self.bench, mutate.Bench(Tiny(other), limit_s=20)]), Path(other, "results.jsonl")
            mutate.run(pool, self.mutants(), results, self.said.append)
            self.assertEqual({result["after"].strip(): result["end"] for result in mutate.read_results(results)}, alone)

    def test_a_change_that_never_ends_is_killed(self):
        (self.bench.project.tree / "test.c").write_text(ENDLESS)
        self.bench.limit_s = 2
        self.assertEqual(self.run_all([m for m in self.mutants() if "!(a > b)" in m["after"]]),
                         {"if (!(a > b)) return a;": "killed"})

    def test_a_run_that_is_stopped_leaves_no_command_behind(self):
        root = self.bench.project.tree
        marker = str(root / "sleeps")
        code = ("import sys, types; sys.path.insert(0, sys.argv[1]); import mutate, pathlib\n"
                "mutate.CHILDREN.take_along()\n"
                "project = types.SimpleNamespace(tree=pathlib.Path(sys.argv[2]))\n"
                "mutate.Bench(project).run(['sh', '-c', 'echo $$ > sleeps.new; mv sleeps.new sleeps; sleep 1000'])\n")
        run = subprocess.Popen([sys.executable, "-c", code, str(Path(mutate.__file__).parent), str(root)])
        while not os.path.exists(marker):
            self.assertIsNone(run.poll())
            time.sleep(0.01)
        run.terminate()
        self.assertEqual(run.wait(), 128 + signal.SIGTERM)
        child = int(Path(marker).read_text())
        self.expect_end(child)

    def expect_end(self, child):
        for _ in range(1000):  # killed, it is gone once whoever inherits it has asked for it
            if not self.is_alive(child):
                return
            time.sleep(0.01)
        self.fail(f"process {child} lives on")

    def test_a_command_that_is_being_started_is_taken_along_too(self):
        code = ("import os, signal, subprocess, sys; sys.path.insert(0, sys.argv[1]); import mutate\n"
                "real = subprocess.Popen\n"
                "def start(*words, **more):\n"
                "    process = real(*words, **more)\n"
                "    print(process.pid, flush=True)\n"
                "    os.kill(os.getpid(), signal.SIGTERM)\n"
                "    return process\n"
                "subprocess.Popen = start\n"
                "mutate.CHILDREN.take_along()\n"
                "mutate.CHILDREN.start(['sleep', '1000'])\n")
        run = subprocess.run([sys.executable, "-c", code, str(Path(mutate.__file__).parent)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM)
        self.expect_end(int(run.stdout.split()[0]))

    @staticmethod
    def is_alive(pid):
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def test_the_summary(self):
        path = self.results.parent / "equivalent.txt"
        path.write_text("# why\n\nsource.c\n- if (a > b) return a;\n+ if (a >= b) return a;\n"
                        "Equal numbers are one number.\n")
        self.run_all(self.mutants())
        text = "\n".join(mutate.summary(mutate.read_results(self.results), mutate.read_equivalents(path),
                                        lambda path: "tiny"))
        self.assertRegex(text, r"tiny +1 +0 +1 +3 +0 +25\.0")
        self.assertIn("+ return a - 1;", text)
        self.assertNotIn("+ if (a >= b)", text)
        tree = self.bench.project.tree
        self.assertEqual([mutant["after"] for mutant in mutate.named(tree, path)], ["  if (a >= b) return a;"])
        path.write_text("source.c\n- if (c > b) return a;\n+ ;\n")
        with self.assertRaises(SystemExit):
            list(mutate.named(tree, path))
        with self.assertRaises(SystemExit):
            mutate.read_equivalents(path)
        path.write_text("source.c\n- if (a > b) return a;\nno mutant\n")
        with self.assertRaises(SystemExit):
            mutate.read_equivalents(path)


class Copies(unittest.TestCase):
    def test_a_mutant_that_was_left_behind_is_built_out(self):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as tree:
            source, target = Path(root, "source.c"), Path(tree, "source.c")
            source.write_text(SOURCE)
            os.utime(source, (1, 1))
            mutate.copy_tree(Path(root), tree)
            self.assertEqual(target.stat().st_mtime, 1)
            target.write_text(SOURCE.replace("a > b", "a < b"))
            mutate.copy_tree(Path(root), tree)
            self.assertEqual(target.read_text(), SOURCE)
            self.assertGreater(target.stat().st_mtime, 1)

    def test_builds_are_nobodys_files(self):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as tree:
            for name in (f"{root}/kept/source.c", f"{root}/build/mutate/tree/source.c", f"{tree}/build/made", f"{tree}/old.c"):
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_text(SOURCE)
            mutate.copy_tree(Path(root), tree)
            found = {str(path.relative_to(tree)) for path in Path(tree).rglob("*") if path.is_file()}
            self.assertEqual(found, {"kept/source.c", "build/made"})


KERNELS = """__kernel void rows(int n) { both(n); }
#define TWICE(a) \\
  ((a) + (a))
static VT one(VT a) {
  return TWICE(a) + 1;
}
static VT both(VT a) { return a < 0; }
"""
ROWS = """static const ocl_op ops[] = {
    POINTWISE(digamma, FLOATS, 0, "one(a)"),
    POINTWISE(add_Tensor, FLOATS, 0,
              "a + TWICE(b)"),
};
"""


class Reach(unittest.TestCase):
    def test_a_line_reaches_the_ops_that_name_its_function(self):
        with tempfile.TemporaryDirectory() as root:
            folder = Path(root, reach.FOLDER)
            folder.mkdir(parents=True)
            (folder / "pointwise.cl").write_text(KERNELS)
            (folder / "ops.c").write_text(ROWS)

            def ops(name, line):
                return reach.ops_of(root, f"{reach.FOLDER}/{name}", line)

            self.assertEqual(ops("pointwise.cl", 5), {"digamma"})
            self.assertEqual(ops("pointwise.cl", 3), {"digamma", "add_Tensor"})
            self.assertIsNone(ops("pointwise.cl", 7), "a kernel calls it, so all ops do")
            self.assertIsNone(ops("pointwise.cl", 1))
            self.assertEqual(ops("ops.c", 4), {"add_Tensor"})
            self.assertIsNone(ops("ops.c", 1))
            self.assertIsNone(reach.ops_of(root, "reference_backend_opencl/kernels/scan/scan.cl", 1))
        self.assertEqual(reach.globs_of({"add_Tensor", "prims_cbrt"}),
                         "*.add?Tensor*,*._add?Tensor*,*.special?add?Tensor*,*.cbrt*,*._cbrt*,*.special?cbrt*")

    def test_each_row_of_the_table_has_cases(self):
        root = Path(__file__).resolve().parents[2]
        rows = [piece for piece in reach.pieces((root / reach.TABLE).read_text()) if piece[2]]
        self.assertGreater(len(rows), 150)
        schemas = "".join(path.read_text() for path in (root / "plugin_api/ops").glob("*.ops"))
        names = [f"{table}.{op}" for table, op in re.findall(r"\t(\w+)::([\w.]+)\(", schemas)]
        for _, name, _, _ in rows:
            globs = reach.globs_of({name}).split(",")
            self.assertTrue(any(fnmatch.fnmatch(op, glob) for op in names for glob in globs), name)


class Checks(unittest.TestCase):
    def test_what_failed_is_asked_again_alone(self):
        check = plan.Check("smoke", ["graft", "conformance", "--family", "fft", "--shard", "1/8", "--jobs=1"])
        output = "fail support was lost\n     graft case aten.fft_r2c.default/f32/3/contiguous/uniform/0 -b opencl\nfail b\n"
        self.assertEqual(check.narrowed(output).command,
                         ["graft", "conformance", "--family", "fft", "--jobs=1", "--op", "aten.fft_r2c.default"])
        wrong = output.replace("support was lost", "element 3 is 1")
        self.assertEqual(check.narrowed(wrong).command,
                         ["graft", "case", "aten.fft_r2c.default/f32/3/contiguous/uniform/0", "-b", "opencl"])
        self.assertEqual((check.good, check.narrowed(wrong).good), ((0,), (0, plan.PASSED_OVER)))
        self.assertIs(check.narrowed("no device"), check)
        test = plan.Check("test", ["test_opencl"])
        self.assertIs(test.narrowed(output), test)

    def test_lines_that_only_processors_have(self):
        text = "a\n#ifdef IS_CPU\nb\n#if X\nc\n#endif\n#else\nd\n#endif\n#ifndef IS_CPU\ne\n#endif\nf"
        met = [line for line in range(1, 14) if plan.has_line("gpu", text, line) and text.split("\n")[line - 1].isalpha()]
        self.assertEqual("".join(text.split("\n")[line - 1] for line in met), "adef")
        self.assertTrue(plan.has_line(None, text, 3))

    def test_lines_that_only_warps_have(self):
        text = "a\n#ifdef WARPS\nb\n#else\nc\n#endif\n#ifdef SUM_BY_WARPS\nd\n#endif\ne"
        lines = text.split("\n")
        for device, expected in ((None, "ace"), ("cpu", "ace"), ("gpu", "abcde")):
            met = [name for line, name in enumerate(lines, 1) if name.isalpha() and plan.has_line(device, text, line)]
            self.assertEqual("".join(met), expected)

    def test_lines_that_only_copies_have(self):
        text = "a\n#if COPIES /* by copies */\nb\n#else\nc\n#endif\n#if COPIES || X\nd\n#endif\ne"
        lines = text.split("\n")
        for device, expected in ((None, "acde"), ("gpu", "abcde")):
            met = [name for line, name in enumerate(lines, 1) if name.isalpha() and plan.has_line(device, text, line)]
            self.assertEqual("".join(met), expected)

    def test_files_for_nvidia_are_met_there_alone(self):
        mutant = {"path": "reference_backend_opencl/kernels/matmul/nvidia.cl", "line": 1}
        self.assertFalse(plan.Graft("tree", "build").meets(mutant, "a"))
        self.assertTrue(plan.Graft("tree", "build", device="gpu").meets(mutant, "a"))
        self.assertTrue(plan.Graft("tree", "build").meets({**mutant, "path": "kernels/matmul/tiles.cl"}, "a"))

    def test_a_device_runs_its_own_kernels(self):
        with tempfile.TemporaryDirectory() as tree:
            path = "reference_backend_opencl/kernels/scan/scan.cl"
            own, both = (plan.Graft(tree, f"{tree}/build", 1, device).checks(path, 1) for device in ("gpu", None))
            self.assertFalse(any("GRAFT_OPENCL_KERNELS" in check.environment for check in own))
            self.assertEqual({check.environment.get("GRAFT_OPENCL_KERNELS") for check in both}, {"cpu", "gpu", None})
            self.assertNotIn("--expect", own[0].command)

    def test_rules_are_held_to_what_the_op_headers_say(self):
        with tempfile.TemporaryDirectory() as tree:
            project = plan.Graft(tree, f"{tree}/build")
            checks = project.checks("sdk/ops/scan/scan.c")
            at = next(i for i, check in enumerate(checks) if check.name == plan.PREPARED)
            self.assertEqual(checks[at].command, ["tests/prepared.sh", "build/tests/prepared"])
            self.assertIn(checks[at].after[0], checks[:at])
            self.assertIn(plan.PREPARED, checks[at].after[0].command)
            self.assertLessEqual(set(plan.MEMORY_TESTS), {check.name for check in checks})

    def test_host_code_of_opencl_meets_sanitizers_in_a_build_of_its_own(self):
        with tempfile.TemporaryDirectory() as tree:
            project = plan.Graft(tree, f"{tree}/build")

            def sanitized(path):
                return [check for check in project.checks(path) if "ASAN_OPTIONS" in check.environment]

            host, rules = (sanitized(path) for path in ("reference_backend_opencl/kernels/fft/fft.c", "sdk/ops/scan/scan.c"))
            self.assertEqual({check.environment["GRAFT_OPENCL_KERNELS"] for check in host}, {"cpu", "gpu"})
            self.assertTrue(all("graft_opencl" in check.after[0].command[-1] for check in host))
            self.assertFalse({check.command[0] for check in host} & {check.command[0] for check in rules})
            self.assertEqual([sanitized(f"reference_backend_opencl/kernels/{path}") for path in ("fft/fft.cl", "pointwise/ops.c")],
                             [[], []])
            asked = {check.title for check in project.baseline(["reference_backend_opencl/kernels/fft/fft.c"])}
            self.assertFalse(asked & {check.title for check in host})

    def test_only_the_checks_that_are_asked_for(self):
        with tempfile.TemporaryDirectory() as tree:
            path = "reference_backend_opencl/kernels/scan/scan.cl"
            names = [check.name for check in plan.Graft(tree, f"{tree}/build", only=["smoke, [cg]pu*"]).checks(path)]
            self.assertEqual(names, ["smoke, cpu kernels", "smoke, gpu kernels"])
            self.assertIn("test_opencl", [check.name for check in plan.Graft(tree, f"{tree}/build").checks(path)])

    def test_a_family_meets_the_fused_calls_that_it_is_part_of(self):
        with tempfile.TemporaryDirectory() as tree:
            project = plan.Graft(tree, f"{tree}/build")

            def tests(path):
                return [check for check in project.checks(f"reference_backend_opencl/kernels/{path}") if "test_" in check.name]

            def groups(path):
                return {check.name for check in tests(path)} & set(plan.GROUP_TESTS)

            self.assertEqual(groups("fft/fft.c"), set())
            self.assertEqual(groups("matmul/tiles.cl"), {f"test_opencl_{name}" for name in ("epilogues", "over", "summed", "sums", "turn")})
            self.assertEqual(groups("core/direct.c"), set(plan.GROUP_TESTS))
            failures = next(check for check in tests("fft/fft.c") if check.name == plan.FAILURES)
            self.assertEqual(failures.command[1:], ["fft"])
        root = Path(__file__).resolve().parents[2] / "reference_backend_opencl/kernels"
        for name, families in plan.GROUP_TESTS.items():
            for family in families:
                self.assertTrue((root / family).is_dir(), f"{name}: {family}")

    def test_programs_of_mutants_that_keep_them_are_their_own(self):
        with tempfile.TemporaryDirectory() as tree:
            project = plan.Graft(tree, f"{tree}/build")
            self.assertEqual(project.environment("reference_backend_opencl/runtime/stream.c"), {})
            own = project.environment(plan.KEEPS_PROGRAMS[0])
            Path(own["GRAFT_CACHE_DIR"], "left").write_text("")
            self.assertEqual(os.listdir(project.environment(plan.KEEPS_PROGRAMS[1])["GRAFT_CACHE_DIR"]), [])
        root = Path(__file__).resolve().parents[2]
        for path in plan.KEEPS_PROGRAMS:
            self.assertTrue((root / path).is_file(), path)


class Plan(unittest.TestCase):
    def test_what_families_share_meets_those_that_include_it(self):
        with tempfile.TemporaryDirectory() as tree:
            kernels = Path(tree, "reference_backend_opencl/kernels")
            for name, text in (("core/radix.c", '"core/radix"'), ("sorting/sorting.c", '"core/sums core/radix"'),
                               ("scan/scan.c", '"core/radixes core/sums"')):
                (kernels / name).parent.mkdir(parents=True, exist_ok=True)
                (kernels / name).write_text(text)
            path = "reference_backend_opencl/kernels/core/{}.cl"
            self.assertEqual([plan.families_of_shared(tree, path.format(name)) for name in ("radix", "sums", "common")],
                             [["sorting"], ["scan", "sorting"], []])
            commands = [check.command for check in plan.Graft(tree, f"{tree}/build").all_checks(path.format("sums"), 1)]
            self.assertTrue(any("scan,sorting" in command and "1/2" in command for command in commands))

    def test_kinds_and_families(self):
        self.assertEqual(plan.kind_of("sdk/ops/reduction/rules.c"), "ops")
        self.assertEqual(plan.kind_of("reference_backend_opencl/kernels/loss/margin.cl"), "cl")
        self.assertEqual(plan.kind_of("reference_backend_opencl/runtime/queue.c"), "c")
        self.assertIsNone(plan.kind_of("sdk/ops/generated/fx_ops.c"))
        self.assertEqual(plan.family_of("sdk/ops/reduction/rules.c"), "reduction")
        self.assertIsNone(plan.family_of("sdk/ops/core/fx.c"))
        root = Path(__file__).resolve().parents[2]
        for path in mutate.tracked(root, []):
            self.assertTrue((root / path).is_file(), path)

    def test_each_reason_is_of_a_line_that_is_there(self):
        root = Path(__file__).resolve().parents[2]
        for path, before, _ in mutate.read_equivalents(root / "tests/mutate/equivalent.txt"):
            lines = [line.strip() for line in (root / path).read_text().split("\n")]
            self.assertTrue(before in lines, f"{path}: {before}: the mutant of this line is gone; take its reason out")


if __name__ == "__main__":
    unittest.main()
