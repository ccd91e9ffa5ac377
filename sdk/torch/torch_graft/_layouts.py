"""How values of an FX graph lie in memory, and as what they were traced."""

import torch


def is_view(node):
    """Whether it looks at the memory of what it takes, and so depends on how that lies."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return any(each.alias_info and not each.alias_info.is_write for each in node.target._schema.arguments)


def memory_of(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else None


def as_expected(node, value, memories):
    """A new tensor lies as the rest of the program was told that it does."""
    strides = strides_of(node.meta.get("val"), value.shape)
    if strides is None or memory_of(value) in memories or lies_so(value, strides):
        return value
    return torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)


def lies_so(value, strides):
    return value.numel() == 0 or all(
        size <= 1 or is_stride == stride for size, is_stride, stride in zip(value.shape, value.stride(), strides)
    )


def strides_of(fake, sizes):
    """The strides of a fake tensor, where its sizes are these; None where that is not known."""
    if not isinstance(fake, torch.Tensor) or fake.layout != torch.strided or fake.dim() != len(sizes):
        return None
    strides = [hint_of(stride) for stride in fake.stride()]
    if all(isinstance(number, int) for number in (*fake.shape, *fake.stride())):
        return strides
    fake_sizes = [hint_of(size) for size in fake.shape]
    if None in strides or None in fake_sizes:
        return None
    order = sorted(range(len(sizes)), key=lambda i: (strides[i], fake_sizes[i]))
    dense_here, dense_there, result = 1, 1, [0] * len(sizes)
    for i in order:
        if fake_sizes[i] > 1 and strides[i] != dense_there:
            return None
        result[i] = dense_here
        dense_here *= sizes[i]
        dense_there *= fake_sizes[i]
    return result


def hint_of(number):
    if isinstance(number, int):
        return number
    return number.node.hint if isinstance(number.node.hint, int) else None
