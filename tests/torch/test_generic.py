"""PyTorch's device-generic machinery on the device: its op, module and optimizer databases, instantiated for one device
type by instantiate_device_type_tests as PyTorch's own test files are. Values of all ops are op_db.py's affair; here are
the promises around them: variants, layouts, out tensors, meta's answer, state.

CI takes the ops and modules named below; GRAFT_GENERIC=all takes the whole databases, and the refs in Python."""

import copy
import io
import os
import warnings

import pytest
import torch
from op_db import compare
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    deviceCountAtLeast,
    dtypes,
    instantiate_device_type_tests,
    onlyPRIVATEUSE1,
    ops,
)
from torch.testing._internal.common_methods_invocations import op_db, python_ref_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_optimizers import optim_db, optims
from torch.testing._internal.common_utils import TestCase, parametrize

ALL = os.environ.get("GRAFT_GENERIC") == "all"
MAX_SAMPLES = 100 if ALL else 6
F32 = (torch.float32,)
OPS = """add mul div where clamp pow exp rsub lerp addcmul masked_fill sum mean var amax argmax cumsum softmax
    log_softmax matmul bmm addmm cat stack index_select gather scatter_add index_put sort topk tril flip roll
    nn.functional.linear nn.functional.gelu nn.functional.layer_norm nn.functional.embedding nn.functional.conv2d
    nn.functional.avg_pool2d nn.functional.pad""".split()
MODULES = """Linear Bilinear Conv1d Conv2d ConvTranspose2d BatchNorm2d GroupNorm LayerNorm RMSNorm InstanceNorm1d
    Embedding LSTM GRU RNNCell MultiheadAttention TransformerEncoderLayer ReLU GELU SiLU Softmax LogSoftmax PReLU
    MaxPool2d AvgPool2d AdaptiveAvgPool2d CrossEntropyLoss NLLLoss MSELoss BCEWithLogitsLoss Flatten""".split()
# In training their values are random numbers, which are not those of the CPU.
RANDOM_MODULES = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU",
                  "FractionalMaxPool2d", "FractionalMaxPool3d"}  # fmt: skip
RANDOM_OPS = ("dropout", "rrelu", "fractional", "bernoulli", "multinomial", "normal", "uniform", "rand", "cauchy",
              "exponential", "geometric", "log_normal", "empty", "multi_head_attention", "scaled_dot_product")  # fmt: skip


def chosen(op):
    return ALL or op.name in OPS


def is_random(op):
    return any(part in op.name for part in RANDOM_OPS)


OP_DB = [op for op in op_db if chosen(op) and not is_random(op)]
REF_DB = [op for op in python_ref_db if chosen(op.torch_opinfo) and not is_random(op)]
MODULE_DB = [info for info in module_db if ALL or info.module_cls.__name__ in MODULES]


def samples_of(op, device, dtype, **options):
    for count, sample in enumerate(op.sample_inputs(device, dtype, **options)):
        if count == MAX_SAMPLES:
            return
        yield sample


def tensors_in(value):
    leaves = torch.utils._pytree.tree_leaves(value)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def moved(value, device, wide=False):
    def one(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        dtype = torch.float64 if wide and leaf.is_floating_point() else leaf.dtype
        return leaf.detach().to(device, dtype).requires_grad_(leaf.requires_grad)

    return torch.utils._pytree.tree_map(one, value)


def gradients(results, inputs):
    """Of a sum with weights of its own for each element, so that no two gradients are equal by chance."""
    results = [r for r in tensors_in(results) if r.requires_grad]
    inputs = [i for i in tensors_in(inputs) if i.requires_grad]
    if not results or not inputs:
        return []
    weights = [torch.linspace(0.5, 1.5, r.numel(), dtype=torch.float64).reshape(r.shape).to(r.dtype) for r in results]
    cotangents = [w.to(r.device) for w, r in zip(weights, results)]
    return torch.autograd.grad(results, inputs, cotangents, allow_unused=True)


class TestOps(TestCase):
    @ops(OP_DB, allowed_dtypes=F32)
    def test_variants_agree(self, device, dtype, op):
        for sample in samples_of(op, device, dtype):
            expected = op(sample.input, *sample.args, **sample.kwargs)
            for variant in (op.method_variant, op.operator_variant):
                if variant is None or (variant is op.operator_variant and sample.kwargs):
                    continue
                self.assertEqual(variant(sample.input, *sample.args, **sample.kwargs), expected)
            for variant in (op.inplace_variant, op.inplace_operator_variant):
                if variant is None or sample.broadcasts_input or not isinstance(expected, torch.Tensor):
                    continue
                if variant is op.inplace_operator_variant and sample.kwargs:
                    continue
                if expected.dtype != sample.input.dtype or expected.shape != sample.input.shape:
                    continue
                target = sample.input.clone()
                version, address = target._version, target.data_ptr()
                self.assertIs(variant(target, *sample.args, **sample.kwargs), target)
                self.assertEqual(target, expected)
                self.assertEqual(target.data_ptr(), address)
                self.assertGreater(target._version, version)

    @ops(OP_DB, allowed_dtypes=F32)
    def test_non_contiguous_inputs(self, device, dtype, op):
        for sample in samples_of(op, device, dtype, requires_grad=op.supports_autograd):
            gapped = sample.noncontiguous()
            expected = op(sample.input, *sample.args, **sample.kwargs)
            result = op(gapped.input, *gapped.args, **gapped.kwargs)
            self.assertEqual(result, expected)
            if op.supports_autograd:
                plain = gradients(expected, (sample.input, sample.args, sample.kwargs))
                self.assertEqual(gradients(result, (gapped.input, gapped.args, gapped.kwargs)), plain)

    @ops([op for op in OP_DB if op.supports_out], allowed_dtypes=F32)
    def test_out(self, device, dtype, op):
        for sample in samples_of(op, device, dtype):
            expected = op(sample.input, *sample.args, **sample.kwargs)
            several = not isinstance(expected, torch.Tensor)
            parts = tuple(expected) if several else (expected,)

            def into(outs):
                return op(sample.input, *sample.args, **sample.kwargs, out=tuple(outs) if several else outs[0])

            empty = [torch.empty(0, dtype=p.dtype, device=device) for p in parts]
            into(empty)
            self.assertEqual(empty, list(parts))
            gapped = [torch.empty(*p.shape, 2, dtype=p.dtype, device=device)[..., 0] for p in parts]
            layout = [(p.data_ptr(), p.stride()) for p in gapped]
            into(gapped)
            self.assertEqual(gapped, list(parts))
            if op.name not in {"matmul", "nn.functional.linear"}:  # PyTorch resizes it on the way, on the CPU too
                self.assertEqual([(p.data_ptr(), p.stride()) for p in gapped], layout)
            large = [torch.empty(*p.shape, 3, dtype=p.dtype, device=device) for p in parts]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                into(large)
            self.assertEqual(large, list(parts))
            if any(p.numel() for p in large):
                self.assertTrue(any("resized" in str(w.message) for w in caught), "nobody was told of the resize")
            if parts[0].dtype.is_floating_point:
                self.into_integers(op, sample, parts, into)
            with pytest.raises(RuntimeError):
                into([torch.empty(p.shape, dtype=p.dtype) for p in parts])

    def into_integers(self, op, sample, parts, into):
        """Refused, but by ops that compute in their output's dtype: as the CPU has it."""
        integers = [torch.empty(p.shape, dtype=torch.int64, device=p.device) for p in parts]
        on_cpu = [each.cpu() for each in integers]
        here = sample.transform(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v)
        try:
            op(here.input, *here.args, **here.kwargs, out=tuple(on_cpu) if len(on_cpu) > 1 else on_cpu[0])
        except (RuntimeError, TypeError):
            with pytest.raises(RuntimeError):
                into(integers)
            return
        into(integers)
        self.assertEqual([each.cpu() for each in integers], on_cpu)

    @ops(OP_DB, allowed_dtypes=F32)
    def test_answers_as_meta(self, device, dtype, op):
        """Shape, dtype and strides, also where the inputs are not in the usual order. Where meta tensors and the CPU differ
        in strides, either is right."""
        for sample in samples_of(op, device, dtype):
            for turned in (False, True):
                value = sample.input
                if turned and not (isinstance(value, torch.Tensor) and value.dim() > 1):
                    continue
                if turned:
                    value = value.transpose(0, 1).contiguous().transpose(0, 1)
                result = tensors_in(op(value, *sample.args, **sample.kwargs))
                try:
                    meta = op(*moved((value, *sample.args), "meta"), **moved(sample.kwargs, "meta"))
                except NotImplementedError:  # the values decide on the shape
                    return
                host = tensors_in(op(*moved((value, *sample.args), "cpu"), **moved(sample.kwargs, "cpu")))
                for ours, theirs, on_host in zip(result, tensors_in(meta), host, strict=True):
                    self.assertEqual((ours.shape, ours.dtype), (theirs.shape, theirs.dtype))
                    if ours.numel() > 1:
                        self.assertIn(ours.stride(), (theirs.stride(), on_host.stride()))


class TestRefs(TestCase):
    @ops(REF_DB, allowed_dtypes=F32)
    def test_refs_in_python(self, device, dtype, op):
        """PyTorch's own definition of the op out of simpler ones, all on the device."""
        for sample in samples_of(op, device, dtype):
            expected = op.torch_opinfo(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(op(sample.input, *sample.args, **sample.kwargs), expected, exact_stride=False)


def run_module(module, given, device, wide=False):
    """Results, gradients and buffers of a copy of the module on a device."""
    there = copy.deepcopy(module).to(device, torch.float64 if wide else torch.float32)
    args, kwargs = moved((given.args, given.kwargs), device, wide)
    result = there(*args, **kwargs)
    grads = gradients(result, ((args, kwargs), list(there.parameters())))
    return tensors_in(result), [torch.zeros(()) if g is None else g for g in grads], list(there.buffers())


class TestModules(TestCase):
    def inputs_of(self, info, training):
        """Modules on the CPU with what goes in, made without the device, equal at each call."""
        torch.manual_seed(1)
        made = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
        for given in made[:MAX_SAMPLES]:
            if given.forward_input is None or info.is_lazy:
                continue
            args, kwargs = given.constructor_input.args, given.constructor_input.kwargs
            if training and "dropout" in kwargs:
                kwargs = {**kwargs, "dropout": 0.0}
            module = info.module_cls(*args, **kwargs).train(training)
            for part in module.modules():
                if training and isinstance(part, (torch.nn.Dropout, torch.nn.MultiheadAttention)):
                    setattr(part, "p" if isinstance(part, torch.nn.Dropout) else "dropout", 0.0)
            yield module, given.forward_input

    @modules(MODULE_DB, allowed_dtypes=F32)
    def test_as_on_the_cpu(self, device, dtype, module_info, training):
        if training and module_info.module_cls.__name__ in RANDOM_MODULES:
            self.skipTest("random numbers")
        for module, given in self.inputs_of(module_info, training):
            ours, cpu = run_module(module, given, device), run_module(module, given, "cpu")
            wide = run_module(module, given, "cpu", wide=True)
            for name, mine, theirs, exact in zip(("results", "gradients", "buffers"), ours, cpu, wide):
                self.assertIsNone(compare(mine, theirs, exact), name)
            for part in ours[0]:
                self.assertEqual(part.device, torch.device(device))

    @modules(MODULE_DB, allowed_dtypes=F32)
    def test_state_and_moves(self, device, dtype, module_info, training):
        for module, _ in self.inputs_of(module_info, training):
            there = copy.deepcopy(module).to(device)
            state = there.state_dict()
            for name, value in state.items():
                if isinstance(value, torch.Tensor):
                    self.assertEqual(value.device.type, torch.device(device).type, name)
            file = io.BytesIO()
            torch.save(state, file)
            file.seek(0)
            fresh = copy.deepcopy(there)
            for parameter in fresh.parameters():
                torch.nn.init.zeros_(parameter)
            fresh.load_state_dict(torch.load(file, map_location="cpu"))
            self.assertEqual(fresh.state_dict(), state)
            self.assertEqual(there.cpu().state_dict(), module.state_dict())
            halved = copy.deepcopy(module).to(device, torch.float16)
            for value in list(halved.parameters()) + list(halved.buffers()):
                if value.is_floating_point():
                    self.assertEqual(value.dtype, torch.float16)


class TestOptims(TestCase):
    rel_tol, precision = 2e-5, 1e-6

    def trained(self, info, options, device, steps=4, reload=False):
        """Parameters after some steps down a bowl, with the state saved and loaded on the way if asked for."""
        values = make_tensor((3, 4), device="cpu", dtype=torch.float32), make_tensor((5, 2), device="cpu", dtype=torch.float32)
        parameters = [torch.nn.Parameter(value.to(device)) for value in values]
        optimizer = info.optim_cls(parameters, **options)

        def closure():
            optimizer.zero_grad()
            loss = sum(((p - 0.5) ** 2 * (i + 1)).sum() for i, p in enumerate(parameters))
            loss.backward()
            return loss

        for step in range(steps):
            optimizer.step(closure)
            if reload and step == 1:
                state = copy.deepcopy(optimizer.state_dict())
                optimizer = info.optim_cls(parameters, **options)
                optimizer.load_state_dict(state)
        for state in optimizer.state.values():
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.dim():  # PyTorch keeps counts of steps on the CPU
                    self.assertEqual(value.device.type, torch.device(device).type, name)
        return [p.detach().cpu() for p in parameters]

    @optims([info for info in optim_db if not info.only_supports_sparse_grads])
    def test_implementations_agree(self, device, dtype, optim_info):
        for given in optim_info.optim_inputs_func(device=device)[: MAX_SAMPLES if ALL else 4]:
            options = {k: v for k, v in given.kwargs.items() if k not in ("foreach", "fused", "capturable")}
            if optim_info.step_requires_closure and not ALL:
                options["max_iter"] = 3
            plain = {"foreach": False} if "foreach" in optim_info.supported_impls else {}
            expected = self.trained_alike(optim_info, {**options, **plain}, "cpu")
            self.assertEqual(self.trained_alike(optim_info, {**options, **plain}, device), expected)
            self.assertEqual(self.trained_alike(optim_info, {**options, **plain}, device, reload=True), expected)
            for way in ("foreach", "fused"):
                if way in optim_info.supported_impls:
                    self.assertEqual(self.trained_alike(optim_info, {**options, way: True}, device), expected, msg=way)

    def trained_alike(self, info, options, device, **how):
        torch.manual_seed(2)
        options = {k: v.to(device) if isinstance(v, torch.Tensor) and v.dim() else v for k, v in options.items()}
        return self.trained(info, options, device, **how)


PAIRS = "add sub mul div maximum minimum pow".split()
OTHERS = {
    "same": lambda: [torch.rand(3, 4), torch.rand(5, 2)],
    "broadcast": lambda: [torch.rand(4), torch.rand(5, 1)],
    "rank_0": lambda: [torch.tensor(2.0), torch.tensor(3.0)],
    "mixed_dtypes": lambda: [torch.rand(3, 4).half(), torch.rand(5, 2).half()],
}


class TestLists(TestCase):
    """_foreach ops: item by item the op of single tensors, whatever the items are."""

    @parametrize("name", PAIRS)
    @parametrize("other", list(OTHERS))
    def test_pairs(self, device, name, other):
        first, second = [torch.rand(3, 4) + 0.5, torch.rand(5, 2) + 0.5], OTHERS[other]()
        op, in_place = getattr(torch, f"_foreach_{name}"), getattr(torch, f"_foreach_{name}_")
        expected = op(first, second)
        there = [t.to(device) for t in first]
        self.assertEqual(op(there, [t.to(device) for t in second]), expected, exact_device=False)
        if other == "rank_0":
            self.assertEqual(op(there, second), expected, exact_device=False)
        in_place(there, [t.to(device) for t in second])
        self.assertEqual(there, expected, exact_device=False)

    @parametrize("name", ["addcmul", "addcdiv"])
    @parametrize("other", list(OTHERS))
    def test_triples(self, device, name, other):
        if other == "mixed_dtypes":
            self.skipTest("PyTorch takes none")
        first, second, third = ([t + 0.5 for t in OTHERS[kind]()] for kind in ("same", "same", other))
        op = getattr(torch, f"_foreach_{name}")
        for lists in ((first, second, third), (first, third, second)):
            result = op(*([t.to(device) for t in items] for items in lists), value=-0.5)
            self.assertEqual(result, op(*lists, value=-0.5), exact_device=False)


INDICES = {
    "number": lambda d: -1,
    "slices": lambda d: (slice(1, None, 2), None, Ellipsis, slice(None, -1)),
    "list": lambda d: [3, 0, -1],
    "tensor": lambda d: torch.tensor([[1, 0], [-1, 2]], device=d),
    "two_tensors": lambda d: (torch.tensor([[0], [2]], device=d), torch.tensor([1, -1, 0], device=d)),
    "tensors_apart": lambda d: (torch.tensor([0, 2], device=d), slice(None), torch.tensor([1, 1], device=d)),
    "mask": lambda d: torch.arange(4, device=d) % 2 == 0,
    "mask_of_two_dims": lambda d: torch.arange(12, device=d).reshape(4, 3) % 5 == 0,
    "masks_apart": lambda d: (torch.arange(4, device=d) > 1, slice(None), torch.arange(5, device=d) % 3 == 0),
    "mask_and_tensor": lambda d: (torch.arange(4, device=d) > 1, torch.tensor([2, 0], device=d)),
    "none_true": lambda d: torch.zeros(4, dtype=torch.bool, device=d),
    "empty": lambda d: torch.empty(0, dtype=torch.int64, device=d),
    "rank_0": lambda d: torch.tensor(2, device=d),
    "true": lambda d: True,
    "host_tensor": lambda d: torch.tensor([2, 1]),
}


class TestIndexing(TestCase):
    @dtypes(torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64)
    @parametrize("name", list(INDICES))
    def test_read_and_write(self, device, dtype, name):
        x = make_tensor((4, 3, 5), device="cpu", dtype=dtype)
        y = x.to(device)
        index, there = INDICES[name]("cpu"), INDICES[name](device)
        self.assertEqual(y[there], x[index], exact_device=False)
        for value in (1, make_tensor(x[index].shape, device="cpu", dtype=dtype)):
            a, b = x.clone(), y.clone()
            a[index] = value
            b[there] = value.to(device) if isinstance(value, torch.Tensor) else value
            self.assertEqual(b, a, exact_device=False)

    @dtypes(torch.float32, torch.int64)
    def test_accumulate(self, device, dtype):
        x = torch.zeros(4, 3, dtype=dtype)
        index = torch.tensor([1, 3, 1, 1])
        values = torch.arange(12, dtype=dtype).reshape(4, 3)
        result = x.to(device).index_put_((index.to(device),), values.to(device), accumulate=True)
        self.assertEqual(result, x.index_put((index,), values, accumulate=True), exact_device=False)

    def test_wrong_indices(self, device):
        x = torch.ones(2, 3, device=device)
        for use in (
            lambda: x[2],
            lambda: x[0, 0, 0],
            lambda: x[:, :, torch.tensor([0], device=device)],
            lambda: torch.ones(2, 0, device=device)[:, [0, 1]],
            lambda: x[torch.ones(3, dtype=torch.bool, device=device)],
            lambda: x[torch.ones(2, device=device)],
            lambda: x[torch.tensor([0, 1], device=device), torch.tensor([0, 1, 2], device=device)],
            lambda: x[torch.tensor([True, True], device=device), torch.ones(3, dtype=torch.bool, device=device)],
            lambda: x.flip(2),
            lambda: x.sum(-3),
            lambda: torch.softmax(x, 2),
        ):
            with pytest.raises(IndexError):
                use()


VIEWS = {
    "view": lambda x: x.view(3, 8),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "slice": lambda x: x[1:, ::2, -1],
    "select": lambda x: x.select(1, 1),
    "expand": lambda x: x[:1].expand(5, -1, -1)[2:3],
    "unfold": lambda x: x.unfold(2, 2, 1)[..., :1],
    "diagonal": lambda x: x.diagonal(0, 0, 2),
    "squeeze": lambda x: x[:1].squeeze(0),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 4), 3),
    "split": lambda x: x.split(2, 2)[1],
    "unbind": lambda x: x.unbind(1)[0],
    "flatten": lambda x: x.flatten(1),
    "movedim": lambda x: x.movedim(0, -1),
    "view_dtype": lambda x: x.view(torch.int32) if x.element_size() == 4 else x.view(torch.int16),
    "detach": lambda x: x.detach(),
}


class TestViews(TestCase):
    @dtypes(torch.float32, torch.bfloat16)
    @parametrize("name", list(VIEWS))
    def test_shares_memory(self, device, dtype, name):
        host = make_tensor((2, 3, 4), device="cpu", dtype=dtype)
        base = host.to(device)
        view, expected = VIEWS[name](base), VIEWS[name](host)
        self.assertEqual((view.stride(), view.storage_offset()), (expected.stride(), expected.storage_offset()))
        self.assertEqual(view.untyped_storage().data_ptr(), base.untyped_storage().data_ptr())
        self.assertEqual(view, expected, exact_device=False)
        self.assertEqual(view._base is base, expected._base is host)
        version = base._version
        view.fill_(3)
        expected.fill_(3)
        self.assertEqual(base, host, exact_device=False)
        self.assertEqual(base._version, version + 1)


class TestCreation(TestCase):
    @dtypes(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool,
            torch.complex64)  # fmt: skip
    def test_as_on_the_cpu(self, device, dtype):
        makers = [
            lambda d: torch.zeros(2, 3, dtype=dtype, device=d),
            lambda d: torch.full((3,), 1, dtype=dtype, device=d),
            lambda d: torch.eye(3, 4, dtype=dtype, device=d),
            lambda d: torch.tensor([[1, 0], [0, 1]], dtype=dtype, device=d),
            lambda d: torch.ones(2, 3, 4, 5, dtype=dtype, device=d).to(memory_format=torch.channels_last),
            lambda d: torch.zeros_like(torch.ones(4, 3, dtype=dtype, device=d).t()),
            lambda d: torch.ones(3, dtype=dtype, device=d).new_full((2, 2), 1),
            lambda d: torch.empty_strided((2, 3), (1, 4), dtype=dtype, device=d).fill_(1),
        ]
        if dtype not in (torch.bool, torch.complex64):
            makers += [lambda d: torch.arange(1, 20, 3, dtype=dtype, device=d)]
        if dtype.is_floating_point:
            makers += [lambda d: torch.linspace(-1, 1, 7, dtype=dtype, device=d)]
        if dtype in (torch.int64, torch.int32):
            makers += [lambda d: torch.tril_indices(3, 4, dtype=dtype, device=d)]
        for make in makers:
            ours, theirs = make(device), make("cpu")
            self.assertEqual(ours, theirs, exact_device=False)
            self.assertEqual((ours.dtype, ours.stride()), (theirs.dtype, theirs.stride()))
            self.assertEqual(ours.device, torch.device(device))


class TestDevices(TestCase):
    @onlyPRIVATEUSE1
    @deviceCountAtLeast(2)
    def test_copies_between_all(self, devices):
        values = torch.arange(6.0).reshape(2, 3)
        for first in devices:
            for second in devices:
                there = values.to(first).t().to(second)
                self.assertEqual(str(there.device), second)
                self.assertEqual(there, values.t(), exact_device=False)


if not ALL:
    del TestRefs
for tests in [value for name, value in globals().items() if name.startswith("Test") and value is not TestCase]:
    instantiate_device_type_tests(tests, globals(), only_for=torch._C._get_privateuse1_backend_name())
del tests
