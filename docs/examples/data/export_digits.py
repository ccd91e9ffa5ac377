"""Writes digits.bin from scikit-learn's copy of the UCI digits: 1797 records of a label byte and 64 pixel bytes (0 to 16)."""

import pathlib

from sklearn.datasets import load_digits

digits = load_digits()
records = b"".join(
    bytes([int(label)]) + bytes(int(pixel) for pixel in image) for label, image in zip(digits.target, digits.data)
)
pathlib.Path(__file__).with_name("digits.bin").write_bytes(records)
