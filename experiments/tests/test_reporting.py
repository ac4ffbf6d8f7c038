"""The report says what the results say, and what is missing."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.catalogue import EXPERIMENTS, RUNNABLE
from experiments.report.cells import Section, Table, gained_lost, measure, percent
from experiments.report.render import ExperimentReport, ResultsInvalid, build_report
from experiments.report.results import not_run_notes, paper
from experiments.tests.results_builders import ALL, NO_JUDGE, PROVENANCE, all_results, nothing_run, write_results
from mats.evaluation.results import RESULTS


@pytest.fixture
def results(tmp_path):
    return write_results(tmp_path, all_results())


def tables(made):
    return {table.id: table for section in made.sections for table in section.tables}


def test_every_experiment_has_its_section_in_order(results):
    assert [section.id for section in build_report(results).sections] == [*EXPERIMENTS, "provenance"]


def test_nothing_measured_is_named_and_no_error(tmp_path):
    made = build_report(tmp_path)
    assert made.sections == ()
    assert f"Not measured yet: {', '.join(RUNNABLE)}." in made.intro


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_one_experiment_makes_a_report_and_the_others_are_named(tmp_path, name):
    made = build_report(write_results(tmp_path, {name: ALL[name]()}))
    assert [section.id for section in made.sections] == [name, "provenance"]
    missing = next(line for line in made.intro if line.startswith("Not measured yet"))
    assert name not in missing.removeprefix("Not measured yet: ").rstrip(".").split(", ")


def test_a_system_not_run_has_its_reason_once(tmp_path):
    table = tables(build_report(write_results(tmp_path, all_results(judged=False))))["main-match-1"]
    assert "full-ctx" not in table.head
    assert "not run" not in {cell for row in table.rows for cell in row}
    assert sum(NO_JUDGE in note for note in table.notes) == 1
    assert "full-ctx" in next(note for note in table.notes if NO_JUDGE in note)


def test_the_papers_numbers_of_systems_that_did_not_run_are_kept(tmp_path):
    made = tables(build_report(write_results(tmp_path, all_results(judged=False))))["main-not-run"]
    assert "full-ctx" in made.head
    row = next(row for row in made.rows if row[0].startswith("paper: Tools"))
    assert made.is_papers(row)
    assert row[made.head.index("full-ctx")] == "16.6"


def test_the_winning_system_is_the_first_column(tmp_path):
    results = all_results()
    for one in results["main"]["sets"].values():
        one["systems"]["lexical"]["metrics"]["match@1"] = {"mean": 0.99, "low": 0.98, "high": 1.0}
    head = tables(build_report(write_results(tmp_path, results)))["main-match-1"].head
    assert head[1] == "lexical"
    assert len(set(head)) == len(head)


def test_the_report_starts_with_what_was_found(results):
    made = build_report(results)
    assert [line.split(":")[0] for line in made.findings] == [
        "Language model", "Accuracy", "Growth", "Causes", "Cost", "Verdicts",
    ]  # fmt: skip
    text = made.markdown()
    assert text.index(made.findings[0].split("`")[0]) < text.index("Rendered by")
    assert json.loads(made.json())["findings"] == list(made.findings)


def test_what_was_found_is_computed_from_the_results(tmp_path):
    results = {"sets": {name: {"documents": 1, "queries": 1, "systems": {
        system: {"metrics": {"match@1": {"mean": mean}}} for system, mean in (("hybrid", ours), ("bm25", plain))
    }} for name, ours, plain in (("tools", 0.5, 0.4), ("models", 0.2, 0.25))}}  # fmt: skip
    found = EXPERIMENTS["main"].finding(results)
    assert "on 1 of 2 sets, by -5.0 to +10.0 points; hardest is `models`, with 20.0 %" in found
    nothing = nothing_run(all_results())
    assert {name for name, one in EXPERIMENTS.items() if one.finding(nothing[name])} == {
        "language-model", "decomposition", "efficiency", "abstention",
    }  # fmt: skip


def test_provenance_is_at_the_end(tmp_path):
    made = build_report(write_results(tmp_path, {"main": ALL["main"]()}))
    assert made.sections[-1].tables[0].rows[0][:2] == ("main", PROVENANCE["commit"])
    assert not any(PROVENANCE["commit"] in line for line in (*made.findings, *made.intro))


def test_without_measured_systems_there_are_tables_and_no_figures(tmp_path):
    made = build_report(write_results(tmp_path, nothing_run(all_results())))
    assert {figure.id for figure in made.figures} == {"sparsity", "sources", "learning-curves", "abstention"}
    assert made.markdown()


def test_the_papers_number_stands_below_ours(results):
    table = tables(build_report(results))["main-match-1"]
    ours = next(i for i, row in enumerate(table.rows) if row[0].startswith("tools"))
    assert table.is_papers(table.rows[ours + 1])
    assert table.rows[ours + 1][table.head.index("bm25")] == "31.1"
    assert "other data" in build_report(results).intro[0]
    assert any("22 of ToolRet's 35 sources" in note for note in table.notes)


def test_titan_has_a_column_of_its_own(tmp_path):
    results = all_results()
    made = tables(build_report(write_results(tmp_path / "a", results)))["main-not-run"]
    assert made.head == ("set", "pipeline-dense, titan")
    assert made.rows[0][1] == "39.7"
    results["main"]["used"] = {"encoder": "amazon.titan-embed-text-v2:0"}
    made = tables(build_report(write_results(tmp_path / "b", results)))["main-match-1"]
    row = made.rows[0]
    assert row[made.head.index("pipeline-dense, titan")] == row[made.head.index("pipeline-dense")] != "not run"


def test_undefined_measures_are_dashes(tmp_path):
    results = all_results()
    for one in results["main"]["sets"].values():
        one["systems"]["full-ctx"]["metrics"] |= dict.fromkeys(("match@3", "match@5", "match@15", "mrr", "recall@15"))
    table = tables(build_report(write_results(tmp_path, results)))["main-others"]
    rows = [row for row in table.rows if row[1] == "full-ctx"]
    assert rows
    assert {cell for row in rows for cell in row[2:]} == {"–"}


def test_every_row_has_a_cell_for_every_column(results):
    for table in tables(build_report(results)).values():
        assert {len(row) for row in table.rows} <= {len(table.head)}, table.id


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\x00"])
def test_a_results_file_that_cannot_be_read_is_named(tmp_path, text):
    (tmp_path / "experiment-main.json").write_text(text)
    with pytest.raises(ResultsInvalid, match=r"experiment-main\.json"):
        build_report(tmp_path)


def test_results_of_another_shape_are_named(tmp_path):
    (tmp_path / "experiment-scale.json").write_text(json.dumps({"systems": {"bm25": 3}, "sizes": [1]}))
    with pytest.raises(ResultsInvalid, match=r"experiment-scale\.json: .* another shape than"):
        build_report(tmp_path)


def test_shares_are_per_cent_with_their_interval():
    assert percent({"mean": 0.3082, "low": 0.2329, "high": 0.3836}) == "30.8 [23.3, 38.4]"
    assert (percent(0.397), percent(None), percent({"not_run": "x"})) == ("39.7", "–", "not run")
    assert measure({"not_run": "x"}, "match@1") == "not run"
    assert measure({}, "match@1") == "–"


def test_paired_tests_show_gained_lost_and_p():
    assert gained_lost({"gained": 1_200, "lost": 4, "p": 0.0004}) == "+1,200 / −4, p < 0.001"
    assert gained_lost({"gained": 1, "lost": 0, "p": 0.03125}) == "+1 / −0, p 0.031"


def test_each_reason_is_listed_once_with_its_systems():
    said = list(
        not_run_notes([("a", {"not_run": "x"}), ("b", {"not_run": "x"}), ("c", {"mean": 1}), ("a", {"not_run": "x"})])
    )
    assert said == ["Not run (a, b): x"]


def test_the_papers_numbers_are_shares_of_every_row_and_set():
    known = paper()
    assert {one["row"] for one in known["sets"].values()} <= set(known["main"]["rows"])
    for row in known["main"]["rows"].values():
        assert all(0 <= share <= 1 for share in row["match@1"].values())
    assert set(known["main"]["rows"]) == set(known["ranking"]["rows"]) == set(known["at_15"]["rows"])


def _one_table(cell: str) -> str:
    table = Table(id="t", caption="c", head=("a", "b"), rows=((cell, "1"),))
    return ExperimentReport((), (), (Section(id="s", title="s", summary="s", tables=(table,)),)).markdown()


@given(st.text(max_size=60))
def test_no_text_breaks_out_of_its_cell(text):
    row = _one_table(text).rstrip("\n").splitlines()[-1]
    assert row.startswith("| ")
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3


@pytest.mark.parametrize("text", ["<script>x</script>", "[x](http://y.example)", "![x](y)", "**x**", "`a|b`"])
def test_results_are_escaped_in_html(text):
    assert text not in _one_table(text)


@pytest.mark.skipif(not (RESULTS / "report" / "report.md").exists(), reason="no report is kept yet")
def test_the_committed_report_matches_the_results():
    made = build_report(RESULTS)
    for name, text in {"report.md": made.markdown(), "report.json": made.json()}.items():
        kept = (RESULTS / "report" / name).read_text(encoding="utf-8")
        assert text == kept, f"{name} is stale; run `python -m experiments report`"
