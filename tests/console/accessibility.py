"""The findings of axe-core on a page: WCAG 2.1, levels A and AA."""

from functools import cache
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_OPTIONS = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "resultTypes": ["violations"],
    "preload": False,  # it would fetch the style sheets again
}


def violations(page: Page) -> list[str]:
    """The faults of the page as it stands, a line for each element: the rule, the element, what to do.

    Wait until animations have ended: axe takes colours as they are. Contrast it cannot tell (over a picture) is not
    among the findings.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())  # the debugger's evaluation is no script of the page's, so its policy stays on
    found = page.evaluate("(options) => axe.run(document, options)", _OPTIONS)
    return [_line(rule, node) for rule in found["violations"] for node in rule["nodes"]]


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    where = " ".join(part if isinstance(part, str) else " ".join(part) for part in node["target"])
    return f"{rule['id']}: {where}: {' '.join(node['failureSummary'].split())}"
