"""Typed calls of the ops: the public graft_op_* functions, and fx_*, the host's own builder of compositions; and the
same arguments as a rule or a formula finds them, in_*."""

from dataclasses import dataclass

import layout
import schema as schemas
import text
from ops import safe_name

# kind -> parameters and boxed value, where {0} is the argument's name
_PARAMETERS = {
    schemas.TENSOR: (("graft_tensor *{0}",), "graft_value_tensor({0})"),
    schemas.TENSORS: (("graft_tensor *const *{0}", "uint32_t {0}_count"), "graft_value_tensors({0}, {0}_count)"),
    schemas.INT: (("int64_t {0}",), "graft_value_int({0})"),
    schemas.FLOAT: (("double {0}",), "graft_value_float({0})"),
    schemas.BOOL: (("bool {0}",), "graft_value_bool({0})"),
    schemas.SCALAR: (("graft_scalar {0}",), "graft_value_scalar({0})"),
    schemas.INTS: (("const int64_t *{0}", "uint32_t {0}_count"), "graft_value_ints({0}, {0}_count)"),
    schemas.FLOATS: (("const double *{0}", "uint32_t {0}_count"), "wrap_floats({0}, {0}_count)"),
    schemas.SCALARS: (("const graft_scalar *{0}", "uint32_t {0}_count"), "wrap_scalars({0}, {0}_count)"),
    schemas.MASK: (("const uint8_t *{0}",), "wrap_mask({0}, {1})"),
    schemas.STR: (("const char *{0}",), "wrap_str({0})"),
    schemas.DTYPE: (("graft_dtype {0}",), "wrap_dtype({0})"),
    schemas.DEVICE: (("graft_rt_device *{0}",), "wrap_device({0})"),
    schemas.MEMORY_FORMAT: (("graft_memory_format {0}",), "wrap_memory_format({0})"),
    schemas.GENERATOR: (("graft_generator *{0}",), "wrap_generator({0})"),
    # The host has no other layout than strided, and takes the defaults of the flags.
    schemas.LAYOUT: ((), "wrap_none()"),
    schemas.FLAG: ((), "wrap_none()"),
}
_OPTIONAL_PARAMETERS = {
    schemas.INT: (("const int64_t *{0}",), "wrap_optional_int({0})"),
    schemas.FLOAT: (("const double *{0}",), "wrap_optional_float({0})"),
    schemas.BOOL: (("const bool *{0}",), "wrap_optional_bool({0})"),
}

# The way back: a field for each parameter, from a value {0}. An optional bool is false where absent.
_FIELDS = {
    schemas.TENSOR: ("unwrap_tensor(&{0})",),
    schemas.TENSORS: ("{0}.as.tensors", "{0}.count"),
    schemas.INT: ("{0}.as.i",),
    schemas.FLOAT: ("{0}.as.f",),
    schemas.BOOL: ("unwrap_bool(&{0})",),
    schemas.SCALAR: ("unwrap_scalar(&{0})",),
    schemas.INTS: ("unwrap_ints(&{0})", "{0}.count"),
    schemas.FLOATS: ("unwrap_floats(&{0})", "{0}.count"),
    schemas.SCALARS: ("unwrap_scalars(&{0})", "{0}.count"),
    schemas.MASK: ("unwrap_mask(&{0})",),
    schemas.STR: ("unwrap_str(&{0})",),
    schemas.DTYPE: ("unwrap_dtype(&{0})",),
    schemas.DEVICE: ("unwrap_device(&{0})",),
    schemas.MEMORY_FORMAT: ("unwrap_memory_format(&{0})",),
    schemas.GENERATOR: ("unwrap_generator(&{0})",),
    schemas.LAYOUT: (),
    schemas.FLAG: (),
}
_OPTIONAL_FIELDS = {
    schemas.INT: (("const int64_t *{0}",), ("unwrap_optional_int(&{0})",)),
    schemas.FLOAT: (("const double *{0}",), ("unwrap_optional_float(&{0})",)),
}


@dataclass(frozen=True)
class Output:
    name: str
    count: str  # a C expression for a list, "" for one tensor


@dataclass(frozen=True)
class Call:
    op: object
    parameters: tuple
    public: tuple  # the same, with what may be NULL marked
    values: tuple
    outputs: tuple

    @property
    def has_lists(self):
        return any(o.count for o in self.outputs)


def calls(ops):
    """The ops that get wrappers: those that the host runs and that return nothing but tensors."""
    tensors = {schemas.TENSOR, schemas.TENSORS}
    return [_call(op) for op in ops if op.route != "composite" and all(r.kind in tensors for r in op.schema.returns)
            and not op.schema.name.startswith("sym_")]


def _call(op):
    names = [safe_name(a.name) for a in op.schema.arguments]
    parameters, public, values = [], [], []
    for name, argument in zip(names, op.schema.arguments):
        optional = argument.optional and argument.kind in _OPTIONAL_PARAMETERS
        declarations, value = (_OPTIONAL_PARAMETERS if optional else _PARAMETERS)[argument.kind]
        declared = [d.format(name) for d in declarations]
        parameters += declared
        public += [f"GRAFT_NULLABLE {d}" if "*" in d and _may_miss(op, argument) else d for d in declared]
        if argument.kind == schemas.INTS and not _may_miss(op, argument):
            value = "wrap_required_ints({0}, {0}_count)"
        values.append(value.format(name, argument.length))
    outputs = [Output(name, _list_count(op, result) if result.kind == schemas.TENSORS else "")
               for name, result in zip(layout.result_names(op, names), op.schema.returns)]
    return Call(op, tuple(parameters), tuple(public), tuple(values), tuple(outputs))


def _may_miss(op, argument):
    return argument.kind != schemas.TENSORS and (
        argument.optional or argument.name in op.optional or argument.has_default or argument.dropped
        or argument.kind == schemas.GENERATOR)


def _list_count(op, result):
    """A list result has as many items as the argument it updates, else as the first list argument."""
    arguments = op.schema.arguments
    updated = next((a for a in arguments if f"{a.name}_out" == result.name), None)
    lists = [a for a in arguments if a.kind == schemas.TENSORS] or [a for a in arguments if a.kind == schemas.INTS]
    return f"{safe_name((updated or lists[0]).name)}_count"


def ops_h(ops):
    body = []
    for call in calls(ops):
        body += text.comment(call.op.schema.text)
        body += text.call(f"GRAFT_EXPORT graft_status graft_op_{call.op.c_name}", _public_parameters(call), ";") + [""]
    lines = text.banner(text.ALL_OPS, "The ops as typed functions over graft_call.")
    lines += text.comment("What GRAFT_NULLABLE stands before is absent where it is NULL, as a dtype, memory format or "
                          "scalar (its dtype) is where it is 0, and takes the schema's default; so an empty list that "
                          "has one is not NULL. "
                          "Without a generator, or an argument for one, the device's default generator is drawn from. "
                          "Output pointers receive new tensors, owned by the caller; what they point to on entry is not "
                          "looked at (to write into a tensor is graft_call's). An output list is as long as the list it corresponds to.")
    return lines + text.guarded("GRAFT_OPS_H", ['"graft/value.h"'], body[:-1])


def _public_parameters(call):
    return [*call.public, *(f"graft_tensor **{o.name}" for o in call.outputs)] or ["void"]


def _defined_parameters(call):
    return [*call.parameters, *(f"graft_tensor **{o.name}" for o in call.outputs)] or ["void"]


def wrappers_c(ops):
    lines = text.banner(text.ALL_OPS, "Each function boxes its arguments and calls the op.")
    lines += ['#include "graft/ops.h"', "", '#include "graft/abi/op_ids.h"', '#include "dispatch/typed.h"',
              '#include "ops/core/wrap.h"', "", "/* clang-format off */"]
    for call in calls(ops):
        lines += [""] + text.call(f"graft_status graft_op_{call.op.c_name}", _defined_parameters(call), " {")
        lines += _boxed(call) + _public_return(call) + ["}"]
    return lines + ["/* clang-format on */"]


def _boxed(call):
    if not call.values:
        return []
    lines = ["  const graft_value boxed[] = {"]
    return lines + _filled(call.values) + ["  };"]


def _filled(values):
    lines, current = [], "   "
    for value in values:
        if len(current) + len(value) + 2 > text.COLUMNS:
            lines.append(current)
            current = "   "
        current += f" {value},"
    return lines + [current]


def _head(call):
    """The op and its arguments, as every call begins."""
    return [call.op.enumerator, "boxed" if call.values else "NULL", str(len(call.values))]


def _public_return(call):
    head, outputs = _head(call), call.outputs
    if not outputs:
        return [f"  return graft_call({', '.join(head)}, NULL, 0);"]
    if len(outputs) == 1 and not call.has_lists:
        return [f"  return dsp_call_one({', '.join(head)}, {outputs[0].name});"]
    kind, counts = ("lists", "boxed_counts, ") if call.has_lists else ("each", "")
    return _out_arrays(call) + [f"  return dsp_call_{kind}({', '.join(head)}, boxed_outs, {counts}{len(outputs)});"]


def _out_arrays(call):
    lines = [f"  graft_tensor **const boxed_outs[] = {{{', '.join(o.name for o in call.outputs)}}};"]
    if call.has_lists:
        lines += [f"  const uint32_t boxed_counts[] = {{{', '.join(o.count or '1' for o in call.outputs)}}};"]
    return lines


def fx_ops_h(ops):
    lines = text.banner("plugin_api/ops/{core,train}.ops", "The ops of aten and graft as steps of a composition: an error sticks to "
                        "the builder, and what follows it does nothing. A single result is returned, several go to "
                        "pointers. Included by the header that declares fx and fx_call.")
    lines += ["#ifndef GRAFT_OPS_FX_OPS_H", "#define GRAFT_OPS_FX_OPS_H", "", '#include "graft/abi/op_ids.h"',
              '#include "ops/core/wrap.h"', "", "/* clang-format off */"]
    for call in calls(ops):
        # A composition has no use for results that are several lists; graft_call serves who needs one.
        if call.op.schema.space != "prims" and not (call.has_lists and len(call.outputs) > 1):
            lines += [""] + _fx_function(call)
    return lines + ["/* clang-format on */", "", "#endif"]


def _fx_function(call):
    single = len(call.outputs) == 1 and not call.has_lists
    outputs = [] if single else [f"graft_tensor **{o.name}" for o in call.outputs]
    result = "graft_tensor *" if single else "void "
    lines = text.comment(call.op.schema.text)
    lines += text.call(f"static inline {result}fx_{call.op.c_name}", ["fx *builder", *call.parameters, *outputs], " {")
    return lines + _boxed(call) + _fx_body(call, single) + ["}"]


def _fx_body(call, single):
    head, outputs = ", ".join(["builder", *_head(call)]), call.outputs
    if single:
        return ["  graft_tensor *boxed_out = NULL;", f"  fx_call({head}, &boxed_out, 1);", "  return boxed_out;"]
    if not outputs:
        return [f"  fx_call({head}, NULL, 0);"]
    if call.has_lists:
        return [f"  fx_call({head}, {outputs[0].name}, {outputs[0].count});"]
    stores = [f"  *{o.name} = boxed_outs[{i}];" for i, o in enumerate(outputs)]
    return [f"  graft_tensor *boxed_outs[{len(outputs)}] = {{NULL}};",
            f"  fx_call({head}, boxed_outs, {len(outputs)});", *stores]


def inputs_h(ops):
    lines = text.banner(text.ALL_OPS, "The arguments of each op as a rule or a formula reads them: const in_mm in = "
                        "in_mm_of(call->args). What is absent is NULL, a dtype or a scalar's dtype 0. A copy: what is "
                        "made canonical later is not seen.")
    lines += ["#ifndef GRAFT_OPS_INPUTS_H", "#define GRAFT_OPS_INPUTS_H", "", '#include "ops/core/wrap.h"', "",
              "/* clang-format off */"]
    for op in ops:
        if any(a.kind not in (schemas.LAYOUT, schemas.FLAG) for a in op.schema.arguments):
            lines += [""] + _inputs(op)
    return lines + ["/* clang-format on */", "", "#endif"]


def _inputs(op):
    fields, values = [], []
    for index, argument in enumerate(op.schema.arguments):
        declarations, readers = (_PARAMETERS[argument.kind][0], _FIELDS[argument.kind])
        if argument.optional and argument.kind in _OPTIONAL_FIELDS:
            declarations, readers = _OPTIONAL_FIELDS[argument.kind]
        for declaration, reader in zip(declarations, readers):
            fields.append(declaration.format(safe_name(argument.name)) + ";")
            values.append(reader.format(f"args[{index}]"))
    name = f"in_{op.c_name}"
    lines = text.comment(op.schema.text) + text.listed(f"typedef struct {name} {{ ", fields, f" }} {name};", " ")
    lines += [f"static inline {name} {name}_of(const graft_value *args) {{"]
    return lines + text.listed(f"  return ({name}){{", values, "};") + ["}"]
