"""The words that conversations are found by: the same however they are composed, found in time."""

import unicodedata

import pytest

from carnet.stores.conversations.words import MOST_CHARACTERS, MOST_WORDS, words_of
from tests.core.growth import SQUARE, times_as_long


def test_a_word_is_the_same_however_it_is_composed_and_capitalised() -> None:
    text = "Überraschung in Ångström, ﬁne STRASSE 東京都 가나"
    words = words_of(text)
    assert words == words_of(unicodedata.normalize("NFD", text)) == words_of(text.upper())
    assert {"überraschung", "ångström", "fine", "東京", "京都", "가나"} <= set(words)


def test_a_word_far_on_in_a_text_is_found_as_one_at_its_beginning() -> None:
    far = unicodedata.normalize("NFD", "é " * 20_000 + "Ångström")
    assert words_of(far) == ("é", "ångström")


# Marks that have to be put in order; letters that become many; many words that are one.
@pytest.mark.parametrize("piece", ["\u0315\u0300", "\u0f73", "\uff9e\u0315", "\ufdfa", "a ", "東"])
def test_to_find_the_words_of_a_text_takes_time_that_grows_as_it_does(piece: str) -> None:
    text = ("a" + piece * MOST_CHARACTERS)[:MOST_CHARACTERS]
    assert len(words_of(text)) <= MOST_WORDS
    assert times_as_long(lambda many: words_of(text[:many]), MOST_CHARACTERS) < SQUARE
