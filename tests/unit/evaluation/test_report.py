"""The README and the security page say what the results say."""

import pytest

from mats.evaluation.reporting.readme import PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_matches_the_results(path):
    page = path.read_text(encoding="utf-8")
    assert PAGES[path](page) == page, "stale; run `make readme`"
