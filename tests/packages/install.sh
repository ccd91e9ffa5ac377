# Sourced by ./run and the scripts of tests/: says what happens, and installs what lists in this folder name.

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

# Two commands of one tree may be started at once: what both make, one makes.
one_at_a_time() { # file, command
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  (
    flock -n 9 || { say "waiting for another command that works on ${file%.lock}"; flock 9; }
    "$@" 9>&-
  ) 9>"$file"
}

missing_packages() { # list
  grep -v '^#' "$1" | while read -r package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

packages() { # list: Debian packages
  command -v dpkg-query >/dev/null || { say "no dpkg here: install what $1 names yourself"; return; }
  local missing
  missing=$(missing_packages "$1")
  [ -n "$missing" ] || return 0
  local sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || { say "missing, and there is no sudo here; as root: apt-get install $(echo $missing)"; return 1; }
  fi
  say "installing with apt-get: $(echo $missing)"
  $sudo apt-get update -qq >&2
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >&2
}

# A Python environment in a folder of its own. What was installed is noted last, so that an interrupted or outdated one is
# completed.
python_environment() { # folder, list for pip
  one_at_a_time "$1.lock" complete_python_environment "$@"
}

complete_python_environment() {
  local folder=$1 list=$2
  cmp -s "$list" "$folder/installed.txt" && return
  say "making a Python environment: $(grep -v '^[#-]' "$list" | tr '\n' ' ')"
  python3 -m venv "$folder" && "$folder/bin/python" -m pip install -q -r "$list" >&2 && cp "$list" "$folder/installed.txt"
}
