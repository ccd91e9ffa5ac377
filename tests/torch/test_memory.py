"""The caching allocator seen from PyTorch: statistics, limits, out of memory, pinned memory, asynchronous copies."""

import gc

import pytest
import torch

MIB = 2**20


def test_statistics(device):
    gc.collect()
    torch.graft.synchronize()
    before = torch.graft.memory_allocated()
    torch.graft.reset_peak_memory_stats()
    x = torch.empty(4 * MIB, dtype=torch.uint8, device=device)
    assert torch.graft.memory_allocated() - before == 4 * MIB
    assert torch.accelerator.memory_allocated() == torch.graft.memory_allocated(0)
    assert torch.graft.memory_reserved() >= torch.graft.memory_allocated()
    y = torch.empty_like(x)
    del y
    assert torch.graft.memory_allocated() - before == 4 * MIB
    assert torch.graft.max_memory_allocated() - before == 8 * MIB
    torch.graft.reset_peak_memory_stats()
    assert torch.graft.max_memory_allocated() - before == 4 * MIB
    del x
    assert torch.graft.memory_allocated() == before
    stats = torch.graft.memory_stats()
    for name in ("allocation", "segment", "active", "allocated_bytes", "reserved_bytes", "requested_bytes"):
        for part in ("current", "peak", "allocated", "freed"):
            assert stats[f"{name}.all.{part}"] >= 0
    assert stats["num_ooms"] >= 0 and stats["num_device_alloc"] > 0


def test_empty_cache(device):
    x = torch.empty(32 * MIB, dtype=torch.uint8, device=device)
    del x
    held = torch.graft.memory_reserved()
    torch.graft.empty_cache()
    assert torch.graft.memory_reserved() <= held - 32 * MIB


def test_blocks_are_reused(device):
    x = torch.empty(3 * MIB, dtype=torch.uint8, device=device)
    address = x.data_ptr()
    del x
    assert torch.empty(3 * MIB, dtype=torch.uint8, device=device).data_ptr() == address


def test_a_training_loop_does_not_grow(device):
    model = torch.nn.Linear(32, 32).to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        optimizer.zero_grad()
        model(torch.randn(16, 32, device=device)).square().mean().backward()
        optimizer.step()
        return torch.graft.memory_allocated(), torch.graft.memory_reserved()

    for _ in range(3):
        at_first = step()
    for _ in range(20):
        in_the_end = step()
    assert at_first == in_the_end


def test_summary(device):
    x = torch.empty(MIB, dtype=torch.uint8, device=device)
    text = torch.graft.memory_summary()
    assert text.startswith("graft:0:") and "Allocated memory" in text and "Segments" in text
    assert "Segments" not in torch.graft.memory_summary(abbreviated=True)
    del x


def test_memory_of_the_device(device):
    free, total = torch.graft.mem_get_info()
    assert 0 <= free <= total and total == torch.graft.get_device_properties().total_memory
    assert torch.accelerator.get_memory_info(0)[1] == total


def test_out_of_memory_and_after_it(device):
    total = torch.graft.mem_get_info()[1]
    torch.graft.empty_cache()
    torch.graft.set_per_process_memory_fraction((torch.graft.memory_reserved() + 64 * MIB) / total)
    try:
        keep = torch.ones(MIB, device=device)
        with pytest.raises(torch.OutOfMemoryError, match="(?i)mi?b|bytes") as caught:
            torch.empty(256 * MIB, dtype=torch.uint8, device=device)
        assert "256" in str(caught.value) or str(256 * MIB) in str(caught.value), caught.value
        assert torch.graft.memory_stats()["num_ooms"] > 0
        assert (keep + 1).sum().item() == 2 * MIB, "work goes on"
        assert torch.graft.get_per_process_memory_fraction() < 1
    finally:
        torch.graft.set_per_process_memory_fraction(1.0)
    assert torch.empty(256 * MIB, dtype=torch.uint8, device=device).nbytes == 256 * MIB
    torch.graft.empty_cache()


@pytest.mark.parametrize("fraction", [-0.1, 1.5])
def test_fractions_that_are_none(fraction):
    with pytest.raises(ValueError, match="0 to 1"):
        torch.graft.set_per_process_memory_fraction(fraction)


def test_a_request_without_end(device):
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2**50, dtype=torch.uint8, device=device)
    with pytest.raises(RuntimeError, match="overflow|too large|invalid"):
        torch.empty(2**62, 8, device=device)
    with pytest.raises(RuntimeError, match="negative"):
        torch.empty(-1, device=device)


def test_pinned_memory(device):
    x = torch.randn(1000).pin_memory()
    assert x.is_pinned() and not torch.randn(3).is_pinned() and not x.clone().is_pinned()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert x[10:20].is_pinned()
    y = x.to(device, non_blocking=True)
    assert torch.equal(y.cpu(), x)
    back = torch.empty_like(x, pin_memory=True)
    back.copy_(y * 2, non_blocking=True)
    torch.graft.synchronize()
    assert torch.equal(back, x * 2)
    with pytest.raises(RuntimeError, match="pin"):
        torch.empty(3, device=device, pin_memory=True)


@pytest.mark.parametrize("pinned", [False, True])
def test_the_source_may_change_after_a_copy_from_pageable_memory(device, pinned):
    """From pageable memory the copy is done with its source when it returns; pinned memory has to be waited for."""
    for _ in range(20):
        x = torch.full((MIB,), 7.0, pin_memory=pinned)
        y = x.to(device, non_blocking=True)
        if pinned:
            torch.graft.synchronize()
        x.fill_(-1)
        assert y.min().item() == 7 == y.max().item()


def test_pinned_memory_that_goes_while_it_is_read(device):
    results = []
    for i in range(30):
        x = torch.full((256 * 1024,), float(i), pin_memory=True)
        results.append(x.to(device, non_blocking=True))
        del x  # the block is free, and the next one may get it
    assert [r[-1].item() for r in results] == [float(i) for i in range(30)]


def test_data_loader_pins(device):
    data = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True)
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert torch.cat([batch.to(device, non_blocking=True) for batch in batches]).sum().item() == 66
