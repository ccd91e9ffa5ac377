"""Philox 4x32-10 as graft/abi/exec.h maps it to numbers, in numpy: what the C host draws."""

import numpy


def words(seed, offset, count):
    """`count` 32-bit words of the stream from `offset` (a multiple of 4) on."""
    blocks = (count + 3) // 4
    counter = numpy.arange(blocks, dtype=numpy.uint64) + numpy.uint64(offset // 4)
    mask = numpy.uint64(0xFFFFFFFF)
    half = numpy.uint64(32)
    c = [counter & mask, counter >> half, numpy.zeros_like(counter), numpy.zeros_like(counter)]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [
            (p1 >> half) ^ c[1] ^ numpy.uint64(k[0]),
            p1 & mask,
            (p0 >> half) ^ c[3] ^ numpy.uint64(k[1]),
            p0 & mask,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, axis=1).reshape(-1)[:count].astype(numpy.uint32)


def uniform(seed, offset, count):
    """f32 in [0, 1)."""
    return (words(seed, offset, count) >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-24)
