#!/usr/bin/env python3
"""Makes what the bridge registers with PyTorch, from torchgen's native_functions.yaml and plugin_api/ops.

generate.py writes the files; generate.py --check says which ones differ from what it would write and exits with 1;
generate.py --route NAME... prints the routes of overloads. Needs torchgen (a part of torch) of TORCH and PyYAML.
"""

import argparse
import sys
from importlib.metadata import version

import aten
import emit
import routes
import rows
from rows import ROOT, DescriptionError, descriptions

TORCH = "2.13"  # the PyTorch that the op descriptions follow; the bridge passes over what an older one has not


def outputs(overloads, table, ways, by_hand):
    """Path below the root -> lines."""
    generated = "sdk/torch/csrc/generated"
    return {
        f"{generated}/registrations.inc": emit.registrations(table),
        f"{generated}/hot_kernels.h": emit.hot_kernels(overloads),
        f"{generated}/refusals.inc": emit.refusals(ways),
        "docs/pytorch_routes.md": emit.page(overloads, table, ways, by_hand),
    }


def is_current(path, text):
    return path.is_file() and path.read_text(encoding="utf-8") == text


def write_or_check(files, check):
    """How many files differ."""
    texts = {ROOT / path: "\n".join(lines) + "\n" for path, lines in files.items()}
    stale = [path for path, text in texts.items() if not is_current(path, text)]
    for path in stale:
        print(f"{'differs' if check else 'wrote'}: {path.relative_to(ROOT)}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
    return len(stale)


def print_routes(names, table, ways):
    for name in names:
        route = ways.get(name.removeprefix("aten::").removesuffix(".default"))
        row = table.get(name.removeprefix("aten::").removesuffix(".default"))
        what = row.op.schema.qualified_name if row else route and (route.layout or route.owner)
        print(f"{name}: {route.kind if route else 'no overload of this name'}{f' ({what})' if what else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; list the files that differ")
    parser.add_argument("--route", nargs="+", metavar="NAME", help="print the routes of these overloads")
    options = parser.parse_args()
    if not version("torch").startswith(TORCH + "."):
        sys.exit(f"generate.py: torchgen of PyTorch {TORCH} is needed, this is {version('torch')}")
    try:
        overloads = aten.load()
        by_hand = routes.hand_written(ROOT / "sdk/torch/csrc")
        table = rows.make(overloads, descriptions.load(ROOT / "plugin_api/ops"), by_hand)
        ways = routes.make(overloads, table, by_hand)
        files = outputs(overloads, table, ways, by_hand)
    except DescriptionError as error:
        sys.exit(f"generate.py: {error}")
    if options.route:
        print_routes(options.route, table, ways)
        return 0
    stale = write_or_check(files, options.check)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
