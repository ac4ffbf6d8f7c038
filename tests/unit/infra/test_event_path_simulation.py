"""The simulation of the event path: nothing disappears, no stage exceeds its bound, and quotas cost retries."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra import scale_page
from infra.event_path_simulation import Load, Quota, bounds, main, simulate

CALM = Load(rate=5, seconds=20, shards=2)
MANY_FUNCTIONS = replace(CALM, rate=100, concurrency=200)


@settings(max_examples=25, deadline=None)
@given(
    rate=st.floats(0.5, 50),
    concurrency=st.integers(1, 20),
    encoder=st.floats(60, 10_000),
    writer=st.floats(30, 5_000),
    seed=st.integers(0, 100),
)
def test_every_change_is_complete_or_a_dead_letter(rate, concurrency, encoder, writer, seed):
    load = replace(CALM, rate=rate, concurrency=concurrency, encoder_per_minute=encoder, writer_per_minute=writer)
    result = simulate(replace(load, seed=seed))
    assert result["complete"] + result["dead_letters"] == result["changes"]


def test_without_a_queue_a_profile_takes_as_long_as_its_calls():
    result = simulate(replace(CALM, concurrency=100, encoder_per_minute=1e6, writer_per_minute=1e6, write_spread=0))
    one = 0.25 + CALM.pipe_s + CALM.read_s + 2 * (CALM.encode_s + CALM.index_s) + CALM.write_s
    assert result["complete_s"]["p50"] == pytest.approx(one, abs=0.2)
    assert result["dead_letters"] == 0


@pytest.mark.parametrize("few", [{"concurrency": 1}, {"writer_per_minute": 60.0}, {"shards": 1, "pipe_s": 5.0}])
def test_no_stage_passes_more_than_its_bound(few):
    load = replace(MANY_FUNCTIONS, **few, encoder_per_minute=1e6, patience_s=1e6)
    result = simulate(load)
    least = result["changes"] / min(bounds(load).values())
    assert result["drained_after_s"] >= 0.9 * least


def test_calls_beyond_a_quota_return_to_the_queue_and_delay_profiles():
    enough = simulate(replace(MANY_FUNCTIONS, encoder_per_minute=1e6, writer_per_minute=1e6))
    throttled = simulate(replace(MANY_FUNCTIONS, encoder_per_minute=1e6, writer_per_minute=600.0))
    assert enough["refused_calls"] == {"encoder": 0, "writer": 0}
    assert throttled["refused_calls"]["writer"] > 0
    assert throttled["complete_s"]["p99"] >= 360 > enough["complete_s"]["p99"]
    assert throttled["findable_s"]["p99"] < 60


def test_a_change_that_is_never_admitted_becomes_a_dead_letter():
    result = simulate(replace(CALM, writer_per_minute=0.001))
    assert result["dead_letters"] == result["changes"]
    assert result["findable_s"]["p99"] < 60


@given(st.lists(st.floats(0, 50), max_size=300), st.floats(60, 600))
def test_a_quota_admits_no_more_than_its_rate_and_never_early(asked, per_minute):
    quota = Quota(per_minute, patience_s=8)
    admitted = [(at, quota.admit(at)) for at in asked]
    starts = [start for _, start in admitted if start is not None]
    assert all(at <= start <= at + 8 for at, start in admitted if start is not None)
    assert len(starts) + quota.refused == len(asked)
    for second in {int(start) for start in starts}:
        assert sum(int(start) == second for start in starts) <= per_minute / 60 + 1


def test_the_same_seed_gives_the_same_result():
    assert simulate(CALM) == simulate(CALM) != simulate(replace(CALM, seed=2))


@pytest.mark.parametrize("option", ["--rate", "--concurrency", "--writer-per-minute"])
def test_a_number_of_0_is_refused_by_name(option, capsys):
    with pytest.raises(SystemExit):
        main([option, "0"])
    assert f"{option[2:].replace('-', '_')} must be above 0" in capsys.readouterr().err


def test_the_command_prints_json_for_four_scenarios(capsys):
    assert main(["--scenarios", "--rate", "20", "--seconds", "2"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert len(results) == 4
    assert all(one["changes"] > 0 for one in results.values())


def test_the_page_shows_the_results_and_prices_that_are_there():
    page = scale_page.PAGE.read_text(encoding="utf-8")
    assert scale_page.render(page) == page
    assert "| production | 10 |" in page
