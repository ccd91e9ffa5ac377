"""Two processes: collectives of the device's tensors, and DistributedDataParallel equals one process."""

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


def collectives(rank, device):
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


def work(rank, folder):
    dist.init_process_group("graft", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    device = torch.device("graft", 0)
    collectives(rank, device)
    model, x, y = model_and_data()
    parallel = torch.nn.parallel.DistributedDataParallel(model.to(device))
    part = slice(rank * 4, rank * 4 + 4)
    train(parallel, x[part].to(device), y[part].to(device))
    torch.save([p.detach().cpu() for p in model.parameters()], f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_equal_one(tmp_path):
    mp.spawn(work, args=(str(tmp_path),), nprocs=2)
    model, x, y = model_and_data()
    train(model, x, y)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for a, b, alone in zip(first, second, model.parameters(), strict=True):
        assert torch.equal(a, b), "the processes have the same weights"
        assert torch.allclose(a, alone, rtol=1e-5, atol=1e-6)
