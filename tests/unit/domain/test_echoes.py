"""Capabilities that repeat a request."""

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.profile.index_fields import lexical_fields
from mats.domain.text.words import content_words, stem, words
from mats.domain.trust.near_duplicates import FEWEST, SHARE, find_echoes
from tests.builders import a_profile

ENDINGS = (
    "", "s", "es", "ies", "y", "ed", "eed", "ing", "ational", "ization", "izer", "ously", "ability", "ibly", "ogy",
    "ive", "iveness", "ality", "icate", "ful", "ement", "able", "e", "ll",
)  # fmt: skip
WORDS = st.builds("".join, st.tuples(st.text("abceilnorstuyz", min_size=1, max_size=6), st.sampled_from(ENDINGS)))


@given(WORDS | st.text(max_size=12).map(lambda text: "".join(words(text)[:1])))
def test_a_word_starts_with_its_stem_except_for_the_last_letter(word):
    assert word.startswith(stem(word)[:-1])


@given(st.lists(WORDS, min_size=4, max_size=8), st.lists(WORDS, max_size=8), st.integers(0, 8))
def test_echoes_are_those_of_comparing_every_word(request_words, others, kept):
    request = " ".join(request_words)
    profile = a_profile(name="it", description=" ".join([*request_words[:kept], *others]).upper())
    asked = set(map(stem, content_words(request)))
    said = {stem(word) for text in lexical_fields(profile).values() for word in words(text)}
    repeats = len(asked) >= FEWEST and len(asked & said) >= SHARE * len(asked)
    assert find_echoes(request, [profile]) == ([0] if repeats else [])
