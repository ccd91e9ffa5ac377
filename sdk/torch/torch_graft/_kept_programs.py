"""What AOTAutograd made of a model, kept for the next process: its graphs and their wrappers lie in the cache that PyTorch
has for them (torch.compiler's: TORCHINDUCTOR_CACHE_DIR, switched by TORCHINDUCTOR_AUTOGRAD_CACHE, shared as a file by
torch.compiler.save_cache_artifacts), and a model that was compiled before is not differentiated and partitioned again. The
graphs of libgraft are recorded in each process anew, when a program first runs; the kernels that they call have a cache of
their own.

PyTorch bundles results with such an entry since 2.13; before, nothing is kept.
"""

import functools
import hashlib
from pathlib import Path

import sympy
import torch
from torch._functorch import config as functorch_config
from torch._inductor.output_code import OutputCode
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.symbol import SymT, symbol_is_type

from torch_graft import _program
from torch_graft._device import library


def can_be_kept():
    from torch._functorch._aot_autograd import aot_autograd_result

    return hasattr(aot_autograd_result, "BundledOutputCodeLoadable") and hasattr(torch.compiler.config, "cache_key_tag")


class KeptProgram(OutputCode):
    """A program, and the graph of AOTAutograd's that it was made of, which is what a file holds. PyTorch asks a copy for
    the file (prepare_for_serialization), and what came from one to get ready (post_compile)."""

    def __init__(self, module, passes, role=None):
        super().__init__()
        self.module, self.passes, self.role = module, passes, role  # role: where its runs are replayed
        self.kept = None
        self._boxed_call = True
        self._make()

    def _make(self):
        self.run = _program.compile_graph(self.module, self.passes, self.role and self.role.replays)
        self.program = self.run.program

    def __call__(self, values):
        return self.run(values)

    def prepare_for_serialization(self):
        from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
        from torch.fx._graph_pickler import GraphPickler, Options

        if _guards_are_misread():
            raise BypassAOTAutogradCache("one of its guards is an alternative, which PyTorch would misread")
        if _guards_are_of_floats():
            raise BypassAOTAutogradCache("it holds for one value of a float, which PyTorch would not ask for")
        try:
            with unset_fake_temporarily():  # tensors that the program has made of its literals are none
                self.kept = GraphPickler.dumps(self.module, Options(ops_filter=_is_known))
        except Exception as error:  # tensors of the graph, values of a user's own: any class may refuse, in its own way
            raise BypassAOTAutogradCache(f"the graph can't be written to a file: {error}") from error
        self.module = self.run = self.program = None

    def post_compile(self, _example_inputs, _constants, _graph_kwargs):
        if self.module is not None:
            return
        from torch.fx._graph_pickler import GraphPickler

        # Sizes in the file have an environment there, whose contents loading puts in the place of those of the one that it
        # is given: that of the program that is being compiled would lose its guards, and serve sizes that it is not for.
        own = FakeTensorMode(shape_env=ShapeEnv())
        with unset_fake_temporarily():
            self.module = GraphPickler.loads(self.kept, own)
        self.module.recompile()
        self.kept = None
        self._make()

    def set_triton_bundle(self, triton_bundle):
        """There is none."""


def _guards_are_misread():
    """Whether an entry would serve sizes that it does not hold for: PyTorch joins guards by "and", and those that are "or"
    themselves stand there without brackets, so that what follows them is not asked (docs/found.md)."""
    context = torch._guards.TracingContext.try_get()
    sizes = context and context.fake_mode and context.fake_mode.shape_env
    return sizes is not None and any(isinstance(guard.expr, sympy.Or) for guard in sizes.guards)


def _guards_are_of_floats():
    """Whether the graph has a number in it that is a float argument of the program. What finds an entry asks guards of
    whole numbers alone, so that the next value would be served the graph of this one."""
    context = torch._guards.TracingContext.try_get()
    sizes = context and context.fake_mode and context.fake_mode.shape_env
    symbols = {symbol for guard in sizes.guards for symbol in guard.expr.free_symbols} if sizes else set()
    return any(symbol_is_type(symbol, SymT.FLOAT) for symbol in symbols)


def _is_known(name):
    """Whether an op is one whose meaning the key names. What a user's op does, and its gradient, may have been edited since."""
    return name.startswith(("torch.ops.aten.", "torch.ops.prims.", "torch.ops.graft."))


def compiler(make):
    """A compiler for AOTAutograd whose results are kept; make: the graph module, its inputs -> KeptProgram."""
    from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler

    return SerializableAOTDispatchCompiler(KeptProgram, make)


def keeping(passes, replaying):
    """A context in which AOTAutograd finds and keeps what was compiled with these passes, and for replays or not, by this
    torch_graft. The backward is made with the forward, for an entry has both."""
    from contextlib import ExitStack

    tag = ":".join(filter(None, [torch.compiler.config.cache_key_tag, _identity(), passes, replaying and "replays"]))
    stack = ExitStack()
    stack.enter_context(functorch_config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True))
    stack.enter_context(torch.compiler.config.patch(cache_key_tag=tag))
    return stack


@functools.cache
def _identity():
    """Of what decides how a model is traced: the bridge, its Python and its C++. What the plugin serves is asked when a
    program is recorded."""
    digest = hashlib.sha256()
    for file in _files():
        digest.update(file.read_bytes())
    return f"torch_graft-{digest.hexdigest()[:32]}"


def _files():
    folder = Path(__file__).parent
    return [*sorted(folder.glob("*.py")), Path(library().__file__), *sorted(folder.glob("lib/libtorch_graft*"))]
