"""The host's tables: what an op's arguments, results, equivalents and properties are (sdk/ops/generated/schema.inc)."""

import layout
import schema as schemas
import text
from schema import DescriptionError

TABLE_IDS = 10000  # ids of core count from 1, of prims from 10001, of train from 20001

# PyTorch's numbers of the dtypes that schemas name as defaults.
_TORCH_DTYPES = {4: "GRAFT_I64", 6: "GRAFT_F32", 7: "GRAFT_F64", 11: "GRAFT_BOOL"}


class Values:
    """The static graft_values that stand for defaults and constants, each once."""

    def __init__(self):
        self._rows = []

    def pointer(self, kind, value):
        row = _value(kind, value)
        if row not in self._rows:
            self._rows.append(row)
        return f"&op_values[{self._rows.index(row)}]"

    def lines(self):
        rows = [f"  /* {index} */ {row}," for index, row in enumerate(self._rows)]
        return ["static const graft_value op_values[] = {"] + rows + ["};"]


def _value(kind, value):
    if kind == schemas.SCALAR:
        member = f".f = {value!r}" if isinstance(value, float) else f".i = {int(value)}"
        dtype = {float: "GRAFT_F64", int: "GRAFT_I64", bool: "GRAFT_BOOL"}[type(value)]
        return f"{{GRAFT_VALUE_SCALAR, 0, {{.scalar = {{{dtype}, 0, {{{member}}}}}}}}}"
    if kind == schemas.INTS:
        return f"{{GRAFT_VALUE_INTS, {len(value)}, {{.ints = {_array('int64_t', value)}}}}}"
    if kind == schemas.FLOATS:
        return f"{{GRAFT_VALUE_FLOATS, {len(value)}, {{.floats = {_array('double', value)}}}}}"
    if kind == schemas.STR:
        return f"{{GRAFT_VALUE_STR, 0, {{.str = {text.c_string(value)}}}}}"
    if kind == schemas.DTYPE:
        return f"{{GRAFT_VALUE_DTYPE, 0, {{.dtype = {_TORCH_DTYPES[value]}}}}}"
    if kind == schemas.MEMORY_FORMAT:
        # The host counts from 1, so that 0 can mean absent; PyTorch from 0.
        return f"{{GRAFT_VALUE_MEMORY_FORMAT, 0, {{.i = {value + 1}}}}}"
    if kind == schemas.FLOAT:
        return f"{{GRAFT_VALUE_FLOAT, 0, {{.f = {float(value)!r}}}}}"
    if kind in (schemas.INT, schemas.BOOL, schemas.FLAG):
        name = "INT" if kind == schemas.INT else "BOOL"
        return f"{{GRAFT_VALUE_{name}, 0, {{.i = {int(value)}}}}}"
    raise DescriptionError(f"a default of kind {kind} is not mapped")


def _array(item_type, values):
    # An empty list is present: its address is not NULL, though no item is read.
    return f"(const {item_type}[]){{{', '.join(repr(v) for v in values) or '0'}}}"


def schema_inc(ops):
    by_name = {op.schema.qualified_name: op for op in ops}
    slots = _slot_names(ops)
    values, strings, details, rows = Values(), {}, [], []
    for op in ops:
        placed = layout.of(op) if op.has_slot else None
        details += _argument_rows(op, placed, values, strings)
        details += _result_rows(op, placed)
        details += _equal_rows(op, by_name, values)
        rows += _schema_row(op, placed, slots)
    lines = text.banner(text.ALL_OPS, "Included by sdk/ops/core/schema.c, which has the types.")
    lines += ["/* clang-format off */", ""] + values.lines() + [""]
    lines += [f"static const char *const {name}[] = {{{', '.join(map(text.c_string, items))}, NULL}};"
              for items, name in strings.items()]
    lines += ["", *details, "", "/* In the order of the ids. */", "static const op_schema op_schemas[] = {", *rows]
    lines += ["};", "", f"#define OP_SCHEMA_COUNT {len(ops)}",
              "/* The row of the first id of each table; ids count from 1 without gaps, OP_TABLE_IDS apart. */",
              f"enum {{ OP_TABLE_IDS = {TABLE_IDS} }};",
              f"static const uint16_t op_first_rows[] = {{{', '.join(map(str, first_rows(ops)))}}};"]
    return lines + ["/* clang-format on */"]


def first_rows(ops):
    rows = []
    for row, op in enumerate(ops):
        if op.id // TABLE_IDS == len(rows):
            rows.append(row)
        if op.id != TABLE_IDS * (len(rows) - 1) + 1 + row - rows[-1]:
            raise DescriptionError(f"{op.schema.text}: id {op.id} leaves a gap or is out of order")
    return rows


def _slot_names(ops):
    return {op.id: f"offsetof({op.table.struct_name}, {op.slot_name})" for op in ops if op.has_slot}


def _flags(pairs):
    return " | ".join(name for name, is_set in pairs if is_set) or "0"


def _index_rows(op):
    """What an index argument addresses, a row each."""
    place = {argument.name: number for number, argument in enumerate(op.schema.arguments)}
    kinds = {argument.name: argument.kind for argument in op.schema.arguments}
    for index in op.index:
        fields = [f".of = {place[index.of]}"]
        if kinds[index.of] != schemas.TENSOR:
            fields.insert(0, ".size = OPI_NUMBER")
        elif not index.dims:
            fields.insert(0, ".size = OPI_ELEMENTS")
        elif index.dims == "*":
            fields.insert(0, ".size = OPI_OWN_DIM")
        elif index.dims.endswith(":"):
            fields[:0] = [".size = OPI_LAST_DIMS", f".dim = {-int(index.dims[:-1])}"]
        elif index.dims in place:
            fields[:0] = [".size = OPI_DIM_GIVEN", f".dim = {place[index.dims]}"]
        else:
            fields[:0] = [".size = OPI_DIM", f".dim = {int(index.dims)}"]
        fields += [".from_one = true"] * index.from_one + [".ends = true"] * index.ends + [".wraps = true"] * index.wraps
        if index.passes in place:
            fields.append(f".passes = OPI_ARGUMENT, .passed = {place[index.passes]}")
        elif index.passes:
            fields.append(f".passes = OPI_LITERAL, .passed = {int(index.passes)}")
        if index.asked:
            fields.append(f".is_asked = true, .asked = {place[index.asked]}")
        yield f"static const op_index op_index_{op.c_name}_{index.argument} = {{{', '.join(fields)}}};"


def _argument_rows(op, placed, values, strings):
    if not op.schema.arguments:
        return []
    indices = [index.argument for index in op.index]
    rows = [*_index_rows(op), f"static const op_arg op_args_{op.c_name}[] = {{"]
    for index, argument in enumerate(op.schema.arguments):
        flags = _flags((("OPA_OPTIONAL", argument.optional or argument.name in op.optional),
                        ("OPA_OPTIONAL_ITEMS", argument.optional_items),
                        ("OPA_KWARG", argument.keyword_only),
                        ("OPA_MUTATED", argument.mutated or argument.name in op.mutates),
                        ("OPA_ALIASED", argument.alias and not argument.mutated), ("OPA_DROPPED", argument.dropped)))
        member = placed.arguments[index] if placed else None
        offset = f"offsetof({op.args_struct}, {member})" if member else "0"
        fallback = "NULL" if argument.default is None else values.pointer(argument.kind, argument.default)
        items = op.strings.get(argument.name)
        names = strings.setdefault(items.values, f"op_strings_{items.prefix.lower()}") if items else "NULL"
        points = f"&op_index_{op.c_name}_{argument.name}" if argument.name in indices else "NULL"
        rows.append(f"  {{{text.c_string(argument.name)}, OPK_{argument.kind}, {flags}, {offset}, {argument.length}, "
                    f"{fallback}, {names}, {points}}},")
    return rows + ["};"]


def _result_rows(op, placed):
    if not op.schema.returns:
        return []
    rows = [f"static const op_ret op_rets_{op.c_name}[] = {{"]
    for index, result in enumerate(op.schema.returns):
        flags = _flags((("OPR_DYNAMIC", result.name in op.dynamic), ("OPR_ALIASED", result.alias),
                        ("OPR_NO_VALUE", result.name in op.novalue)))
        offset = f"offsetof({op.args_struct}, {placed.results[index]})" if placed else "0"
        rows.append(f"  {{{text.c_string(result.name)}, OPK_{result.kind}, {flags}, {offset}}},")
    return rows + ["};"]


def _equal_rows(op, by_name, values):
    if not op.equal:
        return []
    target, items = by_name[op.equal.target], []
    for index, argument in enumerate(target.schema.arguments):
        source, value = op.equal.sources[index] if index < len(op.equal.sources) else ("constant", argument.default)
        if source == "argument":
            items.append(f"{{{op.schema.argument_index(value)}, NULL}}")
        else:
            items.append(f"{{-1, {'NULL' if value is None else values.pointer(argument.kind, value)}}}")
    name = f"op_equal_{op.c_name}"
    return [f"static const op_equal_arg {name}_args[] = {{{', '.join(items)}}};",
            f"static const op_equal {name} = {{{target.enumerator}, {len(items)}, {name}_args}};"]


def _schema_row(op, placed, slots):
    schema = op.schema
    mutates = sum(1 << i for i, a in enumerate(schema.arguments) if a.name in op.mutates)
    strides_argument = schema.argument_index(op.strides_argument) if op.strides_argument else -1
    flags = _flags((("OPF_RANDOM", op.random), ("OPF_DYNAMIC", op.dynamic)))
    return [
        f"  {{{op.enumerator}, {text.c_string(schema.qualified_name)},",
        f"   {text.c_string(schema.text)},",
        f"   {text.c_string(op.family)}, OPT_{op.table.name.upper()}, OPROUTE_{op.route.upper()}, "
        f"OPS_{op.strides.upper()}, {strides_argument}, {len(schema.arguments)}, {len(schema.returns)}, "
        f"{op.level}, {flags},",
        f"   {f'op_args_{op.c_name}' if schema.arguments else 'NULL'}, "
        f"{f'op_rets_{op.c_name}' if schema.returns else 'NULL'}, "
        f"{f'sizeof({op.args_struct})' if placed else '0'}, {slots.get(op.id, '0')}, "
        f"{f'offsetof({op.args_struct}, {placed.philox})' if placed and placed.philox else '0'}, {mutates:#x}, "
        f"{f'&op_equal_{op.c_name}' if op.equal else 'NULL'}}},",
    ]
