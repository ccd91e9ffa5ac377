"""Models of Hugging Face's transformers in tiny random configurations: training steps against f64, generate() token by
token against the CPU. Nothing is downloaded."""

import copy
import os

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TRANSFORMERS_VERBOSITY": "error"}

import pytest  # noqa: E402
import torch  # noqa: E402
import torch_graft  # noqa: E402
import training  # noqa: E402
from transformers import (  # noqa: E402
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

WORDS, LENGTH = 97, 12
PAD, END = 0, WORDS - 1
# Weights ten times as wide as usual: what a random model says then depends on what it was told.
WIDTH = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
TOKENS = {"vocab_size": WORDS, "max_position_embeddings": 64, "pad_token_id": PAD, "bos_token_id": 1}
TOKENS["eos_token_id"] = END
# Dropout draws other numbers on the CPU.
QUIET = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def gpt2(**options):
    quiet = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(**WIDTH, **TOKENS, **quiet, **options))


def llama(**options):
    # Two heads share a key.
    return LlamaForCausalLM(LlamaConfig(**WIDTH, **TOKENS, intermediate_size=48, num_key_value_heads=2, **options))


def bert(**options):
    return BertForMaskedLM(BertConfig(**WIDTH, **TOKENS, **QUIET, intermediate_size=48, **options))


def vit(**options):
    return ViTForImageClassification(
        ViTConfig(**WIDTH, **QUIET, intermediate_size=48, image_size=16, patch_size=4, num_labels=5, **options)
    )


def left_padded(rows=3):
    """Sentences of different lengths, padded in front, as generate() wants them."""
    sentences = torch.randint(2, END, (rows, LENGTH))
    mask = (torch.arange(LENGTH) >= 3 * torch.arange(rows)[:, None]).long()
    return {"input_ids": sentences.where(mask.bool(), PAD), "attention_mask": mask}


def sentences():
    batch = left_padded()
    return batch | {"labels": batch["input_ids"].where(batch["attention_mask"].bool(), -100)}


def images():
    return {"pixel_values": torch.randn(4, 3, 16, 16), "labels": torch.randint(0, 5, (4,))}


MODELS = {"gpt2": (gpt2, sentences), "llama": (llama, sentences), "bert": (bert, sentences), "vit": (vit, images)}
GENERATORS = ["gpt2", "llama"]
ATTENTION = ["eager", "sdpa"]


def forward(model, batch):
    result = model(**batch)
    return result.logits, result.loss


def made(name, **options):
    make, data = MODELS[name]
    return make(**options), data()


@pytest.fixture(autouse=True)
def nothing_leaves_the_device():
    torch_graft.reset_fallbacks()
    yield
    assert torch_graft.fallbacks() == []


def check(name, device, optimizer, **options):
    model, batch = made(name, **options)
    training.check_two_steps(model.train(), batch, forward, device, optimizer)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("name", MODELS)
def test_two_training_steps(device, name, attention):
    check(name, device, training.OPTIMIZERS["sgd"], attn_implementation=attention)


@pytest.mark.parametrize("fused", [None, True])
@pytest.mark.parametrize("name", MODELS)
def test_adamw(device, name, fused):
    # AdamW divides a gradient by its own size. With the usual eps, the rounding of gradients near zero would decide
    # whole steps, on any device.
    check(name, device, lambda parameters: torch.optim.AdamW(parameters, lr=0.01, eps=0.1, fused=fused))


def generate(model, prompt, where, **options):
    model = copy.deepcopy(model).to(where).eval()
    prompt = {name: t.to(where) for name, t in prompt.items()}
    return model.generate(**prompt, max_new_tokens=16, return_dict_in_generate=True, output_logits=True, **options)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("name", GENERATORS)
def test_greedy_generation(device, name, attention):
    model, prompt = MODELS[name][0](attn_implementation=attention), left_padded()
    theirs, ours = (generate(model, prompt, where, do_sample=False) for where in ("cpu", device))
    assert ours.sequences.device == device
    first, second = torch.stack(theirs.logits).topk(2).values.unbind(-1)
    assert (first - second).min() > 1e-3, "the seed leaves the choice to rounding: take another"
    assert ours.sequences.tolist() == theirs.sequences.tolist()
    assert torch.allclose(torch.stack(ours.logits).cpu(), torch.stack(theirs.logits), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", GENERATORS)
def test_sampling(device, name):
    model, prompt = MODELS[name][0](), left_padded()
    drawn = []
    for _ in range(2):
        torch.manual_seed(1)
        ours = generate(model, prompt, device, do_sample=True, temperature=0.8, top_k=20, top_p=0.9)
        assert ours.sequences.device == device
        drawn.append(ours.sequences.tolist())
    assert drawn[0] == drawn[1], "equal seeds, equal tokens"


def half_precision(model, batch, where):
    model, batch = copy.deepcopy(model).to(where), training.moved(batch, where, torch.float32)
    with torch.autocast(where.type, dtype=torch.bfloat16):
        logits, loss = forward(model, batch)
    loss.backward()
    assert logits.dtype is torch.bfloat16
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return {name: value.detach().cpu().double() for name, value in (gradients | {"logits": logits}).items()}


def test_autocast_in_bfloat16(device):
    model, batch = made("llama")

    def half(where):
        there, moved = training.moved(model, batch, where, torch.float32)
        with torch.autocast(torch.device(where).type, dtype=torch.bfloat16):
            results = training.step(there, moved, forward)
        assert results["logits"].dtype is torch.bfloat16
        return training.fetched(results)

    with training.Widened():
        exact = training.fetched(training.step(*training.moved(model, batch, "cpu", torch.float64), forward))
    training.judge(half(device), half("cpu"), exact)
