"""Constants of an encoder from a registry's own requests."""

from dataclasses import dataclass

import numpy as np
import pytest

from mats.bootstrap import models
from mats.domain.profile.profile import Enrichment, SourceText
from mats.evaluation.calibration import Cosines, fit_cosines, measure_cosines, own_requests
from mats.settings import Settings
from tests.builders import a_profile

REFERENCE = models.reference_calibration("sqlite-bm25-1")


def test_an_encoder_that_places_requests_as_the_fitted_one_keeps_its_constants():
    for known in REFERENCE.cosines["known"]:
        for noise in REFERENCE.cosines["noise"]:
            assert fit_cosines(REFERENCE.scale, REFERENCE.cosines, Cosines(known, noise, 200)) == REFERENCE.scale


def test_the_means_of_another_encoder_come_to_lie_where_the_fitted_one_has_them():
    measured = Cosines(0.9, 0.75, 200)
    scale = fit_cosines(REFERENCE.scale, REFERENCE.cosines, measured)
    assert 0.6 < scale.lo < measured.noise < measured.known < scale.hi < 1.2
    for name in ("known", "noise"):
        expected = sum(REFERENCE.cosines[name]) / 2
        assert (getattr(measured, name) - scale.lo) / (scale.hi - scale.lo) == pytest.approx(expected, abs=0.01)


def test_an_encoder_without_meaning_is_refused():
    with pytest.raises(ValueError, match="as near to others"):
        fit_cosines(REFERENCE.scale, REFERENCE.cosines, Cosines(0.3, 0.3, 200))


def test_a_request_is_held_out_of_the_text_of_its_capability():
    def profile(name: str, description: str, *examples: str):
        source, enrichment = SourceText(description=description), Enrichment(positive_examples=examples)
        return a_profile(name=name).model_copy(update={"source": source, "enrichment": enrichment})

    described = profile("refund", "Gives money back. For cards only.")
    exemplified = profile("list", "", "show my orders", "what did I buy")
    nothing = profile("x", "")
    pairs = dict(own_requests([described, exemplified, nothing]))
    assert pairs.keys() == {"Gives money back.", "show my orders"}
    assert "For cards only" in pairs["Gives money back."]
    assert "what did I buy" in pairs["show my orders"]
    assert not any(request in text for request, text in pairs.items())


@dataclass
class Axes:
    """An encoder of words as axes."""

    name: str = "axes"
    dimension: int = 2

    def encode_query(self, text):
        return np.array([text == "a", text == "b"], dtype=float)

    def encode_documents(self, texts):
        return [self.encode_query(text) for text in texts]


def test_cosines_are_measured_with_their_own_and_with_others():
    assert measure_cosines(Axes(), [("a", "a"), ("b", "b")]) == Cosines(1.0, 0.0, 2)


def test_the_setting_replaces_the_cosines_of_the_encoder_it_names_only():
    given = "e5:1200:0.7:0.9"
    mine = models.load_calibration("sqlite-bm25-1", "e5", given)
    assert (mine.scale.lo, mine.scale.hi, mine.source.fitted) == (0.7, 0.9, True)
    assert "1200 requests" in mine.source.name
    titan = "amazon.titan-embed-text-v2:0-1024"
    value = f"{models.calibrated_name(titan)}:300:0.1:0.8"
    assert Settings(calibration=value).calibration == value
    assert models.load_calibration("opensearch-1", titan, value).scale.hi == 0.8
    other = models.load_calibration("sqlite-bm25-1", "all-MiniLM-L6-v2-x", given)
    assert (other.scale.lo, other.scale.hi) == (0.0, 1.0)
