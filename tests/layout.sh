#!/bin/sh
# Whether clang-format (version 14, as Debian 12 has it) leaves all C and C++ as it is: layout.sh [--write]
cd "$(dirname "$0")/.." || exit 2
tool=$(command -v clang-format-14 || command -v clang-format) || { echo "layout: clang-format 14 is missing" >&2; exit 2; }
case $($tool --version) in
  *"version 14."*) ;;
  *) echo "layout: $($tool --version) lays out otherwise than version 14 (python3 -m pip install clang-format==14.0.6)" >&2; exit 2 ;;
esac
mode='--dry-run -Werror'
[ "$1" = --write ] && mode=-i
# The headers of the ABI are frozen as they are (tests/frozen); generators lay out what they generate.
find plugin_api sdk reference_backend_opencl conformance docs/examples tests \
  \( -path tests/frozen -o -path plugin_api/include/graft/abi -o -name generated -o -name 'build*' \) -prune -o \
  -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) -print | xargs "$tool" $mode
