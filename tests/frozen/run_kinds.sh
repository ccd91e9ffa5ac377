#!/usr/bin/env bash
# A plugin of every slot kind keeps the ABI's rules, is sent what its capabilities ask for, and its ops give the right
# numbers: run_kinds.sh GRAFT KINDS_TEST PLUGIN. The kept binaries are for x86-64.
set -euo pipefail
graft=$1 kinds_test=$2 plugin=$3
case $plugin in
  *-x86_64.so) [ "$(uname -m)" = x86_64 ] || { echo "skipped: $plugin is not for $(uname -m)"; exit 77; } ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK

run() {
  "$@" >"$log" 2>&1 || { cat "$log"; echo "exit status $? of: $*"; exit 1; }
}

run "$graft" check "$plugin"
tail -n 1 "$log"
run "$kinds_test" "$plugin"
tail -n 1 "$log"
ops="add.Tensor relu mm mul.Tensor clamp sum.dim_IntList cat index.Tensor nonzero gelu argmax native_dropout
  native_layer_norm_backward arange.start_step _foreach_add.ScalarList _fused_sgd rrelu_with_noise sin"
for op in $ops; do
  run "$graft" conformance -b "$plugin" --level mustpass --dtype f32 --op "aten.$op"
  grep -E '^all +[1-9]' "$log" || { cat "$log"; echo "no case of $op ran"; exit 1; }
done
