"""Every overload of PyTorch goes one way: what is generated is up to date, and PyTorch's dispatcher agrees."""

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch_graft

ROOT = Path(__file__).resolve().parents[2]
CODEGEN = ROOT / "sdk/torch/codegen"

pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the tables are made with PyTorch 2.13, and hold for it"
)


@pytest.fixture(scope="module")
def codegen():
    places = [str(CODEGEN), str(ROOT / "plugin_api/gen")]  # before folders of other tests, which have modules of these names
    sys.path[:0] = places
    import aten
    import routes
    import rows

    yield aten, rows, routes
    for place in places:
        sys.path.remove(place)


@pytest.fixture(scope="module")
def tables(codegen):
    """The overloads, the rows, the routes and what is written by hand."""
    aten, rows, routes = codegen
    overloads = aten.load()
    by_hand = routes.hand_written(CODEGEN.parent / "csrc")
    table = rows.make(overloads, ops(rows), by_hand)
    return overloads, table, routes.make(overloads, table, by_hand), by_hand


def ops(rows):
    return rows.descriptions.load(rows.ROOT / "plugin_api/ops")


def has_kernel(name, key):
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key)


def overload(name):
    base, _, suffix = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), suffix or "default")


def test_generated_files_are_up_to_date():
    check = subprocess.run([sys.executable, CODEGEN / "generate.py", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout + check.stderr


def test_each_overload_has_one_route_and_the_dispatcher_agrees(tables, codegen):
    overloads, table, ways, by_hand = tables
    routes = codegen[2]
    composites = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    wrong = []
    for name, route in ways.items():
        ours = has_kernel(name, "PrivateUse1")
        composite = any(has_kernel(name, key) for key in composites)
        expected = {
            routes.HOST: ours,
            routes.REFUSED: ours and not composite,
            routes.COMPOSITE: composite and not ours,
            routes.CPU: has_kernel(name, "CPU") and not composite and not ours,
            routes.OTHER_KEY: not ours and not has_kernel(name, "CPU"),
            routes.SLOT: True,  # registered if libgraft knows the op
        }
        if not expected[route.kind]:
            wrong.append(f"{name}: {route.kind}")
    assert not wrong
    assert set(ways) == set(overloads)
    assert {name for name, route in ways.items() if route.kind == routes.SLOT} == set(table)
    assert {name for name, route in ways.items() if route.kind == routes.HOST} == set(by_hand)


def test_rows_of_known_ops_are_registered_and_no_others(tables):
    table = tables[1]
    is_known = ctypes.CDLL(str(torch_graft.__path__[0]) + "/lib/libgraft.so.0").graft_op_known
    is_known.restype = ctypes.c_bool
    registered = {name for name in table if has_kernel(name, "PrivateUse1")}
    assert registered == {name for name, row in table.items() if is_known(row.op.id)}
    assert {"add.Tensor", "add.out", "add_.Tensor", "convolution_overrideable", "arange.start_out"} <= registered


def test_no_composite_that_is_differentiated_through_is_registered(tables, codegen, device):
    overloads, table, _, _ = tables
    implicit = {name for name in table if overloads[name].composite_implicit}
    assert implicit == codegen[1].BACKWARD_ONLY | codegen[1].WITH_FORMULA

    def gradient_of(name, where):
        x = torch.ones(3, device=where, requires_grad=True)
        return type(overload(name)(torch.ones(3, device=where), x).grad_fn).__name__

    for name in codegen[1].BACKWARD_ONLY:
        assert gradient_of(name, "cpu") in ("NotImplemented", "NoneType"), f"{name} has a gradient on the CPU"
        if has_kernel(name, "PrivateUse1"):
            assert gradient_of(name, device) == gradient_of(name, "cpu")


# --- what the generator refuses ---


def described(rows, schema):
    """relu as plugin_api/ops would describe it with another schema."""
    relu = next(op for op in ops(rows) if op.schema.qualified_name == "aten::relu")
    return replace(relu, schema=rows.schemas.parse(schema))


@pytest.mark.parametrize(
    "schema, message",
    [
        ("aten::neg(Tensor self, Scalar factor=1) -> Tensor", "nothing stands for the op's argument factor"),
        ("aten::neg() -> Tensor", "the op has no argument self"),
        ("aten::neg(Tensor[] self) -> Tensor", "self is TENSOR here and TENSORS in the op"),
        ("aten::mm(Tensor mat2, Tensor self) -> Tensor", "mat2 stands elsewhere"),
        ("aten::relu(Tensor self) -> (Tensor, Tensor)", "its results have no counterpart"),
    ],
)
def test_a_description_that_disagrees_with_pytorch_is_refused(tables, codegen, schema, message):
    rows = codegen[1]
    op = described(rows, schema)
    name = op.schema.qualified_name.removeprefix("aten::")
    alone = replace(tables[0][name], keys=frozenset({"CPU"}), delegates=False)
    with pytest.raises(rows.DescriptionError, match=message):
        rows._add({}, alone, op, {}, {})


def test_an_argument_kind_that_is_not_mapped_is_refused(tables, codegen):
    rows = codegen[1]
    op = described(rows, "aten::record_stream(Tensor self) -> ()")
    with pytest.raises(rows.DescriptionError, match="argument s has a type that is not mapped: Stream"):
        rows._add({}, tables[0]["record_stream"], op, {}, {})


def test_an_overload_without_a_route_is_refused(tables, codegen):
    routes = codegen[2]
    plain = tables[0]["add.out"]
    for lost in (replace(plain, keys=frozenset()), replace(plain, name="view_of", is_view=True)):
        with pytest.raises(routes.DescriptionError, match="route"):
            routes.make({lost.name: lost}, {}, {})


def test_two_files_that_register_one_overload_are_refused(tmp_path, codegen):
    routes = codegen[2]
    for name in ("a.cpp", "b.cpp"):
        (tmp_path / name).write_text('TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {\n  m.impl("view", x);\n}\n')
    with pytest.raises(routes.DescriptionError, match="view is registered by a.cpp and by b.cpp"):
        routes.hand_written(tmp_path)


# --- refusals, as they look to who calls ---


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x.to_sparse_bsr((1, 1)), "graft: sparse tensors are not supported (aten::_to_sparse_bsr); use a dense"),
        (lambda x: x.to_sparse().tril(), "graft: aten::tril does not support sparse COO tensors; use a dense tensor"),
        (lambda x: x.to_sparse_csr().relu(), "graft: aten::relu does not support sparse compressed tensors; use a dense"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "graft: quantized tensors are not supported"),
        (lambda x: x.to_mkldnn(), "graft: MKL-DNN tensors are not supported"),
        (lambda x: torch._nested_tensor_from_mask(x[None], x[None, :, 0] > 0), "graft: nested tensors are not"),
        (lambda x: torch.nested.as_nested_tensor([x]) * 2, "graft: nested tensors are not supported (aten::mul.Tensor)"),
        (lambda x: torch.nested.as_nested_tensor([x.requires_grad_()]) * 2, "graft: nested tensors are not supported"),
        (lambda x: torch._masked_scale(x, x, 1.0), "graft: aten::_masked_scale is an op of CUDA alone"),
    ],
)
def test_refusals_are_one_line_that_names_the_layout(device, call, message):
    with pytest.raises(NotImplementedError) as refused:
        call(torch.ones(2, 2, device=device))
    first, *rest = str(refused.value).splitlines()
    assert message in first
    assert not rest


# --- who runs an op ---


def test_routes_are_those_of_graft_ops(device, other):
    aten = torch.ops.aten
    assert torch_graft.route(aten.mm.default, device) == torch_graft.route("aten::mm", "graft:0") == "plugin"
    assert torch_graft.route(aten.linalg_eig.default) == "reference"
    assert torch_graft.route(aten.linalg_eig.default, other) == "plugin"
    assert torch_graft.route(aten.permute.default) == "host"
    assert torch_graft.route(torch.ops.prims.add.default, other) == "equal"
    assert torch_graft.route("nobody::knows") == "unsupported"
    with pytest.raises(ValueError, match="expected a graft device"):
        torch_graft.route("aten::mm", "cpu")
    with pytest.raises(TypeError, match=r"name an overload: torch.ops.aten.mm.default"):
        torch_graft.route(aten.mm)
    for other_thing in (torch.mm, 3):
        with pytest.raises(TypeError, match="expected an op as torch.ops.aten.mm.default"):
            torch_graft.route(other_thing)


# --- autocast ---


def test_autocast_lists_are_those_of_pytorch():
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::") and "cudnn" not in n]

    def listed(key):
        return {name for name in names if has_kernel(name.removeprefix("aten::"), key)}

    # CUDA's softmax inside cross entropy is in the dtype of the logits; the CPU's list has the loss in f32, as we do.
    assert listed("AutocastPrivateUse1") == listed("AutocastCUDA") | {"aten::cross_entropy_loss"}


def test_binary_cross_entropy_is_refused_under_autocast(device):
    x = torch.full((3,), 0.5, device=device)
    with torch.autocast(device.type), pytest.raises(RuntimeError, match="unsafe to autocast"):
        torch.nn.functional.binary_cross_entropy(x, x)
