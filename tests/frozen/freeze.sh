#!/usr/bin/env bash
# Freezes the ABI headers of this minor: copies plugin_api/include/graft/abi to tests/frozen/vMAJOR.MINOR/graft/abi.
#
# Run once, when a minor is complete; the copy is checked in and never changes again. From then on every build compiles
# plugin.c against it and runs the result with today's host. With --check nothing is written: it fails if the headers
# have moved on without their minor.
set -euo pipefail
cd "$(dirname "$0")"
headers=../../plugin_api/include/graft/abi
number() { sed -n "s/^#define GRAFT_ABI_$1 \([0-9]*\)$/\1/p" "$headers/base.h"; }
version=v$(number MAJOR).$(number MINOR)

if [ -e "$version" ]; then
  if diff -r "$headers" "$version/graft/abi"; then
    echo "freeze: $version is there already, and equal"
    exit 0
  fi
  echo "freeze: $version is frozen and differs from $headers as shown; a change needs another minor" >&2
  exit 1
fi
if [ "${1:-}" = --check ]; then
  echo "freeze: $version is not frozen yet"
  exit 0
fi
mkdir -p "$version/graft"
cp -r "$headers" "$version/graft/abi"
echo "freeze: $(find "$version" -type f | wc -l) headers are frozen in tests/frozen/$version"
