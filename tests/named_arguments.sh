#!/bin/sh
# Rules, formulas and rows name an op's arguments and results (sdk/ops/generated: ARG_mm_mat2, in_mm, OUT_topk_indices):
# a number in their place is found here. An argument is the root of a tree (this one).
cd "${1:-$(dirname "$0")/..}" || exit 2
number='-?[0-9]+'
found=$(grep -rnE --include='*.c' --include='*.h' --exclude-dir=generated \
  -e "\b(op|vjp|pw|red|norm|check|infer)_[a-z0-9_]+\((c|call|v), $number[,)]" \
  -e "\b(c|call|v|in)->?\.?(args|results|list_results|g|outs|out|out_wanted)\[$number\]" \
  -e "(^|[^a-z_>.])(outs|out|args)\[$number\]" \
  -e "\bwrap\((c|call|v), $number[,)]" -e "->args \+ [0-9]" -e "\bOP_(SAVE|OUT)_[A-Z]+\([0-9]" -e "\.without_grad = .*<<" \
  sdk/ops)
if [ -n "$found" ]; then
  echo "An argument or a result is taken by its number:"
  echo "$found"
  exit 1
fi

# What serves several ops reads fields of their args structs by name (ref_field): a name that none has reads nothing.
unknown=0
names=$(grep -rhoE --include='*.c' --exclude-dir=generated 'ref_field\([a-z]+, .*, &' sdk/ops | grep -oE '"[^"]+"' | tr -d '"' | sort -u)
[ -n "$names" ] || { echo "ref_field is used nowhere: what reads fields by name now?"; exit 1; }
for name in $names; do
  grep -qE "[ *]$name(\[[0-9]+\])?;" plugin_api/include/graft/abi/*_ops.h && continue
  echo "ref_field reads \"$name\", which no args struct has"
  unknown=1
done
exit $unknown
