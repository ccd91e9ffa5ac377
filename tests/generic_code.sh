#!/bin/sh
# What is one op's stands in a row, a flag or a column, not as its id in code that serves all ops; and formulas reach ops
# through their sink only (sdk/ops/core/sink.h). An argument is the root of a tree (this one).
cd "${1:-$(dirname "$0")/..}" || exit 2
status=0
generic="sdk/base sdk/device sdk/memory sdk/tensor sdk/dispatch sdk/autograd sdk/graph sdk/reference sdk/ops/core sdk/torch/csrc
  conformance/run conformance/judge conformance/text sdk/ops/pointwise/rules.c sdk/ops/pointwise/kernels.c"
# Which file may name ops, and why.
reasons="sdk/autograd/leaf.c: gradients are summed by add
sdk/dispatch/copy.c: the device's copy kernel is the slot of _to_copy
sdk/dispatch/tensor_ops.c: what tensor/ asks of ops, a conversion and a negation
sdk/graph/record.c: a copy between tensors is recorded as the op copy
sdk/ops/core/fx.c: short forms of the ops that formulas use most
sdk/ops/core/fx.h: an example in a comment
sdk/torch/csrc/attention.cpp: an op that PyTorch has no boxed way to
sdk/torch/csrc/rnn.cpp: whether libgraft has layers of recurrent networks
sdk/torch/csrc/rnn_layer.cpp: these, for which PyTorch has no op
sdk/torch/csrc/sparse_mm.cpp: products of sparse matrices, for which PyTorch has no overloads of dense tensors
sdk/torch/csrc/stack.cpp: stack, which PyTorch makes of a view of each tensor, and cat"

sources="--include=*.c --include=*.h --include=*.cpp --exclude-dir=generated"
found=$(grep -rnE $sources '\b(GRAFT_OP_[A-Z0-9]\w*|(ARG|OUT)_[a-z]\w*)' $generic | grep -v 'GRAFT_OP_VENDOR_IDS')
excused=$(echo "$reasons" | sed 's/: .*//')
left=$(for file in $excused; do echo "^$file:"; done | { patterns=$(cat); echo "$found" | grep -vE "$(echo $patterns | tr ' ' '|')"; })
if [ -n "$left" ]; then
  printf 'An op is named in code that serves all of them:\n%s\n' "$left"
  status=1
fi
for file in $excused; do
  echo "$found" | grep -q "^$file:" && continue
  echo "$file names no op any more: take it from the list in tests/generic_code.sh"
  status=1
done

past=$(grep -rnE $sources --exclude-dir=core \
  '\b(graft_(call|infer|op_[a-zA-Z0-9_]+|tensor_copy|tensor_to_host|grad_mode[a-z_]*)|tns_(copy|to))\(' sdk/ops)
if [ -n "$past" ]; then
  printf 'A formula does something that its sink does not see:\n%s\n' "$past"
  status=1
fi
exit $status
