"""Pages of the documentation: their code blocks, so that what is tested is what is printed."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

INTEGRATIONS = ROOT / "docs" / "integrations"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    file: str = ""  # The file that it stands for, which follows the language


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in its order."""
    return [Block(language, text, file) for language, file, text in _BLOCK.findall(page.read_text("utf-8"))]


def files(page: Path) -> dict[str, list[str]]:
    """The texts of the files that a page prints, by their names."""
    found: dict[str, list[str]] = {}
    for block in blocks(page):
        if block.file:
            found.setdefault(block.file, []).append(block.text)
    return found
