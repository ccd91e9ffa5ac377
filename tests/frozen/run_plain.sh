#!/usr/bin/env bash
# A plugin built from frozen headers keeps the ABI's rules, and its three ops give the right numbers.
# test.sh GRAFT PLUGIN
set -euo pipefail
graft=$1 plugin=$2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK

run() {
  "$graft" "$@" >"$log" 2>&1 || { cat "$log"; echo "exit status $? of: graft $*"; exit 1; }
}

run check "$plugin"
tail -n 1 "$log"
for op in add.Tensor relu mm; do
  run conformance -b "$plugin" --op "aten.$op"
  grep -E '^all +[1-9]' "$log" || { cat "$log"; echo "no case of $op ran"; exit 1; }
  run ops --table core -b "$plugin" # to a file: grep -q would close a pipe early
  grep -Pq "\taten::\Q$op\E\tslot\tplugin$" "$log" || { echo "$op is not the plugin's"; exit 1; }
done
