"""Arrays in kernels' arguments are indexed by constants alone (docs/opencl.md, Mesa rusticl): test_constant_indices.py ROOT

Constants are numbers, names of the head (in capitals), and counters of loops that run from a constant to a constant
without `break`. Where a function or macro indexes by a parameter, it is what its callers give that must be constant.
"""

import re
import sys
from pathlib import Path

TYPE = re.compile(r"typedef struct \{\n(.*?)\n\} (\w+);", re.S)
KERNEL = re.compile(r"^KERNEL\w*(?:\([^()]*\))? \w+\((.*?)\)(?: \\\n)? *\{", re.M | re.S)
ARRAY = re.compile(r"\b(\w+)\[")
FUNCTION = re.compile(r"^(?:static [^(;={}]*?\b|KERNEL\w*(?:\([^()]*\))? )(\w+)\((.*?)\) \{\n(.*?)^\}", re.M | re.S)
MACRO = re.compile(r"^[ \t]*#define (\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.M)
LOOP = r"for \((?:int|long) {0} = ([^;]*); {0} [<>]=? ([^;&|]*); [^;)]*\)"
CONSTANT = re.compile(r"[-+*/%() 0-9A-Z_]*")
PASSED = 16  # from function to function: more is a circle

HEAD = """typedef struct {
  long size[RANK];
} space;
#define SIZE(d) shape.size[d]
KERNEL copy(PLACE(out), space shape) {
"""
PLANTED = ["  long i = shape.size[get_global_id(0)];\n}\n",
           "  for (int d = 0; d < rank; d++) i += shape.size[d];\n}\n",
           "  for (int d = 0; d < RANK && i; d++) i += shape.size[d];\n}\n",
           "  for (int d = 0; d < RANK; d++) {\n    if (i) break;\n    i += shape.size[d];\n  }\n}\n",
           "  for (int d = 0; d < RANK; d++) i += 1;\n  long d = i;\n  i = shape.size[d + 1];\n}\n",
           "  for (int d = 0; d < RANK; d++) {\n    i += shape.size[d];\n    while (i > 9) i /= 2;\n  }\n}\n",
           "  long i = SIZE(where);\n}\n"]
RIGHT = ["  for (int d = RANK - 1; d >= 0; d--) {\n    if (d >= shape.rank) continue;\n    i += SIZE(d) + shape.size[1];\n  }\n}\n"]


def bracketed(text, begin):
    """What stands between the bracket at `begin` and its other half, and where that is."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return text[begin + 1:at], at
    return text[begin + 1:], len(text)


def split(text):
    """A call's arguments."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def in_loop(body, at, name, endless=()):
    """Whether place `at` is in a loop over `name` that runs from a constant to a constant, to its end, and has no loop of
    unknown length in it, of its own or of one of the functions `endless`: then it is unrolled."""
    for loop in re.finditer(LOOP.format(name), body[:at]):
        begin = loop.end()
        while inner := re.compile(r"\s*(?:for|if) (?=\()").match(body, begin):
            begin = bracketed(body, inner.end())[1] + 1
        block = re.compile(r"\s*(?=\{)").match(body, begin)
        end = bracketed(body, block.end())[1] if block else body.find(";", begin)
        if at <= end and all(map(CONSTANT.fullmatch, loop.groups())):
            return not re.search(r"\bbreak;|\bwhile \(", body[loop.end():end]) and \
                not any(re.search(r"\b%s\(" % name, body[loop.end():end]) for name in endless)
    return False


class Source:
    """A file with the arrays that are arguments in it; `others` are files whose types it may name, where it has no such."""

    def __init__(self, text, others=""):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        self.definitions = [(m[1], [p.split()[-1].strip("*") for p in m[2].split(",") if p.split()], m[3])
                            for found in (FUNCTION, MACRO) for m in found.finditer(text)]
        types = {name: ARRAY.findall(body) for body, name in TYPE.findall(others + text)}
        given = {word for kernel in KERNEL.findall(text) for word in re.findall(r"\b(\w+) \w+(?:,|$)", kernel)}
        self.arrays = {array for name in given & set(types) for array in types[name]}
        self.endless = {name for name, _, body in self.definitions if re.search(r"\bwhile \(", body)}

    def indices(self):
        for name, parameters, body in self.definitions:
            for array in re.finditer(r"(?:\.|->)(%s)(?=\[)" % "|".join(sorted(self.arrays) or [" "]), body):
                index, end = bracketed(body, array.end())
                yield name, parameters, body, array.start(), index
                along = re.match(r"\]\.along(?=\[)", body[end:])
                if along:
                    yield name, parameters, body, array.start(), bracketed(body, end + along.end())[0]

    def uses(self, called, which):
        for name, parameters, body in self.definitions:
            for use in re.finditer(r"\b%s(?=\()" % called, body):
                given = split(bracketed(body, use.end())[0])
                if which < len(given):
                    yield name, parameters, body, use.start(), given[which]

    def problems(self, places=None, passed=0):
        for name, parameters, body, at, index in self.indices() if places is None else places:
            for word in re.findall(r"(?<![\w.>])[A-Za-z_]\w*", index):
                if CONSTANT.fullmatch(word) or in_loop(body, at, word, self.endless):
                    continue
                if word not in parameters or passed == PASSED:
                    yield f"{name} indexes an argument by {index}: {word} is neither constant nor counts to one"
                else:
                    yield from self.problems(self.uses(name, parameters.index(word)), passed + 1)


def main():
    kernels = Path(sys.argv[1], "reference_backend_opencl", "kernels")
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(kernels.rglob("*.cl"))}
    sources = {file: Source(text, "".join(other for at, other in texts.items() if at.parent in (file.parent, kernels / "core")))
               for file, text in texts.items()}
    found = [f"{file}: {problem}" for file, source in sources.items() for problem in sorted(set(source.problems()))]
    found += [f"test_constant_indices.py does not see what is planted in it: {text}"
              for text in PLANTED if not list(Source(HEAD + text).problems())]
    found += [f"test_constant_indices.py is wrong about {text}" for text in RIGHT if list(Source(HEAD + text).problems())]
    if sum(len(list(source.indices())) for source in sources.values()) < 100:
        found.append("hardly an argument's array is indexed: the test has lost sight of them")
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
