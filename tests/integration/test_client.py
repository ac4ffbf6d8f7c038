"""The Python client, and tools to pass on, from the real service and the real command."""

import pytest

from mats.client import Client
from mats.edge.schema import Format
from mats.edge.tools.formats import ReadyMade
from tests.conftest import ROOT
from tests.integration.conftest import Mats, serving
from tests.unit.edge.test_formats import assert_taken

ITEMS = ROOT / "examples" / "registry.jsonl"
QUERY = "refund a customer's card payment"


def test_it_reads_the_instructions_of_a_skill(tmp_path):
    mats = Mats(tmp_path / "home")
    assert mats("import", str(ROOT / "examples" / "formats" / "skills")).code == 0
    with serving(mats) as service, Client(service.url) as connected:
        read = connected.instructions("org.example.office/tidy-minutes")
    assert read.instructions
    assert "SKILL.md" in read.files


@pytest.mark.parametrize("format", Format)
def test_command_prints_the_tools(stocked, format):
    whole = stocked("search", QUERY, "--format", format, "--json")
    assert_taken(ReadyMade.model_validate(whole.json))
    bare = stocked("search", QUERY, "--format", format)
    assert bare.json == whole.json["output"]
    assert (bare.code, bare.err) == (0, "")
