"""What nodes of an FX graph are, and which a graph of libgraft can hold."""

import operator

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from torch_graft._device import is_ours


def is_part(node):
    return node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node)


def is_number(node):
    """Whether it is a number of the program's, in a tensor of the CPU: of a graph it becomes a constant."""
    if node.target is torch.ops.aten.lift_fresh_copy.default:
        node = node.args[0]
    value = node.meta.get("val")
    return node.op == "get_attr" and isinstance(value, torch.Tensor) and value.device.type == "cpu" and value.dim() == 0


def is_tensor(node):
    return isinstance(node.meta.get("val"), torch.Tensor)


def spread_last(node, args):
    """The arguments of a product of lists whose first one has single elements, the other way round: in slots of plugins
    the first list has sizes and dtypes of the result, and what is spread over it comes behind."""
    if node.target is not torch.ops.aten._foreach_mul.List:
        return args
    first, second = args
    spreads = all(a.dim() == 0 and _decides_dtype(b, a) for a, b in zip(first, second))
    return (second, first) if spreads and any(b.dim() > 0 for b in second) else args


def _decides_dtype(b, a):
    """Whether a product with a, which has no dimensions, has the dtype of b."""
    return a.dtype == b.dtype or (b.dim() > 0 and a.dtype.is_floating_point and b.dtype.is_floating_point)


# They read values, change what a tensor's memory is, or say something about streams.
_NEVER = {
    f"aten::{name}"
    for name in """_local_scalar_dense item equal is_nonzero _assert_async _assert_scalar _assert_tensor_metadata
    record_stream resize_ resize_as_ set_ _pin_memory pin_memory is_pinned _print lift_fresh
    sym_constrain_range sym_constrain_range_for_size _async_error""".split()
}
_SCALAR_MODULES = {"_operator", "math", "builtins", "torch", "torch.fx.experimental.sym_node", "torch.utils._sympy.functions"}
_SCALAR_OPS = {f"aten::sym_{name}" for name in ("size", "stride", "numel", "storage_offset", "is_contiguous")}


def why_not(node):
    """Why a graph can't hold the node, or None."""
    if is_part(node):
        return why_not(node.args[0]) if node.args[0].op.startswith("call_") else "it takes apart what another made"
    if node.op != "call_function":
        return f"it is a {node.op} of a module"
    for value in node.all_input_nodes:
        if isinstance(value.meta.get("val"), (list, tuple)):
            return "it takes a list that another node made"
        if "val" not in value.meta:
            return f"what it takes of {value.name} is not known beforehand"
    if _depends_on_values(node):
        return "the size of its result depends on values"
    return _why_not_target(node.target) or _why_not_tensors(node)


def _depends_on_values(node):
    """Whether it makes sizes that nothing before it has."""
    own = free_unbacked_symbols(node.meta.get("val"))
    return bool(own) and not own <= free_unbacked_symbols([value.meta.get("val") for value in node.all_input_nodes])


def _why_not_target(target):
    if not isinstance(target, torch._ops.OpOverload):
        name = getattr(target, "__name__", str(target))
        if isinstance(target, torch._ops.HigherOrderOperator):
            return f"{name} is a higher-order op"
        return None if _is_scalar_function(target) else f"{name} is no op"
    name = target._schema.name
    if name in _SCALAR_OPS:
        return None
    if name in _NEVER or torch.Tag.data_dependent_output in target.tags:
        return f"{name} reads values, or changes what memory is"
    if target.namespace not in ("aten", "prims", "graft") and not _custom_ops_has(name):
        return f"{name} is a custom op"
    return None


def _custom_ops_has(name):
    from torch_graft import _custom_ops

    return name in _custom_ops.names


def _is_scalar_function(target):
    return getattr(target, "__module__", None) in _SCALAR_MODULES


def _why_not_tensors(node):
    values = [value.meta.get("val") for value in [*node.all_input_nodes, node] if value is node or not is_number(value)]
    leaves = pytree.tree_leaves(values)
    tensors = [value for value in leaves if isinstance(value, torch.Tensor)]
    if any(isinstance(value, torch.SymFloat) and free_unbacked_symbols(value) for value in leaves):
        return "a number with a fraction goes into it that was read from a tensor, and each run may have another"
    for tensor in tensors:
        if not is_ours(tensor):
            return f"it takes or gives a tensor on {tensor.device}"
        if tensor.layout != torch.strided:
            return f"it takes or gives a tensor of layout {tensor.layout}"
    if len({tensor.device for tensor in tensors}) > 1:
        return "its tensors are on several devices"
    if any(isinstance(value, torch.Generator) for value in pytree.tree_leaves((node.args, node.kwargs))):
        return "it draws from a generator of its own"
    return None
