"""Which files are mutated, and what may kill a mutant of each: the project's own tests, cheapest first."""

import fnmatch
import re
from dataclasses import dataclass, field
from pathlib import Path

KINDS = {  # how mutants are counted
    "table": ["reference_backend_opencl/kernels/pointwise/ops.c"],
    "cl": ["reference_backend_opencl/kernels/*.cl"],
    "c": ["reference_backend_opencl/kernels/*.c", "reference_backend_opencl/runtime/*.c"],
    "ops": ["sdk/ops/*.c"],
}
OPENCL_TESTS = ["test_opencl"]
SDK_TESTS = ["test_fixtures_values", "test_fixtures_meta", "test_gradients", "test_random", "test_bad_input"]
EXCLUDED = ["*/generated/*"]


@dataclass(frozen=True)
class Check:
    name: str
    command: list
    environment: dict = field(default_factory=dict)

    @property
    def title(self):
        """What it is, wherever the program stands."""
        return " ".join([Path(self.command[0]).name, *self.command[1:]])


def kind_of(path):
    if any(fnmatch.fnmatch(path, glob) for glob in EXCLUDED):
        return None
    return next((kind for kind, globs in KINDS.items() if any(fnmatch.fnmatch(path, glob) for glob in globs)), None)


def is_in_strings(path):
    """Whether what a file computes stands in its strings: expressions of OpenCL."""
    return kind_of(path) == "table"


def family_of(path):
    """sdk/ops/<family>/..., reference_backend_opencl/kernels/<family>/...; None: what families share."""
    match = re.match(r"(?:sdk/ops|reference_backend_opencl/kernels)/(\w+)/", path)
    return match[1] if match and match[1] != "core" else None


class Graft:
    """The project in `tree`, built in `build`; `jobs` worker processes a run of the suite, where it is given."""

    def __init__(self, tree, build, jobs=None):
        self.tree, self.build = Path(tree), Path(build)
        self.jobs = [f"--jobs={jobs}"] if jobs else []

    def configure(self):
        return [["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja",
                 "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]]

    def compile(self, path):
        targets = ["graft_cli", "graft_opencl", *OPENCL_TESTS]
        if path.startswith("sdk/"):
            targets = ["graft_cli", *SDK_TESTS, "async"]
        return ["ninja", "-C", str(self.build), *targets]

    def conformance(self, name, backend, *options):
        return Check(name, [str(self.build / "bin/graft"), "conformance", "-b", backend, "--fail-fast", "--time-limit",
                            "30", *self.jobs, *options])

    def checks(self, path):
        family = family_of(path)
        of_family = ["--family", family] if family else []
        most = of_family or ["--shard", "1/8"]  # of mustpass; what families share meets many ops in a part of it
        if path.startswith("sdk/"):
            suite = [self.conformance("mustpass", "reference", "--level", "mustpass", "--ways", "all", *most)]
            tests = SDK_TESTS
        else:
            suite = [self.conformance("smoke", "opencl", "--level", "smoke", *of_family),
                     self.conformance("mustpass", "opencl", "--level", "mustpass", *most)]
            tests = OPENCL_TESTS
        return [*suite, *(Check(test, [str(self.build / "tests" / test)]) for test in tests)]
