"""What ./run mutate is asked for."""

import argparse
import os
from pathlib import Path

import plan


def options_of(arguments, description):
    """They are looked at before any work begins, which takes minutes."""
    parser = argparse.ArgumentParser(prog="./run mutate", description=description)
    parser.add_argument("--n", type=int, default=20, metavar="N", help="how many mutants (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="which ones (default 1)")
    parser.add_argument("--paths", default="", metavar="GLOB", help="of files that match one of these, with commas between")
    parser.add_argument("--kinds", default="", metavar="LIST", help=f"N of each of these kinds of files: {','.join(plan.KINDS)}")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="T",
                        help="stop after T seconds; what is being judged then is judged by the next run")
    parser.add_argument("--mutant-seconds", type=float, default=3600, metavar="T",
                        help="a mutant that takes longer is not judged (default 3600)")
    parser.add_argument("--quick-seconds", type=float, default=0, metavar="T",
                        help="give each T seconds at first, and those that nothing killed in them more at the end")
    parser.add_argument("--check-seconds", type=float, default=900, metavar="T",
                        help="a check that takes longer has failed (default 900)")
    parser.add_argument("--checks", default="", metavar="GLOBS",
                        help="only the checks of these names, with semicolons between: 'smoke*'")
    parser.add_argument("--smoke", action="store_true",
                        help="ask of what another check of the OpenCL backend kills whether smoke kills it, too")
    parser.add_argument("--these", metavar="FILE", help="the mutants of a file in the form of equivalent.txt")
    parser.add_argument("--results", metavar="FILE", help="where results are kept (default: in build/mutate, by seed)")
    parser.add_argument("--again", action="store_true", help="judge again what survived or was not judged")
    parser.add_argument("--baseline", action="store_true",
                        help="run the tests and smoke without a mutant first; what fails judges none")
    parser.add_argument("--reach", action="store_true",
                        help="find out first which checks run a line, where it is not known of this tree, and ask only those")
    parser.add_argument("--report", action="store_true", help="run nothing; print what was found so far")
    parser.add_argument("--list", action="store_true", help="run nothing; print the mutants")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="how many mutants at a time (default 1)")
    parser.add_argument("--through", default="", metavar="COMMAND", help="what each command is run by: 'nice -n 19'")
    options = parser.parse_args(arguments)
    if options.n < 1 or options.jobs < 1:
        parser.error("--n and --jobs are 1 at least")
    for name in ("seconds", "mutant_seconds", "check_seconds"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')}: expected more than 0 seconds")
    if options.quick_seconds < 0:
        parser.error("--quick-seconds: expected 0 seconds or more")
    if options.results and Path(options.results).is_dir():
        parser.error(f"--results: {options.results} is a folder; expected a file")
    for kind in filter(None, options.kinds.split(",")):
        if kind not in plan.KINDS:
            parser.error(f"--kinds: there is no kind {kind!r}, but {', '.join(plan.KINDS)}")
    if options.these and not os.path.isfile(options.these):
        parser.error(f"--these: there is no file {options.these}")
    return options
