#!/usr/bin/env python3
"""docs/abi_growth.md compiles, and is nothing but growth: growth.py SOURCE_ROOT

Puts each C block of that page into a copy of the headers, where the comment above the block says:
    <!-- HEADER, at the end -->                below all declarations
    <!-- HEADER, at the end of STRUCT -->      fields
    <!-- HEADER, above STRUCT -->              declarations that its fields need
    <!-- HEADER, in TYPE -->                   numbers of the enum behind that typedef
    <!-- HEADER, instead of: LINE -->
Then compiles the headers as C99 and C++17 without a warning (hidden padding is one), with every number of an enum that
got some in one switch, so that none stands for two things; and holds the copy against the newest released minor."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = "docs/abi_growth.md"
END = "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only".split()
COMPILERS = [["gcc", "-std=c99", "-xc", "-Wpadded"], ["clang", "-std=c99", "-xc"],
             ["g++", "-std=c++17", "-xc++", "-Wpadded"], ["clang++", "-std=c++17", "-xc++"]]


def blocks(text):
    """(line, where, C) of each block of C."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line == "```c":
            end = lines.index("```", at)
            yield at, lines[at - 1], "\n".join(lines[at + 1 : end]) + "\n"


def fail(line, message):
    sys.exit(f"{PAGE}:{line}: {message}")


def put_before(text, mark, block, line):
    if text.count(mark) != 1:
        fail(line, f"{text.count(mark)} places for this block: {mark!r}")
    return text.replace(mark, block + mark)


def above(text, struct, block, line):
    """Before the struct and the comment that belongs to it."""
    found = re.search(rf"(/\*(?:(?!\*/)[\s\S])*\*/\n)?typedef struct {struct} {{", text)
    if not found:
        fail(line, f"no struct {struct}")
    return text[: found.start()] + block + "\n" + text[found.start() :]


def place(text, where, block, line):
    if where == "at the end":
        return text.removesuffix(END) + "\n" + block + END if text.endswith(END) else fail(line, "no end of the header")
    how, _, what = where.partition(": ") if where.startswith("instead of: ") else where.rpartition(" ")
    if how == "at the end of":
        return put_before(text, f"}} {what};", block, line)
    if how == "above":
        return above(text, what, block, line)
    if how == "in":
        start = re.search(rf"typedef u?int32_t {what};\nenum {{", text) or fail(line, f"no numbers of {what}")
        return text[: start.end()] + "\n" + block + text[start.end() :]
    if how == "instead of":
        return put_before(text, what + "\n", block, line).replace(block + what + "\n", block)
    return fail(line, f"where is {where!r}?")


def one_switch(text, types):
    """C that does not compile where two numbers of a type are one."""
    functions = []
    for kind in sorted(types):
        body = re.search(rf"typedef u?int32_t {kind};\nenum {{(.*?)\n?}};", text, re.S)[1]
        names = re.findall(r"^\s*(GRAFT_\w+) = ", body, re.M)
        cases = "\n".join(f"    case {name}:" for name in names)
        functions.append(f"int one_{kind}({kind} value);\nint one_{kind}({kind} value) {{\n  switch (value) {{\n{cases}\n"
                         "      return 1;\n    default: return 0;\n  }\n}\n")
    return '#include "graft/abi/plugin.h"\n' + "\n".join(functions)


def main(root):
    page = (root / PAGE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        include = Path(work) / "include"
        shutil.copytree(root / "plugin_api/include", include)
        types, count = set(), 0
        for line, comment, block in blocks(page):
            said = re.fullmatch(r"<!-- (\w+\.h), (.*) -->", comment) or fail(line, "no comment that says where it goes")
            header = include / "graft/abi" / said[1]
            header.write_text(place(header.read_text(), said[2], block, line))
            if said[2].startswith("in "):
                types.add(said[2][3:])
            count += 1
        text = "".join(header.read_text() for header in sorted((include / "graft/abi").glob("*.h")))
        source = Path(work) / "all.c"
        source.write_text(one_switch(text, types))
        for compiler in COMPILERS:
            done = subprocess.run([*compiler, *WARNINGS, f"-I{include}", source], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{PAGE}, as {' '.join(compiler[:2])} sees it in the headers:\n{done.stderr[:4000]}")
        newest = sorted((root / "tests/frozen").glob("v*"), key=lambda v: [int(n) for n in v.name[1:].split(".")])[-1]
        done = subprocess.run([root / "tests/frozen/additions.sh", newest.name, include], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{PAGE}: {done.stdout[-4000:]}{done.stderr[-4000:]}")
        print(f"{count} blocks compile; {done.stdout.strip()}")


main(Path(sys.argv[1]).resolve())
