"""The Python files of the bridge import each other in one direction: what all need is at the bottom (_device.py), what
puts the parts together at the top (_registration.py). Imports inside functions count, too."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "sdk/torch"


def modules_of(folder, *packages):
    """Name -> file: of the packages, and of the modules beside them."""
    files = [*folder.glob("*.py"), *(path for package in packages for path in (folder / package).rglob("*.py"))]
    return {".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def imports_of(name, path, modules):
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            here = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*here, *filter(None, [node.module])])
            members = {f"{base}.{alias.name}" for alias in node.names}
            found |= {member if member in modules else base for member in members}
    return found & modules.keys() - {name}


def circle_of(modules):
    """The modules of a circle, each importing the next; empty: there is none."""
    try:
        TopologicalSorter({name: imports_of(name, path, modules) for name, path in modules.items()}).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def test_no_circle():
    modules = modules_of(SOURCES, "torch_graft")
    assert {"torch_graft", "torch_graft._registration", "torch_graft_autoload"} <= modules.keys()
    assert not (circle := circle_of(modules)), f"these import each other in a circle: {' -> '.join(circle)}"


@pytest.mark.parametrize(
    "line", ["from p import a", "import p.a", "from .a import x", "from p.a import x", "from . import a"]
)
def test_a_circle_is_found(tmp_path, line):
    package = tmp_path / "p"
    package.mkdir()
    (package / "__init__.py").write_text("from p import a\n")
    (package / "a.py").write_text("from p.b import y\n")
    (package / "b.py").write_text("y = 1\n")
    assert not circle_of(modules_of(tmp_path, "p"))
    (package / "b.py").write_text(f"def late():\n    {line}\n")
    assert set(circle_of(modules_of(tmp_path, "p"))) == {"p.a", "p.b"}
