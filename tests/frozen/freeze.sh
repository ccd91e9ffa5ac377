#!/usr/bin/env bash
# Freezes the minor of the ABI that is in development: what is kept of it goes to tests/frozen/vMAJOR.MINOR and never
# changes again:
#
#   graft/abi/*.h      the headers
#   offsets.h          where each member of each struct lies
#   values.h           every enumerator and macro
#   abi.xml.gz         all types, as abidw dumps them
#   kinds-x86_64.so    the plugin of every slot kind (kinds.c), as it was built then
#
# Run once, when a minor is complete; the next change of a header raises GRAFT_ABI_MINOR first. From then on every build
# holds today's headers and today's host against it (CMakeLists.txt here).
#
# With --check nothing is written: it fails where a minor below the one in development is not kept whole, or where the one
# in development is frozen and the headers have moved on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/baseline.sh"
root=${GRAFT_FREEZE_ROOT:-$here/../..} # the tests of this script have a tree of their own
include=$root/plugin_api/include
kept=$root/tests/frozen
number() { sed -n "s/^#define GRAFT_ABI_$1 \([0-9]*\)$/\1/p" "$include/graft/abi/base.h"; }
major=$(number MAJOR) minor=$(number MINOR)
version=v$major.$minor

refuse() {
  echo "freeze: $*" >&2
  exit 1
}

for ((released = 0; released < minor; released++)); do
  for part in graft/abi/plugin.h offsets.h values.h abi.xml.gz kinds-x86_64.so; do
    [ -e "$kept/v$major.$released/$part" ] ||
      refuse "v$major.$released is released, and tests/frozen/v$major.$released/$part is missing; check out the last" \
        "commit of that minor, run freeze.sh there and bring the folder here"
  done
done

for manifest in sdk/cli/template/manifest.graft.json reference_backend_opencl/opencl.graft.json.in; do
  [ ! -e "$root/$manifest" ] || grep -q "\"abi_minor\": $minor," "$root/$manifest" ||
    refuse "$manifest says another abi_minor than $minor"
done

if [ -e "$kept/$version" ]; then
  diff -r "$include/graft/abi" "$kept/$version/graft/abi" ||
    refuse "$version is frozen, and the headers differ from it as shown; a change needs another minor"
  echo "freeze: $version is there already, and equal"
  exit 0
fi
if [ "${1:-}" = --check ]; then
  echo "freeze: $version is in development; all minors before it are kept"
  exit 0
fi
[ "$(uname -m)" = x86_64 ] || refuse "the binary that is kept is one for x86-64; freeze on such a machine"
mkdir -p "$kept/$version/graft"
cp -r "$include/graft/abi" "$kept/$version/graft/abi"
cat "$root/tests/abi/generated_offsets.h" "$root/tests/abi/hand_written_offsets.h" >"$kept/$version/offsets.h"
list_values "$include" "$kept/$version/values.h"
dump_abi "$include" "$kept/$version/abi.xml"
gzip -9n "$kept/$version/abi.xml"
"$here/build_binary.sh" "$kept/$version" "$kept/$version/kinds-x86_64.so"
echo "freeze: $version is kept in tests/frozen/$version"
