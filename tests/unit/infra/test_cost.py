import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cost
from infra.cost import Line, PriceList, estimate
from infra.traffic import SIZES, Assumptions, CannotEstimate, Traffic, fits
from infra.vendor import ROOT

PRICES = PriceList.load()
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
    return sum(line.usd for line in estimate(traffic, PRICES) if fixed is None or line.fixed is fixed)


@given(TRAFFIC)
def test_the_bill_is_what_stands_plus_what_is_asked_plus_what_changes(traffic):
    asked = total(replace(traffic, changes=0), fixed=False)
    changed = total(replace(traffic, queries=0), fixed=False)
    assert total(traffic) == pytest.approx(total(traffic, fixed=True) + asked + changed)


@given(TRAFFIC)
def test_without_traffic_there_is_only_what_stands(traffic):
    idle = replace(traffic, queries=0, changes=0)
    assert total(idle) == pytest.approx(total(traffic, fixed=True))
    assert total(idle) > 0


@given(TRAFFIC, st.integers(1, 50))
def test_so_many_times_the_queries_cost_so_many_times_as_much(traffic, times):
    once = total(replace(traffic, changes=0), fixed=False)
    often = total(replace(traffic, changes=0, queries=traffic.queries * times), fixed=False)
    assert often == pytest.approx(once * times)


@given(TRAFFIC)
def test_a_bigger_size_a_private_network_and_a_bigger_registry_never_cost_less(traffic):
    assert total(replace(traffic, size="production")) >= total(replace(traffic, size="trial"))
    assert total(replace(traffic, network="vpc")) >= total(replace(traffic, network="public"))
    assert total(replace(traffic, capabilities=traffic.capabilities * 2)) >= total(traffic)


@given(TRAFFIC)
def test_every_dollar_follows_from_the_formula_beside_it(traffic):
    for line in estimate(traffic, PRICES):
        assert line.usd == pytest.approx(line.quantity * line.price / line.per)
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


def test_a_rerank_call_has_the_tokens_that_were_measured():
    measured = json.loads((ROOT / "evaluation" / "results" / "bench-rerank.json").read_text("utf-8"))
    lines = [x for x in estimate(Traffic(queries=1000), PRICES) if "nova-micro" in x.service]
    assert [x.quantity for x in lines] == [1000 * measured[name]["p50"] for name in ("input_tokens", "output_tokens")]


def test_models_cost_what_the_receipts_of_answers_say():
    table = json.loads((ROOT / "layers/core/python/mats/prices.json").read_text("utf-8"))["models"]
    lines = [x for x in estimate(Traffic(queries=1), PRICES) if "nova-micro" in x.service]
    assert [x.price for x in lines] == table["amazon.nova-micro"]


@pytest.mark.parametrize("traffic", [{"size": "huge"}, {"network": "wifi"}, {"queries": -1}, {"changes": -1}], ids=str)
def test_what_cannot_be_is_an_error_that_names_it(traffic):
    with pytest.raises(CannotEstimate, match=next(iter(traffic))):
        Traffic(**traffic)


def test_all_faults_are_named_at_once():
    with pytest.raises(CannotEstimate, match=r"size .*; network .*; queries "):
        Traffic(size="huge", network="wifi", queries=-1)


def test_a_model_without_a_price_is_an_error():
    with pytest.raises(CannotEstimate, match=r"mystery-1 is not known"):
        estimate(Traffic(rerank_model="mystery-1"), PRICES)


def test_every_size_has_prices_for_its_nodes():
    for size in SIZES:
        assert total(Traffic(size=size)) > 0


def test_a_registry_too_big_for_the_domain_is_told():
    big = Traffic(capabilities=10**6)
    assert not fits(big)
    assert fits(Traffic())
    assert "fill more than half" in cost.report(big, estimate(big, PRICES), PRICES.table)


def test_the_report_says_where_its_prices_are_from_and_that_they_must_be_checked():
    told = cost.report(Traffic(), estimate(Traffic(), PRICES), PRICES.table)
    assert "us-east-1" in told
    assert "check them" in told
    assert "http" not in json.dumps(PRICES.table)


def test_what_is_assumed_can_be_replaced_by_what_was_measured():
    slower = estimate(Traffic(queries=10**6), PRICES, Assumptions(discovery_s=2.0))
    assert sum(x.usd for x in slower) > total(Traffic(queries=10**6))


def test_the_command_reads_numbers_as_people_write_them(capsys):
    cost.main(["--queries", "1e6", "--size", "production", "--network", "vpc", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["traffic"] == asdict(Traffic(queries=10**6, size="production", network="vpc"))
    assert told["usd"] == pytest.approx(sum(line["usd"] for line in told["lines"]))


def test_the_command_says_in_one_line_what_it_cannot_do():
    with pytest.raises(SystemExit, match="size must be trial or production"):
        cost.main(["--size", "huge"])
