"""The text form of calls (conformance/text/text.h), read into what PyTorch's ops take."""

import re
from typing import NamedTuple

import torch

DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "bool": torch.bool,
          "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "c64": torch.complex64, "c128": torch.complex128}  # fmt: skip
FORMATS = {"'contiguous'": torch.contiguous_format, "'preserve'": torch.preserve_format,
           "'channels_last'": torch.channels_last, "'channels_last_3d'": torch.channels_last_3d}  # fmt: skip
WORDS = {"true": True, "false": False, "_": None}
TENSOR = re.compile(r"([a-z]+\d*)\[([\d,]*)\](?::([\d,]+))?(?:@(\d+))?$")
# What the text form never has.
DROPPED = {"layout", "pin_memory", "device", "non_blocking", "generator"}


class Tensor(NamedTuple):
    dtype: torch.dtype
    sizes: list
    strides: list
    offset: int

    @property
    def extent(self):
        """Elements of its storage."""
        if 0 in self.sizes:
            return self.offset
        return self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))


def integers(text):
    return [int(item) for item in text.split(",")] if text else []


def tensor(match):
    dtype, sizes, strides, offset = match.groups()
    sizes = integers(sizes)
    contiguous = [1] * len(sizes)
    for i in range(len(sizes) - 1, 0, -1):
        contiguous[i - 1] = contiguous[i] * max(1, sizes[i])
    return Tensor(DTYPES[dtype], sizes, integers(strides) or contiguous, int(offset or 0))


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return complex(text.replace("i", "j"))


def value(text):
    if text in WORDS:
        return WORDS[text]
    if text in DTYPES:
        return DTYPES[text]
    if text in FORMATS:
        return FORMATS[text]
    if text.startswith("'"):
        return text.strip("'")
    if match := TENSOR.match(text):
        return tensor(match)
    if text.startswith("{"):
        return [value(item) for item in text.strip("{}").split(";") if item]
    if text.startswith("["):
        return [WORDS.get(item, None) if item in WORDS else number(item) for item in text.strip("[]").split(",") if item]
    return number(text)


def parsed(call):
    """The name, what stands by place and what by name."""
    name, *words = call.split()
    named = [re.match(r"([a-z_0-9]+)=(.+)", word) for word in words]
    places = [value(word) for word, match in zip(words, named) if not match]
    return name, places, {match[1]: value(match[2]) for match in named if match}


def overload(name):
    """aten::add.Tensor, aten::mm"""
    base, _, kind = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), kind or "default")


def arranged(name, places, named):
    """Arguments as the op's schema wants them: by place, and by name."""
    taken = [argument for argument in overload(name)._schema.arguments if argument.name not in DROPPED]
    values = {argument.name: value for argument, value in zip(taken, places)} | named
    positional, keywords = [], {}
    for argument in taken:
        if argument.name not in values:
            continue
        given = values[argument.name]
        if "List[bool]" in str(argument.type) and given is not None:
            given = [bool(item) for item in given]
        if argument.kwarg_only or len(positional) < sum(not other.kwarg_only for other in taken[: taken.index(argument)]):
            keywords[argument.name] = given
        else:
            positional.append(given)
    return positional, keywords
