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
QUICK_TESTS = ["test_profiler", "test_opencl_ends", "test_opencl_devices", "test_opencl_streams", "test_opencl"]
SLOW_TESTS = ["test_opencl_failures", "test_bad_cache"]
OPENCL_TESTS = [*QUICK_TESTS, *SLOW_TESTS]
CLAIMS = "test_opencl_claims"
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


def is_refused(path, output):
    """Whether what failed is that the OpenCL compiler refuses a mutant: of kernels, as the C compiler does of C."""
    return kind_of(path) in ("cl", "table") and "does not compile: CL_BUILD_PROGRAM_FAILURE" in output


def family_of(path):
    """sdk/ops/<family>/..., reference_backend_opencl/kernels/<family>/...; None: what families share."""
    match = re.match(r"(?:sdk/ops|reference_backend_opencl/kernels)/(\w+)/", path)
    return match[1] if match and match[1] != "core" else None


def expect_of(level):
    return ["--expect", OPENCL_EXPECT.format(level=level)]


class Graft:
    """The project in `tree`, built in `build` and, with sanitizers, beside it; `jobs` worker processes a run of the suite,
    where it is given."""

    def __init__(self, tree, build, jobs=None):
        self.tree, self.build = Path(tree), Path(build)
        self.sanitized = self.build.with_name(self.build.name + "-sanitize")
        self.jobs = [f"--jobs={jobs}"] if jobs else []

    def configure(self, paths):
        common = ["-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        commands = [["cmake", "-S", str(self.tree), "-B", str(self.build), *common]]
        if any(path.startswith("sdk/") for path in paths):
            commands.append(["cmake", "-S", str(self.tree), "-B", str(self.sanitized), *common, *SANITIZE])
        return commands

    def compile(self, path):
        targets = ["graft_cli", "graft_opencl", "tests/plugins/all", *OPENCL_TESTS, CLAIMS]
        if path.startswith("sdk/"):
            targets = ["graft_cli", "graft_opencl", *SDK_TESTS, "async"]
        return ["ninja", "-C", str(self.build), *targets]

    def conformance(self, name, backend, *options, build=None, **more):
        return Check(name, [str((build or self.build) / "bin/graft"), "conformance", "-b", backend, "--fail-fast",
                            "--time-limit", "30", *self.jobs, *options], **more)

    def tests(self, names, *arguments, build=None, **more):
        return [Check(name, [str((build or self.build) / "tests" / name), *arguments], **more) for name in names]

    def checks(self, path):
        """As ./run test has them, but for the family of the file, and with more cases; what costs least first, and of the
        others what kills most."""
        family = family_of(path)
        of_family = ["--family", family] if family else []
        most = of_family or ["--shard", "1/8"]  # of mustpass; what families share meets many ops in a part of it
        if path.startswith("sdk/"):
            return self.sdk_checks(of_family, most)
        cases = self.opencl_cases(of_family, most)
        claims = self.tests([CLAIMS], *of_family[1:])
        if path.startswith("reference_backend_opencl/runtime/"):
            return [*self.tests(QUICK_TESTS), *cases[:2], *self.tests(SLOW_TESTS), *claims, *cases[2:]]
        # Whether a kernel computes the right thing is none of the host code's tests, but for what runs it in many ways.
        tests = self.tests(["test_opencl"] if path.endswith(".cl") else OPENCL_TESTS)
        return [*cases[:2], *claims, *cases[2:], *tests]

    def sdk_checks(self, of_family, most):
        there = {"build": self.sanitized, "environment": SANITIZED}
        targets = ["graft_cli", *SDK_TESTS, "async"]
        return [self.conformance("mustpass", "reference", "--level", "mustpass", "--ways", "all", *most),
                *self.tests(SDK_TESTS), self.conformance("opencl", "opencl", "--level", "mustpass", *most),
                Check("sanitized", ["ninja", "-C", os.path.relpath(self.sanitized, self.tree), *targets]),
                self.conformance("sanitized", "reference", "--level", "smoke", *of_family, **there),
                *self.tests(SDK_TESTS, **there)]

    def opencl_cases(self, of_family, most):
        """Both kinds of kernels, without the driver's optimizer, which takes most of the time, and at the end once with it."""
        checks = []
        for level, options in (("smoke", of_family), ("mustpass", most)):
            expect = expect_of(level)
            for kernels in ("cpu", "gpu"):
                checks.append(self.conformance(f"{level}, {kernels} kernels", "opencl", "--level", level, *options,
                                               *(expect if level == "smoke" or kernels == "cpu" else []),
                                               environment={"GRAFT_OPENCL_KERNELS": kernels, "GRAFT_OPENCL_OPTIMIZE": "no"},
                                               never_says="driver's long header"))
        return [*checks, self.conformance("smoke, optimized", "opencl", "--level", "smoke", *of_family, *expect_of("smoke"),
                                          never_says="driver's long header")]
