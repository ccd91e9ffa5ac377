"""Every GRAFT_ variable that the code reads stands in docs/environment.md, and none besides: test_environment.py ROOT

In a file that reads the environment, each string that is the name of a variable counts, since names reach getenv through
helpers and constants; in a script, each ${GRAFT_...:-default}.
"""

import re
import sys
import tempfile
from pathlib import Path

PAGE = "docs/environment.md"
ROOMS = ("plugin_api", "sdk", "reference_backend_opencl", "conformance", "docs", "tests", "run")
READS = re.compile(r"\b(?:\w*getenv\(|os\.environ\b)")
STRING = re.compile(r"""["'](GRAFT_[A-Z_]+)["']""")
DEFAULT = re.compile(r"\$\{(GRAFT_[A-Z_]+):?[-=?]")
ROW = re.compile(r"^\|([^|]*)\|", re.M)


def names(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in (".c", ".h", ".cpp", ".py"):
        return STRING.findall(text) if READS.search(text) else []
    return DEFAULT.findall(text) if path.suffix in (".sh", "") else []


def sources(root):
    for room in ROOMS:
        yield from (file for file in [root / room, *root.glob(f"{room}/**/*")] if file.is_file())


def problems(root):
    said = {name for row in ROW.findall((root / PAGE).read_text(encoding="utf-8"))
            for name in re.findall(r"`(GRAFT_\w+)`", row)}
    read = {}
    for file in sources(root):
        if file.name != Path(__file__).name:
            for name in names(file):
                read.setdefault(name, str(file.relative_to(root)))
    for name in sorted(read.keys() - said):
        yield f"{read[name]} reads {name}, which {PAGE} does not name"
    for name in sorted(said - read.keys()):
        yield f"{PAGE} names {name}, which nothing reads"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("docs", "sdk"):
            (root / name).mkdir()
        (root / PAGE).write_text("| variable | |\n| `GRAFT_A`, `GRAFT_B` | `GRAFT_C` |\n| `GRAFT_GONE` | |\n")
        (root / "sdk/a.c").write_text('f(err_getenv("GRAFT_A")); f("GRAFT_C");\n')
        (root / "sdk/b.c").write_text('f("GRAFT_OK");\n')
        (root / "sdk/c.py").write_text('os.environ.get(SWITCH); SWITCH = "GRAFT_B"\n')
        (root / "run").write_text("echo ${GRAFT_D:-1} $GRAFT_E\n")
        wanted = [f"sdk/a.c reads GRAFT_C, which {PAGE} does not name", f"run reads GRAFT_D, which {PAGE} does not name",
                  f"{PAGE} names GRAFT_GONE, which nothing reads"]
        assert list(problems(root)) == wanted, list(problems(root))


self_test()
found = list(problems(Path(sys.argv[1]).resolve()))
print("\n".join(found) or f"{PAGE} names the variables that the code reads")
sys.exit(bool(found))
