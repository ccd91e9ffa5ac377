"""PyTorch's overloads, as torchgen reads them from the native_functions.yaml that it carries."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import torchgen
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import NativeFunctionsGroup

COMPOSITE_IMPLICIT = "CompositeImplicitAutograd"
COMPOSITES = frozenset({COMPOSITE_IMPLICIT, "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"})


# Words that the file uses as defaults, as PyTorch prints them.
_DEFAULTS = {"Mean": "1", "long": "4", "contiguous_format": "0"}


@dataclass(frozen=True)
class Overload:
    name: str  # "add.Tensor"
    text: str  # the schema, "aten::add.Tensor(...) -> Tensor"
    keys: frozenset  # of dispatch keys that have a kernel of their own
    delegates: bool  # PyTorch makes it from the structured out form
    is_view: bool  # a result is another view of an argument's memory
    generated_out: bool  # an out form that torchgen adds: the functional form, then a copy
    related: tuple = field(default=(), compare=False)  # names of the forms of the same op, its own included

    @property
    def composite_implicit(self):
        return COMPOSITE_IMPLICIT in self.keys

    @property
    def composite(self):
        """Whether PyTorch has a kernel of it for every backend."""
        return self.delegates or bool(self.keys & COMPOSITES)

    @property
    def base(self):
        return self.name.partition(".")[0]


def load():
    """Name -> Overload, of all of ATen."""
    folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
    parsed = parse_native_yaml(folder / "native_functions.yaml", folder / "tags.yaml")
    related = _related(parsed.native_functions)
    overloads = {}
    for function in parsed.native_functions:
        name = str(function.func.name)
        overloads[name] = Overload(
            name=name,
            text=_text(function.func),
            keys=frozenset(str(key) for key, index in parsed.backend_indices.items() if index.has_kernel(function)),
            delegates=function.structured_delegate is not None,
            is_view=function.is_view_op,
            generated_out="generated" in function.tags and function.func.is_out_fn(),
            related=related.get(name, (name,)),
        )
    return overloads


def _text(schema):
    return "aten::" + re.sub(r"=(\w+)\b", lambda match: "=" + _DEFAULTS.get(match[1], match[1]), str(schema))


def _related(functions):
    related = {}
    for group in get_grouped_native_functions(functions):
        if isinstance(group, NativeFunctionsGroup):
            names = tuple(str(function.func.name) for function in group.functions())
            related |= {name: names for name in names}
    return related

