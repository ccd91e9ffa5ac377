#!/usr/bin/env python3
"""Calls like those of expect/plans.txt, of other sizes and dtypes: tests/draw_calls.py [SEED [EACH]] prints them.

A number that stands in a call in several places stays one, so that shapes still go together; where they do not, the call is
refused, and `test_opencl_calls --write` leaves it out.
"""

import random
import re
import sys
from pathlib import Path

PLANS = Path(__file__).resolve().parent.parent / "reference_backend_opencl/expect/plans.txt"
MORE = {"mm": 2, "_scaled_dot_product_fused_attention_overrideable": 2}  # of these more, to each call
CONVOLUTIONS = 160
LARGEST = 1 << 22  # elements of a tensor
SHAPE = re.compile(r"\b([a-z]+[0-9]\w*|bool)\[([\d,]*)\]")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
DTYPES = ["f32", "f32", "f32", "bf16", "f16", "f64"]


def other(chance, n):
    """A number about as large; near powers of two, where ways change, more often."""
    if n < 2:
        return n
    drawn = chance.choice([n * 2, n // 2, n + 1, n - 1, n * 3 // 2, n * 4, n * 3 // 4, chance.randint(2, 2 * n)])
    if n > 16 and chance.random() < 0.3:
        drawn = (1 << drawn.bit_length() - 1) + chance.choice([-1, 0, 1])
    return max(1, drawn)


def count_of(sizes):
    count = 1
    for size in filter(None, sizes.split(",")):
        count *= int(size)
    return count


def vary(chance, call):
    """The same call with other numbers, of 2 or more, each everywhere the same, some of them as they were."""
    name, _, words = call.partition(" ")
    numbers = {n: n if chance.random() < 0.4 else str(other(chance, int(n))) for n in sorted(set(NUMBER.findall(words)))}
    words = NUMBER.sub(lambda match: numbers[match[0]], words)
    dtype = chance.choice(DTYPES)
    return f"{name} " + re.sub(r"\bf32\b", dtype, words)


def listed(numbers):
    return f"[{','.join(map(str, numbers))}]"


def convolution(chance):
    """All of its numbers by themselves, groups among them; one in three is a gradient."""
    dims, groups = chance.choice([1, 2, 2, 2, 3]), chance.choice([1, 1, 2, 3, 4, 8])
    batch, into, out = chance.choice([1, 2, 3, 6, 16]), chance.choice([1, 3, 8, 20, 64, 130]), chance.choice([1, 4, 9, 32, 65, 96])
    if dims < 3 and chance.random() < 0.3:  # so deep that it is made in parts
        groups, into, out = chance.choice([1, 2, 3]), chance.choice([200, 256, 320]), chance.choice([64, 96, 130])
    window = [chance.choice([1, 2, 3, 3, 5, 7]) for _ in range(dims)]
    size = [w + chance.choice([0, 3, 6, 13, 27, 60] if dims < 3 else [0, 3, 6]) for w in window]
    stride, padding, dilation = ([chance.choice(of) for _ in range(dims)] for of in ([1, 1, 1, 2, 3], [0, 1, 1, 2], [1, 1, 1, 2]))
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation)]
    results = [(n + 2 * p - r) // s + 1 for n, p, r, s in zip(size, padding, reach, stride)]
    if min(results) < 1:
        return convolution(chance)
    dtype = chance.choice(DTYPES)
    x = f"{dtype}{listed([batch, groups * into, *size])}"
    weight = f"{dtype}{listed([groups * out, into, *window])}"
    grad = f"{dtype}{listed([batch, groups * out, *results])}"
    rest = f"{listed(stride)} {listed(padding)} {listed(dilation)} false {listed([0] * dims)} {groups}"
    if chance.randrange(3) == 0:
        return f"aten::convolution_backward {grad} {x} {weight} [{groups * out}] {rest} [true,true,true]"
    if chance.randrange(4) == 0:  # the other way round
        return f"aten::convolution {grad} {weight} _ {rest.replace('false', 'true')}"
    return f"aten::convolution {x} {weight} _ {rest}"


def calls_of(text):
    return [line for line in text.splitlines() if line and line[0] not in " #" and ":" not in line.partition(" ")[2]]


def main(seed=1, each=1):
    chance, seen = random.Random(seed), set()
    drawn = [convolution(chance) for _ in range(CONVOLUTIONS * each)]
    for call in calls_of(PLANS.read_text()):
        seen.add(call)
        op = call.partition(" ")[0].partition("::")[2]
        drawn += [vary(chance, call) for _ in range(each * MORE.get(op, 1))]
    for call in drawn:
        if call not in seen and all(count_of(sizes) <= LARGEST for _, sizes in SHAPE.findall(call)):
            seen.add(call)
            print(call)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
