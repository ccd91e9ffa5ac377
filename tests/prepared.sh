#!/usr/bin/env bash
# What the op headers say that the host has prepared is what its rules do: prepared.sh PROGRAM [--write]
set -euo pipefail
program=$1
cd "$(dirname "$0")/.."
kept=plugin_api/ops/prepared.tsv
if [ "${2:-}" = --write ]; then
  "$program" tests/fixtures/data >"$kept.new"
  mv "$kept.new" "$kept"
  exec python3 plugin_api/gen/generate.py
fi
"$program" tests/fixtures/data | diff "$kept" - || {
  echo "$kept says otherwise than the rules do: run tests/prepared.sh $program --write"
  exit 1
}
