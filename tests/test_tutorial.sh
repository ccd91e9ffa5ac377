#!/usr/bin/env bash
# Does what a page of docs says, word by word: test_tutorial.sh SOURCE BUILD PAGE
#
# Installs Graft from BUILD into a folder of its own and, in an empty folder, goes through the code blocks in order:
#   sh     is run; a failure of any command fails the test
#   text   must be in what the block before printed: each line, in this order, blanks as one, "…" as anything
#   c      goes where the comment above it says: <!-- file PATH -->, <!-- PATH, at the end -->,
#          <!-- PATH, before: LINE --> (a line that begins so), or <!-- PATH, instead of: LINE -->
set -euo pipefail
source_dir=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
page=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

cmake --install "$build" --prefix "$work/graft" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
lib=$(dirname "$(find "$work/graft" -name 'libgraft.so' | head -n 1)")
export PATH=$work/graft/bin:$PATH LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig CMAKE_PREFIX_PATH=$work/graft
export GRAFT_CACHE_DIR=$work/cache XDG_DATA_HOME=$work/data
unset GRAFT_PLUGIN_PATH GRAFT_PLUGINS GRAFT_FALLBACK

mkdir "$work/tutorial"
cd "$work/tutorial"
python3 - "$source_dir/$page" "$page" <<'PYTHON'
import re
import subprocess
import sys

text = open(sys.argv[1], encoding="utf-8").read().split("\n")
counts = {"sh": 0, "c": 0, "text": 0}


def fail(line, message):
    sys.exit(f"{sys.argv[2]}:{line}: {message}")


def run(line, block):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        fail(line, f"exit status {done.returncode} of\n{block}\n{done.stdout}")
    return done.stdout


def squeeze(line):
    return " ".join(line.split())


def compare(line, block, output):
    have = [squeeze(item) for item in output.split("\n")]
    at = 0
    for wanted in filter(None, map(squeeze, block.split("\n"))):
        pattern = ".*".join(re.escape(part) for part in wanted.split("…"))
        while at < len(have) and not re.fullmatch(pattern, have[at]):
            at += 1
        if at == len(have):
            fail(line, f"this line was not printed:\n  {wanted}\nbut\n{output}")


def place(line, where, block):
    match = re.fullmatch(r"<!-- file (\S+) -->", where)
    if match:
        open(match[1], "w", encoding="utf-8").write(block)
        return
    match = re.fullmatch(r"<!-- (\S+), at the end -->", where)
    if match:
        with open(match[1], "a", encoding="utf-8") as file:
            file.write("\n" + block)
        return
    match = re.fullmatch(r"<!-- (\S+), (before|instead of): (.*) -->", where)
    if not match:
        fail(line, "a c block needs a comment that says where it goes")
    path, how, start = match.groups()
    lines = open(path, encoding="utf-8").read().split("\n")
    hits = [i for i, item in enumerate(lines) if item.startswith(start) or item.strip().startswith(start)]
    if len(hits) != 1:
        fail(line, f"{len(hits)} lines of {path} begin with: {start}")
    lines[hits[0] : hits[0] + (how == "instead of")] = block.rstrip("\n").split("\n")
    open(path, "w", encoding="utf-8").write("\n".join(lines))


output = ""
i = 0
while i < len(text):
    match = re.fullmatch(r"```(\w*)", text[i])
    if not match:
        i += 1
        continue
    begin, kind = i, match[1]
    end = text.index("```", begin + 1)
    block = "\n".join(text[begin + 1 : end]) + "\n"
    if kind == "sh":
        output = run(begin + 2, block)
    elif kind == "text":
        compare(begin + 2, block, output)
    elif kind == "c":
        place(begin + 1, text[begin - 1], block)
    else:
        fail(begin + 1, f"a block of kind '{kind}'; expected sh, text or c")
    counts[kind] += 1
    i = end + 1
if not counts["sh"]:
    sys.exit(f"{sys.argv[2]} has no command")
print(f"{sys.argv[2]} works: " + ", ".join(f"{n} {kind} blocks" for kind, n in counts.items()))
PYTHON
