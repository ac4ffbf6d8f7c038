"""Take the pictures of README and docs/console.md over the sample registry: `make pictures`."""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from mats.settings import Settings
from tests.command import Mats, serving
from tests.conftest import ROOT
from tests.console.browser import Looks, installed, launched, watched
from tests.console.homes import encoder_at_hand
from tests.console.pages import at, cards, panel, ready

_LOOKS = Looks(width=1280, height=900)


def _search(page: Page) -> None:
    names = cards(page).get_by_role("heading").get_by_role("link")
    expect(names.first).to_be_visible()
    names.first.click()
    expect(panel(page).get_by_role("heading", name="Use it")).to_be_visible()


def _edit(page: Page) -> None:
    fields = {
        "Namespace (required)": "com.example.billing",
        "Name (required)": "issue_refund",
        "Description": "Give a customer their money back for a card payment.",
        "Example requests": "refund order 1234\nreturn the customer's money",
    }
    for label, text in fields.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("Kind (required)", exact=True).select_option("tool")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Queries that should find it")).to_be_visible()


def _registry(page: Page) -> None:
    expect(page.get_by_role("columnheader", name="trust")).to_have_attribute("aria-sort", "descending")


PICTURES: dict[str, tuple[str, Callable[[Page], None]]] = {
    "console-search.png": (at("search", q="ask a question about a GitHub repository"), _search),
    "console-edit.png": ("#/edit", _edit),
    "console-registry.png": (at("registry", ns="com.stripe.mcp", sort="-trust"), _registry),
}
"""By file: the address of the page, and what is done there before the picture is taken."""


def take(out: Path, *, browser_path: str, encoder: str) -> list[str]:
    """Take all pictures into a folder; the faults of the pages."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Mats(Settings().home, encoder, folder=Path(folder)), "--sample") as service,
        launched(browser_path) as browser,
        watched(browser, service.url, _LOOKS, token=service.token) as console,
    ):
        for name, (address, act) in PICTURES.items():
            page = console.open(address)
            act(page)
            ready(page)
            page.mouse.move(0, 0)
            page.screenshot(path=out / name, animations="disabled")
        return console.complaints()


def main() -> int:
    path = installed()
    if path is None:
        sys.stderr.write("no browser: install chromium, or name one in MATS_BROWSER\n")
        return 1
    faults = take(ROOT / "docs", browser_path=path, encoder=encoder_at_hand())
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
