"""How often honest registrations are flagged."""

import pytest

from mats.domain.capability.suspicion import findings
from mats.evaluation.data.datasets import load


@pytest.mark.data
@pytest.mark.parametrize("name", ["tools", "models", "skills", "agents", "mcp-tools-closed"])
def test_at_most_two_in_a_thousand_real_registrations_are_flagged(data, name):
    registrations = load(data / name).registrations
    flagged = {r.id: reasons for r in registrations if (reasons := findings(r))}
    assert len(flagged) <= 0.002 * len(registrations), flagged
