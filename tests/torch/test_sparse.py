"""Sparse tensors: COO and CSR made, converted and coalesced, their products with dense matrices and the gradients of
these, sparse gradients of embeddings and the optimizers that take them. Nothing of it leaves the device; what is not
served is refused in one line."""

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")


@pytest.fixture(autouse=True)
def nothing_leaves_the_device(monkeypatch):
    import torch_graft

    torch_graft.reset_fallbacks()
    yield
    assert not torch_graft.fallbacks()


def duplicates(device="cpu", dtype=torch.float32):
    """5 x 4: two elements are given twice, row 2 has none, in no order."""
    indices = torch.tensor([[4, 0, 1, 0, 4, 3], [1, 3, 2, 3, 1, 0]])
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).to(dtype)
    return torch.sparse_coo_tensor(indices.to(device), values.to(device), (5, 4))


def same(ours, theirs, **tolerance):
    assert ours.layout == theirs.layout and ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert ours.device.type != "cpu"
    parts = {torch.sparse_coo: ("_indices", "_values"), torch.sparse_csr: ("crow_indices", "col_indices", "values"),
             torch.sparse_csc: ("ccol_indices", "row_indices", "values")}
    for part in parts.get(theirs.layout, ("detach",)):
        torch.testing.assert_close(getattr(ours, part)().cpu(), getattr(theirs, part)(), **tolerance)
    if theirs.layout == torch.sparse_coo:
        assert ours.is_coalesced() == theirs.is_coalesced()


# --- made, converted, coalesced ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16])
def test_coalescing_adds_duplicates_and_sorts(device, dtype):
    ours, theirs = duplicates(device, dtype), duplicates(dtype=dtype)
    assert not ours.is_coalesced() and ours._nnz() == 6
    same(ours.coalesce(), theirs.coalesce())
    same(ours.to_dense(), theirs.to_dense())
    assert "size=(5, 4), nnz=6" in repr(ours)


def test_values_with_dims_of_their_own(device):
    indices, values = torch.tensor([[2, 0, 2]]), torch.randn(3, 3, 2)
    ours = torch.sparse_coo_tensor(indices.to(device), values.to(device), (4, 3, 2))
    theirs = torch.sparse_coo_tensor(indices, values, (4, 3, 2))
    assert (ours.sparse_dim(), ours.dense_dim()) == (1, 2)
    same(ours.coalesce(), theirs.coalesce())
    same(ours.to_dense(), theirs.to_dense())


def test_a_number_of_no_dims(device):
    indices, values = torch.zeros(0, 3, dtype=torch.long), torch.tensor([1.0, 2.0, 4.0])
    ours = torch.sparse_coo_tensor(indices.to(device), values.to(device), ())
    same(ours.coalesce(), torch.sparse_coo_tensor(indices, values, ()).coalesce())


def test_a_device_that_is_not_the_current_one(other):
    import torch_graft

    dense = torch.eye(2, 3)
    there = [dense.to(other).to_sparse(), dense.to_sparse().to(other), duplicates(other), dense.to(other).to_sparse_csr()]
    for ours, theirs in zip(there, [dense.to_sparse(), dense.to_sparse(), duplicates(), dense.to_sparse_csr()]):
        same(ours, theirs)
        same(ours.to_dense(), theirs.to_dense())
        assert ours.device == ours.to_dense().device == other
    torch_graft.reset_fallbacks()


@pytest.mark.parametrize("index", [[[0, 1], [0, 777777]], [[0, 5], [0, 1]], [[0, -1], [0, 1]]])
@pytest.mark.parametrize("use", [lambda x: x.coalesce(), lambda x: x @ torch.ones(3, 2, device=x.device),
                                 lambda x: torch.ones(2, 3, device=x.device) + x, lambda x: x.to_sparse_csr()])
def test_an_index_out_of_range_is_an_error(device, index, use):
    x = torch.sparse_coo_tensor(torch.tensor(index, device=device), torch.tensor([1.0, 2.0], device=device), (2, 3))
    with pytest.raises(RuntimeError, match="out of range"):
        use(x)
        torch.graft.synchronize()
    with torch.graft.stream(torch.graft.Stream()):
        assert (torch.ones(2, device=device) + 1).tolist() == [2, 2]


def test_compressed_parameters(device):
    weight = torch.randn(4, 5)
    for convert in (torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc):
        ours = nn.Parameter(convert(weight.to(device)))  # wants indices that lie one after the other
        same(ours.detach(), convert(weight))


@pytest.mark.parametrize("shape", [(5, 4), (3, 1), (2, 3, 4)])
def test_of_dense_tensors_and_back(device, shape):
    dense = torch.randn(shape) * (torch.rand(shape) > 0.5)
    same(dense.to(device).to_sparse(), dense.to_sparse())
    same(dense.to(device).to_sparse().to_dense(), dense)
    same(dense.to(device).to_sparse(1), dense.to_sparse(1))
    if dense.dim() == 2:
        for convert in ("to_sparse_csr", "to_sparse_csc"):
            same(getattr(dense.to(device), convert)(), getattr(dense, convert)())
            same(getattr(dense.to(device), convert)().to_dense(), dense)


def test_from_layout_to_layout(device):
    ours, theirs = duplicates(device), duplicates()
    same(ours.to_sparse_csr(), theirs.to_sparse_csr())
    same(ours.to_sparse_csc(), theirs.to_sparse_csc())
    same(ours.to_sparse_csr().to_sparse(), theirs.to_sparse_csr().to_sparse())
    same(ours.to_sparse_csr().to_sparse_csc(), theirs.to_sparse_csr().to_sparse_csc())
    same(ours.to_sparse_csc().to_sparse_csr(), theirs.to_sparse_csc().to_sparse_csr())
    same(ours.to_sparse_csr().t(), theirs.to_sparse_csr().t())
    same(ours.t().coalesce(), theirs.t().coalesce())


def test_none_has_elements(device):
    ours, theirs = torch.zeros(3, 4, device=device), torch.zeros(3, 4)
    for convert in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr):
        same(convert(ours), convert(theirs))
        same(convert(ours).to_dense(), theirs)
        same(convert(ours) @ torch.ones(4, 2, device=device), torch.zeros(3, 2))
    same(torch.sparse_coo_tensor((2, 3), device=device), torch.sparse_coo_tensor((2, 3)))
    same(torch.zeros(2, 3, layout=torch.sparse_coo, device=device), torch.zeros(2, 3, layout=torch.sparse_coo))


def test_between_the_device_and_the_cpu(device):
    theirs = duplicates()
    for t in (theirs, theirs.coalesce(), theirs.to_sparse_csr()):
        same(t.to(device), t)
        same(t.to(device).double(), t.double())
        same(t.to(device).clone(), t.clone())
        back = t.to(device).cpu()
        assert back.device.type == "cpu" and torch.equal(back.to_dense(), t.to_dense())


def test_csr_of_its_parts_is_checked_when_asked(device):
    def make(starts, columns, where):
        parts = [torch.tensor(starts, device=where), torch.tensor(columns, device=where), torch.ones(2, device=where)]
        return torch.sparse_csr_tensor(*parts, (2, 2), check_invariants=True)

    same(make([0, 1, 2], [1, 0], device), make([0, 1, 2], [1, 0], "cpu"))
    for starts, columns in (([0, 2, 2], [1, 0]), ([0, 2, 2], [0, 2]), ([0, 2, 1], [0, 1]), ([1, 1, 2], [0, 1])):
        with pytest.raises(RuntimeError) as theirs:
            make(starts, columns, "cpu")
        with pytest.raises(RuntimeError) as ours:
            make(starts, columns, device)
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("indices", [[[0, 5], [0, 0]], [[0, -1], [0, 0]]])
def test_coo_indices_out_of_range_are_refused(device, indices):
    with pytest.raises(RuntimeError, match="size is inconsistent|negative index"):
        torch.sparse_coo_tensor(torch.tensor(indices, device=device), torch.ones(2, device=device), (5, 4),
                                check_invariants=True)


# --- sums and products by element ---


def test_arithmetic(device):
    a, b, dense = duplicates(), duplicates().t().coalesce().t(), torch.randn(5, 4)
    x, y, d = a.to(device), b.to(device), dense.to(device)
    same((x + y).coalesce(), (a + b).coalesce())
    same((x.coalesce() + y.coalesce()), (a.coalesce() + b.coalesce()))
    same((x - y).coalesce(), (a - b).coalesce())
    same(torch.add(d, x, alpha=-2), torch.add(dense, a, alpha=-2))
    same(d.t().contiguous().t().add_(x, alpha=0.5), dense.clone().add_(a, alpha=0.5))
    same(x * 3, a * 3)
    same(x / 4, a / 4)
    same(-x, -a)
    same(x.coalesce() * d, a.coalesce() * dense)
    same(d.sparse_mask(x.coalesce()), dense.sparse_mask(a.coalesce()))
    same(y.sparse_mask(x.coalesce()), b.sparse_mask(a.coalesce()))
    same(torch.sparse.sum(x, 1), torch.sparse.sum(a, 1))
    same(x.sum(), a.sum())
    same(x.norm(), a.norm())
    same(torch.cat([x, y]).coalesce(), torch.cat([a, b]).coalesce())
    in_place = duplicates(device)
    in_place.mul_(0.5).add_(y, alpha=2)
    same(in_place.coalesce(), duplicates().mul_(0.5).add_(b, alpha=2).coalesce())
    same(in_place.zero_(), duplicates().zero_())


def test_arithmetic_of_csr(device):
    a, b, dense = duplicates().to_sparse_csr(), duplicates().mul(2).to_sparse_csr(), torch.randn(5, 4)
    x, y, d = a.to(device), b.to(device), dense.to(device)
    same(x + y, a + b)
    same(d + x, dense + a)
    same(x * 3, a * 3)
    same(-x, -a)
    same(x.sum(), a.sum())


# --- products of matrices ---

LAYOUTS = {"coo": lambda t: t, "coalesced": lambda t: t.coalesce(), "csr": lambda t: t.to_sparse_csr(),
           "csc": lambda t: t.to_sparse_csc()}


@pytest.mark.parametrize("layout, width", [(layout, 7) for layout in LAYOUTS] + [("csr", 1)])
def test_products(device, layout, width):
    a, dense, added = LAYOUTS[layout](duplicates()), torch.randn(4, width), torch.randn(5, width)
    x, d, e = a.to(device), dense.to(device), added.to(device)
    same(x @ d, a @ dense)
    same(torch.mm(x, d.t().contiguous().t()), a @ dense)
    same(torch.sparse.mm(x, d), torch.sparse.mm(a, dense))
    same(x @ d[:, 0], a @ dense[:, 0])
    same(torch.mv(x, d[:, 0]), torch.mv(a, dense[:, 0]))
    same(torch.addmm(e, x, d, beta=0.5, alpha=2), torch.addmm(added, a, dense, beta=0.5, alpha=2))
    same(torch.sparse.addmm(e, x, d), torch.sparse.addmm(added, a, dense))
    same(torch.mm(x, d, out=torch.empty(5, width, device=device)), a @ dense)
    same(d.t() @ x.t(), (a @ dense).t())


def gradients(matrix, product, width=3):
    """Of the matrix and the dense factor."""
    torch.manual_seed(0)
    dense = torch.randn(4, width).to(matrix.device).requires_grad_()
    matrix = matrix.detach().requires_grad_()
    (product(matrix, dense) * torch.randn(5, width).to(matrix.device)).sum().backward()
    return matrix.grad, dense.grad


@pytest.mark.parametrize("layout", ["coo", "coalesced", "csr"])
@pytest.mark.parametrize("product", [torch.sparse.mm, torch.mm], ids=["sparse.mm", "mm"])
def test_gradients_of_products(device, layout, product):
    a = LAYOUTS[layout](duplicates())
    for ours, theirs in zip(gradients(a.to(device), product), gradients(a, product)):
        same(ours, theirs)


def test_gradients_of_values(device):
    def run(where):
        values = torch.arange(1.0, 4, device=where).requires_grad_()
        indices = torch.tensor([[0, 2, 2], [1, 0, 3]], device=where)
        matrix = torch.sparse_coo_tensor(indices, values, (3, 4))
        torch.sparse.mm(matrix, torch.arange(8.0, device=where).view(4, 2)).square().sum().backward()
        return values.grad

    same(run(device), run("cpu"))


# --- training ---


class GraphNetwork(nn.Module):
    """Two layers of graph convolution: the neighbours' features, weighted, then a dense layer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, graph, x):
        x = torch.relu(torch.sparse.mm(graph, self.first(x)))
        return torch.sparse.mm(graph, self.second(x))


def graph_of(nodes, where, layout):
    """Edges at random in both directions and from each node to itself, normalized by the square roots of degrees."""
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(nodes, (2, 4 * nodes), generator=generator)
    indices = torch.cat([ends, ends.flip(0), torch.arange(nodes).expand(2, -1)], 1).to(where)
    graph = torch.sparse_coo_tensor(indices, torch.ones(indices.size(1), device=where), (nodes, nodes)).coalesce()
    scale = torch.sparse.sum(graph, 1).to_dense().rsqrt()
    rows, columns = graph.indices()
    values = graph.values() * scale[rows] * scale[columns]
    graph = torch.sparse_coo_tensor(graph.indices(), values, (nodes, nodes)).coalesce()
    return graph.to_sparse_csr() if layout == "csr" else graph


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_a_graph_network_trains(device, layout):
    def run(where):
        torch.manual_seed(0)
        model, x, y = GraphNetwork(), torch.randn(60, 8), torch.randint(3, (60,))
        model, x, y, graph = model.to(where), x.to(where), y.to(where), graph_of(60, where, layout)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(graph, x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    ours, theirs = run(device), run("cpu")
    assert theirs[-1] < 0.95 * theirs[0]
    assert ours == pytest.approx(theirs, rel=1e-4)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "sparse_adam": lambda p: torch.optim.SparseAdam(p, lr=0.05),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


TABLES = {
    "embedding": lambda: nn.Embedding(20, 6, sparse=True, padding_idx=3),
    "sums of bags": lambda: nn.EmbeddingBag(20, 6, sparse=True, mode="sum"),
    "means of bags": lambda: nn.EmbeddingBag(20, 6, sparse=True, mode="mean"),
}


@pytest.mark.parametrize("optimizer, kind", [(name, "embedding") for name in OPTIMIZERS]
                         + [("sparse_adam", "sums of bags"), ("sgd", "means of bags")])
def test_an_embedding_with_sparse_gradients_trains(device, optimizer, kind):
    def run(where):
        torch.manual_seed(0)
        table, users = TABLES[kind](), torch.randint(20, (5, 8, 4))
        target = torch.randn(8, 6).to(where)
        table = table.to(where)
        steps = OPTIMIZERS[optimizer](table.parameters())
        for step in users.to(where):
            steps.zero_grad()
            out = table(step)
            loss = (out.sum(1) if out.dim() == 3 else out).sub(target).square().mean()
            loss.backward()
            assert table.weight.grad.layout == torch.sparse_coo
            steps.step()
        return table.weight.grad.coalesce(), table.weight.detach()

    for ours, theirs in zip(run(device), run("cpu")):
        same(ours, theirs, rtol=1e-4, atol=1e-5)


# --- refusals ---


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x @ x.t(), "aten::mm does not take two sparse tensors"),
        (lambda x: x * x, "aten::mul does not take two sparse COO tensors"),
        (lambda x: x.tril(), "aten::tril does not support sparse COO tensors; use a dense tensor, by to_dense()"),
        (lambda x: x.to_sparse_csr().relu(), "aten::relu does not support sparse compressed tensors"),
        (lambda x: torch.sparse.softmax(x, 1), "does not support sparse COO tensors"),
        (lambda x: x.to_dense().to_sparse_bsr((1, 2)), "sparse tensors are not supported"),
    ],
)
def test_what_is_not_served_is_refused_in_one_line(device, call, message):
    with pytest.raises(NotImplementedError) as refused:
        call(duplicates(device))
    assert message in str(refused.value) and len(str(refused.value).splitlines()) == 1
