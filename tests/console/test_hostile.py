"""Registrations and addresses that try to break out of the page stay text."""

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from mats.domain.text.fence import is_hidden
from tests.console.browser import Looks
from tests.console.homes import REJECTED
from tests.console.hostile import NAMES, PAYLOADS, hostile_items, hostile_routes
from tests.console.pages import (
    answered,
    at,
    find,
    fulfil,
    names,
    panel,
    ready,
    shortlist,
    too_wide,
    unfold,
    unfold_all,
)

pytestmark = pytest.mark.hostile

ITEMS = [*hostile_items()]
IDS = [f"{item['namespace']}/{item['name']}" for item in ITEMS]
REFUND = "refund a card payment"
FOREIGN = """() => [...document.querySelectorAll("*")].flatMap((one) => {
  const found = [...one.attributes].map(({ name }) => name).filter((name) => /^on|^srcdoc$/.test(name));
  const own = { SCRIPT: ["console/main.js"], LINK: ["console/"], IMG: ["console/icon.svg"] };
  const from = one.getAttribute("src") ?? one.getAttribute("href") ?? "";
  if (one.tagName in own && !own[one.tagName].some((start) => from.startsWith(start))) found.push(from || "inline");
  if (/^(IFRAME|OBJECT|EMBED|BASE|STYLE|FRAME|APPLET|TEMPLATE)$/.test(one.tagName)) found.push("there at all");
  if (one.tagName === "META" && one.httpEquiv) found.push(one.httpEquiv);
  if (one.tagName === "A" && !from.startsWith("#")) found.push(from);
  if (one.matches("form[action], [formaction], [ping]")) found.push("sends");
  if (one.shadowRoot || one.namespaceURI !== "http://www.w3.org/1999/xhtml") found.push(one.namespaceURI);
  return found.map((what) => `${one.tagName}: ${what}`);
})"""
TEXTS = """() => [document.body.textContent, ...[...document.querySelectorAll("[aria-label], [title], [alt]")]
  .flatMap((one) => ["aria-label", "title", "alt"].map((name) => one.getAttribute(name) ?? ""))]"""


def harmless(page):
    """Nothing but the console is on the page, all of it fits, and all of it can be seen."""
    ready(page)
    assert page.evaluate(FOREIGN) == []
    assert too_wide(page) == 0
    hidden = {f"U+{ord(c):04X}" for text in page.evaluate(TEXTS) for c in text if is_hidden(c)}
    assert hidden == set()


def seen(text):
    """A text as the console shows it."""
    return "".join(f"⟨U+{ord(c):04X}⟩" if is_hidden(c) else c for c in text)


def go(console, address):
    console.page.goto(f"{console.url}/{address}")
    return console.page


@pytest.fixture
def looks():
    """Narrow, where most can be too wide."""
    return Looks(width=360, height=740)


@pytest.fixture
def attacked(opener, hostile):
    return opener(hostile)


def test_every_hostile_capability_can_be_looked_at(attacked):
    page = attacked.open("#/registry?show=suspicious")
    harmless(page)
    for id, item in zip(IDS, ITEMS, strict=True):
        page = go(attacked, at("registry", open=id))
        expect(panel(page).get_by_role("heading", level=2)).to_have_text(seen(item["name"]))
        expect(panel(page).get_by_text("Registration", exact=True)).to_be_visible()
        unfold_all(panel(page))
        harmless(page)


def test_every_hostile_capability_can_be_edited_and_nothing_of_it_changes(attacked, hostile):
    attacked.forgive(r"status of (404|422) .*/registry/")
    attacked.open("#/edit")
    for id in IDS:
        if id == REJECTED:
            continue
        page = go(attacked, at("edit", id=id))
        harmless(page)
        item = page.evaluate(
            """async () => {
              const { itemOf } = await import("/console/fields.js");
              return itemOf(document.querySelector("form"));
            }"""
        )
        assert item["faults"] == []
        kept = hostile.request(f"/registry/capabilities/{quote(id, safe='')}")[1]["registration"]
        assert item["item"] == kept


def test_hostile_results_are_text(attacked, hostile):
    page = attacked.open()
    for query in (REFUND, *list(PAYLOADS.values())[:6]):
        line = " ".join(query.split())
        find(page, line)
        harmless(page)
    go(attacked, at("search", q=REFUND))
    ready(page)
    unfold(page)
    for place, result in enumerate(answered(hostile, REFUND)["results"]):
        expect(names(page).nth(place)).to_have_text(seen(result["name"]))
    names(page).first.click()
    harmless(page)


def test_hostile_requests_imports_and_namespaces_are_text(attacked, hostile):
    attacked.forgive(r"status of 422 .*/registry/trust")
    for text in (PAYLOADS["image"], f"{REFUND} {PAYLOADS['svg']}", f"{REFUND} {PAYLOADS['quoted-image']}"):
        query_id = answered(hostile, text)["query_id"]
        assert hostile.request("/feedback", {"query_id": query_id, "missing": text})[0] == 202
    page = attacked.open("#/use")
    expect(page.get_by_text("window.__xss=1").first).to_be_visible()
    harmless(page)
    page = go(attacked, "#/import")
    page.get_by_label("Document").fill("\n".join(json.dumps(item) for item in hostile_items()))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Preview of this import")).to_be_visible()
    harmless(page)
    for namespace in (PAYLOADS["image"], PAYLOADS["attribute"]):
        harmless(go(attacked, at("registry", ns=namespace, sort="-trust")))


def test_a_hostile_address_is_an_address(attacked):
    attacked.forgive(r"status of (404|422) .*/(registry|discover|capabilities)")
    page = attacked.open()
    for route in hostile_routes():
        go(attacked, route)
        ready(page)
        assert page.evaluate(FOREIGN) == []
        expect(page.get_by_text("A bug of the console")).to_have_count(0)


def test_a_hostile_name_leads_to_its_own_page_and_no_other(attacked):
    page = attacked.open()
    for name in NAMES:
        go(attacked, at("registry", q="org.evil.name"))
        page.locator("a[data-id]").get_by_text(seen(name), exact=True).click()
        own = panel(page).get_by_text(seen(f"org.evil.name/{name}"), exact=True)
        expect(own).to_be_visible()
        page.reload()
        expect(own).to_be_visible()
        panel(page).get_by_role("link", name="Edit").click()
        expect(page.get_by_label("Name (required)", exact=True)).to_have_value(name)


def test_error_messages_are_shown_as_text(attacked):
    attacked.forgive(r"status of 503 .*/discover")
    attacked.page.set_viewport_size({"width": 1280, "height": 800})  # one of the letters alone is wider than 360 pixels
    page = attacked.open()
    for text in PAYLOADS.values():
        fulfil(page, {"detail": text, "errors": [{"field": text, "message": text}]}, status=503)
        page.get_by_role("searchbox").fill("refund")
        with page.expect_response("**/discover"):
            page.get_by_role("button", name="Find").click()
        expect(shortlist(page).get_by_role("listitem")).to_have_count(1)
        harmless(page)
