"""The models of transformers in tiny configurations, with random weights, and batches for them. Nothing is downloaded.

A configuration is a tree of classes with fields. Each field that says a size, a count of layers or the like is made
small by the first rule of RULES that its name fits; what a model needs beside that stands in EXCEPTIONS."""

import dataclasses
import inspect
import re

WORDS, LENGTH, BATCH, IMAGE, MELS = 128, 12, 2, 64, 16


@dataclasses.dataclass(frozen=True)
class Plan:
    """How small a configuration is made; None: as it is."""

    width: int | None
    heads: int | None
    layers: int


# In this order, until the model can be built and trained: parts whose sizes depend on each other, as those of rotary
# embeddings, want wider heads; those that name layers by their numbers want them all; convolutions their own widths.
PLANS = [Plan(*sizes) for sizes in ((32, 4, 2), (128, 2, 2), (32, 4, 12), (256, 2, 2), (128, 2, 12), (None, None, 2),
                                    (None, None, 12))]


# --- configurations ---


def at_most(limit):
    return lambda value, plan: min(value, limit)


def exactly(new):
    return lambda value, plan: new


def as_it_is(value, plan):
    return value


def heads(value, plan):
    return value if plan.heads is None else min(value, plan.heads)


def layers(value, plan):
    return min(value, plan.layers)


def width(value, plan):
    return value if plan.width is None else min(value, plan.width)


def inner(value, plan):
    return value if plan.width is None else min(value, plan.width * 3 // 2)


def head_width(value, plan):
    return value if plan.width is None else min(value, plan.width // plan.heads)


def one_each(values, plan):
    return type(values)(min(value, plan.layers // 2) for value in values)


def heads_each(values, plan):
    return values if plan.heads is None else type(values)(min(value, 2) for value in values)


def widths(values, plan):
    """Of stages: the same steps from one to the next, the first of them 8 or less."""
    smallest = min(values)
    if plan.width is None or smallest <= 8:
        return values
    return type(values)(max(1, value * 8 // smallest) for value in values)


# Ids of tokens with a meaning: the same for the same name in a model's parts, apart from those of a sentence's words.
SPECIAL = {"pad": 0, "bos": 1, "eos": 2, "sep": 2, "cls": 1, "decoder_start": 1, "unk": 3, "mask": 4}
FIRST_SPECIAL = 60


def special(name, known):
    stem = re.sub(r"_(token_id|token_index|token|index|id)$", "", name)
    if stem in SPECIAL:
        return SPECIAL[stem]
    return known.setdefault(stem, FIRST_SPECIAL + len(known))


TOKEN = re.compile(r".*_token_(id|index)")
# (pattern of the whole name, what makes it small); for a number, and each number of a list where the rule says so.
RULES = [
    (re.compile(pattern), shrink)
    for pattern, shrink in [
        (r".*(dropout|_drop|_pdrop|drop_path|drop_rate|layerdrop|drop_path_rate|noise)(_prob|_rate)?", exactly(0.0)),
        (r"mask_(time|feature)_prob|.*jitter.*", exactly(0.0)),
        (r".*(key_value_heads|kv_heads|num_kv)", at_most(2)),
        (r".*(attention_heads|num_heads|n_heads?|attn_heads|encoder_heads|decoder_heads|mamba_n_heads)", heads),
        (r".*(hidden_layers|num_layers|n_layers?|_layers|^layers|depth|num_blocks|num_attention_layers)", layers),
        (r"vocab_size|.*_vocab_size", exactly(WORDS)),
        (r"type_vocab_size", at_most(2)),
        (r"head_dim|.*_head_dim|d_kv|head_size", head_width),
        (r".*(intermediate_size|ffn_dim|mlp_dim|d_ff|ffn_hidden_size|d_inner|feedforward_dim|dim_feedforward)", inner),
        (r"image_size|input_size|img_size|pretrain_image_size", at_most(IMAGE)),
        (r"patch_size|temporal_patch_size|spatial_merge_size", at_most(16)),
        (r"num_mel_bins|feature_size|num_mels|model_in_dim", at_most(MELS)),
        (r"max_position_embeddings|n_positions|n_ctx|max_length|max_seq_len", at_most(64)),
        (r"max_source_positions|max_target_positions", at_most(64)),
        (r"num_(local_)?experts|n_routed_experts|moe_num_experts", at_most(4)),
        (r"num_experts_per_tok|moe_topk|moe_k|num_selected_experts", at_most(2)),
        (r"n_group|topk_group", exactly(1)),
        (r".*lora_rank", at_most(16)),
        (r"num_queries|num_query_tokens|.*num_latents|num_denoising", at_most(10)),
        (r"window_size", at_most(2)),
        (r"sliding_window|attention_window|local_attention|attention_chunk_size", at_most(8)),
        (r"chunk_size|mamba_chunk_size|block_size", at_most(16)),
        (r"(num_)?frames|num_frames", at_most(4)),
        (r".*_ratio|.*kernel.*|.*stride.*|.*_factor|.*_size_feed_forward|.*rate|.*_levels|.*padding.*", as_it_is),
        (r".*(hidden_size|d_model|n_embd|embed_dim|hidden_dim|embedding_size|projection_dim|_dim|_channels|_width|dim)",
         width),
        (r".*(_size|_filters|_features|_units|channels)", width),
    ]
]
LISTS = [
    (re.compile(pattern), shrink)
    for pattern, shrink in [
        (r"depths|layers|num_block_repeats|layer_repeats", one_each),
        (r"num_heads|num_attention_heads|num_key_value_heads", heads_each),
        (r".*(hidden_sizes|embed_dims?|channels|neck_hidden_sizes|conv_dim|tdnn_dim)", widths),
    ]
]


def shrunk(name, value, plan, known):
    if name == "use_cache":
        return False
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)) and TOKEN.fullmatch(name):
        return special(name, known)
    if isinstance(value, (int, float)):
        for pattern, shrink in RULES:
            if pattern.fullmatch(name):
                return type(value)(shrink(value, plan))
    if isinstance(value, (list, tuple)) and value and all(type(item) is int for item in value):
        for pattern, shrink in LISTS:
            if pattern.fullmatch(name):
                return shrink(value, plan)
    return value


def unset(name, plan):
    """For what the class itself leaves to the checkpoint."""
    if plan.width is None:
        return None
    return {"head_dim": plan.width // plan.heads, "num_key_value_heads": plan.heads, "use_cache": False}.get(name)


def default(field):
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def part(spec, changes, plan, known):
    """A part of a configuration, as the class that stands for it; changes are of its fields, or say another type."""
    from transformers import CONFIG_MAPPING, PreTrainedConfig

    changes = dict(changes)
    kind, starts = spec.config_class, dict(spec.init_kwargs)
    other = changes.pop("model_type", None)
    if other or not issubclass(kind, PreTrainedConfig):
        kind, starts = CONFIG_MAPPING[other or spec.model_type], {} if other else starts
    starts = {name: shrunk(name, value, plan, known) for name, value in starts.items() if name != "model_type"}
    return tiny(kind, {**PARTS.get(kind.model_type, {}), **starts, **changes}, plan, known)


def is_computed(kind, name):
    return isinstance(getattr(kind, name, None), property)


def tiny(kind, changes, plan, known):
    """A configuration of this class. changes: field -> value, of a part: field -> changes of it."""
    from transformers import PreTrainedConfig

    specs = kind.sub_configs_defaults or {}
    values = {}
    for field in dataclasses.fields(kind):
        if not field.init or field.name in specs or is_computed(kind, field.name):
            continue
        value = default(field)
        small = unset(field.name, plan) if value is None else shrunk(field.name, value, plan, known)
        if value is not dataclasses.MISSING and small != value:
            values[field.name] = small
    for key, spec in specs.items():
        given = changes.get(key, {})
        if given is None or (spec.optional and key not in changes):
            continue
        values[key] = part(spec, given, plan, known)
    own = {name: value for name, value in changes.items() if name not in specs}
    config = kind(**{**values, **own})
    for name in ("layer_types", "mlp_layer_types"):  # one for each layer
        kinds = getattr(config, name, None)
        count = getattr(config, "num_hidden_layers", None)
        if isinstance(kinds, list) and isinstance(count, int) and len(kinds) > count and not is_computed(kind, name):
            setattr(config, name, kinds[:count])
    assert isinstance(config, PreTrainedConfig)
    return config


# What holds wherever a part of this type stands: type -> changes.
PARTS = {
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
}
# type -> changes of the whole configuration
EXCEPTIONS = {}


def configuration(model_type, plan, kind=None):
    """Of this class, where that is not the one that stands for the type."""
    from transformers import CONFIG_MAPPING

    changes = {**PARTS.get(model_type, {}), **EXCEPTIONS.get(model_type, {})}
    return tiny(kind or CONFIG_MAPPING[model_type], changes, plan, {})


# --- the classes ---

# Of a type, the first of these tasks that it has; the others share its layers.
TASKS = """PRETRAINING CAUSAL_LM MASKED_LM SEQ_TO_SEQ_CAUSAL_LM OBJECT_DETECTION UNIVERSAL_SEGMENTATION
 SEMANTIC_SEGMENTATION INSTANCE_SEGMENTATION CTC SPEECH_SEQ_2_SEQ IMAGE_TEXT_TO_TEXT MULTIMODAL_LM IMAGE_CLASSIFICATION
 AUDIO_CLASSIFICATION VIDEO_CLASSIFICATION DEPTH_ESTIMATION MASK_GENERATION ZERO_SHOT_OBJECT_DETECTION
 TIME_SERIES_PREDICTION SEQUENCE_CLASSIFICATION""".split()


def chosen(every):
    """(type, class name): one class a type, or every class of every mapping."""
    from transformers.models.auto import modeling_auto

    tables = {
        name[len("MODEL_FOR_"):-len("_MAPPING_NAMES")]: getattr(modeling_auto, name)
        for name in dir(modeling_auto)
        if name.startswith("MODEL_FOR_") and name.endswith("_MAPPING_NAMES")
    }
    order = TASKS + sorted(set(tables) - set(TASKS))
    found = {}
    for table in [tables[task] for task in order] + [modeling_auto.MODEL_MAPPING_NAMES]:
        for model_type, names in table.items():
            for name in [names] if isinstance(names, str) else names:
                known = found.setdefault(model_type, [])
                if name not in known and (every or not known) and not name.endswith("Config"):
                    known.append(name)
    return sorted((model_type, name) for model_type, names in found.items() for name in names)


# --- batches ---


def look(config, *names, otherwise=None):
    """The first of these fields that the configuration has, or one of its parts."""
    parts = [config] + [getattr(config, key) for key in (type(config).sub_configs_defaults or {})]
    for name in names:
        for one in parts:
            value = getattr(one, name, None)
            if value is not None:
                return value
    return otherwise


class Batch:
    """Values for the arguments of a model's forward(), by name."""

    def __init__(self, torch, model, variant):
        self.torch, self.config, self.name = torch, model.config, type(model).__name__
        self.variant = variant  # sounds: 1 with a dim of channels, their features the other way round
        self.in_patches = {"image_grid_thw", "grid_thw"}.intersection(inspect.signature(model.forward).parameters)
        self.options = "MultipleChoice" in self.name
        size = look(self.config, "image_size", "img_size", otherwise=IMAGE)
        self.height, self.width = (size if isinstance(size, (list, tuple)) else (size, size))[-2:]
        self.text = (BATCH, 3, LENGTH) if self.options else (BATCH, LENGTH)

    def words(self, *shape):
        return self.torch.randint(5, FIRST_SPECIAL - 20, shape)

    def input_ids(self):
        return self.words(*self.text)

    def attention_mask(self):
        return self.torch.ones(self.text, dtype=self.torch.long)

    def decoder_input_ids(self):
        return self.words(BATCH, 7)

    def pixel_values(self):
        channels = look(self.config, "num_channels", "in_channels", "in_chans", otherwise=3)
        channels = channels if isinstance(channels, int) else 3
        if self.in_patches:
            frames = look(self.config, "temporal_patch_size", otherwise=1)
            patch = look(self.config, "patch_size", otherwise=16)
            return self.torch.randn(BATCH * 16, channels * frames * patch * patch)
        return self.torch.randn(BATCH, channels, self.height, self.width)

    def image_grid_thw(self):
        return self.torch.tensor([[1, 4, 4]] * BATCH)

    grid_thw, hidden_states = image_grid_thw, pixel_values

    def past_values(self):
        channels = look(self.config, "num_input_channels")
        lags = look(self.config, "lags_sequence", otherwise=[0])
        length = look(self.config, "context_length", otherwise=32) + max(lags)
        return self.torch.randn(BATCH, length, channels) if channels else self.torch.randn(BATCH, length)

    def past_observed_mask(self):
        return self.torch.ones_like(self.past_values())

    def past_time_features(self):
        return self.torch.randn(*self.past_values().shape[:2], 1)

    def pixel_values_videos(self):
        frames = look(self.config, "num_frames", "frames_per_clip", otherwise=4)
        return self.torch.randn(BATCH, frames, 3, self.height, self.width)

    def input_values(self):
        mels = getattr(self.config, "num_mel_bins", None)
        if mels and hasattr(self.config, "max_length"):
            return self.torch.randn(BATCH, self.config.max_length, mels)
        return self.torch.randn(BATCH, *[1] * self.variant, 4000)

    def input_features(self):
        mels = look(self.config, "num_mel_bins", "feature_size", "input_feat_per_channel", otherwise=MELS)
        frames = look(self.config, "max_source_positions", otherwise=20) * 2
        return self.torch.randn(BATCH, frames, mels) if self.variant else self.torch.randn(BATCH, mels, frames)

    def bbox(self):
        corner = self.torch.randint(0, 20, (BATCH, LENGTH, 2))
        return self.torch.cat([corner, corner + 5], -1)

    def labels(self):
        count = self.config.num_labels
        for ends, shape in (("ForTokenClassification", self.text), ("ForMultipleChoice", (BATCH,)),
                            ("Classification", (BATCH,)), ("NextSentencePrediction", (BATCH,)),
                            ("XVector", (BATCH,)), ("SemanticSegmentation", (BATCH, self.height, self.width))):
            if self.name.endswith(ends):
                return self.torch.randint(0, count, shape)
        if self.name.endswith("Detection"):
            return [{"class_labels": self.torch.tensor([0, 1]), "boxes": self.torch.rand(2, 4) * 0.4 + 0.1}
                    for _ in range(BATCH)]
        return self.words(BATCH, 7) if look(self.config, "is_encoder_decoder") else self.input_ids()

    def start_positions(self):
        return self.torch.randint(0, LENGTH, (BATCH,))

    end_positions = start_positions

    def next_sentence_label(self):
        return self.torch.randint(0, 2, (BATCH,))

    def return_loss(self):
        return True


# Beside these, an argument is given only if forward() can't do without.
WANTED = ["input_ids", "pixel_values", "image_grid_thw", "input_values", "input_features", "bbox"]
TARGETS = ["labels", "start_positions", "end_positions", "next_sentence_label", "return_loss"]


def batches(torch, model):
    """Batches to try, the fullest first."""
    parameters = inspect.signature(model.forward).parameters
    required = [name for name, value in parameters.items() if value.default is inspect.Parameter.empty
                and value.kind in (value.POSITIONAL_OR_KEYWORD, value.KEYWORD_ONLY)]
    inputs = [name for name in dict.fromkeys([*required, *WANTED]) if name in parameters and hasattr(Batch, name)]
    targets = [name for name in TARGETS if name in parameters]
    decoder = ["decoder_input_ids"] if "decoder_input_ids" in parameters else []
    main = [name for name in [model.main_input_name] if isinstance(name, str) and hasattr(Batch, name)]
    choices = [inputs + targets, inputs + targets + decoder, inputs + decoder, inputs]
    choices += [main + targets, main + decoder, main, ["input_ids"], ["pixel_values"]]
    distinct = dict.fromkeys(tuple(dict.fromkeys(names)) for names in choices)
    for variant in (0, 1):
        maker = Batch(torch, model, variant)
        for names in filter(None, distinct):
            if not variant or {"input_values", "input_features"}.intersection(names):
                yield {name: getattr(maker, name)() for name in names}


COUNTS = re.compile(r"do not match.*?tokens:? *\(?(\d+)\)?.*?features:? *(\d+)", re.S)


def with_places(torch, error, model, batch):
    """The batch again with as many placeholder tokens as the error says that there are features, or None."""
    found = COUNTS.search(str(error))
    if not found or "input_ids" not in batch:
        return None
    tokens, features = int(found.group(1)), int(found.group(2))
    if tokens == features:  # so many as it said: it counts elements
        features //= look(model.config, "hidden_size", otherwise=1)
    kind = re.search(r"(image|video|audio)", str(error), re.I)
    names = [f"{kind.group(1).lower()}_token_{end}" for end in ("id", "index")] if kind else []
    token = look(model.config, *names) if names else None
    if token is None or features % BATCH:
        return None
    words = torch.cat([batch["input_ids"][:, :1], batch["input_ids"][:, 1 - LENGTH:]], 1)
    places = words.new_full((BATCH, features // BATCH), token)
    joined = torch.cat([words[:, :1], places, words[:, 1:]], 1)
    return {**batch, "input_ids": joined, **({"labels": joined} if "labels" in batch else {})}
