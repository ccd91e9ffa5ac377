#!/usr/bin/env bash
# Support that is lost is red: test_expect.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
plugin=$build/lib/graft_mutants.so
id=aten.abs.default/f32/33x17/contiguous/uniform/0

fail() {
  echo "test_expect: $*" >&2
  head -n 20 log >&2
  exit 1
}

# Runs the suite on $ops, or on those that begin with "a", and holds exit status and words against what is expected.
says() { # status, extended regular expression, arguments
  local status=0
  "$build/bin/graft" conformance -b "$plugin" --op "${ops:-aten.a*}" "${@:3}" >log 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: ${*:3}"
  grep -Eq -- "$2" log || fail "no '$2' from: ${*:3}"
}

says 0 '^[0-9]+ ops served: [0-9]+ passed$' --write-expect all
grep -q '^level smoke$' all || fail "no level"
grep '^aten' all >lines
LC_ALL=C sort -c lines || fail "the lines are not sorted"
grep -Eq '^aten::abs f32 contiguous:p+( [a-z/_]+:p+)* transposed:p( [a-z/_]+:p+)* vjp:p' all || fail "no line of abs: $(grep abs all)"
says 0 'ops served' --expect all
if grep 'does not have' log; then fail "it lacks what it was written from"; fi

# A slot that is gone: cases that compose it, or leave the device, are named, with the line that expects them.
line=$(grep -n '^aten::abs f32' all | cut -d: -f1)
says 1 "^fail support was lost: computed by .*all:$line expects the plugin's slot" --expect all -o without=aten::abs
grep -q "graft case $id " log || fail "the case has no name"
says 0 'by fallback, not counted$' -o without=aten::abs --write-expect less
ops=aten.abs says 0 '^1 op served: [0-9]+ passed$' --expect less # more than is expected

# What the suite has no more, and what the file does not have yet.
sed -i "${line}s/ contiguous:/ contiguous:ppp/" all
says 1 "^vanished: aten::abs f32 contiguous: all:$line has 3 cases of it" --expect all
echo 'aten::no_such_op f32 contiguous:p' >>all
says 1 '^vanished: aten::no_such_op f32 contiguous: .* 1 case of it' --expect all
sed -i -e '/no_such_op/d' -e "${line}d" all
says 0 '^all does not have [0-9]+ of these cases yet: --write-expect all' --expect all

# A file that is none, or of another level; nothing is run.
says 2 'all was written at level smoke; run it with --level smoke' --expect all --level full
sed '/^level/d' all >bad
says 2 'bad:[0-9]+: expected .level smoke. or another before the ops' --expect bad
sed 's/contiguous:p/contiguous:q/' all >bad
says 2 "bad:[0-9]+: 'contiguous:q.*': expected a kind of cases" --expect bad
says 2 -- '--expect nowhere: No such file' --expect nowhere
says 2 -- '--write-expect no/where can.t be written: No such file' --write-expect no/where
# Links are followed; what is no file stays what it is; and a choice of cases does not take the place of all.
echo old >linked
ln -s linked link
says 0 '^[0-9]+ ops served: [0-9]+ passed$' --write-expect link
[ -L link ] && grep -q '^level smoke' linked || fail "the link was not followed"
ln -s nowhere dangling
says 2 'dangling can.t be written: it is a symbolic link to nowhere, which is not there' --write-expect dangling
[ -L dangling ] || fail "a file took the place of a link"
mkfifo pipe
says 2 -- '--write-expect pipe can.t be written: it is there and no regular file' --write-expect pipe
says 2 'name another one' --expect all --write-expect all

echo "test_expect: lost support is red"
