"""Which files are mutated, and what may kill a mutant of each: the project's own tests, cheapest first."""

import fnmatch
import os
import re
import shlex
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import reach
import reached

KINDS = {  # how mutants are counted
    "table": ["reference_backend_opencl/kernels/pointwise/ops.c"],
    "cl": ["reference_backend_opencl/kernels/*.cl"],
    "c": ["reference_backend_opencl/kernels/*.c", "reference_backend_opencl/runtime/*.c"],
    "ops": ["sdk/ops/*.c"],
}
QUICK_TESTS = ["test_opencl_text", "test_opencl_dtype", "test_profiler", "test_opencl_ends", "test_opencl_devices", "test_opencl_streams", "test_opencl"]
DEVICE_TESTS = ["test_profiler", "test_opencl_ends", "test_opencl_devices", "test_opencl_streams"]
GROUP_TESTS = {  # what conformance runs few of (fused calls), or lets through: what of the families' code they meet
    "test_opencl_convolutions": ("pointwise", "convolution"),
    "test_opencl_epilogues": ("pointwise", "matmul"),
    "test_opencl_rows": ("pointwise", "reduction"),
    "test_opencl_draws": ("pointwise",),
    "test_opencl_sums": ("scan", "reduction", "matmul"),
    "test_opencl_large": ("pointwise", "shape"),
    "test_opencl_turn": ("matmul",),
    "test_opencl_groups": ("pointwise",),
    "test_opencl_chains": ("pointwise", "optimizer"),
    "test_opencl_classes": ("loss",),
    "test_opencl_over": ("pointwise", "softmax", "loss", "matmul", "convolution"),
    "test_opencl_counts": ("reduction",),
    "test_opencl_complex": ("pointwise",),
    "test_opencl_norms": ("pointwise", "normalization"),
    "test_opencl_placed": ("pointwise", "attention"),
    "test_opencl_summed": ("pointwise", "matmul", "reduction"),
}
CLAIMS, FAILURES = "test_opencl_claims", "test_opencl_failures"  # the name of a family has them look at that one's ops
PLANS = "test_opencl_plans"  # how calls are carried out, on devices that are described: results do not tell
LAUNCHES = "test_opencl_launches"  # what is asked of the driver, likewise; takes a family
GROUP_LAUNCHES = "test_opencl_group_launches"  # the same of calls that are made as one
CALLS = "test_opencl_calls"  # the same of calls of many sizes
GROUPED = {"attention", "convolution", "loss", "matmul", "normalization", "optimizer", "pointwise", "random", "reduction",
           "softmax"}
SLOW_TESTS = ["test_opencl_programs", *GROUP_TESTS, FAILURES, "test_bad_cache"]
OPENCL_TESTS = [*QUICK_TESTS, *SLOW_TESTS, PLANS, CALLS, LAUNCHES, GROUP_LAUNCHES]
OPENCL_EXPECT = "reference_backend_opencl/expect/{level}.txt"
COMMON = ["-G", "Ninja", "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
SANITIZE = ["-DGRAFT_SANITIZE=address,undefined", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-g1"]
WITHOUT_OPENCL = "-DGRAFT_BUILD_OPENCL=OFF"  # the unit tests of sdk/ops would use it, too, which takes them minutes there
# A buffer for each tensor: small ones lie in one otherwise.
OPTIMIZED = {"GRAFT_OPENCL_OPTIMIZE": "always", "GRAFT_NO_MEMORY_CACHING": "1"}
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "CK_TIMEOUT_MULTIPLIER": "5",
             "LSAN_OPTIONS": "suppressions=tests/leaks.txt"}
FORMULAS = "test_formulas"  # what rules, decompositions and gradients say, whatever the numbers
SDK_TESTS = [FORMULAS, "test_refusals", "test_fixtures_values", "test_fixtures_meta", "test_gradients", "test_random", "test_special",
             "test_bad_input"]
MEMORY_TESTS = ["test_out_of_memory", "test_formula_failures"]  # what fails on the way
PREPARED = "prepared"  # what the op headers say that rules do with arguments
SDK_CALLERS = [  # what else calls ops
    "test_dispatch", "test_autograd", "test_view", "test_tensor", "test_movement", "test_record", "test_slots", "test_fx",
    "test_custom", "test_coverage", "test_text", "test_graph_use", "test_graph_memory", "test_graph_sizes", "test_conformance",
    "test_graph"]
ALL_TESTS = sorted({*OPENCL_TESTS, *SDK_TESTS, *MEMORY_TESTS, *SDK_CALLERS, CLAIMS})
LARGEST = "pointwise"  # of mustpass two fifths
SMOKE = "smoke, [cg]pu kernels"  # the names of the checks that are the OpenCL backend's smoke
EXCLUDED = ["*/generated/*"]
KEEPS_PROGRAMS = ["reference_backend_opencl/runtime/program.c", "reference_backend_opencl/runtime/disk.c"]


PASSED_OVER = 3  # the status of a case that a device has not, such as one of a group


@dataclass(frozen=True)
class Check:
    name: str
    command: list
    environment: dict = field(default_factory=dict)
    never_says: str = ""  # words of its output that are a failure
    after: tuple = ()  # the check that builds what this one runs: a tree without mutants has it built when one fails here
    only_builds: bool = False
    good: tuple = (0,)  # exit statuses that are no failure

    @property
    def title(self):
        """What it is, wherever the program stands and however many processes it has."""
        return " ".join([*(f"{name}={value}" for name, value in self.environment.items()), Path(self.command[0]).name,
                         *(word for word in self.command[1:] if not word.startswith("--jobs"))])

    def narrowed(self, output):
        """What of it failed, by its output: of a run of the suite one case, or where it was served worse than expected the
        cases of its op; of a test all of it."""
        case = re.search(r"^ +(graft case '?([^/\s']+)/\S+ .*)$", output, re.M)
        if "conformance" not in self.command or not case:
            return self
        if "support was lost" not in output:
            return replace(self, command=[self.command[0], *shlex.split(case[1])[1:]], good=(0, PASSED_OVER))
        kept = [word for before, word in zip(["", *self.command], self.command) if "--shard" not in (before, word)]
        return replace(self, command=[*kept, "--op", case[2]])

    def moved(self, tree, to):
        """The same in another copy of the tree."""
        return replace(self, command=[word.replace(f"{tree}/", f"{to}/") for word in self.command],
                       after=tuple(check.moved(tree, to) for check in self.after))


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


def families_of_shared(tree, path):
    """The families whose programs include a file of kernels/core, by what their C names; none for other files, or where it
    is all of them."""
    name = re.match(r"reference_backend_opencl/kernels/(core/\w+)\.cl$", path)
    if not name:
        return []
    named = re.compile(rf'[" ]{name[1]}[" ]')
    kernels = Path(tree, "reference_backend_opencl/kernels")
    families = {file.parent.name for file in kernels.glob("*/*.c") if named.search(file.read_text())}
    return sorted(families - {"core"})


# Of what #ifdef, or #if of one name, asks about: whose the lines under it are, and whose those under its #else.
BRANCHES = {"IS_CPU": ("cpu", "gpu"), "WARPS": ("nvidia", None), "SUM_BY_WARPS": ("nvidia", None),
            "COPIES": ("nvidia", None)}
NEVER_MEETS = {None: ["nvidia"], "cpu": ["gpu", "nvidia"], "gpu": ["cpu"]}  # where none is named it is a processor


def has_line(device, text, line):
    """Whether a device's kernels may have a line of OpenCL, counted from 1: what stands under IS_CPU is none of a GPU's,
    and what stands under WARPS or COPIES is NVIDIA's alone. A processor that no one has named runs kernels of both kinds."""
    open_ifs = []  # of each #if around it: whose its branch is, and whose the other one
    for words in (source.partition("/*")[0].split() for source in text.split("\n")[:line]):
        if words[:1] in (["#ifdef"], ["#ifndef"], ["#if"]):
            own, other = BRANCHES.get(" ".join(words[1:]), (None, None))
            open_ifs.append((other, own) if words[0] == "#ifndef" else (own, other))
        elif words[:1] == ["#else"] and open_ifs:
            open_ifs[-1] = open_ifs[-1][::-1]
        elif words[:1] == ["#endif"] and open_ifs:
            open_ifs.pop()
    return not any(own in NEVER_MEETS[device] for own, _ in open_ifs)


def expect_of(level):
    return ["--expect", OPENCL_EXPECT.format(level=level)]


class Graft:
    """The project in `tree`, built in `build` and, with sanitizers, beside it; `jobs` worker processes a run of the suite,
    where it is given. On `device`, "gpu", that device's kernels are run; else on the one there is both those for CPUs and
    those for GPUs, without the driver's optimizer. With `only`, globs, just the checks of such names are run."""

    def __init__(self, tree, build, jobs=None, device=None, only=()):
        self.tree, self.build, self.device, self.only = Path(tree), Path(build), device, only
        self.map = None  # reached.Map: which checks run a line
        self.sanitized = self.build.with_name(self.build.name + "-sanitize")
        self.jobs = [f"--jobs={jobs}"] if jobs else []

    def share_cores(self, mutants, cores):
        """Where fewer mutants than cores are left, a run of the suite has several processes."""
        self.jobs = self.jobs and [f"--jobs={max(1, cores // mutants)}"]

    def configure(self, paths):
        """Once: then ninja sees to it."""
        plain = ["-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG"]  # nobody reads its debug information
        there = (self.build / "build.ninja").exists()
        return [] if there else [["cmake", "-S", str(self.tree), "-B", str(self.build), *COMMON, *plain]]

    def compile(self, path):
        """What nearly all mutants meet; the tests are built where one is run, which what the suite kills never gets to."""
        return ["ninja", "-C", str(self.build), "graft_cli", "graft_opencl", "array_bounds"]

    def tests_built(self, path):
        of_sdk = ["tests/plugins/all", *SDK_TESTS, *MEMORY_TESTS, *SDK_CALLERS, PREPARED]
        targets = of_sdk if path.startswith("sdk/") else ["tests/plugins/all", *OPENCL_TESTS, CLAIMS]
        return Check("tests built", ["ninja", "-C", os.path.relpath(self.build, self.tree), *targets], only_builds=True)

    def environment(self, path):
        """Compiled programs are kept by their text, and serve all trees; but what a mutant of the code that keeps them
        has written serves itself alone."""
        if path not in KEEPS_PROGRAMS:
            return {}
        own = {name: self.build / "own-cache" / name for name in ("GRAFT_CACHE_DIR", "POCL_CACHE_DIR")}
        for folder in own.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        return {name: str(folder) for name, folder in own.items()}

    def meets(self, mutant, text):
        """Whether the device can meet a mutant at all. Where none is named it is a processor, and no NVIDIA one."""
        if not mutant["path"].endswith(".cl"):
            return True  # PLANS has devices of all makers
        if not self.device and Path(mutant["path"]).stem.startswith("nvidia"):
            return False
        return has_line(self.device, text, mutant["line"])

    def conformance(self, name, backend, *options, build=None, **more):
        return Check(name, [str((build or self.build) / "bin/graft"), "conformance", "-b", backend, "--fail-fast",
                            "--time-limit", "30", *self.jobs, *options], **more)

    def tests(self, names, *arguments, build=None, **more):
        return [Check(name, [str((build or self.build) / "tests" / name), *arguments], **more) for name in names]

    def test_built(self, name):
        return Check(f"{name} built", ["ninja", "-C", os.path.relpath(self.build, self.tree), "tests/plugins/all", name],
                     only_builds=True)

    def with_builds(self, path, checks, each=False):
        """Each behind what builds it: with `each` a test alone, since a change of sdk/ links all of them anew."""
        tests, found = self.tests_built(path), []
        for check in checks:
            program = Path(check.command[0])
            if not check.after and program.parent == self.build / "tests":
                check = replace(check, after=(self.test_built(program.name) if each else tests,))
            found += [*(before for before in check.after if before not in found), check]
        return found

    def baseline(self, paths):
        """The tests, and smoke of the families that mutants are of: what says whether the tree is sound without them."""
        tests = DEVICE_TESTS if self.device else OPENCL_TESTS
        found = {check.title: check for path, names in (("", tests), ("sdk/", SDK_TESTS))
                 for check in self.with_builds(path, self.tests(names))}
        for path in paths:
            found.update((check.title, check) for check in self.checks(path)
                         if "smoke" in check.command and "ASAN_OPTIONS" not in check.environment)
        return list(found.values())

    def checks(self, path, line=None):
        """Those of all_checks that are asked for; where it is known what runs the line, those that do. None may be left."""
        asked = [check for check in self.all_checks(path, line)
                 if not self.only or any(fnmatch.fnmatch(check.name, glob) for glob in self.only)]
        labels = self.map.of(path, line) if self.map and line else None
        if labels is None:
            return self.with_builds(path, asked)
        return self.with_builds(path, reached.narrowed(asked, self.map, labels), each=True)

    def all_checks(self, path, line):
        """As ./run test has them, but for the family of the file, and with more cases; what costs least first, and of the
        others what kills most."""
        family = family_of(path)
        of_family, alone_of = (["--family", family], [family]) if family else ([], [])  # of the suite, and of tests
        # Of mustpass. What families share meets many ops in a part of it, and so does what the largest family's ops share.
        most = [*of_family, *(["--shard", "1/8"] if family in (None, LARGEST) else [])]
        shared = families_of_shared(self.tree, path)
        if shared:
            of_family = ["--family", ",".join(shared)]
            most = [*of_family, *(["--shard", f"1/{len(shared)}"] if len(shared) > 1 else [])]
        if path.startswith("sdk/"):
            return self.sdk_checks(path, of_family, of_family or most, most)
        # A row of the pointwise table is one op's, a function in front of its kernels that of some.
        ops = reach.ops_of(self.tree, path, line) if line and kind_of(path) in ("cl", "table") else None
        cases = self.opencl_cases(of_family, ["--op", reach.globs_of(ops)] if ops else most, few=ops is not None)
        claims = self.tests([CLAIMS], *alone_of)
        if self.device:
            return self.checks_of_device(path, cases, claims)
        if path.startswith("reference_backend_opencl/runtime/"):
            half = len(cases) // 2
            slow = self.tests([CALLS, PLANS, LAUNCHES, GROUP_LAUNCHES, *SLOW_TESTS])
            return [*self.tests(QUICK_TESTS), *cases[:half], *slow, *claims, *cases[half:], *self.sanitized_host(path, most)]
        groups = self.tests([name for name, families in GROUP_TESTS.items() if family in (None, *families)])
        # Whether a kernel computes the right thing is none of the host code's tests, but for what runs it in many ways.
        # What keeps programs is none of the code of families.
        alone = self.tests(["test_opencl"] if path.endswith(".cl") else [*QUICK_TESTS, "test_opencl_programs"])
        failures = [] if path.endswith(".cl") else self.tests([FAILURES], *alone_of)
        host = not path.endswith(".cl")
        plans = self.tests([LAUNCHES], *alone_of) + self.tests([CALLS, PLANS]) if host else []
        told = self.tests([GROUP_LAUNCHES]) if host and family in {None, *GROUPED} else []
        sanitized = self.sanitized_host(path, most)
        if Path(path).stem.startswith("fused"):
            return [*told, *groups, *cases[:2], *plans, *claims, *cases[2:], *alone, *failures, *sanitized]
        return [*cases[:2], *plans, *told, *claims, *cases[2:], *alone, *failures, *groups, *sanitized]

    def checks_of_device(self, path, cases, claims):
        """Tests of the host code take half a minute each there, or ask for what only PoCL does, and come last."""
        tests = [] if path.endswith(".cl") else self.tests(DEVICE_TESTS)
        if family_of(path):
            return [*cases, *tests, *claims]
        return [self.opencl("part of smoke", "smoke", ["--shard", "1/8"], False), *tests[:1], *cases, *tests[1:], *claims]

    def sanitized_build(self, build, *targets, options=()):
        """Configured there, too: most mutants end before it."""
        folder = os.path.relpath(build, self.tree)
        configure = shlex.join(["cmake", "-S", ".", "-B", folder, *COMMON, *SANITIZE, *options])
        build = shlex.join(["ninja", "-C", folder, "graft_cli", *targets])
        return Check("sanitized", ["sh", "-c", f"{{ test -e {folder}/build.ninja || {configure}; }} && {build}"], only_builds=True)

    def sanitized_host(self, path, most):
        """What the host code of the OpenCL backend does with its own memory: PoCL and the kernels are not looked at."""
        if kind_of(path) != "c" or self.device:
            return []
        build = self.sanitized.with_name(self.sanitized.name + "-opencl")
        return [self.conformance(f"{level}, sanitized", "opencl", "--level", level, *most, build=build,
                                 environment={**SANITIZED, "GRAFT_OPENCL_KERNELS": kernels, "GRAFT_OPENCL_OPTIMIZE": "no"},
                                 after=(self.sanitized_build(build, "graft_opencl"),))
                for level, kernels in (("smoke", "gpu"), ("mustpass", "cpu"))]

    def prepared(self):
        """Relative, as each tree has it."""
        built = os.path.relpath(self.build / "tests" / PREPARED, self.tree)
        return Check(PREPARED, ["tests/prepared.sh", built], after=(self.test_built(PREPARED),))

    def sdk_checks(self, path, of_family, most, most_of_opencl):
        sanitized = self.sanitized_build(self.sanitized, *SDK_TESTS, "async", options=[WITHOUT_OPENCL])
        there = {"build": self.sanitized, "environment": SANITIZED, "after": (sanitized,)}
        # Nothing here changes a kernel's text: what the driver has compiled serves all mutants, those of other kinds, too.
        on_opencl = {"environment": {} if self.device else {"GRAFT_OPENCL_OPTIMIZE": "no"}}
        return [*self.tests([FORMULAS]), self.conformance("mustpass", "reference", "--level", "mustpass", "--ways", "all", *most),
                *self.tests(SDK_TESTS[1:]), self.prepared(), *self.tests(MEMORY_TESTS),
                self.conformance("smoke, opencl", "opencl", "--level", "smoke", *most, **on_opencl), *self.tests(SDK_CALLERS),
                self.conformance("sanitized", "reference", "--level", "smoke", *of_family, **there),
                *self.tests(SDK_TESTS, **there),
                self.conformance("opencl", "opencl", "--level", "mustpass", *most_of_opencl,
                                 *([] if self.device else expect_of("mustpass")), **on_opencl)]

    def opencl_cases(self, of_family, most, few):
        """With `few`, mustpass has few cases and comes first."""
        levels = [("smoke", of_family), ("mustpass", most)]
        levels = levels[::-1] if few else levels
        return self.cases_of_device(levels) if self.device else self.cases_of_both(levels)

    def opencl(self, name, level, options, expected, **more):
        return self.conformance(name, "opencl", "--level", level, *options, *(expect_of(level) if expected else []),
                                never_says="driver's long header", **more)

    def cases_of_device(self, levels):
        """What the file expects was written on another device: its loss judges on its own."""
        smoke = dict(levels)["smoke"]
        return [*(self.opencl(level, level, options, False) for level, options in levels),
                self.opencl("expect", "smoke", smoke, True)]

    def cases_of_both(self, levels):
        """Both kinds of kernels without the driver's optimizer, which takes most of the time, those for CPUs with indices
        that are looked at; and at the end once with it, where each tensor has a buffer of its own, too."""
        unoptimized = {"GRAFT_OPENCL_OPTIMIZE": "no"}
        bounds = os.path.relpath(self.build / "tests/plugins/array_bounds.so", self.tree)
        looked_at = str(self.build / "bounds-cache")  # what PoCL has kept elsewhere was compiled without
        of = {"cpu": {**unoptimized, "GRAFT_OPENCL_KERNELS": "cpu", "LD_PRELOAD": bounds, "POCL_CACHE_DIR": looked_at},
              "gpu": {**unoptimized, "GRAFT_OPENCL_KERNELS": "gpu"}}
        checks = [self.opencl(f"{level}, {kernels} kernels", level, options, level == "smoke" or kernels == "cpu",
                              environment=of[kernels])
                  for level, options in levels for kernels in ("cpu", "gpu")]
        return [*checks, self.opencl("smoke, optimized", "smoke", dict(levels)["smoke"], True, environment=OPTIMIZED)]
