"""The index of decisions is complete, and links between decisions lead somewhere."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
INDEX = FOLDER / "README.md"


def test_the_index_has_each_decision_once_under_its_title():
    titles = {path.name: path.read_text().splitlines()[0].removeprefix(f"# {path.name[:4]} ") for path in RECORDS}
    listed = re.findall(r"\| \[(\d{4})\]\((\S+)\) (.+) \|$", INDEX.read_text(), re.MULTILINE)
    expected = sorted((name[:4], name, title) for name, title in titles.items())
    assert sorted(listed) == expected, "docs/decisions/README.md differs from the records: add or correct their rows"


def test_every_link_of_a_decision_leads_to_a_file():
    links = [
        (path, link) for path in [*RECORDS, INDEX] for link in re.findall(r"\]\(([^)#:\s]+)[^)]*\)", path.read_text())
    ]
    missing = [f"{path.name}: {link}" for path, link in links if not (FOLDER / link).exists()]
    assert not missing, "\n" + "\n".join(missing)
