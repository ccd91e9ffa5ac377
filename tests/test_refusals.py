"""Each refusal of sdk/ops has a call in refusals.txt, whose text it is: test_refusals.py ROOT

A refusal is a call of one of CALLS with a text; what fails with memory, or on the way of a gradient, is none of a call's
own. `BEYOND` are those that no line of a call's text can reach.
"""

import re
import sys
from pathlib import Path

CALLS = re.compile(r"\b(op_error|op_refuse|op_out_of_range|op_fail|err_about|err_set)\(")
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
CONVERSION = re.compile(r"%[-+.*0-9]*(?:ll|l|L|z)?[a-zA-Z]")
NOT_OF_CALLS = ("no host memory", "gradient", "GRAFT_INTERNAL")
BEYOND = {
    "linalg.eig: no convergence": "no matrix is known that does not converge",
    "linalg.eig: the matrix has an infinity or NaN": "tensors hold small numbers here",
    "the dtypes have none in common: %s": "what has no common dtype is refused before",
    "the dtypes have none in common (%s)": "what has no common dtype is refused before",
    "expected real bounds": "a text has no complex bounds of this op",
    "a floating dtype or u8": "of nearest neighbours, which take u8: others say the shorter text",
    "the shape of self %s, and %s": "the op has no name for calls",
    "value is complex, self is %s": "a number that self can't hold is refused before",
    "repeating so many dims at once is more than %d dims": "in a decomposition of a call that has as many dims",
    "room for %u outputs was given; expected %u": "said of a caller, not of a call",
    "a dtype that adds": "float8, which nobody makes windows of",
    "i32 can't hold the places of %s": "a sequence of 2^31 numbers",
    "column index %lld at position %lld is out of range for %lld columns": "of the numbers here it is a row that is wrong; the suite's cases of indices have it",
}


def arguments_of(text, opening):
    """What stands between the bracket there and the one that closes it."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[opening + 1:at]
    return text[opening + 1:]


def format_of(arguments):
    """The text that is said: the first string that is no argument of another call, and those beside it; not the name of an
    op in front of it."""
    pieces, end = "", None
    code = STRING.sub(lambda string: " " * len(string[0]), arguments)
    for match in STRING.finditer(arguments):
        if code[:match.start()].count("(") > code[:match.start()].count(")"):
            continue
        if end is not None and arguments[end:match.start()].strip():
            if not pieces.startswith(("aten::", "prims::")):
                break
            pieces = ""
        pieces, end = pieces + match[1], match.end()
    return pieces


def formats(root):
    for path in sorted(Path(root, "sdk/ops").glob("*/*.c")):
        if path.parent.name == "core":
            continue
        text = path.read_text()
        for match in CALLS.finditer(text):
            arguments = arguments_of(text, match.end() - 1)
            said = format_of(arguments)
            if said and not any(words in arguments for words in NOT_OF_CALLS):
                line = text[:match.start()].count("\n") + 1
                yield f"{path.relative_to(root)}:{line}", match[1], said


def pattern_of(call, said):
    """The whole text behind what names the op, or the argument."""
    parts = CONVERSION.split(said.replace("%%", "%"))
    before = "; expected " if call == "op_refuse" else ": "
    return re.compile(before + "(.*)".join(map(re.escape, parts)) + "$", re.M)


def main():
    root = Path(sys.argv[1])
    said = "\n".join(line for line in (root / "tests/refusals.txt").read_text().splitlines() if line.startswith(" "))
    found = list(formats(root))
    missing = [f"{place}: \"{text}\" is said of no call of tests/refusals.txt" for place, call, text in found
               if text not in BEYOND and not pattern_of(call, text).search(said)]
    reached = [f"BEYOND has \"{text}\", which nothing says" for text in BEYOND
               if text not in [text for _, _, text in found]]
    if missing or reached:
        sys.exit("\n".join(missing + reached))
    print(f"{len(found)} refusals have a call")


if __name__ == "__main__":
    main()
