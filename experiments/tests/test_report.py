"""The README and the security page say what the results say."""

import pytest

from experiments.report.readme import PAGES, render


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_matches_the_results(path):
    assert render(path) == path.read_text(encoding="utf-8"), "stale; run `make readme`"
