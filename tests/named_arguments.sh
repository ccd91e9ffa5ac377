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
[ -z "$found" ] && exit 0
echo "An argument or a result is taken by its number:"
echo "$found"
exit 1
