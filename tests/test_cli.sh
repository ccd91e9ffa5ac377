#!/usr/bin/env bash
# What the program says to one who does not know it yet: test_cli.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
examples=$(cd "$(dirname "$0")/../docs/examples/data" && pwd)
graft=$build/bin/graft
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
export GRAFT_CACHE_DIR=$work/cache XDG_DATA_HOME=$work/data
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK
cd "$work"

fail() {
  echo "test_cli: $*" >&2
  [ ! -s "$work/log" ] || head -n 20 "$work/log" >&2
  exit 1
}

# Runs the program, and holds its exit status and what it says (on either stream) against what is expected.
says() { # status, extended regular expression, arguments
  local status=0
  "$graft" "${@:3}" >"$work/log" 2>&1 || status=$?
  [ "$status" = "$1" ] || fail "exit status $status, not $1: graft ${*:3}"
  grep -Eq -- "$2" "$work/log" || fail "no '$2' from: graft ${*:3}"
}

one=aten.relu.default/f32/33x17/contiguous/uniform/0

# A command is called what the user typed.
for command in conformance case report bench check warm fuzz graph run tiny new ops backends; do
  says 0 "^Usage: graft $command " "$command" --help
done
says 2 '^Usage: graft conformance ' conformance reference
says 2 '^Usage: graft case ' case one two
says 2 "graft conformance --help" conformance --nonsense

says 2 'how many' fuzz
says 2 "'x' is no number" fuzz --graphs x
says 2 'nonsense' fuzz --graphs 3 -b nonsense
for command in "fuzz --graphs 3" bench warm; do says 2 "-d: '4294967296' is no device number" $command -d 4294967296; done
says 0 '^50 graphs on reference:0, 0 differ from their calls$' fuzz --graphs 50 --seed 7
says 0 '^50 graphs on groups:0, 0 differ from their calls$' fuzz -b "$build/tests/plugins/groups.so" --graphs 50 --seed 7
grep -Eq '^[1-9][0-9]* calls ran in [1-9][0-9]* groups that the plugin compiled$' "$work/log" || fail "no groups in graft fuzz"

# What is lost on its way to a full disk is no success.
for command in ops "conformance --list --op aten.mm" --help --version "ops --help" "conformance --help" "new --usage"; do
  status=0
  "$graft" $command >/dev/full 2>"$work/log" || status=$?
  [ "$status" = 1 ] || fail "exit status $status: graft $command > /dev/full"
  grep -q 'not complete: No space left' "$work/log" || fail "graft $command > /dev/full does not say what happened"
done

# What -b is when it is not given.
for command in conformance case bench ops; do
  "$graft" "$command" --help | tr -s ' \n' ' ' | grep -q "default: [^)]*reference" || fail "$command: which backend is it?"
done

# What counts prints no ops, so that nothing can be added to them.
for options in "-n -c" "-n -s" "-l -c" "-l -s" "-l -n" "-l -t core"; do says 2 'each by itself' ops $options; done
says 0 '^core' ops -n -t core

# Levels: a row each; the reference has whole what a backend begins with.
says 0 '' ops --levels
[ "$("$graft" ops --levels | wc -l)" = 6 ] || fail "graft ops --levels: not a title and five rows"
"$graft" ops --levels | awk -F'\t' '$1 == "0" && $3 == $2 && $2 > 50 {found = 1} END {exit !found}' ||
  fail "the reference lacks ops of level 0"

# Counts: a row a table, in which each overload goes one way, and as many as the list has.
"$graft" ops --counts | awk -F'\t' -v OFS='\t' 'NR > 1 {
  for (i = 3; i <= NF; i++) sum += $i
  if (sum != $2 || NF != 9) bad = 1
  plugin += $3; sum = 0
} END {exit bad || NR < 4 || !plugin}' || fail "graft ops --counts: ways that do not add up"
for table in core prims train; do
  counted=$("$graft" ops --counts | awk -F'\t' -v table=$table '$1 == table {print $2, $3}')
  listed=$("$graft" ops --table $table | awk -F'\t' '{all++} $4 == "plugin" {plugin++} END {print all, plugin + 0}')
  [ "$counted" = "$listed" ] || fail "graft ops --counts: $table has $counted, the list $listed"
done

# A glob that matches no op says which ones are near; one that does says what else leaves nothing.
# A group that the plugin takes and fails to compile is red; one that it refuses to compile is passed over.
says 1 'fail INTERNAL: the plugin takes the calls together and fails to compile them' \
  conformance -b "$build/tests/plugins/groups.so" -o groups=failing --op aten.add.Tensor
says 0 '1 op served: .* passed$' conformance -b "$build/tests/plugins/groups.so" -o groups=refused --op aten.add.Tensor

says 3 'did you mean aten\.relu' conformance -b reference --op 'aten.relo'
says 3 'did you mean .*aten\._softmax' conformance -b reference --op 'aten::softmax.default'
says 3 'did you mean .*aten\.cumsum' conformance -b reference --op 'cumsun*'
says 3 '`graft ops` lists' conformance -b reference --op 'zzzzzzzzzz'
says 3 'no case matches --op, --family, --dtype' conformance -b reference --op 'aten.relu' --dtype c64
says 3 'no case matches .*, --ways and' conformance -b reference --op 'aten.relu' --ways decomposition

# Lists that are given again add up; one pattern stays one.
for op in aten.mm aten.relu; do
  says 0 "^$op\\.default/" conformance --list --op aten.mm --op aten.relu
done
says 2 "one pattern; 'aten.relu' is another one" bench -b reference --op aten.mm --op aten.relu
says 2 'the list is too long' conformance --list --op aten.mm --op "$(printf 'aten.mm,%.0s' {1..600})"

# Options reach the plugin, and what is none is refused.
says 2 "-o: 'x' is no KEY=VALUE" ops -o x
says 2 'option "x=1": the built-in backend has no options' ops -b reference -o x=1
says 2 'the option "shape=round" is not known' ops -b "$build/tests/plugins/groups.so" -o shape=round
says 0 '^core' ops -n -b "$build/tests/plugins/groups.so" -o groups=spread
says 2 'more than 15 options' ops $(printf -- '-o x=%d ' {1..16})

# A list of nothing is told, too, and not among the ids.
says 3 '^no case matches --op .aten\.relo.; did you mean aten\.relu' conformance --list --op 'aten.relo'
says 3 'no case matches --op, --family, --dtype' conformance --list --op 'aten.relu' --dtype c64
[ -z "$("$graft" conformance --list --op 'aten.relo' 2>/dev/null || true)" ] || fail "what is no id is listed"
says 0 '^aten\.relu' conformance --list --op 'aten.relu'

# Only the cases of a file of ids; what is no id of the selection is not passed over in silence.
printf '%s\n' "$one" aten.abs.default/f32/33x17/contiguous/uniform/0 "$one" >"$work/ids"
"$graft" conformance --list --cases "$work/ids" | LC_ALL=C sort | cmp - <(LC_ALL=C sort -u "$work/ids") || fail "other cases than those of --cases"
says 0 '^2 ops served: 2 passed$' conformance -b reference --cases "$work/ids"
says 2 "called 'aten\.abs" conformance -b reference --op aten.relu --cases "$work/ids"
echo nonsense >>"$work/ids"
says 2 "no case of the selection is called 'nonsense'" conformance -b reference --cases "$work/ids"
says 2 "called 'nonsense'" conformance --list --cases "$work/ids"
says 2 'has no id' conformance -b reference --cases /dev/null
says 2 "$work/none: No such file" conformance -b reference --cases "$work/none"
printf '%0400d\n' 0 >"$work/long"
says 2 'no id is as long' conformance -b reference --cases "$work/long"

# Of no case nothing was refused by a plugin.
if grep 'op tables serve none' "$work/log"; then fail "the op tables are blamed for a selection of nothing"; fi

# A file here is not taken for a name, nor the other way round.
touch my_chip.so
for command in conformance bench ops; do
  says 2 'there is such a file here: to open that, give its path, \./my_chip\.so' $command -b my_chip.so
done

# Numbers that would be cut, and a selection of nothing.
says 2 "'4294967296' is no number from 0" conformance -b reference -d 4294967296
says 2 'in 0 s no case is done' conformance -b reference --time-limit 0
says 2 '0 processes run no case' conformance -b reference --jobs 0
says 2 'Is a directory' conformance -b reference --op aten::abs --expect /
says 2 'zz: no check has such a name' check reference --only zz

# What is no list of dtypes, and no plugin.
says 2 'no dtype is called .f33' conformance --dtype f33
says 2 'the list is empty' conformance --dtype ''
says 2 'the list is too long' conformance --dtype "$(printf 'f32,%.0s' {1..100})"
says 2 'unrecognized option' ops --dtype f32
says 2 'not a file' check ./
says 2 'not a file' ops -b ./
: >empty.so
says 2 'empty\.so: the library can.t be loaded' ops -b ./empty.so
says 2 'it is not an ELF file' check ./empty.so

# A report that can't be written is refused before anything is run; one that is cut short leaves nothing that looks whole.
says 2 '^graft conformance: --report empty.so: not a folder' conformance -b reference --report empty.so
says 2 '^graft conformance: --report no/where: No such file' conformance -b reference --report no/where
says 2 'nowhere' conformance -b nowhere --report unused
[ ! -e unused ] || fail "a run that could not begin left a folder"
says 2 '^graft case: --dump empty.so: not a folder' case "$one" -b reference --dump empty.so
says 0 '^dumped to dumped' case aten.add.Tensor/f32/33x17,33x17/contiguous/uniform/0 -b reference --dump dumped
echo mine >dumped/input_of_mine.npy
says 0 '^dumped to dumped' case "$one" -b reference --dump dumped
[ ! -e dumped/input1.npy ] || fail "a case's folder has an input of the one before"
[ -e dumped/input0.npy ] && [ -e dumped/input_of_mine.npy ] || fail "too much was removed from a case's folder"
mkdir full
ln -s /dev/full full/input0.npy
says 1 'full/input0.npy: No space left' case "$one" -b reference --dump full
status=0
(ulimit -f 1 && trap '' XFSZ && exec "$graft" conformance -b reference --report cut) 2>&1 | cat >"$work/log" || status=$?
[ "$status" = 1 ] || fail "half a report: exit status $status"
grep -q '^graft conformance: cut/.* can.t be written: File too large' "$work/log" || fail "no word on the report"
[ -z "$(ls cut)" ] || fail "half a report is left: $(ls cut)"
"$graft" conformance -b reference --level mustpass --report killed >"$work/log" 2>&1 &
run=$!
sleep 1
kill -9 $run
wait $run 2>>"$work/log" || true
[ -z "$(ls killed)" ] || fail "a run that was killed left $(ls killed)"

# Nor does it leave a process, though a plugin never comes back from its opening: all of them hold the pipe open.
mkfifo held
timeout 30 cat held &
reader=$!
GRAFT_LIE=open_hangs "$graft" conformance -b "$build/tests/plugins/liar.so" >"$work/log" 2>&1 8>held &
run=$!
for _ in $(seq 100); do
  grep -q 'liar: opening' "$work/log" && break
  sleep 0.1
done
grep -q 'liar: opening' "$work/log" || fail "the plugin is not opened"
kill -9 $run
wait $run 2>>"$work/log" || true
wait $reader || fail "a process outlives the run that was killed"

# What an implementer costs: parts are counted, views are not.
for line in 'aten::mm slot plugin 1 1.00' 'aten::view host host 0 0.00' 'aten::equal slot decomposition 2 1.25' \
  'aten::trace slot decomposition 1 0.03'; do
  says 0 "$(echo "$line" | sed 's/ /[[:space:]]/g')" ops --cost
done

# What a plugin makes one program of; the reference backend has no such extension.
says 0 "$(printf 'aten::neg\tslot\tplugin\tnone')" ops --fused

# A name that is taken.
says 2 "'reference' already, from libgraft itself" new reference
says 2 "namespace 'aten'; take another name" new aten
[ ! -e reference ] || fail "the refused name left a folder"
for name in all clean install help test; do
  says 2 "^graft new: CMake has a target called '$name'; take another name" new "$name"
  [ ! -e "$name" ] || fail "the refused name left a folder"
done

# A plugin whose manifest can't be read is listed by its file.
mkdir plugins
echo '{"name": ' >plugins/broken.graft.json
GRAFT_PLUGIN_PATH=$work/plugins says 0 '^broken\.graft\.json$' backends
GRAFT_PLUGIN_PATH=$work/plugins says 0 'not usable: it is not valid JSON' backends

# What a plugin offers beyond its slots is said.
mkdir offers
for name in groups recorder; do
  cp "$build/tests/plugins/$name.so" offers/
  echo '{"name": "'$name'", "vendor": "Graft", "version": "1.0.0", "abi_major": 1, "abi_minor": 2, "library": "'$name'.so"}' \
    >offers/$name.graft.json
done
GRAFT_PLUGIN_PATH=$work/offers says 0 '^    groups:0 .*; compiles groups of calls$' backends
GRAFT_PLUGIN_PATH=$work/offers says 0 '^    recorder:0 .*; records captures; has a profiler$' backends
GRAFT_PLUGIN_PATH=$work/offers says 0 '"captures":.*true' backends --json

# A graph as a C source: what can't be written leaves what was there, and nothing beside it.
says 2 'into which file' tiny "$examples/scaled.safetensors"
says 0 '^scaled.c: [0-9]+ bytes of memory for values, 0 of what is updated, 16 of what is only read$' \
  tiny "$examples/scaled.safetensors" -o scaled.c
cp scaled.c before.c
says 1 'no input weight' tiny "$examples/scaled.safetensors" -i weight=random:1 -o scaled.c
says 1 "'2d' can't be a name in C" tiny "$examples/scaled.safetensors" -n 2d -o scaled.c
cmp -s scaled.c before.c || fail "a source that could not be written changed the one that was there"
! compgen -G 'scaled.c.*' >/dev/null || fail "a source that could not be written left a part"
says 1 "nowhere/x.c can't be written: No such file" tiny "$examples/scaled.safetensors" -o nowhere/x.c
# It is written as other files are: through a link, with the mode that was there, to no device, over nothing of the user's.
echo mine >scaled.c.part
chmod 640 scaled.c
ln -s scaled.c linked.c
echo old >scaled.c
says 0 '^linked.c: ' tiny "$examples/scaled.safetensors" -o linked.c
cmp -s scaled.c before.c && [ -L linked.c ] || fail "a source was not written where a link leads to"
[ "$(stat -c %a scaled.c)" = 640 ] || fail "a source has another mode than the one that was there"
[ "$(cat scaled.c.part)" = mine ] || fail "graft tiny wrote over scaled.c.part"
mkfifo pipe.c
says 1 "pipe.c can't be written: it is there and no regular file" tiny "$examples/scaled.safetensors" -o pipe.c
[ -p pipe.c ] || fail "graft tiny replaced a FIFO"
if (ulimit -f 1 && trap '' XFSZ && exec "$graft" tiny "$examples/scaled.safetensors" -o scaled.c) >"$work/log" 2>&1; then
  fail "half a source passes for one"
fi
grep -q "^graft tiny: .*scaled.c can't be written: File too large" "$work/log" || fail "no word on the source that was cut"
cmp -s scaled.c before.c || fail "a source that was cut changed the one that was there"
for words in "" "$work" "$build tset" "$build test more"; do
  status=0
  "$examples/../tiny_training/run.sh" $words >"$work/log" 2>&1 || status=$?
  [ "$status" = 2 ] && [ "$(wc -l <"$work/log")" = 1 ] && grep -q '^usage: run.sh BUILD' "$work/log" ||
    fail "tiny_training/run.sh $words: status $status"
done

# A folder of GRAFT_PLUGIN_PATH that is not there.
GRAFT_PLUGIN_PATH=$work/plugins:$work/plugin says 0 "GRAFT_PLUGIN_PATH: no folder $work/plugin: No such file" backends

# A row that takes too long is given up, as is the one after it.
says 3 '^aten::mm .*NOT_READY: takes more than 0.0001 s; --time-limit' bench --op 'aten.mm' --time-limit 0.0001
[ "$(grep -c NOT_READY "$work/log")" -gt 1 ] || fail "one row alone was given up"
grep -q '8192,8192' "$work/log" && fail "a call that is too large for a processor is timed unasked"
says 3 '^aten::mm bf16\[8192,8192\] bf16\[8192,8192\] +NOT_READY' bench --op 'aten.mm' --large --time-limit 0.0001
says 0 '^aten::add.Tensor f32\[16\] f32\[16\] +[a-z]+ .* us ' bench --op 'aten::add.Tensor' --time-limit 2
says 2 "no number of seconds" bench --time-limit never
says 2 'graft bench: .*nowhere' bench -b nowhere

echo "test_cli: what the program says is as expected"
