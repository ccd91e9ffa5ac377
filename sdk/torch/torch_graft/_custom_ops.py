"""Gradients of the ops that plugins bring: torch.ops.VENDOR.name calls the op that the plugin names as its gradient.

The ops themselves, with their meta functions, are registered in C++ when their plugin is opened.
"""

import torch

from torch_graft._warning import warn

names = set()  # of those that are registered


def install(library):
    library.on_custom_ops(_register)


def _register(rows):
    for name, plugin, gradient, gradient_of in rows:
        names.add(name)
        try:
            formula = _Gradient(name, gradient, gradient_of) if gradient else _NoGradient(name, plugin)
            torch.library.register_autograd(name, formula.backward, setup_context=formula.setup_context)
        except (RuntimeError, AttributeError) as error:  # a keyword-only tensor; a gradient op that PyTorch refused
            if gradient:
                warn(f"{name} of the plugin {plugin} has no gradient in PyTorch: {error}")


class _NoGradient:
    def __init__(self, name, plugin):
        self.name, self.plugin = name, plugin

    def setup_context(self, ctx, inputs, output, keyword_only_inputs=None):
        pass

    def backward(self, ctx, *cotangents):
        raise NotImplementedError(
            f"{self.name} has no gradient: the plugin {self.plugin} names no gradient op for it; "
            "detach what it is given, or its result"
        )


class _Gradient:
    def __init__(self, name, gradient, gradient_of):
        self.name, self.gradient, self.gradient_of = name, _overload(gradient), gradient_of
        schema = _overload(name)._schema
        self.arguments = [argument.name for argument in schema.arguments]
        self.has_lists = any(_is_list_of_tensors(argument.type) for argument in schema.arguments)

    def setup_context(self, ctx, inputs, output, keyword_only_inputs=None):
        """Tensors are saved by PyTorch, which notices when they are changed; the rest is kept as it is."""
        outputs = output if isinstance(output, tuple) else (output,)
        ctx.results = [None if out is None else (out.shape, out.dtype, out.device) for out in outputs]
        ctx.keywords = keyword_only_inputs or {}
        tensors = []
        ctx.inputs = [_put_aside(value, tensors) for value in inputs]
        ctx.save_for_backward(*tensors)

    def backward(self, ctx, *cotangents):
        saved = ctx.saved_tensors
        inputs = [_take_back(value, saved) for value in ctx.inputs]
        given = [
            torch.zeros(like[0], dtype=like[1], device=like[2]) if cotangent is None and like else cotangent
            for cotangent, like in zip(cotangents, ctx.results)
        ]
        self._check_has_all(ctx.needs_input_grad)
        results = self.gradient(*given, *inputs, **ctx.keywords)
        results = results if isinstance(results, tuple) else (results,)
        # Of those that PyTorch was given: it leaves defaults out, and a list of tensors is for it one value each. What was
        # absent has no gradient, whatever the plugin computes.
        gradients = [
            self._of_list(value) if place < 0 else None if value is None else results[place]
            for place, value, _ in zip(self.gradient_of, inputs, ctx.needs_input_grad)
        ]
        return tuple(gradients)

    def _check_has_all(self, needs):
        for name, place, needed in zip(self.arguments, self.gradient_of, needs):
            if place < 0 and (any(needed) if isinstance(needed, (list, tuple)) else needed):
                raise NotImplementedError(f"{self.name}: its gradient {self.gradient} gives none for argument {name}")

    def _of_list(self, value):
        is_list = self.has_lists and isinstance(value, list) and all(isinstance(item, torch.Tensor) for item in value)
        return [None] * len(value) if is_list else None


class _Saved:
    """The place of a tensor among those that PyTorch saves."""

    def __init__(self, place):
        self.place = place


def _put_aside(value, tensors):
    if isinstance(value, (list, tuple)):
        return [_put_aside(item, tensors) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    tensors.append(value)
    return _Saved(len(tensors) - 1)


def _take_back(value, saved):
    if isinstance(value, list):
        return [_take_back(item, saved) for item in value]
    return saved[value.place] if isinstance(value, _Saved) else value


def _is_list_of_tensors(kind):
    kind = kind.getElementType() if isinstance(kind, torch._C.ListType) else None
    return isinstance(kind, (torch._C.TensorType, torch._C.OptionalType))


def _overload(name):
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
