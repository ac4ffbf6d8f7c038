"""Tools to pass on, from the real command."""

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
