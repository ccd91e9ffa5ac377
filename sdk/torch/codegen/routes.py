"""The one way that each overload of PyTorch goes on a device of Graft."""

import re
from dataclasses import dataclass
from pathlib import Path

from rows import DescriptionError

SLOT, HOST, COMPOSITE, CPU, OTHER_KEY, REFUSED = "slot", "host", "composite", "CPU", "other key", "refused"

# Made on the CPU of a dense tensor, or taken by a kernel of the CPU, but nothing for a device of Graft.
_REFUSED_THOUGH_ON_CPU = {
    "sparse": r"_to_sparse(_\w+)?|_spdiags|sspaddmm",
    "nested": r"_nested_(from_padded|tensor_from_mask|view_from_buffer)",
    "quantized": r"quantize_per_\w+|_make_per_\w+_quantized_tensor|_empty_\w*affine_quantized",
    "MKL-DNN": r"to_mkldnn|mkldnn_rnn_layer(_backward)?",
}
_KEYS_OF_LAYOUT = {"sparse": "Sparse", "nested": "NestedTensor", "quantized": "Quantized", "MKL-DNN": "Mkldnn"}

# What is left to the CPU's kernels, and why: the first pattern that holds for an overload's name.
CPU_REASONS = (
    ("PyTorch's own tests call it, no program does", r"_foobar|_test_\w+"),
    ("its name says the CPU: other devices have another op for it",
     r"\w+_for_cpu(_backward)?|_dyn_quant_\w+|_fused_sdp_choice"),
    ("a part of another op, which the device has whole", r"_cummin_helper"),
    ("a distribution whose numbers the ABI does not specify yet", r"poisson|binomial|_sample_dirichlet|_dirichlet_grad"),
    ("of nested or jagged tensors; Graft's are dense", r"_nested_\w+|_jagged_\w+|_padded_dense_to_jagged_forward"),
    ("forward-mode derivatives are not claimed", r"glu_jvp|glu_backward_jvp"),
    ("what it makes is on the CPU: a mapped file, a token without a value", r"from_file|_make_dep_token"),
    ("no op of Graft yet", r"hash_tensor|_fused_moving_avg_obs_fq_helper|_scaled_mm_v2|_upsample_lanczos2d_aa(_backward)?"),
)


@dataclass(frozen=True)
class Route:
    kind: str
    layout: str = ""  # refused: the layout that Graft has not,
    owner: str = ""  # or the device types that PyTorch has the op for
    reason: str = ""  # CPU: why


def hand_written(csrc):
    """Overload -> the file that registers it."""
    block = re.compile(r"^TORCH_LIBRARY_IMPL\(aten, PrivateUse1, m\) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
    files = {}
    for path in sorted(Path(csrc).glob("*.cpp")):
        for body in block.findall(path.read_text(encoding="utf-8")):
            for name in re.findall(r'm\.impl\("([\w.]+)"', body):
                if name in files:
                    raise DescriptionError(f"{name} is registered by {files[name]} and by {path.name}")
                files[name] = path.name
    return files


def make(overloads, rows, by_hand):
    """Name -> Route, for every overload; an overload without one is an error."""
    for name in by_hand:
        if name not in overloads:
            raise DescriptionError(f"{by_hand[name]} registers {name}, which PyTorch has not")
    routes = {name: _route(overload, rows, by_hand) for name, overload in overloads.items()}
    for layout, pattern in _REFUSED_THOUGH_ON_CPU.items():
        if not any(r.layout == layout and re.fullmatch(pattern, overloads[n].base) for n, r in routes.items()):
            raise DescriptionError(f"no overload is refused by the pattern for {layout} tensors")
    return routes


def _route(overload, rows, by_hand):
    if overload.name in by_hand:
        return Route(HOST)
    if overload.name in rows:
        return Route(SLOT)
    if overload.composite:
        return Route(COMPOSITE)
    if "CPU" not in overload.keys:
        return _unserved(overload)
    for layout, pattern in _REFUSED_THOUGH_ON_CPU.items():
        if re.fullmatch(pattern, overload.base):
            return Route(REFUSED, layout=layout)
    if overload.is_view:
        raise DescriptionError(f"{overload.name} is a view without a route: on the CPU its result would share nothing")
    for reason, pattern in CPU_REASONS:
        if re.fullmatch(pattern, overload.base):
            return Route(CPU, reason=reason)
    raise DescriptionError(f"{overload.name} would go to the CPU; CPU_REASONS has no reason for it")


def _unserved(overload):
    """Neither a row nor a composite nor a kernel of the CPU."""
    if overload.keys == {"Meta"}:
        return Route(OTHER_KEY)
    keys = overload.keys - {"Meta"}
    layouts = [name for name, prefix in _KEYS_OF_LAYOUT.items() if any(key.startswith(prefix) for key in keys)]
    owners = [key for key in sorted(keys) if not key.startswith(tuple(_KEYS_OF_LAYOUT.values()))]
    if owners:
        return Route(REFUSED, owner=" and ".join(owners))
    if not layouts and overload.base.startswith("_nested_"):  # ops of a subclass in Python
        layouts = ["nested"]
    if not layouts:
        raise DescriptionError(f"{overload.name} has no route: {overload.text}")
    return Route(REFUSED, layout=layouts[0])
