"""Which overloads of PyTorch run as an op of plugin_api/ops, and how their arguments and results stand to the op's.

A row's letters are explained at OpRow in csrc/bridge.h: letters that take the next argument of the overload, and signs
that stand for an argument which the overload has not (SIGNS)."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "plugin_api/gen"))

import ops as descriptions  # noqa: E402, F401
import schema as schemas  # noqa: E402
from schema import DescriptionError  # noqa: E402

LETTERS = {
    schemas.TENSOR: "T",
    schemas.TENSORS: "L",
    schemas.INT: "i",
    schemas.FLOAT: "f",
    schemas.BOOL: "b",
    schemas.SCALAR: "s",
    schemas.INTS: "I",
    schemas.FLOATS: "F",
    schemas.SCALARS: "S",
    schemas.MASK: "m",
    schemas.STR: "z",
    schemas.DTYPE: "d",
    schemas.GENERATOR: "g",
    schemas.MEMORY_FORMAT: "M",
    schemas.DEVICE: "V",
    schemas.LAYOUT: "-",
    schemas.FLAG: "-",
}
INDICES = "x"  # a list of indices and masks, one a dim
CHECKED = "e"  # whether the bridge is to raise for an info that is not 0
NUMBER = "n"  # a number where the op takes a tensor
DTYPE_OR_OUTS = "D"  # a dtype; where it is absent the out tensor's
OUT, KEPT_OUT = "o", "O"
ABSENT, ZERO, OUT_DTYPE, OUT_DEVICE, OUT_SIZES = "~", "0", "=", "@", "#"
SIGNS = {ABSENT, ZERO, OUT_DTYPE, OUT_DEVICE, OUT_SIZES}

# What an out form leaves to the tensor that it writes to.
_OF_OUT = {schemas.DTYPE: OUT_DTYPE, schemas.DEVICE: OUT_DEVICE, schemas.LAYOUT: ABSENT, schemas.FLAG: ABSENT,
           schemas.MEMORY_FORMAT: ABSENT}

# PyTorch fills these outputs as they are where they have as many elements as the result; others it resizes.
KEEP_SHAPE = {"arange.start_out", "linspace.out", "logspace.out"}

# The dtype of their outputs is what they compute in: inputs are cast to it, where others cast results.
COMPUTES_IN_OUT = {"sum.IntList_out", "prod.int_out", "nansum.out", "cumsum.out", "cumprod.out"}

# Overloads that are an op under another name: the op, and for some of its arguments what stands for them, a sign or the
# overload's own name of the argument. Where the op takes a tensor and the overload a number, the number is passed.
SAME_AS = {
    "_embedding_bag_forward_only": ("_embedding_bag", {}),
    "adaptive_avg_pool2d.out": ("_adaptive_avg_pool2d", {}),
    "adaptive_avg_pool3d.out": ("_adaptive_avg_pool3d", {}),
    "adaptive_avg_pool3d_backward.grad_input": ("_adaptive_avg_pool3d_backward", {}),
    "bucketize.Scalar": ("bucketize.Tensor", {}),
    "clamp_max": ("clamp", {"min": ABSENT}),
    "clamp_max_": ("clamp", {"min": ABSENT}),
    "clamp_max.out": ("clamp", {"min": ABSENT}),
    "clamp_max.Tensor": ("clamp.Tensor", {"min": ABSENT}),
    "clamp_max_.Tensor": ("clamp.Tensor", {"min": ABSENT}),
    "clamp_max.Tensor_out": ("clamp.Tensor", {"min": ABSENT}),
    "convolution_overrideable": ("convolution", {}),
    "convolution_backward_overrideable": ("convolution_backward", {"bias_sizes": ABSENT}),
    "index_fill.int_Scalar": ("index_fill.int_Tensor", {}),
    "index_fill_.int_Scalar": ("index_fill.int_Tensor", {}),
    "norm.dtype_out": ("linalg_vector_norm", {"ord": "p"}),
    "normal_": ("normal.float_float", {"size": OUT_SIZES}),
    "random_": ("random.from", {"from": ZERO, "to": ABSENT}),
    "random_.to": ("random.from", {"from": ZERO}),
    "remainder.Scalar_Tensor": ("remainder.Tensor", {}),
    "searchsorted.Scalar": ("searchsorted.Tensor", {}),
    "searchsorted.Scalar_out": ("searchsorted.Tensor", {}),
}

# Their composites end in _copy_from, which is written by hand.
COPIES = frozenset({"_to_copy", "clone", "copy"})

# A composite that PyTorch differentiates through has to stay one: a kernel of our own would lose its gradient. Not so
# these: autograd calls them with grad mode off alone (with grad mode on, a differentiable form), and PyTorch's CPU and
# CUDA backends have kernels for them, too. The composites are five launches each.
BACKWARD_ONLY = frozenset({"silu_backward", "mish_backward"})

# Nor these: where a backend has a kernel, as CUDA has, autograd differentiates it by a formula and asks for its backward op.
WITH_FORMULA = frozenset({"_fused_rms_norm"})

# Fills unlike fill_, which refuses a number beyond the range of the dtype: that becomes infinity here.
ITS_OWN_FILL = frozenset({"scalar_tensor"})

_ELEMENTWISE = frozenset({"pointwise", "factory", "random"})

# Overloads with a typed kernel (csrc/hot.h): what training and generating call most, by a census of real models, but
# nothing that runs over lists of parameters.
HOT = """
    add.Tensor add.out add_.Tensor addmm bmm cat convolution convolution_backward div.Tensor embedding eq.Scalar exp
    fill_.Scalar gelu gelu_backward index_select mean.dim mm mul.Tensor mul.out mul_.Tensor native_layer_norm
    native_layer_norm_backward neg pow.Tensor_Scalar relu rsqrt sigmoid silu silu_backward sub.Tensor sum.dim_IntList
    tanh threshold_backward where.self zero_ _log_softmax _softmax _softmax_backward_data
""".split()


@dataclass(frozen=True)
class Row:
    name: str
    op: object
    mutating: bool
    args: str
    outs: str  # of a mutating row

    @property
    def elementwise(self):
        """Whether the op does the same to each element of its tensors broadcast, so that they may have any shape in which
        their elements keep their order."""
        names = {argument.name for argument in self.op.schema.arguments}
        shaped_by_inputs = self.op.family == "pointwise" or self.op.strides in ("pointwise", "like")
        if self.op.family not in _ELEMENTWISE or names & {"dim", "reduction"}:
            return False
        return shaped_by_inputs or OUT_SIZES in self.args


def make(overloads, ops, hand_written):
    """Name -> Row."""
    rows = {}
    by_name = {op.schema.qualified_name.removeprefix("aten::"): op for op in ops if op.schema.space == "aten"}
    for name, op in by_name.items():
        if not op.has_slot or op.equal:  # an op that equals another is served as that one
            continue
        for form in overloads[name].related:
            _add(rows, overloads[form], op, {}, hand_written)
    for name, (target, stand_ins) in SAME_AS.items():
        _add(rows, overloads[name], by_name[target], stand_ins, hand_written)
    for name in HOT:
        if name not in rows or (SIGNS | {"-"}) & set(rows[name].args) or len(rows[name].outs) > 1:
            raise DescriptionError(f"{name} can't have a typed kernel: no row, or one that only the boxed path serves")
    return rows


def _add(rows, overload, op, stand_ins, hand_written):
    if overload.name in hand_written or not _is_wanted(overload, op):
        return
    row = _row(overload, op, stand_ins)
    if row is None and overload.composite:
        return
    if row is None:
        raise DescriptionError(f"{overload.text}: its results have no counterpart in {op.schema.text}")
    if overload.name in rows:
        raise DescriptionError(f"{overload.name} is both {rows[overload.name].op.c_name} and {op.c_name}")
    rows[overload.name] = row


def _is_wanted(overload, op):
    if overload.composite_implicit:
        return overload.name in BACKWARD_ONLY | WITH_FORMULA
    if overload.composite and op.schema.name in COPIES:
        return False
    if overload.name in ITS_OWN_FILL:
        return True
    # PyTorch's composites of these end in another row: in the functional form, or in empty and the op that fills it.
    return not (overload.composite and (overload.generated_out or _is_factory(op.schema)))


def _is_factory(schema):
    return any(a.kind == schemas.LAYOUT for a in schema.arguments)


def _row(overload, op, stand_ins):
    """None: the results are not the op's."""
    schema = schemas.parse(overload.text)
    args = _args(schema, op.schema, stand_ins)
    own = {a.name for a in op.schema.arguments if a.mutated}
    written = [a.name for a in schema.arguments if a.mutated and a.name not in own]
    if not written:
        return Row(overload.name, op, False, args, "") if _returns_alike(schema, op.schema) else None
    outs = _outs(schema, op.schema, written)
    return outs and Row(overload.name, op, True, args, outs)


def _args(schema, target, stand_ins):
    given, wanted, letters = list(schema.arguments), list(target.arguments), []
    signs = {name: sign for name, sign in stand_ins.items() if sign in SIGNS}
    wanted_name = {a.name: stand_ins.get(a.name, a.name) for a in wanted if a.name not in signs}
    names = set(wanted_name.values())
    while given or wanted:
        name = wanted_name.get(wanted[0].name) if wanted else None
        if given and given[0].name not in names:
            letters.append(_out_letter(given.pop(0), schema))
        elif given and given[0].name == name:
            letters.append(_letter(given.pop(0), wanted.pop(0), schema))
        elif wanted and name not in [a.name for a in given]:
            letters.append(_sign(wanted.pop(0), schema, signs))
        else:
            raise DescriptionError(f"{schema.text}: {name or given[0].name} stands elsewhere in {target.text}")
    return "".join(letters).rstrip(ABSENT)


def _out_letter(argument, schema):
    if not argument.mutated:
        raise DescriptionError(f"{schema.text}: the op has no argument {argument.name}")
    return KEPT_OUT if schema.qualified_name.removeprefix("aten::") in KEEP_SHAPE else OUT


def _letter(given, wanted, schema):
    number_as_tensor = given.kind == schemas.SCALAR and wanted.kind == schemas.TENSOR
    alike = given.kind == wanted.kind and given.length == wanted.length
    if not alike and not (number_as_tensor and schema.qualified_name.removeprefix("aten::") in SAME_AS):
        raise DescriptionError(f"{schema.text}: {given.name} is {given.kind} here and {wanted.kind} in the op")
    if wanted.optional_items:
        return INDICES
    if given.name == "check_errors":
        return CHECKED
    if given.kind == schemas.DTYPE and schema.qualified_name.removeprefix("aten::") in COMPUTES_IN_OUT:
        return DTYPE_OR_OUTS
    return LETTERS[given.kind] if alike else NUMBER


def _sign(wanted, schema, signs):
    if wanted.name in signs:
        return signs[wanted.name]
    has_out = any(a.mutated for a in schema.arguments)
    if not has_out or wanted.kind not in _OF_OUT:
        raise DescriptionError(f"{schema.text}: nothing stands for the op's argument {wanted.name}")
    return _OF_OUT[wanted.kind]


def _returns_alike(schema, target):
    """The bridge returns as many new tensors as the op has, or one list of them."""
    kinds = [r.kind for r in schema.returns]
    return kinds == [r.kind for r in target.returns] and (set(kinds) <= {schemas.TENSOR} or kinds == [schemas.TENSORS])


def _outs(schema, target, written):
    """Where each result of the op goes: "grads_out" to an argument grads that is written, else to the next new one."""
    position = {a.name: i for i, a in enumerate(schema.arguments)}
    of_op = {a.name for a in target.arguments}
    named = {f"{name}_out": name for name in written if name in of_op}
    fresh = [name for name in written if name not in of_op] or [name for name in written]
    outs = []
    for result in target.returns:
        if result.kind not in (schemas.TENSOR, schemas.TENSORS):
            return None
        name = named.get(result.name) or next((n for n in fresh if n not in outs), None)
        if name is None:
            return None
        outs.append(name)
    if set(outs) != set(written):
        return None
    return "".join(chr(ord("a") + position[name]) for name in outs)
