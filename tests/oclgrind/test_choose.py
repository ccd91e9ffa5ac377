"""What choose.py leaves out, and that it loses no kernel: test_choose.py"""
import tempfile
import unittest
from pathlib import Path

import choose

SMALL, LARGE = choose.SMALL, choose.SMALL + 1


def name(number, fill="uniform"):
    return f"aten.op.default/f32/{number}x1/contiguous/{fill}/0"


def log(*cases):
    """Of (id, bytes, launches) what a run says."""
    lines = ["launch none 0"]  # of no case
    for id, size, launches in cases:
        lines += [f"case {id}", f"buffer {size - size // 2}", "2 warnings generated.", f"buffer {size // 2}"]
        lines += [f"launch {launch}" for launch in launches]
    return [f"{line}\n" for line in lines]


def chosen(*cases):
    return choose.choose(choose.read(log(*cases)))


class Choose(unittest.TestCase):
    def test_small_cases_are_kept_whatever_they_launch(self):
        self.assertEqual(chosen((name(1), SMALL, ["k 1"]), (name(2), SMALL, ["k 1"])), ([name(1), name(2)], 0))

    def test_a_large_case_is_left_out_if_smaller_ones_launch_all_of_it(self):
        cases = [(name(3), LARGE, ["k 1", "k 2"]), (name(1), SMALL, ["k 1"]), (name(2), SMALL, ["k 2"])]
        self.assertEqual(chosen(*cases), ([name(1), name(2)], 0))

    def test_a_kernel_of_another_program_is_another(self):
        cases = [(name(1), SMALL, ["k 1"]), (name(2), LARGE, ["k 2"]), (name(3), LARGE, ["j 1"])]
        self.assertEqual(chosen(*cases), ([name(1), name(2), name(3)], 2))

    def test_the_smallest_of_large_ones_is_taken(self):
        cases = [(name(1), LARGE + 9, ["k 1"]), (name(2), LARGE, ["k 1"]), (name(3), LARGE + 5, ["k 1"])]
        self.assertEqual(chosen(*cases), ([name(2)], 1))

    def test_work_items_count(self):
        many = choose.SMALL // choose.ITEM_BYTES
        lines = [*log((name(1), 0, ["k 1"])), f"items {many}\n", *log((name(2), 1, ["k 1"]))[1:], f"items {many}\n"]
        self.assertEqual(choose.choose(choose.read(lines)), ([name(1)], 0))

    def test_other_values_are_as_large_ones(self):
        same = name(1, "special")
        self.assertEqual(chosen((name(1), SMALL, ["k 1"]), (same, 8, ["k 1"])), ([name(1)], 0))
        self.assertEqual(chosen((name(1), SMALL, ["k 1"]), (same, 8, ["k 2"])), ([name(1), same], 1))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path, to, kernels = Path(folder, "log"), Path(folder, "ids"), Path(folder, "kernels", "topic")
            listed = Path(folder, "list")
            listed.write_text(f"{name(2)}\n{name(1)}\n{name(3)}\n")
            path.write_text("".join(log((name(1), 8, ["first 1"]), (name(2), LARGE, ["first 1"]))))
            choose.write_choice(listed, path, to)
            self.assertEqual(to.read_text(), f"{name(1)}\n{name(3)}\n")
            kernels.mkdir(parents=True)
            heads = ["KERNEL first(PLACE(a)) {", "KERNEL_OF(LANES(2), 1) second(int n) {", "void third(int n) {"]
            Path(kernels, "a.cl").write_text("\n".join(heads))
            self.assertEqual(choose.entries(kernels.parent), {"first", "second"})
            path.write_text("".join(log((name(1), 8, []))))
            with self.assertRaises(SystemExit):
                choose.write_choice(listed, path, to)


if __name__ == "__main__":
    unittest.main()
