#!/usr/bin/env python3
"""Writes special_values.inc: what special functions are to all digits of f64, by mpmath with 60 digits. The numbers lie on
both sides of where an implementation may change its method."""

from pathlib import Path

import mpmath as mp

mp.mp.dps = 60


def ndtri(p):
    if p > 0.5:
        return -ndtri(1 - p)
    guess = -mp.sqrt(max(-2 * mp.log(2 * p), mp.mpf("1e-30")))
    return mp.findroot(lambda x: mp.log(mp.ncdf(x)) - mp.log(p), guess)


def scaled(function):
    return lambda x: mp.exp(-abs(x)) * function(x)


def bessel(function, order):
    return lambda x: function(order, x)


SMALL_AND_LARGE = [0.1, 0.75, 1.0, 1.9, 2.1, 4.9, 5.1, 7.9, 8.1, 20, 300]
ROWS = [
    ("igamma", lambda a, x: mp.gammainc(a, 0, x, regularized=True), [
        (0.3, 0.2), (0.5, 1e-3), (1e-5, 0.4), (2.5, 1.05), (30, 28), (30, 45), (100, 5), (250, 251), (9999, 9990),
        (10000.5, 9300), (12000, 10805), (20000, 18400), (1e6, 999000)]),
    ("igammac", lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [
        (0.3, 0.2), (0.5, 1e-3), (1e-5, 0.4), (0.75, 1.05), (2.5, 1.15), (30, 28), (30, 45), (100, 150), (250, 251),
        (9999, 10010), (10000.5, 10990), (12000, 13195), (20000, 21800), (1e6, 1001000)]),
    ("lgamma", lambda x: mp.log(abs(mp.gamma(x))),
     [1e-10, 0.1, 0.5, 0.9, 1.125, 1.5, 2.25, 7.9, 30.3, 1e6, -0.3, -2.5, -20.25]),
    ("digamma", mp.digamma, [1e-8, 0.1, 0.9, 1.25, 2, 5.5, 9.9, 10.1, 1e3, 1e10, -0.3, -3.7]),
    ("special_zeta", mp.zeta, [(1.1, 1), (2, 0.5), (3.5, 10), (20, 3), (1.5, 1000)]),
    ("erfinv", mp.erfinv, [1e-10, 0.3, 0.7, 0.9, 0.999, 1 - 2.0**-40]),
    ("special_erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), [-5, -1, 0.2, 1, 3, 10, 30, 1e5]),
    ("special_ndtri", ndtri, [1e-300, 1e-10, 0.01, 0.13, 0.14, 0.3, 0.6, 0.875, 0.99]),
    ("special_log_ndtr", lambda x: mp.log(mp.ncdf(x)), [-50, -5, -1.5, -0.5, 0.5, 2, 6]),
    ("i0", bessel(mp.besseli, 0), SMALL_AND_LARGE),
    ("special_i1", bessel(mp.besseli, 1), SMALL_AND_LARGE),
    ("special_i0e", scaled(bessel(mp.besseli, 0)), SMALL_AND_LARGE),
    ("special_i1e", scaled(bessel(mp.besseli, 1)), SMALL_AND_LARGE),
    ("special_bessel_j0", bessel(mp.besselj, 0), SMALL_AND_LARGE),
    ("special_bessel_j1", bessel(mp.besselj, 1), SMALL_AND_LARGE),
    ("special_bessel_y0", bessel(mp.bessely, 0), SMALL_AND_LARGE),
    ("special_bessel_y1", bessel(mp.bessely, 1), SMALL_AND_LARGE),
    ("special_modified_bessel_k0", bessel(mp.besselk, 0), SMALL_AND_LARGE),
    ("special_modified_bessel_k1", bessel(mp.besselk, 1), SMALL_AND_LARGE),
    ("special_airy_ai", mp.airyai, [-10, -3, -1, 0.5, 1.2, 2.2, 5, 8.2, 30]),
    ("special_spherical_bessel_j0", lambda x: mp.sin(x) / x, [0.1, 0.49, 0.51, 3]),
]


def line(op, function, given):
    given = given if isinstance(given, tuple) else (given,)
    value = function(*(mp.mpf(number) for number in given))
    numbers = ", ".join(repr(float(number)) for number in given)
    return f'{{"aten::{op}", {len(given)}, {{{numbers}}}, {mp.nstr(value, 21)}L}},'


def main():
    lines = [line(op, function, given) for op, function, numbers in ROWS for given in numbers]
    target = Path(__file__).with_name("special_values.inc")
    target.write_text("/* Made by special_values.py. */\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
