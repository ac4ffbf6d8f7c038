"""Who sees what of the report of use."""

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt
from mats.domain.search.verdict import Verdict
from mats.local.use import UseQuery, report_use
from mats.local.worker import drain
from tests.builders import a_registration

OURS, THEIRS, GONE = a_registration(), a_registration(namespace="com.two", visible_to=["secret"]), Id("com.old/gone")


def ask(local: LocalSystem, text: str, *audiences: str, chosen: Id | None = None) -> None:
    receipt = Receipt(
        query_id=text, text=text, caller="me", audiences=frozenset(audiences), at=local.clock.now(),
        shown=(OURS.id, THEIRS.id, GONE), verdict=Verdict.WEAK, nearest=THEIRS.id,
    )  # fmt: skip
    local.stores.receipt_log.put(receipt)
    if chosen:
        outcomes = (Outcome(chosen, Event.SELECTED),)
        local.stores.outcomes.record(receipt, Feedback(query_id=text, caller="me", outcomes=outcomes))


def test_an_owner_sees_neither_requests_nor_capabilities_of_other_audiences(local: LocalSystem):
    local.stores.registry.put([OURS, THEIRS])
    drain(local)
    ask(local, "one", "secret", chosen=THEIRS.id)
    ask(local, "two", "secret")
    ask(local, "three")
    every = report_use(local, UseQuery())
    assert [one["id"] for one in every["capabilities"]] == [OURS.id, THEIRS.id], "what is gone is left out"
    assert every["capabilities"][0]["lost_to"] == [{"id": THEIRS.id, "answers": 1}]
    assert {(one["text"], one["nearest"]) for one in every["unserved"]} == {("two", THEIRS.id), ("three", THEIRS.id)}
    owner = report_use(local, UseQuery(audience=("public",)))
    [one] = owner["capabilities"]
    assert (one["id"], one["asked"], one["lost_to"]) == (OURS.id, 3, [])
    assert [(one["text"], one["nearest"]) for one in owner["unserved"]] == [("three", None)]
    first = report_use(local, UseQuery(limit=1))
    assert (len(first["capabilities"]), first["more"], len(first["unserved"]), first["more_unserved"]) == (1, 1, 1, 1)
