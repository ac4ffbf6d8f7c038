"""Tokens and cost of model calls."""

import importlib.util
import json
from importlib import resources
from pathlib import Path

import pytest

from mats.domain.prompts.usage import Prices, Usage
from tests.conftest import skip_or_fail

PRICES = Prices.parse({"models": {"amazon.nova-micro": [0.035, 0.14], "amazon.nova": [1, 1]}})


def test_the_longest_matching_name_sets_the_price():
    usage = PRICES.usage("us.amazon.nova-micro-v1:0", 1_423, 58)
    assert usage.usd == pytest.approx(1_423 * 0.035e-6 + 58 * 0.14e-6)
    assert round(usage.usd, 5) == 0.00006


def test_usage_adds_up_and_the_cost_of_a_model_without_a_price_is_unknown():
    one, unknown = Usage(input_tokens=1, output_tokens=2, usd=0.5), PRICES.usage("acme.model", 10, 10)
    assert one.plus(one) == Usage(input_tokens=2, output_tokens=4, usd=1.0)
    assert one.plus(unknown) == Usage(input_tokens=11, output_tokens=12, usd=None)


def shipped() -> Prices:
    return Prices.parse(json.loads(resources.files("mats").joinpath("prices.json").read_text("utf-8")))


def test_the_default_models_have_a_price():
    prices = shipped()
    for model in ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.titan-embed-text-v2:0"):
        assert prices.usage(model, 1, 1).usd


@pytest.mark.server
def test_every_price_is_that_of_a_published_table_in_every_geography():
    found = importlib.util.find_spec("litellm")  # read, never imported
    if found is None or found.origin is None:
        skip_or_fail("table of prices (requirements/servers.txt)")
    table = Path(found.origin).with_name("model_prices_and_context_window_backup.json")
    bedrock = ("bedrock", "bedrock_converse")
    listed = {
        model: (1e6 * price["input_cost_per_token"], 1e6 * price.get("output_cost_per_token", 0))
        for model, price in json.loads(table.read_text("utf-8")).items()
        if price.get("litellm_provider") in bedrock and "/" not in model and "input_cost_per_token" in price
    }
    prices = shipped()
    ours = {model: prices.usage(model, 10**6, 0).usd for model in listed}
    priced = {model: (usd, prices.usage(model, 0, 10**6).usd) for model, usd in ours.items() if usd is not None}
    assert {model: each for model, each in priced.items() if each != pytest.approx(listed[model])} == {}
    unconfirmed = {name for name in prices.by_model if not any(name in model for model in priced)}
    assert unconfirmed == set()
    for model in ("amazon.nova-2-lite-v1:0", "cohere.embed-v4:0", "amazon.nova-micro-v1:0"):
        assert len([id for id in priced if id.endswith(model)]) >= 3, "by its own id and by geography"
