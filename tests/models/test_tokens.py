import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.tokens import PAD, SPLITTERS, characters, words

FAMILY = "👩\u200d👩\u200d👧"  # three people joined by zero-width joiners: one picture
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"

# What a typist may hand over: any character at all, with those that have a part to play made frequent.
TEXT = st.text(
    st.sampled_from("ab.,;!?…。،؟、你猫かーガ[]PAD<>$*_` \t\n\r\x0b\x1c\x85\u00a0\u2028\u3000é\u0301\u309a\u200b\u200d👩🇫")
    | st.characters(exclude_categories=["Cs"])
)


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("Wait, what?! No: 3.14, it's…", ["Wait", ",", "what", "?!", "No", ":", "3.14", ",", "it's", "…"]),
        ("naïve Zürich", ["naïve", "Zürich"]),
        ("Привет, мир!", ["Привет", ",", "мир", "!"]),
        ("Γειά σου", ["Γειά", "σου"]),
        ("مرحبا، كيف الحال؟", ["مرحبا", "،", "كيف", "الحال", "؟"]),
        ("שלום עולם.", ["שלום", "עולם", "."]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("안녕하세요 세계", ["안녕하세요", "세계"]),
        ("我爱你。", ["我", "爱", "你", "。"]),
        ("我用Python，很好！", ["我", "用", "Python", "，", "很", "好", "！"]),
        ("猫が好き。", ["猫", "が", "好", "き", "。"]),
        ("か\u309aき", ["か\u309a", "き"]),  # a mark on a Kana character, without a composed form
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),  # a Han character in a chosen variant
        (f"a {FAMILY} here", ["a", FAMILY, "here"]),
        ("🇫🇷 👍🏽!", ["🇫🇷", "👍🏽", "!"]),
        ("...", ["..."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_words(text, wanted):
    assert words(text) == wanted


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("The cat.", list("Thecat.")),
        ("مرحبا", list("مرحبا")),
        ("我爱你。", ["我", "爱", "你", "。"]),
        ("한국", ["한", "국"]),
        ("नि", ["नि"]),
        ("か\u309aき", ["か\u309a", "き"]),
        (f"a{FAMILY}🇫🇷👍🏽1️⃣", ["a", FAMILY, "🇫🇷", "👍🏽", "1️⃣"]),
        ("x\u0323\u0301y", ["x\u0323\u0301", "y"]),
        ("\u0301a", ["\u0301", "a"]),
        ("a \u0301", ["a", "\u0301"]),  # the space is left out even where a mark follows it
        ("", []),
        ("\r\n \t", []),
    ],
)
def test_characters(text, wanted):
    assert characters(text) == wanted


@pytest.mark.parametrize("split", SPLITTERS.values())
def test_an_accent_typed_in_two_ways_is_one_token(split):
    assert COMPOSED != DECOMPOSED
    assert split(COMPOSED) == split(DECOMPOSED)
    assert split(COMPOSED)[-1].endswith("\u00e9")


@pytest.mark.parametrize("split", SPLITTERS.values())
def test_padding_stays_whole(split):
    assert split(f"{PAD} a {PAD}{PAD}.") == [PAD, "a", PAD, PAD, "."]
    assert split("[SEP]") == ["[SEP]"]


@pytest.mark.parametrize(
    "text",
    ["<b>bold</b>", "$x^2$", "**so**", "`code`", "</script><script>", "[link](http://a.b)", ":smile:s", r"\frac{1}{2}"],
)
def test_markup_is_a_word_like_any_other(text):
    assert words(f"a {text} b") == ["a", text, "b"]


def test_what_has_no_width_is_still_typed_text():
    assert words("a\u200bb") == ["a\u200bb"]
    assert words("\u200b") == characters("\u200b") == ["\u200b"]


@pytest.mark.parametrize("split", SPLITTERS.values())
@pytest.mark.parametrize("space", [chr(code) for code in range(0x110000) if chr(code).isspace()])
def test_every_kind_of_space_divides_and_is_left_out(split, space):
    assert split(f"a{space}b{space}") == ["a", "b"]


@pytest.mark.parametrize("split", SPLITTERS.values())
@given(text=TEXT)
@example(" \u0301")
@example("a\x1cb")
@example("\r\n")
def test_nothing_is_lost_and_nothing_is_empty(split, text):
    tokens = split(text)
    assert "".join(tokens) == "".join(unicodedata.normalize("NFC", text).split())
    for token in tokens:
        assert token
        assert not any(character.isspace() for character in token)


@pytest.mark.parametrize("split", SPLITTERS.values())
@given(text=TEXT)
def test_tokens_split_again_are_the_same_tokens(split, text):
    assert split(" ".join(split(text))) == split(text)


def test_the_ways_to_split():
    assert SPLITTERS == {"words": words, "characters": characters}
