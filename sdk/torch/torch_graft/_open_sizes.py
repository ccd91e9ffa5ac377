"""Nodes of an FX graph recorded once for all sizes: symbols of PyTorch become open sizes of libgraft (docs/graphs.md), what
is computed of them its formulas, and each node a call of libgraft's own op, which it follows to other sizes.

What can't be said so raises NotSayable, with the reason; the caller records a graph for each size then.
"""

import fractions
import operator

import sympy
import torch
from torch.fx.node import map_arg
from torch.utils import _pytree as pytree
from torch.utils._sympy import functions

from torch_graft import _device
from torch_graft._warning import first_line

aten = torch.ops.aten

_ADD, _MUL, _DIV, _MOD, _MIN, _MAX = 1, 3, 4, 5, 6, 7  # graft_size_op
_MOST = 2**63 - 1


class NotSayable(Exception):
    """Why there is no graph for all sizes."""


# --- sizes ---


def symbols_of(value):
    """The symbols of a fake tensor, a number, or several."""
    found = set()
    for leaf in pytree.tree_leaves(value):
        numbers = (*leaf.shape, *leaf.stride()) if _is_dense(leaf) else (leaf,)
        for number in numbers:
            if isinstance(number, torch.SymInt):
                found |= number.node.expr.free_symbols
    return found


def _is_dense(value):
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def places_of(fakes):
    """Where each symbol stands as it is among the dimensions of tensors: their number and the dimension."""
    places = {}
    for i, fake in enumerate(fakes):
        for d, size in enumerate(fake.shape if _is_dense(fake) else ()):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                places.setdefault(size.node.expr, (i, d))
    return places


class Sizes:
    """Symbols and formulas as names of a recording. `numbers`: those of symbols that are no dimension. `names`: of inputs;
    `ranges`: what sizes may be, as torch.export has it."""

    def __init__(self, recording, places, tensors, numbers, names=None, ranges=None):
        self.recording = recording
        self.known = {symbol: int(number) for symbol, number in numbers.items()}
        for symbol, (i, d) in places.items():
            least, most = _range_of((ranges or {}).get(symbol))
            name = f"{names[i]}.{d}" if names else str(symbol)
            self.known[symbol] = recording.size(name, tensors[i].shape[d], least, most)

    def number(self, value):
        return self.of(value.node.expr) if isinstance(value, torch.SymInt) else value

    def numbers(self, values):
        return [self.number(value) for value in values]

    def of(self, expression):
        if expression.is_Integer:
            return int(expression)
        if expression not in self.known:
            self.known[expression] = self._formula(expression)
        return self.known[expression]

    def _formula(self, expression):
        scaled = _scaled(expression)
        if scaled:
            size, factor = scaled
            return self._call(_DIV, self._call(_MUL, self.of(size), factor.numerator), factor.denominator)
        op = next((op for kind, op in _OPS.items() if isinstance(expression, kind)), None)
        if isinstance(expression, sympy.Pow) and expression.exp.is_Integer and expression.exp > 0:
            op, args = _MUL, [expression.base] * int(expression.exp)
        else:
            args = expression.args
        if op is None or len(args) < 2 or (op in (_DIV, _MOD) and len(args) != 2):
            raise NotSayable(f"the size {expression} is no sum, product, quotient, remainder, least or greatest of others")
        result, *rest = [self.of(arg) for arg in args]
        for each in rest:
            result = self._call(op, result, each)
        return result

    def _call(self, op, left, right):
        if not _is_plain(left, right):
            return self.recording.size_of(op, left, right)
        return _PLAIN[op](left, right)


_OPS = {sympy.Add: _ADD, sympy.Mul: _MUL, sympy.Pow: _MUL, functions.FloorDiv: _DIV, functions.CleanDiv: _DIV,
        functions.Mod: _MOD, functions.PythonMod: _MOD, sympy.Min: _MIN, sympy.Max: _MAX, functions.Min: _MIN,
        functions.Max: _MAX}  # fmt: skip
_PLAIN = {_ADD: operator.add, _MUL: operator.mul, _DIV: operator.floordiv, _MOD: operator.mod, _MIN: min, _MAX: max}


def _scaled(expression):
    """A size and a factor, of their product rounded down; None where it is no such product, or where floating point
    may round it to another number than whole numbers give. A factor of few bits is exact: 1.5 is, 0.7 is not."""
    if not isinstance(expression, (functions.TruncToInt, functions.FloorToInt)):
        return None
    number, product = expression.args[0].as_coeff_Mul()
    if not isinstance(product, functions.ToFloat) or not number.is_Float:
        return None
    size, factor = product.args[0], fractions.Fraction(float(number))
    is_exact = 0 < factor.numerator < 2**20 and factor.denominator < 2**20
    return (size, factor) if is_exact and size.is_nonnegative else None


def _is_plain(*numbers):
    """Names are numbers near -2^62."""
    return all(number > -(2**61) for number in numbers)


def _range_of(found):
    if found is None:
        return 0, _MOST
    return max(int(found.lower), 0), int(found.upper) if found.upper.is_Integer else _MOST


def lies_so(value, strides):
    rows = zip(value.sizes, value.strides, strides)
    return 0 in value.sizes or all(size <= 1 or own == stride for size, own, stride in rows)


def value_at(value, known):
    """What a number is where symbols are these."""
    if not isinstance(value, torch.types.py_sym_types):
        return value
    kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(value)]
    return kind(value.node.expr.xreplace({symbol: sympy.Integer(number) for symbol, number in known.items()}))


# --- nodes ---


class _Computed:
    """A number that is none of libgraft's sizes. The program may give it; no call can take it."""

    def __init__(self, node):
        self.name = node.name


def _name_of(overload):
    """As libgraft has it: "aten::add.Tensor"."""
    schema = overload._schema
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name


class Recorder:
    """Nodes as calls. `values` has what stands for nodes: values of the recording, numbers, or tensors that are constants."""

    def __init__(self, recording, sizes, values):
        self.recording, self.sizes, self.values = recording, sizes, values
        self.constants = {}

    def record(self, node):
        fake = node.meta.get("val")
        if isinstance(fake, (int, torch.SymInt)) and not isinstance(fake, bool):
            self.values[node] = self.sizes.number(fake)
        elif node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
        elif isinstance(fake, (bool, float)):
            self.values[node] = fake
        elif isinstance(fake, (torch.SymFloat, torch.SymBool)):
            self.values[node] = _Computed(node)
        else:
            self.values[node] = self._op(node, fake)

    def _op(self, node, fake):
        if not isinstance(node.target, torch._ops.OpOverload):
            raise NotSayable(f"{node.name} calls {node.target}, which is no op")
        args = map_arg(node.args, self.values.__getitem__)
        kwargs = map_arg(node.kwargs, self.values.__getitem__)
        computed = next((leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, _Computed)), None)
        if computed:
            raise NotSayable(f"{node.name} takes {computed.name}, a number with a fraction, or a truth, made of sizes")
        if node.target in _REWRITES:
            return _REWRITES[node.target](self, fake, *args, **kwargs)
        count = len(fake) if isinstance(fake, (list, tuple)) else 1
        results = self.call(_name_of(node.target), node.target._schema, args, kwargs, count)
        return results if isinstance(fake, (list, tuple)) else results[0]

    def call(self, name, schema, args, kwargs, count=1, given=None):
        kinds, values, tensors = "", [], []
        for i, argument in enumerate(schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
            kind = _kind_of(name, argument, value)
            if kind in "TL":
                value = self._place(kind, value, tensors)
            kinds += kind
            values.append(list(value) if kind in "IFm" and value is not None else value)
        kinds = kinds.rstrip("-")
        try:
            return self.recording.call(name, kinds, values[: len(kinds)], tensors, given or [None] * count)
        except Exception as error:
            raise NotSayable(first_line(error).removeprefix("graft: ")) from None

    def _place(self, kind, value, tensors):
        if kind == "L" and value is not None:
            return [-1 if each is None else self._place("T", each, tensors) for each in value]
        if value is None:
            return None
        tensors.append(self._constant(value) if isinstance(value, torch.Tensor) else value)
        return len(tensors) - 1

    def _constant(self, tensor):
        if id(tensor) not in self.constants:
            self.constants[id(tensor)] = _device.library().OpenValue(tensor.detach()), tensor
        return self.constants[id(tensor)][0]

    def input(self, node, name, tensor):
        fake = node.meta["val"]
        strides = [] if fake.is_contiguous() else self.sizes.numbers(fake.stride())
        self.values[node] = self.recording.input(name, tensor, self.sizes.numbers(fake.shape), strides)

    def made_dense(self, node, value, strides):
        """As the rest of the program was told that it lies."""
        dense = [1] * len(strides)
        for i in range(len(strides) - 2, -1, -1):
            dense[i] = dense[i + 1] * max(value.sizes[i + 1], 1)
        if strides != dense:
            raise NotSayable(f"{node.name} has strides {value.strides}, and the program was told {strides}")
        return self.op(aten.clone.default, value, memory_format=torch.contiguous_format)

    def op(self, overload, *args, **kwargs):
        return self.call(_name_of(overload), overload._schema, args, kwargs)[0]

    def write(self, to, value):
        return self.call("aten::copy", aten.copy.default._schema, (to, value), {}, given=[to])[0]

    def dims(self, value):
        return list(value.shape if isinstance(value, torch.Tensor) else value.sizes)


_KINDS = {"Tensor": "T", "List[Tensor]": "L", "List[Optional[Tensor]]": "L", "int": "i", "SymInt": "i", "float": "f",
          "bool": "b", "number": "s", "List[int]": "I", "List[SymInt]": "I", "List[float]": "F", "List[bool]": "m",
          "str": "z", "ScalarType": "d", "MemoryFormat": "M", "Device": "V", "Layout": "-", "Generator": "-"}  # fmt: skip


def _kind_of(name, argument, value):
    text = str(argument.real_type)
    if text.startswith("Optional["):
        text = text[len("Optional[") : -1]
    kind = _KINDS.get(text)
    if argument.name == "pin_memory" or (value is None and kind not in ("T", "L")):
        return "-"
    if kind is None:
        raise NotSayable(f"{name} takes a {text}")
    if kind == "T" and isinstance(value, (bool, int, float, complex)):
        return "s"
    return kind


# --- ops that libgraft has by another name ---


def _permuted(recorder, value, first, second):
    dims = list(range(len(recorder.dims(value))))
    if dims:
        dims[first], dims[second] = dims[second], dims[first]
    return recorder.op(aten.permute.default, value, dims)


def _t(recorder, fake, value):
    return _permuted(recorder, value, 0, -1) if len(recorder.dims(value)) == 2 else recorder.op(aten.alias.default, value)


def _full(recorder, fake, sizes, number):
    return recorder.op(aten.full.default, sizes, number, dtype=fake.dtype, device=fake.device)


def _full_like(recorder, fake, value, number, memory_format=None, **_):
    return recorder.op(aten.full_like.default, value, number, dtype=fake.dtype, device=fake.device,
                       memory_format=memory_format)  # fmt: skip


def _range(recorder, fake, start, end, step=1, **_):
    return recorder.op(aten.arange.start_step, start, end, step, dtype=fake.dtype, device=fake.device)


def _split(recorder, fake, value, size, dim=0):
    # A last one that is shorter ends where the tensor does.
    sizes = [recorder.sizes.number(piece.shape[dim]) for piece in fake]
    return recorder.call("aten::split_with_sizes", aten.split_with_sizes.default._schema, (value, sizes, dim), {}, len(fake))


def _unbind(recorder, fake, value, dim=0):
    return [recorder.op(aten.select.int, value, dim, i) for i in range(len(fake))]


def _batch_norm(recorder, fake, value, weight, bias, mean, var, training, momentum, eps):
    """With new statistics, where libgraft's writes them."""
    mean, var = recorder.op(aten.clone.default, mean), recorder.op(aten.clone.default, var)
    results = recorder.call("aten::_native_batch_norm_legit", aten._native_batch_norm_legit.default._schema,
                            (value, weight, bias, mean, var, training, momentum, eps), {}, 3)  # fmt: skip
    return [*results, mean, var]


def _stack(recorder, fake, values, dim=0):
    return recorder.op(aten.cat.default, [recorder.op(aten.unsqueeze.default, value, dim) for value in values], dim)


def _resampled(op):
    """What takes sizes or factors, as the op that takes both."""

    def rewrite(recorder, fake, value, sizes, *rest):
        *corners, factors = rest  # align_corners, where there is one
        sizes = recorder.sizes.numbers(fake.shape[2:]) if sizes is None else sizes
        return recorder.op(op, value, sizes, *corners, *(factors or ()))

    return rewrite


RESAMPLED = {
    getattr(aten, name).vec: getattr(aten, name).default
    for name in ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
                 "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
                 "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "_upsample_bilinear2d_aa",
                 "_upsample_bicubic2d_aa")
}  # fmt: skip

_REWRITES = {
    aten.stack.default: _stack,
    **{vec: _resampled(op) for vec, op in RESAMPLED.items()},
    aten._native_batch_norm_legit_functional.default: _batch_norm,
    aten.t.default: _t,
    aten.transpose.int: lambda recorder, fake, value, first, second: _permuted(recorder, value, first, second),
    aten._unsafe_view.default: lambda recorder, fake, value, sizes: recorder.op(aten.view.default, value, sizes),
    aten.reshape.default: lambda recorder, fake, value, sizes: recorder.op(aten.view.default, value, sizes),
    # Without the check of bounds, which a kernel makes anyway.
    aten._unsafe_index.Tensor: lambda recorder, fake, value, indices: recorder.op(aten.index.Tensor, value, indices),
    aten._unsafe_index_put.default: lambda recorder, fake, *args: recorder.op(aten.index_put.default, *args),
    aten.detach.default: lambda recorder, fake, value: recorder.op(aten.alias.default, value),
    aten.lift_fresh_copy.default: lambda recorder, fake, value: recorder.op(aten.clone.default, value),
    aten.zeros.default: lambda recorder, fake, sizes, **_: _full(recorder, fake, sizes, 0),
    aten.ones.default: lambda recorder, fake, sizes, **_: _full(recorder, fake, sizes, 1),
    aten.new_zeros.default: lambda recorder, fake, value, sizes, **_: _full(recorder, fake, sizes, 0),
    aten.new_ones.default: lambda recorder, fake, value, sizes, **_: _full(recorder, fake, sizes, 1),
    aten.new_full.default: lambda recorder, fake, value, sizes, number, **_: _full(recorder, fake, sizes, number),
    aten.scalar_tensor.default: lambda recorder, fake, number, **_: _full(recorder, fake, [], number),
    aten.zeros_like.default: lambda recorder, fake, value, **rest: _full_like(recorder, fake, value, 0, **rest),
    aten.ones_like.default: lambda recorder, fake, value, **rest: _full_like(recorder, fake, value, 1, **rest),
    aten.sum.default: lambda recorder, fake, value, **_: recorder.op(aten.sum.dim_IntList, value, None, dtype=fake.dtype),
    aten.arange.default: lambda recorder, fake, end, **_: _range(recorder, fake, 0, end),
    aten.arange.start: lambda recorder, fake, start, end, **_: _range(recorder, fake, start, end),
    aten.split.Tensor: _split,
    aten.unbind.int: _unbind,
    aten.copy_.default: lambda recorder, fake, to, value, non_blocking=False: recorder.write(to, value),
}
