#!/usr/bin/env bash
# A project made by `graft new` builds without a warning, passes `graft check`, and its ops give the right numbers:
# against the source tree, and against an installed Graft. test_new.sh SOURCE BUILD
set -euo pipefail
source_dir=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
export GRAFT_CACHE_DIR=$work/cache XDG_DATA_HOME=$work/data
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK
ops=(add.Tensor relu mm)

fail() {
  echo "test_new: $*" >&2
  exit 1
}

quiet() { # runs a command and shows what it printed only if it fails
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "exit status $? of: $*"; }
}

# The numbers of one op: at least one case ran, and on the plugin.
numbers() { # graft, plugin, op
  quiet "$1" conformance -b "$2" --op "aten.$3"
  grep -Eq '^all +[1-9]' "$work/log" || { cat "$work/log" >&2; fail "no case of $3 ran on $2"; }
}

project() { # graft, name of the project, arguments of cmake
  local graft=$1 name=$2 folder=$work/projects/$2 op host
  shift 2
  mkdir -p "$work/projects"
  quiet "$graft" new "$name" "$folder"
  quiet cmake -S "$folder" -B "$folder/build" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror" "$@"
  grep -q '^CMAKE_BUILD_TYPE:.*=Release' "$folder/build/CMakeCache.txt" || fail "kernels are built without optimization"
  quiet cmake --build "$folder/build"
  if "$graft" conformance -b "$folder/build/$name.so" -o nonsense=1 >"$work/log" 2>&1; then fail "took any option"; fi
  grep -q "$name: the option \"nonsense=1\" is not known" "$work/log" || fail "no word on the option"
  GRAFT_FALLBACK=error quiet "$graft" check "$folder/build/$name.so"
  grep -q ' 0 failed' "$work/log" || fail "graft check says nothing of failures"
  grep -q 'skip  lint.filled_in .*"vendor" and "licence"' "$work/log" || fail "no word on what is to be filled in"
  quiet "$graft" check "$folder/build/$name.so"
  if grep 'in host memory' "$work/log"; then fail "graft check left the device"; fi
  sed -i 's/"licence": ""/"licence": "MIT"/; s/"vendor": "you"/"vendor": "we"/' "$folder/build/$name.graft.json"
  quiet "$graft" check "$folder/build/$name.so" --only lint.filled_in
  grep -q 'ok    lint.filled_in' "$work/log" || fail "what was filled in is asked for again"
  cp "$folder/$name.graft.json" "$folder/build/"
  for host in "$build"/tests/frozen_v*_host; do quiet "$host" "$folder/build/$name.so"; done
  for op in "${ops[@]}"; do
    numbers "$graft" "$folder/build/$name.so" "$op"
  done
  # The three ops, and nothing else, are the plugin's.
  local mine
  mine=$("$graft" ops --table core -b "$folder/build/$name.so" | awk -F'\t' '$4 == "plugin" { printf "%s ", $2 }')
  [ "$mine" = "aten::add.Tensor aten::mm aten::relu " ] || fail "the plugin's ops are: $mine"
  # Its own op: in the list, and right forward and backward.
  "$graft" ops --table custom -b "$folder/build/$name.so" >"$work/log"
  grep -q "$name::scale_add	slot	plugin" "$work/log" || fail "graft ops does not name $name::scale_add"
  quiet "$graft" conformance -b "$folder/build/$name.so" --op "$name.*" --level mustpass
  grep -q '^2 ops served' "$work/log" || { cat "$work/log" >&2; fail "not both ops of $name conform"; }
  quiet "$graft" conformance -b "$folder/build/$name.so" --op "$name.scale_add" --grad only
  sed -i 's/grad_y\[i\] = w->alpha/grad_y[i] = 2 * w->alpha/' "$folder/plugin.c"
  quiet cmake --build "$folder/build"
  if "$graft" conformance -b "$folder/build/$name.so" --op "$name.scale_add" >"$work/log" 2>&1; then fail "took a wrong gradient"; fi
  grep -q 'gradient of y' "$work/log" || { cat "$work/log" >&2; fail "no word on the gradient of y"; }
  sed -i 's/grad_y\[i\] = 2 \* w->alpha/grad_y[i] = w->alpha/' "$folder/plugin.c"
  quiet cmake --build "$folder/build"
  echo "test_new: $name: built, checked, ${ops[*]} and its own op conform"
}

# A function of another signature than its slot's does not compile, whatever the compiler: the scaffold's, and that of
# a project of the vendor's own which says no more than find_package.
misfit() { # name of the project, whose file it is, arguments of cmake
  local folder=$work/misfit compiler
  for compiler in gcc clang; do
    rm -rf "$folder"
    cp -r "$work/projects/$1" "$folder"
    rm -rf "$folder/build"
    if [ "$2" = own ]; then
      printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(own LANGUAGES C)' 'find_package(Graft REQUIRED)' \
        'add_library(own MODULE plugin.c)' 'target_link_libraries(own PRIVATE Graft::plugin_api)' >"$folder/CMakeLists.txt"
    fi
    quiet cmake -S "$folder" -B "$folder/build" -DCMAKE_C_COMPILER=$compiler "${@:3}"
    quiet cmake --build "$folder/build"
    sed -i 's/const graft_args_relu \*args/const graft_args_abs *args/' "$folder/plugin.c"
    if cmake --build "$folder/build" >"$work/log" 2>&1; then fail "$compiler took a function of another signature ($2)"; fi
    grep -q 'incompatible' "$work/log" || { cat "$work/log" >&2; fail "$compiler failed for another reason"; }
  done
  echo "test_new: a function of another signature does not compile ($2)"
}

project "$build/bin/graft" demo_chip "-DGRAFT_SOURCE_DIR=$source_dir"
misfit demo_chip scaffold "-DGRAFT_SOURCE_DIR=$source_dir"

quiet cmake --install "$build" --prefix "$work/graft"
graft=$work/graft/bin/graft
project "$graft" installed_chip "-DCMAKE_PREFIX_PATH=$work/graft"
misfit installed_chip own "-DCMAKE_PREFIX_PATH=$work/graft"

# What program NUMBER of its README prints.
pc=$(dirname "$(find "$work/graft" -name graft.pc)")
program() { # name of the project, number
  local folder=$work/projects/$1
  awk -v wanted="$2" '/^```c$/ { inside = ++n == wanted; next } /^```$/ { inside = 0 } inside' "$folder/README.md" >"$work/call.c"
  # shellcheck disable=SC2046 # words
  quiet cc "$work/call.c" -o "$work/call" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs graft) \
    "-Wl,-rpath,$(dirname "$pc")" -Wall -Wextra -Werror
  "$work/call" "$folder/build/$1.so"
}
[ "$(program installed_chip 1)" = "2 2" ] || fail "1 + 0.5 * 2 is not 2"

# With an extension: its checks pass and are not passed over; a graph has its calls in a group and a launch is one of the
# plugin's record, as what a mistake in either makes of the results shows.
grouped="5 2, 3 of 3 calls in a group"
launched="1 0, then 0 4"
extended() { # name of the project, arguments of graft new
  local name=$1 folder=$work/projects/$1 op
  shift
  quiet "$graft" new "$name" "$folder" "$@"
  quiet cmake -S "$folder" -B "$folder/build" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror" "-DCMAKE_PREFIX_PATH=$work/graft"
  quiet cmake --build "$folder/build"
  if grep -n '// @' "$folder"/plugin.c "$folder"/README.md; then fail "a mark of the template is left in $name"; fi
  GRAFT_FALLBACK=error quiet "$graft" check "$folder/build/$name.so"
  cp "$work/log" "$work/checked"
  for op in "${ops[@]}"; do numbers "$graft" "$folder/build/$name.so" "$op"; done
}

mistake() { # name of the project, what stands in plugin.c, what comes in its place
  cp "$work/projects/$1/plugin.c" "$work/whole.c"
  sed -i "s/$2/$3/" "$work/projects/$1/plugin.c"
  if cmp -s "$work/whole.c" "$work/projects/$1/plugin.c"; then fail "no '$2' in plugin.c of $1"; fi
  quiet cmake --build "$work/projects/$1/build"
}

mended() { # name of the project
  cp "$work/whole.c" "$work/projects/$1/plugin.c"
  quiet cmake --build "$work/projects/$1/build"
}

extended graph_chip --graph
grep -Eq 'ok +group.run' "$work/checked" || fail "group.run was passed over"
grep -Eq 'skip +capture.launch' "$work/checked" || fail "it has an extension that was not asked for"
[ "$(program graph_chip 2)" = "$grouped" ] || fail "relu(x + y) + x is not as expected in a group"
quiet "$graft" fuzz -b "$work/projects/graph_chip/build/graph_chip.so" --graphs 1000 --seed 1
grep -Eq '^[1-9][0-9]* calls ran in [1-9]' "$work/log" || { tail -n 3 "$work/log" >&2; fail "the fuzz ran no group"; }
mistake graph_chip 'out\[i\] = add_one(a\[i\], b\[i\], s->factor)' 'out[i] = add_one(a[i], b[i], 2 * s->factor)'
[ "$(program graph_chip 2)" != "$grouped" ] || fail "the calls of the graph ran one by one"
mended graph_chip
mistake graph_chip 'out\[i\] = relu_one(a\[i\])' 'out[i] = a[i]'
if "$graft" check "$work/projects/graph_chip/build/graph_chip.so" >"$work/log" 2>&1; then fail "took a wrong group"; fi
grep -Eq 'FAIL +group.run' "$work/log" || fail "no word on the wrong group"
mended graph_chip
# The tutorial's neg, which no group takes: the check is of an op that one does.
slot='static void run_neg(const void *work) {\n  const relu_work *w = work;\n'
slot+='  for (int64_t i = 0; i < w->n; i++) w->out[i] = -w->a[i];\n}\n'
slot+='static graft_status neg(const graft_exec *exec, const graft_args_neg *args) {\n'
slot+='  const relu_work w = {f32(args->self), f32(args->out), elements(args->out)};\n'
slot+='  return submit(exec->stream, run_neg, \&w, sizeof w);\n}\n'
cp "$work/projects/graph_chip/plugin.c" "$work/whole.c"
sed -i "s/^static graft_status relu(/$slot&/; s/^    .relu = relu,/&\n    .neg = neg,/
  s/^    case GRAFT_OP_ADD_TENSOR:/    case GRAFT_OP_NEG:\n&/" "$work/projects/graph_chip/plugin.c"
[ "$(grep -Ec '^    (.neg = neg,|case GRAFT_OP_NEG:)' "$work/projects/graph_chip/plugin.c")" = 2 ] || fail "no place for a slot of neg in plugin.c"
quiet cmake --build "$work/projects/graph_chip/build"
quiet "$graft" check "$work/projects/graph_chip/build/graph_chip.so"
grep -Eq 'ok +group.run' "$work/log" || fail "group.run was passed over where neg is no part of groups"
mended graph_chip

extended capture_chip --capture
grep -Eq 'ok +capture.launch' "$work/checked" || fail "capture.launch was passed over"
grep -Eq 'skip +group.run' "$work/checked" || fail "it has an extension that was not asked for"
[ "$(program capture_chip 2)" = "$launched" ] || fail "a launch gives something else than relu"
mistake capture_chip 'k \&\& !status; k = k->next) status' 'k \&\& k->next \&\& !status; k = k->next) status'
[ "$(program capture_chip 2)" != "$launched" ] || fail "the calls of the capture were made one by one"
if "$graft" check "$work/projects/capture_chip/build/capture_chip.so" >"$work/log" 2>&1; then fail "took a launch that leaves out work"; fi
grep -Eq 'FAIL +capture.launch' "$work/log" || fail "no word on the launch that leaves out work"
mended capture_chip

extended whole_chip --graph --capture
[ "$(grep -Ec 'ok +(group.run|capture.launch)' "$work/checked")" = 2 ] || fail "one extension was passed over beside the other"
[ "$(program whole_chip 2)" = "$grouped" ] || fail "with both, a graph has no group"
[ "$(program whole_chip 3)" = "$launched" ] || fail "with both, a launch gives something else"
echo "test_new: projects with extensions run groups and records"

# Installed where discovery looks, it is found by its name.
quiet cmake --install "$work/projects/installed_chip/build" --prefix "$work/chip"
GRAFT_PLUGIN_PATH=$(dirname "$(find "$work/chip" -name 'installed_chip.graft.json')")
export GRAFT_PLUGIN_PATH
quiet "$graft" check installed_chip
"$graft" backends >"$work/log"
grep -q '^installed_chip 0.1.0 (you)' "$work/log" || fail "graft backends does not name installed_chip"

# What is there is not written over; a name that C or a manifest can't hold is refused.
if "$graft" new demo_chip "$work/projects/demo_chip" 2>"$work/log"; then fail "a folder was written over"; fi
grep -q 'is there already' "$work/log" || fail "no word on the folder that is there"
for name in Chip 1chip my-chip ../chip ''; do
  if "$graft" new "$name" "$work/projects/refused" >"$work/log" 2>&1; then fail "the name '$name' was taken"; fi
  [ ! -e "$work/projects/refused" ] || fail "the refused name '$name' left a folder"
done

# A disk that is full after some files leaves no half of a project.
if (trap '' XFSZ && ulimit -f 1 && "$graft" new half "$work/projects/half" >/dev/null 2>&1); then
  fail "files larger than the limit were written"
fi
[ ! -e "$work/projects/half" ] || fail "half a project was left"
quiet "$graft" new half "$work/projects/half"
echo "test_new: refusals are refused"
