#!/usr/bin/env bash
# The OpenCL backend on a device without f64, with the kernels for GPUs: test_no_f64.sh BUILD
#
# The head of a group's program is empty there, and what asks for f64 falls back.
set -euo pipefail
build=$(cd "$1" && pwd)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
  echo "test_no_f64: $*" >&2
  head -n 40 "$log" >&2
  exit 1
}

says() { # status, last line, options of graft conformance
  local status=0
  LD_PRELOAD=$build/tests/plugins/no_f64_device.so GRAFT_OPENCL_KERNELS=gpu "$build/bin/graft" conformance -b opencl \
    --level mustpass --jobs 1 "${@:3}" >"$log" 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: ${*:3}"
  grep -Eq -- "$2" "$log" || fail "no '$2' from: ${*:3}"
}

# Groups of pointwise calls, and such that end in a reduction.
says 0 '^3 ops served: [0-9]+ passed' --op aten.relu,aten.amax,aten._softmax --dtype f32
says 3 '^0 ops served: 0 passed; [0-9]+ cases by fallback' --op aten.relu --dtype f64
