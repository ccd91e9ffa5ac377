"""Which ops a line of the pointwise kernels can reach: a row of the table names functions, and these name others."""

import re
from pathlib import Path

FOLDER = "reference_backend_opencl/kernels/pointwise"
TABLE = f"{FOLDER}/ops.c"
MOST = 60  # as many ops are met one by one; a line that more of them share meets the family

NAME = re.compile(r"[A-Za-z_]\w*")
DEFINITION = re.compile(r"#\s*define\s+(\w+)|(?:static|__kernel|graft_status)\b[^;=(]*?\b(\w+)\s*(?:\(|=)")
ROW = re.compile(r"    ([A-Z]\w*)\((\w+),(?!.*\\$)")


def pieces(text):
    """A definition or a row of a table each: its first line, its name, whether it is a row, its text."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        row, definition = ROW.match(line), DEFINITION.match(line)
        if row or definition:
            found.append([number, row[2] if row else definition[1] or definition[2], bool(row), line])
        elif found:
            found[-1][3] += "\n" + line
    return found


def words_of(name, is_row, text):
    """What a piece names. The table's macros paste: ELEMENTARY(exp, ...) names complex_exp."""
    words = set(NAME.findall(text))
    return words | {f"complex_{name}"} if is_row else words - {name}


def op_of(name, is_row):
    if is_row:
        return name
    return name.removeprefix("ocl_op_") if name.startswith("ocl_op_") else None


def ops_of(root, path, line):
    """Names of the ops whose kernels have the line, as the table has them; None: all, or it is not known."""
    sources = {str(file.relative_to(root)): pieces(file.read_text())
               for file in sorted(Path(root, FOLDER).glob("*.c*"))}
    own = next((piece for piece in reversed(sources.get(path, [])) if piece[0] <= line), None)
    if own is None:
        return None
    if path == TABLE and own[2]:
        return {own[1]}
    others = [piece for found in sources.values() for piece in found if piece is not own]
    reached, ops, kernels = {own[1]}, set(), "__kernel" in own[3]
    while not kernels:
        users = [piece for piece in others if words_of(*piece[1:]) & reached]
        if not users:
            break
        others = [piece for piece in others if piece not in users]
        ops |= {op_of(name, is_row) for _, name, is_row, _ in users} - {None}
        reached |= {name for _, name, is_row, _ in users if not op_of(name, is_row)}
        kernels = any("__kernel" in text for _, _, _, text in users)
    return ops if ops and not kernels and len(ops) <= MOST else None


def globs_of(ops):
    """For --op: add_Tensor is aten.add.Tensor, prims_cbrt prims.cbrt, prelu_kernel aten._prelu_kernel, and some of the
    table's macros put special_ in front."""
    names = (name.removeprefix("prims_").replace("_", "?") for name in sorted(ops))
    return ",".join(f"*.{before}{name}*" for name in names for before in ("", "_", "special?"))
