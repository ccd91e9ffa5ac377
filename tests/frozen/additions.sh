#!/usr/bin/env bash
# The headers hold nothing but additions to a released minor: additions.sh VERSION [INCLUDE_FOLDER]
#
# Offsets, values and the sizes of frozen structs are asserted by the compiler (today.c); types, parameters and members
# are compared with the dump of that minor, where structs with a size of their own may have grown at their end.
set -euo pipefail
cd "$(dirname "$0")"
. ./baseline.sh
version=$1 include=${2:-../../plugin_api/include}

gcc -std=c11 -fsyntax-only -I"$include" -I"$version" today.c

[ "$(uname -m)" = x86_64 ] || { echo "the dump is one of x86-64: only offsets and values were compared"; exit 0; }
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
gzip -dc "$version/abi.xml.gz" >"$work/then.xml"
dump_abi "$include" "$work/now.xml"
status=0
abidiff --leaf-changes-only --no-show-locs "$work/then.xml" "$work/now.xml" >"$work/report" || status=$?
[ $((status & 3)) = 0 ] || { cat "$work/report"; echo "abidiff failed"; exit 1; }

# What an addition reads like; any other line is a change.
awk '
  /^$/ || /^(Leaf changes|Changed leaf types) summary: / { next }
  /^Removed\/Changed\/Added (functions|variables) summary: 0 Removed, 0 Changed, / { next }
  /^'\''struct [a-z_A-Z0-9]+'\'' changed:$/ { old = -1; next }
  /^  type size changed from [0-9]+ to [0-9]+ \(in bits\)$/ && $7 > $5 { old = $5; next }
  /^  [0-9]+ data member insertions?:$/ { next }
  /^    '\''.*'\'', at offset [0-9]+ \(in bits\)$/ && old >= 0 && $(NF - 2) >= old { next }
  { bad = 1 }
  END { exit bad }
' "$work/report" || { cat "$work/report"; echo "$version: more than additions"; exit 1; }
echo "$version: nothing but additions"
