"""The layout of an op's args struct: members in the order of the schema, every byte of padding spelled out.

The ABI is for 64-bit little-endian targets only, so sizes and offsets are known here and can be asserted in C.
"""

from dataclasses import dataclass

import schema as schemas
from ops import safe_name
from schema import DescriptionError

HEAD_BYTES = 16
POINTER = 8

# kind -> (C type, bytes, alignment); a str is the value of an enum, a dtype is 0 where it is absent.
_FIELD_TYPES = {
    schemas.TENSOR: ("const graft_tensor_desc *", POINTER, 8),
    schemas.TENSORS: ("graft_tensor_list ", 16, 8),
    schemas.INT: ("int64_t ", 8, 8),
    schemas.FLOAT: ("double ", 8, 8),
    schemas.BOOL: ("uint8_t ", 1, 1),
    schemas.SCALAR: ("const graft_scalar *", POINTER, 8),
    schemas.INTS: ("graft_int_list ", 16, 8),
    schemas.FLOATS: ("graft_f64_list ", 16, 8),
    schemas.SCALARS: ("graft_scalar_list ", 16, 8),
    schemas.MASK: ("uint8_t ", 1, 1),
    schemas.STR: ("uint32_t ", 4, 4),
    schemas.DTYPE: ("graft_dtype ", 4, 4),
    schemas.GENERATOR: ("const graft_philox *", POINTER, 8),
}
# A number that may be absent is a pointer.
_OPTIONAL_TYPES = {
    schemas.INT: ("const int64_t *", POINTER, 8),
    schemas.FLOAT: ("const double *", POINTER, 8),
    schemas.BOOL: ("const uint8_t *", POINTER, 8),
}
_RESULT_TYPES = {
    schemas.TENSOR: ("const graft_tensor_desc *", POINTER, 8),
    schemas.TENSORS: ("graft_tensor_list ", 16, 8),
    schemas.INT: ("int64_t *", POINTER, 8),
    schemas.BOOL: ("uint8_t *", POINTER, 8),
}
_DYNAMIC_TYPE = ("graft_output *", POINTER, 8)


@dataclass(frozen=True)
class Field:
    name: str
    type: str  # ends where the name begins
    bytes: int  # of one item
    alignment: int
    offset: int = 0
    items: int = 0  # 0: no array
    reserved: bool = False

    @property
    def declaration(self):
        return f"{self.type}{self.name}" + (f"[{self.items}]" if self.items else "")

    @property
    def total_bytes(self):
        return self.bytes * max(self.items, 1)


@dataclass(frozen=True)
class Layout:
    fields: tuple  # without the head
    bytes: int
    arguments: tuple  # for each argument of the schema its field's name, or None
    results: tuple  # for each result its field's name
    philox: str  # the name of the field, or ""

    def offset(self, name):
        return next(f.offset for f in self.fields if f.name == name)


def argument_names(op):
    """A C name for each argument."""
    return tuple("philox" if a.kind == schemas.GENERATOR else safe_name(a.name) for a in op.schema.arguments)


def result_names(op, argument_names):
    """A C name for each result that differs from those of the arguments."""
    taken = set(argument_names)
    return tuple(f"{r.name}_out" if safe_name(r.name) in taken else safe_name(r.name) for r in op.schema.returns)


def of(op):
    """The layout of an op that has a slot."""
    names = argument_names(op)
    fields, arguments, results = [], [], []
    for name, argument in zip(names, op.schema.arguments):
        arguments.append(None if argument.dropped else name)
        if not argument.dropped:
            fields.append(_argument_field(name, argument))
    philox = "philox" if op.random else next((n for n, a in zip(names, op.schema.arguments)
                                              if a.kind == schemas.GENERATOR), "")
    if philox and philox not in arguments:
        fields.append(Field(philox, *_FIELD_TYPES[schemas.GENERATOR]))
    for name, result in zip(result_names(op, names), op.schema.returns):
        if result.mutated:
            # The result is a mutated argument: that argument's descriptor says where to write.
            results.append(names[_mutated_argument(op, result)])
        else:
            results.append(name)
            fields.append(_result_field(op, name, result))
    _refuse_clashes(op, fields)
    placed, total = _place(fields)
    return Layout(placed, total, tuple(arguments), tuple(results), philox)


def _argument_field(name, argument):
    types = _OPTIONAL_TYPES if argument.optional and argument.kind in _OPTIONAL_TYPES else _FIELD_TYPES
    return Field(name, *types[argument.kind], items=argument.length if argument.kind == schemas.MASK else 0)


def _result_field(op, name, result):
    if result.name in op.dynamic:
        return Field(name, *_DYNAMIC_TYPE)
    if result.kind not in _RESULT_TYPES:
        raise DescriptionError(f"{op.schema.qualified_name}: a slot can't return {result.kind}")
    return Field(name, *_RESULT_TYPES[result.kind])


def _mutated_argument(op, result):
    return next(i for i, a in enumerate(op.schema.arguments) if a.mutated and a.alias == result.alias)


def _refuse_clashes(op, fields):
    names = [f.name for f in fields]
    for name in names:
        if names.count(name) > 1 or name == "head" or name.startswith("reserved_"):
            raise DescriptionError(f"{op.schema.qualified_name}: {name} can't be a member here: it is one already, or "
                                   "head or reserved_*")


def _place(fields):
    placed, offset = [], HEAD_BYTES

    def pad(alignment):
        nonlocal offset
        gap = -offset % alignment
        if gap:
            number = sum(f.reserved for f in placed)
            placed.append(Field(f"reserved_{number}", "uint8_t ", 1, 1, offset, gap, reserved=True))
            offset += gap

    for item in fields:
        pad(item.alignment)
        placed.append(Field(**{**vars(item), "offset": offset}))
        offset += item.total_bytes
    pad(8)
    return tuple(placed), offset
