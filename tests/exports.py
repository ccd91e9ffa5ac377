#!/usr/bin/env python3
"""Whether libgraft gives out what its headers declare and nothing else: exports.py LIBRARY FOLDER_OF_HEADERS

All symbols carry the version GRAFT_1, and the library is never unmapped (-z nodelete)."""

import subprocess
import sys

import null_calls


def listing(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library, headers = sys.argv[1:]
    symbols = [line.split()[0] for line in listing("nm", "-D", "--defined-only", "-P", library).splitlines()]
    symbols = [s for s in symbols if not s.startswith("GRAFT_1")]  # the name of the version itself
    declared = {function for _, _, function, _, _ in null_calls.declarations(headers)}
    names = {s.split("@")[0] for s in symbols}
    problems = [f"{s} does not carry the version GRAFT_1" for s in symbols if not s.endswith("@@GRAFT_1")]
    problems += [f"{n} is given out, but no public header declares it" for n in sorted(names - declared)]
    problems += [f"{n} is declared, but not given out" for n in sorted(declared - names)]
    if "NODELETE" not in listing("readelf", "-d", library):
        problems.append("the library may be unmapped: link it with -z nodelete")
    print("\n".join(problems[:20] + [f"{len(problems)} problems"] if problems else ["all is as declared"]))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
