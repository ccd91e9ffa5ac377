"""What torch.compile made is found again in a new process: _kept_programs.py."""

import os
import shutil
import textwrap
from pathlib import Path
from types import SimpleNamespace

import compiler_imported
import pytest
from torch_graft import _kept_programs

pytestmark = pytest.mark.skipif(not _kept_programs.can_be_kept(), reason="this PyTorch bundles no results with its entries")

MODEL = """
    import torch, torch_graft
    from torch._dynamo.utils import counters

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.GELU(), torch.nn.BatchNorm1d(7), torch.nn.Dropout(0.5)).to("graft")
    compiled = torch.compile(model, backend="graft"{options})
    for batch in (6, 4):
        x = torch.randn(batch, 5, device="graft", requires_grad=True)
        y = compiled(x)
        y.square().mean().backward()
        print(batch, *y.flatten().tolist(), *x.grad.flatten().tolist(), *model[0].weight.grad.flatten().tolist())
    with torch.no_grad():
        print(*compiled.eval()(x).flatten().tolist())
    print("entries", *(counters["aot_autograd"][f"autograd_cache_{{what}}"] for what in ("hit", "miss", "bypass", "saved")))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a script with its programs kept in a folder; PyTorch's settings are as the environment of this process has them."""

    def run(folder, script):
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
        status, out, err = compiler_imported.run(textwrap.dedent(script), environment, tmp_path_factory.mktemp("printed"))
        assert status == 0, err[-2000:]
        *values, entries = out.splitlines()
        return SimpleNamespace(values=values, entries=[int(count) for count in entries.split()[1:]], errors=err)

    return run


@pytest.fixture(scope="module")
def first_process(tmp_path_factory, run):
    """The first process of a model; the folder where its programs are kept, and a copy of that, from before any test."""
    folder, copy = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("copy")
    first = run(folder, MODEL.format(options=""))
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return first, folder, copy


def test_a_new_process_finds_them(first_process, run):
    """With the same results to the bit: forward, gradients, random numbers, of other sizes, too."""
    first, _, folder = first_process  # found in the copy, so that it is no name of a folder that the other test misses
    hit, miss, bypass, saved = first.entries
    assert hit == 0 and bypass == 0 and miss == saved >= 3, first
    second = run(folder, MODEL.format(options=""))
    assert second.entries == [miss, 0, 0, 0] and second.values == first.values, (first, second)
    other = run(folder, MODEL.format(options=', options={"passes": "-cse"}'))
    assert other.entries == first.entries and other.values == first.values, "made with other passes"


def test_tensors_of_literals_are_kept(tmp_path, run):
    script = """
        import torch, torch_graft
        from torch._dynamo.utils import counters

        x = torch.arange(4.0, device="graft").view(2, 2)
        y = torch.compile(lambda a: a * torch.tensor(2.0, device=a.device) + torch.tensor([1.0, 3.0]).to(a.device))(x)
        print(*y.flatten().tolist())
        print("entries", *(counters["aot_autograd"][f"autograd_cache_{what}"] for what in ("hit", "miss", "bypass", "saved")))
    """
    first, second = run(tmp_path, script), run(tmp_path, script)
    assert first.values == second.values == ["1.0 5.0 5.0 9.0"]
    assert first.entries == [0, 1, 0, 1] and second.entries == [1, 0, 0, 0]
    assert "set_.source_Storage" not in first.errors + second.errors


def test_guards_that_pytorch_would_misread_are_not_kept(tmp_path, run):
    """A convolution whose height or width has elements, and whose width is not 1, would be found for a width of 1."""
    script = """
        import torch, torch_graft
        from torch._dynamo.utils import counters

        compiled = torch.compile(torch.nn.functional.conv2d, backend="graft", dynamic=True)
        weight = torch.randn(4, 3, 3, 3, device="graft")
        for width in {widths}:
            x = torch.randn(2, 3, 5, width, device="graft")
            assert torch.equal(compiled(x, weight), torch.nn.functional.conv2d(x, weight)), width
        print("entries", counters["aot_autograd"]["autograd_cache_hit"])
    """
    run(tmp_path, script.format(widths=(6, 3, 7)))
    run(tmp_path, script.format(widths=(3, 6)))


def test_they_can_be_switched_off(tmp_path, python):
    off = python(MODEL.format(options=""), TORCHINDUCTOR_CACHE_DIR=tmp_path, TORCHINDUCTOR_AUTOGRAD_CACHE="0").ok()
    assert off.out.splitlines()[-1] == "entries 0 0 0 0" and not list(tmp_path.rglob("aotautograd"))


def test_a_damaged_entry_is_made_again(first_process, run):
    """A file cut short, as by a full disk, and an empty one."""
    first, folder, _ = first_process
    for i, file in enumerate(folder.rglob("aotautograd/*/*")):
        file.write_bytes(file.read_bytes()[: 1000 * (i % 2)])
    again = run(folder, MODEL.format(options=""))
    assert again.entries[0] == 0 and again.values == first.values


CONSTANT = """
    import torch, torch_graft
    from torch._dynamo.utils import counters

    held = torch.arange(4.0, device="graft")

    @torch.compile
    def function(x):
        return (x * torch.tensor([1.0, 2.0, 3.0, 4.0]).to("graft") + held, torch.ops.aten.nonzero(x))

    print(*(value.tolist() for value in function(torch.ones(4, device="graft"))))
    print("entries", *(counters["aot_autograd"][f"autograd_cache_{what}"] for what in ("hit", "miss", "bypass", "saved")))
"""


def test_tensors_of_the_graph(tmp_path, run):
    first, second = run(tmp_path, CONSTANT), run(tmp_path, CONSTANT)
    assert first.values == second.values == ["[1.0, 3.0, 5.0, 7.0] [[0], [1], [2], [3]]"]


EDITED = """
    import torch, torch_graft
    from torch._dynamo.utils import counters

    @torch.library.custom_op("kept::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    double.register_fake(torch.empty_like)
    double.register_autograd(lambda ctx, grad: grad * {factor})
    x = torch.ones(2, device="graft", requires_grad=True)
    torch.compile(lambda value: double(value) + 1, backend="graft")(x).sum().backward()
    print(x.grad.tolist())
    print("entries", *(counters["aot_autograd"][f"autograd_cache_{{what}}"] for what in ("hit", "miss", "bypass", "saved")))
"""


def test_ops_of_a_user_are_not_kept(tmp_path, run):
    """They may have been edited since."""
    assert run(tmp_path, EDITED.format(factor=100)).values == ["[100.0, 100.0]"]
    assert run(tmp_path, EDITED.format(factor=2)).values == ["[2.0, 2.0]"]


FLOATS = """
    import torch, torch_graft

    def changed(a, number):
        return torch._foreach_add([a * number], number)[0]

    compiled = torch.compile(changed, backend="graft")
    a = torch.arange(3.0, device="graft")
    for number in (0.5, 1.5, 0.25, 7.0):  # from the second on, it is an argument of the graph
        assert torch.equal(compiled(a, number), changed(a, number)), number
    print("entries")
"""


def test_a_graph_with_the_value_of_a_float_serves_no_other(tmp_path, run):
    run(tmp_path, FLOATS)


BRANCHES = """
    import torch, torch_graft

    def always(x):
        return torch.relu(x) * 2

    def of_many(x):
        return torch.relu(x) * 2 if x.shape[0] > 5 else torch.tanh(x)

    def of_fours(x):
        return torch.relu(x) * 2 if x.shape[0] % 4 == 0 else torch.tanh(x)

    for function in (always, of_many, of_fours):  # the graph of 8 rows is that of the first
        compiled = torch.compile(function, backend="graft", dynamic=True)
        for rows in (8, 3, 6):
            x = torch.randn(rows, 4, device="graft")
            assert torch.equal(compiled(x), function(x)), (function.__name__, rows)
    print("entries")
"""


def test_a_graph_that_is_found_keeps_the_guards_of_who_asks(tmp_path, run):
    """Where another function with fewer of them made it; in the first process and in the next."""
    for _ in range(2):
        run(tmp_path, BRANCHES)


def test_the_key_has_all_of_the_bridge():
    """C++ that decides how a model is traced included: an entry of another build is not found."""
    mapped = {Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "torch_graft" in line}
    ours = {path for path in mapped if path.name.startswith(("_C.", "libtorch_graft"))}
    assert len(ours) == 2 and ours <= {path.resolve() for path in _kept_programs._files()}
