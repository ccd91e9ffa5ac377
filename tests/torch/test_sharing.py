"""Tensors of the device between processes: DataLoader workers, queues. The children are spawned, each once."""

from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing as mp


class Rows(torch.utils.data.Dataset):
    """Holds tensors of the device, which start the worker with it."""

    def __init__(self, device):
        self.numbers = torch.arange(16, device=device, dtype=torch.bfloat16).reshape(2, 8).t()
        self.scale = torch.nn.Parameter(torch.ones(3, device=device))
        self.bytes = torch.arange(4, device=device, dtype=torch.uint8).untyped_storage()

    def __len__(self):
        return 8

    def __getitem__(self, index):
        assert type(self.scale) is torch.nn.Parameter and self.scale.requires_grad and self.numbers.stride() == (1, 8)
        assert self.bytes.device == self.numbers.device and self.bytes.tolist() == [0, 1, 2, 3]
        return (self.scale * self.numbers[index, 0]).detach(), index


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_worker_is_given_and_returns_tensors_of_the_device(device, start):
    loader = torch.utils.data.DataLoader(
        Rows(device), batch_size=4, num_workers=1, multiprocessing_context=start, timeout=100
    )
    batches = list(loader)
    assert [rows.device for rows, _ in batches] == [device, device]
    assert torch.cat([rows for rows, _ in batches])[:, 2].tolist() == list(range(8))


def give_back(taken, given):
    while (value := taken.get(timeout=100)) is not None:
        given.put(value)


def test_queues(device):
    context = mp.get_context("spawn")
    there, back = context.Queue(), context.Queue()
    process = context.Process(target=give_back, args=(there, back), daemon=True)
    process.start()

    def sent(value):
        there.put(value)
        return back.get(timeout=100)

    try:
        x = torch.arange(6.0, device=device).reshape(2, 3).t()
        y = sent(x)
        assert y.device == device and torch.equal(y, x) and y.stride() == x.stride()
        assert sent(torch.empty(0, 2, device=device)).shape == (0, 2)
        assert sent(torch.ones(2, device=device, requires_grad=True)).requires_grad
        parameter = sent(torch.nn.Parameter(torch.ones(2, device=device), requires_grad=False))
        assert type(parameter) is torch.nn.Parameter and not parameter.requires_grad
        storage = sent(torch.arange(4, device=device, dtype=torch.uint8).untyped_storage())
        assert storage.device == device and storage.tolist() == [0, 1, 2, 3]
        torch.set_default_device(device)  # of what a program makes, not of copies
        storage = sent(torch.arange(4, dtype=torch.uint8).untyped_storage())
        assert storage.device == device and storage.tolist() == [0, 1, 2, 3]
        torch.set_default_device(None)
        assert sent(torch.ones(2)).device.type == "cpu"
    finally:
        torch.set_default_device(None)
        there.put(None)
        process.join(60)


def test_history_is_not_sent(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        ForkingPickler.dumps(x * 2)
