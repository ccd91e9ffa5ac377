#!/usr/bin/env python3
"""Whether the tree is built as docs/architecture.md says: rooms.py ROOT BUILD

Reads the table of rooms and that of prefixes there, the #include lines of the sources, and the symbols of the objects
that BUILD holds, and fails where
  a file includes, or calls into, a room that the table does not allow its own one;
  files need each other in a circle (a .c file and the header of the same name count as one);
  a function that is not static has neither a public name nor a prefix of its room;
  sdk/wiring.c defines anything but hooks: constants NAME_hooks that a header of the room they serve declares.
Before that it plants each of these in a small tree of its own and looks whether it is found.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOTS = ["sdk", "conformance", "reference_backend_opencl"]  # whose files are looked at
COMPILED = ["sdk", "conformance"]  # whose objects are looked at
NOT_COMPILED = ["sdk/torch", "sdk/cli/template"]  # built by PyTorch's tools; a text
INCLUDE_FOLDERS = ["sdk", "sdk/include", "plugin_api/include", ".", "conformance", "sdk/cli", "sdk/torch/csrc",
                   "reference_backend_opencl"]
WIRING = "sdk/wiring.c"
HEADERS = "sdk/include"


def table(text, first_heading):
    """The rows of the Markdown table whose first column has this heading."""
    rows, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] == first_heading:
            inside = True
        elif inside and not line.startswith("|"):
            break
        elif inside and not set(cells[0]) <= set("-: "):
            rows.append(cells)
    return rows


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def symbols_of(objects):
    """Object, name and kind of each symbol; by one nm, which is started more slowly than it reads an object."""
    if not objects:
        return []
    listing = subprocess.run(["nm", "-A", "-P", *objects], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^(.+): (\S+) (\w)\b", listing, re.M)


class Tree:
    def __init__(self, root, build):
        self.root, self.build = Path(root), Path(build)
        page = (self.root / "docs/architecture.md").read_text(encoding="utf-8")
        self.rooms = {names(row[0])[0]: names(row[2]) for row in table(page, "folder")}
        self.prefixes = collections.defaultdict(list)
        for prefixes, room, *_ in table(page, "prefix"):
            self.prefixes[names(room)[0]] += names(prefixes)
        self.problems = []
        self.files = sorted(path.relative_to(self.root).as_posix() for top in ROOTS
                            for path in (self.root / top).rglob("*")
                            if path.suffix in (".c", ".h", ".cpp", ".inc") and "build" not in path.parts)
        self.edges = collections.defaultdict(lambda: collections.defaultdict(set))  # unit -> unit -> why
        self.defined, self.undefined = {}, {}
        self.headers = "".join(self.text(f) for f in self.files if f.startswith(HEADERS))
        self.headers += "".join(path.read_text(encoding="utf-8")
                                for path in (self.root / "plugin_api/include").rglob("*.h"))

    def text(self, file):
        return (self.root / file).read_text(encoding="utf-8")

    def room(self, file):
        """The room with the longest path that holds a file; None: the page names none."""
        fits = [room for room in self.rooms if file == room or file.startswith(room + "/")]
        return max(fits, key=len, default=None)

    def allowed(self, room):
        """The rooms below a room: those that its row names, and those below these."""
        found, todo = {room}, [room]
        while todo:
            for below in self.rooms.get(todo.pop(), []):
                if below not in found:
                    found.add(below)
                    todo.append(below)
        return found

    def tie(self, user, used, why):
        here, there = self.room(user), self.room(used)
        if here is None or there is None:
            self.problems.append(f"{user if here is None else used}: docs/architecture.md names no room for it")
        elif there not in self.allowed(here):
            self.problems.append(f"{user} {why} of {used}: {here} may not depend on {there}")
        a, b = (re.sub(r"\.\w+$", "", file) for file in (user, used))
        if a != b and a.split("/")[0] in COMPILED:
            self.edges[a][b].add(why)

    def read_includes(self):
        known = set(self.files) | {path.relative_to(self.root).as_posix()
                                   for path in (self.root / "plugin_api").rglob("*.h")}
        for file in self.files:
            for included in re.findall(r'^\s*#\s*include\s*[<"]([^">]+)[">]', self.text(file), re.M):
                for folder in [str(Path(file).parent), *INCLUDE_FOLDERS]:
                    path = (Path(folder) / included).as_posix()
                    if path in known:
                        self.tie(file, path, "includes a header")
                        break

    def objects(self):
        """The object of each source that was compiled, by source; where there are several, one that is built."""
        found = {}
        for entry in json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8")):
            source = Path(entry["directory"], entry["file"]).resolve()
            if not source.is_relative_to(self.root.resolve()):
                continue
            source = source.relative_to(self.root.resolve()).as_posix()
            if source.split("/")[0] in COMPILED and not (source in found and found[source].exists()):
                found[source] = Path(entry["directory"], re.search(r" -o (\S+)", entry["command"])[1])
        for file in self.files:
            compiled = file.endswith(".c") and file.split("/")[0] in COMPILED
            if compiled and file not in found and not file.startswith(tuple(NOT_COMPILED)):
                self.problems.append(f"{file} is not compiled: its calls are not known")
        return found

    def read_symbols(self):
        sources = {}
        for source, object_file in self.objects().items():
            if object_file.exists():
                sources[str(object_file)] = source
            else:
                self.problems.append(f"{source}: {object_file} is missing; build first")
        for object_file, symbol, kind in symbols_of(sources):
            if kind in "TDBRC":
                self.defined.setdefault(symbol, []).append(sources[object_file])
            elif kind == "U":
                self.undefined.setdefault(symbol, []).append(sources[object_file])
        for symbol, users in self.undefined.items():
            for used in self.defined.get(symbol, []):
                if used == WIRING:
                    continue
                for user in users:
                    if user != used:
                        self.tie(user, used, f"uses {symbol}")

    def check_names(self):
        for symbol, sources in self.defined.items():
            for source in sources:
                if source == WIRING:
                    self.check_hook(symbol)
                elif symbol.startswith("graft_"):
                    if not re.search(rf"\b{symbol}\b", self.headers):
                        self.problems.append(f"{source}: {symbol} has a public name and stands in no public header")
                elif symbol != "main" and not symbol.startswith(tuple(self.prefixes[self.room(source)])):
                    self.problems.append(f"{source}: {symbol} begins with no prefix of {self.room(source)}: "
                                         f"{' '.join(self.prefixes[self.room(source)])}")

    def check_hook(self, symbol):
        declared = [f for f in self.files if f.endswith(".h") and re.search(rf"extern const \w+ {symbol};", self.text(f))]
        if not symbol.endswith("_hooks") or not declared:
            self.problems.append(f"{WIRING}: {symbol} is no table of hooks that a room declares")
        for user in self.undefined.get(symbol, []):
            for header in declared:
                if self.room(user) != self.room(header):
                    self.problems.append(f"{user} calls {symbol}, which are the hooks of {self.room(header)}")

    def circles(self):
        """Strongly connected units, by Tarjan's algorithm."""
        index, low, stack, found = {}, {}, [], []

        def visit(unit):
            index[unit] = low[unit] = len(index)
            stack.append(unit)
            for used in self.edges[unit]:
                if used not in index:
                    visit(used)
                    low[unit] = min(low[unit], low[used])
                elif used in stack:
                    low[unit] = min(low[unit], index[used])
            if low[unit] == index[unit]:
                at = stack.index(unit)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                del stack[at:]

        for unit in list(self.edges):
            if unit not in index:
                visit(unit)
        return found

    def check_circles(self):
        for circle in self.circles():
            ties = [f"    {a} {', '.join(sorted(why))} of {b}" for a in circle for b, why in self.edges[a].items()
                    if b in circle]
            self.problems.append("files need each other in a circle:\n" + "\n".join(ties))

    def check(self):
        self.read_includes()
        self.read_symbols()
        self.check_names()
        self.check_circles()
        return self.problems


# --- the check itself: planted breaches ---

SOUND = {
    "docs/architecture.md": """
| folder | what | may depend on |
| --- | --- | --- |
| `plugin_api` | | nothing |
| `sdk/include` | | `plugin_api` |
| `sdk/low` | | `sdk/include` |
| `sdk/high` | | `sdk/low` |
| `sdk/wiring.c` | | `sdk/high` |

| prefix | room |
| --- | --- |
| `low_` | `sdk/low` |
| `high_` | `sdk/high` |
""",
    "sdk/include/graft/graft.h": "int graft_call(void);\n",
    "sdk/low/low.h": "typedef struct { int (*f)(void); } low_hooks_table;\nextern const low_hooks_table low_hooks;\n"
                     "int low_f(void);\nint low_g(void);\n",
    "sdk/low/f.c": '#include "low/low.h"\nint low_f(void) { return low_hooks.f(); }\n',
    "sdk/low/g.c": '#include "low/low.h"\nint low_g(void) { return low_f(); }\n',
    "sdk/high/high.h": "int high_f(void);\n",
    "sdk/high/high.c": '#include "graft/graft.h"\n#include "high/high.h"\n#include "low/low.h"\n'
                       "int high_f(void) { return 1; }\nint graft_call(void) { return low_g(); }\n",
    "sdk/wiring.c": '#include "high/high.h"\n#include "low/low.h"\nconst low_hooks_table low_hooks = {high_f};\n',
}

# What is put in the place of which file, and what must be said of it.
PLANTED = [
    ("an include", "sdk/low/g.c", '#include "high/high.h"\n#include "low/low.h"\nint low_g(void) { return low_f(); }\n',
     "sdk/low/g.c includes a header of sdk/high/high.h: sdk/low may not depend on sdk/high"),
    ("a call", "sdk/low/g.c", "int high_f(void);\nint low_g(void) { return high_f(); }\n",
     "sdk/low/g.c uses high_f of sdk/high/high.c: sdk/low may not depend on sdk/high"),
    ("a circle of calls", "sdk/low/f.c", '#include "low/low.h"\nint low_f(void) { return low_hooks.f() + low_g(); }\n',
     "circle:\n    sdk/low/f uses low_g of sdk/low/g\n    sdk/low/g uses low_f of sdk/low/f"),
    ("a circle with an include", "sdk/low/g.h", '#include "low/f.h"\n',
     "circle:\n    sdk/low/f uses low_g of sdk/low/g\n    sdk/low/g includes a header of sdk/low/f"),
    ("a prefix of another room", "sdk/low/f.c", '#include "low/low.h"\nint low_f(void) { return 0; }\n'
     "int high_g(void) { return 0; }\n", "sdk/low/f.c: high_g begins with no prefix of sdk/low"),
    ("a public name that is not public", "sdk/low/f.c", '#include "low/low.h"\nint low_f(void) { return 0; }\n'
     "int graft_f(void) { return 0; }\n", "sdk/low/f.c: graft_f has a public name and stands in no public header"),
    ("a way around the table", WIRING, SOUND[WIRING] + "int low_up(void) { return high_f(); }\n",
     "sdk/wiring.c: low_up is no table of hooks that a room declares"),
    ("hooks of another room", "sdk/high/high.c", SOUND["sdk/high/high.c"].replace("low_g()", "low_hooks.f()"),
     "sdk/high/high.c calls low_hooks, which are the hooks of sdk/low"),
    ("a file without a room", "sdk/lost/lost.c", '#include "low/low.h"\n', "sdk/lost/lost.c: docs/architecture.md names"),
    ("a file that is not compiled", "sdk/low/h.c", None, "sdk/low/h.c is not compiled"),
]
COMPANIONS = {  # what a planted file needs beside it
    "a circle with an include": {
        "sdk/low/f.h": "int low_f(void);\n",
        "sdk/low/f.c": '#include "low/f.h"\nint low_g(void);\nint low_f(void) { return low_g(); }\n',
        "sdk/low/g.c": '#include "low/g.h"\nint low_g(void) { return 0; }\n'},
}


def make(folder, files, uncompiled=()):
    commands = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix != ".c" or name in uncompiled:
            continue
        command = f"cc -Isdk -Isdk/include -c {name} -o {name}.o"
        commands.append({"directory": str(folder), "file": name, "command": command})
    (folder / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    for command in commands:
        subprocess.run(command["command"].split(), check=True, cwd=folder)
    return Tree(folder, folder).check()


def prove():
    with tempfile.TemporaryDirectory() as folder:
        found = make(Path(folder), SOUND)
        assert not found, f"a sound tree is refused: {found}"
    for what, file, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            files = SOUND | COMPANIONS.get(what, {}) | {file: text or ""}
            found = make(Path(folder), files, () if text is not None else (file,))
            assert any(expected in problem for problem in found), f"{what} is not found; said is: {found}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    prove()
    problems = Tree(*sys.argv[1:]).check()
    print("\n".join(sorted(set(problems))))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
