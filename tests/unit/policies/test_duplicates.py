"""Near-duplicates, and which of them stay among the candidates."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Lifecycle
from mats.domain.policies.duplicates import (
    FEWEST,
    MOST_KEPT,
    MOST_OF_A_DAY,
    SHARE,
    find_echoes,
    limit_near_duplicates,
)
from mats.domain.profile.index_fields import lexical_fields
from mats.domain.profile.profile import Enrichment, Profile, SourceText
from mats.domain.profile.wording import SIMILARITY, Wording
from mats.domain.text.words import content_words, stem, words
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


DESCRIPTION = "Gives money back to the card it came from, within the hour, in every currency that banks know."
OTHERS = (
    "Turns an address into coordinates and draws the way to it on a map of the city, by car or on foot.",
    "Sends a letter to all customers of a shop who have bought something during the last three months.",
)
TODAY, YESTERDAY = "2026-03-02", "2026-03-01"


def profile(
    number: int = 0, description: str = DESCRIPTION, *, since: str = f"{TODAY}T00:00:00", trust: int | None = None
) -> Profile:
    made = a_profile(namespace=f"com.n{number}", name=f"tool_{number}", description=description, trust=trust)
    return made.model_copy(update={"first_registered": since})


def kept(*profiles: Profile) -> list[str]:
    return [profiles[n].namespace.removeprefix("com.n") for n in limit_near_duplicates(profiles, unrated=50).kept]


def test_of_near_duplicates_five_of_a_day_stay_or_three_with_an_older_one_and_others_are_unaffected():
    strangers = [profile(10 + n, text) for n, text in enumerate(OTHERS)]
    assert kept(*(profile(n) for n in range(7)), *strangers) == ["0", "1", "2", "3", "4", "10", "11"]
    assert kept(*(profile(n) for n in range(7)), profile(90, since=f"{YESTERDAY}T00:00:00")) == ["0", "1", "90"]
    assert kept(*(profile(n) for n in range(7)), profile(90, trust=80)) == ["0", "1", "90"]
    assert kept(strangers[0], profile(0), strangers[1], profile(1)) == ["10", "0", "11", "1"]


def test_shuffled_sentences_with_a_few_other_words_are_near_duplicates():
    sentences = [*DESCRIPTION.split(", "), *(part for text in OTHERS for part in text.split(" and "))]
    floods = [
        profile(n, ". ".join([*random.Random(n).sample(sentences, len(sentences)), f"Extra{n} word{n}"]))
        for n in range(20)
    ]
    assert len(kept(*floods)) == MOST_OF_A_DAY


def test_a_pasted_text_in_any_field_makes_near_duplicates_and_a_writers_words_make_no_difference():
    pasted = {"enrichment": Enrichment(positive_examples=(DESCRIPTION, *OTHERS))}
    assert len(kept(*(profile(n, f"Number {n}").model_copy(update=pasted) for n in range(9)))) == MOST_OF_A_DAY
    enriched = [
        profile(n).model_copy(update={"enriched": True, "enrichment": Enrichment(summary=text, action=text[::-1])})
        for n, text in enumerate((DESCRIPTION, *OTHERS, "Anything else.", "More.", "And more."))
    ]
    assert len(kept(*enriched)) == MOST_OF_A_DAY


def test_active_ones_stay_before_deprecated_ones_of_equal_trust():
    old = [
        profile(n, since=f"{YESTERDAY}T00:00:00").model_copy(update={"lifecycle": Lifecycle.DEPRECATED})
        for n in range(4)
    ]
    assert kept(*old, profile(90)) == ["0", "1", "90"]
    assert kept(*(profile(n) for n in range(3)), old[0].model_copy(update={"namespace": "com.n91"})) == ["0", "1", "2"]
    assert kept(*old, profile(90, trust=20)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("since", [f"{YESTERDAY}T23:59:59", ""], ids=["a day earlier", "no time recorded"])
def test_later_copies_push_out_no_earlier_registration(since: str):
    copies = [profile(n) for n in range(20)]
    honest = [profile(90 + n, since=since) for n in range(3)]
    assert kept(*copies, *honest) == ["90", "91", "92"]
    assert kept(*copies, honest[0]) == ["0", "1", "90"]


def test_the_first_registered_of_a_day_stays_behind_later_and_more_relevant_ones():
    copies = [profile(n, since=f"{TODAY}T00:00:02") for n in range(20)]
    assert kept(*copies, profile(90, since=f"{TODAY}T00:00:01")) == ["0", "1", "2", "3", "90"]
    assert kept(*copies, profile(90, since=f"{TODAY}T00:00:03")) == ["0", "1", "2", "3", "4"]


def test_what_a_namespace_registered_on_one_day_is_equally_old():
    own = [profile(n, since=f"{TODAY}T00:00:0{9 - n}").model_copy(update={"namespace": "com.own"}) for n in range(6)]
    assert list(limit_near_duplicates(own, unrated=50).kept) == [0, 1, 2, 3, 4]
    assert list(limit_near_duplicates(own, unrated=50, echoes=range(6)).kept) == [0, 1, 2]
    later = [profile(90 + n, since=f"{TODAY}T00:00:08") for n in range(3)]
    assert list(limit_near_duplicates([*later, *own], unrated=50).kept) == [0, 1, 2, 3, 4]
    assert list(limit_near_duplicates([*later, *own], unrated=50, echoes=range(9)).kept) == [3, 4, 5]


def test_more_trust_stays_before_an_earlier_registration():
    early = [profile(n, since=f"{YESTERDAY}T00:00:00") for n in range(4)]
    assert kept(*early, profile(90, trust=80)) == ["0", "1", "90"]
    assert kept(*early, profile(90, trust=20)) == ["0", "1", "2", "3"]
    assert kept(*(profile(n, trust=80) for n in range(4)), profile(90, since="")) == ["0", "1", "2", "3"]


def test_a_chain_of_copies_connects_no_two_different_texts():
    words = [f"w{n}" for n in range(120)]
    chain = [profile(n, " ".join(words[n * 5 : n * 5 + 60])) for n in range(12)]
    ends = limit_near_duplicates([chain[0], chain[-1]], unrated=50)
    assert ends.near == {}
    assert {"0", "11"} <= set(kept(chain[0], chain[-1], *chain[1:-1]))


REQUEST = "give a customer the money back for a duplicate charge on the card"


def test_echoes_of_a_request_share_places_however_they_are_padded():
    flood = [profile(n, f"{REQUEST} {' '.join(f'pad{n}x{m}' for m in range(40))}") for n in range(20)]
    honest = profile(90, "Refunds a card payment.")
    profiles = [*flood, honest]
    echoes = find_echoes(REQUEST, profiles)
    assert echoes == list(range(20))
    assert limit_near_duplicates(profiles, unrated=50).near == {}
    assert list(limit_near_duplicates(profiles, unrated=50, echoes=echoes).kept) == [0, 1, 2, 20]


def test_the_original_of_copies_that_repeat_a_request_stays():
    copies = [profile(n, REQUEST, since=f"{TODAY}T00:00:02") for n in range(20)]
    profiles = [*copies, profile(90, REQUEST, since=f"{TODAY}T00:00:01")]
    assert 20 in limit_near_duplicates(profiles, unrated=50, echoes=range(21)).kept


@pytest.mark.parametrize(
    "field",
    [
        {"name": REQUEST},
        {"tags": (REQUEST,)},
        {"enrichment": Enrichment(positive_examples=(REQUEST,))},
        {"source": SourceText(parameter_text=REQUEST)},
    ],
    ids=str,
)
def test_a_request_is_found_in_any_field(field):
    assert find_echoes(REQUEST, [profile(0, "").model_copy(update=field)]) == [0]


PROFILES = st.lists(
    st.builds(
        profile,
        st.integers(0, 30),
        st.sampled_from([DESCRIPTION, f"{DESCRIPTION} Fast.", *OTHERS]),
        since=st.sampled_from(["", f"{YESTERDAY}T01:00:00", f"{TODAY}T01:00:00", f"{TODAY}T02:00:00"]),
        trust=st.sampled_from([None, 20, 80]),
    ),
    unique_by=lambda each: each.id,
    max_size=12,
)


@given(PROFILES)
def test_a_profile_is_left_out_only_for_three_near_ones_and_the_oldest_never_for_younger_ones(profiles):
    shared = limit_near_duplicates(profiles, unrated=50)
    stay = [profiles[n] for n in shared.kept]
    assert list(shared.kept) == sorted(shared.kept)
    for one in profiles:
        rivals = [other for other in stay if Wording.of(one).is_near(Wording.of(other)) and other is not one]
        if one in stay:
            assert len(rivals) < MOST_OF_A_DAY
            continue
        trust = one.trust or 50
        assert len(rivals) >= MOST_KEPT
        assert all((other.trust or 50) >= trust for other in rivals)
        peers = [other for other in rivals if (other.trust or 50) == trust]
        assert not peers or any(other.first_registered <= one.first_registered for other in peers)


SENTENCES = st.lists(st.sampled_from(f"{DESCRIPTION} {OTHERS[0]}".split()), max_size=30).map(" ".join)


@given(SENTENCES, SENTENCES, st.sampled_from([0.3, SIMILARITY, 1.0]))
def test_texts_are_near_from_the_least_similarity_on(one, other, least):
    mine, theirs = (Wording.of(profile(description=text)) for text in (one, other))
    overlaps = [
        len(one & other) / len(one | other)
        for one, other in ((mine.text, theirs.text), (mine.description, theirs.description))
        if one and other
    ]
    same_letters = bool(mine.letters) and mine.letters == theirs.letters
    assert (
        mine.is_near(theirs, least)
        is theirs.is_near(mine, least)
        is (same_letters or max(overlaps, default=0) >= least)
    )


def test_texts_without_words_are_not_near():
    empty = Wording(frozenset(), frozenset(), "")
    assert not empty.is_near(empty)


TEXT = "Adds what is asked for to the settings, for everyone who may see it, within the hour."


def test_an_exact_match_stays_among_near_duplicates_but_takes_no_place_of_an_older_one():
    def twin(number: int, day: str) -> Profile:
        made = a_profile(namespace=f"com.n{number}", name=f"tool_{number}", description=TEXT)
        return made.model_copy(update={"first_registered": f"2026-01-{day}T00:00:00"})

    old = [twin(number, "01") for number in range(3)]
    assert 3 in limit_near_duplicates([*old, twin(3, "01")], unrated=50, exact=[3]).kept
    copies = [twin(number, "02") for number in range(1, 4)]
    assert 0 in limit_near_duplicates([twin(0, "01"), *copies], unrated=50, exact=[1, 2, 3]).kept


def test_four_of_five_words_of_a_request_are_an_echo_and_three_are_none():
    request = "refund customer payment overseas twice"
    kept = [a_profile(name=f"t{n}", description=" ".join(request.split()[:n])) for n in (3, 4, 5)]
    assert find_echoes(request, kept) == [1, 2]


def test_an_exact_match_stays_among_echoes():
    profiles = [a_profile(name=f"t{n}", description=f"other text {n} {n * n}") for n in range(6)]
    assert limit_near_duplicates(profiles, unrated=50, echoes=range(6), exact=[5]).kept == [0, 1, 2, 5]
