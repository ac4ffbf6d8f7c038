"""Registries composed of the texts of others."""

import numpy as np
import pytest

from experiments.data.enlarge import ComposedEncoder, enlarge, is_original
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.evaluation.data.datasets import sample
from tests.fakes import FakeEncoder

ORIGINALS = sample().registrations[:20]


def test_a_larger_registry_has_each_original_once_and_composed_ones_beside():
    larger = enlarge([*ORIGINALS, ORIGINALS[0]], 70)
    assert list(larger[:20]) == list(ORIGINALS)
    assert len({each.id for each in larger}) == 70
    assert sum(map(is_original, larger)) == 20
    assert larger == enlarge(ORIGINALS, 70)


def test_a_composed_registration_is_encoded_near_its_original_without_the_encoder():
    larger, encoder = enlarge(ORIGINALS, 50), FakeEncoder()
    composed = ComposedEncoder.of(encoder, larger)
    texts = [embedded_text(profile_of(each, origin="")) for each in larger]
    vectors = np.array(composed.encode_documents(texts))
    assert vectors[:20] == pytest.approx(np.array(encoder.encode_documents(texts[:20])))
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert all(vectors[row] @ vectors[row % 20] > 0.8 for row in range(20, 50))
    assert (composed.name, composed.dimension) == (encoder.name, encoder.dimension)
