"""libtorch_graft.so without Python: the example in C++, built as its reader would."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import torch
import torch_graft

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/torch_cpp"
LIBRARY = Path(torch_graft.__file__).parent / "lib/libtorch_graft.so"


def run(*command, status=0, **options):
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert process.returncode == status, process.stdout + process.stderr
    return process.stdout + process.stderr


def configure(folder, prefix, **options):
    # One job, no optimization: the compiler is what takes time here.
    words = ["-DCMAKE_CXX_FLAGS=-O0", f"-DCMAKE_PREFIX_PATH={prefix}"]
    if shutil.which("ccache"):
        words.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    return run("cmake", "-S", EXAMPLE, "-B", folder, "-G", "Ninja", *words, **options)


def needed(library):
    lines = run("readelf", "-d", library).splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def test_a_program_in_cpp_trains_on_the_device(tmp_path):
    configure(tmp_path, f"{torch.utils.cmake_prefix_path};{torch_graft.cmake_prefix_path}")
    run("cmake", "--build", tmp_path)
    program = tmp_path / "train_mlp"
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    out = run(program, env=environment | {"GRAFT_FALLBACK": "error"})
    assert "100.0 % right on opencl:0" in out and "left the device" not in out, out
    out = run(program, env=environment | {"GRAFT_TORCH_DEVICE_NAME": "cpu"}, status=-signal.SIGABRT)
    assert "cpu" in out, out  # PyTorch's own refusal


def test_the_library_needs_no_python():
    for library in (LIBRARY, LIBRARY.parent / "libgraft.so.0"):
        assert not [name for name in needed(library) if "python" in name]
    assert {"libgraft.so.0", "libtorch_cpu.so", "libc10.so"} <= set(needed(LIBRARY))


def test_another_torch_is_refused(tmp_path):
    """By CMake, before a program could be built that goes astray."""
    (tmp_path / "TorchConfig.cmake").write_text("set(TORCH_LIBRARIES torch)\n")
    (tmp_path / "TorchConfigVersion.cmake").write_text('set(PACKAGE_VERSION "1.0")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n')
    built = ".".join(torch.__version__.split(".")[:2])
    out = configure(tmp_path / "build", f"{tmp_path};{torch_graft.cmake_prefix_path}", status=1)
    assert f"built for PyTorch {built}" in " ".join(out.split()) and "1.0" in out, out


@pytest.mark.parametrize("folder", ["include/torch_graft.h", "share/cmake/GraftTorch/GraftTorchConfig.cmake"])
def test_the_package_carries_what_programs_build_with(folder):
    assert (Path(torch_graft.__file__).parent / folder).is_file()
