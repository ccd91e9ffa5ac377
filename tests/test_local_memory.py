"""Functions of kernels that are given local memory are INLINED (docs/opencl.md, PoCL 3.1): test_local_memory.py ROOT

Where one is not, PoCL's optimizer may move a kernel's local variable into the data of a library, which all work-groups
share. Whether it does shows only now and then, and only in optimized kernels; so the rule is held where it is written.
"""

import re
import sys
from pathlib import Path

FUNCTION = re.compile(r"^[ \t]*((?:[\w*]+[ \t]+)+\**)(\w+)\(([^(){};]*)\)[ \t\\\n]*\{", re.M)
PLANTED = "static void add(__local float *sums) { sums[0] = 1; }\n"
RIGHT = ["static INLINED float sum(float v, __local float *shared) {", "static float sum(float v) {",
         "#define SUM(name) \\\n  static INLINED CT name(CT v, __local CT *shared) { \\\n"]


def problems(text):
    for found in FUNCTION.finditer(text):
        kind, name, arguments = found.groups()
        if re.search(r"\b(__)?local\b", arguments) and "INLINED" not in kind.split():
            yield f"{name} is given local memory and is not INLINED"


def given(text):
    return sum(1 for found in FUNCTION.finditer(text) if re.search(r"\b(__)?local\b", found.group(3)))


def main():
    files = sorted(Path(sys.argv[1], "reference_backend_opencl", "kernels").rglob("*.cl"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = [f"{file}: {problem}" for file, text in texts.items() for problem in problems(text)]
    if not list(problems(PLANTED)) or any(list(problems(text)) for text in RIGHT):
        found.append("test_local_memory.py does not see what is planted in it")
    if sum(map(given, texts.values())) < 5:
        found.append("hardly a function is given local memory: the test has lost sight of them")
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
