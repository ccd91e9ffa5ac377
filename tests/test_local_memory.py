"""How kernels have local memory (docs/opencl.md, PoCL 3.1 and 5): test_local_memory.py ROOT

Functions that are given some are INLINED. Where one is not, PoCL's optimizer may move a kernel's local variable into the
data of a library, which all work-groups share. Whether it does shows only now and then, and only in optimized kernels.
An array with a place for each work-item that a kernel only hands on is a GROUP_ARRAY, which is none for a work-item that
is alone: PoCL 5, whose functions then make nothing of it, aborts. So both rules are held where they are written.
"""

import re
import sys
from pathlib import Path

FUNCTION = re.compile(r"^[ \t]*((?:[\w*]+[ \t]+)+\**)(\w+)\(([^(){};]*)\)[ \t\\\n]*\{", re.M)
ARRAY = re.compile(r"__local \w+ (\w+)\[LOCAL\];(.*?)^}", re.M | re.S)
HANDED_ON = "  __local CT shared[LOCAL];\n  sum = total_sum(sum, shared);\n}\n"
USED = "  __local CT shared[LOCAL];\n  shared[id] = sum;\n}\n"
PLANTED = "static void add(__local float *sums) { sums[0] = 1; }\n"
RIGHT = ["static INLINED float sum(float v, __local float *shared) {", "static float sum(float v) {",
         "#define SUM(name) \\\n  static INLINED CT name(CT v, __local CT *shared) { \\\n"]


def problems(text):
    for found in FUNCTION.finditer(text):
        kind, name, arguments = found.groups()
        if re.search(r"\b(__)?local\b", arguments) and "INLINED" not in kind.split():
            yield f"{name} is given local memory and is not INLINED"
    for name, rest in ARRAY.findall(text):
        if f"{name}[" not in rest:
            yield f"{name}[LOCAL] is handed on and is no GROUP_ARRAY"


def given(text):
    return sum(1 for found in FUNCTION.finditer(text) if re.search(r"\b(__)?local\b", found.group(3)))


def main():
    files = sorted(Path(sys.argv[1], "reference_backend_opencl", "kernels").rglob("*.cl"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = [f"{file}: {problem}" for file, text in texts.items() for problem in problems(text)]
    if any(not list(problems(text)) for text in (PLANTED, HANDED_ON)) or any(list(problems(text)) for text in (*RIGHT, USED)):
        found.append("test_local_memory.py does not see what is planted in it")
    if sum(map(given, texts.values())) < 5:
        found.append("hardly a function is given local memory: the test has lost sight of them")
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
