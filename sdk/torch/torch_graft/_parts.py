"""Gradients of the parts that a tensor was taken apart into, as q, k and v are.

Autograd gives the gradient of each part the size of the whole, with zeros around it, and adds these up: of three parts
that is the whole written five times and read four times. Where the parts are all of it, each is written to its place
instead, once. Zero is added to it, which is what is left of the sum: -0 becomes 0 there.
"""

import torch

aten = torch.ops.aten


def place(graph):
    """Rewrites the sums of an FX graph whose sizes are numbers."""
    sums = [(node, leaves) for node in graph.nodes if (leaves := _leaves(node)) and _are_all_of_it(node, leaves)]
    for node, leaves in sums:
        _rewrite(graph, node, leaves)


def _is_sum(node):
    return node.target is aten.add.Tensor and not node.kwargs and all(_is_node(value) for value in node.args)


def _is_node(value):
    return isinstance(value, torch.fx.Node)


def _leaves(node):
    """The gradients of parts that a sum consists of, if it does of nothing else, and is no part of such a sum itself."""
    if not _is_sum(node) or any(_is_sum(user) and _summands(user) for user in node.users):
        return None
    return _summands(node)


def _summands(node):
    found = []
    for value in node.args:
        if value.target is aten.select_backward.default and len(value.users) == 1:
            found.append(value)
        elif _is_sum(value) and len(value.users) == 1 and (inner := _summands(value)):
            found += inner
        else:
            return None
    return found


def _are_all_of_it(node, leaves):
    whole = node.meta.get("val")
    if not isinstance(whole, torch.Tensor) or not all(isinstance(size, int) for size in (*whole.shape, *whole.stride())):
        return False
    parts = [(leaf.args[0].meta.get("val"), leaf.args[2], leaf.args[3]) for leaf in leaves]
    if not all(isinstance(dim, int) and isinstance(index, int) for _, dim, index in parts):
        return False
    if not all(isinstance(part, torch.Tensor) and part.dtype == whole.dtype for part, _, _ in parts):
        return False
    dims = {dim % whole.dim() for _, dim, _ in parts}
    if len(dims) != 1 or whole.dtype.is_complex:
        return False
    size = whole.shape[dims.pop()]
    return sorted(index % size for _, _, index in parts if -size <= index < size) == list(range(size)) != []


# Views that only say in which order dimensions stand, and which of size 1 there are.
_TURNS = {
    aten.permute.default,
    aten.transpose.int,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
}


def _only_user(node):
    return next(iter(node.users)) if len(node.users) == 1 else None


def _copy_of(node):
    """The views that turn the sum, and the copy in order that is all that follows them: the parts can be written in that
    order."""
    views, user = [], _only_user(node)
    while user is not None and user.target in _TURNS:
        views.append(user)
        user = _only_user(user)
    is_copy = user is not None and user.target is aten.clone.default
    if not views or not is_copy or user.kwargs.get("memory_format") is not torch.contiguous_format:
        return [], None
    return views, user


def _turned(value, views):
    """What each of the views makes of the sum."""
    made = []
    for view in views:
        value = view.target(value, *view.args[1:])
        made.append(value)
    return made


def _strides_before(value, views):
    """Of the sum, so that it is contiguous behind the views."""
    plain = torch.empty(value.shape, device="meta")
    last = _turned(plain, views)[-1]
    wanted = torch.empty(last.shape, device="meta").stride()
    by_stride = {stride: want for size, stride, want in zip(last.shape, last.stride(), wanted) if size != 1}
    return [by_stride[stride] if size != 1 else 1 for size, stride in zip(plain.shape, plain.stride())]


def _rewrite(graph, node, leaves):
    value = node.meta["val"]
    views, copy = _copy_of(node) if value.numel() else ([], None)
    strides = _strides_before(value, views) if copy is not None else list(value.stride())
    if copy is not None:
        value = value.new_empty_strided(value.shape, strides)

    def call(target, args, kwargs, made):
        call = graph.call_function(target, args, kwargs)
        call.meta = {**node.meta, "val": made}
        return call

    with graph.inserting_before(node):
        options = {"dtype": value.dtype, "layout": value.layout, "device": value.device}
        whole = call(aten.empty_strided.default, (list(value.shape), strides), options, value)
        for leaf in leaves:
            gradient, _, dim, index = leaf.args
            made = value.select(dim, index)
            part = call(aten.select.int, (whole, dim, index), {}, made)
            call(aten.add.out, (gradient, 0), {"out": part}, made)
    node.replace_all_uses_with(whole)
    if copy is not None:
        for view, made in zip(views, _turned(value, views)):
            view.meta["val"] = made
        copy.replace_all_uses_with(views[-1])
        graph.erase_node(copy)
    _erase(graph, node)


def _erase(graph, node):
    values = [value for value in node.args if _is_node(value)]
    graph.erase_node(node)
    for value in values:
        if not value.users and (_is_sum(value) or value.target is aten.select_backward.default):
            _erase(graph, value)
