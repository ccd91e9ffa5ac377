"""Builds torch_graft: the library and the Python module over it, and libgraft with the OpenCL plugin beside them.

Build products go to ROOT/build/torch/<version of PyTorch>, so that a second build compiles only what changed.
Environment: GRAFT_BUILD_DIR, a CMake build folder of this tree that has libgraft and the plugins already;
MAX_JOBS, how many compilers run at once.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # what is installed already may be broken

import torch  # noqa: E402
from setuptools import Extension, setup  # noqa: E402
from setuptools.command.build_py import build_py  # noqa: E402
from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths, library_paths  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TORCH = ".".join(torch.__version__.split(".")[:2])
LIBRARY = "torch_graft.lib.libtorch_graft"
COMPILER = os.environ.get("CXX", "g++")
BASE = ROOT / "build" / "torch" / f"{torch.__version__}-{sys.implementation.cache_tag}"


def native_build():
    """The CMake build folder with libgraft and the plugins; built here where none is given."""
    if given := os.environ.get("GRAFT_BUILD_DIR"):
        folder = Path(given).resolve()
        if not (folder / "lib" / "libgraft.so").exists():
            raise SystemExit(f"GRAFT_BUILD_DIR={given}: there is no lib/libgraft.so in it; build the tree there first")
        return folder
    folder = BASE / "native"
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.check_call(
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DGRAFT_BUILD_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release"]
        + launcher
    )
    subprocess.check_call(["cmake", "--build", folder, "--target", "graft", "graft_opencl"])
    return folder


def use_ccache():
    """PyTorch takes one word as its compiler: ccache under the compiler's name serves as that."""
    for folder in ("/usr/lib/ccache", "/usr/lib64/ccache"):
        if os.path.exists(f"{folder}/g++"):
            os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
            return


class BuildPython(build_py):
    """Notes which PyTorch the package is for, and leaves no file behind that the sources no longer have."""

    def run(self):
        package = Path(self.build_lib) / "torch_graft"
        for old in package.glob("*.py"):
            old.unlink()
        super().run()
        package.mkdir(parents=True, exist_ok=True)
        (package / "_built_for.py").write_text(f'TORCH = "{TORCH}"\n')


class BuildLibraries(BuildExtension):
    """libgraft and plugins, then libtorch_graft.so over them, which needs no Python, then the Python module over that."""

    def run(self):
        os.environ.setdefault("MAX_JOBS", str(os.cpu_count()))
        os.environ.setdefault("CXX", COMPILER)
        os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")  # what ccache asks of users of such headers
        use_ccache()
        native = native_build()
        package = Path(self.build_lib) / "torch_graft"
        self.copy_libraries(native / "lib", package / "lib")
        self.copy_headers(package)
        for extension in self.extensions:
            extension.library_dirs += [str(native / "lib"), str(package / "lib")]
        super().run()
        # libgraft refuses plugins that others may write to, whatever the umask was here.
        for path in [package / "lib", *(package / "lib").rglob("*")]:
            path.chmod(0o755 if path.is_dir() or ".so" in path.name else 0o644)

    def build_extension(self, extension):
        """PyTorch's headers take most of the compiler's time: they are read once for all files of the library."""
        if extension.name == LIBRARY and not is_clang():  # clang has another form of this
            header = self.precompiled(extension)
            extension.extra_compile_args += ["-include", str(header), "-Winvalid-pch"]
        super().build_extension(extension)

    def precompiled(self, extension):
        """csrc/precompiled.h where GCC finds what it compiled of it: with the very flags of the library, or not at all."""
        folder = BASE / "precompiled"
        folder.mkdir(exist_ok=True)
        header, compiled = folder / PRECOMPILED.name, folder / f"{PRECOMPILED.name}.gch"
        includes = [f"-I{path}" for path in [*extension.include_dirs, *self.include_dirs]]
        flags = [*self.compiler.compiler_so[1:], *includes, *extension.extra_compile_args]
        note = folder / "flags.txt"
        text = f"{COMPILER}\n{flags}\n{PRECOMPILED.read_text()}"
        if not (compiled.exists() and note.exists() and note.read_text() == text):
            shutil.copy(PRECOMPILED, header)
            command = [*COMPILER.split(), *flags, "-x", "c++-header", str(header), "-o", str(compiled)]
            subprocess.check_call(command, env={**os.environ, "CCACHE_DISABLE": "1"})  # 400 MB, which no cache should keep
            note.write_text(text)
        return header

    def get_ext_filename(self, name):
        """A library that is no Python module has a library's name."""
        return f"{name.replace('.', '/')}.so" if LIBRARY.endswith(name) else super().get_ext_filename(name)

    def copy_libraries(self, source, target):
        """libgraft looks for plugins in graft/plugins beside itself."""
        shutil.rmtree(target, ignore_errors=True)
        plugins = target / "graft" / "plugins"
        plugins.mkdir(parents=True)
        shutil.copy(source / "libgraft.so.0", target)
        manifest = source / "graft" / "plugins" / "opencl.graft.json"
        if manifest.exists():
            shutil.copy(manifest, plugins)
            shutil.copy(manifest.parent / "graft_opencl.so", plugins)

    def copy_headers(self, package):
        """What programs in C++ build with: find_package(GraftTorch)."""
        for folder in ("include", "share"):
            shutil.rmtree(package / folder, ignore_errors=True)
        (package / "include").mkdir(parents=True)
        shutil.copy(HERE / "include" / "torch_graft.h", package / "include")
        config = package / "share" / "cmake" / "GraftTorch"
        config.mkdir(parents=True)
        text = (HERE / "cmake" / "GraftTorchConfig.cmake.in").read_text()
        (config / "GraftTorchConfig.cmake").write_text(text.replace("@TORCH@", TORCH))


def is_clang():
    return "clang" in subprocess.run([*COMPILER.split(), "--version"], capture_output=True, text=True).stdout


def shared_libstdcxx():
    """A compiler that was installed without a shared libstdc++ would put a second one into the extension, beside that of
    PyTorch; exceptions and streams that meet both crash."""
    found = subprocess.run([*COMPILER.split(), "-print-file-name=libstdc++.so"], capture_output=True, text=True).stdout.strip()
    return [] if os.path.isabs(found) else ["-l:libstdc++.so.6"]


INCLUDE = [HERE / "include", HERE / "csrc", ROOT / "sdk/include", ROOT / "plugin_api/include"]
COMPILE = ["-std=c++20", "-O2", "-g0", "-Wall", "-Wno-interference-size", "-fvisibility=hidden"]
MODULE = HERE / "csrc" / "module.cpp"
PRECOMPILED = HERE / "csrc" / "precompiled.h"

BASE.mkdir(parents=True, exist_ok=True)

setup(
    install_requires=[f"torch == {TORCH}.*"],
    ext_modules=[
        Extension(
            LIBRARY,
            sorted(str(path.relative_to(HERE)) for path in (HERE / "csrc").glob("*.cpp") if path != MODULE),
            include_dirs=[*map(str, INCLUDE), *include_paths(), f"{include_paths()[0]}/kineto"],
            library_dirs=library_paths(),
            libraries=["graft", "torch_cpu", "c10"],
            extra_compile_args=COMPILE,
            # Beside it lies libgraft; where both are installed, PyTorch's libraries in the folder of its package.
            extra_link_args=["-Wl,-rpath,$ORIGIN:$ORIGIN/../../torch/lib", "-Wl,--no-undefined", *shared_libstdcxx()],
            language="c++",
        ),
        CppExtension(
            "torch_graft._C",
            [str(MODULE.relative_to(HERE))],
            include_dirs=[*map(str, INCLUDE)],
            libraries=["torch_graft", "graft"],
            extra_compile_args=[*COMPILE, "-O1"],  # nothing in it is called often, and it is compiled while nothing else is
            extra_link_args=["-Wl,-rpath,$ORIGIN/lib", *shared_libstdcxx()],
        ),
    ],
    cmdclass={"build_py": BuildPython, "build_ext": BuildLibraries},
    options={
        "build": {"build_base": str(BASE)},
        "egg_info": {"egg_base": str(BASE)},
        "bdist_wheel": {"bdist_dir": str(BASE / "wheel")},
    },
)
