"""Pictures of the console's pages, wide and narrow, light and dark: `python -m tests.console.screenshots OUT URL`.

Full pages of a running service, as PNG: to look at, and for the README. ROUTE after URL names others than the usual.
"""

import argparse
import json
import re
import sys
import urllib.request
from pathlib import Path
from urllib.parse import quote, unquote

from tests.console.browser import LOOKS, installed, launched, watched

_SEARCH = "#/search?q=refund%20a%20card%20payment"
ROUTES = [_SEARCH, "#/registry", "#/edit", "#/evaluation"]
_RESULTS = 2
"""So many results are opened and compared."""


def main() -> int:
    """Take them; 1 if a page had anything to complain about, which is printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the pictures")
    parser.add_argument("url", metavar="URL", help="where the service answers")
    parser.add_argument("routes", nargs="*", metavar="ROUTE", help="such as '#/registry?show=sparse'")
    given = parser.parse_args()
    path = installed()
    if path is None:
        sys.stderr.write("no browser: install chromium, or name one in MATS_BROWSER\n")
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    routes = given.routes or [*ROUTES, *_of_results(given.url)]
    return 1 if take(path, given.url.rstrip("/"), routes, given.out) else 0


def take(path: str, url: str, routes: list[str], out: Path) -> list[str]:
    """A picture of every route in every look; all complaints."""
    complaints = []
    with launched(path) as browser:
        for looks in LOOKS:
            with watched(browser, url, looks) as console:
                for route in routes:
                    page = console.open(route)
                    page.wait_for_load_state("networkidle")
                    page.wait_for_timeout(300)  # transitions
                    file = out / f"{_name(route)}-{looks}.png"
                    page.screenshot(path=file, full_page=True)
                    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    sys.stdout.write(f"{file}{f': {overflow} px too wide' if overflow > 0 else ''}\n")
                complaints += console.complaints()
    sys.stderr.write("".join(f"{complaint}\n" for complaint in complaints))
    return complaints


def _of_results(url: str) -> list[str]:
    """The panel and the comparison, of what the search finds first."""
    body = json.dumps({"query": "refund a card payment", "limit": _RESULTS}).encode()
    with urllib.request.urlopen(f"{url.rstrip('/')}/discover", data=body, timeout=20) as response:
        ids = [quote(result["id"], safe="") for result in json.load(response)["results"]]
    if len(ids) < _RESULTS:
        return []
    return [f"{_SEARCH}&open={ids[0]}", f"{_SEARCH}&a={ids[0]}&b={ids[1]}"]


def _name(route: str) -> str:
    """Part of a file's name; what is opened or compared is only called so."""
    short = re.sub(r"&(open|a|b)=[^&]*", r"-\1", unquote(route))
    return re.sub(r"[^a-z0-9]+", "-", short.lower()).strip("-")[:60]


if __name__ == "__main__":
    sys.exit(main())
