"""Every hidden state and every weight against `transformers` in eager mode, on real weights and on tiny random ones."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from models.block import BlockStep
from models.pretrained.errors import Unreadable, Unusable
from models.pretrained.files import Source, find
from models.pretrained.model import Pretrained, load
from models.pretrained.sentences import SENTENCES
from models.trace import AXES, Step

FAMOUS = "The animal didn't cross the street because it was too {}."

VARIED = (
    *SENTENCES,
    "a",
    "ΑΒΓ – ñandú, 東京, naïve façade",
    "https://example.org/a_b?c=d&e=%20",
    "!!! ??? … --- (((",
    "antidisestablishmentarianism counterrevolutionaries",
    "UPPER lower MiXeD 1234567890 3.14159",
    "🙂 🙃 and a lone surrogate-free sign ☃",
    "[MASK] stands for a hidden word, [SEP] for an end.",
    "\ttabs\nand\r\nlines   and spaces  ",
    " ".join(["all of the words of a long text that goes on and on"] * 4),
)

both_families = pytest.mark.parametrize("family", ["bert", "gpt2"])


def theirs_of(folder: Path):
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


@torch.no_grad()
def largest_difference(model: Pretrained, theirs, ids: torch.Tensor, keep: torch.Tensor) -> float:
    """Over the hidden states of every layer, of all real pieces, and the weights of every head."""
    ours = model.model.trace(ids, keep=keep)
    wanted = theirs(ids, attention_mask=keep.long(), output_hidden_states=True, output_attentions=True)
    states = [trace.before for trace in ours.traces] + [ours.final]
    assert len(states) == len(wanted.hidden_states) and len(ours.traces) == len(wanted.attentions)
    differences = [
        (mine - other)[keep].abs().max() for mine, other in zip(states, wanted.hidden_states, strict=True)
    ]
    for trace, weights in zip(ours.traces, wanted.attentions, strict=True):
        rows = (trace.attention.weights - weights).transpose(1, 2)[keep]  # rows of real queries
        differences.append(rows.abs().max())
    return max(differences).item()


def padded(texts: list[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *[0] * (longest - len(text))] for text in texts])
    keep = torch.tensor([[place < len(text) for place in range(longest)] for text in texts])
    return ids, keep


# The real weights


@pytest.fixture(scope="module")
def real_theirs(minilm):
    return theirs_of(find({}).folder)


def test_fifty_sentences_one_by_one_are_those_of_transformers(minilm, real_theirs):
    assert len(VARIED) == len(set(VARIED)) == 50
    for text in VARIED:
        ids = torch.tensor([minilm.read(text).ids])
        assert largest_difference(minilm, real_theirs, ids, torch.ones_like(ids, dtype=torch.bool)) <= 1e-4, text


def test_fifty_sentences_in_padded_batches_are_those_of_transformers(minilm, real_theirs):
    for start in range(0, 50, 10):
        ids, keep = padded([minilm.read(text).ids for text in VARIED[start : start + 10]])
        assert not keep.all()
        assert largest_difference(minilm, real_theirs, ids, keep) <= 1e-4


def test_the_pieces_are_those_of_transformers_tokenizer(minilm):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(find({}).folder)
    for text in VARIED:
        assert list(minilm.read(text).ids) == theirs(text)["input_ids"]


def test_padding_changes_no_sentence(minilm):
    texts = [minilm.read(text) for text in VARIED[:5]]
    ids, keep = padded([text.ids for text in texts])
    together = minilm.model.trace(ids, keep=keep).sentence
    assert_close(together, torch.cat([minilm.run(text).sentence for text in texts]), atol=1e-5, rtol=0)


def test_the_sentence_is_the_mean_at_length_one(minilm):
    run = minilm.run(minilm.read(SENTENCES[0]))
    mean = run.final[0].mean(dim=0)
    assert_close(run.sentence[0], mean / mean.norm())


@pytest.mark.parametrize("word, low, high", [("tired", 0.66, 0.70), ("wide", 0.0, 0.35)])
def test_it_is_the_animal_that_was_tired_and_not_the_one_that_was_wide(minilm, word, low, high):
    pieces = minilm.read(FAMOUS.format(word))
    query, key = pieces.pieces.index("it"), pieces.pieces.index("animal")
    assert low < minilm.run(pieces).weights[3, 1, query, key] < high


# Tiny models of both families


@pytest.mark.parametrize(
    "family, kind, config",
    [
        ("bert", "BertModel", {}),
        ("bert", "BertModel", {"type_vocab_size": 5, "hidden_act": "relu", "layer_norm_eps": 0.03}),
        ("bert", "BertForMaskedLM", {"hidden_act": "gelu_new"}),
        ("bert", "BertForSequenceClassification", {"num_hidden_layers": 13}),
        ("gpt2", "GPT2Model", {}),
        ("gpt2", "GPT2Model", {"n_inner": None, "activation_function": "gelu", "layer_norm_epsilon": 0.03}),
        ("gpt2", "GPT2LMHeadModel", {"n_layer": 13, "n_head": 11}),
    ],
)
def test_any_model_of_both_families_is_that_of_transformers(tiny, family, kind, config):
    folder = tiny(family, kind, **config)
    model, theirs = load(Source(folder, published=False)), theirs_of(folder)
    ids = torch.randint(307, (5, 7))
    right = torch.arange(7) < torch.tensor([7, 1, 3, 6, 2])[:, None]
    for keep in (torch.ones_like(right), right, right.flip(1)):
        assert largest_difference(model, theirs, ids, keep) <= 1e-4


def test_the_first_berts_names_are_known(tiny):
    folder = tiny("bert")
    wanted = load(Source(folder, published=False)).model.state_dict()
    old = {
        re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", name)): tensor
        for name, tensor in load_file(folder / "model.safetensors").items()
    }
    save_file(old, folder / "model.safetensors")
    for name, tensor in load(Source(folder, published=False)).model.state_dict().items():
        assert torch.equal(tensor, wanted[name]), name


@both_families
def test_half_precision_is_read_as_float32(tiny, family):
    folder = tiny(family)
    path = folder / "model.safetensors"
    save_file({name: tensor.half() for name, tensor in load_file(path).items()}, path)
    model = load(Source(folder, published=False))
    assert {parameter.dtype for parameter in model.model.parameters()} == {torch.float32}


@both_families
def test_a_run_is_a_whole_record_with_a_batch_of_one(opened, family):
    model = opened(family)
    pieces = model.read("the cat sat")
    run = model.run(pieces)
    sizes = {"head": 2, "query": len(pieces), "key": len(pieces), "head_dim": 11, "embed": 22}
    for trace in run.traces:
        for step in Step:
            assert trace.attention[step].shape == (1, *(sizes[axis] for axis in AXES[step].split())), step
    assert run.weights.shape == (3, 2, len(pieces), len(pieces))
    assert torch.equal(run.weights[1], run.traces[1].attention.weights[0])
    assert list(run.embeddings) == ["word", "position", "segment"][: 3 if family == "bert" else 2]
    together = sum(run.embeddings.values())
    assert torch.equal(run.traces[0].before, model.model.norm(together) if family == "bert" else together)


def test_gpt2_sees_no_future(opened):
    model = opened("gpt2")
    weights = model.run(model.read("the cat sat on it")).weights
    assert (weights.triu(1) == 0).all() and (weights.diagonal(dim1=-2, dim2=-1) > 0).all()


# Silenced heads


@both_families
def test_silenced_heads_are_those_whose_part_of_w_o_is_zero(opened, family):
    model = opened(family)
    pieces = model.read("the cat sat.")
    silenced = model.run(pieces, silenced=frozenset({(0, 1), (2, 0)}))
    assert (silenced.traces[0].attention.context[:, 1] == 0).all()
    assert (silenced.traces[2].attention.context[:, 0] == 0).all()
    model.model.blocks[0].attention.to_output.weight[:, 11:] = 0
    model.model.blocks[2].attention.to_output.weight[:, :11] = 0
    assert_close(silenced.final, model.run(pieces).final)


@pytest.mark.parametrize("head", [(3, 0), (0, 2), (-1, 0), (0, -1)])
def test_a_head_that_is_none_cannot_be_silenced(opened, head):
    model = opened("bert")
    message = f"a silenced head must be (layer, head) from (0, 0) to (2, 1); got {head}. Leave it out."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model.run(model.read("cat"), silenced={head})


# Shared and read-only


def test_nothing_that_was_loaded_or_run_can_be_changed_by_accident(opened):
    model = opened("bert")
    run = model.run(model.read("the cat"))
    assert not any(parameter.requires_grad for parameter in model.model.parameters())
    assert not model.model.training
    with pytest.raises(RuntimeError, match="[Ii]nplace update to inference tensor"):
        run.traces[0].attention.weights.zero_()
    for step in BlockStep:
        assert not run.traces[0][step].requires_grad


def test_many_threads_get_what_one_gets(minilm):
    texts = [minilm.read(text) for text in SENTENCES[:8]]
    alone = [minilm.run(text, silenced={(0, index)}).final for index, text in enumerate(texts)]
    with ThreadPoolExecutor(4) as pool:
        futures = [
            pool.submit(lambda text, head: minilm.run(minilm.read(text.text), silenced={(0, head)}).final, text, index)
            for index, text in enumerate(texts)
        ]
        for wanted, future in zip(alone, futures, strict=True):
            assert torch.equal(future.result(), wanted)


@both_families
def test_a_folder_saved_anew_does_not_change_the_model_that_runs(tiny, family):
    path = tiny(family) / "model.safetensors"
    model = load(Source(path.parent, published=False))
    pieces = model.read("the cat")
    before = model.run(pieces).final
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(model.run(pieces).final, before)


# Files that make no model


def refused(folder: Path, message: str) -> None:
    with pytest.raises(Unusable, match=re.escape(message)):
        load(Source(folder, published=False))


@pytest.mark.parametrize(
    "family, changes, message",
    [
        ("bert", {"model_type": "t5"}, "model_type must be one of bert, gpt2; got 't5'. Name a model of one of these."),
        ("bert", {"model_type": ...}, "model_type must be one of bert, gpt2; got None."),
        ("bert", {"model_type": ["bert"]}, "model_type must be one of bert, gpt2; got ['bert']."),
        ("bert", {"is_decoder": True}, "is_decoder must be False; got True. Name a model without this variation."),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type must be 'absolute'; got"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be False; got True"),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights must be True; got False."),
        ("bert", {"hidden_size": ...}, "hidden_size must be a whole number from 1 up; got None. Correct it in"),
        ("bert", {"num_hidden_layers": 0}, "num_hidden_layers must be a whole number from 1 up; got 0."),
        ("bert", {"num_hidden_layers": True}, "num_hidden_layers must be a whole number from 1 up; got True."),
        ("gpt2", {"n_layer": 2.5}, "n_layer must be a whole number from 1 up; got 2.5."),
        ("gpt2", {"n_inner": "17"}, "n_inner must be a whole number from 1 up; got '17'."),
        ("bert", {"layer_norm_eps": 0}, "layer_norm_eps must be a number above 0; got 0."),
        ("bert", {"hidden_act": "swish"}, "hidden_act must be one of relu, gelu, gelu_new, gelu_pytorch_tanh; got 'sw"),
        ("bert", {"num_attention_heads": 3}, "embed_dim must divide by num_heads when head_dim is not given; got 22 / 3"),
        (
            "bert",
            {"num_hidden_layers": 10**9},
            "the weights lack encoder.layer.3.attention.self.query.weight, with or without 'bert.' before it; they hold",
        ),
        ("bert", {"vocab_size": 311}, "word_embeddings.weight must be 311 × 22, as config.json has it; got 307 × 22. Take"),
        ("gpt2", {"n_inner": 13}, "h.0.mlp.c_fc.weight must be 22 × 13, as config.json has it; got 22 × 17."),
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_is_refused(tiny, change_config, family, changes, message):
    folder = tiny(family)
    change_config(folder, **changes)
    refused(folder, message)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("config.json", b"{", "must be JSON;"),
        ("config.json", b"\xff\xfe", "must be JSON;"),
        ("config.json", b"[1]", "must hold settings by name; got a list. Fetch or save it again."),
        ("tokenizer.json", b"{}", "must be a tokenizer saved by the library tokenizers;"),
        ("tokenizer.json", b"\xff", "must be a tokenizer saved by the library tokenizers;"),
        ("model.safetensors", b"", "is no whole safetensors file:"),
        ("model.safetensors", b"\x80\x04pickle", "is no whole safetensors file:"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(tiny, name, content, message):
    folder = tiny("bert")
    (folder / name).write_bytes(content)
    refused(folder, message)


def test_weights_that_were_cut_off_are_refused(tiny):
    path = tiny("bert") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(path.parent, "is no whole safetensors file:")


@both_families
def test_a_missing_tensor_is_named(tiny, family):
    path = tiny(family) / "model.safetensors"
    tensors = load_file(path)
    gone = next(name for name in tensors if name.endswith(("output.dense.bias", "c_proj.bias")))
    del tensors[gone]
    save_file(tensors, path)
    refused(path.parent, f"the weights lack {gone}, with or without ")


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_quantised_weights_are_refused(tiny, dtype):
    path = tiny("bert") / "model.safetensors"
    tensors = load_file(path)
    tensors["encoder.layer.1.output.dense.weight"] = torch.zeros(22, 17).to(dtype)
    save_file(tensors, path)
    refused(path.parent, "encoder.layer.1.output.dense.weight must hold numbers of 16 bits or more with a fraction; got")


def test_a_tokenizer_of_another_model_is_refused(tiny):
    folder = tiny("bert", vocab_size=17)
    refused(folder, "must have a row in the model's word table, which ends at 16; got a piece of number 18. Take")


# Texts the model cannot take


@pytest.mark.parametrize("text", ["", "  \n", "\x00"])
def test_a_text_of_nothing_is_refused(minilm, text):
    with pytest.raises(Unreadable, match=r"^a text must have at least one word or sign; got none that can be read\."):
        minilm.read(text)


def test_a_text_too_long_is_refused_with_by_how_much(minilm):
    assert len(minilm.read("cat " * 510)) == 512
    message = (
        "this model reads at most 512 pieces, of which 2 are special ones of its own; got 515. Leave out at least 3."
    )
    with pytest.raises(Unreadable, match=f"^{re.escape(message)}$"):
        minilm.read("cat " * 513)
