"""The evaluation page shows the stored figures and tables."""

import json

import pytest
from playwright.sync_api import expect

from tests.conftest import ROOT
from tests.console.pages import at, calm

REPORT = json.loads((ROOT / "experiments" / "results" / "report" / "report.json").read_text())
SECTIONS = REPORT["sections"]


def plain(text):
    return text.replace("`", "")


def test_every_section_and_table_of_the_report_is_there(console):
    page = console.open("#/evaluation")
    expect(page.get_by_role("heading", level=1)).to_have_text(REPORT["title"])
    expect(page.get_by_role("heading", level=2)).to_have_text([section["title"] for section in SECTIONS])
    expect(page.get_by_role("navigation", name="Contents").get_by_role("link")).to_have_text(
        [section["title"] for section in SECTIONS]
    )
    for section in SECTIONS:
        chapter = page.get_by_role("region", name=section["title"], exact=True)
        expect(chapter).to_contain_text(plain(section["summary"]))
        expect(chapter.locator("table caption")).to_have_text([plain(table["caption"]) for table in section["tables"]])
        for table, one in zip(section["tables"], chapter.locator("table").all(), strict=True):
            shown = one.evaluate(
                "(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))"
            )
            assert shown == [[plain(cell) for cell in row] for row in (table["head"], *table["rows"])]


def test_every_figure_loads_and_has_a_text_alternative(console):
    page = console.open("#/evaluation")
    figures = [figure for section in SECTIONS for figure in section["figures"]]
    images = page.get_by_role("figure").get_by_role("img")
    expect(images).to_have_count(len(figures))
    for image, figure in zip(images.all(), figures, strict=True):
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        expect(image).to_have_attribute("alt", figure["alt"])
        assert figure["alt"]
        assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0


@pytest.mark.parametrize("section", [SECTIONS[1], SECTIONS[-1]], ids=lambda section: section["id"])
def test_an_address_leads_to_its_section(console, section):
    page = console.open(at("evaluation", section=section["id"]))
    heading = page.get_by_role("heading", level=2, name=section["title"], exact=True)
    expect(heading).to_be_focused()
    calm(page)
    expect(heading).to_be_in_viewport()


def test_a_long_table_is_folded_and_unfolds(console):
    page = console.open(at("evaluation", section="main"))
    main = next(section for section in SECTIONS if section["id"] == "main")
    table = next(table for table in main["tables"] if len(table["rows"]) > 30)
    grid = page.get_by_role("group", name=table["caption"], exact=True)
    expect(grid).to_be_hidden()
    page.get_by_text(f"{table['caption']}: {len(table['rows'])} rows").click()
    expect(grid).to_be_visible()


def test_without_results_the_page_shows_the_commands_to_measure(console):
    console.forgive(r"status of 404 .*report\.json")
    console.page.route("**/evaluation/report.json", lambda route: route.fulfill(status=404, json={"detail": "gone"}))
    page = console.open("#/evaluation")
    expect(
        page.get_by_text("No results are stored here. make evaluate measures, python -m experiments report renders.")
    ).to_be_visible()
