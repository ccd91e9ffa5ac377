"""The names of torch.cuda: torch.graft has them, or says why not; docs/pytorch.md lists the latter."""

import re
from pathlib import Path

import pytest
import torch
from torch_graft import _absent

PAGE = Path(__file__).parents[2] / "docs/pytorch.md"


def test_each_name_is_there_or_explained():
    here = {name for name in torch.cuda.__all__ if hasattr(torch.graft, name)}
    assert here.isdisjoint(_absent.REASONS)
    assert set(torch.cuda.__all__) - here == set(_absent.REASONS)


@pytest.mark.parametrize("name", sorted(_absent.REASONS))
def test_the_reason_is_said(name):
    with pytest.raises(AttributeError, match=re.escape(f"torch.graft has no {name}: {_absent.reason(name)}")):
        getattr(torch.graft, name)
    assert not hasattr(torch.graft, name) and "{" not in _absent.reason(name)


def test_other_names_are_as_in_any_module():
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        torch.graft.colour


def test_the_page_lists_them():
    section = PAGE.read_text().split("## Names of torch.cuda\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.*) \|$", section, re.MULTILINE)
    listed = {name: reason for names, reason in rows for name in re.findall(r"`(\w+)`", names)}
    assert listed == {name: _absent.reason(name) for name in _absent.REASONS}


def test_memory_by_its_address(device):
    before = torch.graft.memory_allocated()
    address = torch.graft.caching_allocator_alloc(1000)
    assert torch.graft.memory_allocated() - before >= 1000
    torch.graft.caching_allocator_delete(address)
    assert torch.graft.memory_allocated() == before
    with pytest.raises(ValueError, match="caching_allocator_alloc"):
        torch.graft.caching_allocator_delete(address)


def test_statistics_nested(device):
    x = torch.ones(1000, device=device)
    nested, flat = torch.graft.memory_stats_as_nested_dict(), torch.graft.memory_stats()
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"] >= x.nbytes
    assert torch.graft.memory_cached() == torch.graft.memory_reserved()


def test_capability(device):
    assert torch.float32 in torch.graft.get_device_capability(device)["supported_dtypes"]
    assert torch.graft.can_device_access_peer(0, 0) and not torch.graft.can_device_access_peer(0, 1)
