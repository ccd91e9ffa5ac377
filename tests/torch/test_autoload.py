"""What `import torch` does, and what it never does: raise, or open a driver. Each test is a process of its own."""

import json
import textwrap

import pytest

OPENED = "any('graft_opencl' in line for line in open('/proc/self/maps'))"


def test_import_torch_alone(python):
    python(
        f"""
        import sys, warnings
        warnings.simplefilter("error")
        import torch
        assert not torch.graft.is_initialized() and not torch.graft._initialized
        assert not {OPENED}, "import torch opened the plugin"
        assert "torch._dynamo" not in sys.modules
        torch.manual_seed(3)
        assert not {OPENED}, "seeding opened the plugin"
        assert (torch.ones(3, device="graft") + 1).cpu().tolist() == [2, 2, 2]
        assert {OPENED} and torch.graft.is_initialized() and torch.graft._initialized
        import torch.graft.amp
        assert torch.graft.amp.autocast and torch.get_device_module("graft") is torch.graft
        """
    ).ok()


def test_autoload_can_be_switched_off(python):
    python(
        """
        import sys, torch
        assert "torch_graft" not in sys.modules and not hasattr(torch, "graft")
        try:
            torch.device("graft")
            raise SystemExit("the device is there")
        except RuntimeError:
            pass
        import torch_graft
        assert torch.ones(2, device="graft").sum().item() == 2
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD=0,
    ).ok()


def test_torch_graft_imported_first(python):
    python(
        """
        import torch_graft
        import torch
        assert torch_graft.devices()[0].index == 0
        assert torch.ones(2, device="graft").sum().item() == 2
        """
    ).ok()


def test_refused_plugins_are_warnings(python, tmp_path):
    (tmp_path / "broken.graft.json").write_text("{ this is not JSON")
    (tmp_path / "absent.graft.json").write_text(
        json.dumps({"name": "absent", "library": "nowhere.so", "abi": 1, "vendor": "x", "version": "1"})
    )
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch
        texts = [str(w.message) for w in seen if "torch_graft" in str(w.message)]
        assert len(texts) == 2, texts
        assert any("broken.graft.json" in t for t in texts) and any("absent.graft.json" in t for t in texts), texts
        assert (torch.ones(2, device="graft") * 2).sum().item() == 4
        """
    python(code, GRAFT_PLUGIN_PATH=tmp_path).ok()
    use = "import torch; torch.ones(2, device='graft')"
    outcome = python(use, options=["-Werror"], GRAFT_PLUGIN_PATH=tmp_path).ok()
    assert "broken.graft.json" in outcome.err


def test_library_that_does_not_open(python, tmp_path):
    (tmp_path / "fake.so").write_text("not a library")
    (tmp_path / "fake.graft.json").write_text(
        json.dumps(
            {"name": "fake", "library": "fake.so", "abi": {"major": 1, "minor": 0}, "vendor": "x", "version": "1"}
        )
    )
    python(
        """
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch, torch_graft
            names = [row.plugin for row in torch_graft.devices()]
        assert any("fake" in str(w.message) for w in seen), [str(w.message) for w in seen]
        assert "fake" not in names and names, names
        assert (torch.ones(2, device="graft") * 2).sum().item() == 4
        """,
        GRAFT_PLUGIN_PATH=tmp_path,
    ).ok()


def make_rival(folder):
    """Another package that wants PyTorch's device key, as its entry point would be installed."""
    (folder / "rival.py").write_text(
        textwrap.dedent(
            """
            import torch
            torch.utils.rename_privateuse1_backend("rival")

            def autoload():
                pass
            """
        )
    )
    info = folder / "rival-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\nrival = rival:autoload\n")


@pytest.mark.parametrize("order", ["before", "after"])
def test_another_package_has_the_key(python, tmp_path, order):
    """Whichever of the two PyTorch happens to load first, it imports, and ours stands aside."""
    make_rival(tmp_path)
    where = "sys.path.insert(0, path)" if order == "before" else "sys.path.append(path)"
    python(
        f"""
        import sys, warnings
        path = {str(tmp_path)!r}
        {where}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch
        texts = [str(w.message) for w in seen if "torch_graft" in str(w.message)]
        assert len(texts) == 1 and '"rival"' in texts[0] and "TORCH_DEVICE_BACKEND_AUTOLOAD=0" in texts[0], texts
        assert torch.device("rival") and not hasattr(torch, "graft")
        import torch_graft
        try:
            torch_graft.devices()
            raise SystemExit("no error")
        except RuntimeError as error:
            assert "rival" in str(error)
        """
    ).ok()


def test_other_name(python):
    python(
        """
        import io, torch, torch_graft
        x = torch.ones(3, device="chip")
        assert str(x.device) == "chip:0" and x.is_chip and torch.ones(1).chip().is_chip
        assert torch.nn.Linear(2, 2).chip().weight.device.type == "chip"
        assert (x.exp() + 1).cpu().allclose(torch.ones(3).exp() + 1)
        assert torch.chip.current_device() == 0 and torch.get_device_module("chip") is torch.chip
        assert torch.from_dlpack(x).device == x.device and x.__dlpack_device__()[0] == 12
        buffer = io.BytesIO()
        torch.save(x, buffer)
        buffer.seek(0)
        assert torch.load(buffer).device == x.device
        with torch.autocast("chip", dtype=torch.bfloat16):
            assert (torch.ones(2, 2, device="chip") @ torch.ones(2, 2, device="chip")).dtype == torch.bfloat16
        assert torch.graft if hasattr(torch, "graft") else True
        """,
        GRAFT_TORCH_DEVICE_NAME="chip",
    ).ok()


@pytest.mark.parametrize("name", ["cuda", "ones", "My-Chip"])
def test_names_that_can_not_be(python, name):
    python(
        f"""
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch
        assert any({name!r} in str(w.message) and "GRAFT_TORCH_DEVICE_NAME" in str(w.message) for w in seen)
        assert torch.ones(2, device="graft").sum().item() == 2
        """,
        GRAFT_TORCH_DEVICE_NAME=name,
    ).ok()


def test_built_for_another_torch(python):
    """A C++ part of another version is not opened at all."""
    python(
        """
        import sys, types, warnings
        sys.modules["torch_graft._built_for"] = types.SimpleNamespace(TORCH="1.9")
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch
        assert any("built for PyTorch 1.9" in str(w.message) and "pip install" in str(w.message) for w in seen)
        assert "torch_graft._C" not in sys.modules
        assert torch.ones(2).sum().item() == 2
        """
    ).ok()


def test_an_installation_that_is_broken(python, tmp_path):
    (tmp_path / "torch_graft").mkdir()
    (tmp_path / "torch_graft/__init__.py").write_text("raise NameError('half of it is missing')")
    python(
        f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import torch
        assert any("half of it is missing" in str(w.message) for w in seen)
        assert torch.ones(2).sum().item() == 2
        """
    ).ok()
