"""Warnings of the package, which never raise: PyTorch, or a driver's start, is in the midst of them."""

import sys
import warnings


def warn(text):
    try:
        # One line: with a place in a file Python would print what stands there, too.
        warnings.warn_explicit(f"torch_graft: {text}", RuntimeWarning, "torch_graft", 0)
    except Warning:  # made an error by -W error
        print(f"torch_graft: {text}", file=sys.stderr)
