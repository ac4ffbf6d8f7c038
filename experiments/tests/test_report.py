"""The README and the security page say what the results say."""

import pytest

from experiments.report.readme import PAGES, README, render
from experiments.report.results import read_results
from mats.evaluation.results import RESULTS
from mats.local.cli.search import _details, _headline


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_matches_the_results(path):
    assert render(path) == path.read_text(encoding="utf-8"), "stale; run `make readme`"


def test_the_readme_prints_an_answer_as_the_command_does():
    answer = read_results(RESULTS / "bench-answer.json")["answer"]
    shown = README.read_text(encoding="utf-8")
    for place, result in enumerate(answer["results"], start=1):
        lines = [_headline(place, result).plain, *_details(result, explain=False).plain.splitlines()]
        assert all(line in shown for line in lines), lines
