"""A row for every policy, over a made-up set of a few capabilities."""

from contextlib import closing
from pathlib import Path

import pytest

from experiments.ablate.measure import Comparison, Part, Row, compare
from experiments.ablate.requests import misspelt, names, one_product, with_payload, with_provider
from experiments.ablate.run import rows
from experiments.ablate.sets import holds, judged_queries, made_requests, open_set
from experiments.report.policies import rows_of
from experiments.report.results import load_results
from mats.bootstrap.local import local_system
from mats.bootstrap.policies import NAMES
from mats.domain.text.spelling import distance
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.systems.workbench import without_policies
from mats.settings import Settings
from tests.builders import a_registration
from tests.fakes import FakeEncoder

ABOUT = {
    "refundPayment": "Gives the money of a payment back to the customer.",
    "listInvoices": "Lists the open invoices of a customer.",
    "sendReceipt": "Sends a receipt by electronic mail.",
}
ITEMS = [a_registration(name=name, description=text, provider="Acme") for name, text in ABOUT.items()]
DATASET = Dataset(
    name="made",
    registrations=ITEMS,
    queries=[JudgedQuery(item.name, item.description, frozenset({item.id})) for item in ITEMS],
    refused={},
    digest="",
)


@pytest.fixture(scope="module")
def comparisons() -> list[Comparison]:
    found: list[Comparison] = []
    with open_set(DATASET, Path(), Settings(encoder="none"), NAMES) as opened:
        for probe in (judged_queries, made_requests, holds):
            found += probe(opened)
    return found


def test_every_policy_has_a_row_and_none_loses_a_judged_query(comparisons):
    table = rows(comparisons, NAMES)
    assert list(table) == list(NAMES)
    for row in table.values():
        assert row.total(Part.FIRST) == {"requests": 3, "gained": 0, "lost": 0}
        assert rows_of(row.policy, row.to_json())[0][0] == row.policy


def test_the_policies_of_a_system_are_those_of_the_table(tmp_path):
    with closing(local_system(Settings(home=tmp_path), encoder=FakeEncoder())) as local:
        assert sorted(policy.name for policy in local.discover.policies) == sorted(NAMES)
        assert [policy.name for policy in without_policies(local.discover, NAMES[1:]).policies] == [NAMES[0]]


def test_every_policy_has_a_row_in_the_committed_results_with_requests_of_its_own():
    policies = load_results("experiment-ablate")["policies"]
    assert sorted(policies) == sorted(NAMES)
    assert all(one["own"]["requests"] for one in policies.values())


def test_what_a_policy_is_for_is_compared_for_it_alone(comparisons):
    own = {(each.policy, each.what): each for each in comparisons if each.part is Part.OWN}
    probed = {"exact", "payload", "spelling", "products", "titles", "holds"}
    assert {policy for policy, _ in own} == probed
    ids = own["exact", "ids"]
    assert (ids.requests, ids.with_) == (3, 3)
    assert own["spelling", "one word misspelt"].with_ == 3


def test_requests_are_made_from_the_set():
    assert {query.text for query in names(DATASET)} == {"refund payment", "list invoices", "send receipt"}
    for query, wrong in zip(DATASET.queries, misspelt(DATASET), strict=True):
        assert wrong.text != query.text
        assert distance(wrong.text, query.text, 1) == 1
    assert {query.text.rpartition(". ")[2] for query in with_provider(DATASET)} == {"with Acme", "in Acme"}
    assert all(query.text.endswith('."') for query in with_payload(DATASET))
    assert one_product(DATASET)[1] == "Acme"


def test_a_policy_fails_that_gains_nothing_or_loses_where_it_must_do_nothing():
    def row(part: Part, *pairs: tuple[float, float]) -> Row:
        return Row("exact", [compare("exact", part, "names", "made", pairs)])

    assert row(Part.OWN, (1, 0), (1, 1)).failures == []
    assert row(Part.OWN, (1, 1)).failures == ["exact wins nothing on its own requests"]
    assert row(Part.FIRST, (0, 1), (1, 0)).failures == []
    assert row(Part.FIRST, (0, 1)).failures == ["exact loses 1 first places of judged queries"]
    assert row(Part.SILENT, (0, 1), (1, 0), (2, 4)).failures == ["exact loses 2 where it must do nothing: names"]
    assert row(Part.ATTACK, (0, 1)).failures == []
