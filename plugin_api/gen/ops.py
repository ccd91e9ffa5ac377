"""Reads plugin_api/ops/*.ops and checks what one line can get wrong about another."""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import schema as schemas
from schema import DescriptionError

FAMILIES = frozenset(
    "pointwise reduction scan matmul convolution pooling normalization softmax attention embedding indexing scatter "
    "sorting shape factory random fft loss optimizer linalg quantized resample rnn sparse".split())
ROUTES = frozenset("slot host composite".split())
STRIDES = frozenset("contiguous pointwise like suggest view none".split())
LEVELS_BY_HAND = frozenset("012")
STRIDES_OF_ARGUMENT = frozenset({"like", "suggest"})

# Words that can't be the name of a member or a parameter in C or C++, or that a standard header defines as a macro.
RESERVED_WORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl complex concept const "
    "consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double "
    "dynamic_cast else enum explicit export extern false float for friend goto if imaginary inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq".split())


@dataclass(frozen=True)
class Table:
    name: str
    first_id: int
    last_id: int
    spaces: tuple  # the namespaces of its schemas; in graft:: is what PyTorch has no op of dense tensors for
    title: str
    words: str = ""

    @property
    def struct_name(self):
        return f"graft_{self.name}_ops"

    @property
    def source(self):
        return f"plugin_api/ops/{self.name}.ops"


TABLES = (
    Table("core", 1, 9999, ("aten",), "every aten overload that PyTorch 2.13 tags as core"),
    Table("prims", 10001, 19999, ("prims",), "every prims overload", """PyTorch freezes no prim, so Graft's own words hold:
          a prim that equals an aten op means what that op means with the operands' one dtype. A reduction without dims,
          or with an empty list of them, reduces all; without output_dtype it gives the aten op's dtype (sums and
          products of integers are i64)."""),
    Table("train", 20001, 29999, ("aten", "graft"), "what eager training and inference reach beyond core",
          """In graft:: are Graft's own ops. A matrix in CSR form has in row r the elements from crow_indices[r] to below
          crow_indices[r + 1], each in the column that col_indices says; columns come in any order and more than once, and
          elements before the first row or behind the last belong to no row. csr_mm is its product with dense [columns, n],
          of shape [rows, n]. csr_sampled_mm gives for each element the sum of products, without conjugation, of its row
          of left [rows, n] and the row of right [columns, n] that its column names; 0 for elements of no row.
          rnn_layer is all steps of one direction of a recurrent layer. input_gates [steps, batch, gates * size] has what
          the inputs and their bias add to each gate, side by side: input, forget, cell, output (lstm), reset, update,
          new (gru), or the one of tanh and relu. To it comes the state before the step, hx [batch, size] at first,
          times the transpose of weight [gates * size, size], and bias; reverse begins with the last step. output has
          the state after each step, hy and cy (lstm alone) those at the end. With train, reserve [steps, batch, n *
          size] keeps for the gradient the gates behind their nonlinearity and then the cell (lstm), or what the reset
          gate multiplies (gru). rnn_layer_backward gives the gradients of gates and first states; that of what comes
          from the state, grad_hidden_gates, is another than grad_input_gates for gru alone."""),
)


@dataclass(frozen=True)
class StrEnum:
    """The values of a str argument, numbered from 1 in their order."""
    prefix: str
    values: tuple


@dataclass(frozen=True)
class Equal:
    """The aten op that a prims op is, and for each of its arguments a prims argument's name or a constant."""
    target: str
    sources: tuple  # of ("argument", name) or ("constant", Python value)


@dataclass(frozen=True)
class Index:
    """What the elements of an index argument may be: from 0 to below the size of what they address."""
    argument: str
    of: str          # a tensor whose size it is, or an int argument that is the size, of a list the product
    dims: str = ""   # of the tensor: a dim, an int argument that names one, "*" (the item's own place), "-2:" (the last
                     # two together); empty: all its elements
    from_one: bool = False  # 0 is none, and the size itself is: elements are counted from 1
    ends: bool = False    # the size itself is an index, too: what is addressed lies between elements
    wraps: bool = False   # negative ones count from the end
    passes: str = ""      # one more value that is let through: a number, or an int argument
    asked: str = ""       # a bool argument: where it is false, they are not read


@dataclass(frozen=True)
class Op:
    table: Table
    id: int
    slot: int  # its place in the table, or None
    family: str
    route: str
    strides: str
    strides_argument: str
    schema: schemas.Schema
    mutates: tuple = ()
    optional: tuple = ()
    dynamic: tuple = ()
    novalue: tuple = ()
    index: tuple = ()  # of Index
    random: bool = False
    kernel: str = ""
    equal: Equal = None
    strings: dict = field(default_factory=dict, hash=False)  # argument name -> StrEnum
    prepared: str = ""  # what the host has done with the arguments; see prepared.tsv
    c_name: str = ""
    early: int = None  # which of the levels below the tables' own it belongs to

    @property
    def level(self):
        """How early a backend wants it: README.md of plugin_api/ops lists the levels."""
        if self.early is not None:
            return self.early
        return 3 if self.table.name == "core" else 4

    @property
    def has_slot(self):
        """Whether the ABI has a slot for it. It keeps one whatever becomes of its route."""
        return self.slot is not None

    @property
    def slot_name(self):
        return safe_name(self.c_name.removeprefix("prims_") if self.table.name == "prims" else self.c_name)

    @property
    def args_struct(self):
        return f"graft_args_{self.c_name}"

    @property
    def enumerator(self):
        return f"GRAFT_OP_{self.c_name.upper()}"


def safe_name(name):
    return name + "_" if name in RESERVED_WORDS else name


def slots_of(table, ops):
    """The ops of a table that have a slot, in the order of the slots."""
    return sorted((op for op in ops if op.table is table and op.has_slot), key=lambda op: op.slot)


def load(folder):
    """All ops of all tables, in the order of their ids."""
    ops = []
    for table in TABLES:
        path = Path(folder) / f"{table.name}.ops"
        ops.extend(parse_table(table, path.read_text(encoding="utf-8")))
    check_all(ops)
    return with_prepared(ops, (Path(folder) / "prepared.tsv").read_text(encoding="utf-8"))


def with_prepared(ops, text):
    """The ops with what prepared.tsv says of them: on each line an id, a tab, and words."""
    said = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("#"):
            id_text, _, words = line.partition("\t")
            if not any(str(op.id) == id_text and op.has_slot for op in ops) or id_text in said:
                raise DescriptionError(f"plugin_api/ops/prepared.tsv:{number}: {id_text} is no id of an op with a slot, "
                                       "or comes twice")
            said[id_text] = words
    return [replace(op, prepared=said.get(str(op.id), "")) for op in ops]


def parse_table(table, text):
    ops = []
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#"):
            try:
                ops.append(parse_line(table, line))
            except DescriptionError as error:
                raise DescriptionError(f"{table.source}:{number}: {error}") from None
    for before, after in zip(ops, ops[1:]):
        if after.id <= before.id:
            raise DescriptionError(f"{table.source}: id {after.id} follows {before.id}; ids are never reused, nor "
                                   "reordered")
    _check_slots(table, ops)
    return ops


def _check_slots(table, ops):
    """Slots are numbered from 0 without a gap, and no op that is called through one lacks its number."""
    placed = slots_of(table, ops)
    for number, op in enumerate(placed):
        if op.slot != number:
            raise DescriptionError(f"{table.source}: {op.schema.qualified_name} has slot {op.slot} where slot {number} "
                                   "is next; slots are appended, and none is left out, shared or taken away")
    for op in ops:
        if op.route == "slot" and not op.has_slot:
            raise DescriptionError(f"{table.source}: {op.schema.qualified_name} has the route slot and no slot number; "
                                   f"the next one is {len(placed)}")


def parse_line(table, line):
    columns = line.split("\t")
    if len(columns) != 7:
        raise DescriptionError(f"{len(columns)} columns where 7 are expected")
    id_text, slot_text, family, route, strides, notes, schema_text = columns
    schema = schemas.parse(schema_text)
    if schema.space not in table.spaces:
        raise DescriptionError(f"{schema.qualified_name} does not belong to this table")
    kind, _, strides_argument = strides.partition(":")
    op = Op(
        table=table,
        id=_parse_id(id_text, table),
        slot=_parse_slot(slot_text),
        family=_one_of(family, FAMILIES, "family"),
        route=_one_of(route, ROUTES, "route"),
        strides=_one_of(kind, STRIDES, "strides"),
        strides_argument=strides_argument,
        schema=schema,
        **_parse_notes(notes, schema),
    )
    _check_line(op)
    return op


def _parse_id(text, table):
    if not re.fullmatch(r"[1-9]\d*", text) or not table.first_id <= int(text) <= table.last_id:
        raise DescriptionError(f"id {text} is not in {table.first_id}..{table.last_id}")
    return int(text)


def _parse_slot(text):
    if not re.fullmatch(r"-|0|[1-9]\d*", text):
        raise DescriptionError(f"slot {text} is neither a number nor -")
    return None if text == "-" else int(text)


def _one_of(word, words, what):
    if word not in words:
        raise DescriptionError(f"unknown {what}: {word}")
    return word


def default_c_name(schema):
    name = schema.name.lstrip("_") + (f"_{schema.overload}" if schema.overload else "")
    return f"prims_{name}" if schema.space == "prims" else name


def _parse_notes(text, schema):
    notes = {"c_name": default_c_name(schema), "strings": {}}
    for note in text.split(";") if text != "-" else ():
        word, has_value, value = note.partition("=")
        if word.startswith("str:") and has_value:
            _, argument, *prefix = word.split(":")
            values = tuple(value.split("|"))
            notes["strings"][argument] = StrEnum((prefix[0] if prefix else argument).upper(), values)
        elif word in ("mutates", "dynamic", "novalue", "optional") and has_value:
            notes[word] = tuple(value.split(","))
        elif word == "index" and has_value:
            notes[word] = tuple(_parse_index(item) for item in value.split(","))
        elif word in ("kernel", "c_name") and has_value:
            notes[word] = value
        elif word == "equal" and has_value:
            notes[word] = _parse_equal(value, schema)
        elif note == "random":
            notes[word] = True
        elif word == "level" and value in LEVELS_BY_HAND:
            notes["early"] = int(value)
        else:
            raise DescriptionError(f"unknown note: {note}")
    return notes


def _parse_index(text):
    match = re.fullmatch(r"(0<)?(\w+)<(=?)(\w+)(?:\[([\w*:-]+)\])?(~?)(?:\|(-?\w+))?(?:\?(\w+))?", text)
    if not match:
        raise DescriptionError(f"index is not ARG<SIZE: {text}")
    from_one, argument, ends, of, dims, wraps, passes, asked = match.groups()
    if from_one and not ends:
        raise DescriptionError(f"what is counted from 1 goes up to the size, 0<ARG<=SIZE: {text}")
    return Index(argument, of, dims or "", bool(from_one), bool(ends), bool(wraps), passes or "", asked or "")


def _parse_equal(text, schema):
    match = re.fullmatch(r"(aten::\w+(?:\.\w+)?)\((.*)\)", text)
    if not match:
        raise DescriptionError(f"equal is not a call of an aten op: {text}")
    return Equal(match[1], tuple(_parse_source(word, schema) for word in match[2].split(",") if word))


def _parse_source(word, schema):
    constants = {"None": None, "True": True, "False": False}
    if word in constants:
        return "constant", constants[word]
    if re.fullmatch(r"-?\d+", word):
        return "constant", int(word)
    if schema.argument_index(word) is None:
        raise DescriptionError(f"equal names {word}, which is no argument of {schema.qualified_name}")
    return "argument", word


def _check_index(index, arguments, op):
    is_number = re.compile(r"-?\d+:?").fullmatch
    named = [index.argument, index.of]
    named += [word for word in (index.dims, index.passes, index.asked) if word and word != "*" and not is_number(word)]
    for name in named:
        if name not in arguments:
            raise DescriptionError(f"index names {name}, which is no argument of {op.schema.qualified_name}")
    if index.dims and arguments[index.of].kind != schemas.TENSOR:
        raise DescriptionError(f"index speaks of a dim of {index.of}, which is no tensor")


def _check_line(op):
    arguments = {a.name: a for a in op.schema.arguments}
    results = {r.name for r in op.schema.returns}
    if bool(op.strides_argument) != (op.strides in STRIDES_OF_ARGUMENT):
        raise DescriptionError(f"strides {op.strides}:{op.strides_argument}: like and suggest, and they alone, name an "
                               "argument")
    for name in (op.strides_argument, *op.mutates, *op.optional, *op.strings):
        if name and name not in arguments:
            raise DescriptionError(f"{name} is no argument of {op.schema.qualified_name}")
    for index in op.index:
        _check_index(index, arguments, op)
    for name in (*op.dynamic, *op.novalue):
        if name not in results:
            raise DescriptionError(f"{name} is no result of {op.schema.qualified_name}")
    for argument in op.schema.arguments:
        if (argument.kind == schemas.STR) != (argument.name in op.strings):
            raise DescriptionError(f"{argument.name}: a str argument, and no other, needs a note str:"
                                   f"{argument.name}=...")
    if re.search(r"__|^_", op.c_name):
        raise DescriptionError(f"{op.c_name} is a reserved name in C++; give one with c_name=")


def check_all(ops):
    _refuse_twice(ops, lambda op: op.id, "id")
    _refuse_twice(ops, lambda op: op.schema.qualified_name, "overload")
    _refuse_twice(ops, lambda op: op.c_name.lower(), "C name")
    str_enums(ops)
    by_name = {op.schema.qualified_name: op for op in ops}
    for op in ops:
        if op.equal:
            _check_equal(op, by_name)


def _refuse_twice(ops, key, what):
    seen = {}
    for op in ops:
        other = seen.setdefault(key(op), op)
        if other is not op:
            raise DescriptionError(f"{what} {key(op)} twice: {other.schema.qualified_name} and "
                                   f"{op.schema.qualified_name}")


def str_enums(ops):
    """Prefix -> values, over all ops, in order of the prefix."""
    enums = {}
    for op in ops:
        for enum in op.strings.values():
            if enums.setdefault(enum.prefix, enum.values) != enum.values:
                raise DescriptionError(f"{op.schema.qualified_name}: GRAFT_STR_{enum.prefix}_* has other values "
                                       "elsewhere; give it a name of its own with str:ARGUMENT:NAME=...")
    return dict(sorted(enums.items()))


# A prims argument may stand for an aten argument of another kind where each of its values has one meaning there.
_CONVERSIONS = {(schemas.FLOAT, schemas.SCALAR), (schemas.SCALAR, schemas.FLOAT), (schemas.INT, schemas.SCALAR)}
_CONSTANT_KINDS = {bool: {schemas.BOOL, schemas.FLAG}, int: {schemas.INT, schemas.SCALAR}}


def _check_equal(op, by_name):
    name, target = op.schema.qualified_name, by_name.get(op.equal.target)
    if target is None:
        raise DescriptionError(f"{name} equals {op.equal.target}, which is in no table")
    arguments = target.schema.arguments
    if len(op.equal.sources) > len(arguments):
        raise DescriptionError(f"{name}: more arguments than {op.equal.target} takes")
    if len(op.schema.returns) != len(target.schema.returns):
        raise DescriptionError(f"{name}: another number of results than {op.equal.target}")
    for argument, (source, value) in zip(arguments, op.equal.sources):
        _check_source(op, argument, source, value)
    for argument in arguments[len(op.equal.sources):]:
        if not argument.has_default:
            raise DescriptionError(f"{name}: {op.equal.target} needs an argument {argument.name}")


def _check_source(op, argument, source, value):
    if source == "argument":
        given = op.schema.arguments[op.schema.argument_index(value)]
        fits = given.kind == argument.kind or (given.kind, argument.kind) in _CONVERSIONS
    else:
        fits = argument.optional if value is None else argument.kind in _CONSTANT_KINDS[type(value)]
    if not fits:
        raise DescriptionError(f"{op.schema.qualified_name}: {value} does not fit {argument.name} of {op.equal.target}")
