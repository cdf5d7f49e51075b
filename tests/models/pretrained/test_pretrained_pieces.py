"""Which pieces a text is cut into, which words they are part of, and what one reads."""

import pytest
from tokenizers import Tokenizer, models, processors

from models.pretrained.errors import Unreadable
from models.pretrained.pieces import Pieces, read


def test_bert_s_pieces_and_words(opened):
    text = "The unbelievable CAT, it  wasn't [SEP]"  # more than the 7 its tokenizer would cut to, fewer than 19
    assert opened("bert").read(text) == Pieces(
        text=text,
        ids=(2, 4, 12, 13, 14, 15, 5, 9, 7, 1, 10, 11, 3, 3),
        pieces=("[CLS]", "the", "un", "##bel", "##ie", "##vable", "cat", ",", "it", "[UNK]", "'", "t", "[SEP]", "[SEP]"),
        word=(0, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10),
        special=(True, *[False] * 12, True),
        words=("[CLS]", "The", "unbelievable", "CAT", ",", "it", "wasn", "'", "t", "[SEP]", "[SEP]"),
    )


def test_gpt2_s_pieces_hold_their_spaces_and_show_a_character_cut_in_two_whole(opened):
    pieces = opened("gpt2").read("a cat  東")
    assert pieces.pieces == ("a", " cat", " ", " ", "東", "東", "東")
    assert pieces.word == (0, 1, 2, 3, 3, 3, 3)
    assert pieces.words == ("a", "cat", " ", "東")
    assert not any(pieces.special)
    assert len(pieces) == 7


def test_every_word_is_in_the_text_in_order_and_every_piece_in_one(minilm):
    text = "Unbelievably, the naïve 東京 mayor's e-mail (sent 3.14 a.m.) wasn't antidisestablishmentarian!"
    pieces = minilm.read(text)
    assert sorted(set(pieces.word)) == list(range(len(pieces.words)))
    assert list(pieces.word) == sorted(pieces.word)
    assert "".join(pieces.words[1:-1]) == text.replace(" ", "")


def test_each_special_piece_is_a_word_of_its_own():
    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "cat": 2}, unk_token="cat"))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s> </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    pieces = read(tokenizer, "cat", 4)
    assert (pieces.word, pieces.words) == ((0, 1, 2, 3), ("<s>", "cat", "</s>", "</s>"))
    assert pieces.special == (True, False, True, True)


def test_a_text_is_as_long_as_the_model_has_positions(opened):
    for family, own in (("bert", 2), ("gpt2", 0)):
        model = opened(family)
        assert len(model.read("," * (19 - own))) == 19
        with pytest.raises(Unreadable, match=f"at most 19 pieces, of which {own} are .* got 20. Leave out at least 1"):
            model.read("," * (20 - own))


@pytest.mark.parametrize("family, text", [("bert", ""), ("bert", " \n"), ("gpt2", "")])
def test_a_text_of_no_pieces_is_refused(opened, family, text):
    with pytest.raises(Unreadable, match="^a text must have at least one word or sign; got none"):
        opened(family).read(text)
