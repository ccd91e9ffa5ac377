#!/usr/bin/env bash
# Builds the plugin of every slot kind (kinds.c) against a frozen copy of the headers, for x86-64, to the same bytes each
# time: build_binary.sh VERSION FILE. With --check VERSION nothing is kept: the result must equal the binary in VERSION.
#
# The kept binaries were built with the compiler and linker named below, those of Debian 12; others make other bytes.
set -euo pipefail
cd "$(dirname "$0")"
compiler='gcc (Debian 12.2.0-14+deb12u1) 12.2.0'
linker='GNU ld (GNU Binutils for Debian) 2.40'

build() { # version, file
  gcc -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -O2 -fPIC -fvisibility=hidden -fno-ident \
    -ffile-prefix-map="$PWD=." -I"$1" -shared -nostartfiles -s -Wl,--build-id=none -Wl,-z,nodelete -o "$2" kinds.c -lm
}

if [ "$1" != --check ]; then
  build "$1" "$2"
  exit
fi
for tool in "$compiler:$(gcc --version | head -n 1)" "$linker:$(ld --version | head -n 1)"; do
  [ "${tool%%:*}" = "${tool#*:}" ] || { echo "skipped: this is ${tool#*:}, the binary is of ${tool%%:*}"; exit 77; }
done
made=$(mktemp)
trap 'rm -f "$made"' EXIT
build "$2" "$made"
cmp "$made" "$2/kinds-x86_64.so" || {
  echo "kinds.c no longer makes the binary of $2: what a later minor adds goes under '#if GRAFT_ABI_MINOR >= ...'"
  exit 1
}
echo "the source makes the binary of $2"
