"""Synonyms in a registry that not everybody sees whole."""

import pytest

from mats.domain.policies.policy import Ask
from mats.domain.policies.synonyms import Synonyms
from mats.domain.search.query import Filter
from tests.builders import a_profile
from tests.world import indexed

GROUPS = (("merger", "zanzibarium"), ("bill", "invoice"))


@pytest.mark.parametrize(
    ("text", "audiences", "rewrites"),
    [
        ("merger", {"board"}, ("zanzibarium",)),
        ("merger", set(), ()),
        ("zanzibariun merger", set(), ()),
        ("bill of a merger", set(), ("invoice of a merger",)),
        ("bill of a merger", {"board"}, ("bill of a zanzibarium", "invoice of a merger", "invoice of a zanzibarium")),
        ("pay", set(), ()),
    ],
)
def test_a_request_is_rewritten_and_its_caller_told_in_words_of_what_it_sees(text, audiences, rewrites):
    index = indexed(
        a_profile(name="plan", description="Zanzibarium plans.", visible_to=("board",)),
        a_profile(name="pay", description="Pay an invoice."),
    )
    ask, _ = Synonyms(lambda: GROUPS).read(Ask.of(text, Filter(audiences=frozenset(audiences))), index)
    assert set(ask.words.rewrites) == set(rewrites)
    assert len(ask.notes) == len(rewrites)
