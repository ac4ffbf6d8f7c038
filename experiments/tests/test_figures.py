"""Figures are the same for the same results, and drawn for whatever was run."""

import re
from xml.etree import ElementTree

import pytest

from experiments.report.render import build_report, write_report
from experiments.report.style import COLOURS, INK, INK_ON_DARK, PAPER, PAPER_ON_DARK, look_of, style_context, svg
from experiments.tests.results_builders import all_results, scale, write_results
from mats.evaluation.results import RESULTS


def draw_all(folder):
    with style_context():
        return {figure.id: svg(figure.draw()) for figure in build_report(folder).figures if figure.draw}


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    return draw_all(write_results(tmp_path_factory.mktemp("results"), all_results()))


def test_there_are_the_papers_figures_and_ours(figures):
    assert list(figures) == ["scaling-cross", "scale"]


def test_the_same_results_give_the_same_bytes(figures, tmp_path):
    again = draw_all(write_results(tmp_path, {"scale": scale()}))
    assert all(figures[name] == text for name, text in again.items())


def test_a_figure_carries_no_date_and_no_text_that_needs_a_font(figures):
    for text in figures.values():
        assert "<dc:date>" not in text
        assert "<text" not in text


def test_a_figure_has_light_colours_as_attributes_and_a_dark_style_sheet(figures):
    for text in figures.values():
        elements = list(ElementTree.fromstring(text).iter())
        (sheet,) = (each.text for each in elements if each.tag.endswith("}style"))
        assert re.fullmatch(r"@media \(prefers-color-scheme: dark\) \{(\s*[^{}]+\{[^{}]+\})+\s*\}", sheet)
        assert {INK, INK_ON_DARK, PAPER, PAPER_ON_DARK} == set(re.findall("#[0-9a-f]{6}", sheet))
        assert not [each for each in elements if "style" in each.attrib]
        assert {"fill", "stroke"} <= {name for each in elements for name in each.attrib}


def test_every_colour_stands_out_from_dark_paper():
    for colour in {INK_ON_DARK, *COLOURS} - {INK}:
        assert (luminance(colour) + 0.05) / (luminance(PAPER_ON_DARK) + 0.05) >= 3, colour


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("judged", [True, False])
def test_figures_are_drawn_with_and_without_a_reranker(tmp_path, judged):
    made = build_report(write_results(tmp_path, {"scale": scale(judged)}))
    with style_context():
        assert all("<svg" in svg(figure.draw()) for figure in made.figures if figure.draw)


def test_every_figure_has_a_caption_and_an_alternative_text(tmp_path):
    for figure in build_report(write_results(tmp_path, all_results())).figures:
        assert figure.caption.endswith((".", "shipped ones."))
        assert len(figure.alt) > 40


def test_no_two_systems_look_alike():
    looks = look_of([str(i) for i in range(len(COLOURS) * 3)])
    assert len({tuple(look.values()) for look in looks.values()}) == len(looks)
    first = list(looks.values())[: len(COLOURS)]
    assert len({look["color"] for look in first}) == len({look["marker"] for look in first}) == len(COLOURS)


def test_a_report_is_a_text_its_data_and_two_files_a_figure(tmp_path):
    made = build_report(write_results(tmp_path / "in", {"scale": scale(), "learning": {}}))
    names = {path.name for path in write_report(made, tmp_path / "out")}
    assert names == {
        "report.md", "report.json", "scale.svg", "scale.png", "learning-curves.svg", "learning-curves.png"
    }  # fmt: skip
    kept = (RESULTS / "report" / "learning-curves.svg").read_bytes()
    assert (tmp_path / "out" / "learning-curves.svg").read_bytes() == kept
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    write_report(made, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
