"""Tokens and cost of model calls."""

import json
from importlib import resources

import pytest

from mats.domain.prompts.usage import Prices, Usage

PRICES = Prices.parse({"models": {"amazon.nova-micro": [0.035, 0.14], "amazon.nova": [1, 1]}})


def test_the_longest_matching_name_sets_the_price():
    usage = PRICES.usage("us.amazon.nova-micro-v1:0", 1_423, 58)
    assert usage.usd == pytest.approx(1_423 * 0.035e-6 + 58 * 0.14e-6)
    assert round(usage.usd, 5) == 0.00006


def test_the_cost_of_a_model_without_a_price_is_unknown():
    unknown = PRICES.usage("acme.model", 10, 10)
    assert unknown.usd is None
    assert Usage(input_tokens=1, usd=0.5).plus(unknown) == Usage(input_tokens=11, output_tokens=10, usd=None)


def test_usage_adds_up():
    one = Usage(input_tokens=1, output_tokens=2, usd=0.5)
    assert one.plus(one) == Usage(input_tokens=2, output_tokens=4, usd=1.0)


def test_the_default_models_have_a_price():
    prices = Prices.parse(json.loads(resources.files("mats").joinpath("prices.json").read_text("utf-8")))
    for model in ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.titan-embed-text-v2:0"):
        assert prices.usage(model, 1, 1).usd
