"""Writes the calls that `graft warm` makes: record_calls.py | sort -u > sdk/cli/warm_calls.txt

They are those that tiny models of all kinds (tiny_models.py) make in two training steps on a device, in the text form of
calls (conformance/text/text.h): one for each op, dtypes, ranks and layouts, since compiled programs differ by these,
and each that the device took a further program for, since some differ by sizes, too. Which calls a model makes depends on
what else is installed (DETR's loss wants scipy): compare with what is there before lines go."""

import contextlib
import os
import sys
import warnings
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "GRAFT_FALLBACK": "allow"}

import tiny_transformers  # noqa: E402
import torch  # noqa: E402
import torch_graft  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

MODELS = """bert:BertForMaskedLM gpt2:GPT2LMHeadModel llama:LlamaForCausalLM mixtral:MixtralForCausalLM
 t5:T5ForConditionalGeneration mamba:MambaForCausalLM bart:BartForConditionalGeneration vit:ViTForImageClassification
 resnet:ResNetForImageClassification convnext:ConvNextForImageClassification swin:SwinForImageClassification
 mobilenet_v2:MobileNetV2ForImageClassification detr:DetrForObjectDetection segformer:SegformerForSemanticSegmentation
 whisper:WhisperForConditionalGeneration wav2vec2:Wav2Vec2ForCTC clip:CLIPModel llava:LlavaForConditionalGeneration
 qwen2_vl:Qwen2VLForConditionalGeneration""".split()
DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "uint8": "u8",
          "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "complex64": "c64", "complex128": "c128"}
FORMATS = {torch.contiguous_format: "'contiguous'", torch.preserve_format: "'preserve'",
           torch.channels_last: "'channels_last'", torch.channels_last_3d: "'channels_last_3d'"}
# What is no argument of an op in Graft, and what reads or makes memory only.
DROPPED = {"layout", "pin_memory", "device", "non_blocking", "generator"}
DEVICE = "graft:0"
LIST = 8
# Calls that recording misses: those of no tensor are ops that Graft does not have, and come to these; and a small sum of
# long rows, whose program no model of the list asks for.
ALSO = [*(f"aten::arange.start_step 0 12 1 dtype={name}" for name in ("i64", "i32", "f32")),
        "aten::sum.dim_IntList f32[2,16384] [0] true"]
OPS = Path(__file__).resolve().parents[3] / "plugin_api" / "ops"


class NotText(Exception):
    pass


def known():
    """The names of Graft's ops."""
    lines = [line for path in OPS.glob("*.ops") for line in path.read_text().splitlines()]
    return {line.split("\t")[-1].partition("(")[0] for line in lines if line and not line.startswith("#")}


def name_of(dtype):
    return DTYPES[str(dtype).removeprefix("torch.")]


def text_of(value):
    if value is None:
        return "_"
    if isinstance(value, torch.Tensor):
        if value.device.type == "cpu":
            raise NotText
        sizes = ",".join(map(str, value.shape))
        strides = "" if value.is_contiguous() else ":" + ",".join(map(str, value.stride()))
        return f"{name_of(value.dtype)}[{sizes}]{strides}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, torch.dtype):
        return name_of(value)
    if isinstance(value, torch.memory_format):
        return FORMATS[value]
    if isinstance(value, (list, tuple)):
        tensors = any(isinstance(item, torch.Tensor) for item in value)
        if all(isinstance(item, bool) for item in value) and value:
            return "[" + ",".join(str(int(item)) for item in value) + "]"
        items = [text_of(item) for item in value]
        return "{" + ";".join(items) + "}" if tensors else "[" + ",".join(items) + "]"
    raise NotText


def kind_of(value):
    """What the programs of a call depend on."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), value.is_contiguous(), tuple(s == 0 for s in value.stride())
    if isinstance(value, (list, tuple)):
        return tuple(kind_of(item) for item in value[:2]) if any(isinstance(v, torch.Tensor) for v in value) else tuple(value)
    return type(value) if isinstance(value, float) else str(value)


def functional(function, args):
    """The op that a call in place comes to, whose id Graft has. Gradients of an index come to _index_put_impl, but
    where a mode looks on (areAnyTensorSubclassLike in PyTorch): there they are index_put."""
    name, _, overload = str(function).removeprefix("aten.").partition(".")
    if name.removesuffix("_") == "index_put" and args[3:] == (True,):
        return "aten::_index_put_impl"
    return f"aten::{name.removesuffix('_')}" + ("" if overload == "default" else f".{overload}")


def programs():
    """How many the device has taken: one in a process, whether it was compiled or found."""
    counts = torch_graft.statistics(DEVICE)
    return counts.programs_built + counts.programs_loaded


class Record(TorchDispatchMode):
    def __init__(self, calls):
        super().__init__()
        self.calls, self.known = calls, known()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, kind, text = kwargs or {}, None, None
        with contextlib.suppress(NotText, KeyError):
            kind, text = self.described(function, args, kwargs)
        before = programs()
        result = function(*args, **kwargs)
        if text and kind not in self.calls:
            self.calls[kind] = text
        elif text and programs() != before:
            self.calls[text] = text
        return result

    def described(self, function, args, kwargs):
        """(what calls like it have in common, its text), of a call that the device gets; else (None, None)."""
        tensors = [leaf for leaf in tiny_transformers.leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        name = functional(function, args)
        if not tensors or function.is_view or name not in self.known or name == "aten::_local_scalar_dense":
            return None, None
        named = {key: value for key, value in kwargs.items() if key not in DROPPED and key != "out"}
        kind = str(function), tuple(map(kind_of, args)), tuple((key, kind_of(value)) for key, value in named.items())
        lists = str(function).startswith(("aten._foreach", "aten._fused"))
        if lists:  # one program for all shapes, and the first parts of the lists will do
            kind = str(function), tensors[0].dtype
            args = [arg[:LIST] if isinstance(arg, (list, tuple)) else arg for arg in args]
            named = {key: arg[:LIST] if isinstance(arg, (list, tuple)) else arg for key, arg in named.items()}
        words = [text_of(arg) for arg in args] + [f"{key}={text_of(value)}" for key, value in named.items()]
        return kind, " ".join([name, *words])


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    calls, written = {}, 0
    print("\n".join(ALSO), flush=True)
    for model in MODELS:
        model_type, name = model.split(":")
        try:
            made, _, batch, *_ = tiny_transformers.prepared(model_type, name)
        except tiny_transformers.LeftOut as error:
            print(f"record_calls.py: {model} is left out: {error}", file=sys.stderr)
            continue
        with Record(calls):
            tiny_transformers.two_steps(made, batch, DEVICE, torch.float32)
        print(model, len(calls), file=sys.stderr)
        for call in list(calls.values())[written:]:
            print(call, flush=True)
        written = len(calls)


if __name__ == "__main__":
    main()
