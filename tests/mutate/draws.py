"""Which mutants there are: what of the tree is mutated, and what is drawn or named of it."""

import fnmatch
import itertools
import os
import random
import subprocess
from pathlib import Path

import operators
import plan


def files_of(root):
    """The files of the tree, those that nobody has added yet, too, by git or, where it is a copy without git, by what lies
    there."""
    if (root / ".git").exists():
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True, text=True).stdout
        return [name for name in listed.split("\0") if name and (root / name).is_file()]
    return list(files_below(root))


def files_below(root):
    """All files, but those in folders of the root that hold builds: none of the many trees that runs keep there is walked."""
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if not name.startswith("build")]
        yield from (str(Path(folder, name).relative_to(root)) for name in names)


def tracked(root, globs):
    """Files of the tree that are mutated, and match a glob where there is one."""
    for path in files_of(root):
        if plan.kind_of(path) and (not globs or any(fnmatch.fnmatch(path, glob) for glob in globs)):
            yield path


def draw(texts, count, seed):
    """Mutants of texts (path to text), no two alike: a line among all that have a site, an operator, a site."""
    lines = {}
    for path, text in sorted(texts.items()):
        for site in operators.sites(text, plan.is_in_strings(path)):
            lines.setdefault((path, site.line), {}).setdefault(site.operator, []).append(site)
    places, chance, drawn = sorted(lines), random.Random(seed), {}
    most = sum(len(found) for by_operator in lines.values() for found in by_operator.values())
    while len(drawn) < min(count, most):
        path, line = chance.choice(places)
        by_operator = lines[path, line]
        site = chance.choice(by_operator[chance.choice(sorted(by_operator))])
        before = texts[path].split("\n")[line]
        drawn.setdefault((path, line, site.after), {
            "path": path, "line": line + 1, "operator": site.operator, "before": before, "after": site.after})
    return list(drawn.values())


def draw_each(texts, kinds, count, seed):
    """`count` mutants of each kind of files: what draw gives for the files of that kind; the kinds take turns."""
    of_kinds = [draw({path: text for path, text in texts.items() if plan.kind_of(path) == kind}, count, seed)
                for kind in kinds]
    return [mutant for turn in itertools.zip_longest(*of_kinds) for mutant in turn if mutant]


def read_blocks(path):
    """A block a mutant: its file, "- before", "+ after", and what is said of it."""
    for block in path.read_text().split("\n\n") if path.exists() else []:
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) < 3 or not lines[1].startswith("- ") or not lines[2].startswith("+ "):
            raise SystemExit(f"{path}: expected a file, '- before' and '+ after':\n{block}")
        yield lines[0], lines[1][2:].strip(), lines[2][2:].strip(), " ".join(lines[3:])


def read_equivalents(path):
    """Mutants by their key, and why nothing can tell them from what they were made of."""
    found = {}
    for name, before, after, reason in read_blocks(path):
        if not reason:
            raise SystemExit(f"{path}: no reason for\n{name}\n- {before}\n+ {after}")
        found[name, before, after] = reason
    return found


def named(root, path):
    """The mutants that a file names, as equivalent.txt does."""
    for name, before, after, _ in read_blocks(path):
        lines = (root / name).read_text().split("\n")
        at = next((i for i, line in enumerate(lines) if line.strip() == before), None)
        if at is None:
            raise SystemExit(f"{path}: {name} has no line: {before}")
        indent = lines[at][:len(lines[at]) - len(lines[at].lstrip())]
        yield {"path": name, "line": at + 1, "operator": "named", "before": lines[at], "after": indent + after}
