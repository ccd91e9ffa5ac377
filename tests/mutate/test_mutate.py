"""The mutation run itself: test_mutate.py. A tiny project whose answers are known, and the operators on lines of C."""

import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import mutate  # noqa: E402
import operators  # noqa: E402
import plan  # noqa: E402

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


class Tiny:
    """Two files and a compiler; nothing tells > from >= where the larger of equal numbers is asked for."""

    def __init__(self, folder):
        self.tree = Path(folder)
        (self.tree / "source.c").write_text(SOURCE)
        (self.tree / "value.h").write_text("")
        (self.tree / "test.c").write_text(TEST)

    def configure(self, paths):
        return []

    def compile(self, path):
        return ["cc", "-o", str(self.tree / "test"), str(self.tree / path), str(self.tree / "test.c")]

    def checks(self, path):
        return [plan.Check("test", [str(self.tree / "test")])]


def changes(line):
    return {site.operator + ": " + site.after.strip() for site in operators.sites(line)}


class Operators(unittest.TestCase):
    def test_each_operator(self):
        self.assertEqual(changes("if (n < 4) sum += x;"),
                         {"relation: if (n <= 4) sum += x;", "constant: if (n < 5) sum += x;",
                          "constant: if (n < 3) sum += x;", "condition: if (!(n < 4)) sum += x;",
                          "assignment: if (n < 4) sum -= x;", "statement: if (n < 4) ;"})
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
        self.assertEqual(len(every), len({mutate.key_of(mutant) for mutant in every}))
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
        project, works = self.bench.project, self.bench.project.checks("source.c")
        project.checks = lambda path: [plan.Check("broken", ["false"]), *works]
        self.assertEqual(self.run_all(self.mutants())["if (a >= b) return a;"], "survived")
        self.assertEqual(self.said[0], "fails without a mutant: false; it judges none")

    def test_no_mutant_is_begun_past_the_time(self):
        mutate.run(mutate.Pool([self.bench]), self.mutants(), self.results, self.said.append, seconds=0)
        self.assertFalse(self.results.exists())

    def test_what_the_compiler_of_kernels_refuses(self):
        script = "echo x.cl does not compile: CL_BUILD_PROGRAM_FAILURE; ! grep -q 'a - 1' source.c"
        self.bench.project.checks = lambda path: [plan.Check("conformance", ["sh", "-c", script])]
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
        (self.bench.project.tree / "test.c").write_text(
            "int larger(int a, int b);\nint main(void) {\n  while (larger(1, 2) != 2) ;\n  return 0;\n}\n")
        self.bench.limit_s = 2
        self.assertEqual(self.run_all([m for m in self.mutants() if "!(a > b)" in m["after"]]),
                         {"if (!(a > b)) return a;": "killed"})

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


class Plan(unittest.TestCase):
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
            self.assertIn(before, lines, f"{path}: the mutant of this line is gone; take its reason out")


if __name__ == "__main__":
    unittest.main()
