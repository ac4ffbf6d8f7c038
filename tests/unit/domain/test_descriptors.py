"""Searchable entries of descriptors."""

from mats.domain.protocols.catalogue import SEARCHED, searchable_part
from mats.domain.protocols.descriptors import FORMAT
from mats.domain.protocols.protocol import Source
from mats.local.imports.decoding import decode
from mats.local.imports.formats import map_value
from tests.unit.local.imports.formats import documents as d


def test_of_a_card_its_skills_are_searched():
    assert searchable_part({"format": "a2a-agent-card", "skills": [1], "protocolVersion": "0.3.0"}) == {"skills": [1]}


def test_an_unknown_format_is_searched_completely():
    for descriptor in ({"a": 1}, {"format": "mine", "a": 1}, {"format": ["a2a-agent-card"], "a": 1}):
        assert searchable_part(descriptor) == descriptor
    assert searchable_part(None) == {}


def test_every_format_that_is_imported_is_known():
    samples = (d.SERVER, d.TOOLS, d.CARD, d.OPENAPI, d.MODELS, d.CONFIG, decode(d.SKILL.encode()))
    found = [m.registration for sample in samples for m in map_value(sample, Source("x", namespace="a"))]
    assert {r.descriptor[FORMAT] for r in found if r and r.descriptor} == SEARCHED.keys()
