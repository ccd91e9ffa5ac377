"""Parses op schemas as PyTorch prints them: aten::add.Tensor(Tensor self, *, Scalar alpha=1) -> Tensor."""

import ast
import re
from dataclasses import dataclass


class DescriptionError(Exception):
    """A description that the generator refuses. The message says where and why."""


# The kinds of an argument or a result, named as in the host's op tables (OPK_*).
TENSOR, TENSORS = "TENSOR", "TENSORS"
INT, FLOAT, BOOL, SCALAR = "INT", "FLOAT", "BOOL", "SCALAR"
INTS, FLOATS, SCALARS, MASK = "INTS", "FLOATS", "SCALARS", "MASK"
STR, DTYPE, GENERATOR = "STR", "DTYPE", "GENERATOR"
DEVICE, LAYOUT, MEMORY_FORMAT, FLAG = "DEVICE", "LAYOUT", "MEMORY_FORMAT", "FLAG"

# What the host alone decides; it never reaches a slot.
DROPPED_KINDS = frozenset({DEVICE, LAYOUT, MEMORY_FORMAT, FLAG})
# Booleans about allocation, autograd and waiting: the host's business too.
FLAG_NAMES = frozenset({"pin_memory", "non_blocking", "requires_grad"})

_ELEMENT_KINDS = {
    "Tensor": TENSOR,
    "int": INT,
    "SymInt": INT,
    "float": FLOAT,
    "bool": BOOL,
    "Scalar": SCALAR,
    "str": STR,
    "ScalarType": DTYPE,
    "Generator": GENERATOR,
    "Device": DEVICE,
    "Layout": LAYOUT,
    "MemoryFormat": MEMORY_FORMAT,
}
_LIST_KINDS = {TENSOR: TENSORS, INT: INTS, FLOAT: FLOATS, SCALAR: SCALARS, BOOL: MASK}
_RETURN_KINDS = {"Tensor": TENSOR, "Tensor[]": TENSORS, "SymInt": INT, "int": INT, "bool": BOOL, "SymBool": BOOL,
                 "Scalar": SCALAR}

_SCHEMA = re.compile(r"(?P<space>aten|graft|prims)::(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<args>.*)\) -> (?P<rets>.*)")
_TYPE = re.compile(r"(?P<base>[A-Za-z]+)(?P<alias>\([a-z]!?(?: -> \*)?\))?(?P<item_optional>\?(?=\[))?"
                   r"(?P<list>\[(?P<length>\d*)\])?(?P<optional>\?)?")


@dataclass(frozen=True)
class Argument:
    name: str
    kind: str
    length: int = 0  # N of int[N] and bool[N], else 0
    optional: bool = False
    optional_items: bool = False  # Tensor?[]
    keyword_only: bool = False
    alias: str = ""  # the letter of an alias annotation
    mutated: bool = False
    has_default: bool = False
    default: object = None  # a Python value; None also where there is no default

    @property
    def dropped(self):
        return self.kind in DROPPED_KINDS


@dataclass(frozen=True)
class Return:
    name: str  # "out" or "out0", "out1", ... where the schema names none
    kind: str
    alias: str = ""
    mutated: bool = False


@dataclass(frozen=True)
class Schema:
    text: str
    space: str
    name: str
    overload: str
    arguments: tuple
    returns: tuple

    @property
    def qualified_name(self):
        suffix = f".{self.overload}" if self.overload else ""
        return f"{self.space}::{self.name}{suffix}"

    def argument_index(self, name):
        return next((i for i, a in enumerate(self.arguments) if a.name == name), None)


def parse(text):
    match = _SCHEMA.fullmatch(text)
    if not match:
        raise DescriptionError(f"not a schema: {text}")
    try:
        arguments = _parse_arguments(match["args"])
        returns = _parse_returns(match["rets"], arguments)
    except DescriptionError as error:
        raise DescriptionError(f"{error} in {text}") from None
    return Schema(text, match["space"], match["name"], match["overload"] or "", arguments, returns)


def _parse_arguments(text):
    arguments, keyword_only = [], False
    for part in _split_commas(text):
        if part == "*":
            keyword_only = True
        else:
            arguments.append(_parse_argument(part, keyword_only))
    names = [a.name for a in arguments]
    if len(set(names)) != len(names):
        raise DescriptionError("an argument name twice")
    return tuple(arguments)


def _parse_argument(text, keyword_only):
    declaration, has_default, default_text = text.partition("=")
    type_text, _, name = declaration.rpartition(" ")
    kind, match = _kind_of(type_text, name)
    argument = Argument(
        name=name,
        kind=kind,
        length=int(match["length"] or 0),
        optional=bool(match["optional"]),
        optional_items=bool(match["item_optional"]),
        keyword_only=keyword_only,
        alias=_alias_letter(match["alias"]),
        mutated="!" in (match["alias"] or ""),
    )
    if not has_default:
        return argument
    return Argument(**{**vars(argument), "has_default": True, "default": _parse_default(default_text, argument)})


def _kind_of(type_text, name):
    match = _TYPE.fullmatch(type_text)
    kind = _ELEMENT_KINDS.get(match["base"]) if match else None
    if kind is None:
        raise DescriptionError(f"argument {name} has a type that is not mapped: {type_text}")
    if match["list"]:
        kind = _LIST_KINDS.get(kind)
        fixed_mask = kind != MASK or (match["length"] and not match["optional"])
        optional_items = match["item_optional"] and kind != TENSORS
        optional_tensors = kind == TENSORS and match["optional"]
        if kind is None or not fixed_mask or optional_items or optional_tensors:
            raise DescriptionError(f"argument {name} has a type that is not mapped: {type_text}")
    if kind == BOOL and name in FLAG_NAMES:
        kind = FLAG
    return kind, match


def _alias_letter(annotation):
    return annotation[1] if annotation else ""


def _parse_default(text, argument):
    if text == "None":
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise DescriptionError(f"argument {argument.name} has a default that is not mapped: {text}") from None
    if argument.kind in (INTS, FLOATS) and not isinstance(value, list):
        if not argument.length:
            raise DescriptionError(f"argument {argument.name} has one number as the default of a list without length")
        value = [value] * argument.length
    return value


def _parse_returns(text, arguments):
    if text.startswith("(") and text.endswith(")"):
        parts = _split_commas(text[1:-1])
    else:
        parts = [text]
    written = {a.alias for a in arguments if a.mutated}
    returns = []
    for position, part in enumerate(parts):
        returns.append(_parse_return(part, "out" if len(parts) == 1 else f"out{position}", written))
    return tuple(returns)


def _parse_return(text, unnamed, written):
    match = re.fullmatch(r"(?P<base>[A-Za-z]+)(?P<alias>\([a-z]!?\))?(?P<list>\[\])?(?: (?P<name>\w+))?", text)
    kind = _RETURN_KINDS.get(match["base"] + (match["list"] or "")) if match else None
    if kind is None:
        raise DescriptionError(f"a result has a type that is not mapped: {text}")
    alias = _alias_letter(match["alias"])
    return Return(match["name"] or unnamed, kind, alias, mutated=alias in written)


def _split_commas(text):
    """Splits at the commas that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return parts + [last] if last else parts
