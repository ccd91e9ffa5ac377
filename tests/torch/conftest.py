"""What the tests of the bridge share. They run on graft:0, which is the OpenCL backend in CI, and need it to be there:
nothing is skipped for want of a device."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

# What leaves the device is asked for where it matters (torch_graft.fallbacks()); warnings would only hide others.
os.environ.setdefault("GRAFT_FALLBACK", "allow")

# What torch.compile keeps is found by this process alone.
KEPT = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = KEPT.name

import pytest  # noqa: E402
import torch  # noqa: E402

if not hasattr(torch, "graft"):  # beside a GPU that PyTorch itself serves; the processes that tests start use Graft's
    os.environ["GRAFT_TORCH_AUTOLOAD"] = "1"
import torch_graft  # noqa: E402

torch.set_num_threads(2)
NAME = torch._C._get_privateuse1_backend_name()
assert NAME == "graft", "the tests need torch_graft registered under its usual name"


def pytest_report_header():
    return [f"PyTorch {torch.__version__}"] + [f"graft:{row.index} is {row.name}" for row in torch_graft.devices()]


@pytest.fixture
def device():
    return torch.device("graft", 0)


@pytest.fixture
def other():
    """A device of another plugin."""
    first, *rest = torch_graft.devices()
    return next(torch.device("graft", row.index) for row in rest if row.plugin != first.plugin)


@pytest.fixture(autouse=True)
def same_numbers_every_time():
    torch.manual_seed(0)
    yield
    torch.set_default_device(None)
    assert torch.graft.current_device() == 0, "the test left another device current"


@pytest.fixture
def programs(monkeypatch):
    """What torch.compile makes for the device during the test; everything is compiled anew."""
    from torch_graft import _program

    made = []

    class Program(_program.Program):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(_program, "Program", Program)
    torch._dynamo.reset()
    return made


class Outcome:
    """How a child process ended."""

    def __init__(self, process):
        self.status, self.out = process.returncode, process.stdout
        # A cache that is still cold is said once, by whichever test comes first.
        lines = process.stderr.splitlines(keepends=True)
        self.err = "".join(line for line in lines if "compiling kernels for this device" not in line)

    def ok(self):
        assert self.status == 0, f"exit status {self.status}\n{self.out}\n{self.err}"
        return self


@pytest.fixture
def python():
    """Runs code in a Python of its own, where a crash or a hang is a failure of one test."""

    def run(code, timeout=120, options=(), **variables):
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        return Outcome(
            subprocess.run(
                [sys.executable, *options, "-c", textwrap.dedent(code)],
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        )

    return run


@pytest.fixture(scope="session")
def plugin_of(tmp_path_factory):
    """Compiles a plugin of this folder or of tests/plugins; gives its library."""
    here = Path(__file__).parent
    folders = [here, here.parent / "plugins"]

    def compiled(name):
        source = next(folder / name for folder in folders if (folder / name).exists())
        library = tmp_path_factory.mktemp("plugins") / f"{source.stem}.so"
        includes = [f"-I{folder}" for folder in (here.parents[1] / "plugin_api/include", *folders)]
        subprocess.run(["cc", "-shared", "-fPIC", "-pthread", *includes, "-o", library, source], check=True)
        return library

    return compiled
