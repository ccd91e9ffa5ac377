"""Files that the documents name are there: test_named_files.py ROOT

In README.md, CONTRIBUTING.md, docs/ and the README of each folder, `sdk/tensor/copy.c` and the like must exist, and so
must what [links](../sdk/README.md) lead to. `*`, <family> and {a,b} stand for several. In a table whose head is
"file | look at", the names of the second column must stand in the file of the first.
"""

import itertools
import re
import sys
import tempfile
from pathlib import Path

ROOMS = ("plugin_api", "sdk", "reference_backend_opencl", "conformance", "docs", "tests")
PATH = re.compile(rf"`((?:{'|'.join(ROOMS)})/[^`\s]*)`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
WORD = re.compile(r"`(\w+)`")


def pages(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*.md")]
    for room in ROOMS:
        found += [page for page in root.glob(f"{room}/**/README.md") if "template" not in page.parts]
    return [page for page in found if page.exists()]


def alternatives(path):
    """a/{b,c}.h as a/b.h and a/c.h; <family> as *."""
    parts = re.split(r"\{([^}]*)\}", re.sub(r"<\w+>", "*", path))
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def problems(root):
    for page in pages(root):
        route = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{page.relative_to(root)}:{number}"
            for path in PATH.findall(line):
                for one in alternatives(path):
                    if not any(root.glob(one.rstrip("/"))):
                        yield f"{where}: there is no {one}"
            for link in LINK.findall(line):
                if not (page.parent / link).exists():
                    yield f"{where}: the link to {link} leads nowhere"
            cells = [cell.strip() for cell in line.split("|")]
            route = cells[1:3] == ["file", "look at"] or (route and len(cells) > 2)
            file = PATH.fullmatch(cells[1]) if route and len(cells) > 2 else None
            if file and (root / file[1]).exists():
                text = (root / file[1]).read_text(encoding="utf-8")
                for word in WORD.findall(cells[2]):
                    if not re.search(rf"\b{word}\b", text):
                        yield f"{where}: {file[1]} has no {word}"


def self_test():
    """Each kind of breach is seen, and what is right is let through."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "sdk/ops/scan").mkdir(parents=True)
        (root / "sdk/ops/scan/scan.c").write_text("int sum_of(int a);\n")
        (root / "README.md").write_text(
            "`sdk/ops/<family>` `sdk/ops/*/scan.c` `sdk/{ops,ops/scan}` [a](sdk/ops)\n`sdk/gone.c` [b](docs/gone.md)\n"
            "| file | look at | why |\n| --- | --- | --- |\n| `sdk/ops/scan/scan.c` | `sum_of`, `sum` | |\n")
        wanted = ["README.md:2: there is no sdk/gone.c", "README.md:2: the link to docs/gone.md leads nowhere",
                  "README.md:5: sdk/ops/scan/scan.c has no sum"]
        assert list(problems(root)) == wanted, list(problems(root))


self_test()
found = list(problems(Path(sys.argv[1]).resolve()))
print("\n".join(found) or "the documents name files that are there")
sys.exit(bool(found))
