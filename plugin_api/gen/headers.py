"""The generated part of the ABI: op ids, and for each table its args structs, slot types and the table itself."""

import layout
import text
from ops import TABLES, safe_name, slots_of, str_enums


def op_ids(ops):
    body = text.comment("An op's id, stable for ever: ids are appended and never used again. A schema never changes but "
                        "by an appended argument; any other change is a new op with a new id. A C name is the "
                        "overload's name with '_' for '.' and without leading underscores; prims begin with PRIMS.")
    body += ["", "/* The first of the ids that are the vendors'. A plugin is called with none that it has not announced. */",
             "#define GRAFT_OP_VENDOR_IDS UINT32_C(0x80000000)"]
    for table in TABLES:
        rows = [f"  {op.enumerator} = {op.id}" for op in ops if op.table is table]
        body += ["", f"/* {table.name}: {table.title} */"] + _enum(rows)
    body += [""] + text.comment("Values of the str arguments; 0 where one is absent. A value that a slot does not know is "
                                "UNIMPLEMENTED.")
    for prefix, values in str_enums(ops).items():
        body += _enum([f"  GRAFT_STR_{prefix}_{value.upper()} = {number}" for number, value in enumerate(values, 1)])
    lines = text.banner(text.ALL_OPS, "The numbers of the ops and of the values of their str arguments.")
    return lines + text.guarded("GRAFT_ABI_OP_IDS_H", ["<stdint.h>"], body)


def _enum(rows):
    return ["enum {"] + [row + "," for row in rows[:-1]] + [rows[-1], "};"]


def table_header(table, ops):
    slots = slots_of(table, ops)
    body = []
    for op in slots:
        body += args_struct(op) + [""]
    body += text.comment(f"The table `{table.name}`: {table.title}. A slot that is NULL is not implemented. Grows at "
                         "the end; views and what PyTorch composes have an id and no slot. Some names are macros in "
                         "<math.h>: call a slot as (table->isnan)(exec, args).")
    if table.words:
        body += text.comment(" ".join(table.words.split()))
    body += [f"typedef struct {table.struct_name} {{", "  size_t struct_size;"]
    body += [f"  graft_{op.c_name}_fn {op.slot_name};" for op in slots]
    body += [f"}} {table.struct_name};"]
    lines = text.banner(table.source, "For each op its arguments and the type of its slot, and the table of the slots. "
                        "Arguments stand in the order of the schema, then the random stream where there is one, then "
                        "the outputs.")
    return lines + text.guarded(f"GRAFT_ABI_{table.name.upper()}_OPS_H", ['"graft/abi/exec.h"'], body)


def args_struct(op):
    lines = text.paragraphs([op.schema.text + _remarks(op), _equals(op), op.prepared and f"Prepared: {op.prepared}."])
    lines += [f"typedef struct {op.args_struct} {{", "  graft_args head;"]
    lines += [f"  {field.declaration};{_field_remark(op, field)}" for field in layout.of(op).fields]
    lines += [f"}} {op.args_struct};"]
    parameters = ["const graft_exec *exec", f"const {op.args_struct} *args"]
    return lines + text.call(f"typedef graft_status (*graft_{op.c_name}_fn)", parameters, " GRAFT_NOEXCEPT;")


def _remarks(op):
    """What the schema does not say."""
    written = f" Also writes {' and '.join(op.mutates)}." if op.mutates else ""
    results = [r for r in op.schema.returns if r.mutated]
    names = [next(a.name for a in op.schema.arguments if a.mutated and a.alias == r.alias) for r in results]
    return written + (f" The result is written to {' and '.join(names)}." if names else "")


def _equals(op):
    if not op.equal:
        return ""
    values = ", ".join(value if source == "argument" else str(value) for source, value in op.equal.sources)
    return f"Equals {op.equal.target}({values}), and stands for it where that has no slot of its own."


def _field_remark(op, field):
    enum = next((e for name, e in op.strings.items() if safe_name(name) == field.name), None)
    return f" /* GRAFT_STR_{enum.prefix}_* */" if enum else ""


def offsets(ops):
    """Assertions of every offset and size, in macros that the including test defines. All these structs may grow."""
    lines = text.banner(text.ALL_OPS, "Where each member of each generated struct lies; frozen once released.")
    lines += ["/* clang-format off */"]
    for op in ops:
        if op.has_slot:
            placed = layout.of(op)
            lines += [f"GRAFT_ASSERT_OFFSET({op.args_struct}, {f.name}, {f.offset})" for f in placed.fields]
            lines += [f"GRAFT_ASSERT_SIZE_TODAY({op.args_struct}, {placed.bytes})"]
    for table in TABLES:
        slots = slots_of(table, ops)
        lines += [f"GRAFT_ASSERT_OFFSET({table.struct_name}, {op.slot_name}, {slot_offset(op.slot)})" for op in slots]
        lines += [f"GRAFT_ASSERT_SIZE_TODAY({table.struct_name}, {slot_offset(len(slots))})"]
    return lines + ["/* clang-format on */"]


def slot_offset(number):
    return layout.POINTER * (1 + number)
