"""From places in built programs to lines of source: what tests/mutate/reached/reached.c wrote down.

A compiler that makes -fsanitize-coverage=trace-pc calls a function at the begin of each basic block. Without its optimizer
a block's code ends where the next call in the function stands, so that the lines of a block are those between. They are read
from the object files, once each; in a program a place is found by its function.
"""

import bisect
import collections
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HOOK = "__sanitizer_cov_trace_pc"
FUNCTION = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
INSTRUCTION = re.compile(r"^ +([0-9a-f]+):\t")
ROW = re.compile(r"^(\S+)\s+(\d+)\s+(0x[0-9a-f]+|0)(?:\s|$)")


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout.splitlines()


def calls_of(lines):
    """Of `objdump -dr`: per function its begin and the calls of the hook, each its address and where it returns to."""
    functions, address, pending = {}, 0, []
    calls = None
    for line in lines:
        function = FUNCTION.match(line)
        if function:
            calls = functions[function[2]] = (int(function[1], 16), [])
            pending = []
            continue
        instruction = INSTRUCTION.match(line)
        if instruction:
            address = int(instruction[1], 16)
            if pending and calls:
                calls[1].append((pending.pop(), address))
        elif HOOK in line and calls:
            pending = [address]
    return functions


def rows_of(lines, name):
    """Of `objdump --dwarf=decodedline`: addresses and lines of one file, in order of address."""
    rows = []
    for line in lines:
        row = ROW.match(line)
        if row:
            rows.append((int(row[3], 16), int(row[2]) if row[1] == name else 0))
    return sorted(rows)


def blocks_of(functions, rows):
    """Per function: where a call returns to, counted from its begin, to the lines of its block."""
    starts = sorted([begin for begin, _ in functions.values()] + [call for _, calls in functions.values() for call, _ in calls])
    addresses, found = [address for address, _ in rows], {}
    for name, (begin, calls) in functions.items():
        blocks = found[name] = {}
        for at, (call, back) in enumerate(calls):
            first = back if at else begin  # the call itself may be of the line before
            following = bisect.bisect_right(starts, call)
            end = starts[following] if following < len(starts) else float("inf")
            low = max(bisect.bisect_right(addresses, first) - 1, 0)
            high = bisect.bisect_left(addresses, end)
            blocks[back - begin] = {line for _, line in rows[low:high] if line}
    return found


def symbols_of(module):
    """Functions of an object, a program or a library: address, name, size, and the name of the file where that is said."""
    file = None
    for line in said("readelf", "-sW", str(module)):
        words = line.split()
        if len(words) < 8 or not words[0].endswith(":"):
            continue
        if words[3] == "FILE":
            file = words[7]
        elif words[3] == "FUNC" and words[6] != "UND":
            yield int(words[1], 16), words[7], int(words[2], 0), file if words[4] == "LOCAL" else None


def read_object(path, source):
    """The blocks of an object file, by name and size of the function."""
    functions = calls_of(said("objdump", "-dr", "--no-show-raw-insn", str(path)))
    blocks = blocks_of(functions, rows_of(said("objdump", "--dwarf=decodedline", str(path)), Path(source).name))
    return {(name, size): blocks[name] for _, name, size, _ in symbols_of(path) if name in blocks}


class Places:
    """`objects`: the object file of each source that counts."""

    def __init__(self, objects, jobs=1):
        self.by_function = collections.defaultdict(list)  # by name and size: sources, each with its blocks
        self.lines = collections.defaultdict(set)  # of each source, all that have code
        self.symbols = {}
        with ThreadPoolExecutor(jobs) as threads:
            for source, blocks in zip(objects, threads.map(lambda source: read_object(objects[source], source), objects)):
                for function, of_function in blocks.items():
                    self.by_function[function].append((source, of_function))
                    self.lines[source].update(*of_function.values())

    def lines_at(self, module, place):
        """(source, line) of all that the place may stand for: files of one name may have functions of one name and size."""
        if module not in self.symbols:
            self.symbols[module] = sorted(symbols_of(module), key=lambda symbol: symbol[0])
        symbols = self.symbols[module]
        at = bisect.bisect_right(symbols, place, key=lambda symbol: symbol[0]) - 1
        if at < 0:
            return
        begin, name, size, file = symbols[at]
        for source, blocks in self.by_function.get((name, size), ()):
            if file is None or Path(source).name == file:
                yield from ((source, line) for line in blocks.get(place - begin, ()))
