"""The data of the console's pages: order and facets, counts of use, outcomes, demand, actions on several, imports."""

import json

import pytest

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, Kind, Lifecycle
from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import ORDERS
from mats.domain.errors import DependencyFailed, RequestInvalid
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt
from mats.domain.learning.reliability import time_of_weight, weight_at, wilson_interval
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import fingerprint
from mats.local.console.actions import ActionRequest, ImportRequest, TrustQuery, TrustRequest
from mats.local.console.api import parse_query
from mats.local.console.capability_list import Snapshot
from mats.local.console.demand import ReportReader
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import ListQuery, ListRow
from mats.local.console.use_counts import OutcomeQuery, UseCounts
from mats.local.worker import drain
from mats.ports import ChangedIds, ShownAnswer, ShownAnswers
from tests.builders import a_registration, an_item
from tests.fakes import FakeClock

REFUND = a_registration().id
OTHER = a_registration(name="other").id


@pytest.fixture
def service(local: LocalSystem) -> RegistryService:
    local.stores.registry.put([a_registration(), a_registration(name="other")])
    drain(local)
    return RegistryService(local, timeout_s=0.0)


def answer(local: LocalSystem, query_id: str, *shown: Id, **more) -> Receipt:
    receipt = Receipt(
        query_id=query_id,
        text="refund",
        caller="me",
        audiences=frozenset(),
        at=more.pop("at", local.clock.now()),
        shown=shown,
        **more,
    )
    local.stores.receipt_log.put(receipt)
    return receipt


def report(local: LocalSystem, receipt: Receipt, id: Id, *events: Event, at: str = "2026-11-20T10:00:00+00:00") -> None:
    outcomes = tuple(Outcome(id, event) for event in events)
    local.stores.outcomes.record(receipt, Feedback(query_id=receipt.query_id, caller="me", outcomes=outcomes), at)


class Log:
    """A log of answers in memory."""

    def __init__(self, *answers: ShownAnswer) -> None:
        self.stored = list(answers)

    def answers(self, since: int | None, *, most: int) -> ShownAnswers:
        first = len(self.stored) - most if since is None else since
        found = self.stored[max(0, first) :][:most]
        return ShownAnswers(max(0, first) + len(found), found)

    def changes(self, since: int | None) -> ChangedIds:
        return ChangedIds(0, [])

    def counts(self, ids):
        return {}


def test_answers_are_counted_once_and_leave_after_their_days():
    log = Log(ShownAnswer("2026-10-01T10:00:00+00:00", [REFUND], unmatched=True))
    clock = FakeClock("2026-10-02T10:00:00+00:00")
    uses = UseCounts(log, clock)
    for _ in range(2):
        uses.refresh()
    assert (uses.answers, uses.unmatched_count, uses.times_shown(REFUND), uses.times_shown(OTHER)) == (1, 1, 1, 0)
    log.stored.append(ShownAnswer("2026-10-02T11:00:00+00:00", [REFUND, OTHER], unmatched=False))
    uses.refresh()
    assert (uses.answers, uses.unmatched_count, uses.times_shown(REFUND)) == (2, 1, 2)
    clock.time = "2026-10-31T10:00:00+00:00"
    uses.refresh()
    assert (uses.answers, uses.unmatched_count, uses.times_shown(REFUND), uses.times_shown(OTHER)) == (1, 0, 1, 1)


def test_a_list_is_ordered_again_only_after_a_count_has_changed(monkeypatch):
    orders: list[ListQuery] = []
    order = ListQuery.order
    monkeypatch.setattr(ListQuery, "order", lambda query, *given: orders.append(query) or order(query, *given))
    log, snapshot = (
        Log(ShownAnswer("2026-10-01T10:00:00+00:00", [REFUND], unmatched=False)),
        Snapshot([ListRow(id=OTHER, kind=Kind.TOOL), ListRow(id=REFUND, kind=Kind.TOOL)]),
    )
    uses = UseCounts(log, FakeClock("2026-10-02T10:00:00+00:00"))

    def listed(**more) -> list[Id]:
        uses.refresh()
        return [row["id"] for row in snapshot.page(ListQuery(sort="-shown", **more), uses)["capabilities"]]

    assert [listed(), listed(limit=1), listed(after=REFUND)] == [[REFUND, OTHER], [REFUND], [OTHER]]
    assert len(orders) == 1
    log.stored += [ShownAnswer("2026-10-02T10:00:00+00:00", [OTHER], unmatched=False)] * 2
    assert listed() == [OTHER, REFUND]
    assert listed(kind=(Kind.AGENT,)) == []
    assert len(orders) == 3


def test_a_list_shows_how_often_each_was_found_and_when_it_last_succeeded(local, service):
    first = answer(local, "one", REFUND, OTHER)
    answer(local, "two", REFUND)
    report(local, first, REFUND, Event.SELECTED, Event.SUCCEEDED)
    rows = service.page(ListQuery(sort="-shown"))["capabilities"]
    assert [(row["id"], row["shown"], row["last_success"]) for row in rows] == [
        (REFUND, 2, "2026-11-20T10:00:00+00:00"),
        (OTHER, 1, None),
    ]
    assert [row["id"] for row in service.page(ListQuery(sort="success"))["capabilities"]] == [REFUND, OTHER]


def test_what_was_reported_goes_with_the_registration(local, service):
    report(local, answer(local, "one", REFUND), REFUND, Event.SUCCEEDED)
    assert service.get(REFUND)["use"]["succeeded"] == 1
    local.stores.registry.remove(REFUND)
    local.stores.registry.put([a_registration()])
    drain(local)
    service.refresh()
    assert service.get(REFUND)["use"]["succeeded"] == 0


def test_outcomes_have_shares_with_intervals_and_the_latest_failures(local, service):
    report(local, answer(local, "one", REFUND, OTHER), REFUND, Event.SUCCEEDED)
    report(local, answer(local, "two", REFUND, OTHER), OTHER, Event.FAILED, at="2026-11-21T10:00:00+00:00")
    report(local, answer(local, "three", OTHER), OTHER, Event.WRONG, at="2026-11-22T10:00:00+00:00")
    page = service.outcomes(OutcomeQuery())
    assert [one["id"] for one in page["capabilities"]] == [OTHER, REFUND]
    low, high = wilson_interval(0.0, 1)
    assert (
        page["capabilities"][0] | {"rate": 0.0, "low": round(low, 4), "high": round(high, 4), "wrong": 1}
        == page["capabilities"][0]
    )
    assert [(one["id"], one["event"], one["text"]) for one in page["failures"]] == [
        (OTHER, "wrong", "refund"),
        (OTHER, "failed", "refund"),
    ]
    assert (page["totals"]["succeeded"], page["totals"]["failed"], page["totals"]["rate"]) == (1, 1, 0.5)
    orders = {sort: service.outcomes(OutcomeQuery(sort=sort))["capabilities"][0]["id"] for sort in ("rate", "latest")}
    assert orders == {"rate": OTHER, "latest": OTHER}
    assert service.outcomes(OutcomeQuery(limit=1))["more"] == 1
    json.dumps(page)


def test_a_time_is_read_back_from_its_weight():
    for at in ("2026-01-01T00:00:00+00:00", "2026-11-22T17:45:04+00:00", "2031-05-06T07:08:09+00:00"):
        assert time_of_weight(weight_at(at)) == at


ROWS = [
    ListRow(id="a.b/one", kind=Kind.TOOL, trust=10, updated="2026-01-02", provider="Straße AG"),
    ListRow(id="a.b/two", kind=Kind.AGENT, trust=None, updated="2026-01-03", enriched=True, callable=False,
            suspicious=(ORDERS,), lifecycle=Lifecycle.DEPRECATED),
    ListRow(id="a.c/three", kind=Kind.TOOL, trust=90, error="namespace: no", sparse="no description"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "names"), [
    (b"sort=trust", "one three two"), (b"sort=-trust", "three one two"), (b"sort=-updated", "two one three"),
    (b"ns=a.b", "one two"), (b"ns=a", "one two three"), (b"ns=a.b.*&ns=a.c", "one two three"),
    (b"ns=a.", "one two three"), (b"ns=b", ""), (b"", "one two three"), (b"show=sparse", "three"),
    (b"show=rejected", "three"), (b"show=suspicious", "two"), (b"show=deprecated", "two"),
    (b"show=unenriched", "one three"), (b"show=uncallable", "two"), (b"kind=agent", "two"),
    (b"kind=tool&kind=agent", "one two three"), (b"q=STRASSE", "one"), (b"q=B/T", "two"),
    (b"q=b/&show=unenriched&kind=agent", ""),
])  # fmt: skip
def test_rows_are_ordered_and_filtered(query: bytes, names: str):
    asked, uses = parse_query(query, ListQuery), UseCounts(Log(), FakeClock("2026-01-01T00:00:00+00:00"))
    assert [row.id.partition("/")[2] for row in asked.order(asked.select(ROWS), uses)] == names.split()


def test_each_facet_counts_without_its_own_filter():
    facets = parse_query(b"kind=tool&ns=a.b", ListQuery).facets(ROWS)
    assert facets["kinds"] == {"model": 0, "agent": 1, "tool": 1, "skill": 0}
    assert facets["namespaces"] == [{"namespace": "a.b", "count": 1}, {"namespace": "a.c", "count": 1}]
    assert facets["shows"] == {show: int(show in ("all", "unenriched")) for show in facets["shows"]}


def test_pages_of_a_sorted_list_follow_each_other(local, service):
    for name, trust in (("refund_payment", 5), ("other", 50)):
        local.stores.trust.put(a_registration(name=name).id, Assigned(trust=trust))
    drain(local)
    first = service.page(ListQuery(sort="-trust", limit=1))
    second = service.page(ListQuery(sort="-trust", limit=1, after=first["following"]))
    assert [page["capabilities"][0]["trust"] for page in (first, second)] == [50, 5]
    assert second["following"] is None
    assert "facets" in first
    assert "facets" not in second
    assert service.page(ListQuery(sort="-trust", after="no/such"))["capabilities"] == []


def act(service: RegistryService, **request):
    return service.act(ActionRequest.parse(request))


def test_several_are_changed_at_once_and_each_failure_has_its_reason(local, service):
    assert act(service, action="tag", ids=[REFUND, OTHER, REFUND], tags=["money"])["done"] == 2
    assert "money" in local.stores.registry.get([REFUND])[REFUND]["tags"]
    act(service, action="untag", ids=[REFUND], tags=["money"])
    assert "money" not in local.stores.registry.get([REFUND])[REFUND].get("tags", [])
    trusted = act(service, action="trust", ids=[REFUND, "no/such"], trust=70)
    assert (trusted["done"], [one["id"] for one in trusted["failed"]]) == (1, ["no/such"])
    assert local.stores.trust.rows([REFUND])[REFUND].trust == 70
    assert act(service, action="remove", ids=[OTHER, OTHER, "no/such"])["done"] == 1
    assert list(local.stores.registry.ids()) == [REFUND]


@pytest.mark.parametrize(
    "request_",
    [
        {"action": "tag"},
        {"action": "paint", "ids": ["a/b"]},
        {"action": "remove", "ids": []},
        {"action": "remove", "ids": ["a/b"] * 201},
        {"action": "trust", "ids": ["a/b"], "trust": 101},
        {"action": "trust", "ids": ["a/b"], "colour": "red"},
        [],
    ],
)
def test_an_action_that_is_not_one_is_refused(request_):
    with pytest.raises(RequestInvalid):
        ActionRequest.parse(request_)


def test_a_namespace_has_trust_and_a_verified_provider(local, service):
    request = TrustRequest(namespace="com.acme.*", trust=60, provider="Acme")
    assert service.assign(request)["capabilities"] == 2
    row = {"namespace": "com.acme", "trust": 60, "provider": "Acme"}
    assert service.trust_of(TrustQuery(namespace="com.acme")) == row
    drain(local)
    assert {one["trust"] for one in service.page(ListQuery())["capabilities"]} == {60}
    for namespace, provider in (("no such", ""), ("a/b", ""), ("com.acme", "a\u202eb")):
        with pytest.raises(RequestInvalid):
            service.assign(TrustRequest(namespace=namespace, provider=provider))


def test_owners_assign_no_trust(local):
    service = RegistryService(local, timeout_s=0.0).for_owners()
    for action in ({"action": "trust", "trust": 100}, {"action": "clear"}):
        with pytest.raises(RequestInvalid, match="scope operate"):
            act(service, ids=[REFUND], **action)
    assert service.trust_of(TrustQuery(namespace="com.acme"))["trust"] is None


def test_where_owners_write_what_operators_trust_is_written_by_operators_alone(local, service):
    owners = service.for_owners()
    service.assign(TrustRequest(namespace="com.acme", provider="Acme"))
    new = an_item(namespace="com.acme.support", name="refund_now")
    for write in (
        lambda: owners.put(Id("com.acme.support/refund_now"), new, lambda etag: True),
        lambda: owners.remove(Id(REFUND), lambda etag: True),
    ):
        with pytest.raises(RequestInvalid, match="operators trust"):
            write()
    assert act(owners, action="tag", ids=[REFUND], tags=["x"])["failed"]
    shown = imported(owners, json.dumps(new), dry_run=False)
    assert (shown["new"], shown["rejected"]) == (0, 1)
    assert Id("com.acme.support/refund_now") not in local.stores.registry.get([Id("com.acme.support/refund_now")])
    elsewhere = an_item(namespace="org.other", name="refund_now")
    assert owners.put(Id("org.other/refund_now"), elsewhere, lambda etag: True)["placed"] == "new"
    assert imported(service, json.dumps(new), dry_run=False)["new"] == 1


def test_a_capability_names_those_of_other_namespaces_with_its_text(local, service):
    [item] = local.stores.registry.get([Id(REFUND)]).values()
    local.stores.registry.put([Registration.parse({**item, "namespace": "org.copy"})])
    drain(local)
    assert service.get(Id(REFUND))["same_text"] == ["org.copy/" + REFUND.partition("/")[2]]


def test_flags_are_cleared_for_the_text_as_it_is(local, service):
    assert act(service, action="clear", ids=[REFUND, "com.acme/none"])["done"] == 1
    [cleared] = [row.cleared for row in local.stores.trust.rows([Id(REFUND)]).values()]
    assert cleared == fingerprint(Registration.parse(local.stores.registry.get([Id(REFUND)])[Id(REFUND)]).item())


def imported(service: RegistryService, *texts: str, **more):
    documents = [{"name": f"{place}.json", "text": text} for place, text in enumerate(texts)]
    return service.import_documents(ImportRequest.parse({"documents": documents, **more}))


def test_a_dry_run_says_what_an_import_would_do_and_writes_nothing(local, service):
    text = json.dumps(an_item(name="third")) + "\n" + json.dumps({"namespace": "com.acme"})
    shown = imported(service, text, "no JSON at all")
    assert (shown["dry_run"], shown["new"], shown["rejected"]) == (True, 1, 2)
    assert [one["id"] for one in shown["capabilities"]] == ["com.acme.pay/third"]
    assert len(list(local.stores.registry.ids())) == 2
    done = imported(service, text, dry_run=False)
    assert (done["new"], done["rejected"], len(list(local.stores.registry.ids()))) == (1, 1, 3)
    assert imported(service, text)["unchanged"] == 1
    json.dumps([shown, done])


def test_lone_surrogates_and_wrong_namespaces_are_faults(service):
    assert imported(service, '{"name": "\ud800"}')["rejected"] == 1
    with pytest.raises(RequestInvalid, match="namespace"):
        imported(service, "{}", namespace="No Such")


def test_cheap_demand_is_always_current_and_costly_demand_is_kept():
    clock, found = FakeClock(), []

    def find(days: int) -> dict:
        clock.ms += 1_000 * cost
        found.append(days)
        return {"gaps": [], "number": len(found)}

    cost = 0.01
    reader = ReportReader(find, lambda: clock.elapsed_ms() / 1_000)
    assert [reader.get(7)["number"] for _ in range(2)] == [1, 2]
    cost = 2.0
    assert [reader.get(30)["number"] for _ in range(3)] == [3, 3, 3]
    assert reader.peek(30) == {"gaps": [], "number": 3}


def test_demand_that_cannot_be_computed_in_the_background_is_tried_again():
    def fail(days: int) -> dict:
        raise DependencyFailed("held by another process")

    reader = ReportReader(fail, lambda: 0.0)
    assert reader.peek(30) is None
    with pytest.raises(DependencyFailed):
        reader.get(30)


def test_home_has_kinds_the_newest_and_demand(local, service):
    answer(local, "q1", REFUND, at=local.clock.now())
    page = service.home()
    assert (page["kinds"]["tool"], page["registered"], page["demand"]) == (2, 2, [])
    assert {one["id"] for one in page["newest"]} == {REFUND, OTHER}
    assert page["never_found"] == {"count": 1, "ids": [OTHER]}
