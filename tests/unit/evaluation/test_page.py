"""The page stands by itself: nothing is fetched, every reference has its target, nothing in results is markup."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from mats.evaluation.reporting.html_page import inline
from mats.evaluation.reporting.render import SECTIONS, build_report, write_report
from tests.unit.evaluation.results_builders import all_results, main, written

VOID = {"meta", "link", "br", "img", "input", "hr"}
HOSTILE = "</td><script>alert(1)</script>\"'&`|"


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.references, self.addresses = [], [], []
        self.tags, self.open, self.attributes = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.append(name)
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "src", "xlink:href"):
                (self.references if value.startswith("#") else self.addresses).append(value.lstrip("#"))
            elif name == "aria-labelledby":
                self.references.append(value)
            self.references += re.findall(r"url\(#([^)]+)\)", value or "")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_report(build_report(written(folder / "in", all_results())), folder / "out")
    return (folder / "out" / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_every_id_is_there_once_and_every_reference_has_one(page):
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)


def test_every_element_that_is_opened_is_closed(page):
    assert page.open == []


def test_nothing_is_fetched(page, text):
    assert page.addresses == []
    assert "http://" not in text
    assert "https://" not in text
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)


def test_the_policy_allows_the_one_style_and_nothing_inline(page, text):
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text
    assert page.tags.count("style") == 1
    assert "style" not in page.attributes
    assert not [name for name in page.attributes if name.startswith("on")]


def test_every_table_has_a_caption_and_header_cells(text):
    tables = re.findall(r"<table.*?</table>", text, re.DOTALL)
    assert len(tables) > 10
    for table in tables:
        assert "<caption>" in table
        assert 'scope="col"' in table
        assert 'scope="row"' in table


def test_every_figure_says_what_it_shows(text):
    for figure in re.findall(r"<figure>.*?</figure>", text, re.DOTALL):
        assert re.search(r'<svg [^>]*role="img"[^>]*><title id="[^"]+">[^<]{40,}</title>', figure)
        assert "<figcaption>" in figure


def test_the_contents_name_every_section(text):
    contents = re.search(r"<nav.*?</nav>", text, re.DOTALL).group()
    assert contents.count("<li>") == len(SECTIONS) + 2


def test_the_page_supports_dark_scheme_and_small_screens(text):
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text


def test_results_are_escaped_in_markdown(tmp_path):
    results = main()
    results["sets"][HOSTILE] = results["sets"].pop("models")
    results["sets"][HOSTILE]["systems"]["full-ctx"] = {"not_run": HOSTILE}
    write_report(build_report(written(tmp_path / "in", {"main": results})), tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(?<!\\)<script", (tmp_path / "out" / "report.md").read_text(encoding="utf-8"))


def test_a_drawing_becomes_an_element_with_ids_of_its_own():
    drawing = (
        '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><metadata>x</metadata>'
        "<defs><style>*{}</style></defs>"
        '<path id="a" fill="#1a1a1a" stroke="none"/><use xlink:href="#a" clip-path="url(#a)"/></svg>'
    )
    assert inline(drawing, "f", 'a "b" <c>') == (
        '<svg viewBox="0 0 1 1" role="img" aria-labelledby="f-alt"><title id="f-alt">a &quot;b&quot; &lt;c&gt;</title>'
        '<path id="f-a" fill="currentColor" stroke="none"/><use href="#f-a" clip-path="url(#f-a)"/></svg>'
    )
