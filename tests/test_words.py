"""The table of words in docs/conformance.md is what the program prints: test_words.py ROOT GRAFT"""

import re
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\| `(?P<word>\w+)` \| (?P<part>layout|fill|mode|way) \| (?P<meaning>.*) \|$", re.M)


def main(root, graft):
    said = subprocess.run([graft, "conformance", "--words"], check=True, capture_output=True, text=True).stdout
    printed = [tuple(line.split("\t")) for line in said.splitlines()]
    text = (Path(root) / "docs/conformance.md").read_text()
    written = [(row["part"], row["word"], row["meaning"]) for row in ROW.finditer(text)]
    wrong = 0
    for row in printed:
        if row not in written:
            wrong += 1
            print("docs/conformance.md lacks the line\n  | `{1}` | {0} | {2} |".format(*row))
    for row in written:
        if row not in printed:
            wrong += 1
            print("docs/conformance.md: `graft conformance --words` says nothing like\n  | `{1}` | {0} | {2} |".format(*row))
    print(f"{len(printed)} words, {wrong} lines wrong")
    return 1 if wrong or not printed else 0


sys.exit(main(*sys.argv[1:]))
