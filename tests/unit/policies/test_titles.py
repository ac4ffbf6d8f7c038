"""The policy `titles`: candidates gain by the share of their title that a request has."""

from dataclasses import replace

import pytest

from mats.domain.policies.policy import Ask
from mats.domain.policies.titles import Titles
from mats.domain.profile.profile import SourceText
from mats.domain.search.candidate import Candidate
from mats.domain.search.query import Filter
from tests.builders import SCORING, a_profile, rank


def a_candidate(title: str, description: str = "", *, name: str = "x", gain: float = 0.0) -> Candidate:
    source = SourceText(title=title, description=description)
    profile = a_profile(name=name).model_copy(update={"source": source})
    return Candidate(profile=profile, bm25=0.5, cosine=0.5, gain=gain)


def gains(request: str, *candidates: Candidate) -> list[float]:
    shifted = Titles().shift(candidates, None, Ask.of(request, Filter()), SCORING)
    return [round(after.gain - before.gain, 4) for before, after in zip(candidates, shifted, strict=True)]


def test_a_candidate_gains_by_the_share_of_its_title_that_is_asked_for():
    said, half, other = map(a_candidate, ("Create playlists", "Change playlist cover image", "Follow artists"))
    assert gains("please create a playlist", said, half, other) == [0.05, 0.0125, 0.0]
    assert gains("please create a playlist", a_candidate("Create playlist", gain=0.15)) == [0.05]


@pytest.mark.parametrize(("request_", "gain"), [("create a set", 0.0), ("create a playlist", 0.0333), ("", 0.0)])
def test_nothing_gains_where_no_title_is_half_said(request_, gain):
    assert gains(request_, *map(a_candidate, ("Create playlist details", "Follow artists"))) == [gain, 0.0]


def test_without_a_title_it_is_the_first_sentence_else_the_name():
    first, name = a_candidate("", "Create a playlist. Then follow artists."), a_candidate("★", name="createPlaylist")
    assert gains("create a playlist", first, name) == [0.05, 0.05]
    assert gains("follow artists", first, name) == [0.0, 0.0]


def test_a_title_of_one_word_gains_half():
    assert gains("create a playlist", *map(a_candidate, ("Playlist", "createPlaylist"))) == [0.025, 0.05]


def test_a_title_stuffed_with_words_gains_little():
    stuffed = a_candidate("create change delete list follow share copy playlist artist song album track")
    assert gains("create a playlist", a_candidate("Create playlist"), stuffed) == [0.05, 0.0083]


def test_a_text_that_the_request_brings_along_is_not_what_it_asks_for():
    asked = replace(Ask.of('summarize this: "create a playlist"', Filter()), searched="summarize this:")
    assert [each.gain for each in Titles().shift([a_candidate("Create playlist")], None, asked, SCORING)] == [0.0]


def test_a_title_raises_no_relevance():
    own, other = a_candidate("Create playlist"), a_candidate("Share playlist", name="y")
    shifted = Titles().shift([own, other], None, Ask.of("create a playlist", Filter()), SCORING)
    results = {each.id: each for each in rank(shifted)}
    assert results[own.id].score > results[other.id].score
    assert results[own.id].relevance == results[other.id].relevance
