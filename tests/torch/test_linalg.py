"""What the suite's cases of linear algebra do not have: matrices of all scales, numbers that are none, memory beside the
results, small letters, pivots that name no row."""

import pytest
import torch

import torch_graft

L = torch.linalg
INDEFINITE = torch.tensor([[0.0, 1, 0.5], [1, 0, 0.25], [0.5, 0.25, 0]])  # its LDL factorization has a pair of rows


@pytest.mark.parametrize("scale", [1e-30, 1e-24, 1e-20, 1.0, 1e20, 1e24, 1e30])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_factors_of_every_scale(device, scale, hermitian):
    factors = L.ldl_factor((INDEFINITE * scale).to(device), hermitian=hermitian)
    x = L.ldl_solve(*factors, torch.ones(3, 1, device=device), hermitian=hermitian).cpu()
    torch.testing.assert_close(x * scale, torch.tensor([[1.25], [1.5], [-1.0]]))


@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_ldl_factors_of_what_is_no_number(device, size):
    factors = L.ldl_factor_ex(torch.full((size, size), torch.nan, device=device))
    assert factors.pivots.abs().le(size).all() and factors.pivots.ne(0).all()
    assert L.ldl_solve(*factors[:2], torch.ones(size, 1, device=device)).isnan().all()


NO_NUMBERS = """
    import torch, torch_graft

    for dtype in (torch.float32, torch.float64, torch.complex64):
        for size in (2, 20, 200):
            column = torch.zeros(size, 1, dtype=dtype)
            column[0], column[-1] = 1, torch.nan
            matrix = torch.zeros(size, size, dtype=dtype)
            matrix[0, -1], matrix[-1, 0] = torch.nan, 1  # its factors are the transposed one's
            assert torch.linalg.qr(column.to("graft")).R.isnan().all(), (dtype, size)
            assert torch.geqrf(column.to("graft")).tau.isnan().all(), (dtype, size)
            assert torch.linalg.det(matrix.to("graft")).isnan(), (dtype, size)
            assert torch.linalg.slogdet(matrix.to("graft")).logabsdet.isnan(), (dtype, size)
"""


@pytest.mark.parametrize("kernels", ["cpu", "gpu"])
def test_a_nan_below_a_pivot_of_zero_or_a_column_of_zeros_is_not_lost(python, kernels):
    python(NO_NUMBERS, GRAFT_OPENCL_KERNELS=kernels).ok()


@pytest.mark.parametrize("size", [3, 33])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_matrix_of_two_diagonals_that_ends_in_zero(device, dtype, size):
    """A step without a shift finds the singular value of 0."""
    matrix = torch.diag(torch.arange(1, size + 1, dtype=dtype)) + torch.diag(torch.ones(size - 1, dtype=dtype), 1)
    matrix[-1, -1] = 0
    u, s, vh = L.svd(matrix.to(device))
    torch.testing.assert_close(s.cpu(), L.svdvals(matrix), rtol=0, atol=size * 10 * torch.finfo(dtype).eps)
    torch.testing.assert_close(((u * s) @ vh).cpu(), matrix, rtol=0, atol=size * 10 * torch.finfo(dtype).eps)


def test_ldl_factors_leave_their_neighbours_alone(device):
    room = torch.full((32,), 7.0, device=device)
    matrix = torch.eye(3, device=device)
    matrix[2, 2] = torch.nan
    integers = [torch.zeros(shape, dtype=torch.int32, device=device) for shape in ((3,), ())]
    L.ldl_factor_ex(matrix, out=(room[:9].view(3, 3), *integers))
    assert room[8].isnan() and room[9:].eq(7).all()


def test_factors_go_to_outputs_of_their_dtypes(device):
    x = torch.eye(3, device=device)
    for use, dtypes in (
        (L.cholesky_ex, (torch.float32, torch.int32)),
        (L.inv_ex, (torch.float32, torch.int32)),
        (L.lu_factor_ex, (torch.float32, torch.int32, torch.int32)),
        (L.ldl_factor_ex, (torch.float32, torch.int32, torch.int32)),
    ):
        use(x, out=tuple(torch.empty(0, dtype=dtype, device=device) for dtype in dtypes))
        for other in range(len(dtypes)):
            out = tuple(torch.empty(0, dtype=torch.float64 if i == other else dtype, device=device)
                        for i, dtype in enumerate(dtypes))
            with pytest.raises(RuntimeError, match="given output"):
                use(x, out=out)


def test_either_letter_names_the_triangle(device):
    x = torch.tensor([[2.0, 1], [0, 2]], device=device)
    for letter, values in (("l", [2, 2]), ("L", [2, 2]), ("u", [1, 3]), ("U", [1, 3])):
        torch.testing.assert_close(L.eigh(x, UPLO=letter).eigenvalues.cpu(), torch.tensor(values).float())
    with pytest.raises(RuntimeError, match="expected one of 'L', 'U'"):
        torch._linalg_eigh(x, "x")


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("pivot", [0, 4, -4, 2**31 - 1])
def test_pivots_that_name_no_row(device, place, pivot):
    factor, right = torch.eye(3, device=device), torch.ones(3, 2, device=device)
    pivots = torch.tensor([1, 2, 3], dtype=torch.int32)
    pivots[place] = pivot
    pivots = pivots.to(device)
    for use in (lambda: L.lu_solve(factor, pivots, right), lambda: L.ldl_solve(factor, pivots, right),
                lambda: torch.lu_unpack(factor, pivots)):  # fmt: skip
        with pytest.raises(RuntimeError, match="names no row"):
            use()
            torch.graft.synchronize()


def test_division_without_a_rounding_mode(device):
    x, y = torch.tensor([1.0, 7, -7, 3]), torch.tensor([3.0, 2, 2, -2])
    for a, b in ((x, y), (x.int(), y.int()), (x.half(), y.half()), (x, 2.5), (x.int(), 2)):
        ours = torch.div(a.to(device), b.to(device) if torch.is_tensor(b) else b, rounding_mode=None)
        torch.testing.assert_close(ours.cpu(), torch.div(a, b, rounding_mode=None))


FACTORIZATIONS = {
    "cholesky_ex": (), "inv_ex": (), "lu_factor_ex": (), "solve_ex": (torch.ones(2, 2),),
}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_errors_that_are_asked_for(device, name, out, batch):
    """They are those of PyTorch, and what finds them is on the device."""
    function = getattr(torch.linalg, name)
    matrix = torch.stack([torch.eye(2), torch.zeros(2, 2)]) if batch else torch.zeros(2, 2)
    raised = []
    for where in ("cpu", device):
        arguments = [t.to(where) for t in (matrix, *FACTORIZATIONS[name])]
        outs = {"out": tuple(torch.empty_like(t) for t in function(*arguments))} if out else {}
        with pytest.raises(RuntimeError) as error:
            function(*arguments, check_errors=True, **outs)
        raised.append((error.type, str(error.value).splitlines()[0]))
        identity = torch.eye(2).to(where)
        assert function(identity, *arguments[1:], check_errors=True)[-1].item() == 0
    assert raised[0] == raised[1]


def test_an_error_of_ldl_is_the_hosts(device):
    """PyTorch's own text says that it is an internal one."""
    assert torch.linalg.ldl_factor_ex(torch.eye(2, device=device), check_errors=True).info.item() == 0
    with pytest.raises(RuntimeError, match="ldl_factor_ex"):
        torch.linalg.ldl_factor_ex(torch.zeros(2, 2, device=device), check_errors=True)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(
    "a, b", [((5, 3), (5, 2)), ((3, 5), (3, 2)), ((2, 3, 5), (2, 3)), ((1, 5, 3), (4, 5, 2)), ((2, 1, 3, 5), (1, 3, 3, 2))]
)
def test_least_squares_are_the_cpus(device, driver, a, b):
    draw = torch.Generator().manual_seed(1)
    system = [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in (a, b)]
    torch_graft.reset_fallbacks()
    found = L.lstsq(*[part.to(device) for part in system], driver=driver)
    assert torch_graft.fallbacks() == []
    for there, here in zip(found, L.lstsq(*system, driver=driver), strict=True):
        torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("stack", [(), (2,)])
def test_least_squares_of_lower_rank_have_no_residuals(device, driver, stack):
    system = torch.ones(*stack, 5, 3), torch.arange(10.0).reshape(5, 2).expand(*stack, 5, 2)
    found = L.lstsq(*[part.to(device) for part in system], driver=driver)
    for there, here in zip(found, L.lstsq(*system, driver=driver), strict=True):
        torch.testing.assert_close(there.cpu(), here, rtol=1e-4, atol=1e-4)
