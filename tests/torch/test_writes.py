"""What writes to memory that others see: version counters, outs that are inputs, lazy clones, memory not written yet."""

import pytest
import torch
import torch_graft

LISTS = {  # by what is called with two lists of the same shapes
    "abs": lambda a, b: torch._foreach_abs_(a),
    "add": lambda a, b: torch._foreach_add_(a, b, alpha=2),
    "add a number": lambda a, b: torch._foreach_add_(a, 1.5),
    "addcdiv": lambda a, b: torch._foreach_addcdiv_(a, b, b, [1.0, 2.0]),
    "copy": lambda a, b: torch._foreach_copy_(a, b),
    "lerp": lambda a, b: torch._foreach_lerp_(a, b, 0.5),
    "mul by a tensor": lambda a, b: torch._foreach_mul_(a, b[0].sum()),
    "zero": lambda a, b: torch._foreach_zero_(a),
    "exp, of no row": lambda a, b: torch._foreach_exp_(a),
    "f16 by f32": lambda a, b: torch._foreach_div_([x.half() for x in a] + a, b + b),
}


def versions(device, call):
    """Of the lists, of views' bases, of what needs gradients, and of what is written without counting."""
    a = [torch.full((n,), 2.0, device=device) for n in (2, 3)]
    b = [torch.full((n,), 3.0, device=device) for n in (2, 3)]
    call(a, b)
    whole = torch.ones(2, 5, device=device)
    call([whole[0, :2], whole[1, 1:4]], b)
    leaves = [torch.ones(n, device=device, requires_grad=True) for n in (2, 3)]
    with torch.no_grad():
        call(leaves, b)
    nodes = [leaf * 1 for leaf in leaves]
    call(nodes, b)
    return [x._version for x in (*a, *b, whole, *leaves, *nodes)]


@pytest.mark.parametrize("name", LISTS)
def test_writes_to_lists_count_as_on_the_cpu(device, name):
    assert versions(device, LISTS[name]) == versions("cpu", LISTS[name])


def test_writes_of_complex_numbers_count_too(device):
    a = [torch.ones(2, dtype=torch.complex64, device=device)]
    torch_graft.reset_fallbacks()
    torch._foreach_div_(a, 2j)
    torch._foreach_sqrt_(a)
    assert torch_graft.fallbacks() == [] and a[0]._version == 2


def test_fused_steps_count_as_on_the_cpu(device):
    def versions(where):
        weight = torch.nn.Parameter(torch.ones(2, device=where))
        weight.grad = torch.ones_like(weight)
        torch.optim.SGD([weight], lr=0.1, momentum=0.9, fused=True).step()
        torch._amp_foreach_non_finite_check_and_unscale_(
            [weight.grad], torch.zeros(1, device=where), torch.ones(1, device=where)
        )
        return weight._version, weight.grad._version

    assert versions(device) == versions("cpu")


def test_lists_of_inference_tensors(device):
    with torch.inference_mode():
        a = [torch.ones(2, device=device)]
        torch._foreach_mul_(a, 3.0)
    assert a[0].tolist() == [3, 3]


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_backward_after_a_step_is_refused(device, optimizer):
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    loss = (weight * weight).sum()
    weight.grad = torch.ones_like(weight)
    optimizer([weight], lr=0.1, foreach=True).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


READ_AND_RESIZED = {
    "add": lambda x: torch.add(x[0, :2], torch.ones(300, 2, device=x.device), out=x[0, :2]),
    "mm": lambda x: torch.mm(x, torch.ones(300, 900, device=x.device), out=x),
    "cat": lambda x: torch.cat([x, x], out=x),
    "index_select": lambda x: torch.index_select(x, 0, torch.zeros(900, dtype=torch.long, device=x.device), out=x),
    "a view": lambda x: torch.mm(x.t(), torch.ones(300, 900, device=x.device), out=x),
}


@pytest.mark.parametrize("name", READ_AND_RESIZED)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_input_is_not_resized_as_an_output(device, name):
    x = torch.ones(300, 300, device=device)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        READ_AND_RESIZED[name](x)
    assert x.shape == (300, 300) and x.sum().item() == 90000


def test_an_input_without_elements_may_be_the_output(device):
    for where in ("cpu", device):
        x = torch.empty(3, 0, device=where)
        assert torch.mm(x, torch.ones(0, 4, device=where), out=x) is x
        assert x.tolist() == [[0] * 4] * 3
        x = torch.empty(0, 3, device=where)
        assert torch.sum(x, 0, out=x).tolist() == [0] * 3


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("fill", [lambda out: torch.linspace(0, 3, 4, out=out), lambda out: torch.arange(4, out=out),
                                  lambda out: torch.logspace(0, 3, 4, out=out)])
def test_sequences_fill_an_output_of_another_shape(device, fill):
    ours, theirs = torch.zeros(2, 3, device=device), torch.zeros(2, 3)
    fill(ours.narrow(1, 1, 2))
    fill(theirs.narrow(1, 1, 2))
    torch.testing.assert_close(ours.cpu(), theirs)
    with pytest.warns(UserWarning, match="was resized"):
        assert fill(torch.zeros(5, device=device)).shape == (4,)


def test_a_new_sequence_is_made_where_it_stays(device):
    memory, size = torch.get_device_module(device), 1 << 20
    before = memory.memory_allocated(device)
    memory.reset_peak_memory_stats(device)
    made = torch.arange(size, device=device)
    assert memory.max_memory_allocated(device) - before < 2 * size * 8
    assert torch.equal(made.cpu(), torch.arange(size))


def test_outputs_of_one_storage(device):
    """The second needs a larger one, which is the first's then, too."""
    whole = torch.zeros(2, device=device)
    low, high = whole[:], whole[2:]
    torch.aminmax(torch.arange(6.0, device=device).view(3, 2), dim=0, out=(low, high))
    assert low.tolist() == [0, 1] and high.tolist() == [4, 5]


def test_a_copy_to_the_cpu_leaves_lazy_clones_alone(device):
    a = torch.zeros(4)
    b = torch._lazy_clone(a)
    b.copy_(torch.ones(4, device=device))
    assert a.tolist() == [0] * 4 and b.tolist() == [1] * 4
    c = torch._lazy_clone(a)
    c[1:].copy_(torch.ones(3, device=device), non_blocking=True)
    torch.graft.synchronize()
    assert a.tolist() == [0] * 4 and c.tolist() == [0, 1, 1, 1]


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.int64, torch.uint8, torch.uint64, torch.bool]


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float8_e5m2, torch.float8_e4m3fn], ids=str)
def test_memory_is_filled_in_deterministic_mode(device, deterministic, dtype):
    def made(where):
        yield torch.empty(3, dtype=dtype, device=where)
        yield torch.empty_strided((2, 2), (1, 4), dtype=dtype, device=where)
        yield torch.empty_like(torch.zeros(2, 3, 4, 4, dtype=dtype, device=where), memory_format=torch.channels_last)
        yield torch.zeros(2, dtype=dtype, device=where).resize_(5)
        yield torch.zeros(4, dtype=dtype, device=where)[2:].resize_(3, 2)
        yield torch.empty(0, dtype=dtype, device=where).resize_(2)

    for mine, theirs in zip(made(device), made("cpu")):
        assert mine.stride() == theirs.stride()
        view = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
        if dtype.is_floating_point or dtype.is_complex:
            mine, theirs = mine.cpu().to(torch.complex64), theirs.to(torch.complex64)
            torch.testing.assert_close(mine, theirs, equal_nan=True, rtol=0, atol=0)
        else:
            assert torch.equal(mine.cpu().view(view), theirs.view(view))


def test_memory_is_not_filled_where_that_is_off(device, deterministic):
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        x = torch.zeros(5, device=device).resize_(3).resize_(5)
        assert x.tolist() == [0] * 5
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True


def seat(device, dtype):
    """Six places for two numbers: rows of one and columns of the other share memory."""
    base = torch.tensor([[1.0], [2.0]], device=device).to(dtype)
    return base, base.expand(2, 3)


SHARED = {  # what PyTorch lets write there
    "fill_": lambda x: x.fill_(7),
    "fill_ a row": lambda x: x[1].fill_(7),
    "zero_": lambda x: x.zero_(),
    "zeros(out=)": lambda x: torch.zeros(2, 3, out=x),
    "full(out=)": lambda x: torch.full((2, 3), 7.0, out=x),
    "fill_diagonal_": lambda x: x.fill_diagonal_(7),
    "setitem": lambda x: x.__setitem__((1, 2), 7),
    "masked_fill_": lambda x: x.masked_fill_(torch.tensor([[False, True, False], [False] * 3], device=x.device), 7),
    "masked_fill_ by nothing": lambda x: x.masked_fill_(torch.zeros(2, 3, dtype=torch.bool, device=x.device), 7),
    "masked_fill_ a tensor": lambda x: x.masked_fill_(
        torch.tensor([False, False, True], device=x.device), torch.ones((), dtype=x.dtype, device=x.device)
    ),
    "index_fill_ along what is shared": lambda x: x.index_fill_(1, torch.tensor([2], device=x.device), 7),
    "index_fill_ along what is not": lambda x: x.index_fill_(0, torch.tensor([1], device=x.device), 7),
}


@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors is deprecated")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex128], ids=str)
@pytest.mark.parametrize("name", SHARED)
def test_one_value_for_elements_that_share_memory(device, name, dtype):
    here, there = seat(device, dtype), seat("cpu", dtype)
    SHARED[name](here[1])
    SHARED[name](there[1])
    assert torch.equal(here[0].cpu(), there[0]) and torch.equal(here[1].cpu(), there[1])
    assert here[0]._version == there[0]._version


def test_the_very_case(device):
    assert torch.zeros(1, device=device).expand(3).fill_(1).tolist() == [1, 1, 1]


def test_elements_that_meet_without_being_expanded(device):
    assert torch.zeros(4, device=device).as_strided((3, 2), (1, 1)).fill_(2).sum().item() == 12


def test_pytorch_warns_of_masks_there(device):
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors is deprecated"):
        torch.zeros(1, device=device).expand(3).masked_fill_(torch.tensor([True, False, True], device=device), 1)


def test_other_writes_to_shared_elements_are_refused(device):
    x, index = torch.zeros(1, device=device).expand(3), torch.tensor([0], device=device)
    ones = torch.ones(3, device=device)
    for write in (
        lambda: x.add_(1),
        lambda: x.copy_(ones),
        lambda: x.fill_(ones[0]),
        lambda: x.uniform_(),
        lambda: x.scatter_(0, index, 1.0),
        lambda: x.index_add_(0, index, ones[:1]),
        lambda: x.put_(index, ones[:1]),
        lambda: torch.add(ones, 1, out=x),
    ):
        with pytest.raises(RuntimeError, match="share memory|single memory location"):
            write()
    assert x.tolist() == [0, 0, 0]


# --- memory that was taken away ---


def test_a_storage_that_was_resized(python):
    """FSDP gives the memory of parameters away and gets it back. What is done to a tensor meanwhile is an error."""
    python(
        """
        import pytest, torch
        from torch.testing import assert_close
        x = torch.arange(6.0, device="graft").view(2, 3)
        column = x[:, 2]
        storage = x.untyped_storage()
        uses = [
            lambda: x + 1, lambda: 1 - x, lambda: x.sum(), lambda: x[1, 2].item(), lambda: x.cpu(), lambda: x.clone(),
            lambda: x.fill_(1), lambda: x @ x.t(), lambda: x.copy_(torch.ones(2, 3)), lambda: column.add_(1),
            lambda: torch.ones(2, 3, device="graft").copy_(x), lambda: torch.cat([x, x]), lambda: x.tolist(),
            lambda: torch._foreach_add_([x], 1), lambda: torch.special.bessel_j0(x), lambda: torch.from_dlpack(x),
            lambda: torch.add(column, 1, out=column), lambda: x.to("graft", torch.float16), lambda: repr(x),
        ]
        for bytes in (20, 0):  # the last element, and all of it
            storage.resize_(bytes)
            for i, use in enumerate(uses):
                with pytest.raises(RuntimeError, match="resized|out of bounds for storage"):
                    use()
                    raise SystemExit(f"use {i} with {bytes} bytes")
            assert bytes == 0 or (x[:1] + 1).tolist() == [[1, 2, 3]], "what is left can be used"
        storage.resize_(24)
        x.copy_(torch.arange(6.0).view(2, 3))
        assert x.sum().item() == 15 and column.tolist() == [2, 5]
        """
    ).ok()


def test_a_storage_of_the_cpu_that_was_resized(device):
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="resized"):
        x.to(device)
