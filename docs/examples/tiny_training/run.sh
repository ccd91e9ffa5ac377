#!/usr/bin/env bash
# A network that learns digits without libgraft, from BUILD to a table: run.sh BUILD [test]
#
# For each choice of what is updated: tiny_record writes the graphs, `graft tiny` makes C sources of them, gcc -Os
# compiles these, and the program learns for 20 epochs. With `test`: a few epochs of all of it, of the graphs by libgraft
# too, and a failure where they don't learn.
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

make_program() { # what is updated
  local folder=$work/$1 name held=()
  mkdir "$folder"
  "$record" "$folder" "$1"
  for name in "$folder"/*.npy; do held+=(--input "$(basename "$name" .npy)=$name"); done
  "$build/bin/graft" tiny "$folder/step.safetensors" --name step "${held[@]}" -o "$folder/step.c" >/dev/null
  "$build/bin/graft" tiny "$folder/predict.safetensors" --name predict -o "$folder/predict.c" >/dev/null
  for name in step predict; do gcc "${flags[@]}" -c "$folder/$name.c" -o "$folder/$name.o"; done
  gcc "${flags[@]}" -I"$here" -I"$folder" "$here/train_tiny.c" "$folder/step.o" "$folder/predict.o" -lm -o "$folder/train"
}

if [ $# = 2 ]; then
  make_program all
  "$work/all/train" "$digits" 8 90
  "$(find_program tiny_train_graph)" "$work/all" "$digits" 1 80
  exit
fi
echo "| updated | bytes of values and gradients | bytes updated | right |"
echo "| --- | ---: | ---: | ---: |"
for choice in all linear biases; do
  make_program "$choice"
  "$work/$choice/train" "$digits" 20 0 | awk -v choice="$choice" \
    '/^memory/ { values = $2; updated = $8 } /right$/ { print "| " choice " | " values " | " updated " | " $1 " % |" }'
done
