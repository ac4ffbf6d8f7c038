"""Commands in the documentation: `sh` and `python` blocks are run, commands in `console` blocks are looked up.

The blocks of a page run one after the other in one folder, beside a service over the sample registry that stands in
for `make run`. A `console` block needs something that is not at hand: an account, data, another machine.
"""

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
import typer.main

from experiments.report.reference import FOLDER, pages
from mats.local.cli.main import app
from mats.usecases.stages import Budgets
from tests.command import Mats, in_process, serving
from tests.conftest import ROOT
from tests.pages import INTEGRATIONS, blocks

DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *INTEGRATIONS.glob("*.md")])
RUN = [
    page
    for page in DOCS
    if re.search(r"^```(sh|python)$", page.read_text(), re.MULTILINE) and page.parent not in (ROOT, INTEGRATIONS)
]
TESTS_OF_INTEGRATIONS = [
    ROOT / "tests" / "integration" / "test_coding_agents.py",
    *(ROOT / "tests" / "frameworks").glob("*.py"),
]
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)")
_PLAIN = re.compile(r"mats ([^|&;<>$`(]*)(?:> (\S+))?$")  # A command that needs no shell; its output may go into a file
_BUDGET = re.compile(r'(\w+)\["[^"]*?([\d,]+) ms')
_SCORE = re.compile(r"\b0\.\d\d\b")  # Processors, and batches of an import, differ by up to 0.02
_VARIES = re.compile(r"\.\.\.|…|\b[\d.]+ ms|[0-9a-f]{32}")  # Left out on the page, a time, an id
_SERVICE = "127.0.0.1:8080"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, sample: Mats, tmp_path: Path):
    folder = tmp_path / "work"
    shutil.copytree(ROOT / "examples", folder / "examples")
    with serving(sample) as service:
        more = {"MATS_URL": service.url, "PATH": f"{Path(sys.executable).parent}:{sample.environment['PATH']}"}
        mats = replace(sample, folder=folder, more=more)
        for block in blocks(page):
            text = block.text.replace(_SERVICE, service.url.removeprefix("http://"))
            if block.language == "python":
                with in_process(mats.environment, folder=folder):
                    exec(compile(text, page.name, "exec"), {"__name__": "__main__"})
            elif block.language == "sh":
                for plain, lines in groupby(_lines(text), lambda line: bool(_PLAIN.match(line))):
                    run = _run_in_process if plain else _run_in_shell
                    run(mats, list(lines))


def _run_in_process(mats: Mats, lines: list[str]) -> None:
    for line in lines:
        words, file = _PLAIN.fullmatch(line).groups()
        ran = mats(*shlex.split(words, comments=True))
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
        if file:
            (mats.folder / file).write_text(ran.out)


def _run_in_shell(mats: Mats, lines: list[str]) -> None:
    text = "\n".join(lines)
    shell = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", text],
        cwd=mats.folder, env=mats.environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert shell.returncode == 0, f"{text}\n{shell.stdout}\n{shell.stderr}"


def _lines(text: str) -> list[str]:
    """Lines with their continuations."""
    return re.sub(r"\\\n", " ", text).splitlines()


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "tutorial.md"], ids=lambda page: page.name)
def test_a_printed_answer_is_the_answer_of_the_sample(page: Path, sample: Mats):
    printed = re.findall(r"^\$ mats (search [^\n]*)\n(.+?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert printed
    for words, answer in printed:
        given, wanted = (" ".join(text.split()) for text in (sample(*shlex.split(words)).done().out, answer))
        parts = (re.escape(_SCORE.sub("SCORE", part)) for part in _VARIES.split(wanted))
        found = re.fullmatch(".*?".join(parts).replace("SCORE", r"(0\.\d\d)"), given)
        assert found, f"{page.name} prints\n{answer}\nand the answer is\n{given}"
        assert [*map(float, found.groups())] == pytest.approx([*map(float, _SCORE.findall(wanted))], abs=0.03)


def _typed(page: Path) -> list[list[str]]:
    """The `mats` commands of a page, as words."""
    lines = [
        line.removeprefix("$ ")
        for block in blocks(page)
        if block.language in ("sh", "console")
        for line in _lines(block.text)
    ]
    words = [shlex.split(line, comments=True) for line in lines if re.match(r"^(\w+=\S+ )*(\.venv/bin/)?mats ", line)]
    return [each[next(i for i, word in enumerate(each) if word.endswith("mats")) + 1 :] for each in words]


@pytest.mark.parametrize("page", sorted(INTEGRATIONS.glob("*.md")), ids=lambda page: page.name)
def test_every_block_of_an_integration_is_a_file_or_typed(page: Path):
    tests = "".join(file.read_text() for file in TESTS_OF_INTEGRATIONS)
    assert f'"{page.name}"' in tests, "no test runs it"
    for block in blocks(page):
        assert block.file or block.language == "console", f"no test runs {block.text}"
        assert not block.file or f'"{block.file}"' in tests, f"no test runs {block.file}"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_names_exists(page: Path):
    whole = typer.main.get_command(app)
    for words in _typed(page):
        command, path = whole, []
        for word in words:
            if word in ("--", "|", ">", "&&", "||"):
                break
            below = getattr(command, "commands", {}).get(word)
            if below is not None:
                command, path = below, [*path, word]
            elif word.startswith("-") and word != "-":
                known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
                assert word.partition("=")[0] in known | {"--help", "-h"}, f"{' '.join(words)}: no option {word}"
        assert path or words[0].startswith("-"), f"there is no command {words[0]}"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path):
    for target, fragment in _LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{target} is not there"
        if fragment and file.suffix == ".md":
            assert fragment[1:] in _anchors(file), f"{target}{fragment} is not a heading"


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", pages())
def test_reference_pages_are_up_to_date(name: str):
    assert (FOLDER / name).read_text() == pages()[name], "run: make docs"


def test_the_diagram_of_the_online_path_has_the_budgets():
    drawn = {ms for block in blocks(ROOT / "docs" / "architecture.md") for ms in _BUDGET.findall(block.text)}
    shipped = Budgets()
    budgets = {"encode": shipped.encode_ms, "retrieval": shipped.retrieve_ms, "rerank": shipped.rerank_ms}
    assert drawn == {(stage, f"{ms:,.0f}") for stage, ms in budgets.items()}
