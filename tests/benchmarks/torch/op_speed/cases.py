"""What is timed: the lines of sdk/cli/bench_calls.txt, and compositions.py."""

import functools
import math
import zlib
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import torch

from . import compositions, text
from .adapters import ADAPTERS

ROOT = Path(__file__).resolve().parents[4]
CALLS = ROOT / "sdk" / "cli" / "bench_calls.txt"
OPS = ROOT / "plugin_api" / "ops"
SMALL = 64  # elements of each tensor: nothing but what a call costs
SMALL_GROUP = "small calls"


@dataclass
class Made:
    """A case on a device."""

    new: object  # a call that makes its results
    kept: object = None  # one that writes into results that are there, and returns them
    inputs: list = field(default_factory=list)


@dataclass
class Case:
    key: str  # what tables call it
    op: str
    family: str
    make: object  # device -> Made
    flops: float = 0  # of a call; 0: the bytes of its tensors are what counts
    check: str = "all"  # which results are fixed: all, none, or the number of one
    large: bool = False  # for GPUs
    group: str = ""  # what it is averaged with

    def matches(self, glob):
        base = self.op.removeprefix("aten::").partition(".")[0]
        return any(fnmatch(name, glob) for name in (self.key, self.op, self.op.replace("::", "."), base))


@functools.cache
def families():
    rows = [line.split("\t") for path in OPS.glob("*.ops") for line in path.read_text().splitlines()]
    return {row[6].partition("(")[0]: row[2] for row in rows if len(row) == 7 and not row[0].startswith("#")}


# --- lines ---


def options_of(words):
    """ "flops=2*3 name=a b" -> {"flops": "2*3", "name": "a b"} """
    words, _, name = words.partition("name=")
    options = dict(word.split("=", 1) for word in words.split())
    return {**options, "name": name} if name else options


def values(spec, options, generator, device):
    """A tensor as it is written, the same on every device."""
    low, high = (float(end) for end in options.get("range", "0:1").split(":"))
    if spec.dtype.is_complex:
        flat = torch.view_as_complex(torch.rand(spec.extent, 2, generator=generator)).to(spec.dtype)
    elif spec.dtype.is_floating_point:
        flat = high - (high - low) * torch.rand(spec.extent, generator=generator)
    else:
        flat = torch.randint(int(options.get("below", 2)), (spec.extent,), generator=generator)
    return flat.to(spec.dtype).to(device).as_strided(spec.sizes, spec.strides, spec.offset)


def with_tensors(argument, make):
    if isinstance(argument, text.Tensor):
        return make(argument)
    if isinstance(argument, list) and any(isinstance(item, text.Tensor) for item in argument):
        return [item and make(item) for item in argument]
    return argument


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [tensor for item in value for tensor in tensors_of(item)] if isinstance(value, (list, tuple)) else []


def out_form(schema):
    """The overload that writes into results, where PyTorch has one of its own: what it derives makes new ones and copies."""
    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"))
    for name in packet.overloads():
        form = getattr(packet, name)
        outs = [argument for argument in form._schema.arguments if argument.is_out]
        others = [(argument.name, str(argument.type)) for argument in form._schema.arguments if not argument.is_out]
        wanted = [(argument.name, str(argument.type)) for argument in schema.arguments if argument.name not in text.DROPPED]
        if outs and torch.Tag.generated not in form.tags and others == wanted and len(outs) == len(schema.returns):
            return form, [argument.name for argument in outs]
    return None, []


def quickest(function, base):
    """PyTorch's own binding of an op, which users call, is quicker than torch.ops."""
    for module in (torch, torch._C._nn):
        bound = getattr(module, base, None)
        if type(bound).__name__ == "builtin_function_or_method":
            return [bound, function]
    return [function]


def working(candidates, *args, **kwargs):
    """The first that takes these arguments, and what it answered."""
    for candidate in candidates[:-1]:
        try:
            return candidate, candidate(*args, **kwargs)
        except (TypeError, RuntimeError):
            continue
    return candidates[-1], candidates[-1](*args, **kwargs)


def adapted(function, arguments, keywords):
    return Made(lambda: function(*arguments, **keywords), None, tensors_of([arguments, keywords]))


def bound(name, places, named, options, key, device):
    generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
    made = functools.partial(values, options=options, generator=generator, device=device)
    if "torch" in options:
        arguments = [with_tensors(argument, made) for argument in places]
        return adapted(ADAPTERS[options["torch"]], arguments, {key: with_tensors(v, made) for key, v in named.items()})
    positional, keywords = text.arranged(name, places, named)
    arguments = [with_tensors(argument, made) for argument in positional]
    keywords = {key: with_tensors(argument, made) for key, argument in keywords.items()}
    op = text.overload(name)
    inputs = tensors_of([arguments, keywords])
    if any(argument.name == "device" for argument in op._schema.arguments) and not inputs:
        keywords["device"] = device
    base = op._schema.name.removeprefix("aten::")
    function, results = working(quickest(op, base), *arguments, **keywords)
    form, names = out_form(op._schema)
    kept = form and kept_call(form, names, base, arguments, keywords, results)
    return Made(functools.partial(function, *arguments, **keywords), kept, inputs)


def kept_call(form, names, base, arguments, keywords, results):
    results = tensors_of([results])
    keywords = {name: value for name, value in keywords.items() if name not in text.DROPPED}
    outs = tuple(torch.empty_like(result) for result in results)
    *bindings, _ = quickest(form, base)
    if bindings:
        candidate = functools.partial(bindings[0], *arguments, **keywords, out=outs if len(outs) > 1 else outs[0])
        try:
            candidate()
            return candidate
        except (TypeError, RuntimeError):
            pass
    return functools.partial(form, *arguments, **keywords, **dict(zip(names, outs)))


def specs_of(places, named):
    return [spec for value in [*places, *named.values()] for spec in (value if isinstance(value, list) else [value])
            if isinstance(spec, text.Tensor)]  # fmt: skip


def case_of(line):
    call, _, words = line.partition(" | ")
    options = options_of(words)
    name, places, named = text.parsed(call)
    key = options.get("name") or call.removeprefix("aten::")
    specs = specs_of(places, named)
    small = bool(specs) and all(math.prod(spec.sizes) <= SMALL for spec in specs)
    return Case(
        key=key,
        op=name,
        family=families()[name],
        make=functools.partial(bound, name, places, named, options, key),
        flops=math.prod(float(factor) for factor in options.get("flops", "0").split("*")),
        check=options.get("check", "all"),
        large=options.get("only") == "gpu",
        group=SMALL_GROUP if small else families()[name],
    )


def lines():
    rows = [line for line in CALLS.read_text().splitlines() if line and not line.startswith("#")]
    return [row for row in rows if options_of(row.partition(" | ")[2]).get("torch") != "none"]


# --- both kinds ---


def composed(name, row):
    return Case(
        key=name,
        op=name.split(" ")[0].rstrip(","),
        family=row.family,
        make=lambda device: compose(row, name, device),
        flops=row.flops,
        check=row.check,
        group=SMALL_GROUP if row.small else row.family,
    )


def compose(row, name, device):
    torch.manual_seed(zlib.crc32(name.encode()))
    call, inputs = row.make(device)
    return Made(call, None, tensors_of(inputs))


@functools.cache
def every():
    """All cases by what tables call them."""
    made = [case_of(line) for line in lines()] + [composed(name, row) for name, row in compositions.ROWS.items()]
    by_key = {case.key: case for case in made}
    assert len(by_key) == len(made), "two cases have one name"
    return by_key


def selected(globs, large):
    return [case for case in every().values()
            if (large or not case.large) and (not globs or any(case.matches(glob) for glob in globs))]  # fmt: skip
