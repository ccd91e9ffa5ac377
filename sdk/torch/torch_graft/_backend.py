"""The backend of torch.compile: AOTAutograd's graphs become programs of libgraft's graphs (_program.py)."""

import contextlib

import torch

from torch_graft import _kept_programs, _partition, _program, _replays
from torch_graft._device import device_name, is_ours, library

MODES = (None, "default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
REPLAYING = ("reduce-overhead", "max-autotune")  # those that Inductor uses CUDA graphs in


def graft(model, inputs, mode=None, options=None):
    """torch.compile(backend="graft"). Modes other than REPLAYING change nothing: what they ask for is done anyway, or there
    is nothing to tune. options: passes, as graft_graph_compile takes them."""
    from torch._dynamo.backends.common import aot_autograd

    if mode not in MODES:
        raise ValueError(f"torch.compile: backend {device_name()} has no mode {mode!r}; expected one of {MODES[1:]}")
    passes = _passes(options or {})
    kept = _kept_programs.can_be_kept()
    replaying = mode in REPLAYING

    def compiler(name):
        def compile_one(module, _inputs):
            _leave_donations_out()
            role = _replays.role_of(name) if replaying else None
            if kept:
                return _kept_programs.KeptProgram(module, passes, role)
            return _program.compile_graph(module, passes, role and role.replays)

        return _kept_programs.compiler(compile_one) if kept else compile_one

    # One each: PyTorch wraps the backward's in place.
    compilers = {f"{name}_compiler": compiler(name) for name in ("fw", "bw", "inference")}
    with _kept_programs.keeping(passes, replaying) if kept else contextlib.nullcontext():
        return aot_autograd(
            **compilers,
            partition_fn=_partition.partition,
            decompositions={},
            keep_inference_input_mutations=True,
        )(model, inputs)


def _leave_donations_out():
    """PyTorch marks saved tensors that a backward may overwrite, and such a backward refuses to run twice. Graphs of
    libgraft need no marks: a run asks who else holds a tensor."""
    context = torch._guards.TracingContext.try_get()
    marks = getattr(context and context.fw_metadata, "bw_donated_idxs", None)
    if marks:
        marks.clear()


def _passes(options):
    unknown = [name for name in options if name != "passes"]
    if unknown:
        raise ValueError(
            f"torch.compile: backend {device_name()} has no option {unknown[0]!r}; "
            'expected "passes", which passes over graphs to leave out, for example "-cse"'
        )
    passes = options.get("passes")
    # Raises for names that there are not, here or in GRAFT_GRAPH_PASSES.
    library().GraphRecording(library().current_device()).compile(passes)
    return passes


def refuse_ahead_of_time():
    """AOTInductor wants code that runs without PyTorch."""
    from torch._inductor.virtualized import V

    if V.aot_compilation:
        raise RuntimeError(
            f"AOTInductor has no code generator for {device_name()}; "
            "load the exported program and torch.compile its module()"
        )


def uses_device(model, inputs):
    """Whether tensors of ours go into a graph of Dynamo's or are made in it."""
    values = list(inputs)
    if isinstance(model, torch.fx.GraphModule):
        graphs = [part.graph for part in model.modules() if isinstance(part, torch.fx.GraphModule)]
        values += [node.meta.get("example_value") for graph in graphs for node in graph.nodes]
    return any(isinstance(value, torch.Tensor) and is_ours(value) for value in torch.utils._pytree.tree_leaves(values))
