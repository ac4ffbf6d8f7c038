"""Results are as old as what they depend on, or say that they are not."""

import json

import pytest

from experiments import fresh
from experiments.benchmarks.__main__ import BENCHMARKS
from experiments.benchmarks.aws.__main__ import BENCHMARKS as AWS
from experiments.catalogue import EXPERIMENTS
from experiments.report.readme import PAGES
from mats.evaluation.results import RESULTS
from mats.resources import REPOSITORY

NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
TRACKED = [name for name in NAMES if name not in fresh.KEPT]
MEASURED = {f"bench-{name}" for name in BENCHMARKS} | {f"aws-{name}" for name in AWS} | {"vendor-layer"}
MEASURED |= {f"experiment-{name}" for name in EXPERIMENTS} | {"experiment-ablate"}


@pytest.mark.parametrize("name", TRACKED)
def test_results_are_no_older_than_their_sources(name):
    reasons = list(fresh.changes_of(name, json.loads((RESULTS / f"{name}.json").read_text("utf-8"))))
    assert not reasons, f"{name} was measured before {reasons[0]}: run `make fresh`"


@pytest.mark.parametrize("name", TRACKED)
def test_results_have_a_command_that_measures_them(name):
    assert name in MEASURED
    assert list(fresh.commands([name], REPOSITORY))


def test_what_may_be_older_is_there_and_its_pages_name_the_commit():
    pages = "".join(page.read_text("utf-8") for page in (*PAGES, REPOSITORY / "docs" / "scoring.md"))
    for name in fresh.KEPT:
        assert json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["provenance"]["commit"][:7] in pages


def test_every_source_is_there():
    for name in {*NAMES, *fresh.SOURCES} - set(fresh.KEPT):
        assert fresh.sources_of(name)


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ('"""Other."""\n\n\ndef f(a):\n    """Says more."""\n    return a + 1  # why\n', True),
        ('"""One."""\n\n\ndef f(a):\n    return a + 2\n', False),
        ('"""One."""\n\n\ndef f(b):\n    return b + 1\n', False),
    ],
)
def test_a_digest_is_of_what_code_does(tmp_path, after, same):
    before, changed = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text('"""One."""\n\n\ndef f(a):\n    """Adds."""\n    return a + 1\n')
    changed.write_text(after)
    assert (fresh.digest(before) == fresh.digest(changed)) == same


def test_what_changed_is_named(tmp_path):
    name = "bench-scanner"
    known = {path: fresh.digest(REPOSITORY / path) for path in fresh.sources_of(name)}
    assert list(fresh.changes_of(name, {"sources": known})) == []
    first = next(iter(known))
    assert list(fresh.changes_of(name, {"sources": {**known, first: "other"}})) == [f"{first} changed"]
    assert list(fresh.changes_of(name, {})) == ["their sources were noted"]


def test_one_command_measures_many():
    of_data = ["--data", str(REPOSITORY), "--results", str(RESULTS)]
    ran = list(fresh.commands(["bench-answer", "bench-mcp", "experiment-main", "experiment-ablate"], REPOSITORY))
    assert [command[2:] for command in ran] == [
        ["experiments.benchmarks", *of_data, "answer", "mcp"],
        ["experiments", "run", *of_data, "main"],
        ["experiments", "ablate", *of_data],
    ]


def test_everything_that_measures_notes_its_sources():
    for file in (REPOSITORY / "experiments").rglob("*.py"):
        imports = "from mats.evaluation.results import" in (text := file.read_text("utf-8"))
        lines = [line for line in text.splitlines() if line.startswith("from mats.evaluation.results import")]
        assert not imports or file.parent.name == "tests" or not any("write_results" in line for line in lines), file
