"""What is not one call of an op: modules, gradients through autograd, optimizer steps, numbers read back.

A row makes its tensors on the CPU, so that they are the same for all devices, and gives a call and the tensors that it
reads; the call returns what is compared."""

from dataclasses import dataclass

import linalg
import optimizers
import torch
from torch import nn
from torch.nn import functional as F

ROWS = {}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
LISTS = {"100 of 1 to 65,536": "100 of many sizes", "100 of 64": "100 of 64", "12 of 2^20": "12 of a million"}


@dataclass
class Row:
    family: str
    make: object  # device -> (call, tensors)
    flops: float = 0
    check: str = "all"
    small: bool = False


def row(name, family, **rest):
    def add(make):
        ROWS[name] = Row(family, make, **rest)
        return make

    return add


def normal(device, *shape, dtype=torch.float32, gradient=False):
    return torch.randn(shape).to(dtype).to(device).requires_grad_(gradient)


def indices(device, below, *shape):
    return torch.randint(below, shape).to(device)


def gradients(result, leaves, reads):
    """The backward pass alone. Its gradient is random: sums over equal ones would be nothing but rounding in a norm's."""
    gradient = normal(result.device, *result.shape, dtype=result.dtype)
    return lambda: torch.autograd.grad(result, leaves, gradient, retain_graph=True), [*reads, gradient]


def first_of(result):
    return result[0] if isinstance(result, tuple) else result


def backward_of(function, *inputs):
    """The gradients of a function's inputs, its forward pass being done."""
    with torch.enable_grad():
        result = first_of(function(*inputs))
    return gradients(result, [x for x in inputs if x.requires_grad], inputs)


def module_backward(module, x):
    """The gradients of a module's parameters and of its input."""
    with torch.enable_grad():
        result = first_of(module(x))
    leaves = [*module.parameters(), x]
    return gradients(result, leaves, leaves)


# --- attention ---


def queries(device, dtype, gradient=True):
    return [normal(device, 4, 8, 512, 64, dtype=dtype, gradient=gradient) for _ in range(3)]


def causal(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


for text, dtype in DTYPES.items():
    row(f"attention, causal, backward {text}[4,8,512,64]", "attention", flops=5 * 4 * 8 * 512 * 512 * 64)(
        lambda device, dtype=dtype: backward_of(causal, *queries(device, dtype))
    )


# --- recurrent networks ---


def recurrent(kind, device, backward):
    net = kind(128, 128, batch_first=True).to(device)
    x = normal(device, 32, 64, 128, gradient=backward)
    if backward:
        return module_backward(net, x)
    return lambda: net(x)[0], [x, *net.parameters()]


for kind, gates in ((nn.LSTM, 4), (nn.GRU, 3)):
    cost = 2 * 32 * 64 * 128 * 2 * 128 * gates
    name = kind.__name__
    row(f"{name} f32[32,64,128]", "rnn", flops=cost)(lambda device, kind=kind: recurrent(kind, device, False))
    row(f"{name}, backward f32[32,64,128]", "rnn", flops=2 * cost)(lambda device, kind=kind: recurrent(kind, device, True))


@row("LSTMCell f32[32,128]", "rnn", flops=2 * 32 * 128 * 2 * 128 * 4)
def lstm_cell(device):
    cell = nn.LSTMCell(128, 128).to(device)
    x = normal(device, 32, 128)
    return lambda: cell(x), [x, *cell.parameters()]


# --- normalization ---


def layer_norm(device, dtype):
    weight, bias = (normal(device, 1024, dtype=dtype, gradient=True) for _ in range(2))
    x = normal(device, 4096, 1024, dtype=dtype, gradient=True)
    return backward_of(lambda x, weight, bias: F.layer_norm(x, (1024,), weight, bias), x, weight, bias)


for text, dtype in DTYPES.items():
    row(f"layer_norm, backward {text}[4096,1024]", "normalization")(lambda device, dtype=dtype: layer_norm(device, dtype))


@row("batch_norm, training f32[8,256,56,56]", "normalization")
def batch_norm(device):
    net = nn.BatchNorm2d(256).to(device)
    x = normal(device, 8, 256, 56, 56)
    return lambda: net(x), [x]


@row("batch_norm, backward f32[8,256,56,56]", "normalization")
def batch_norm_backward(device):
    return module_backward(nn.BatchNorm2d(256).to(device), normal(device, 8, 256, 56, 56, gradient=True))


@row("rms_norm, backward f32[4096,1024]", "normalization")
def rms_norm(device):
    x, weight = normal(device, 4096, 1024, gradient=True), normal(device, 1024, gradient=True)
    return backward_of(lambda x, weight: F.rms_norm(x, (1024,), weight), x, weight)


# --- products ---


def linear(device, dtype, backward):
    shapes = (2048, 768), (3072, 768), (3072,)
    x, weight, bias = (normal(device, *shape, dtype=dtype, gradient=backward) for shape in shapes)
    return backward_of(F.linear, x, weight, bias) if backward else (lambda: F.linear(x, weight, bias), [x, weight, bias])


for text, dtype in DTYPES.items():
    row(f"linear {text}[2048,768] to 3072", "matmul", flops=2 * 2048 * 768 * 3072)(
        lambda device, dtype=dtype: linear(device, dtype, False)
    )
    row(f"linear, backward {text}[2048,768] to 3072", "matmul", flops=4 * 2048 * 768 * 3072)(
        lambda device, dtype=dtype: linear(device, dtype, True)
    )


@row("linear f32[4,4] to 4", "matmul", small=True)
def small_linear(device):
    x, weight, bias = normal(device, 4, 4), normal(device, 4, 4), normal(device, 4)
    return lambda: F.linear(x, weight, bias), [x, weight, bias]


# --- embedding, indexing ---


@row("embedding, backward f32[30000,768] i64[16,512]", "embedding")
def embedding(device):
    weight, ids = normal(device, 30000, 768, gradient=True), indices(device, 30000, 16, 512)
    return backward_of(lambda weight: F.embedding(ids, weight), weight)


@row("embedding_bag f32[100000,64], 4096 bags of 16", "embedding")
def embedding_bag(device):
    weight, ids = normal(device, 100000, 64), indices(device, 100000, 4096, 16)
    return lambda: F.embedding_bag(ids, weight, mode="sum"), [ids]


@row("embedding_bag, backward f32[100000,64], 4096 bags of 16", "embedding")
def embedding_bag_backward(device):
    weight, ids = normal(device, 100000, 64, gradient=True), indices(device, 100000, 4096, 16)
    return backward_of(lambda weight: F.embedding_bag(ids, weight, mode="sum"), weight)


@row("gather, backward f32[4096,1024] i64[4096,256]", "indexing")
def gather(device):
    x, ids = normal(device, 4096, 1024, gradient=True), indices(device, 1024, 4096, 256)
    return backward_of(lambda x: torch.gather(x, 1, ids), x)


@row("x[mask] = 0 f32[4194304]", "indexing")
def masked(device):
    x, mask = normal(device, 1 << 22), indices(device, 2, 1 << 22).bool()

    def call():
        x[mask] = 0.0
        return x

    return call, [x, mask]


@row("searchsorted f32[1024] f32[1048576]", "sorting")
def searchsorted(device):
    edges, x = torch.randn(1024).sort().values.to(device), normal(device, 1 << 20)
    return lambda: torch.searchsorted(edges, x), [edges, x]


# --- convolutions, pooling ---


@row("conv2d and gradients, channels_last f32[8,64,56,56] 3x3", "convolution", flops=6 * 8 * 64 * 56 * 56 * 576)
def channels_last(device):
    x, weight = (normal(device, *shape).to(memory_format=torch.channels_last).requires_grad_()
                 for shape in ((8, 64, 56, 56), (64, 64, 3, 3)))  # fmt: skip

    def call():
        with torch.enable_grad():
            result = F.conv2d(x, weight, padding=1)
        return torch.autograd.grad(result, [x, weight], result.detach())

    return call, [x, weight, x]


@row("max_pool2d, backward f32[8,64,112,112] 3x3", "pooling")
def max_pool(device):
    return backward_of(lambda x: F.max_pool2d(x, 3, 2, 1), normal(device, 8, 64, 112, 112, gradient=True))


# --- losses ---


def logits(device, gradient):
    return normal(device, 2048, 8192, gradient=gradient), indices(device, 8192, 2048)


@row("cross_entropy f32[2048,8192]", "loss")
def cross_entropy(device):
    x, labels = logits(device, False)
    return lambda: F.cross_entropy(x, labels), [x, labels]


@row("cross_entropy, backward f32[2048,8192]", "loss")
def cross_entropy_backward(device):
    return backward_of(F.cross_entropy, *logits(device, True))


@row("binary_cross_entropy_with_logits and gradient f32[1048576]", "loss")
def bce(device):
    x, target = normal(device, 1 << 20, gradient=True), indices(device, 2, 1 << 20).float()

    def call():
        with torch.enable_grad():
            return torch.autograd.grad(F.binary_cross_entropy_with_logits(x, target), [x])

    return call, [x, target, x]


# --- optimizers ---


def stepping(make, shapes, device):
    parameters = optimizers.parameters(shapes, device)
    step = make(parameters)

    def call():
        step()
        return parameters[:8]

    return call, [parameters, [p.grad for p in parameters]]


for text, shapes in LISTS.items():
    for name, make in optimizers.OPTIMIZERS.items():
        row(f"{name}, {text}", "optimizer")(
            lambda device, make=make, shapes=shapes: stepping(
                lambda parameters: make(parameters).step, optimizers.SHAPES[shapes], device
            )
        )
    row(f"clip_grad_norm_, {text}", "optimizer")(
        lambda device, shapes=shapes: stepping(
            optimizers.OTHERS["clip_grad_norm_"], optimizers.SHAPES[shapes], device
        )
    )


# --- linear algebra ---

# What is unique, of the results: not the signs of vectors.
UNIQUE = {"qr": "none", "svd": "1", "eigh": "0"}
for name, (make, call, _) in linalg.MATRICES.items():
    for shape in (linalg.SMALL, linalg.LARGE):

        def matrices(device, make=make, call=call, shape=shape):
            made = [x.to(device) for x in make(torch.randn(shape))]
            return lambda: call(*made), made

        row(f"{name} f32[{','.join(map(str, shape))}]", "linalg", check=UNIQUE.get(name, "all"))(matrices)


# --- sparse ---


@row("sparse.mm, 2 % of f32[4096,4096], by f32[4096,64]", "sparse", flops=2 * 4096 * 4096 * 0.02 * 64)
def sparse(device):
    dense = torch.randn(4096, 4096)
    dense[torch.rand(4096, 4096) > 0.02] = 0
    matrix, x = dense.to_sparse_csr().to(device), normal(device, 4096, 64)
    return lambda: torch.sparse.mm(matrix, x), [x]


# --- numbers ---


@row("item() f32[16]", "shape", small=True)
def item(device):
    x = normal(device, 16)
    return lambda: torch.tensor(x[0].item()), [x]


@row("sum().item() f32[1048576]", "reduction")
def read_sum(device):
    x = normal(device, 1 << 20) + 1
    return lambda: torch.tensor(x.sum().item()), [x]


@row("add_ f32[16777216]", "pointwise")
def add_in_place(device):
    x, y = normal(device, 1 << 24), normal(device, 1 << 24)
    return lambda: x.add_(y, alpha=1e-6), [x, y]


@row("dropout, backward f32[8192,3072]", "random", check="none")
def dropout(device):
    return backward_of(lambda x: F.dropout(x, 0.1), normal(device, 8192, 3072, gradient=True))
