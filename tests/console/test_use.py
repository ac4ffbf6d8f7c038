"""How a capability is called, in the panel, and what is copied from there."""

import re

import pytest
from playwright.sync_api import expect

from mats.domain.capability.registration import Registration
from mats.edge.snippets import WAYS_TO_CALL
from tests.builders import an_item
from tests.console import homes
from tests.console.pages import STRIPE, at, fulfil, panel, ready, told
from tests.integration.conftest import Mats, serving

NAMESPACE = "com.acme.pay"
CLAIM = an_item(
    name="claim", endpoint="https://api.acme.example/claims/{id}",
    descriptor={"method": "post", "requestMediaTypes": ["application/json"]},
)  # fmt: skip
SKILL = an_item(
    name="count", kind="skill", descriptor={"instructions": "# Count\n\nAll of it.\u202e", "files": ["a.py"]}
)
REFUSED = "Object.defineProperty(navigator, 'clipboard', { value: undefined });"


@pytest.fixture(scope="module")
def callable_ones(browser_path, tmp_path_factory):
    """Capabilities that say how they are called."""
    mats = Mats(tmp_path_factory.mktemp("callable") / "home")
    with homes.opened(mats) as local:
        homes.fill(local, [Registration.parse(item) for item in (CLAIM, SKILL)])
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


def curl(service):
    return told(service, f"/registry/capabilities/{NAMESPACE}/claim")["snippets"]["curl"]


def copied(page):
    return page.evaluate("navigator.clipboard.readText()")


def test_the_text_of_the_service_is_shown_and_copied_by_key(use, callable_ones):
    page = show(use, "claim")
    folded = section(page).locator("details").filter(has_text="curl").first
    folded.locator("summary").press("Enter")
    assert folded.locator("pre").text_content() == curl(callable_ones)
    for what, text in (("id", f"{NAMESPACE}/claim"), ("endpoint", CLAIM["endpoint"]), ("curl", curl(callable_ones))):
        panel(page).get_by_role("button", name=f"Copy {what}", exact=True).press("Enter")
        expect(page.get_by_role("status").last).to_have_text(f"Copied {what}")
        expect(panel(page).get_by_role("button", name=f"Copied {what}", exact=True)).to_be_focused()
        assert copied(page) == text


def test_where_nothing_may_be_copied_the_text_is_selected(use, callable_ones):
    use.page.add_init_script(REFUSED)
    page = show(use, "claim")
    panel(page).get_by_role("button", name="Copy curl").click()
    expect(page.get_by_role("status").last).to_have_text("Not copied: press Ctrl+C to copy the selected curl")
    assert page.evaluate("getSelection().toString()").strip() == curl(callable_ones)


def test_without_a_way_to_call_the_panel_says_what_to_add(console):
    page = console.open(at("registry", open=STRIPE))
    missing = WAYS_TO_CALL["tool"].replace("`", "")
    expect(section(page)).to_contain_text(f"Nothing registered says how it is called. To the registration, {missing}.")
    expect(section(page).locator("summary")).to_have_count(0)


def test_instructions_of_a_skill_are_read_in_the_panel(use):
    page = show(use, "count")
    section(page).get_by_text("Instructions", exact=True).click()
    expect(section(page).locator("pre.prose")).to_have_text("# Count\n\nAll of it.⟨U+202E⟩")
    section(page).get_by_role("button", name="Copy instructions").click()
    assert copied(page) == "# Count\n\nAll of it.⟨U+202E⟩"


def test_a_token_that_only_reads_sees_the_same(use):
    use.forgive(r"status of 403 .*/registry")
    fulfil(use.page, {"detail": "this may only read"}, status=403, url=re.compile(r":\d+/registry([/?]|$)"))
    page = use.open(at("search", q="refund", open=f"{NAMESPACE}/count"))
    with page.expect_response("**/capabilities/com.acme.pay/count/instructions"):
        section(page).get_by_text("Instructions", exact=True).click()
    expect(section(page).locator("pre.prose")).to_have_text("# Count\n\nAll of it.⟨U+202E⟩")
