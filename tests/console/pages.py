"""The console's pages in the words of somebody who looks at them, and what the service says to the same questions."""

import json
import re
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.conftest import ROOT
from tests.integration.conftest import Service, wait_until

POLICY: str = json.loads((ROOT / "console" / "headers.json").read_text())["Content-Security-Policy"]
"""Under which the console is served."""
REFUND = "refund a card payment"
STRIPE, PAYPAL = "com.stripe.mcp/create_refund", "com.paypal.mcp/create_refund"


def at(page: str, **parameters: Any) -> str:
    """The address of a page; a list repeats its name."""
    return f"#/{page}?{urlencode(parameters, doseq=True)}"


def answered(service: Service, query: str, **more: Any) -> dict[str, Any]:
    """The answer of the service to a question as the console asks it."""
    status, answer = service.request("/discover", {"query": query, "explain": True, **more})
    assert status == 200, answer
    return answer


def told(service: Service, path: str) -> Any:
    """The answer of the service at a path."""
    status, answer = service.request(path)
    assert status == 200, answer
    return answer


def put(service: Service, item: dict[str, Any]) -> dict[str, Any]:
    """Register an item, or change it, as another window of the console would."""
    path = f"/registry/capabilities/{quote(item['namespace'])}/{quote(item['name'])}"
    _, answer = service.request(path, item, method="PUT")
    assert answer["findable"], answer
    return dict(answer)


def hold(service: Service, item: dict[str, Any], **changes: Any) -> None:
    """Register an item, rate it, and change it dangerously: the change waits for an operator."""
    put(service, item)
    assert service.request("/registry/trust", {"target": item["namespace"], "trust": 80})[0] == 200
    wait_until(lambda: told(service, f"/capabilities/{item['namespace']}/{item['name']}")["trust"] == 80)
    assert service.request("/registry/capabilities", {"registrations": [{**item, **changes}]})[0] == 200
    wait_until(lambda: told(service, "/registry/review")["waiting"])


def box(page: Page) -> Locator:
    """Where one asks."""
    return page.get_by_role("searchbox", name="What do you need to do?")


def find(page: Page, query: str) -> None:
    """Ask a question; the answer is there."""
    box(page).fill(query)
    page.get_by_role("button", name="Find").click()
    asked = page.evaluate("(q) => new URLSearchParams({ q }).toString()", query)
    expect(page.get_by_role("main")).to_have_attribute("data-shown", re.compile(rf"[?&]{re.escape(asked)}(&|$)"))
    expect(box(page)).to_have_value(query)
    expect(shortlist(page)).not_to_have_attribute("aria-busy", "true")
    expect(cards(page).first).to_be_attached()


def shortlist(page: Page) -> Locator:
    """Where the answer is."""
    return page.get_by_role("region", name="Shortlist")


def cards(page: Page) -> Locator:
    """The results as they are listed, also those that are folded away."""
    heading = page.get_by_role("heading", level=2, include_hidden=True)
    return shortlist(page).get_by_role("listitem", include_hidden=True).filter(has=heading)


def unfold(page: Page) -> None:
    """Show the less relevant results, too."""
    for folded in shortlist(page).get_by_text(re.compile(r"^\d+ less relevant$")).all():
        folded.click()


def unfold_all(place: Locator) -> None:
    """Show everything in a place: quicker than a click on each."""
    place.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")


def names(page: Page) -> Locator:
    """The links that open the results."""
    return cards(page).get_by_role("heading", include_hidden=True).get_by_role("link", include_hidden=True)


def signals(card: Locator) -> Locator:
    """The signals of a result, also while they are folded."""
    signals = card.get_by_role("list", name=re.compile("^Signals of "), include_hidden=True)
    return signals.get_by_role("listitem", include_hidden=True)


def rows(page: Page) -> Locator:
    """The lines of a table of capabilities."""
    return page.get_by_role("main").get_by_role("row").filter(has=page.locator("a[data-id]"))


def sign(page: Page, name: str = "Sign in") -> Locator:
    """The button that signs in, or out."""
    return page.get_by_role("banner").get_by_role("button", name=name)


def panel(page: Page) -> Locator:
    """The panel beside the list."""
    return page.get_by_role("complementary")


def ready(page: Page) -> None:
    """Wait for all that the page wanted to show."""
    expect(page.get_by_role("main")).to_have_attribute("data-shown", f"#{urlsplit(page.url).fragment}")
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate("() => Promise.allSettled(document.getAnimations().map((one) => one.finished))")


def calm(page: Page) -> None:
    """Wait a moment and two frames: what has come is shown by then, if it ever is."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(200)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def fulfil(page: Page, answer: Any, *, status: int = 200, url: str | re.Pattern[str] = "**/discover") -> None:
    """Let the service say this, whatever is asked."""
    kind = "application/json" if status < 400 else "application/problem+json"
    page.route(url, lambda route: route.fulfill(status=status, content_type=kind, body=json.dumps(answer)))


def too_wide(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    width: int = page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth")
    return max(0, width)
