"""Pages with parts that are rendered from results, between two marks."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

_MARKS = "<!-- {name}: rendered by `make readme` -->", "<!-- end of {name} -->"


def rewrite(pages: Mapping[Path, Callable[[str], str]]) -> None:
    """Write each page as it is rendered now, and say which have changed."""
    for path, render in pages.items():
        before = path.read_text(encoding="utf-8")
        after = render(before)
        path.write_text(after, encoding="utf-8")
        sys.stderr.write(f"{path.name} {'is up to date' if after == before else 'updated'}\n")


def replace_block(page: str, name: str, text: str) -> str:
    """The page with this text between the marks of this name."""
    start, end = (mark.format(name=name) for mark in _MARKS)
    head, rest = page.split(start)
    _, tail = rest.split(end)
    return f"{head}{start}\n{text}\n{end}{tail}"
