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
EXCLUDED = ["*/generated/*"]


@dataclass(frozen=True)
class Check:
    name: str
    command: list
    environment: dict = field(default_factory=dict)


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
    """The project in `tree`, built in `build`."""

    def __init__(self, tree, build):
        self.tree, self.build = Path(tree), Path(build)

    def configure(self):
        return [["cmake", "-S", str(self.tree), "-B", str(self.build), "-G", "Ninja",
                 "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]]

    def compile(self, path):
        targets = ["graft_cli", "graft_opencl"]
        if path.startswith("sdk/"):
            targets = ["graft_cli", "test_fixtures_values", "test_fixtures_meta", "test_gradients", "test_random", "test_bad_input", "async"]
        return ["ninja", "-C", str(self.build), *targets]

    def conformance(self, name, backend, *options):
        return Check(name, [str(self.build / "bin/graft"), "conformance", "-b", backend, "--fail-fast", "--time-limit",
                            "30", *options])

    def checks(self, path):
        family = family_of(path)
        of_family = ["--family", family] if family else []
        if not path.startswith("sdk/"):
            found = [self.conformance("smoke", "opencl", "--level", "smoke", *of_family)]
            if family:
                found.append(self.conformance("mustpass", "opencl", "--level", "mustpass", *of_family))
            return found
        tests = self.build / "tests"
        return [self.conformance("mustpass", "reference", "--level", "mustpass", "--ways", "all", *of_family),
                *(Check(test, [str(tests / test)]) for test in
                  ("test_fixtures_values", "test_fixtures_meta", "test_gradients", "test_random", "test_bad_input"))]
