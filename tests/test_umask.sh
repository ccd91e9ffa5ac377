#!/usr/bin/env bash
# What is built or installed under any umask works: plugins in libgraft's own folder are trusted as libgraft itself is,
# and what `graft check` says of a plugin is what discovery does with it. test_umask.sh BUILD
set -euo pipefail
build=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
export XDG_DATA_HOME=$work/data GRAFT_CACHE_DIR=none
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS

fail() {
  echo "test_umask: $*" >&2
  exit 1
}

# A Graft as a build or an installer would leave it under a umask: cp and mkdir set modes as compilers and pip do.
tree() { # umask, folder
  (
    umask "$1"
    mkdir -p "$2/bin" "$2/lib/graft/plugins"
    cat "$build/bin/graft" >"$2/bin/graft"
    chmod +x "$2/bin/graft" # as the umask lets it
    cat "$build/tests/plugins/null.so" >"$2/lib/graft/plugins/null.so"
    printf '{"name": "null", "library": "null.so", "abi_major": 1}' >"$2/lib/graft/plugins/null.graft.json"
  )
}

found() { # folder, command before the program: whether the plugin is listed as usable
  local folder=$1
  shift
  "$@" "$folder/bin/graft" backends >"$work/list" 2>&1
  grep -q '^null' "$work/list" && ! grep -q 'not usable' "$work/list"
}

for mask in 022 002 000; do
  tree $mask "$work/$mask"
  found "$work/$mask" || { cat "$work/list" >&2; fail "a plugin beside libgraft is refused under umask $mask"; }
  "$work/$mask/bin/graft" check "$work/$mask/lib/graft/plugins/null.so" --only 'lint.manifest' >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "graft check refuses what discovery takes (umask $mask)"; }
done

# libgraft is not open to others here, its folder of plugins is.
tree 022 "$work/narrow"
chmod 777 "$work/narrow/lib/graft/plugins"
found "$work/narrow" && fail "a folder of plugins that is more open than libgraft is trusted"
"$work/narrow/bin/graft" check "$work/narrow/lib/graft/plugins/null.so" --only 'lint.manifest' >"$work/log" 2>&1 &&
  fail "graft check takes what discovery refuses"
grep -q 'others may write' "$work/log" || { cat "$work/log" >&2; fail "graft check does not say why"; }

# As another user, whose group is not his alone.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  tree 002 "$work/shared"
  chown -R 65534:65534 "$work/shared"
  found "$work/shared" "${other[@]}" || { cat "$work/list" >&2; fail "a user's own tree under umask 002 is refused"; }
  mkdir "$work/path"
  cp -p "$work/shared/lib/graft/plugins"/* "$work/path"
  chmod -R g+w "$work/path"
  chown -R 65534:65534 "$work/path"
  GRAFT_PLUGIN_PATH=$work/path found "$work/narrow" "${other[@]}" && fail "a group of others may write, and it is trusted"
fi
echo "ok"
