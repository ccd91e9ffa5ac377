#!/usr/bin/env bash
# Compiles every ABI header alone under every language standard with gcc and clang, warnings as errors, and the
# offsets of all structs in C and C++. Usage: headers.sh SOURCE_ROOT
set -u
cd "$1"
include=plugin_api/include
warnings="-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only"
failed=0 compiled=0

try() { # compiler, standard, language, file
  compiled=$((compiled + 1))
  if ! "$1" -std="$2" -x "$3" $warnings -I$include -Itests/abi "$4"; then
    echo "FAILED: $1 -std=$2 $4"
    failed=$((failed + 1))
  fi
}

for header in $include/graft/abi/*.h tests/abi/offsets.c; do
  case $header in
    *.h) language=c-header; cpp=c++-header ;;
    *) language=c; cpp=c++ ;;
  esac
  for standard in c99 c11 c17 c2x; do
    # Static assertions came with C11.
    [ "$language $standard" = "c c99" ] && continue
    for compiler in gcc clang; do try $compiler $standard $language "$header"; done
  done
  for standard in c++11 c++14 c++17 c++20; do
    for compiler in g++ clang++; do try $compiler $standard $cpp "$header"; done
  done
  try g++ c++23 $cpp "$header"
  try clang++ c++2b $cpp "$header"
done
for compiler in gcc clang; do try $compiler c11 c tests/abi/dlpack.c; done
echo "$compiled compiled, $failed failed"
[ $failed = 0 ]
