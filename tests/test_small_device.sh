#!/usr/bin/env bash
# The OpenCL backend on a device that has the least that OpenCL asks of a GPU: test_small_device.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export LD_PRELOAD=$build/tests/plugins/small_device.so
export GRAFT_OPENCL_OPTIMIZE=no # which takes most of the time, and changes nothing that is asked here

fail() {
  echo "test_small_device: $*" >&2
  head -n 40 "$log" >&2
  exit 1
}

says() { # status, a line, options of graft conformance
  local status=0
  "$build/bin/graft" conformance -b opencl --jobs 1 "${@:3}" >"$log" 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: ${*:3}"
  grep -Eq -- "$2" "$log" || fail "no '$2' from: ${*:3}"
}

# Without f64: groups of pointwise calls, whose program has an empty head there, and such that end in a reduction.
says 0 '^3 ops served: [0-9]+ passed' --level mustpass --op aten.relu,aten.amax,aten._softmax --dtype f32
says 3 '^0 ops served: 0 passed; [0-9]+ cases by fallback' --level mustpass --op aten.relu --dtype f64

# Tiles in local memory.
says 0 'ops served: [0-9]+ passed' --family sorting --dtype f32
says 0 'ops served: [0-9]+ passed' --op aten.scatter_add,aten.linalg_qr,aten.linalg_cholesky_ex,aten.linalg_lu_factor_ex

# And of f64 and complex numbers of it, which take twice and four times as much.
export GRAFT_SMALL_F64=1
says 0 '^7 ops served: [0-9]+ passed' --level mustpass --grad no --dtype f64,c128 \
  --op aten.mm,aten.bmm,aten.cholesky_solve,aten.linalg_solve_triangular,aten.linalg_qr,aten.linalg_cholesky_ex,aten.linalg_lu_factor_ex
unset GRAFT_SMALL_F64

# Groups that are too small for the kernels for GPUs.
export GRAFT_SMALL_GROUP=64
says 0 'work-groups have at most 64 work-items: kernels for CPUs run' --op aten.relu,aten.sum.dim_IntList --dtype f32
