"""Ops that a plugin brings: torch.ops of the plugin's namespace, on the device, on the CPU, traced, differentiated."""

import subprocess
from pathlib import Path

import pytest
import torch
import torch_graft
from compiled import beside_graphs, graphs_of


@pytest.fixture(scope="module")
def acme(plugin_of):
    """The device of tests/plugins/custom.c, whose ops are torch.ops.acme."""
    return torch.device("graft", torch_graft.load(plugin_of("custom.c")))


def numbers(*sizes, on, **options):
    return torch.randn(*sizes).to(on).requires_grad_(options.get("grad", False))


def test_an_op_is_called(acme):
    x, y = numbers(3, 4, on=acme), numbers(3, 4, on=acme)
    torch_graft.reset_fallbacks()
    out = torch.ops.acme.scale_add(x, y, alpha=0.5)
    assert out.device == acme and not torch_graft.fallbacks()
    assert torch.equal(out.cpu(), x.cpu() + 0.5 * y.cpu())
    assert torch.equal(torch.ops.acme.scale_add(x, y).cpu(), x.cpu() + y.cpu())
    assert "float alpha=1" in str(torch.ops.acme.scale_add.default._schema)


def test_every_kind_of_argument(acme):
    x, y = torch.tensor([8.0], device=acme), torch.tensor([5.0, 6.0], device=acme)
    seen, copy = torch.ops.acme.probe.all(
        x, y, [y, x], 7, [1, 2.5, 3], 70, 1.5, False, 2.5, [30, 40], [9.5], [False, True, True], torch.float64, "slow",
        flag=True,
    )  # fmt: skip
    values = seen.tolist()
    assert values[:12] == [8, 2, 7, 70, 1.5, 0, 2.5, 30, 40, 9.5, 3, 3] and values[13:] == [4, 1, 5]
    assert torch.equal(copy.cpu(), y.cpu())


def test_the_reference_function_serves_the_cpu(acme):
    x = torch.randn(3, 4, dtype=torch.float64).t()
    assert torch.equal(torch.ops.acme.cube(x), x * x * x)
    assert torch.ops.acme.cube(torch.empty(0)).shape == (0,)
    with pytest.raises(NotImplementedError, match="acme::opaque.*an op of the plugin custom, on whose devices"):
        torch.ops.acme.opaque(x)


def exact_cube(x):
    x = x.cpu().double()
    return (x * x * x).float()


def one_line(raised):
    """What is said, where it is one line; a place in PyTorch's own sources may follow it."""
    text = str(raised.value)
    assert "\n" not in text.strip(), text
    return text


def test_errors(acme):
    x = numbers(3, on=acme)
    with pytest.raises(RuntimeError) as raised:
        torch.ops.acme.scale_add(x, numbers(4, on=acme))
    assert "acme::scale_add: the rule of its shapes: x and y must have one shape" in one_line(raised)
    with pytest.raises(RuntimeError) as raised:
        torch.ops.acme.scale_add(x, torch.randn(3))
    assert "Expected all tensors to be on the same device" in one_line(raised)
    with pytest.raises(NotImplementedError) as raised:
        torch.ops.acme.cube(torch.tensor([1, 2], device=acme))
    assert "acme::cube" in one_line(raised) and "i64[2]" in one_line(raised)
    with pytest.raises(NotImplementedError) as raised:
        torch.ops.acme.cube(torch.tensor([1, 2]))
    assert "acme::cube" in one_line(raised) and "i64[2]" in one_line(raised)
    with pytest.raises(TypeError) as raised:
        torch.ops.acme.cube(torch.empty(2, dtype=torch.complex32))
    assert "not supported" in one_line(raised)
    with pytest.raises(RuntimeError) as raised:
        torch.ops.acme.cube(torch.empty([1] * 17, device=acme))
    assert "at most 16 dim" in one_line(raised)
    assert torch.equal(torch.ops.acme.cube(x).cpu(), exact_cube(x))  # nothing is lost


def test_a_number_on_the_cpu_is_not_taken_for_a_tensor_of_the_device(acme):
    x = torch.tensor(2.0, device=acme)
    with pytest.raises(RuntimeError, match="same device|acme::scale_add"):
        torch.ops.acme.scale_add(x, torch.tensor(3.0))
    assert torch.ops.acme.scale_add(x, torch.tensor(3.0, device=acme)).item() == 5


def test_layouts_and_empty_tensors(acme):
    x = numbers(4, 6, on=acme)
    for view in (x.t(), x[::2, 1::2], x[:0], x[0, 0].expand(3, 2), x.flip(0)):
        out = torch.ops.acme.cube(view)
        assert out.is_contiguous() and torch.equal(out.cpu(), exact_cube(view))


@pytest.mark.parametrize("place", ["acme", "cpu"])
def test_gradients(acme, place):
    on = acme if place == "acme" else torch.device("cpu")
    x, y = numbers(3, 4, on=on, grad=True), numbers(3, 4, on=on, grad=True)
    g = numbers(3, 4, on=on)
    torch.ops.acme.scale_add(x, y, alpha=0.25).backward(g)
    assert torch.equal(x.grad.cpu(), g.cpu()) and torch.equal(y.grad.cpu(), 0.25 * g.cpu())
    table, index = numbers(5, on=on, grad=True), torch.tensor([4, 0, 4]).to(on)
    torch.ops.acme.pick(table, index).sum().backward()
    assert table.grad.tolist() == [1, 0, 0, 0, 2]


def test_gradients_again(acme):
    x, y = numbers(3, on=acme, grad=True), numbers(3, on=acme)
    out = torch.ops.acme.scale_add(x, y, alpha=2.0)
    for times in (1, 2):
        out.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [times] * 3 and y.grad is None
    with torch.no_grad():
        assert torch.ops.acme.scale_add(x, y).grad_fn is None
    assert torch.ops.acme.scale_add(y, y).grad_fn is None
    with torch.no_grad():
        x += 1  # which the gradient of cube would read
    cubes = torch.ops.acme.cube(x)
    with torch.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        cubes.sum().backward()


def test_lists(acme):
    x, item = numbers(3, on=acme, grad=True), numbers(3, on=acme)
    out = torch.ops.acme.weigh([item, item], x, times=5)
    assert torch.allclose(out.cpu(), 5 * x.detach().cpu() + 2 * item.cpu())
    out.sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    for unused in ((), ([],), ([1, 2],), ([], 2)):
        (gradient,) = torch.autograd.grad(torch.ops.acme.weigh([], x, *unused).sum(), x)
        assert gradient.tolist() == [2, 2, 2]
    out = torch.ops.acme.weigh([item, item.clone().requires_grad_()], x)
    with pytest.raises(NotImplementedError, match="acme::weigh: its gradient acme.*gives none for argument more"):
        out.sum().backward()


def test_gradients_of_gradients(acme):
    x = torch.tensor([2.0, 3.0], device=acme, requires_grad=True)
    (first,) = torch.autograd.grad(torch.ops.acme.cube(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [12, 27] and second.tolist() == [12, 18]


def test_gradcheck(acme):
    x, y = (torch.randn(4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(torch.ops.acme.scale_add, (x, y))
    assert torch.autograd.gradgradcheck(torch.ops.acme.cube, (x,))


def test_no_gradient_is_said(acme):
    out = torch.ops.acme.opaque(numbers(3, on=acme, grad=True))
    with pytest.raises(NotImplementedError, match="acme::opaque has no gradient: the plugin custom names no gradient"):
        out.sum().backward()


def test_fake_tensors(acme):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(3, 4, device=acme)
        out = torch.ops.acme.scale_add(x, x)
        assert out.shape == (3, 4) and out.device == acme and out.dtype == torch.float32
        with pytest.raises(RuntimeError, match="x and y must have one shape"):
            torch.ops.acme.scale_add(x, torch.empty(3, device=acme))


@pytest.mark.parametrize("backend", ["aot_eager", "graft"])
def test_compiled(acme, backend, programs):
    """The ops of a plugin are held by graphs, gradients included."""

    def f(x, y):
        return torch.ops.acme.scale_add(x * 2, torch.ops.acme.cube(y), alpha=0.5).sum()

    inputs = [(numbers(n, on=acme, grad=True), numbers(n, on=acme, grad=True)) for n in (3, 5, 7)]
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for x, y in inputs:  # of several shapes: PyTorch tries to leave them open
        expected = torch.autograd.grad(f(x, y), (x, y))
        got = torch.autograd.grad(compiled(x, y), (x, y))
        assert all(torch.allclose(a.cpu(), b.cpu()) for a, b in zip(expected, got))
    assert not beside_graphs(programs) and (graphs_of(programs) >= 2) == (backend == "graft")


def test_opcheck(acme):
    x, y = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    torch.library.opcheck(torch.ops.acme.scale_add.default, (x, y), {"alpha": 0.5})
    torch.library.opcheck(torch.ops.acme.cube.default, (x,))
    torch.library.opcheck(torch.ops.acme.pick.default, (torch.randn(5, requires_grad=True), torch.tensor([1, 1, 3])))
    # PyTorch's check of the registration knows no devices from outside.
    rest = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    on_device = tuple(t.detach().to(acme).requires_grad_() for t in (x, y))
    torch.library.opcheck(torch.ops.acme.scale_add.default, on_device, {"alpha": 0.5}, test_utils=rest)


def test_a_training_step(acme):
    def step(on):
        torch.manual_seed(1)
        layer = torch.nn.Linear(4, 4)
        x = torch.randn(3, 4)
        layer, x = layer.to(on), x.to(on)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            torch.ops.acme.cube(torch.ops.acme.scale_add(layer(x), x, alpha=0.5)).sum().backward()
            optimizer.step()
        return [p.detach().cpu() for p in layer.parameters()]

    for got, expected in zip(step(acme), step("cpu")):
        assert torch.allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_the_scaffold(tmp_path, python):
    """What `graft new my_chip` writes, and the lines of its README.md."""
    root = Path(__file__).resolve().parents[2]
    template = root / "sdk/cli/template"
    (tmp_path / "build").mkdir()
    lines = (template / "plugin.c").read_text().replace("@NAME@", "my_chip").splitlines(True)
    (tmp_path / "plugin.c").write_text("".join(line for line in lines if "// @" not in line))  # no option was given
    command = ["cc", "-shared", "-fPIC", f"-I{root}/plugin_api/include", "plugin.c", "-o", "build/my_chip.so"]
    subprocess.run(command, check=True, cwd=tmp_path)
    example = (template / "README.md").read_text().replace("@NAME@", "my_chip").partition("```python\n")[2]
    more = """
from torch._subclasses.fake_tensor import FakeTensorMode
op = torch.ops.my_chip.scale_add
with FakeTensorMode():
    y = op(torch.empty(2, 3, device=x.device), torch.empty(2, 3, device=x.device))
print(tuple(y.shape), y.device == x.device, "scale_add" in str(torch_graft.fallbacks()))
wide = torch.ones(3, dtype=torch.float64, device=x.device)  # which its slot does not serve
print(op(wide, wide).tolist(), "my_chip::scale_add" in str(torch_graft.fallbacks()))
"""
    outcome = python(f"import os; os.chdir({str(tmp_path)!r})\n" + example.partition("```")[0] + more).ok()
    assert outcome.out.startswith("tensor([1.5000, 1.5000, 1.5000], device='graft:")
    assert outcome.out.endswith("(2, 3) True False\n[2.0, 2.0, 2.0] True\n")


def test_what_pytorch_refuses_is_said_and_left_out(plugin_of, python):
    library = plugin_of("custom.c")
    python(
        """
        import os, warnings, torch, torch_graft
        taken = torch.library.Library("acme", "FRAGMENT")
        taken.define("pick(Tensor x) -> Tensor")  # somebody else's
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            index = torch_graft.load(os.environ["LIBRARY"])
        texts = [str(warning.message) for warning in caught]
        assert len(texts) == 3, texts
        assert not any("\\n" in text.strip().partition("(Triggered")[0].strip() for text in texts), texts
        assert any("the op of the plugin custom, acme::cube(Tensor in)" in text for text in texts), texts
        assert any("the op of the plugin custom, acme::pick(" in text for text in texts), texts
        assert any("acme::scale_add of the plugin custom has no gradient in PyTorch" in text for text in texts), texts
        x = torch.tensor([1.0, 2.0], device=f"graft:{index}")
        assert torch.ops.acme.scale_add(x, y=x).tolist() == [2, 4]
        assert not hasattr(torch.ops.acme, "cube")
        assert torch.ops.acme.opaque(x).tolist() == [1, 8]
        """,
        LIBRARY=library,
        GRAFT_LIE="pytorch",
    ).ok()


def test_a_plugin_is_loaded_twice(acme, plugin_of, python):
    """It stays what it is; another plugin with ops of the same names has none of them."""
    library, other = plugin_of("custom.c"), plugin_of("liar.c")
    outcome = python(
        """
        import os, torch, torch_graft
        first = torch_graft.load(os.environ["LIBRARY"])
        assert torch_graft.load(os.environ["LIBRARY"]) == first
        second = torch_graft.load(os.environ["OTHER"])
        assert second != first
        x = torch.tensor([1.0, 2.0], device=f"graft:{first}", requires_grad=True)
        torch.ops.acme.cube(x).sum().backward()
        assert x.grad.tolist() == [3, 12]
        try:
            torch.ops.acme.opaque(x.detach().to(f"graft:{second}"))
        except NotImplementedError as error:
            assert "acme::opaque" in str(error) and "an op of the plugin custom" in str(error), error
        else:
            raise AssertionError("another plugin's op ran")
        """,
        LIBRARY=library,
        OTHER=other,
    ).ok()
    assert outcome.err.count("is an op of the plugin custom") == 11, outcome.err


def test_wrong_answers_of_a_plugin(plugin_of, python):
    """infer that gives no dtype, no shape, or the gradient another shape than its argument's."""
    library = plugin_of("liar.c")
    for lie, text in (
        ("custom_dtype", "gave the result out the dtype 0x00007777, which is none"),
        ("custom_dims", "a shape that is none: 17 dims"),
        ("custom_gradient_shape", "shape"),
    ):
        python(
            f"""
            import os, torch, torch_graft
            from torch._subclasses.fake_tensor import FakeTensorMode
            x = torch.ones(3, device=f"graft:{{torch_graft.load(os.environ['LIBRARY'])}}", requires_grad=True)
            places = [x, x.detach().cpu().requires_grad_()]
            if "gradient" not in "{lie}":
                with FakeTensorMode():
                    places.append(torch.empty(3, device=x.device))
            for place in places:
                try:
                    torch.ops.acme.cube(place).sum().backward()
                except RuntimeError as error:
                    assert "{text}" in str(error), error
                else:
                    raise AssertionError(f"{{place.device}}: taken")
            assert torch.ops.acme.scale_add(x, x).tolist() == [2, 2, 2]
            """,
            LIBRARY=library,
            GRAFT_LIE=lie,
        ).ok()
