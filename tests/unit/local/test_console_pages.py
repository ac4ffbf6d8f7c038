"""The data of the console's pages: order and facets, actions on several, imports."""

import json

import pytest

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, Kind, Lifecycle
from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import ORDERS
from mats.domain.errors import RequestInvalid
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import fingerprint
from mats.local.console.actions import ActionRequest, ImportRequest, TrustQuery, TrustRequest
from mats.local.console.api import parse_query
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import ListQuery, ListRow
from mats.local.worker import drain
from tests.builders import a_registration, an_item

REFUND = a_registration().id
OTHER = a_registration(name="other").id


@pytest.fixture
def service(local: LocalSystem) -> RegistryService:
    local.stores.registry.put([a_registration(), a_registration(name="other")])
    drain(local)
    return RegistryService(local, timeout_s=0.0)


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
    asked = parse_query(query, ListQuery)
    assert [row.id.partition("/")[2] for row in asked.order(asked.select(ROWS))] == names.split()


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
