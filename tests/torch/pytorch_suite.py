"""PyTorch's own device-type tests on a Graft device, out of a checkout of PyTorch: pytorch_suite.py --pytorch FOLDER
[--file NAME ...] [--share N] [--limit SECONDS] [--report FILE] [PYTEST OPTIONS]

Each file runs in a process of its own, only its classes for the device. What fails and is explained below counts as
known; anything else is new. Take the checkout of the version that is installed: other versions test other behaviour.
With pytest-xdist and pytest-timeout, `-n 8 --timeout 60` runs eight tests at once, each a minute at most. --share N runs
one test of N, always the same ones: those for which the CRC of the name, without its device, is divisible by N.
Exit status: 0 nothing new failed, 1 something did, 2 no such checkout.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
import zlib

FILES = """test_view_ops test_indexing test_shape_ops test_sort_and_select test_type_promotion test_tensor_creation_ops
    test_scatter_gather_ops test_reductions test_unary_ufuncs test_binary_ufuncs test_torch test_modules test_optim
    test_nn test_autograd test_linalg test_spectral_ops test_sparse""".split()

SHARE = "GRAFT_SUITE_SHARE"  # what the processes of the files are told

# Pattern of a test, and why it fails. A name ends in the device and the dtypes.
KNOWN = {
    "*complex32*": "complex halves are refused",
    "*complex_half*": "complex halves are refused",
    "*chalf*": "complex halves are refused",
    "*sparse*": "most ops on sparse tensors are refused",
    "*quantized*": "quantized tensors are refused",
    "TestIndexing*.test_empty_ndim_index_*": "an error in other words",
    "NumpyTests*.test_broaderrors_indexing_*": "an error in other words",
    "NumpyTests*.test_boolean_assignment_value_mismatch_*": "an error in other words",
    "TestIndexing*.test_index_put_accumulate_large_tensor_*": "8 GiB of the device's memory",
    "TestShapeOps*.test_clamp_raises_arg_errors_*": "an error in other words",
    "TestShapeOps*.test_flip_*float32": "quantized tensors are refused",
    "TestTypePromotion*.test_result_type_*float16*": "complex halves are refused",
    "TestTypePromotion*.test_complex_*": "complex halves are refused",
    "TestTypePromotion*.test_alpha_mismatch_*": "an error in other words",
    "TestTypePromotion*.test_alternate_result_*": "an error in other words",
    "TestTypePromotion*.test_inplace_*": "an error in other words",
    "TestTypePromotion*.test_integer_addcdiv_deprecated_*": "an error in other words",
}


def reason(test):
    return next((why for pattern, why in KNOWN.items() if fnmatch.fnmatch(test, pattern)), None)


def device_name():
    return os.environ.get("GRAFT_TORCH_DEVICE_NAME", "graft")


def pytest_collection_modifyitems(config, items):
    """As a plugin of pytest in the processes of the files: leaves the tests that are in the share."""
    share = int(os.environ[SHARE])
    kept, left_out = [], []
    for item in items:
        in_share = zlib.crc32(item.name.replace(device_name(), "").encode()) % share == 0
        (kept if in_share else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def run(folder, name, limit, share, options):
    """Outcome of each test of a file by name, or "died" or "out of time" for the file where it did not come to its end;
    the message of what failed, by name; what a file that died had said."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        environment = {
            "GRAFT_FALLBACK": "allow",
            **os.environ,
            "PYTORCH_TESTING_DEVICE_FOR_CUSTOM": "privateuse1",
            "PYTORCH_TESTING_DEVICE_ONLY_FOR": "privateuse1",
            "PYTHONFAULTHANDLER": "1",
            "PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
            SHARE: str(share),
        }
        chosen = f"PRIVATEUSE1 or {device_name().upper()}"
        command = [sys.executable, "-m", "pytest", f"{name}.py", "-q", "-k", chosen, "-p", "no:cacheprovider",
                   "-p", "no:warnings", "-p", "pytorch_suite", "--tb=line", f"--junitxml={report}", *options]  # fmt: skip
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {name: "out of time"}, {}, ""
        if not report.exists():
            return {name: "died"}, {}, done.stdout[-2000:] + done.stderr[-2000:]
        outcomes, causes = {}, {}
        for case in xml.parse(report).iter("testcase"):
            test = f"{case.get('classname').rsplit('.', 1)[-1]}.{case.get('name')}"
            kinds = {child.tag for child in case}
            failed = kinds & {"failure", "error"}
            outcomes[test] = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
            causes.update((test, child.get("message", "")[:400]) for child in case if child.tag in failed)
        return outcomes, causes, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pytorch", required=True, type=pathlib.Path)
    parser.add_argument("--file", action="append", help="without .py; all of the list above if none is given")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for a file")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one test of N")
    parser.add_argument("--report", type=pathlib.Path, help="outcomes, and messages of what failed, as JSON")
    arguments, options = parser.parse_known_args()
    folder = arguments.pytorch / "test"
    if not folder.is_dir():
        print(f"{folder}: no such folder; expected the test folder of a checkout of PyTorch", file=sys.stderr)
        return 2
    every, why, new = {}, {}, 0
    print("| file | passed | known | new | skipped | seconds |\n| --- | --- | --- | --- | --- | --- |")
    for name in arguments.file or FILES:
        start = time.monotonic()
        outcomes, causes, text = run(folder, name, arguments.limit, arguments.share, options)
        bad = [test for test, outcome in outcomes.items() if outcome not in ("passed", "skipped")]
        fresh = [test for test in bad if not reason(test)]
        counts = [sum(o == kind for o in outcomes.values()) for kind in ("passed", "skipped")]
        print(f"| {name} | {counts[0]} | {len(bad) - len(fresh)} | {len(fresh)} | {counts[1]} | "
              f"{time.monotonic() - start:.0f} |", flush=True)  # fmt: skip
        for test in fresh:
            print(f"  {outcomes[test]}: {test}", file=sys.stderr)
        if text:
            print(text, file=sys.stderr)
        new += len(fresh)
        every[name] = outcomes
        why[name] = causes
    if arguments.report:
        arguments.report.write_text(json.dumps({"outcomes": every, "causes": why}, indent=1))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
