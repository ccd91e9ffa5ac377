#!/usr/bin/env bash
# What graft warm makes, what is kept of it, and what is said while a backend compiles: test_warm.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
graft=$build/bin/graft
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
export GRAFT_CACHE_DIR=$work/cache XDG_DATA_HOME=$work/data POCL_CACHE_DIR=$work/pocl # PoCL keeps compiled kernels, too
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK GRAFT_LOG
cd "$work"

fail() {
  echo "test_warm: $*" >&2
  head -n 20 "$work/log" >&2
  exit 1
}

says() { # status, extended regular expression, arguments
  local status=0
  "$graft" warm "${@:3}" >"$work/log" 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: graft warm ${*:3}"
  grep -Eq -- "$2" "$work/log" || fail "no '$2' from: graft warm ${*:3}"
}

says 0 '^([1-9][0-9]*) calls of \1 made$' -b reference --jobs 2
says 0 '^[1-9][0-9]* calls of [0-9]+ made$' -b reference --op 'aten::add.Tensor' --jobs 3
says 0 '^[1-9][0-9]* calls of [0-9]+ made$' -b reference --op 'aten::add.Tensor' --quiet
says 0 '^this backend counts no programs' -b reference --op 'aten::add.Tensor' --jobs 2
says 3 '^0 calls of 0 made$' -b reference --op nothing
! grep -q 'counts no' "$work/log" || fail "of no call it is said what was compiled"
says 2 'graft warm: .*nowhere' -b nowhere
says 2 "--jobs: '0' is no number from 1 to" --jobs 0
GRAFT_CACHE_DIR=none says 2 'GRAFT_CACHE_DIR=none: what is compiled would not be kept' -b reference

"$graft" backends | grep -q '^opencl' || { echo "test_warm: no OpenCL backend here, the rest is left out"; exit 0; }

# A second run compiles nothing: it finds what the first one kept.
GRAFT_LOG=debug says 0 '[1-9][0-9]* programs compiled, 0 were there already$' -b opencl --op 'aten::*silu*' --jobs 1
count=$(sed -n 's/.*; \([0-9]*\) programs compiled.*/\1/p' log)
# Whoever waits for more than a second is told so, once.
sum=$(sed -n 's/.*compiled .* in \([0-9.]*\) s, after:.*/\1/p' log | awk '{s += 1000 * $1} END {print int(s)}')
told=$(grep -c "compiling kernels for this device; they are kept in $GRAFT_CACHE_DIR/opencl$" log || true)
if [ "$sum" -lt 950 ] || [ "$sum" -gt 1050 ]; then # near a second, what is printed is too coarse
  [ "$told" = $((sum > 1000)) ] || fail "$sum ms of compiling, said $told times"
fi
says 0 "; 0 programs compiled, $count were there already$" -b opencl --op 'aten::*silu*' --jobs 1
! grep -q 'counts no' log || fail "what counts its programs is said not to"
! grep -q 'compiling kernels' log || fail "nothing was compiled"

echo "test_warm: what is compiled once is kept"
