"""The bill of a month, and the domain that an index needs."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cost
from infra.cost import (
    ASSUMED,
    CannotEstimate,
    Line,
    MeasuredIndex,
    Traffic,
    domain_for,
    domain_text,
    estimate,
    fits,
    index_of,
)
from infra.sizes import SIZES
from infra.vendor import ROOT

COUNTS = st.integers(0, 10**9)
TRAFFIC = st.builds(
    Traffic,
    queries=COUNTS,
    changes=COUNTS,
    capabilities=st.integers(0, 10**7),
    size=st.sampled_from(sorted(SIZES)),
    network=st.sampled_from(["public", "vpc"]),
)


def total(traffic: Traffic, *, fixed: bool | None = None) -> float:
    return sum(line.usd for line in estimate(traffic) if fixed is None or line.fixed is fixed)


@given(TRAFFIC)
def test_the_bill_is_what_stands_plus_what_is_asked_plus_what_changes(traffic):
    asked = total(replace(traffic, changes=0), fixed=False)
    changed = total(replace(traffic, queries=0), fixed=False)
    assert total(traffic) == pytest.approx(total(traffic, fixed=True) + asked + changed)
    assert total(replace(traffic, queries=0, changes=0)) == pytest.approx(total(traffic, fixed=True))


def test_metrics_are_charged_for_the_hours_in_which_they_are_written():
    def metrics(**traffic: int) -> float:
        return sum(x.quantity for x in estimate(Traffic(**traffic)) if x.unit == "custom metrics")

    assert metrics(queries=0, changes=0) == 0
    assert metrics(queries=73, changes=0) * 10 == pytest.approx(metrics(queries=730, changes=0))
    assert metrics(queries=730) == metrics(queries=10**6)


@given(TRAFFIC)
def test_a_bigger_size_a_private_network_and_a_bigger_registry_never_cost_less(traffic):
    assert total(replace(traffic, size="production")) >= total(replace(traffic, size="trial"))
    assert total(replace(traffic, network="vpc")) >= total(replace(traffic, network="public"))
    assert total(replace(traffic, capabilities=traffic.capabilities * 2)) >= total(traffic)


@given(TRAFFIC)
def test_every_line_has_its_formula_and_its_reason(traffic):
    for line in estimate(traffic):
        assert line.usd >= 0
        assert line.unit in line.formula
        assert line.why


@pytest.mark.parametrize(
    ("line", "formula"),
    [
        (Line("S", 2_000_000, "calls", 3.5, 10**6, "asked"), "2,000,000 calls × $3.5 / 1,000,000"),
        (Line("S", 0.25, "GB", 0.0000133334, 1, "stored"), "0.25 GB × $0.0000133334"),
        (Line("S", 0, "GB", 1, 1, "stored"), "0 GB × $1"),
    ],
)
def test_a_formula_can_be_checked_with_a_pocket_calculator(line, formula):
    assert line.formula == formula


def test_a_rerank_call_has_the_measured_tokens_at_the_price_that_answers_use():
    measured = json.loads(cost.RERANK.read_text("utf-8"))
    table = json.loads((ROOT / "layers/core/python/mats/prices.json").read_text("utf-8"))["models"]
    lines = [x for x in estimate(Traffic(queries=1000)) if "nova-micro" in x.service]
    assert [x.quantity for x in lines] == [1000 * measured[name]["p50"] for name in ("input_tokens", "output_tokens")]
    assert [x.price for x in lines] == table["amazon.nova-micro"]


def test_all_faults_of_the_traffic_are_named_at_once():
    with pytest.raises(CannotEstimate, match=r"size .*; network .*; queries .*; changes"):
        Traffic(size="huge", network="wifi", queries=-1, changes=-1)


def test_a_model_without_a_price_is_an_error():
    with pytest.raises(CannotEstimate, match="mystery-1"):
        estimate(Traffic(rerank_model="mystery-1"))


@pytest.mark.parametrize("key", ["rerank_model", "writer_model", "encoder_model"])
@pytest.mark.parametrize("model", ["none", "amazon.nova-2-lite-v1:0", "eu.amazon.nova-micro-v1:0", "cohere.embed-v4:0"])
def test_every_choice_of_a_model_is_priced_and_none_costs_nothing(key: str, model: str):
    of_models = [line for line in estimate(Traffic(**{key: model})) if line.service.startswith("Bedrock")]
    assert any(line.service == f"Bedrock {model}" for line in of_models) == (model != "none")
    others = {"rerank_model", "writer_model", "encoder_model"} - {key}
    assert {line.service for line in of_models} - {f"Bedrock {model}"} == {
        f"Bedrock {getattr(Traffic(), k)}" for k in others
    }


def test_assumptions_can_be_replaced():
    slower = estimate(Traffic(queries=10**6), {**ASSUMED, "discovery_s": 2.0})
    assert sum(x.usd for x in slower) > total(Traffic(queries=10**6))


def test_the_report_names_its_sources_and_a_domain_that_is_too_small():
    big = Traffic(capabilities=10**6)
    assert (fits(big), fits(Traffic())) == (False, True)
    text = cost.report(big, estimate(big))
    assert "are more than size=trial is for" in text
    assert "us-east-1" in text
    assert "check them" in text


def test_the_command_reads_numbers_as_people_write_them(capsys):
    cost.main(["--queries", "1e6", "--size", "production", "--network", "vpc", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["traffic"] == asdict(Traffic(queries=10**6, size="production", network="vpc"))
    assert printed["usd"] == pytest.approx(sum(line["usd"] for line in printed["lines"]))
    with pytest.raises(SystemExit, match="size must be small or trial or production"):
        cost.main(["--size", "huge"])


def row(documents: int, *, disk_gb: float, searched_gb: float, cpu_ms: float) -> dict[str, object]:
    state = {"disk_gb": disk_gb, "searched_gb": searched_gb, "node_cpu_ms": cpu_ms}
    return {"documents": documents, "dimension": 1_024, "encoding": "float", "as_filled": state}


SMALL = row(10_000, disk_gb=0.2, searched_gb=0.04, cpu_ms=10)


@pytest.fixture
def measured(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "aws-growth.json"
    path.write_text(json.dumps({"rows": [SMALL, row(100_000, disk_gb=1.8, searched_gb=0.44, cpu_ms=20)]}))
    monkeypatch.setattr(cost, "GROWTH", path)
    return path


@pytest.mark.parametrize(
    ("capabilities", "disk_gb", "memory_gb", "cpu_ms"),
    [(100_000, 1.8, 0.44, 20), (50_000, 0.9, 0.22, 16.245), (1_000_000, 18, 4.4, 40)],
    ids=["measured", "between two", "beyond the largest"],
)
def test_sizes_are_proportional_and_time_follows_a_power(measured, capabilities, disk_gb, memory_gb, cpu_ms):
    index = index_of(capabilities)
    assert (index.disk_gb, index.memory_gb) == (pytest.approx(disk_gb), pytest.approx(memory_gb))
    assert index.cpu_ms == pytest.approx(cpu_ms, rel=1e-3)
    assert index.measured == (capabilities == 100_000)


def test_beyond_a_single_size_time_grows_in_proportion_too(measured):
    measured.write_text(json.dumps({"rows": [SMALL]}))
    assert index_of(20_000).cpu_ms == pytest.approx(20)


@given(st.integers(1, 3_000_000), st.integers(0, 50))
def test_more_capabilities_or_queries_never_cost_less(capabilities, per_second):
    small = domain_for(index_of(capabilities), per_second)
    assert domain_for(index_of(2 * capabilities), per_second).usd >= small.usd
    assert domain_for(index_of(capabilities), 2 * per_second).usd >= small.usd


@given(st.floats(0, 50), st.floats(0, 100))
def test_a_domain_holds_its_index_twice_on_disk_and_once_in_memory(disk_gb, per_second):
    index = MeasuredIndex(capabilities=1, disk_gb=disk_gb, memory_gb=disk_gb / 4, cpu_ms=30, measured=True)
    domain = domain_for(index, per_second)
    assert domain.gb_each >= 2 * disk_gb
    cores, memory_gb = cost.NODE_TYPES[domain.node]
    assert index.memory_gb < memory_gb / 2
    assert per_second * 0.03 <= 3 * cores / 2


def test_more_than_a_domain_carries_is_an_error_that_points_to_cells(measured):
    with pytest.raises(CannotEstimate, match=r"docs/scale.md"):
        domain_for(index_of(100_000_000), 1)


def test_the_text_has_the_context_of_a_deployment(measured):
    text = domain_text(Traffic(capabilities=10**6, size="production"))
    assert 'CONTEXT="size=production instance_type=r7g.large.search storage_gb=40"' in text
    assert "estimated from what was measured: 18.0 GB on disk" in text
    assert "0.02 GB on disk and under 0.01 GB of memory" in domain_text(Traffic(capabilities=1_000))
    measured.unlink()
    assert "docs/decisions/0061" in domain_text(Traffic())
