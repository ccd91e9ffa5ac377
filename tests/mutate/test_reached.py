"""Which checks run a line: places.py and reached.py, by a program whose lines are known, and narrowed checks."""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import places  # noqa: E402
import plan  # noqa: E402
import reached  # noqa: E402

HERE = Path(__file__).resolve().parent
SOURCE = """int shared(int a) { return a + 1; }

static int chosen(int a) {
  if (a > 2) {
    return a - 1; // 5
  }
  if (a < 0) return shared(a); // 7
  return a * 2; // 8
}

int first(int a) {
  return chosen(a);
}

int unused(int a) {
  return a; // 16
}
"""
OTHER = """static int chosen(int a) { return a; }
int second(int a) {
  return chosen(a);
}
"""
MAIN = """#include "reached.h"
int first(int);
int second(int);
int main(void) {
  reached_begin("large");
  first(3);
  reached_begin("small");
  return first(1) + second(0) - 2;
}
"""


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, text in (("source.c", SOURCE), ("b/source.c", OTHER), ("main.c", MAIN)):
            Path(self.folder, name).parent.mkdir(exist_ok=True)
            Path(self.folder, name).write_text(text)
        self.run_in("cc", "-shared", "-fPIC", "-O2", "-o", "libreached.so", str(HERE / "reached/reached.c"), "-ldl")
        for name in ("source", "b/source"):
            self.run_in("cc", "-c", "-fPIC", "-fsanitize-coverage=trace-pc", "-O0", "-g1", "-o", f"{name}.o", f"{name}.c")
        self.run_in("cc", "-I", str(HERE / "reached"), "-o", "main", "main.c", "source.o", "b/source.o", "./libreached.so")
        self.places = places.Places({name: self.folder / f"{name[:-2]}.o" for name in ("source.c", "b/source.c")})

    def run_in(self, *command, **environment):
        subprocess.run(command, check=True, cwd=self.folder, env={**os.environ, **environment})

    def lines(self, task):
        kept = self.folder / "kept"
        kept.mkdir()
        self.run_in("./main", GRAFT_REACHED=str(kept))
        found, by_label = collections.defaultdict(set), collections.defaultdict(set)
        reached.take(task, kept, self.places, found)
        for place, labels in found.items():
            for label in labels:
                by_label[label].add(place)
        return by_label

    def test_lines_that_have_code(self):
        self.assertEqual(self.places.lines["source.c"], {1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17})
        self.assertEqual(self.places.lines["b/source.c"], {1, 2, 3, 4})

    def test_each_name_has_the_lines_that_ran_under_it(self):
        found = self.lines(reached.Task("cpu", [], of_suite=True))
        own = {1, 2, 3, 4}
        self.assertEqual(found["cpu large"], {("source.c", line) for line in (3, 4, 5, 9, 11, 12, 13)})
        self.assertEqual(found["cpu small"], {("source.c", line) for line in (3, 4, 7, 8, 9, 11, 12, 13)} |
                         {("b/source.c", line) for line in own})

    def test_a_test_is_one_label(self):
        self.assertEqual(set(self.lines(reached.Task("test_a here", []))), {"test_a here"})

    def test_a_task_has_so_much_time(self):
        kept, tree = self.folder / "kept", self.folder
        self.assertIsNone(reached.run_task(reached.Task("", ["sleep", "60"]), tree, kept / "0", [], 0.2))
        self.assertLess(reached.run_task(reached.Task("", ["./main"]), tree, kept / "1", [], 30), 30)
        self.assertEqual([len(list((kept / name).iterdir())) for name in "01"], [0, 1])

    def test_nothing_is_kept_unless_asked(self):
        self.run_in("./main")
        self.assertFalse((self.folder / "kept").exists())


class Maps(unittest.TestCase):
    def made(self):
        found = {("a.c", 1): {"cpu aten.mm.default", "test_a here"}, ("a.c", 3): {"test_a here"}}
        times = [(reached.Task("test_a here", []), 1.0), (reached.Task("test_a there", []), 2.0),
                 (reached.Task("test_b here", []), 1.0), (reached.Task("test_b there", []), None),
                 (reached.Task("gpu", [], of_suite=True), None)]
        return reached.made_of("state", found, {"a.c": {1, 2, 3}}, times)

    def test_what_was_cut_off_is_not_known(self):
        found = self.made()
        self.assertEqual((set(found.seconds), found.cut), ({"test_a here", "test_a there"}, ["gpu"]))

    def test_a_line_without_code_is_not_known_and_one_that_nothing_runs_is(self):
        found = self.made()
        self.assertEqual(found.of("a.c", 1), {"cpu aten.mm.default", "test_a here"})
        self.assertEqual(found.of("a.c", 2), set())
        self.assertIsNone(found.of("a.c", 4))
        self.assertIsNone(found.of("b.c", 1))

    def test_a_map_serves_its_own_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "made/map.gz")
            self.assertIsNone(reached.Map.read(path, "state"))
            self.made().write(path)
            self.assertEqual(vars(reached.Map.read(path, "state")), json.loads(json.dumps(vars(self.made()))))
            self.assertIsNone(reached.Map.read(path, "another"))


class Narrowed(unittest.TestCase):
    def narrowed(self, path, *labels, seconds=None, cut=()):
        project = plan.Graft("tree", "tree/build")
        tests = {**{f"{name} {test}": 1.0 for name in plan.ALL_TESTS for test in ("a", "b")}, "prepared": 1.0, **(seconds or {})}
        times = [(reached.Task(label, []), time_s) for label, time_s in tests.items()]
        times += [(reached.Task(label, [], of_suite=label in reached.SUITES), None) for label in cut]
        project.map = reached.made_of("", {(path, 1): set(labels)}, {path: {1, 2}}, times)
        return project.checks(path, 1)

    def test_what_was_cut_off_is_run_as_without_a_map(self):
        checks = self.narrowed("reference_backend_opencl/kernels/scan/scan.c", cut=("gpu", "test_opencl_failures x"))
        self.assertEqual({check.environment["GRAFT_OPENCL_KERNELS"] for check in checks if "conformance" in check.command}, {"gpu"})
        self.assertEqual(self.programs(checks), [("test_opencl_failures", None)])

    def programs(self, checks):
        return [(check.name, check.environment.get("CK_RUN_CASE")) for check in checks
                if not check.only_builds and "conformance" not in check.command]

    def test_only_the_ops_that_run_the_line(self):
        checks = self.narrowed("reference_backend_opencl/kernels/scan/scan.c", "gpu aten.cumsum.default", "gpu aten.mm.default",
                               "reference aten.abs.default")
        self.assertEqual(self.programs(checks), [])
        of_suite = [check for check in checks if "conformance" in check.command]
        self.assertTrue(of_suite)
        for check in of_suite:
            self.assertEqual(check.environment["GRAFT_OPENCL_KERNELS"], "gpu")
            self.assertEqual(reached.option_of(check, "--op"), "aten.cumsum.default,aten.mm.default")
            self.assertFalse({"--family", "--shard"} & set(check.command))

    def test_too_many_ops_are_what_the_plan_says(self):
        path = "reference_backend_opencl/kernels/scan/scan.c"
        checks = self.narrowed(path, *(f"cpu aten.op{i}.default" for i in range(reached.MOST_OPS + 1)))
        self.assertTrue(any("--family" in check.command for check in checks))

    def test_only_the_tests_that_run_the_line(self):
        path = "reference_backend_opencl/kernels/scan/scan.c"
        self.assertEqual(self.programs(self.narrowed(path, "test_opencl b")), [("test_opencl", "b")])
        self.assertEqual(self.programs(self.narrowed(path, "test_opencl b", "test_opencl a")), [("test_opencl", None)])
        many = {f"test_opencl t{i}": 1.0 for i in range(20)}
        few = self.narrowed(path, *list(many)[:reached.MOST_TESTS], seconds=many)
        self.assertEqual(len(self.programs(few)), reached.MOST_TESTS)
        self.assertEqual(self.programs(self.narrowed(path, *list(many)[:reached.MOST_TESTS + 1], seconds=many)), [("test_opencl", None)])

    def test_launches_are_those_of_the_ops_that_run_the_line(self):
        path, label = "reference_backend_opencl/kernels/scan/scan.c", f"{plan.LAUNCHES} a"

        def asked(*labels):
            return [check.command[1:] for check in self.narrowed(path, *labels) if check.name == plan.LAUNCHES]

        self.assertEqual(asked(label, "cpu aten.cumsum.default", "gpu aten.mm.default"),
                         [["--op", "aten.cumsum.default,aten.mm.default"]])
        self.assertEqual(asked(label), [["scan"]])
        self.assertEqual(asked("cpu aten.cumsum.default"), [])
        self.assertEqual(reached.LAUNCHES, plan.LAUNCHES)

    def test_what_costs_less_comes_first(self):
        checks = self.narrowed("reference_backend_opencl/kernels/scan/scan.c", "cpu aten.cumsum.default", f"{plan.PLANS} a",
                               "test_opencl b", seconds={"test_opencl b": 200.0})
        names = [check.name for check in checks if not check.only_builds]
        self.assertLess(names.index(plan.PLANS), names.index("mustpass, cpu kernels"))
        self.assertLess(names.index("mustpass, cpu kernels"), names.index("test_opencl"))
        self.assertEqual(names[-1], "mustpass, sanitized")
        self.assertLess(reached.cost_of(plan.Check("", ["build/tests/test_opencl"]), reached.made_of("", {}, {}, [
            (reached.Task("test_opencl a", []), 20.0)])), reached.cost_of(plan.Check("", ["build/tests/test_cut"]), reached.made_of(
                "", {}, {}, [(reached.Task("test_cut a", []), None)])))

    def test_each_test_is_built_alone(self):
        checks = self.narrowed("sdk/ops/scan/scan.c", "test_gradients a", "prepared")
        built = [check.command[-1] for check in checks if check.only_builds and check.name.endswith("built")]
        self.assertEqual(sorted(built), ["prepared", "test_gradients"])
        self.assertIn("prepared", [check.name for check in checks])

    def test_a_line_that_nothing_runs_meets_nothing(self):
        self.assertEqual(self.narrowed("sdk/ops/scan/scan.c"), [])

    def test_tests_are_found_in_their_sources(self):
        root = HERE.parents[1]
        self.assertIn("plans_are_those_of_the_table", reached.tests_of(root, plan.PLANS))
        for name in plan.ALL_TESTS:
            self.assertTrue(reached.tests_of(root, name), name)


if __name__ == "__main__":
    unittest.main()
