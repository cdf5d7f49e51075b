"""Tiny models of both families with random weights, saved as `transformers` saves them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from models.pretrained.files import TOKENIZER, Source
from models.pretrained.model import Pretrained, load

# Primes, all different, so that no axis passes for another; embed is heads · head_dim.
LAYERS, HEADS, HEAD_DIM, FEED_FORWARD, POSITIONS, VOCABULARY = 3, 2, 11, 17, 19, 307

WORDS = ["the", "cat", "sat", "it", ".", ",", "'", "t", "un", "##bel", "##ie", "##vable", "w", "##a", "##s"]

COMMON = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None}
SIZES = {
    "bert": {
        "hidden_size": HEADS * HEAD_DIM, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "intermediate_size": FEED_FORWARD, "max_position_embeddings": POSITIONS,
    },
    "gpt2": {
        "n_embd": HEADS * HEAD_DIM, "n_layer": LAYERS, "n_head": HEADS, "n_inner": FEED_FORWARD,
        "n_positions": POSITIONS,
    },
}  # fmt: skip


def word_pieces() -> Tokenizer:
    """A BERT's tokenizer over a handful of words, padding and cutting unless told not to, as MiniLM's does."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {piece: number for number, piece in enumerate(specials + WORDS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(specials)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=13)
    tokenizer.enable_truncation(7)
    return tokenizer


def byte_pairs() -> Tokenizer:
    """A GPT-2's tokenizer: all 256 bytes and three pairs."""
    vocabulary = {piece: number for number, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    pairs = [("c", "a"), ("ca", "t"), ("Ġ", "cat")]
    vocabulary |= {"".join(pair): 256 + number for number, pair in enumerate(pairs)}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[..., Path]:
    """tiny(family, kind="BertModel", **config) saves a random model and its tokenizer, and gives their folder."""

    def save(family: str, kind: str | None = None, **config) -> Path:
        import transformers

        made = transformers.AutoConfig.for_model(family, **COMMON | SIZES[family] | config)
        model = getattr(transformers, kind)(made) if kind else transformers.AutoModel.from_config(made)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.5)  # biases and norms too, which start at zero and one
        model.save_pretrained(tmp_path)
        (word_pieces if family == "bert" else byte_pairs)().save(str(tmp_path / TOKENIZER))
        return tmp_path

    return save


@pytest.fixture
def change_config() -> Callable[..., None]:
    """change_config(folder, key=value) rewrites entries of config.json; a value of ... takes one out."""

    def change(folder: Path, **changes) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))

    return change


def load_folder(folder: Path) -> Pretrained:
    return load(Source(folder, published=False))


@pytest.fixture
def opened(tiny) -> Callable[..., Pretrained]:
    """opened(family, kind, **config) is a tiny model, saved and loaded again."""
    return lambda *of, **config: load_folder(tiny(*of, **config))
