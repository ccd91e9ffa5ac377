"""Which files are mutated, and what may kill a mutant of each: the project's own tests, cheapest first."""

import fnmatch
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

KINDS = {  # how mutants are counted
    "table": ["reference_backend_opencl/kernels/pointwise/ops.c"],
    "cl": ["reference_backend_opencl/kernels/*.cl"],
    "c": ["reference_backend_opencl/kernels/*.c", "reference_backend_opencl/runtime/*.c"],
    "ops": ["sdk/ops/*.c"],
}
OPENCL_TESTS = ["test_opencl", "test_opencl_streams", "test_opencl_devices", "test_opencl_ends", "test_bad_cache",
                "test_profiler", "test_opencl_failures"]
OPENCL_EXPECT = "reference_backend_opencl/expect/{level}.txt"
SANITIZE = ["-DGRAFT_SANITIZE=address,undefined", "-DCMAKE_BUILD_TYPE=Debug", "-DGRAFT_BUILD_OPENCL=OFF",
            "-DCMAKE_C_FLAGS_DEBUG=-g1"]
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "CK_TIMEOUT_MULTIPLIER": "5"}
SDK_TESTS = ["test_fixtures_values", "test_fixtures_meta", "test_gradients", "test_random", "test_bad_input"]
EXCLUDED = ["*/generated/*"]


@dataclass(frozen=True)
class Check:
    name: str
    command: list
    environment: dict = field(default_factory=dict)
    never_says: str = ""  # words of its output that are a failure

    @property
    def title(self):
        """What it is, wherever the program stands."""
        return " ".join([*(f"{name}={value}" for name, value in self.environment.items()), Path(self.command[0]).name,
                         *self.command[1:]])


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
    """The project in `tree`, built in `build` and, with sanitizers, beside it; `jobs` worker processes a run of the suite,
    where it is given."""

    def __init__(self, tree, build, jobs=None):
        self.tree, self.build = Path(tree), Path(build)
        self.sanitized = self.build.with_name(self.build.name + "-sanitize")
        self.jobs = [f"--jobs={jobs}"] if jobs else []

    def configure(self):
        common = ["-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        return [["cmake", "-S", str(self.tree), "-B", str(self.build), *common],
                ["cmake", "-S", str(self.tree), "-B", str(self.sanitized), *common, *SANITIZE]]

    def compile(self, path):
        targets = ["graft_cli", "graft_opencl", *OPENCL_TESTS]
        if path.startswith("sdk/"):
            targets = ["graft_cli", "graft_opencl", *SDK_TESTS, "async"]
        return ["ninja", "-C", str(self.build), *targets]

    def conformance(self, name, backend, *options, build=None, **more):
        return Check(name, [str((build or self.build) / "bin/graft"), "conformance", "-b", backend, "--fail-fast",
                            "--time-limit", "30", *self.jobs, *options], **more)

    def tests(self, names, build=None, **more):
        return [Check(name, [str((build or self.build) / "tests" / name)], **more) for name in names]

    def checks(self, path):
        """As ./run test has them, but for the family of the file, and with more cases."""
        family = family_of(path)
        of_family = ["--family", family] if family else []
        most = of_family or ["--shard", "1/8"]  # of mustpass; what families share meets many ops in a part of it
        return self.sdk_checks(of_family, most) if path.startswith("sdk/") else self.opencl_checks(of_family, most)

    def sdk_checks(self, of_family, most):
        there = {"build": self.sanitized, "environment": SANITIZED}
        targets = ["graft_cli", *SDK_TESTS, "async"]
        return [self.conformance("mustpass", "reference", "--level", "mustpass", "--ways", "all", *most),
                *self.tests(SDK_TESTS), self.conformance("opencl", "opencl", "--level", "mustpass", *most),
                Check("sanitized", ["ninja", "-C", os.path.relpath(self.sanitized, self.tree), *targets]),
                self.conformance("sanitized", "reference", "--level", "smoke", *of_family, **there),
                *self.tests(SDK_TESTS, **there)]

    def opencl_checks(self, of_family, most):
        checks = []
        for level, options in (("smoke", of_family), ("mustpass", most)):
            expect = ["--expect", OPENCL_EXPECT.format(level=level)]
            for kernels in ("cpu", "gpu"):
                checks.append(self.conformance(f"{level}, {kernels} kernels", "opencl", "--level", level, *options,
                                               *(expect if level == "smoke" or kernels == "cpu" else []),
                                               environment={"GRAFT_OPENCL_KERNELS": kernels},
                                               never_says="driver's long header"))
        return checks + self.tests(OPENCL_TESTS)
