"""Scripts in processes of their own that have PyTorch's compiler imported already, which takes longer than what most of
them do. They are forked off one process that has imported it, knows of no device, and has run nothing: settings that
PyTorch reads where it is imported are those of the tests' process, and nothing that waits for the end of Python runs."""

import importlib
import multiprocessing
import os
from unittest import mock

IMPORTED = ["torch._dynamo.utils", "torch._functorch.aot_autograd", "torch._inductor.compile_fx"]
WITHOUT_DEVICES = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def run_here(script, environment, out, err):
    """As `python -c` has a script that begins with `import torch`; what it prints goes to files."""
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    for name in IMPORTED:  # they are there; a name that is wrong would only make all this slow
        importlib.import_module(name)
    import torch

    torch._import_device_backends()
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})


def run(script, environment, folder, timeout=300):
    """Its exit status, below 0 by a signal, and what it wrote to stdout and stderr."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    out, err = folder / "out.txt", folder / "err.txt"
    for path in (out, err):
        path.touch()
    process = context.Process(target=run_here, args=(script, environment, out, err))
    with mock.patch.dict(os.environ, WITHOUT_DEVICES):  # the first one starts what they are forked off
        process.start()
    process.join(timeout)
    late = process.exitcode is None
    process.kill()
    process.join()
    assert not late, f"a script took longer than {timeout} s: {err.read_text()[-2000:]}"
    return process.exitcode, out.read_text(), err.read_text()
