"""A source that no system could answer is told from one that is hard."""

import pytest

from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, JudgedQuery, defects
from tests.builders import a_registration


def a_set(*queries, registered=()):
    return Dataset("made", [a_registration(**item) for item in registered], queries, {}, "0" * 64)


def a_query(id, *relevant, source="a"):
    return JudgedQuery(id, "x", frozenset(map(Id, relevant)), source)


def item(n, description):
    return {"namespace": f"x.n{n}", "name": "t", "description": description}


def test_labels_and_queries_are_counted_by_source():
    found = defects(
        a_set(
            a_query("1", "x.n1/t", "gone"), a_query("2", "gone"), a_query("3", "x.n2/t", source="b"),
            registered=[item(1, "one"), item(2, "two")],
        )
    )  # fmt: skip
    assert [(d.source, d.queries, d.labels, d.unregistered, d.unanswerable) for d in found] == [
        ("a", 2, 2, 1, 1),
        ("b", 1, 1, 0, 0),
    ]
    assert all(d.suspicions == () for d in found)


def test_a_source_with_mostly_unregistered_labels_or_shared_documents_is_suspicious():
    (lacking,) = defects(a_set(a_query("1", "p", "q", "x.n1/t", source=""), registered=[item(1, "one")]))
    assert (lacking.source, lacking.suspicions) == ("made", ("2 of 3 labels are not in the registry",))
    registered = [item(n, "same" if n < 4 else "other") for n in range(6)]
    (shared,) = defects(a_set(a_query("1", *(f"x.n{n}/t" for n in range(6))), registered=registered))
    assert shared.suspicions == ("4 of 6 labels share one document",)


@pytest.mark.parametrize(("documents", "shared"), [([], 0), (["a"], 0), (["a", "b"], 0), (["a", "a", "b"], 2)])
def test_two_or_more_labels_share_a_document(documents, shared):
    registered = [item(n, text) for n, text in enumerate(documents)]
    (found,) = defects(a_set(a_query("1", *(f"x.n{n}/t" for n in range(len(documents)))), registered=registered))
    assert found.shared == shared
