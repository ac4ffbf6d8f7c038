"""The pictures of the documentation can be taken, and every one that a page shows is among them."""

import re

from tests.conftest import ROOT
from tests.console.pictures import PICTURES, take


def test_every_picture_of_the_console_is_taken(browser_path, tmp_path):
    assert take(tmp_path, browser_path=browser_path, encoder="none") == []
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {name for page in pages for name in re.findall(r"\((?:docs/)?([\w-]+\.png)\)", page.read_text())}
    assert shown == {path.name for path in tmp_path.iterdir()} == PICTURES.keys()
