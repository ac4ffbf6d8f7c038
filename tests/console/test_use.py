"""How a capability is called, in the panel, and what is copied from there."""

import json
import re

import pytest
from playwright.sync_api import expect

from mats.domain.capability.registration import Registration
from mats.domain.profile.sync import SourceKind, SourceRun, TrackedEntry, TrackedSource
from mats.edge.snippets.capability import WAYS_TO_CALL
from tests.builders import an_item
from tests.console import homes
from tests.console.pages import STRIPE, at, fulfil, panel, ready, told
from tests.integration.conftest import Mats, serving

NAMESPACE = "com.acme.pay"
BODY = {"type": "object", "properties": {"reason": {"type": "string", "default": "it's <b>lost</b>"}}}
CLAIM = an_item(
    name="claim", endpoint="https://api.acme.example/claims/{id}",
    input_schema={"type": "object", "properties": {"body": BODY}},
    descriptor={
        "method": "post", "requestMediaTypes": ["application/json"], "security": [{"t": []}],
        "securitySchemes": {"t": {"type": "http", "scheme": "bearer"}},
    },
)  # fmt: skip
SERVER = an_item(name="pay", descriptor={"server": {"command": "npx", "args": ["-y", "@acme/pay"], "env": ["PAY_KEY"]}})
SKILL = an_item(
    name="count", kind="skill", descriptor={"instructions": "# Count\n\nAll of it.\u202e", "files": ["a.py"]}
)
LABELS = {"mcp": "MCP client configuration", "curl": "curl", "python": "Python", "converse": "Bedrock Converse tool",
          "openai": "OpenAI tool"}  # fmt: skip
NO_API = "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
REFUSED = f"{NO_API} document.execCommand = () => false;"


@pytest.fixture(scope="module")
def callable_ones(browser_path, tmp_path_factory):
    """Capabilities that say how they are called, and two sources."""
    mats = Mats(tmp_path_factory.mktemp("callable") / "home")
    with homes.opened(mats) as local:
        homes.fill(local, [Registration.parse(item) for item in (CLAIM, SERVER, SKILL)])
        book = local.stores.sources
        book.add(TrackedSource(name="pay", kind=SourceKind.DOCUMENT, location=("https://me:pw@acme.example/api.json",)))
        book.add(
            TrackedSource(name="live", kind=SourceKind.MCP, location=("npx", "--api-key=secret"), namespace="com.live")
        )
        book.record("pay", {f"{NAMESPACE}/claim": TrackedEntry("1"), f"{NAMESPACE}/gone": TrackedEntry("2", gone=True)})
        book.finish("pay", SourceRun(tried="2026-01-02T00:00:00Z", succeeded="2026-01-02T00:00:00Z"))
        book.finish("live", SourceRun(tried="2026-01-03T00:00:00Z", error="<b>npx</b>: not found"))
    with serving(mats) as service:
        yield service


@pytest.fixture
def use(opener, callable_ones):
    """The console over them, with a clipboard."""
    console = opener(callable_ones)
    console.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return console


def show(console, name):
    page = console.open(at("registry", open=f"{NAMESPACE}/{name}"))
    expect(section(page)).to_be_visible()
    ready(page)
    return page


def section(page):
    return panel(page).locator("section").filter(has=page.get_by_role("heading", level=3, name="Use it"))


def snippets(service, name):
    return told(service, f"/registry/capabilities/{NAMESPACE}/{name}")["snippets"]


def copied(page):
    return page.evaluate("navigator.clipboard.readText()")


def test_texts_are_those_of_the_service_and_no_others(use, callable_ones):
    for name, formats in (
        ("claim", ("curl", "python", "converse", "openai")),
        ("pay", ("mcp", "python", "converse", "openai")),
    ):
        page = show(use, name)
        known = snippets(callable_ones, name)
        expect(section(page).locator("summary")).to_have_text([LABELS[format] for format in formats])
        for place, format in enumerate(formats):
            folded = section(page).locator("details").nth(place)
            text = folded.locator("pre")
            expect(text).to_be_hidden()
            folded.locator("summary").click()
            expect(text).to_be_visible()
            assert text.text_content() == known[format]
        for fact in known["facts"].values():
            expect(section(page).get_by_text(fact, exact=True).first).to_be_visible()


def test_a_text_is_copied_by_key_and_this_is_said(use, callable_ones):
    page = show(use, "claim")
    for what, text in (
        ("id", f"{NAMESPACE}/claim"),
        ("endpoint", CLAIM["endpoint"]),
        ("curl", snippets(callable_ones, "claim")["curl"]),
    ):
        button = panel(page).get_by_role("button", name=f"Copy {what}", exact=True)
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_have_text(f"Copied {what}")
        expect(panel(page).get_by_role("button", name=f"Copied {what}", exact=True)).to_be_focused()
        assert copied(page) == text
    expect(panel(page).get_by_role("button", name="Copied")).to_have_count(0)


def test_where_nothing_may_be_copied_the_text_is_selected(use, callable_ones):
    use.page.add_init_script(REFUSED)
    page = show(use, "claim")
    panel(page).get_by_role("button", name="Copy curl").click()
    expect(page.get_by_role("status")).to_have_text("Not copied: press Ctrl+C to copy the selected curl")
    expect(section(page).locator("pre").first).to_be_visible()
    assert page.evaluate("getSelection().toString()").strip() == snippets(callable_ones, "claim")["curl"]


def test_without_a_way_to_call_the_panel_says_what_to_add(console):
    page = console.open(at("registry", open=STRIPE))
    missing = WAYS_TO_CALL["tool"].replace("`", "")
    expect(section(page)).to_contain_text(f"Nothing registered says how it is called. To the registration, {missing}.")
    expect(section(page).locator("summary")).to_have_count(0)
    expect(section(page).get_by_role("button", name="Copy endpoint")).to_be_visible()


def test_instructions_of_a_skill_are_read_in_the_panel(use):
    page = show(use, "count")
    section(page).get_by_text("Instructions", exact=True).click()
    expect(section(page).locator("pre.prose")).to_have_text("# Count\n\nAll of it.⟨U+202E⟩")
    section(page).get_by_role("button", name="Copy instructions").click()
    assert copied(page) == "# Count\n\nAll of it.⟨U+202E⟩"


def test_a_service_without_a_registry_has_the_same(use, callable_ones):
    use.forgive(r"status of 404 .*/registry")
    fulfil(use.page, {"detail": "nothing is here"}, status=404, url=re.compile(r":\d+/registry([/?]|$)"))
    use.open()
    page = use.open(at("search", q="refund", open=f"{NAMESPACE}/claim"))
    shown = section(page).locator("details").filter(has_text="Python").locator("pre")
    expect(shown).to_have_text(snippets(callable_ones, "claim")["python"])
    page = use.open(at("search", q="refund", open=f"{NAMESPACE}/count"))
    expect(section(page).get_by_text("Instructions", exact=True)).to_be_visible()
    with page.expect_response("**/capabilities/com.acme.pay/count/instructions"):
        section(page).get_by_text("Instructions", exact=True).click()
    expect(section(page).locator("pre.prose")).to_have_text("# Count\n\nAll of it.⟨U+202E⟩")


def test_sources_are_listed_with_their_state(use, callable_ones):
    page = use.open("#/registry")
    page.get_by_role("link", name=re.compile(r"^2 ?Sources$")).click()
    expect(page.get_by_role("heading", level=2, name="Sources")).to_be_visible()
    states = told(callable_ones, "/registry/sources")["sources"]
    assert "secret" not in json.dumps(states)
    assert "pw@" not in json.dumps(states)
    entries = page.get_by_role("main").get_by_role("listitem").filter(has=page.get_by_role("heading", level=3))
    expect(entries).to_have_count(2)
    for entry, state in zip(entries.all(), states, strict=True):
        for text in filter(None, (state["name"], state["from"], state["error"])):
            expect(entry).to_contain_text(text)
        for time in filter(None, {state["tried"] if state["error"] else None, state["succeeded"]}):
            expect(entry.locator(f"time[datetime='{time}']")).to_be_visible()
    live, pay = entries.all()
    expect(live).to_contain_text("never read successfully")
    expect(pay).to_contain_text("2 entries")
    expect(pay).to_contain_text("1 no longer listed")
    pay.get_by_role("button", name="Copy mats sync pay").click()
    expect(page.get_by_role("status")).to_have_text("Copied mats sync pay")
    assert copied(page) == "mats sync pay"
