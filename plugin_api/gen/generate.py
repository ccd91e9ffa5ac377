#!/usr/bin/env python3
"""Makes the checked-in op tables of the ABI and of the host from plugin_api/ops.

generate.py writes them; generate.py --check says which ones differ from what it would write and exits with 1.
"""

import argparse
import sys
from pathlib import Path

import backend
import headers
import names
import ops as descriptions
import tables
import wrappers
from schema import DescriptionError

ROOT = Path(__file__).resolve().parents[2]


def outputs(ops):
    """Path below the root -> text."""
    abi = "plugin_api/include/graft/abi"
    files = {f"{abi}/{table.name}_ops.h": headers.table_header(table, ops) for table in descriptions.TABLES}
    files |= {
        f"{abi}/op_ids.h": headers.op_ids(ops),
        "tests/abi/generated_offsets.h": headers.offsets(ops),
        "sdk/include/graft/ops.h": wrappers.ops_h(ops),
        "sdk/ops/generated/names.h": names.names_h(ops),
        "sdk/ops/generated/kernels.h": names.kernels_h(ops),
        "sdk/ops/generated/schema.inc": tables.schema_inc(ops),
        "sdk/dispatch/generated/wrappers.c": wrappers.wrappers_c(ops),
        "sdk/ops/generated/inputs.h": wrappers.inputs_h(ops),
        "sdk/ops/generated/fx_ops.h": wrappers.fx_ops_h(ops),
        "reference_backend_opencl/generated/ops.h": backend.ops_h(ops),
        "reference_backend_opencl/generated/signatures.inc": backend.signatures_inc(ops),
    }
    return {path: "\n".join(lines) + "\n" for path, lines in files.items()}


def is_current(path, text):
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; list the files that differ")
    check = parser.parse_args().check
    try:
        files = outputs(descriptions.load(ROOT / "plugin_api/ops"))
    except DescriptionError as error:
        sys.exit(f"generate.py: {error}")
    stale = [path for path, text in files.items() if not is_current(ROOT / path, text)]
    for path in stale:
        print(f"{'differs' if check else 'wrote'}: {path}")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(files[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
