import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import capacity
from infra.capacity import MeasuredIndex, domain_for, index_of, needs
from infra.prices import PriceList
from infra.traffic import CannotEstimate, Traffic

PRICES = PriceList.load()


def row(documents: int, *, disk_gb: float, searched_gb: float, cpu_ms: float) -> dict[str, object]:
    state = {"disk_gb": disk_gb, "searched_gb": searched_gb, "node_cpu_ms": cpu_ms}
    return {"documents": documents, "dimension": 1_024, "encoding": "float", "as_filled": state}


@pytest.fixture(autouse=True)
def measured(tmp_path, monkeypatch):
    rows = [
        row(10_000, disk_gb=0.2, searched_gb=0.04, cpu_ms=10),
        row(100_000, disk_gb=1.8, searched_gb=0.44, cpu_ms=20),
    ]
    path = tmp_path / "aws-growth.json"
    path.write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(capacity, "RESULTS", path)
    return path


def test_a_measured_size_is_as_it_was_measured():
    index = index_of(100_000)
    assert (index.disk_gb, index.memory_gb, index.cpu_ms, index.measured) == (1.8, 0.44, 20, True)


def test_a_size_between_two_is_between_them():
    index = index_of(50_000)
    assert index.disk_gb == pytest.approx(0.9)
    assert 10 < index.cpu_ms < 20
    assert not index.measured


def test_beyond_the_largest_sizes_grow_in_proportion_and_time_as_it_grew_last():
    index = index_of(1_000_000)
    assert index.disk_gb == pytest.approx(18)
    assert index.memory_gb == pytest.approx(4.4)
    assert index.cpu_ms == pytest.approx(40)


def test_beyond_a_single_size_time_grows_in_proportion_too(measured):
    measured.write_text(json.dumps({"rows": [row(10_000, disk_gb=0.2, searched_gb=0.04, cpu_ms=10)]}))
    assert index_of(20_000).cpu_ms == pytest.approx(20)


@given(st.integers(1, 3_000_000), st.integers(0, 50))
def test_more_capabilities_or_queries_never_cost_less(capabilities, per_second):
    small = domain_for(index_of(capabilities), per_second, PRICES)
    assert domain_for(index_of(2 * capabilities), per_second, PRICES).usd >= small.usd
    assert domain_for(index_of(capabilities), 2 * per_second, PRICES).usd >= small.usd


@given(st.floats(0, 50), st.floats(0, 100))
def test_a_domain_holds_its_index_twice_on_disk_and_once_in_memory(disk_gb, per_second):
    index = MeasuredIndex(capabilities=1, disk_gb=disk_gb, memory_gb=disk_gb / 4, cpu_ms=30, measured=True)
    domain = domain_for(index, per_second, PRICES)
    assert domain.gb_each >= 2 * disk_gb
    cores, memory_gb = capacity._TYPES[domain.node]
    assert index.memory_gb < memory_gb / 2
    assert per_second * 0.03 <= 3 * cores / 2


def test_more_than_a_domain_carries_is_an_error_that_points_to_cells():
    with pytest.raises(CannotEstimate, match=r"more than a domain .* docs/scale.md"):
        domain_for(index_of(100_000_000), 1, PRICES)


def test_the_text_has_the_context_of_a_deployment():
    text = "\n".join(needs(Traffic(capabilities=10**6, size="production")))
    assert 'CONTEXT="size=production instance_type=r7g.large.search storage_gb=40"' in text
    assert "estimated from what was measured: 18.0 GB on disk" in text


def test_a_small_index_takes_some_memory():
    assert "0.20 GB on disk and 0.04 GB of memory" in needs(Traffic(capabilities=10_000))[0]
    assert "0.02 GB on disk and under 0.01 GB of memory" in needs(Traffic(capabilities=1_000))[0]


def test_without_results_the_text_says_how_to_get_them(measured):
    measured.unlink()
    assert needs(Traffic()) == [
        "aws-growth.json has no index of 1,024 components: make bench-aws BENCH=growth",
    ]
