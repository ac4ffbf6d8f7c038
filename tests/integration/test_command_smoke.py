"""One command of every group in a process of its own, as people start it; the other tests run commands in process."""

import pytest

from tests.command import Mats
from tests.conftest import ROOT
from tests.integration.conftest import rows, tool


def test_a_capability_is_added_and_found_by_separate_processes(mats: Mats):
    assert mats.process("add", "-", stdin=rows(tool("refund", description="Give money back"))).code == 0
    found = mats.process("search", "money back", "--json")
    assert [result["id"] for result in found.json["results"]] == ["com.acme/refund"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "--dry-run", str(ROOT / "examples/formats/agent-card.json")],
        ["stats", "--json"],
        ["reconcile"],
        ["evaluate", "--list-variants"],
        ["dataset", "--help"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_of_every_group_runs_in_its_own_process(mats: Mats, arguments: list[str]):
    mats("import", str(ROOT / "examples/formats/skills"))
    ran = mats.process(*arguments)
    assert (ran.code, ran.err) == (0, ""), ran
    assert ran.out


def test_errors_are_one_line_and_an_exit_code(mats: Mats):
    missing = mats.process("show", "com.acme/none")
    assert (missing.code, missing.out, missing.err.count("\n")) == (1, "", 1)
    assert mats.process("stats", MATS_K="many").code == 2
