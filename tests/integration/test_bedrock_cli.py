"""The commands that ask models, against the stand-in for Bedrock."""

from collections.abc import Iterator

import pytest

from tests.aws.bedrock import BedrockServer, Refuse
from tests.integration.conftest import Mats, rows, tool

REFUND = tool("refund_payment", description="Gives money back to the card it came from.", tags=["chargeback"])


@pytest.fixture
def bedrock() -> Iterator[BedrockServer]:
    with BedrockServer() as server:
        yield server


@pytest.fixture
def models(bedrock: BedrockServer) -> dict[str, str]:
    """The environment in which Bedrock is the stand-in."""
    return {**bedrock.client_environment(), "MATS_BEDROCK": "1"}


def test_enrich_without_bedrock_says_what_is_missing(mats: Mats, models):
    assert mats("import", "-", stdin=rows(REFUND)).code == 0
    mats("enrich").fails(3, "MATS_BEDROCK=1")
    assert mats("enrich", "com.acme/nothing", **models).code == 1


def test_an_import_with_a_writer_enriches_and_prints_its_cost(mats: Mats, models, bedrock):
    report = mats("import", "-", "--json", stdin=rows(REFUND), **models).done()
    [(model, spent)] = report.json["spent"].items()
    assert model == "amazon.nova-lite-v1:0"
    assert spent["input_tokens"] > 0
    assert spent["usd"] > 0
    profile = mats("show", "com.acme/refund_payment", "--json").json["profile"]
    assert profile["enriched"] is True
    assert "chargeback" in profile["enrichment"]["keywords"]
    assert len(bedrock.exchanges) == 1


def test_raw_imports_are_enriched_later_and_paid_once(mats: Mats, models, bedrock):
    mats("import", "-", stdin=rows(REFUND, tool("list_refunds")))
    first, again = mats("enrich", "--json", **models).json, mats("enrich", "--json", **models).json
    assert (first["capabilities"], first["indexed"]) == (2, 2)
    assert again["unchanged"] == 2
    assert again["spent"] == {}
    assert len(bedrock.exchanges) == 2


def test_sparse_ones_alone_are_described_until_others_are_named_or_all_are(mats: Mats, models, bedrock):
    about = " ".join(f"word{number}" for number in range(20))
    documented = [tool(name, description=about) for name in ("one", "two", "three")]
    models["MATS_ENRICH"] = "sparse"
    report = mats("import", "-", "--json", stdin=rows(*documented), **models).json
    assert report.get("spent", {}) == {}
    assert mats("enrich", "--json", **models).json["unchanged"] == 3
    assert mats("enrich", "com.acme/one", "--json", **models).json["indexed"] == 1
    family = mats("enrich", "--namespace", "com", "--json", **models).json
    assert (family["indexed"], family["unchanged"]) == (2, 1)
    assert mats("reconcile", "--json", **models).code == 0
    assert mats("show", "com.acme/two", "--json").json["profile"]["enriched"] is True
    assert mats("enrich", "--namespace", "org", **models).code == 1
    assert len(bedrock.exchanges) == 3
    models["MATS_ENRICH"] = "all"
    assert mats("import", "-", "--json", stdin=rows(tool("four", description=about)), **models).json["spent"]


def test_a_writer_without_access_leaves_raw_profiles_and_names_the_cause(mats: Mats, models, bedrock):
    bedrock.play = lambda exchange: Refuse("AccessDeniedException", "You don't have access to the model")
    mats("import", "-", stdin=rows(REFUND), **models).fails(3, "IAM")
    found = mats("search", "money back", "--json").json["results"]
    assert [(r["id"], r["enriched"]) for r in found] == [("com.acme/refund_payment", False)]
    bedrock.play = None
    assert mats("reconcile", **models).code == 0
    assert mats("search", "money back", "--json").json["results"][0]["enriched"] is True


def test_a_search_reranks_in_one_call_and_prints_its_cost(mats: Mats, models, bedrock):
    mats("import", "-", stdin=rows(REFUND, tool("list_refunds", description="Lists refunds")))
    answer = mats("search", "give money back to the card", "--json", **models).json
    assert (answer["degraded"], answer["without"]) == ([], ["neural"])
    assert answer["results"][0]["signals"]["llm"] > 0
    assert answer["cost"]["usd"] > 0
    assert answer["versions"]["models"]["rerank"] == "amazon.nova-micro-v1:0"
    stats = mats("stats", "--json", **models).json
    assert (stats["reranker"], stats["writer"]) == ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0")
    assert mats("stats", "--json").json["reranker"] == "none"
    assert len(bedrock.exchanges) == 1
