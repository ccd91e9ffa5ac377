"""Warnings of the package, which never raise: PyTorch, or a driver's start, is in the midst of them; and what is told of
an error that is not raised."""

import sys
import warnings


def warn(text):
    try:
        # One line: with a place in a file Python would print what stands there, too.
        warnings.warn_explicit(f"torch_graft: {text}", RuntimeWarning, "torch_graft", 0)
    except Warning:  # made an error by -W error
        print(f"torch_graft: {text}", file=sys.stderr)


def first_line(error):
    return str(error).split("\n", 1)[0] or type(error).__name__
