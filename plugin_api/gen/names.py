"""What the host's sources call things by (sdk/ops/generated): arguments and results by name, and the reference kernels."""

import text


def names_h(ops):
    lines = text.banner(text.ALL_OPS, "An op's id, and where each argument and each result stands in its schema.")
    lines += ["#ifndef GRAFT_OPS_NAMES_H", "#define GRAFT_OPS_NAMES_H", "", '#include "graft/abi/op_ids.h"', "",
              "/* clang-format off */", "",
              "enum { OUT }; /* the result of an op that has one */"]
    for op in ops:
        lines += [f"enum {{ ID_{op.c_name} = {op.enumerator} }};"]
        lines += _enum(f"ARG_{op.c_name}", op.schema.arguments) + _enum(f"OUT_{op.c_name}", op.schema.returns)
    return lines + ["/* clang-format on */", "", "#endif"]


def _enum(prefix, items):
    return text.listed("enum { ", [f"{prefix}_{item.name}" for item in items], " };") if items else []


def kernels_h(ops):
    lines = text.banner(text.ALL_OPS, "The reference kernels: one for each slot, those that there are.")
    lines += ["#ifndef GRAFT_OPS_KERNELS_H", "#define GRAFT_OPS_KERNELS_H", "", '#include "graft/abi/plugin.h"', "",
              "/* clang-format off */", ""]
    for op in ops:
        if op.has_slot:
            parameters = ["const graft_exec *exec", f"const {op.args_struct} *args"]
            lines += text.call(f"graft_status kernel_{op.c_name}", parameters, ";")
    return lines + ["/* clang-format on */", "", "#endif"]
