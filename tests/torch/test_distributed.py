"""Two processes: collectives of the device's tensors; DistributedDataParallel and FSDP2 equal one process."""

import copy
import datetime

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def model_and_data():
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    return model, torch.randn(8, 6), torch.randn(8, 3)


def train(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def collectives(rank, device, _):
    x = torch.full((3,), float(rank + 1), device=device)
    dist.all_reduce(x)
    assert x.tolist() == [3, 3, 3]
    dist.broadcast(x.fill_(rank), src=1)
    assert x.tolist() == [1, 1, 1]
    gathered = [torch.zeros(2, device=device) for _ in range(2)]
    dist.all_gather(gathered, torch.full((2,), float(rank), device=device))
    assert [g.tolist() for g in gathered] == [[0, 0], [1, 1]]
    whole = torch.zeros(4, device=device)
    dist.all_gather_into_tensor(whole, torch.full((2,), float(rank), device=device))
    assert whole.tolist() == [0, 0, 1, 1]
    dist.all_gather_into_tensor(whole.view(1, 4).zero_(), torch.full((2,), float(rank), device=device))
    assert whole.tolist() == [0, 0, 1, 1], "whatever its shape is"
    dist.all_gather_into_tensor(whole[:2], torch.tensor(rank + 5.0, device=device))
    assert whole.tolist() == [5, 6, 1, 1]
    if rank == 0:
        dist.send(torch.arange(3.0, device=device), dst=1)
    else:
        received = torch.zeros(3, device=device)
        dist.recv(received, src=0)
        assert received.tolist() == [0, 1, 2]
    on_cpu = torch.ones(2)
    dist.all_reduce(on_cpu, async_op=True).wait()
    assert on_cpu.tolist() == [2, 2]
    objects = [None, None]
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    dist.barrier()


def numbered(rank, count, device):
    """rank * 10, rank * 10 + 1, ..."""
    return torch.arange(count, dtype=torch.float32, device=device) + 10 * rank


def exchanges(rank, device, _):
    """What each process sends is received only after it has called send."""
    peer, x = 1 - rank, numbered(rank, 3, device)
    first, second = torch.zeros(3, device=device), torch.zeros(3, device=device)
    receiving, sending = dist.irecv(first, peer), dist.isend(x, peer)
    x.fill_(-1)  # has been copied
    receiving.wait()
    sending.wait()
    assert first.tolist() == numbered(peer, 3, "cpu").tolist()
    first.fill_(5)
    assert receiving.wait() and first.tolist() == [5, 5, 5], "a second wait writes nothing"

    wanted = [dist.P2POp(dist.irecv, second, peer), dist.P2POp(dist.isend, x, peer)]
    for pending in dist.batch_isend_irecv(wanted):
        pending.wait()
    assert second.tolist() == [-1, -1, -1]

    if rank == 0:
        assert dist.recv(first) == 1, "the sender, where none was named"
        assert first.tolist() == [10, 11, 12]
    else:
        dist.send(numbered(rank, 3, device), 0)


def asynchronous(rank, device, _):
    x = numbered(rank, 2, device)
    pending = dist.all_reduce(x, async_op=True)
    while not pending.is_completed():
        pass
    assert x.tolist() == [10, 12]
    doubled = dist.all_reduce(x, async_op=True).get_future().then(lambda future: future.value()[0] * 2)
    assert doubled.wait().tolist() == [40, 48]
    with dist._coalescing_manager(async_ops=True) as pending:
        dist.all_reduce(x)
        dist.all_reduce(y := torch.ones(3, device=device))
    pending.wait()
    assert x.tolist() == [40, 48] and y.tolist() == [2, 2, 2]


def functional(rank, device, _):
    import torch.distributed._functional_collectives as functional

    group, x = dist.group.WORLD, numbered(rank, 4, device)
    both = [0, 1, 2, 3, 10, 11, 12, 13]
    mine = [10, 12] if rank == 0 else [14, 16]
    assert functional.all_reduce(x, "sum", group).tolist() == [10, 12, 14, 16]
    assert functional.broadcast(x, 1, group).tolist() == both[4:]
    assert functional.all_gather_tensor(x, 0, group).tolist() == both
    assert functional.reduce_scatter_tensor(x, "sum", 0, group).tolist() == mine
    exchanged = functional.all_to_all_single(x, None, None, group)
    assert exchanged.tolist() == ([0, 1, 10, 11] if rank == 0 else [2, 3, 12, 13])
    lists = functional.all_gather_into_tensor_coalesced([x, x[:1].clone()], group)
    assert [part.tolist() for part in lists] == [both, [0, 10]]
    lists = functional.reduce_scatter_tensor_coalesced([x, 2 * x], "sum", [0, 0], group)
    assert [part.tolist() for part in lists] == [mine, [2 * value for value in mine]]
    assert x.tolist() == numbered(rank, 4, "cpu").tolist()


def parameters(rank, device, _):
    """Autograd does not hear of a collective, as on the CPU."""
    weight = torch.nn.Parameter(numbered(rank, 2, device))
    dist.broadcast(weight, 1)
    assert weight.tolist() == [10, 11] and weight.is_leaf
    y = weight * 2
    before = y.grad_fn, y._version
    dist.all_reduce(y)
    assert y.tolist() == [40, 44] and (y.grad_fn, y._version) == before
    y.sum().backward()
    assert weight.grad.tolist() == [2, 2]
    with torch.inference_mode():
        constant = numbered(rank, 2, device)
    dist.all_reduce(constant)
    assert constant.tolist() == [10, 12]


def data_parallel(rank, device, folder):
    for name, prepared in ("data_parallel", lambda model: model), ("compiled", torch.compile):
        model, x, y = model_and_data()
        parallel = prepared(torch.nn.parallel.DistributedDataParallel(model.to(device)))
        part = slice(rank * 4, rank * 4 + 4)
        train(parallel, x[part].to(device), y[part].to(device))
        torch.save([p.detach().cpu() for p in model.parameters()], folder / f"{name}{rank}.pt")


def fully_sharded(rank, device, folder):
    from torch.distributed.fsdp import fully_shard

    model, x, y = model_and_data()
    whole = [len(p) for p in model.to(device).parameters()]
    mesh = dist.init_device_mesh("graft", (2,))
    for module in (model[0], model[2], model):
        fully_shard(module, mesh=mesh)
    part = slice(rank * 4, rank * 4 + 4)
    train(model, x[part].to(device), y[part].to(device))
    for p, rows in zip(model.parameters(), whole, strict=True):
        assert p.to_local().device == device and len(p.to_local()) < rows
    torch.save([p.full_tensor().detach().cpu() for p in model.parameters()], folder / f"fully_sharded{rank}.pt")


def synchronized(rank, device, _):
    """SyncBatchNorm over unequal parts of a batch is a batch norm of the whole."""
    shapes = ((8, 3), torch.float64, 1e-12), ((8, 3, 4, 2), torch.float32, 1e-5), ((8, 3, 4), torch.half, 2e-3)
    for shape, dtype, limit in shapes:
        torch.manual_seed(3)
        x, slopes = torch.randn(shape).to(dtype).double(), torch.randn(shape).to(dtype).double()
        alone = torch.nn.BatchNorm1d(3) if len(shape) < 4 else torch.nn.BatchNorm2d(3)
        torch.nn.init.normal_(alone.weight)
        norm = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(alone)).to(device)
        if dtype == torch.float64:
            norm = norm.double()
        part = slice(0, 5) if rank == 0 else slice(5, 8)
        mine, whole = x[part].to(device, dtype).requires_grad_(), x.requires_grad_()
        y, expected = norm(mine), alone.double()(whole)
        y.backward(slopes[part].to(device, dtype))
        expected.backward(slopes)
        for parameter in norm.parameters():
            dist.all_reduce(parameter.grad)
        found = [y, mine.grad, *norm.buffers(), *(p.grad for p in norm.parameters())]
        wanted = [expected[part], x.grad[part], *alone.buffers(), *(p.grad for p in alone.parameters())]
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a.detach().cpu().double(), b.detach().double(), rtol=limit, atol=limit)


def work(rank, folder, parts):
    start = f"file://{folder}/store"
    dist.init_process_group("graft", start, datetime.timedelta(seconds=30), world_size=2, rank=rank)
    for part in parts:
        part(rank, torch.device("graft", 0), folder)
    dist.destroy_process_group()


def test_collectives(tmp_path):
    mp.spawn(work, args=(tmp_path, [collectives, exchanges, asynchronous, functional, parameters]), nprocs=2)


def test_two_processes_equal_one(tmp_path):
    mp.spawn(work, args=(tmp_path, [data_parallel, fully_sharded, synchronized]), nprocs=2)
    model, x, y = model_and_data()
    train(model, x, y)
    for name in "data_parallel", "compiled", "fully_sharded":
        first, second = (torch.load(tmp_path / f"{name}{rank}.pt") for rank in range(2))
        for a, b, alone in zip(first, second, model.parameters(), strict=True):
            assert torch.equal(a, b), "the processes have the same weights"
            assert torch.allclose(a, alone, rtol=1e-5, atol=1e-6)


def test_gloo_alone_serves_the_device(tmp_path, device):
    dist.init_process_group("gloo", f"file://{tmp_path}/start", world_size=1, rank=0)
    try:
        x = torch.ones(3, device=device)
        dist.all_reduce(x)
        dist.broadcast(x, 0, group=dist.new_group([0], backend="gloo"))
        assert x.tolist() == [1, 1, 1] and dist.get_backend() == "gloo"
        gathered = [torch.zeros(2)]
        dist.all_gather(gathered, torch.ones(2))
        assert gathered[0].tolist() == [1, 1]
    finally:
        dist.destroy_process_group()


def test_data_parallel_keeps_to_one_device(device):
    model = torch.nn.Linear(2, 2).to(device)
    with pytest.raises(RuntimeError, match="DistributedDataParallel"):
        torch.nn.DataParallel(model, device_ids=[0, 1])
    one = torch.nn.DataParallel(model, device_ids=[0])
    assert one(torch.ones(4, 2)).device == device and one(input=torch.ones(4, 2)).device == device
