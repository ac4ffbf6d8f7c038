"""Several products that do what was asked."""

import pytest

from mats.domain.policies.alike import Alike
from mats.domain.policies.policy import Ask, Pool
from mats.domain.search.candidate import UNMARKED, Candidate, Result
from mats.domain.search.query import Filter
from mats.domain.search.shortlist import Ranked
from mats.domain.search.verdict import Thresholds
from tests.builders import a_profile


def note_on(request, *tools):
    profiles = [
        a_profile(namespace=namespace, name=name, description=" ".join(said)) for namespace, name, *said in tools
    ]
    ask, policy = Ask.of(request, Filter()), Alike()
    pool = policy.choose(Pool(ask=ask, k=9, profiles=profiles), policy.look(ask, None, None, None))
    marked = [(each, pool.marks.get(each.id, UNMARKED)) for each in profiles]
    candidates = [Candidate(profile=each, bm25=1, cosine=None, marks=marks) for each, marks in marked]
    results = [Result(candidate=each, score=0.9, signals={}, weights={}, relevance=0.9) for each in candidates]
    ranked = Ranked(results=results, scoring=None, thresholds=Thresholds(match=0.7, weak=0.1), reranked=False)
    return policy.arrange(ranked).notes


@pytest.mark.parametrize(
    ("request_", "tools", "named"),
    [
        ("create a tag", [("com.a", "createTag"), ("com.b", "create_tag")], "com.b/create_tag"),
        ("create a tag", [("com.a", "createTag"), ("com.a.x", "create_tag")], ""),
        ("create a tag", [("com.a", "createTag"), ("com.b", "delete_tag")], ""),
        ("create a tag", [("com.a", "createTag"), ("com.b", "create_tag_alias_of_group")], ""),
        ("create a tag", [("com.a", "createLabel"), ("com.b", "create_tag")], ""),
        (
            "refund a payment",
            [("com.a", "create_refund", "Of a payment."), ("com.b", "create_refund", "Of a payment.")],
            "com.b/create_refund",
        ),
        (
            "refund a payment",
            [("com.a", "create_refund", "Of a payment."), ("com.b", "create_refund", "Of a tax.")],
            "",
        ),
        ("refund a payment", [("com.a", "create_refund", "Of a payment."), ("com.b", "get_url", "Of a payment.")], ""),
        ("do something", [("com.a", "createTag"), ("com.b", "create_tag")], ""),
    ],
)
def test_another_product_is_named_where_it_does_plainly_the_same(request_, tools, named):
    notes = note_on(request_, *tools)
    assert (named in "".join(notes)) if named else notes == ()
