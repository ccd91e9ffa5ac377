"""The OpenCL backend's half of what a schema says: for each op with a slot its id, the type of its function, its name,
and what its args struct holds where (reference_backend_opencl/generated)."""

import layout
import schema as schemas
import text

# As a family writes it, an op is the name of its slot.
_HEADER_PURPOSE = ("For each op that has a slot, under the slot's name: its id, and the type of the function that serves "
                   "it. Most are never defined: only those that a family's table names.")
_TABLE_PURPOSE = "Included by runtime/op.c, which has the types: what the args struct of each op holds, and where."


def ops_h(ops):
    slots = [op for op in ops if op.has_slot]
    lines = text.banner(text.ALL_OPS, _HEADER_PURPOSE)
    lines += ["#ifndef OCL_GENERATED_OPS_H", "#define OCL_GENERATED_OPS_H", "", '#include "graft/abi/plugin.h"', "",
              "/* clang-format off */", "enum {"]
    lines += [f"  OCL_ID_{op.c_name} = {op.enumerator}," for op in slots]
    lines += ["};", "", "/* The number of an op, in its table, is its id modulo 10000; this is one more than the greatest. */",
              f"enum {{ OCL_OP_NUMBERS = {max(op.id % 10000 for op in slots) + 1} }};", "",
              "#define OCL_SLOT_FUNCTION(op) graft_status ocl_op_##op(const graft_exec *exec, "
              "const graft_args_##op *args);"]
    lines += [f"OCL_SLOT_FUNCTION({op.c_name})" for op in slots]
    return lines + ["/* clang-format on */", "", "#endif"]


def signatures_inc(ops):
    slots = [op for op in ops if op.has_slot]
    lines = text.banner(text.ALL_OPS, _TABLE_PURPOSE) + ["/* clang-format off */"]
    for op in slots:
        lines += [f"static const ocl_field fields_{op.c_name}[] = {{"]
        lines += [f"  {row}," for row in _fields(op)] + ["};"]
    lines += ["", "/* In the order of the ids. */", "static const ocl_signature signatures[] = {"]
    lines += [f"  {{{op.enumerator}, {text.c_string(op.schema.qualified_name)}, {text.c_string(op.family)}, "
              f"OCL_{op.table.name.upper()}, "
              f"offsetof({op.table.struct_name}, {op.slot_name}), "
              f"sizeof fields_{op.c_name} / sizeof *fields_{op.c_name}, fields_{op.c_name}}}," for op in slots]
    return lines + ["};", "/* clang-format on */"]


def _fields(op):
    placed = layout.of(op)
    rows = [_field(op, name, argument.name, argument.kind, _argument_flags(argument), _values(op, argument))
            for name, argument in zip(placed.arguments, op.schema.arguments) if name]
    if placed.philox and placed.philox not in placed.arguments:
        rows.append(_field(op, placed.philox, placed.philox, schemas.GENERATOR, "0"))
    for name, result in zip(placed.results, op.schema.returns):
        if name not in placed.arguments:
            kind = "OUTPUT" if result.name in op.dynamic else result.kind
            rows.append(_field(op, name, name, kind, "OCL_FIELD_RESULT"))
    return rows


def _argument_flags(argument):
    pointer = argument.optional and argument.kind in (schemas.INT, schemas.FLOAT, schemas.BOOL)
    return "OCL_FIELD_POINTER" if pointer else "0"


def _values(op, argument):
    return len(op.strings[argument.name].values) if argument.name in op.strings else 0


def _field(op, member, name, kind, flags, values=0):
    return f"{{{text.c_string(name)}, OCL_FIELD_{kind}, {flags}, offsetof({op.args_struct}, {member}), {values}}}"
