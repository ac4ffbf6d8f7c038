"""A browser that watches what a page does; what no page of ours may do is kept as a complaint."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
_ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
_NOWHERE_ELSE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
"""Requests to another host are seen and go nowhere."""

WATCH = """
document.addEventListener('securitypolicyviolation', (e) =>
  console.error(`policy violated: ${e.violatedDirective} by ${e.blockedURI} ${e.sample}`));
Object.defineProperty(window, '__xss', {
  get() { return undefined; },
  set() { console.error('a script of the registry ran'); },
});
"""
"""Runs before any script of a page. Hostile text sets `window.__xss`: that is told whenever it happens."""


def installed() -> str | None:
    """The path of a browser on this machine: of MATS_BROWSER, or the first that is known."""
    return os.environ.get("MATS_BROWSER") or next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """A browser without a window. While it runs, nothing else in this thread can run an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_ARGUMENTS, _NOWHERE_ELSE], headless=True)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True, kw_only=True)
class Looks:
    """How somebody looks at a page."""

    width: int = 1280
    height: int = 800
    scheme: str = "light"
    still: bool = False  # Whether they asked for less motion
    forced: bool = False  # Whether their system sets the colours, as with high contrast

    def __str__(self) -> str:
        return f"{self.width}-{self.scheme}{'-still' if self.still else ''}{'-forced' if self.forced else ''}"

    def options(self) -> dict[str, Any]:
        """The options of a browser's context."""
        return {
            "viewport": {"width": self.width, "height": self.height},
            "color_scheme": self.scheme,
            "reduced_motion": "reduce" if self.still else "no-preference",
            "forced_colors": "active" if self.forced else "none",
        }


LOOKS = [
    Looks(),
    Looks(forced=True),
    *(
        Looks(width=width, height=height, scheme=scheme)
        for width, height, scheme in (
            (1280, 800, "dark"),
            (360, 740, "light"),
            (360, 740, "dark"),
        )
    ),
]
"""Wide and narrow, light and dark, and in the colours of the system."""


@dataclass
class Console:
    """A page over a running service, and everything there is to complain about."""

    url: str
    context: BrowserContext
    page: Page
    seen: list[str] = field(default_factory=list)
    forgiven: list[str] = field(default_factory=list)

    def open(self, route: str = "#/search") -> Page:
        """Load the console at a route, in full even if only the route differs; the page."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/{route}")
        return self.page

    def forgive(self, pattern: str) -> None:
        """Do not complain of what matches: a browser calls every answer of 400 and above an error."""
        self.forgiven.append(pattern)

    def complaints(self) -> list[str]:
        """The faults so far: errors on the console, exceptions, policy violations, requests to elsewhere."""
        for page in self.context.pages:
            page.evaluate("() => new Promise((done) => setTimeout(done))")  # what it has to tell has come by then
        return [told for told in self.seen if not any(re.search(pattern, told) for pattern in self.forgiven)]

    def watch(self) -> None:
        """Listen from here on, to every page of the context."""
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.seen.append(f"exception: {error.error}"))
        self.context.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            self.seen.append(f"console: {message.text} ({message.location['url']})")

    def _request(self, request: Request) -> None:
        if request.url != "about:blank" and _origin(request.url) != _origin(self.url):
            self.seen.append(f"request to elsewhere: {request.method} {request.url}")


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


@contextmanager
def watched(browser: Browser, url: str, looks: Looks, *, token: str = "") -> Iterator[Console]:
    """A page in a fresh context, signed in with a token; whoever opens it asks for the complaints."""
    context = browser.new_context(**looks.options())
    try:
        context.set_default_timeout(20_000)
        context.add_init_script(WATCH)
        if token:
            context.add_init_script(f"if (location.host) sessionStorage.setItem('mats.token', '{token}')")
        console = Console(url, context, context.new_page())
        console.watch()
        yield console
    finally:
        context.close()
