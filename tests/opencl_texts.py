"""What only NVIDIA's driver compiles is parsed here: opencl_texts.py GRAFT DEVICE ROOT

The OpenCL backend runs conformance cases on a device that says it is an H100 and computes nothing (nvidia_device.c), so
that the results are wrong and not looked at: what counts is the text of each program, as the host code puts it together.
Clang reads it as OpenCL C for NVIDIA's machine. An error is one, and so is a macro that is defined anew as something else.
A call that the backend gave up may have had more programs: there is to be none.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Ops whose cases reach all kernels that such a device alone has.
OPS = ["aten.mm", "aten.bmm", "aten._int_mm", "aten._scaled_mm", "aten.convolution*", "aten._scaled_dot_product*",
       "aten.sort"]
# Files of kernels that no other device has: each is to be seen.
FILES = ["*/nvidia*.cl", "core/warps.cl"]
CLANG = ["clang", "-x", "cl", "-cl-std=CL1.2", "--target=nvptx64-nvidia-nvcl", "-fsyntax-only",
         "-cl-no-stdinc", "-D_OPENCL_H_", "-Wno-everything", "-Werror=macro-redefined"]  # they declare what they call
CALL_FAILED = re.compile("[A-Z_]+: ")  # a status, where wrong numbers are expected

TYPES = "typedef unsigned int uint; typedef unsigned long ulong;\n"  # the driver knows them from the first line on


def mistakes(text):
    """What clang says of a program's text; nothing if it is right."""
    said = subprocess.run([*CLANG, "-"], input=TYPES + text, capture_output=True, text=True)
    return said.stderr if said.returncode else ""


def cases_and_texts(graft, device):
    """What became of the cases of OPS, and all programs that they asked for."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": device, "GRAFT_TEXTS": folder, "GRAFT_CACHE_DIR": "none"}
        environment.pop("GRAFT_OPENCL_KERNELS", None)
        subprocess.run([graft, "conformance", "-b", "opencl", "--level", "mustpass", "--jobs", "2",
                        "--op", ",".join(OPS), "--report", f"{folder}/report"],
                       env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, *cases = map(json.loads, Path(folder, "report", "results.jsonl").read_text().splitlines())
        return cases, sorted({file.read_text() for file in Path(folder).glob("*.cl")})


def main():
    graft, device, root = sys.argv[1:]
    kernels = Path(root, "reference_backend_opencl", "kernels")
    cases, texts = cases_and_texts(graft, device)
    given_up = [case for case in cases
                if case["outcome"] not in ("pass", "fail") or CALL_FAILED.match(case.get("text", ""))]
    for case in given_up[:5]:
        print(f"{case['id']}: {case['text']}")
    if given_up or not cases:
        sys.exit(f"{len(given_up)} of {len(cases)} cases did not come to their results")
    wanted = sorted(file for pattern in FILES for file in kernels.glob(pattern))
    missing = [f"no case's program has {file}" for file in wanted if not any(file.read_text() in text for text in texts)]
    if missing:
        sys.exit("\n".join(missing))
    planted = "#define TWICE 1\n#define TWICE 2\n" + texts[0]
    if mistakes(texts[0]) == "" == mistakes(planted):
        sys.exit("a macro that was planted twice was not seen")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [(text, said) for text, said in zip(texts, pool.map(mistakes, texts)) if said]
    for text, said in found[:5]:
        head = "\n".join(line[:120] for line in text.splitlines()[:40])
        print(f"a program for an H100 is wrong:\n{said}\nits head:\n{head}\n")
    if found:
        sys.exit(f"{len(found)} of {len(texts)} programs are wrong")
    print(f"{len(texts)} programs are right")


if __name__ == "__main__":
    main()
