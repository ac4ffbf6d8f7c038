"""The report of a dry run."""

from mats.domain.profile.origin import Placed
from mats.local.imports.importer import DryRunRegistry
from tests.builders import a_registration
from tests.fakes import MemoryRegistry


def test_dry_run_reports_placements_and_writes_nothing():
    there = MemoryRegistry()
    there.put([a_registration(name="same"), a_registration(name="other"), a_registration(name="kind")])
    before = dict(there.items)
    placed = DryRunRegistry(there).put(
        [
            a_registration(name="same"), a_registration(name="other", version="2"),
            a_registration(name="kind", kind="agent"), a_registration(name="fresh"),
        ]
    )  # fmt: skip
    assert list(placed.values()) == [Placed.UNCHANGED, Placed.CHANGED, Placed.OTHER_KIND, Placed.NEW]
    assert there.items == before
