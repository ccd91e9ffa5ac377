"""The page of PyTorch's op database: what stays on the device is told from both kinds of runs."""

import op_db_page
import pytest


def row(op, dtype="f32", **counts):
    return {"op": op, "dtype": dtype, "counts": {"forward": counts}, "notes": {}}


def test_what_did_not_fall_back_needs_no_second_run():
    rows = [row("add", right=3), row("eig", right=1, fallback=2), row("eig", "c64", right=3)]
    alone = [row("eig", right=1, refused=2)]
    assert op_db_page.on_the_device(rows, alone) == [rows[0], rows[2], alone[0]]
    with pytest.raises(SystemExit, match="eig f32"):
        op_db_page.on_the_device(rows, [row("eig", "c64", right=3)])


def test_what_was_not_run_is_said():
    pages = ["\n".join(op_db_page.page([row("add", right=3)], [], "2.13.0", "a machine", note)) for note in (None, "Not all.")]
    assert ["not run" in page for page in pages] == [False, True] and "\nNot all.\n" in pages[1]
