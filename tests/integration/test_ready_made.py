"""Tools to pass on, from the real command and the real service."""

from collections.abc import Iterator

import pytest

from mats.edge.requests import Format
from mats.edge.tools.formats import ReadyMade
from tests.conftest import ROOT
from tests.integration.conftest import Mats, Service, serving
from tests.unit.edge.test_formats import assert_taken

QUERY = "refund a customer's card payment"


@pytest.fixture(scope="module")
def mats(tmp_path_factory) -> Mats:
    mats = Mats(tmp_path_factory.mktemp("tools") / "home")
    assert mats("import", str(ROOT / "examples" / "registry.jsonl")).code == 0
    return mats


@pytest.fixture(scope="module")
def service(mats: Mats) -> Iterator[Service]:
    with serving(mats) as running:
        yield running


@pytest.mark.parametrize("format", Format)
def test_command_prints_the_tools(mats, format):
    whole = mats("search", QUERY, "--format", format, "--json")
    assert_taken(ReadyMade.model_validate(whole.json))
    bare = mats("search", QUERY, "--format", format)
    assert bare.json == whole.json["output"]
    assert (bare.code, bare.err) == (0, "")


def test_command_lists_tools_beyond_the_budget(mats):
    ran = mats("search", QUERY, "--format", "openai_tools", "--token-budget", "300")
    assert ran.json
    assert "left out, far less relevant: " in ran.err
    assert (
        "left out, over the budget: " in mats("search", QUERY, "--format", "openai_tools", "--token-budget", "60").err
    )
    refused = mats("search", QUERY, "--token-budget", "300")
    assert (refused.code, refused.out) == (2, "")
    assert "format" in refused.err
    assert mats("search", QUERY, "--format", "gemini").code == 2


@pytest.mark.parametrize("format", Format)
def test_service_accepts_format_in_body_and_query_string(service, format):
    status, by_body = service.request("/discover", {"query": QUERY, "format": format, "token_budget": 2_000})
    assert status == 200
    made = ReadyMade.model_validate(by_body)
    assert_taken(made)
    assert made.tokens <= 2_000
    status, by_query = service.request(f"/discover?format={format}&token_budget=2000", {"query": QUERY})
    assert status == 200
    assert by_query["output"] == by_body["output"]
