"""The pages of a registry in use: home, use, imports, and several capabilities at once."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.builders import an_item
from tests.console.pages import answered, at, hold, panel, put, ready, rows, told

REFUNDS, BOATS = "com.acme.pay/refund_payment", "com.acme.pay/rents_boat"
TEXT = "Gives money back to the card that paid, whole or in part."


def ids(page):
    return rows(page).locator("a[data-id]").evaluate_all("(all) => all.map((one) => one.dataset.id)")


def report(service, answer, **events):
    outcomes = [{"id": answer["results"][0]["id"], "event": event} for event in events]
    assert service.request("/feedback", {"query_id": answer["query_id"], "outcomes": outcomes})[0] == 202


@pytest.fixture
def two(blank, empty):
    """The console over two capabilities."""
    put(empty, an_item(description=TEXT))
    put(
        empty,
        an_item(name="rents_boat", kind="agent", description="Rents a boat by the hour on a lake in the mountains."),
    )
    return blank


def test_home_shows_kinds_and_what_is_new(two):
    page = two.open()
    ready(page)
    expect(page.get_by_role("searchbox", name="What do you need to do?")).to_be_focused()
    kinds = page.get_by_role("region", name="Kinds")
    expect(kinds.get_by_role("link")).to_have_text(["0models", "1agent", "1tool", "0skills", "All 2 capabilities"])
    new = page.get_by_role("region", name="New").get_by_role("listitem")
    expect(new).to_contain_text(["rents_boat", "refund_payment"])
    kinds.get_by_role("link", name="agent").click()
    expect(rows(page)).to_have_count(1)


def test_use_shows_what_was_found_what_it_lost_and_what_nothing_served(two, empty):
    report(empty, answered(empty, "give money back to a card"), selected=1, succeeded=1)
    for _ in range(2):
        assert answered(empty, "translate a poem to French")["verdict"] == "none"
    page = two.open("#/use")
    expect(page.get_by_text("3 answers in 30 days.")).to_be_visible()
    found = told(empty, "/registry/use")["capabilities"]
    used = page.get_by_role("group", name="Capabilities").locator("tbody tr")
    expect(used).to_have_count(len(found))
    for line, one in zip(used.all(), found, strict=True):
        expect(line.get_by_role("rowheader")).to_have_text(one["id"])
        numbers = [str(one[name]) for name in ("asked", "shown", "first", "chosen", "succeeded")]
        assert line.get_by_role("cell").all_text_contents()[:5] == numbers
    unserved = page.get_by_role("group", name="Requests that nothing served").locator("tbody tr")
    expect(unserved).to_contain_text(["translate a poem to French2"])
    page.get_by_role("link", name="7 days").press("Enter")
    expect(page.get_by_text("3 answers in 7 days.")).to_be_visible()
    expect(page.get_by_role("link", name="7 days")).to_be_focused()
    used.first.get_by_role("link", name=found[0]["id"]).first.click()
    expect(panel(page).get_by_role("heading", name="Use it")).to_be_visible()


def test_columns_sort_and_keep_the_focus(console, sample):
    page = console.open("#/registry")
    trust = page.get_by_role("columnheader", name="trust").get_by_role("link")
    trust.press("Enter")
    expect(page).to_have_url(re.compile("sort=-trust"))
    expect(page.get_by_role("columnheader", name="trust")).to_have_attribute("aria-sort", "descending")
    expect(trust).to_be_focused()
    best = told(sample, "/registry/capabilities?sort=-trust&limit=50")["capabilities"]
    assert best[0]["trust"] > best[5]["trust"]
    expect(rows(page)).to_have_count(50)
    assert ids(page) == [one["id"] for one in best]
    trust.press("Enter")
    expect(page.get_by_role("columnheader", name="trust")).to_have_attribute("aria-sort", "ascending")
    ready(page)
    page.get_by_role("columnheader", name="updated").get_by_role("link").press("Enter")
    expect(page).to_have_url(re.compile("sort=-updated"))


def test_several_are_tagged_trusted_and_removed_at_once(two, empty):
    page = two.open("#/registry")
    expect(page.get_by_role("form", name="With the selected")).to_have_count(0)
    page.get_by_role("checkbox", name="Select all that are listed").check()
    bar = page.get_by_role("form", name="With the selected")
    expect(bar).to_contain_text("2 capabilities selected")
    bar.get_by_label("Tags").fill("money, lake")
    bar.get_by_role("button", name="Add tags").click()
    expect(bar.get_by_role("status")).to_have_text("2 capabilities tagged.")
    for id in (REFUNDS, BOATS):
        assert told(empty, f"/registry/capabilities/{id}")["registration"]["tags"][-2:] == ["money", "lake"]
    page.get_by_role("checkbox", name=f"Select {BOATS}").focus()
    page.keyboard.press("x")
    bar.get_by_label("Trust").fill("70")
    bar.get_by_role("button", name="Set trust").click()
    expect(rows(page).filter(has_text="rents_boat").get_by_role("cell").nth(1)).to_have_text("70")
    page.get_by_role("checkbox", name=f"Select {BOATS}").check()
    bar.get_by_role("button", name="Remove", exact=True).click()
    bar.get_by_role("button", name="Remove: sure?").click()
    expect(bar.get_by_role("status")).to_have_text("1 capability removed.")
    expect(rows(page)).to_have_count(1)


def test_a_namespace_gets_trust_and_a_verified_provider(two, empty):
    page = two.open(at("registry", ns="com.acme"))
    page.get_by_text("Trust of com.acme and all below it").click()
    page.get_by_role("spinbutton", name="Trust").fill("81")
    page.get_by_label("Verified provider").fill("Acme")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved for 2 capabilities.")).to_be_visible()
    expect(rows(page).first.get_by_role("cell").nth(1)).to_have_text("81")
    assert told(empty, "/registry/trust?namespace=com.acme") == {
        "namespace": "com.acme",
        "trust": 81,
        "provider": "Acme",
    }


def test_a_held_change_is_shown_beside_what_is_approved_and_decided_by_keys(blank, empty):
    blank.forgive(r"status of 404 .*/registry/review")
    page = blank.open("#/registry")
    page.get_by_role("link", name="Held changes").press("Enter")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    old, new = "https://pay.acme.example/mcp", "https://evil.example/mcp"
    item = an_item(endpoint=old, description=TEXT)
    hold(empty, item, endpoint=new, description="\u202epays", tags=["<img src=x>"])
    page.reload()
    waits = page.get_by_role("main").get_by_role("listitem").filter(has=page.get_by_role("table"))
    expect(waits.get_by_role("list", name="Reasons")).to_contain_text("dangerous")
    cells = waits.get_by_role("rowheader", name="endpoint").locator("xpath=ancestor::tbody").get_by_role("cell")
    expect(cells).to_have_text([old, new])
    for hostile in ("⟨U+202E⟩pays", '["<img src=x>"]'):
        expect(waits.get_by_role("cell", name=hostile, exact=True)).to_be_visible()
    page.keyboard.press("j")
    expect(waits.get_by_role("link", name=REFUNDS)).to_be_focused()
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("heading", name="Use it")).to_be_visible()
    page.keyboard.press("Escape")
    decide(page, "Reject")
    expect(page.get_by_text(f"{REFUNDS}: rejected.").first).to_be_visible()
    expect(page.get_by_role("heading", name="Held changes")).to_be_focused()
    expect(waits).to_have_count(0)
    assert told(empty, f"/capabilities/{REFUNDS}")["endpoint"] == old
    hold(empty, item, endpoint=new, description="Pays.")
    page.reload()
    expect(waits).to_have_count(1)
    page.route("**/registry/review", lambda route: route.fulfill(status=404, json={"detail": "gone"}), times=1)
    decide(page, "Approve")
    expect(page.get_by_role("main").get_by_text("gone")).to_be_visible()
    decide(page, "Approve")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    assert told(empty, f"/capabilities/{REFUNDS}")["endpoint"] == new


def decide(page, name):
    """Press a button twice; the first press only asks."""
    button = page.get_by_role("button", name=f"{name} {REFUNDS}")
    button.press("Enter")
    page.get_by_role("button", name=f"{name}: sure? {REFUNDS}").press("Enter")


def test_a_pasted_document_is_previewed_then_registered(blank, empty):
    page = blank.open("#/import")
    lines = [an_item(description=TEXT), {"namespace": "com.acme.pay", "name": "x"}]
    page.get_by_label("Document").fill("\n".join(map(json.dumps, lines)))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("2 capabilities: 1 new, 0 changed, 0 unchanged, 1 rejected.")).to_be_visible()
    expect(page.get_by_text("line 2 of pasted: kind: is required")).to_be_visible()
    assert told(empty, "/registry")["registered"] == 0
    page.get_by_text("Queries that find it").click()
    expect(page.get_by_role("heading", name="Queries that should find it")).to_be_visible()
    page.get_by_role("button", name="Register 1 capability").click()
    expect(page.get_by_role("heading", name="Imported")).to_be_visible()
    page.get_by_role("link", name="See the latest in the registry").click()
    expect(rows(page)).to_have_count(1)


def test_files_are_previewed_as_they_are_chosen_or_dropped(blank):
    page = blank.open("#/import")
    operation = {"operationId": "listBoats", "summary": "List boats", "responses": {}}
    server, paths = {"url": "https://api.boats.example"}, {"/boats": {"get": operation}}
    head = {"openapi": "3.0.0", "info": {"title": "Boats", "version": "1"}, "servers": [server]}
    document = json.dumps({**head, "paths": paths})
    page.get_by_label("Namespace").fill("com.boats")
    files = [{"name": "openapi.json", "mimeType": "application/json", "buffer": document.encode()}]
    page.get_by_label("Or files").set_input_files(files)
    expect(page.get_by_text("com.boats/listBoats", exact=True).first).to_be_visible()
    page.evaluate(
        """(text) => {
          const data = new DataTransfer();
          data.items.add(new File([text], "other.json"));
          document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
        }""",
        document.replace("listBoats", "rentBoat"),
    )
    expect(page.get_by_text("com.boats/rentBoat", exact=True).first).to_be_visible()


def test_an_import_that_is_refused_names_the_reason(blank):
    blank.forgive(r"status of 422 .*/registry/import")
    page = blank.open("#/import")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Nothing to import: paste a document or choose a file.")).to_be_visible()
    page.get_by_label("Document").fill("{}")
    page.get_by_label("Namespace").fill("No Such")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("alert")).to_contain_text("namespace")


def test_a_service_that_only_answers_says_so(console):
    console.forgive(r"status of 404 .*/registry")
    console.page.route(
        re.compile(r":\d+/registry([/?]|$)"), lambda route: route.fulfill(status=404, json={"detail": "no"})
    )
    page = console.open()
    expect(page.get_by_text("Describe the task in your own words.")).to_be_visible()
    for hash in ("use", "import"):
        page.goto(f"{console.url}/#/{hash}")
        expect(page.get_by_text("This service has no registry of its own.")).to_be_visible()
