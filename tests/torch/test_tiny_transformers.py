"""The check of tests/benchmarks/torch/tiny_transformers.py: a model that trains is equal, and what is not so is named."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks" / "torch"))
import sides  # noqa: E402
import tiny_models  # noqa: E402
import tiny_transformers  # noqa: E402


@pytest.mark.parametrize("model_type, name", [("bert", "BertForPreTraining"), ("llava", "LlavaForConditionalGeneration")])
def test_a_model_trains(device, model_type, name, monkeypatch):
    monkeypatch.setattr(tiny_transformers, "SLOW", float("inf"))  # however busy the machine is
    row = tiny_transformers.examined(model_type, name, device)
    assert (row["outcome"], row["note"], row["missing"]) == ("equal", "", [])


def test_what_is_off_is_named():
    exact = {name: torch.linspace(1, 2, 9, dtype=torch.float64) for name in ("loss", "gradient of a", "gradient of b")}
    theirs = {name: value * (1 + 1e-6) for name, value in exact.items()}
    assert tiny_transformers.judge(theirs, [theirs], exact) == []
    ours = {**theirs, "gradient of b": exact["gradient of b"] * (1 + 1e-5)}
    first, worst = tiny_transformers.judge(ours, [theirs], exact)
    assert first == "first: gradient of b" and worst.startswith("gradient of b (")
    far = {**theirs, "gradient of b": exact["gradient of b"] * (1 + 2e-5)}
    assert tiny_transformers.judge(ours, [theirs, far], exact) == []
    ours.pop("gradient of a")
    assert tiny_transformers.judge(ours, [theirs], exact) == ["other parameters have gradients: gradient of a"]


def a_step(dtype, argument=-1e-8, scale=1.0):
    """Of a bias before a ReLU, one of whose arguments is this."""
    values = torch.linspace(-2, 3, 64, dtype=torch.float64)
    values[5] = argument
    bias = torch.zeros(64, dtype=dtype, requires_grad=True)
    loss = (torch.relu(values.to(dtype) + bias) * scale).sum()
    loss.backward()
    return {"loss": loss.detach().double(), "gradient of bias": bias.grad.double()}


@pytest.mark.parametrize("changed, right", [
    ({"argument": 1e-8}, True),  # rounding moves it as far, and its gradient is another
    ({"argument": 1e-3}, False),
    ({"argument": 1e-8, "scale": 1.001}, False),
])
def test_a_relu_may_have_either_sign_within_rounding(changed, right):
    ours, theirs, exact = (partial(a_step, torch.float32, **changed), partial(a_step, torch.float32),
                           partial(a_step, torch.float64))
    assert tiny_transformers.judge(ours(), [theirs()], exact()) != []
    assert (tiny_transformers.judge_errors(*sides.errors(ours, [theirs], exact)) == []) == right


def test_without_relus_there_are_no_sides():
    assert sides.errors(dict, [dict], dict) is None


def test_a_batch_is_filled_with_places():
    error = ValueError("Image features and image tokens do not match, tokens: 0, features: 8")
    model = type("Model", (), {"config": type("Config", (), {"image_token_id": 61, "sub_configs_defaults": None})()})
    model.config.hidden_size = 4
    length = tiny_models.LENGTH
    batch = {"input_ids": torch.full((tiny_models.BATCH, length), 5)}
    batch = tiny_models.with_places(torch, error, model, batch)
    assert (batch["input_ids"] == 61).sum() == 8 and batch["input_ids"].shape == (2, length + 4)
    # Some count elements: places that are as many as they said are too many.
    error = ValueError("Image features and image tokens do not match, tokens: 8, features: 8")
    batch = tiny_models.with_places(torch, error, model, batch)
    assert (batch["input_ids"] == 61).sum() == 2 and batch["input_ids"].shape == (2, length + 1)
