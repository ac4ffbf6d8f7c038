"""The report as one HTML page; its content policy allows no request and no script."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from mats.evaluation.reporting.cells import Figure, PaperRow, Section, Table
from mats.evaluation.reporting.style import INK, PAPER

_FOLDER = Path(__file__).parent
_LONG = 30
"""A table with more rows is collapsed."""
_CODE = re.compile(r"`([\w.+/ -]+)`")
_ID = re.compile(r'( id="|url\(#|href="#)')


def document(
    title: str,
    findings: Sequence[str],
    intro: Sequence[str],
    sections: Sequence[Section],
    drawings: Mapping[str, str],
) -> str:
    """The whole page; `drawings` are SVG documents by the id of their figure."""
    css = (_FOLDER / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return Template((_FOLDER / "page.html").read_text(encoding="utf-8")).substitute(
        title=_text(title),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        css=css,
        findings=f"\n<ul>{''.join(f'<li>{_text(line)}</li>' for line in findings)}</ul>" if findings else "",
        intro="".join(f"\n<p>{_text(line)}</p>" for line in intro),
        contents="".join(f'<li><a href="#{escape(s.id)}">{_text(s.title)}</a></li>' for s in sections),
        sections="".join(f"\n{_section(section, drawings)}" for section in sections),
    )


def _section(section: Section, drawings: Mapping[str, str]) -> str:
    id = escape(section.id)
    return "\n".join(
        (
            f'<section aria-labelledby="{id}"><h2 id="{id}">{_text(section.title)}</h2>',
            f"<p>{_text(section.summary)}</p>",
            *(_figure(figure, drawings[figure.id]) for figure in section.figures),
            *(_table(table) for table in section.tables),
            "</section>",
        )
    )


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
    labels = table.labels
    head = "".join(f'<th scope="col" class="label">{_text(cell)}</th>' for cell in table.head[:labels])
    head += "".join(f'<th scope="col">{_text(cell)}</th>' for cell in table.head[labels:])
    rows = "\n".join(_row(row, labels) for row in table.rows)
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    caption = _text(table.caption)
    body = (
        f'<div class="wide" tabindex="0" role="group" aria-label="{caption}"><table id="{escape(table.id)}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )
    if len(table.rows) > _LONG:
        body = f"<details><summary>{caption}: {len(table.rows)} rows</summary>{body}</details>"
    return body + (f'<ul class="notes">{notes}</ul>' if notes else "")


def _row(row: tuple[str, ...], labels: int) -> str:
    cells = "".join(f'<th scope="row" class="label">{_text(cell)}</th>' for cell in row[:labels])
    cells += "".join(f"<td>{_text(cell)}</td>" for cell in row[labels:])
    return f'<tr class="theirs">{cells}</tr>' if isinstance(row, PaperRow) else f"<tr>{cells}</tr>"


def _text(text: str) -> str:
    """Escaped text; text between backticks is code."""
    return "".join(
        f"<code>{escape(part)}</code>" if i % 2 else escape(part) for i, part in enumerate(_CODE.split(text))
    )
