"""What a pooling and the activation before it keep for their gradients."""

import operator

import torch

from torch_graft import _kept_values

aten = torch.ops.aten

# --- gradients of the activation in front ---


def cut_before_pooling(graph):
    """The gradient of a ReLU whose result a pooling alone takes is zero where that result is. A pooling hands each gradient
    to the element that it gave, so it is the same to leave out, before it does so, those of results that are zero: fewer,
    and nobody needs what the ReLU gave. Of that the pooling's gradient needs the shape, which what stands before a norm
    has, too, and is kept for the norm."""
    for node in graph.find_nodes(op="call_function", target=aten.threshold_backward.default):
        pooled, given, threshold = node.args
        if not _is_gradient_of_pooling(pooled, _attached(given)):
            continue
        result = _result_of(pooled)
        if result is not None and not _is_seen(result, graph.output_node()):
            _cut(graph, node, pooled, result, threshold)


def _is_seen(value, output):
    """Whether the memory comes out: a program may write there, which it may not where a gradient needs it."""
    views = [user for user in value.users if _is_view(user.target)]
    return output in value.users or any(_is_seen(view, output) for view in views)


def _is_view(target):
    if not isinstance(target, torch._ops.OpOverload):
        return False
    aliases = any(argument.alias_info is not None for argument in target._schema.arguments)
    return aliases or target is aten._unsafe_view.default


def _attached(node):
    """Autograd sees what it keeps through a view."""
    while node.target is aten.detach.default:
        node = node.args[0]
    return node


def _is_gradient_of_pooling(node, given):
    is_gradient = getattr(node, "target", None) is aten.max_pool2d_with_indices_backward.default
    return is_gradient and not node.kwargs and len(node.users) == 1 and _attached(node.args[1]) is given


def _result_of(gradient):
    """What the pooling gave, beside the indices."""
    indices, source = _attached(gradient.args[7]), _attached(gradient.args[1])
    pooling = indices.args[0] if indices.target is operator.getitem and indices.args[1] == 1 else None
    if pooling is None or pooling.target is not aten.max_pool2d_with_indices.default or pooling.args[0] is not source:
        return None
    return next((user for user in pooling.users if user.target is operator.getitem and user.args[1] == 0), None)


def _cut(graph, node, pooled, result, threshold):
    gradient, source, *rest = pooled.args
    with graph.inserting_before(pooled):
        cut = graph.call_function(aten.threshold_backward.default, (gradient, result, threshold))
    cut.meta = {**node.meta, "val": gradient.meta["val"]}
    pooled.args = (cut, _of_the_same_shape(_attached(source)), *rest)
    node.replace_all_uses_with(pooled)
    graph.erase_node(node)


_NORMS = ("native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional")


def _of_the_same_shape(node):
    """The input of the norm in front of an activation, or the node itself."""
    norm = node.args[0] if node.target is aten.relu.default else None
    if norm is None or norm.target is not operator.getitem or norm.args[1] != 0:
        return node
    norm = norm.args[0]
    if not isinstance(norm.target, torch._ops.OpOverload) or norm.target._schema.name.split("::")[1] not in _NORMS:
        return node
    x, own = norm.args[0].meta["val"], node.meta["val"]
    alike = x.shape == own.shape and x.stride() == own.stride() and x.dtype == own.dtype
    return norm.args[0] if alike else node


# --- indices ---


def keep_indices_small(forward, backward, first_kept):
    """What a pooling says of where its largest elements stand is 64 bits an element; places in small images need 16."""

    def small(value, user):
        if not _are_small_indices(value) or [*user.users] != _pool_gradients(user):
            return None
        with forward.graph.inserting_after(value):
            kept = _converted(forward.graph, value, torch.int16)
        return kept, lambda: _converted(backward.graph, user, torch.int64)

    _kept_values.keep_instead(forward, backward, first_kept, small)


def _are_small_indices(value):
    is_part = value.target is operator.getitem and value.args[1] == 1
    if not is_part or value.args[0].target is not aten.max_pool2d_with_indices.default:
        return False
    sizes = value.args[0].args[0].meta["val"].shape[-2:]
    return all(isinstance(size, int) for size in sizes) and sizes[0] * sizes[1] <= 1 << 15


def _pool_gradients(value):
    """The users that take it for the indices of a pooling, which is all that those with a conversion in front may do."""
    return [node for node in value.users if node.target is aten.max_pool2d_with_indices_backward.default]


def _converted(graph, value, dtype):
    made = graph.call_function(aten._to_copy.default, (value,), {"dtype": dtype})
    made.meta = {**value.meta, "val": value.meta["val"].to(dtype)}
    return made
