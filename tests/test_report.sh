#!/usr/bin/env bash
# What a report says of a run, and of two: test_report.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
graft=$build/bin/graft
plugin=$build/lib/graft_mutants.so

fail() {
  echo "test_report: $*" >&2
  head -n 30 log >&2
  exit 1
}

run() { # folder, options: status 0 or 1
  "$graft" conformance -b "$plugin" --op 'aten.a*' --report "$@" >log 2>&1 || [ $? = 1 ] || fail "no report $1"
}

says() { # status, extended regular expression, arguments
  local status=0
  "$graft" report "${@:3}" >log 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: report ${*:3}"
  grep -Eq -- "$2" log || fail "no '$2' from: report ${*:3}"
}

run good
run masked -o without=aten::abs
run wrong -o bug=tail
grep -q ' · level smoke · [0-9]* cases in ' wrong/report.html || fail "the page does not say its level"
grep -q '<summary>aten::add.Tensor <span class=dim>[1-9][0-9]* cases</span>' wrong/report.html || fail "no failures by op"
grep -q '<summary>' good/report.html && fail "failures where there are none"
says 0 ': 0 newly failing, 0 newly passing, 0 of coverage lost, 0 won' diff good good
says 1 ' [1-9][0-9]* of coverage lost' diff good masked
grep -Eq '^  pass +-> (fallback|decomposed) +aten.abs.default/f32/33x17/contiguous/uniform/0$' log || fail "abs is not named"
says 0 ' 0 of coverage lost, [1-9][0-9]* won' diff masked good
says 1 ' [1-9][0-9]* newly failing' diff good wrong --html page.html
grep -Eq '^  pass +-> fail +aten.add.Tensor' log || fail "add is not named"
grep -q 'Newly failing: [1-9]' page.html || fail "the page lacks it"
grep -Eq '^  wrong: mutants .*, level smoke, 20.*Z, graft conformance .* -o bug=tail' log || fail "it does not say what was run"
grep -q 'wrong: <code>mutants .*, level smoke, ' page.html || fail "the page does not say what was run"
says 0 ' [1-9][0-9]* newly passing' diff wrong good/results.jsonl

# Ops that take longer; and a case that is gone.
sed 's/"ms":[0-9.e+-]*/"ms":1/' good/results.jsonl >fast.jsonl
sed -e 's/"ms":[0-9.e+-]*/"ms":1/' -e '/"op":"aten::abs"/s/"ms":1/"ms":90/' good/results.jsonl >slow.jsonl
says 0 '^ +[0-9]+\.0 -> +[0-9]+\.0 ms  aten::abs$' diff fast.jsonl slow.jsonl
if grep -q 'ms  aten::acos' log; then fail "acos is no slower"; fi
grep -v 'aten.abs.default/f32/33x17/contiguous' good/results.jsonl >less.jsonl
says 1 'pass +-> not there +aten.abs.default/f32/33x17/contiguous' diff good less.jsonl

# What is compiled together with other calls, by a plugin that takes what is offered, and by one whose answers are wrong.
groups=$build/tests/plugins/groups.so
"$graft" conformance -b "$groups" --op aten.abs,aten.view --report fused >log 2>&1 || fail "no report of groups"
grep -q '"fused":{.*"aten::abs":"both"' fused/results.jsonl || fail "abs is in groups, and the report does not say so"
grep -q '>before, after' fused/report.html || fail "abs is in groups, and the page does not say so"
"$graft" conformance -b "$groups" -o groups=beyond --op aten.abs --report lies >log 2>&1 || fail "no report of lies"
grep -q '"fused":{}' lies/results.jsonl || fail "groups that can't be are reported"
GRAFT_LIE=groups_beyond "$graft" ops -b "$build/tests/plugins/liar.so" --fused >log 2>&1 || fail "no list of a liar's ops"
grep -q 'warning: liar:0: the plugin.s "graft.graph" puts node' log || fail "the lie is not told"
grep -q 'before, after' good/report.html && fail "a plugin without groups has some"

# A group that computes something else is red, whatever its calls give one by one.
GRAFT_LIE=groups_none "$graft" conformance -b "$build/tests/plugins/liar.so" --op aten.neg --level mustpass >log 2>&1 ||
  fail "a right group fails"
GRAFT_LIE=groups_wrong "$graft" conformance -b "$build/tests/plugins/liar.so" --op aten.neg --level mustpass >log 2>&1 &&
  fail "a wrong group passes"
grep -q 'graft case aten.neg.default/f32/33x17/contiguous/uniform/0/grouped' log ||
  fail "the case of the wrong group is not told"

says 2 'nowhere: No such file' diff good nowhere
: >empty.jsonl
says 2 "empty.jsonl: no line: not a report's" diff good empty.jsonl
echo '[1]' >bad.jsonl
says 2 "bad.jsonl:1: no line of a report" diff good bad.jsonl
says 2 'Usage: graft report' diff good
says 2 'Usage: graft report' merge good good

echo "test_report: runs are described and compared"
