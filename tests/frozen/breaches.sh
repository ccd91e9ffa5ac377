#!/usr/bin/env bash
# What holds today's headers to the released minors sees each kind of breach, and lets additions through. Every case is
# an edit of a copy of the headers, or of the op descriptions that headers are generated from.
set -euo pipefail
cd "$(dirname "$0")"
[ "$(uname -m)" = x86_64 ] || { echo "skipped: types are compared with dumps of x86-64"; exit 77; }
newest=$(ls -d v[0-9]* | sort -V | tail -n 1)
tree=$(mktemp -d)
trap 'rm -r "$tree"' EXIT
cases=0 wrong=0

fresh() {
  rm -rf "$tree/plugin_api"
  cp -r ../../plugin_api "$tree/"
  mkdir -p "$tree/tests/abi"
}

# What the check says of the copy must be what is expected: red or green.
judge() { # expected, what was done
  local got=green
  ./additions.sh "$newest" "$tree/plugin_api/include" >"$tree/report" 2>&1 || got=red
  cases=$((cases + 1))
  [ "$got" = "$1" ] && return
  wrong=$((wrong + 1))
  echo "$got where $1 was expected: $2"
  head -n 5 "$tree/report"
}

edit() { # expected, what is done, header, sed script
  fresh
  local header=$tree/plugin_api/include/graft/abi/$3
  sed -i "$4" "$header"
  ! cmp -s "$header" "../../plugin_api/include/graft/abi/$3" || { echo "the edit of $3 did nothing: $2"; exit 1; }
  judge "$1" "$2"
}

edit red 'a slot removed' core_ops.h '/graft_gelu_fn gelu;/d'
edit red 'two slots swapped' core_ops.h 's/graft_cos_fn cos;/graft_sin_fn sin_;/; s/graft_sin_fn sin;/graft_cos_fn cos;/; s/sin_;/sin;/'
edit red 'the type of a slot changed' core_ops.h 's/graft_sin_fn sin;/graft_cos_fn sin;/'
edit red 'an argument removed' core_ops.h 's/^  double p;$//'
edit red 'an argument in the middle' core_ops.h 's/^  graft_args head;$/&\n  int64_t extra;/'
edit red 'the type of an argument changed' core_ops.h 's/^  double p;$/  int64_t p;/'
edit red 'the type of a field changed' memory.h 's/uint64_t bytes;  /int64_t bytes;  /'
edit red 'a field renamed' exec.h 's/uint32_t max_ndim;/uint32_t most_dims;/'
edit red 'a field wider' exec.h 's/uint32_t max_ndim; /uint64_t max_ndim; /'
edit red 'a field of a frozen struct' tensor.h 's/^} graft_scalar;/  int64_t extra;\n&/'
edit red 'a parameter of a function in a table' memory.h 's/(graft_device \*device, graft_buffer \*buffer)/(graft_buffer *buffer)/'
edit red 'the type of a parameter' memory.h 's/uint64_t bytes, graft_copy_flags flags)/int64_t bytes, graft_copy_flags flags)/'
edit red 'a function removed from a table' stream.h '/(\*flush)/d'
edit red 'another type behind a typedef' memory.h 's/^typedef uint32_t graft_copy_flags/typedef int32_t graft_copy_flags/'
edit red 'a status renumbered' base.h 's/GRAFT_FORKED = 9/GRAFT_FORKED = 12/'
edit red 'a status renamed' base.h 's/GRAFT_FORKED/GRAFT_CHILD/'
edit red 'an op id reused' op_ids.h 's/  GRAFT_OP_ABS = [0-9]*,/  GRAFT_OP_ABS = 9999,/'
edit red 'a flag moved' exec.h 's/GRAFT_CAP_EMPTY = 0x40/GRAFT_CAP_EMPTY = 0x2000/'
edit red 'an extension renamed' extension.h 's/"graft.native_handle"/"graft.handle"/'
edit green 'a field at the end of a sized struct' host.h 's/^} graft_host;/  graft_status (*later)(void *context);\n&/'
edit green 'an argument at the end' core_ops.h 's/^} graft_args_relu;/  int64_t later;\n&/'
edit green 'a slot at the end' core_ops.h 's/^} graft_core_ops;/  graft_relu_fn later;\n&/'
edit green 'a status, a flag, a key' base.h 's/  GRAFT_FORKED = 9,/&\n  GRAFT_LATER = 99,/'

# rms_norm, which PyTorch composes, gets a slot: in its place by id, which moves the 83 behind it, and as the last one.
slot_for_rms_norm() { # number
  fresh
  awk -F'\t' -v OFS='\t' -v at="$1" '
    $2 ~ /^[0-9]+$/ && $2 >= at { $2++ }
    $7 ~ /^aten::rms_norm\(/ { $2 = at; $4 = "slot" }
    { print }' ../../plugin_api/ops/train.ops >"$tree/plugin_api/ops/train.ops"
  python3 "$tree/plugin_api/gen/generate.py" >/dev/null
}
next=$(awk -F'\t' '$2 ~ /^[0-9]+$/' ../../plugin_api/ops/train.ops | wc -l)
slot_for_rms_norm $((next - 83))
judge red 'a slot in the middle, and 83 moved'
slot_for_rms_norm "$next"
judge green 'the same slot as the last one'
grep -B 1 '^} graft_train_ops;' "$tree/plugin_api/include/graft/abi/train_ops.h" | grep -q ' rms_norm;' || {
  wrong=$((wrong + 1))
  echo "a new slot is not the last one"
}

# freeze.sh wants every released minor kept, whole.
minors() { # expected, what was done
  local got=green
  GRAFT_FREEZE_ROOT=$tree ./freeze.sh --check >"$tree/report" 2>&1 || got=red
  cases=$((cases + 1))
  [ "$got" = "$1" ] || { wrong=$((wrong + 1)); echo "$got where $1 was expected: $2"; cat "$tree/report"; }
}
fresh
mkdir -p "$tree/tests/frozen"
cp -r v[0-9]* "$tree/tests/frozen"
minors green 'all minors kept'
mkdir -p "$tree/reference_backend_opencl"
echo '"abi_minor": 0,' >"$tree/reference_backend_opencl/opencl.graft.json.in"
minors red 'a manifest of another minor'
rm -r "$tree/reference_backend_opencl"
rm "$tree/tests/frozen/v1.0/values.h"
minors red 'a part of v1.0 missing'
rm -r "$tree/tests/frozen/v1.0"
minors red 'v1.0 missing'
cp -r v1.0 "$tree/tests/frozen"
development=$(sed -n 's/^#define GRAFT_ABI_MINOR //p' "$tree/plugin_api/include/graft/abi/base.h")
sed -i "s/^#define GRAFT_ABI_MINOR .*/#define GRAFT_ABI_MINOR $((development + 1))/" "$tree/plugin_api/include/graft/abi/base.h"
rm -rf "$tree/tests/frozen/v1.$development"
minors red 'the minor in development passed over'

echo "$cases cases, $wrong wrong"
[ $wrong = 0 ]
