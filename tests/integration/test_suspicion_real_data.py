"""How often honest registrations are flagged."""

import pytest

from mats.domain.capability.suspicion import Level, findings
from mats.evaluation.data.datasets import load


@pytest.mark.data
@pytest.mark.parametrize("name", ["tools", "models", "skills", "agents", "mcp-tools-closed"])
def test_at_most_one_in_a_thousand_real_registrations_is_held_and_one_in_fifty_noted(data, name):
    registrations = load(data / name).registrations
    flagged = {r.id: reasons for r in registrations if (reasons := findings(r))}
    held = {id: reasons for id, reasons in flagged.items() if any(each.level is not Level.NOTE for each in reasons)}
    assert len(held) <= 0.001 * len(registrations), held
    assert len(flagged) <= 0.02 * len(registrations), flagged
