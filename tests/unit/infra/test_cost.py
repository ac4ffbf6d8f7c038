"""The bill of a month: its formulas, its table, the command."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cost
from infra.cost import BILL, HOURS, month, table
from infra.sizes import SIZES
from infra.vendor import ROOT

TRAFFIC = st.fixed_dictionaries({name: st.integers(0, 10**7) for name in ("queries", "changes", "capabilities")})
SIZE = st.sampled_from(sorted(SIZES))


def total(size: str = "trial", kinds: str = "fixed variable", **traffic: int) -> float:
    bill = month(size, **traffic)
    return sum(sum(bill[kind].values()) for kind in kinds.split())


@given(SIZE, TRAFFIC)
def test_the_bill_is_what_stands_plus_what_is_asked_plus_what_changes(size, traffic):
    asked = total(size, "variable", **{**traffic, "changes": 0})
    changed = total(size, "variable", **{**traffic, "queries": 0})
    assert total(size, **traffic) == pytest.approx(total(size, "fixed", **traffic) + asked + changed)
    assert total(size, "variable", queries=0, changes=0) == 0


@given(TRAFFIC)
def test_a_bigger_size_and_a_bigger_registry_never_cost_less(traffic):
    assert total("trial", **traffic) <= total("production", **traffic)
    assert total(**{**traffic, "capabilities": traffic["capabilities"] * 2}) >= total(**traffic)


def test_metrics_are_charged_for_the_hours_in_which_they_are_written():
    def metrics(size: str = "trial", **traffic: int) -> float:
        return month(size, **traffic)["variable"]["CloudWatch"]

    assert metrics(queries=73, changes=0) * 10 == pytest.approx(metrics(queries=HOURS, changes=0))
    assert metrics(queries=HOURS, changes=0) == metrics(queries=10**6, changes=0)
    assert metrics("small") == 0


def test_the_models_cost_their_measured_tokens_at_the_prices_that_answers_use():
    measured = json.loads(cost.RERANK.read_text("utf-8"))
    prices = json.loads((ROOT / "layers/core/python/mats/prices.json").read_text("utf-8"))["models"]
    reranked = sum(
        measured[name]["p50"] * price
        for name, price in zip(("input_tokens", "output_tokens"), prices["amazon.nova-micro"], strict=True)
    )
    encoded = 20 * prices["amazon.titan-embed-text-v2"][0]
    assert month("trial", queries=10**6, changes=0)["variable"]["Bedrock"] == pytest.approx(reranked + encoded)


def test_the_domain_is_priced_with_its_nodes_and_its_storage():
    size, price = SIZES["production"], {key: each["usd"] for key, each in BILL["prices"].items()}
    nodes = HOURS * 3 * price[size.node] + 3 * size.gb_each * price["gp3_gb"]
    assert month("production")["fixed"]["OpenSearch"] == pytest.approx(nodes)


def test_the_table_has_every_service_and_its_columns_add_up():
    rows = {line.split(" | ")[0]: line.strip(" |").split(" | ")[1:] for line in [*table()][2:]}
    dollars = {name: [float(each.replace(",", "")) for each in row] for name, row in rows.items()}
    in_all = dollars.pop("| **in all**")
    assert dollars.pop("| without traffic") == pytest.approx([total(size, "fixed") for size in SIZES], abs=0.01)
    assert {f"| {price['service']}" for price in BILL["prices"].values()} | {"| Bedrock"} == dollars.keys()
    for place in range(len(SIZES)):
        assert sum(row[place] for row in dollars.values()) == pytest.approx(in_all[place], abs=0.06)


def test_the_command_reads_numbers_as_people_write_them(capsys):
    cost.main(["--queries", "1e6", "--changes", "0"])
    printed = capsys.readouterr().out
    assert printed.startswith("1,000,000 queries, 0 changes, 10,000 capabilities. us-east-1, November 2026: ")
    assert "\n".join(table(queries=10**6, changes=0)) in printed
