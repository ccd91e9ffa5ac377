"""What goes wrong gives a clear Python exception, a right result or a clean exit: never a crash, a hang or a wrong
number. What could take the process along runs in a process of its own."""

import signal
import subprocess
import sys
import time

import pytest
import torch
import torch_graft


def test_wrong_device_index(device):
    count = torch.graft.device_count()
    for use in (
        lambda: torch.ones(2, device=f"graft:{count}"),
        lambda: torch.ones(2).to(f"graft:{count + 1}"),
        lambda: torch.graft.set_device(count),
        lambda: torch.graft.get_device_name(count),
        lambda: torch.graft.device(count).__enter__(),
        lambda: torch.graft.synchronize(count),
        lambda: torch.graft.memory_stats(count),
        lambda: torch.graft.Stream(count),
        lambda: torch.graft.get_device_name(1000),
    ):
        with pytest.raises(RuntimeError, match="there (is no such device|are)|device"):
            use()
    with pytest.raises(RuntimeError, match=r"graft:0 \(opencl:0\)"):
        torch.ones(2, device=f"graft:{count}")
    with pytest.raises(ValueError, match="expected a graft device, but got cpu"):
        torch.graft.get_device_name("cpu")
    assert torch.graft.current_device() == 0


def test_a_text_is_not_cut_at_a_nul(device):
    x = torch.ones(2, device=device)
    with pytest.raises(RuntimeError, match="a NUL in it, behind 'none'"):
        torch.nn.functional.gelu(x, approximate="none\0x")


def test_tensors_of_mixed_devices(device, other):
    x = torch.ones(2, 2, device=device)
    for y in (torch.ones(2, 2), torch.ones(2, 2, device=other)):
        for use in (
            lambda: x + y,
            lambda: x @ y,
            lambda: torch.cat([x, y]),
            lambda: x.add_(y),
            lambda: torch.add(x, x, out=y),
            lambda: torch.where(x > 0, x, y),
            lambda: torch.nn.functional.linear(x, y),
            lambda: torch.nn.functional.scaled_dot_product_attention(*[x.view(1, 1, 2, 2)] * 3, attn_mask=y),
        ):
            with pytest.raises(RuntimeError, match="same device"):
                use()
    assert (x + torch.tensor(2.0)).sum().item() == 12, "a CPU number goes along"
    torch_graft.reset_fallbacks()
    for y in (torch.ones(2, 2), torch.ones(2, 2, device=other)):
        for use in (  # ops that PyTorch's CPU kernels do
            lambda: torch.special.zeta(x, y),
            lambda: torch.linalg.solve(x, y),
            lambda: torch.lcm(x.int(), y.int()),
            lambda: x.int().lcm_(y.int()),
            lambda: torch.igamma(y, x),
            lambda: torch.special.zeta(x, x, out=y),
        ):
            with pytest.raises(RuntimeError, match="same device|device"):
                use()
    assert [row for row in torch_graft.fallbacks() if row.way == "PyTorch CPU"] == []
    assert torch.special.zeta(x + 1, torch.tensor(2.0)).shape == (2, 2)
    with pytest.raises(RuntimeError, match="device|index"):
        torch.nn.functional.embedding(torch.zeros(1, dtype=torch.int64), x)


def test_shapes_dtypes_and_indices(device):
    x = torch.ones(2, 3, device=device)
    with pytest.raises(RuntimeError, match="size|shape|broadcast"):
        x + torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="shape|size"):
        x @ x
    with pytest.raises(RuntimeError, match="dtype|[Ff]loat|[Ll]ong|type"):
        x @ torch.ones(3, 2, dtype=torch.int64, device=device)
    with pytest.raises((RuntimeError, TypeError, NotImplementedError), match="quint4x2|dtype|support"):
        torch.empty(2, dtype=torch.quint4x2, device=device)
    with pytest.raises(IndexError):
        x[5]
    empty = torch.empty(0, 3, device=device)
    with pytest.raises(IndexError, match="dim 0 has size 0"):
        empty.amax(0)
    with pytest.raises(RuntimeError, match="dim 0 has size 0"):
        torch.linalg.vector_norm(empty, float("inf"), 0)
    with pytest.raises(RuntimeError, match="a Tensor with 6 elements"):
        x.item()
    assert (x + 1).sum().item() == 12, "work goes on"


def test_indices_out_of_range(python):
    """Found by the device, so that who waits for the stream is told; after that the stream takes new work."""
    python(
        """
        import torch
        x = torch.ones(2, 3, device="graft")
        def index(values):
            return torch.tensor(values, device="graft")
        def told(wait):
            try:
                wait()
            except RuntimeError as error:
                assert "index" in str(error) and "out of range" in str(error), error
            else:
                raise SystemExit("no error")
        uses = (
            lambda: x[index([7])],
            lambda: torch.gather(x, 1, index([[9], [0]])),
            lambda: torch.nn.functional.embedding(index([2]), x),
            lambda: torch.zeros(2, device="graft").scatter_(0, index([5]), 1.0),
        )
        for i in range(40):  # more than there are streams: they come again
            stream = torch.graft.Stream()
            with torch.graft.stream(stream):
                uses[i % 4]()
                told(stream.synchronize)
                assert (x + 1).sum().item() == 12
        for wait in (torch.graft.synchronize, torch.accelerator.synchronize, lambda: x.sum().item(), lambda: x.cpu()):
            uses[0]()
            told(wait)
            assert (x + 1).sum().item() == 12
            torch.graft.synchronize()
        """
    ).ok()


def test_classes_that_are_none(device):
    """PyTorch asks other devices than the CPU no question before it scatters."""
    for classes, count in (([-1], -1), ([-1], 3), ([5], 3), ([0, 3], 3)):
        with pytest.raises((RuntimeError, IndexError), match="out of range|no element"):
            torch.nn.functional.one_hot(torch.tensor(classes, device=device), count)
            torch.graft.synchronize()
    assert torch.nn.functional.one_hot(torch.tensor([1, 2], device=device)).tolist() == [[0, 1, 0], [0, 0, 1]]


def test_writes_to_a_dim_without_elements(device):
    """An index that has nothing to point at."""
    index, value = torch.tensor([[0]], device=device), torch.ones(1, 1, device=device)
    x = torch.zeros(1, 0, device=device)
    for use in (
        lambda: x.scatter(1, index, 1.0),
        lambda: x.scatter(1, index, value),
        lambda: x.scatter_add(1, index, value),
        lambda: x.scatter_reduce(1, index, value, "sum"),
        lambda: x.gather(1, index),
        lambda: x.index_fill(1, index[0], 1.0),
        lambda: x.index_copy(1, index[0], value),
        lambda: torch.nn.functional.embedding(index, x.t()),
        lambda: torch.nn.functional.embedding_bag(index, x.t()),
        lambda: torch.nn.functional.embedding_bag(index, x.t(), mode="max"),
    ):
        with pytest.raises((RuntimeError, IndexError), match="no element|out of range"):
            use()
    nothing = index[:, :0]
    assert x.scatter(1, nothing, 1.0).shape == x.gather(1, nothing).shape == (1, 0)


@pytest.mark.parametrize("p", [2.0, -1.0, float("nan")])
def test_probabilities_that_are_none(device, p):
    x = torch.ones(3, device=device)
    for use in (lambda: torch.bernoulli(x, p), lambda: x.bernoulli_(p), lambda: torch.native_dropout(x, p, True)):
        with pytest.raises(RuntimeError, match=r"p is (2|-1|nan); expected 0 to 1"):
            use()


def test_a_fault_of_the_device_in_backward(python):
    python(
        """
        import torch

        class Picks(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, at):
                ctx.at = at
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad[torch.tensor([0, 1, ctx.at], device=grad.device)] * 2, None

        model = torch.nn.Linear(3, 3).to("graft")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        def step(at):
            optimizer.zero_grad()
            loss = Picks.apply(model(torch.ones(3, device="graft")), at).square().sum()
            loss.backward()
            torch.graft.synchronize()
            optimizer.step()
            return loss.item()
        first = step(2)
        try:
            step(9)
            raise SystemExit("no error")
        except RuntimeError as error:
            assert "out of range" in str(error), error
        assert [step(2) for _ in range(3)][-1] < first
        """
    ).ok()


def test_a_plugin_whose_op_fails_in_the_middle_of_backward(python, plugin_of):
    python(
        f"""
        import torch, torch_graft
        device = torch.device("graft", torch_graft.load({str(plugin_of("failing.c"))!r}))
        x = torch.ones(3, device=device, requires_grad=True)
        y = -(-x)
        try:
            y.backward(torch.ones(3, device=device))
            raise SystemExit("no error")
        except RuntimeError as error:
            assert "the op broke" in str(error) and "aten::neg" in str(error), error
        assert x.grad is None
        (-(-(-x))).backward(torch.ones(3, device=device))
        assert x.grad.tolist() == [-1, -1, -1]
        """,
        GRAFT_FAIL_AT=4,
    ).ok()


def test_fallback_that_is_forbidden(python):
    python(
        """
        import torch
        x = torch.ones(3, 3, device="graft")
        assert (x @ x).sum().item() == 27
        for use in (lambda: torch.linalg.eigvals(x), lambda: torch.poisson(x)):
            try:
                use()
                raise SystemExit("no error")
            except (RuntimeError, NotImplementedError) as error:
                assert "GRAFT_FALLBACK" in str(error) and ("linalg_eig" in str(error) or "poisson" in str(error)), error
        assert (x @ x).sum().item() == 27

        class FailsInBackward(torch.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                return value * 2
            @staticmethod
            def backward(ctx, grad):
                return torch.poisson(grad)

        leaf = torch.ones(3, device="graft", requires_grad=True)
        try:
            FailsInBackward.apply(leaf * 3).exp().sum().backward()
            raise SystemExit("no error")
        except (RuntimeError, NotImplementedError) as error:
            assert "poisson" in str(error), error
        assert leaf.grad is None
        (leaf * 3).sum().backward()
        assert leaf.grad.tolist() == [3, 3, 3]
        """,
        GRAFT_FALLBACK="error",
    ).ok()


def test_fallback_warns_once(python):
    outcome = python(
        """
        import torch
        x = torch.ones(3, 3, device="graft")
        torch.poisson(x), torch.poisson(x)
        """,
        GRAFT_FALLBACK="warn",
    ).ok()
    assert outcome.err.count("poisson") == 1 and "torch_graft.fallbacks()" in outcome.err


def test_backward_that_fails_in_the_middle(device):
    """An exception in a hook, and out of memory: the thread that runs backward goes on to serve."""

    def fail(grad):
        raise ArithmeticError("in the hook")

    x = torch.ones(3, device=device, requires_grad=True)
    y = x * 2
    y.register_hook(fail)
    with pytest.raises(ArithmeticError, match="in the hook"):
        y.sum().backward()
    total = torch.graft.mem_get_info()[1]
    x.grad = None
    large = torch.ones(2**22, device=device, requires_grad=True)
    value = (large.exp() * large).sum()
    torch.graft.empty_cache()
    torch.graft.set_per_process_memory_fraction(torch.graft.memory_reserved() / total)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            value.backward()
    finally:
        torch.graft.set_per_process_memory_fraction(1.0)
    del value
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


def test_overwriting_what_is_copied(device):
    source = torch.ones(2**20)
    targets = []
    for i in range(10):
        source.fill_(i)
        targets.append(source.to(device, non_blocking=True))
    source.fill_(-1)
    assert [t.max().item() for t in targets] == list(range(10)) and [t.min().item() for t in targets] == list(range(10))


# --- processes ---

FORKED = """
    import os, sys, torch
    {before}
    child = os.fork()
    if child == 0:
        try:
            result = (torch.ones(2, device="graft") * 2).sum().item()
            os._exit(10 if result == 4 else 20)
        except RuntimeError as error:
            os._exit(30 if "spawn" in str(error) or "fork" in str(error) else 40)
    _, status = os.waitpid(child, 0)
    assert {after}
    sys.exit(os.waitstatus_to_exitcode(status))
    """


def test_fork_after_import_and_before_use(python):
    assert python(FORKED.format(before="", after="True"), timeout=60).status == 10


def test_fork_after_use_is_an_error_in_the_child(python):
    outcome = python(
        FORKED.format(
            before="x = torch.ones(2, device='graft'); torch.graft.synchronize()", after="(x + 1).sum().item() == 4"
        ),
        timeout=60,
    )
    assert outcome.status == 30, (outcome.status, outcome.err)


def test_data_loader_workers(python):
    """Forked workers that keep to the CPU work; one that uses the device after the parent did says why it can't."""
    outcome = python(
        """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Rows(Dataset):
            def __init__(self, device):
                self.device = device
            def __len__(self):
                return 4
            def __getitem__(self, i):
                return torch.full((2,), float(i), device=self.device)

        x = torch.ones(2, device="graft")
        total = sum(batch.to("graft").sum() for batch in DataLoader(Rows("cpu"), num_workers=2, pin_memory=True))
        assert total.item() == 12
        try:
            list(DataLoader(Rows("graft"), num_workers=1))
            raise SystemExit("no error")
        except RuntimeError as error:
            assert "fork" in str(error), error
        assert (x + 1).sum().item() == 4
        """,
        timeout=90,
    )
    outcome.ok()


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "del torch"])
def test_exit_with_live_tensors_and_running_streams(python, end):
    outcome = python(
        f"""
        import sys, threading, torch
        x = torch.randn(512, 512, device="graft")
        side = torch.graft.Stream()
        with torch.graft.stream(side):
            for _ in range(20):
                x = (x @ x).clamp(-1, 1)
        event = side.record_event()
        pinned = torch.empty(2**20, pin_memory=True)
        pinned[: 512 * 512].copy_(x.flatten(), non_blocking=True)
        leak = [x, side, event, pinned, torch.Generator(device="graft")]
        leak.append(leak)
        {end}
        """,
        timeout=60,
    ).ok()
    assert outcome.err == ""


def test_exit_while_threads_work(python):
    """The interpreter waits for its threads, one of them in backward; then come the hooks, which still hold things.
    (Daemon threads in the midst of an op abort the process on the CPU, too.)"""
    outcome = python(
        """
        import atexit, threading, torch

        def work(backward):
            for _ in range(50):
                x = torch.ones(64, 64, device="graft", requires_grad=backward)
                with torch.graft.stream(torch.graft.Stream()):
                    y = (x @ x).relu().sum()
                    y.backward() if backward else torch.graft.Event().record()
                    torch.graft.synchronize()

        held = [torch.ones(3, device="graft"), torch.graft.Event(enable_timing=True), torch.Generator("graft")]
        held[1].record()
        atexit.register(lambda: print((held[0] + 1).sum().item(), held[1].query()))
        for backward in (False, True, False):
            threading.Thread(target=work, args=(backward,)).start()
        """,
        timeout=60,
    ).ok()
    assert outcome.out == "6.0 True\n" and outcome.err == "", outcome.err


def test_exit_by_an_exception(python):
    outcome = python(
        """
        import torch
        x = torch.ones(256, 256, device="graft")
        for _ in range(20):
            x = (x @ x).clamp(-1, 1)
        raise KeyError("mine")
        """,
        timeout=60,
    )
    assert outcome.status == 1 and outcome.err.rstrip().endswith("KeyError: 'mine'"), outcome.err


def test_keyboard_interrupt_in_a_long_loop():
    code = """
import signal
import torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
x = torch.randn(128, 128, device="graft")
assert (x @ x).clamp(-1, 1).isfinite().all().item()  # the kernels are built before the clock runs
print("started", flush=True)
try:
    while True:
        for _ in range(100):
            x = (x @ x).clamp(-1, 1)
        torch.accelerator.synchronize()  # what is queued has to run yet: on a busy machine for long
except KeyboardInterrupt:
    assert x.isfinite().all().item()
    print("interrupted", (torch.ones(2, device="graft") + 1).sum().item(), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "started\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 0 and out == "interrupted 4.0\n", (child.returncode, out, err)


def test_a_plugin_that_is_removed_between_runs(python, tmp_path):
    (tmp_path / "gone.graft.json").write_text('{"name": "gone", "library": "gone.so", "vendor": "x", "version": "1"}')
    outcome = python(
        "import torch; print((torch.ones(2, device='graft') + 1).sum().item())", GRAFT_PLUGIN_PATH=tmp_path
    ).ok()
    assert outcome.out == "4.0\n" and "gone" in outcome.err


def test_the_reference_device_says_that_it_is_slow(python, tmp_path):
    """Where no plugin has a device, and nobody asked for that."""
    code = "import torch, torch_graft; print([d.name for d in torch_graft.devices()])"
    (tmp_path / "opencl.graft.json").write_text('{"name": "opencl", "library": "gone.so", "abi_major": 1}')
    for variables in ({"GRAFT_OPENCL_DEVICE": "there is no device of this name"}, {"OCL_ICD_VENDORS": tmp_path}):
        outcome = python(code, **variables).ok()
        assert outcome.out == "['reference:0']\n"
        lines = [line for line in outcome.err.splitlines() if "reference device" in line]
        assert len(lines) == 1 and "graft:0" in lines[0] and "graft backends" in lines[0], outcome.err
    quiet = python(code, GRAFT_PLUGINS="none").ok()
    assert quiet.out == "['reference:0']\n" and quiet.err == ""
    assert "reference device" not in python(code).ok().err


def test_plugins_at_run_time(python, tmp_path):
    """load() says what is wrong with a file, and adds a plugin also after a first backward."""
    (tmp_path / "text.so").write_text("not a library")
    python(
        f"""
        import torch, torch_graft
        x = torch.ones(3, device="graft", requires_grad=True)
        (x * 2).sum().backward()
        for path in ({str(tmp_path / "text.so")!r}, {str(tmp_path / "absent.so")!r}, "no_such_plugin"):
            try:
                torch_graft.load(path)
                raise SystemExit("no error")
            except RuntimeError as error:
                assert path in str(error), error
        assert [row.name for row in torch_graft.devices()] == ["reference:0"]
        assert torch_graft.load("reference") == 0
        index = torch_graft.load(torch_graft.__path__[0] + "/lib/graft/plugins/opencl.graft.json")
        assert index == 1 and torch_graft.devices()[1].name == "opencl:0"
        assert torch_graft.load(torch_graft.__path__[0] + "/lib/graft/plugins/opencl.graft.json") == 1
        y = torch.ones(3, device="graft:1", requires_grad=True)
        ((y * y).to("graft:0") * x.detach()).sum().backward()
        assert y.grad.device.index == 1 and y.grad.tolist() == [2, 2, 2]
        """,
        GRAFT_PLUGINS="none",
    ).ok()
