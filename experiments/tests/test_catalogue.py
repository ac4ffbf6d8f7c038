"""An experiment is one value, found by the catalogue; what a page names exists."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.main import get_command

from experiments.catalogue import EXPERIMENTS
from experiments.variants import BASELINES, SYSTEMS, papers
from mats.bootstrap.local import local_system
from mats.evaluation.systems.catalogue import PLUGINS, all_variants, lexical
from mats.local.cli.main import app
from mats.resources import REPOSITORY
from mats.settings import Settings
from tests.fakes import FakeEncoder

ITEMS = 110  # That a review found in the paper and its design card
OPTION = r"(?: --[a-z-]+ \S+)*"
RUN = re.compile(rf"experiments run{OPTION}((?: [a-z][a-z-]+)+)")
BEYOND = {"operations", "writer"}  # Experiments of our own


def test_the_experiments_are_in_the_order_of_the_report():
    assert list(EXPERIMENTS) == [
        "language-model", "writer", "main", "sources", "rerankers", "models", "scale", "decomposition",
        "retrievers", "enrichment", "sparsity", "fields", "signals", "efficiency", "kinds", "operations",
    ]  # fmt: skip
    assert len({one.place for one in EXPERIMENTS.values()}) == len(EXPERIMENTS)


def test_the_baselines_are_variants_of_mats_by_their_entry_point():
    (plugin,) = entry_points(group=PLUGINS)
    assert plugin.load() == BASELINES
    assert list(all_variants()) == list(SYSTEMS)


def test_the_papers_pipeline_has_no_policies(tmp_path):
    with closing(local_system(Settings(home=tmp_path), encoder=FakeEncoder())) as local:
        assert local.discover.policies
        assert papers(lexical)(local.discover).policies == ()


@pytest.mark.parametrize("page", ["docs/evaluation.md", "docs/evaluation-data.md"])
def test_every_experiment_that_a_page_runs_exists(page):
    named = {name for names in RUN.findall((REPOSITORY / page).read_text(encoding="utf-8")) for name in names.split()}
    assert named
    assert named <= EXPERIMENTS.keys()


def items() -> Iterator[tuple[int, str, str]]:
    """Each item of the paper with its state and its command, from the page that lists them."""
    page = next(Path(REPOSITORY / "docs" / "decisions").glob("0090-*.md")).read_text(encoding="utf-8")
    for first, last, state, command in re.findall(
        r"^\| (\d+)(?:–(\d+))? \|[^|]*\| ([^|]*) \|[^|]*\| `([^`|]*)` \|$", page, re.MULTILINE
    ):
        yield from ((number, state, command) for number in range(int(first), int(last or first) + 1))


def test_every_item_of_the_paper_has_a_state_and_a_command_that_exists():
    found = list(items())
    assert [number for number, *_ in found] == list(range(1, ITEMS + 1))
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    known = {"run": EXPERIMENTS, "mats": get_command(app).commands, "make": targets}
    commands = {tuple(command.split()[:2]) for *_, command in found}
    assert all(name in known[program] for program, name in commands)
    assert {name for program, name in commands if program == "run"} | BEYOND >= EXPERIMENTS.keys()


def test_the_states_are_counted_as_the_page_says():
    page = next(Path(REPOSITORY / "docs" / "decisions").glob("0090-*.md")).read_text(encoding="utf-8")
    counts = Counter(state.replace("needs", "need") for _, state, _ in items())
    assert all(f"{count} {state}" in page for state, count in counts.items())
