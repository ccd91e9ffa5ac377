# Sourced by freeze.sh and additions.sh: what of a folder of ABI headers can be compared with another's.
export LC_ALL=C # for the order of names

# Every enumerator and every macro with a value, as assertions. What counts versions may grow.
list_values() { # include folder, file to write
  local folder=$1 names texts work
  work=$(mktemp -d)
  echo '#include "graft/abi/plugin.h"' >"$work/all.c"
  gcc -E -P -I"$folder" "$work/all.c" >"$work/all.i"
  gcc -E -dM -I"$folder" "$work/all.c" | grep -P '^#define GRAFT_\w+ \S' |
    grep -vP 'GRAFT_(NOEXCEPT|EXPORT|\w+_MINOR|\w+_VERSION) ' | sort >"$work/macros"
  texts=$(grep -oP '^#define \KGRAFT_\w+(?= ")' "$work/macros" || true)
  names=$({ grep -oP '\bGRAFT_\w+(?= = )' "$work/all.i"; grep -oP '^#define \KGRAFT_\w+(?= [^"])' "$work/macros"; } | sort -u)
  {
    echo '#include <stdio.h>'
    echo '#include "graft/abi/plugin.h"'
    echo 'int main(void) {'
    for name in $names; do echo "printf(\"GRAFT_ASSERT_VALUE($name, %lld)\\n\", (long long)$name);"; done
    for name in $texts; do echo "printf(\"GRAFT_ASSERT_TEXT($name, \\\"%s\\\")\\n\", $name);"; done
    echo 'return 0; }'
  } >"$work/print.c"
  gcc -I"$folder" -o "$work/print" "$work/print.c"
  "$work/print" >"$2"
  rm -r "$work"
}

# All types as libabigail sees them; the same bytes for the same headers.
dump_abi() { # include folder, file to write
  local work
  command -v abidw >/dev/null || { echo "abidw is missing: install the package abigail-tools" >&2; return 1; }
  work=$(mktemp -d)
  cat >"$work/abi.c" <<'C'
#include "graft/abi/plugin.h"
graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  return host && options && plugin ? GRAFT_INTERNAL : GRAFT_OK;
}
const graft_native_handle_api *graft_native_handle; /* no function of a plugin leads to the tables of extensions */
C
  gcc -g -O0 -shared -fPIC -ffile-prefix-map="$work=." -I"$1" -o "$work/abi.so" "$work/abi.c"
  (cd "$work" && abidw --no-show-locs --no-corpus-path --no-comp-dir-path abi.so) >"$2"
  rm -r "$work"
}
