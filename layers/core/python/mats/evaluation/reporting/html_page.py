"""The report as one HTML page; its content policy allows no request and no script."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from mats.evaluation.reporting.cells import Figure, Section, Table
from mats.evaluation.reporting.style import INK, PAPER

_CSS = Path(__file__).with_name("page.css")
_LONG = 30
"""A table with more rows is collapsed."""
_CODE = re.compile(r"`([\w.+/ -]+)`")
_ID = re.compile(r'( id="|url\(#|href="#)')


def document(title: str, intro: Sequence[str], sections: Sequence[Section], drawings: Mapping[str, str]) -> str:
    """The whole page.

    Args:
        title: Of the page.
        intro: Sentences above the contents.
        sections: In their order.
        drawings: SVG documents by the id of their figure.
    """
    css = _CSS.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_text(title)}</title>",
            f"<style>{css}</style>",
            "</head>",
            "<body>",
            f"<header><h1>{_text(title)}</h1>",
            *(f"<p>{_text(line)}</p>" for line in intro),
            "</header>",
            _contents(sections),
            "<main>",
            *(_section(section, drawings) for section in sections),
            "</main>",
            "</body>",
            "</html>\n",
        )
    )


def _contents(sections: Iterable[Section]) -> str:
    items = "".join(f'<li><a href="#{escape(s.id)}">{_text(s.title)}</a></li>' for s in sections)
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>'


def _section(section: Section, drawings: Mapping[str, str]) -> str:
    id = escape(section.id)
    parts = [
        f'<section aria-labelledby="{id}"><h2 id="{id}">{_text(section.title)}</h2>',
        f"<p>{_text(section.summary)}</p>",
        *(_figure(figure, drawings[figure.id]) for figure in section.figures),
        *(_table(table) for table in section.tables),
        "</section>",
    ]
    return "\n".join(parts)


def _figure(figure: Figure, drawing: str) -> str:
    return (
        f'<figure><div class="wide" tabindex="0" role="group" aria-label="{_text(figure.caption)}">'
        f"{inline(drawing, figure.id, figure.alt)}</div>"
        f"<figcaption>{_text(figure.caption)}</figcaption></figure>"
    )


def inline(drawing: str, id: str, alt: str) -> str:
    """An SVG document as an element of a page, with unique ids, no style sheet, the page's colours, and a title."""
    body = drawing[drawing.index("<svg") :]
    body = re.sub(r"<(metadata|defs)>\s*<style.*?</\1>|<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    box = re.search(r'viewBox="[^"]*"', body)
    body = re.sub(r"^<svg[^>]*>", "", body, count=1)
    body = body.replace("xlink:href", "href")
    body = _ID.sub(rf"\g<1>{id}-", body)
    body = body.replace(f'"{INK}"', '"currentColor"').replace(f'"{PAPER}"', '"var(--paper)"')
    start = f'<svg {box.group() if box else ""} role="img" aria-labelledby="{id}-alt"><title id="{id}-alt">'
    return f"{start}{_text(alt)}</title>{body.strip()}"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col"{_label(table, i)}>{_text(cell)}</th>' for i, cell in enumerate(table.head))
    rows = "\n".join(_row(table, i, row) for i, row in enumerate(table.rows))
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    caption = _text(table.caption)
    body = (
        f'<div class="wide" tabindex="0" role="group" aria-label="{caption}"><table id="{escape(table.id)}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )
    if len(table.rows) > _LONG:
        body = f"<details><summary>{caption}: {len(table.rows)} rows</summary>{body}</details>"
    return body + (f'<ul class="notes">{notes}</ul>' if notes else "")


def _row(table: Table, index: int, row: Iterable[str]) -> str:
    cells = "".join(
        f'<th scope="row" class="label">{_text(cell)}</th>' if i < table.labels else f"<td>{_text(cell)}</td>"
        for i, cell in enumerate(row)
    )
    return f'<tr class="theirs">{cells}</tr>' if index in table.paper_rows else f"<tr>{cells}</tr>"


def _label(table: Table, column: int) -> str:
    return ' class="label"' if column < table.labels else ""


def _text(text: str) -> str:
    """Escaped text; text between backticks is code."""
    return "".join(
        f"<code>{escape(part)}</code>" if i % 2 else escape(part) for i, part in enumerate(_CODE.split(text))
    )
