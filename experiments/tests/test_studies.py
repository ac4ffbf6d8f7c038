"""Every experiment once, over the sample registry with a recorded reply, and the report of what it measured."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from experiments import __main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.report.cells import Section, Table
from experiments.report.render import ExperimentReport, ResultsInvalid, build_report
from experiments.report.results import paper
from mats.evaluation.data.datasets import JudgedSet, sample, write
from mats.evaluation.results import RESULTS

QUERIES, REPLIED = 12, 4


def _request(text: str, shown: Sequence[str]) -> str:
    return "\n".join([f"<request>{json.dumps(text, ensure_ascii=False)}</request>", "<candidates>", *shown])


@pytest.fixture(scope="module")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the results."""
    folder = tmp_path_factory.mktemp("studies")
    dataset = sample()
    queries = [query for query in dataset.queries if query.relevant][:QUERIES]
    write(
        JudgedSet(
            corpus={item.id: item.item() for item in dataset.registrations},
            queries={query.id: {"text": query.text} for query in queries},
            qrels={(query.id, id): 1 for query in queries for id in query.relevant},
        ),
        folder / "data" / "tools",
    )
    shown = [f"{number} {item.kind} {item.name}" for number, item in enumerate(dataset.registrations, start=1)]
    (folder / "data" / "recorded").mkdir()
    (folder / "data" / "recorded" / "rerank.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "set": "tools",
                    "query_id": query.id,
                    "request": {"messages": [{"content": _request(query.text, shown)}]},
                    "reply": {"s": [90 if item.id in query.relevant else 5 for item in dataset.registrations]},
                }
            )
            + "\n"
            for query in queries[:REPLIED]
        )
    )
    before = {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}
    done = CliRunner().invoke(command.app, ["run", "--data", str(folder / "data")])
    assert done.exit_code == 0, done.output
    assert before == {path: path.stat().st_mtime_ns for path in RESULTS.iterdir()}, "own data changed what is tracked"
    return folder / "data" / "results"


def test_every_experiment_writes_results_and_gets_its_section(results_folder: Path):
    assert {path.stem for path in results_folder.iterdir()} == {f"experiment-{name}" for name in EXPERIMENTS}
    made = build_report(results_folder)
    assert [section.id for section in made.sections] == [*EXPERIMENTS, "provenance"]
    for table in (table for section in made.sections for table in section.tables):
        assert {len(row) for row in table.rows} <= {len(table.head)}, table.id
    assert made.findings
    assert made.markdown().index(made.findings[0].split("`")[0]) < made.markdown().index("Rendered by")


def test_the_measures_are_those_of_the_set(results_folder: Path):
    main = json.loads((results_folder / "experiment-main.json").read_text())["sets"]["tools"]
    assert main["queries"] == QUERIES
    assert main["systems"]["hybrid"]["metrics"]["match@15"]["mean"] > 0.8
    assert "not_run" in main["systems"]["search-and-pick"]  # no conversation is recorded
    replies = json.loads((results_folder / "experiment-language-model.json").read_text())["sets"]["all"]
    assert replies["queries"] == REPLIED
    called = replies["systems"]["pipeline-hybrid"]
    assert (called["metrics"]["match@1"]["mean"], called["recorded"], called["matched"]) == (1, REPLIED, 1)


def test_nothing_measured_is_named_and_no_error(tmp_path: Path):
    made = build_report(tmp_path)
    assert made.sections == ()
    assert f"Not measured yet: {', '.join(EXPERIMENTS)}." in made.intro


@pytest.mark.parametrize("text", ["{", "[]", "\x00", '{"sets": {"10": {"systems": {"bm25": 3}}}}'])
def test_a_results_file_that_cannot_be_read_is_named(tmp_path: Path, text: str):
    (tmp_path / "experiment-scale.json").write_text(text)
    with pytest.raises(ResultsInvalid, match=r"experiment-scale\.json"):
        build_report(tmp_path)


def test_the_papers_numbers_are_shares_of_every_row_and_set():
    known = paper()
    assert {one["row"] for one in known["sets"].values()} <= set(known["tables"]["tab:main-mat1"])
    for row in known["tables"]["tab:main-mat1"].values():
        assert all(0 <= cell["match@1"] <= 1 for cell in row.values())


def _one_table(cell: str) -> str:
    table = Table(id="t", caption="c", head=("a", "b"), rows=((cell, "1"),))
    return ExperimentReport((), (), (Section(id="s", title="s", summary="s", tables=(table,)),)).markdown()


@given(st.text(max_size=60))
def test_no_text_breaks_out_of_its_cell(text: str):
    row = _one_table(text).rstrip("\n").splitlines()[-1]
    assert row.startswith("| ")
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3


@pytest.mark.parametrize("text", ["<script>x</script>", "[x](http://y.example)", "![x](y)", "**x**", "`a|b`"])
def test_results_are_escaped_in_html(text: str):
    assert text not in _one_table(text)


def test_the_committed_report_matches_the_results():
    kept = (RESULTS / "report" / "report.md").read_text(encoding="utf-8")
    assert build_report(RESULTS).markdown() == kept, "stale; run `python -m experiments report`"
