#!/usr/bin/env bash
# Compiles every ABI header alone under every language standard with gcc and clang, warnings as errors, the offsets of
# all structs in C and C++, and functions that may throw against the tables. Usage: headers.sh SOURCE_ROOT
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

# noexcept.cpp: expected, which function throws, more definitions
noexcept() {
  for compiler in g++ clang++; do
    local got=good
    compiled=$((compiled + 1))
    $compiler -std=c++17 $warnings -I$include -DTHROWS="$2" ${3:-} tests/abi/noexcept.cpp >/dev/null 2>&1 || got=bad
    [ $got = "$1" ] && continue
    echo "FAILED: $compiler -std=c++17 -DTHROWS=$2 ${3:-} noexcept.cpp is $got; expected $1"
    failed=$((failed + 1))
  done
}
noexcept bad 1
for table in 0 2 3 4 5 6; do noexcept good $table; done
noexcept good 0 -DGRAFT_STRICT_NOEXCEPT
for table in 1 2 3 4 5 6; do noexcept bad $table -DGRAFT_STRICT_NOEXCEPT; done
echo "$compiled compiled, $failed failed"
[ $failed = 0 ]
