"""Beside another accelerator, of which a stand-in is made here: PyTorch's autograd serves one a process, and who never
asked for Graft keeps the other. beside_cuda.py does this with a GPU of NVIDIA's. Each test is a process of its own."""

import pytest

# Loaded by `import torch` before torch_graft's entry point, it makes a PyTorch for the CPU answer as one that is built
# for CUDA. What would start the driver ends the process.
STAND_IN = """
import builtins, os, torch

def broken():
    raise OSError("no such library")

def starts_the_driver(*args):
    raise SystemExit("a question started the driver")

torch._C._accelerator_getAccelerator = lambda: torch.device("cuda")
torch.cuda._is_compiled = lambda: True
torch.cuda._device_count_nvml = {"devices": lambda: 1, "none": lambda: 0, "broken": broken}[os.environ["STAND_IN"]]
torch._C._cuda_getDeviceCount = starts_the_driver

def autoload():
    pass
"""

START_OF_THE_DRIVER = """
import torch
torch.cuda._cudart = object()
torch._C._cuda_init = lambda: None
"""

# Prints what is said meanwhile.
SAID = """
import warnings
warnings.simplefilter("always")
def shown(message, *args, **kwargs):
    print("SAID", message)
warnings.showwarning = shown
"""


@pytest.fixture
def beside(python, tmp_path):
    """Runs code in a Python whose PyTorch seems to be built for CUDA; gives the lines that were said."""
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    (tmp_path / "driver.py").write_text(START_OF_THE_DRIVER)
    (tmp_path / "said.py").write_text(SAID)
    info = tmp_path / "stand_in-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stand_in\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nstand_in = stand_in:autoload\n")

    def run(code, devices="devices", switch="", **variables):
        outcome = python(
            f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport said\n" + code,
            STAND_IN=devices,
            GRAFT_TORCH_AUTOLOAD=switch,
            **variables,
        ).ok()
        return [line for line in outcome.out.splitlines() if line.startswith("SAID")]

    return run


ABSENT = """
import torch
assert "torch_graft" not in sys.modules and not hasattr(torch, "graft")
assert torch._C._get_privateuse1_backend_name() == "privateuseone"
assert torch.accelerator.current_accelerator(check_available=False).type == "cuda"
x = torch.ones(2, requires_grad=True)
x.sum().backward()
"""
PRESENT = """
import torch
assert torch.ones(2, device="graft", requires_grad=True).sum().item() == 2
"""


def test_a_device_of_it_is_there(beside):
    """Then it keeps PyTorch's autograd, and one line says how to have Graft's devices."""
    (line,) = beside(ABSENT)
    assert "cuda" in line and "`import torch_graft`" in line and "GRAFT_TORCH_AUTOLOAD=1" in line


def test_it_can_be_said_that_graft_is_wanted(beside):
    assert beside(PRESENT, switch="1") == []
    left_out, *more = beside("import torch\nimport torch_graft\n" + PRESENT)
    assert "left out" in left_out and more == []
    left_out, *more = beside("import torch_graft\n" + PRESENT)
    assert "left out" in left_out and more == []


def test_it_can_be_said_that_graft_is_not_wanted(beside):
    assert beside(ABSENT, switch="0") == []


def test_a_value_that_the_switch_has_not(beside):
    wrong, left_out = beside(ABSENT, switch="yes")
    assert '"yes"' in wrong and "0: never, 1: always" in wrong and "left out" in left_out


@pytest.mark.parametrize("devices", ["none", "broken"])
def test_no_device_of_it_is_there(beside, devices):
    """PyTorch built for CUDA on a machine without: also one whose driver's libraries are not there."""
    assert beside(PRESENT, devices) == []


def test_without_the_drivers_library_the_device_files_tell(beside):
    code = """
import glob
original = glob.glob
glob.glob = lambda pattern: [pattern] if pattern.startswith("/dev/nvidia") else original(pattern)
"""
    (line,) = beside(code + ABSENT, "broken")
    assert "left out" in line


def test_an_accelerator_that_is_not_known_is_taken_to_be_there(beside):
    code = """
import torch, stand_in
torch._C._accelerator_getAccelerator = lambda: torch.device("hpu")
import torch_graft_autoload
torch_graft_autoload.autoload()
assert "torch_graft" not in sys.modules
"""
    (line,) = beside(code, TORCH_DEVICE_BACKEND_AUTOLOAD=0)
    assert "hpu" in line


@pytest.mark.parametrize("order", ["used after", "used before"])
def test_both_in_one_process(beside, order):
    """One line says it, when the other is first used."""
    use = "import driver\ntorch.cuda.init()\ntorch.cuda.init()\nassert torch.cuda.is_initialized()\n"
    take = "print('SAID take')\nimport torch_graft\n" + PRESENT + "print('SAID taken')\n"
    code = take + use if order == "used after" else use + take
    left_out, *rest = beside("import torch\n" + code)
    if order == "used after":
        assert rest[:2] == ["SAID take", "SAID taken"]
        (line,) = rest[2:]
    else:
        assert (rest[0], rest[2]) == ("SAID take", "SAID taken")
        line = rest[1]
    assert "left out" in left_out
    assert "one accelerator" in line and "graft" in line and "backward() of tensors on cuda" in line


def test_warnings_that_are_errors_do_not_stop_the_other(beside):
    code = """
import warnings
warnings.simplefilter("error")
import torch, torch_graft, driver
torch.cuda.init()
assert torch.cuda.is_initialized()
"""
    assert beside(code) == []
