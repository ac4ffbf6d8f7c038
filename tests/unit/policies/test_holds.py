"""What a caller lacks for calling a capability."""

import json
from typing import Any

import pytest

from mats.domain.policies import holds as policies
from mats.domain.policies.holds import lacks
from mats.domain.policies.policy import Ask, Pool
from mats.domain.profile.profile import Profile
from mats.domain.search.candidate import Candidate, Exactness, Marks
from mats.domain.search.query import Filter, Holds
from tests.builders import a_profile, rank

URL = "https://pay.example.com/mcp"


def called(**invocation: Any) -> Profile:
    """The profile of a capability that is called in this way; without any, in none."""
    return a_profile(namespace="com.acme").model_copy(update={"invocation": json.dumps(invocation)})


MCP = {"protocol": "mcp", "transport": "streamable-http", "url": URL}
KEYED = {**MCP, "auth": [{"scheme": "bearer"}, {"scheme": "apiKey"}]}
EITHER = {**MCP, "auth": [{"scheme": "bearer", "option": 1}, {"scheme": "apiKey", "option": 2}]}


@pytest.mark.parametrize(
    ("invocation", "holds", "because"),
    [
        (MCP, {}, ""),
        (MCP, {"auth": []}, ""),
        (KEYED, {"auth": ["bearer"]}, "needs apiKey and bearer"),
        (KEYED, {"auth": ["bearer", "apiKey@com"]}, ""),
        (KEYED, {"auth": ["bearer", "apiKey@org.other"]}, "needs apiKey and bearer"),
        (EITHER, {"auth": ["apiKey"]}, ""),
        (EITHER, {"auth": []}, "needs bearer or apiKey"),
        (MCP, {"transports": ["stdio", "mcp"]}, ""),
        (MCP, {"transports": ["stdio", "http"]}, "is called over mcp/streamable-http"),
        (MCP, {"read_only": True}, "is not said to be read-only"),
        ({}, {"auth": []}, "its owner gave no way to call it"),
    ],
    ids=str,
)
def test_the_reason_that_a_capability_cannot_be_called(invocation, holds, because):
    profile, asked = called(**invocation), Holds(**holds)
    assert lacks(profile, asked) == because
    strict = asked.model_copy(update={"leave_out": True})
    pool = Pool(ask=Ask.of("pay", Filter()), k=15, profiles=[profile], seen=1, kept=range(1))
    marked, narrowed = (policies.Holds().choose(pool, each) for each in (asked, strict))
    assert [marks.unfit for marks in marked.marks.values()] == ([because] if because else [])
    assert narrowed.excluded == ({profile.id: because} if because else {})
    assert (narrowed.candidates(), narrowed.free) == (([], 1) if because else ([profile], 0))


def test_what_cannot_be_called_stands_behind_what_is_as_good_a_match():
    def found(name: str, relevance: float, unfit: str = "", exact: Exactness | None = None) -> Candidate:
        return Candidate(
            profile=a_profile(name=name), bm25=None, cosine=relevance, marks=Marks(unfit=unfit, exact=exact)
        )

    def names(*candidates: Candidate) -> list[str]:
        scores = {each.id: each.cosine for each in candidates}
        return [each.candidate.profile.name for each in rank(candidates, scores, policies.Holds())]

    assert names(found("a", 0.9, "needs a key"), found("b", 0.8), found("c", 0.5)) == ["b", "a", "c"]
    assert names(found("a", 0.7, "needs a key"), found("b", 0.7), found("c", 0.69)) == ["b", "a", "c"]
    assert names(found("a", 0.9, "needs a key", Exactness.ID), found("b", 0.8)) == ["a", "b"]
    assert names(found("a", 0.9, "needs a key"), found("b", 0.5, "too")) == ["a", "b"]


def test_what_cannot_be_called_stands_behind_the_last_of_its_equals():
    candidates = [
        Candidate(profile=a_profile(name=name), bm25=None, cosine=cosine, marks=Marks(unfit=unfit))
        for name, cosine, unfit in (("unfit", 0.9, "x"), ("a", 0.8, ""), ("b", 0.7, ""), ("weak", 0.3, ""))
    ]
    found = rank(candidates, {}, policies.Holds())
    assert [each.candidate.profile.name for each in found] == ["a", "b", "unfit", "weak"]
