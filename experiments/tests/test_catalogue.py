"""An experiment is one value, found by the catalogue; a decided one is data."""

import json
from importlib.metadata import entry_points

from experiments import catalogue
from experiments.catalogue import EXPERIMENTS, RUNNABLE
from experiments.variants import BASELINES, SYSTEMS
from mats.evaluation.results import RESULTS
from mats.evaluation.systems.catalogue import PLUGINS, all_variants


def test_the_experiments_are_in_the_order_of_the_report():
    assert list(EXPERIMENTS) == [
        "language-model", "main", "models", "scale", "ablate", "decomposition", "enrichment", "signals", "blends",
        "first-stage", "field-weights", "length-bias", "parts", "learning", "efficiency", "kinds", "abstention",
        "demand",
    ]  # fmt: skip
    assert list(RUNNABLE) == ["language-model", "main", "models", "scale"]
    assert len({one.place for one in EXPERIMENTS.values()}) == len(EXPERIMENTS)


def test_a_decided_experiment_keeps_its_section_and_its_result():
    for name in (path.stem for path in catalogue.ARCHIVE.glob("*.json")):
        assert (RESULTS / f"experiment-{name}.json").exists()
        section = EXPERIMENTS[name].section({}, {})
        kept = json.loads((catalogue.ARCHIVE / f"{name}.json").read_text())
        assert (section.id, section.summary) == (name, kept["summary"])
        assert [list(row) for row in section.tables[0].rows] == kept["tables"][0]["rows"]


def test_the_baselines_are_variants_of_mats_by_their_entry_point():
    (plugin,) = entry_points(group=PLUGINS)
    assert plugin.load() == BASELINES
    assert list(all_variants()) == list(SYSTEMS)
