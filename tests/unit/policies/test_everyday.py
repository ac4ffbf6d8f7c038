"""Everyday words in registries with and without them."""

from mats.domain.policies.everyday import Everyday
from mats.domain.policies.policy import Ask
from mats.domain.search.query import Filter
from mats.domain.text.everyday import MEANT
from mats.domain.text.words import stem
from tests.builders import a_profile
from tests.world import indexed


def read(request, *profiles, **about):
    asked = Ask.of(request, Filter(), **about)
    found, _ = Everyday().read(asked, indexed(*profiles))
    return found


def test_a_word_that_the_registry_lacks_is_searched_by_what_it_may_mean():
    found = read("start a new room", a_profile(name="create_channel"))
    assert found.words.guessed == ("channel", "conversation")
    assert found.plain == "start a new room (channel)"
    assert found.searched == "start a new room"


def test_a_word_that_the_registry_has_and_other_words_are_left_alone():
    hotel = [a_profile(name=f"room_{n}", description="Books a room.") for n in range(10)]
    assert read("start a new room", *hotel).words.guessed == ()
    assert read("create a channel").words.guessed == ()
    assert read("una room per favore", foreign=True).words.guessed == ()


def test_no_word_means_itself_alone():
    assert all(words and word not in map(stem, words) for word, words in MEANT.items())
