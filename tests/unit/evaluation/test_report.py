"""The README says what the results say."""

from mats.evaluation.reporting.readme import README, render_readme


def test_the_readme_matches_the_results():
    readme = README.read_text(encoding="utf-8")
    assert render_readme(readme) == readme, "stale; run `make readme`"
