#!/usr/bin/env bash
# A network that learns digits without libgraft, from BUILD to a table: run.sh BUILD [test]
#
# For each choice of numbers and of what is updated: tiny_record writes the graphs, `graft tiny` makes C sources of
# them, gcc -Os compiles these, and the program learns for 20 epochs, from three drawings of its first weights. It fails
# where quantized numbers cost more than two of a hundred digits. With `test`: a few epochs of all of it, of the graphs
# by libgraft too, and a failure where they don't learn, or not the same.
set -euo pipefail
usage() {
  echo "usage: run.sh BUILD [test], where BUILD is a folder in which Graft and its examples are built" >&2
  exit 2
}
[ $# = 1 ] || { [ $# = 2 ] && [ "$2" = test ]; } || usage
[ -x "$1/bin/graft" ] || usage
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
digits=$here/../data/digits.bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find_program() { find "$build" -name "$1" -type f -perm -u+x -print -quit; }
record=$(find_program tiny_record)
[ -n "$record" ] || usage
flags=(-std=c11 -Os -Wall -Wextra -Werror)

make_program() { # folder, what is updated, numbers, rate, seed
  local folder=$work/$1 name held=()
  mkdir "$folder"
  "$record" "$folder" "${@:2}"
  for name in "$folder"/*.npy; do held+=(--input "$(basename "$name" .npy)=$name"); done
  "$build/bin/graft" tiny "$folder/step.safetensors" --name step "${held[@]}" -o "$folder/step.c" >/dev/null
  "$build/bin/graft" tiny "$folder/predict.safetensors" --name predict -o "$folder/predict.c" >/dev/null
  for name in step predict; do gcc "${flags[@]}" -c "$folder/$name.c" -o "$folder/$name.o"; done
  gcc "${flags[@]}" -I"$here" -I"$folder" "$here/train_tiny.c" "$folder/step.o" "$folder/predict.o" -lm -o "$folder/train"
}

if [ $# = 2 ]; then
  for numbers in f32 i8; do
    make_program $numbers all $numbers
    "$work/$numbers/train" "$digits" 8 90 | tee "$work/source"
    "$(find_program tiny_train_graph)" "$work/$numbers" "$digits" 1 80 | tee "$work/graph"
    cmp <(grep '^epoch 1,' "$work/source") <(grep '^epoch 1,' "$work/graph")
  done
  exit
fi

all_right() { # of a row, in percent
  local seed
  for seed in 1 2 3; do
    make_program "$*-$seed" "$@" $seed >&2
    "$work/$*-$seed/train" "$digits" 20 0 >"$work/said"
    awk '/right$/ { print $1 }' "$work/said"
  done
}
row() { # what is updated, numbers, rate
  local right
  right=$(all_right "$@")
  awk -v row="$1 | $2 | $3" -v right="$(echo $right)" '/^memory/ {
    split(right, r, " ")
    printf "| %s | %d | %d | %.1f %% (%s) |\n", row, $2, $8, (r[1] + r[2] + r[3]) / 3, right
  }' "$work/said"
}
echo "| updated | numbers | rate | bytes of values and gradients | bytes updated | right (of each seed) |"
echo "| --- | --- | ---: | ---: | ---: | ---: |"
for choice in all channels linear biases; do row $choice f32 0.1; done | tee "$work/f32"
for choice in all channels linear biases; do row $choice i8 0.1; done | tee "$work/i8"
row all i8-nearest 0.1
for rate in 0.1 10 100 1000 10000; do row all i8-unscaled $rate; done
awk -F'|' '/^. all/ { split($7, r, " "); lost = r[1] - lost } END { exit (-lost > 2) }' "$work/f32" "$work/i8"
