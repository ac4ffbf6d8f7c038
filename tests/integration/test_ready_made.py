"""Tools to pass on, from the real command and the real service."""

import pytest

from mats.edge.schema import Format
from mats.edge.tools.formats import ReadyMade
from tests.conftest import ROOT
from tests.unit.edge.test_formats import assert_taken

ITEMS = ROOT / "examples" / "registry.jsonl"

QUERY = "refund a customer's card payment"


@pytest.mark.parametrize("format", Format)
def test_command_prints_the_tools(stocked, format):
    whole = stocked("search", QUERY, "--format", format, "--json")
    assert_taken(ReadyMade.model_validate(whole.json))
    bare = stocked("search", QUERY, "--format", format)
    assert bare.json == whole.json["output"]
    assert (bare.code, bare.err) == (0, "")


def test_command_lists_tools_beyond_the_budget(stocked):
    ran = stocked("search", QUERY, "--format", "openai_tools", "--token-budget", "300")
    assert ran.json
    assert "left out, far less relevant: " in ran.err
    small = stocked("search", QUERY, "--format", "openai_tools", "--token-budget", "60")
    assert "left out, over the budget: " in small.err
    refused = stocked("search", QUERY, "--token-budget", "300")
    assert (refused.code, refused.out) == (2, "")
    assert "format" in refused.err
    assert stocked("search", QUERY, "--format", "gemini").code == 2
