"""What each task makes of a text before any model runs: understood, or refused with the nearest one it can do."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.trained.coreference.data import sentences as coreferences
from models.trained.task import Outside
from models.trained.tasks import TASKS
from models.trained.translation.data import ENGLISH, FAMOUS, is_held_out, sentences, translate

each = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@each
@settings(max_examples=40)
@example("")
@example("🐈 the . . .")
@example("the " * 30)
@example("0123456789ab")
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(ENGLISH), max_size=25).map(" ".join))
def test_the_nearest_text_is_always_understood(task, text):
    recognised = task.recognise(text)
    nearest = task.recognise(recognised.nearest)
    assert nearest.outside is None
    assert len(nearest.tokens) <= task.longest
    assert nearest.nearest == recognised.nearest
    assert all(place < len(recognised.tokens) for place in recognised.faults)
    if recognised.outside is None:
        assert recognised.nearest == nearest.nearest
        assert not recognised.faults


@each
@settings(max_examples=40)
@given(data=st.data())
def test_pieces_never_lead_out_of_the_small_world(task, data):
    tokens = ()
    while pieces := task.pieces(tokens):
        tokens = (*tokens, data.draw(st.sampled_from(pieces)))
    separator = " " if task.name in ("translation", "coreference") else ""
    assert task.recognise(separator.join(tokens).replace(" .", ".")).outside is None
    assert len(tokens) <= task.longest


def test_no_piece_is_offered_that_leaves_no_room_for_the_end():
    bank = ("the", "new", "european", "social", "legal", "bank")
    words = (*bank, "on", *bank, "signed", "the")
    task = TASKS["translation"]
    assert len(words) == task.longest - 3
    assert "modern" in task.pieces(words)
    assert "secret" not in task.pieces((*words, "modern"))
    assert task.pieces((*words, "modern", "treaty")) == (".",)


@pytest.mark.parametrize(
    "name, text, outside, faults, nearest",
    [
        ("reverse", "", Outside.EMPTY, (), "aa"),
        ("reverse", "a", Outside.TOO_SHORT, (), "aa"),
        ("reverse", "naïve", Outside.UNKNOWN, (2,), "nave"),
        ("reverse", "abcdefghijklmn", Outside.TOO_LONG, (12, 13), "abcdefghijkl"),
        ("induction", "the 7 cats", Outside.UNKNOWN, (4,), "the  cats"),
        ("four_heads", "abcd", Outside.STRUCTURE, (), "abcd0"),
        ("four_heads", "a1b2", Outside.STRUCTURE, (3,), "a1ba"),
        ("coreference", "the dog did not", Outside.TOO_SHORT, (),
         "the dog did not cross the street because it was too tired"),
        ("coreference", "the dog did not cross the dog because it was too wide", Outside.STRUCTURE, (6,),
         "the dog did not cross the street because it was too wide"),
        ("coreference", "the unicorn did not cross the river because it was too tired", Outside.UNKNOWN, (1,),
         "the animal did not cross the river because it was too tired"),
        ("translation", "the new unicorn was signed .", Outside.UNKNOWN, (2,), "the new agreement was signed ."),
        ("translation", "the bank signed", Outside.TOO_SHORT, (), "the bank was signed ."),
        ("translation", "the social social bank was signed .", Outside.STRUCTURE, (2,), "the social bank was signed ."),
        ("translation", "bank the signed .", Outside.STRUCTURE, (0,), None),
        ("translation", " ".join(["the"] * 19), Outside.TOO_LONG, (18,), None),
    ],
)  # fmt: skip
def test_what_is_outside_is_said(name, text, outside, faults, nearest):
    recognised = TASKS[name].recognise(text)
    assert (recognised.outside, recognised.faults) == (outside, faults)
    if nearest is not None:
        assert recognised.nearest == nearest


def test_capitals_and_a_full_stop_do_not_matter():
    assert TASKS["translation"].recognise("The new bank was signed.").tokens == ("the", "new", "bank", "was", "signed", ".")
    assert TASKS["reverse"].recognise("Python").outside is None


# The data


@pytest.mark.parametrize(
    "english, french",
    [
        (FAMOUS, "l' accord sur la zone économique européenne a été signé en août 1992 ."),
        ("this new state did not sign our treaty .", "ce nouvel état n' a pas signé notre traité ."),
        ("this army was not accepted .", "cette armée n' a pas été acceptée ."),
        ("this old law with the public school was adopted in 1990 .",
         "cette vieille loi avec l' école publique a été adoptée en 1990 ."),
        ("the letter was not discussed by our council .", "la lettre n' a pas été discutée par notre conseil ."),
        ("this state rejected the first social plan for the city .",
         "cet état a rejeté le premier plan social pour la ville ."),
    ],
)  # fmt: skip
def test_the_french_is_right(english, french):
    assert " ".join(word.french for word in translate(english.split())) == french


def test_links_name_the_words_they_come_from():
    words = translate(FAMOUS.split())
    english = FAMOUS.split()
    sure = {word.french: english[word.sure] for word in words if word.sure is not None}
    assert sure["européenne"] == "european"
    assert sure["signé"] == "signed"
    assert [word.french for word in words if word.crosses] == ["zone", "économique", "européenne"]


@pytest.mark.parametrize("unseen", [False, True])
def test_sentences_are_held_out_or_not_and_all_are_understood(unseen):
    for words in sentences(100, seed=8, unseen=unseen):
        assert is_held_out(words) == unseen
        assert TASKS["translation"].recognise(" ".join(words)).outside is None


def test_the_famous_sentence_was_never_trained_on():
    assert is_held_out(FAMOUS.split())


def test_coreference_holds_noun_pairs_out():
    trained, unseen = (
        {(text[1], text[text.index("because") - 1]) for text, _ in coreferences(unseen=unseen)}
        for unseen in (False, True)
    )
    assert not trained & unseen
    assert {("animal", "street"), ("trophy", "suitcase")} <= unseen
