"""Values of a source in batches: what is registered, what is rejected."""

import io

from mats.domain.profile.origin import Placed
from mats.domain.protocols.protocol import Source
from mats.local.imports import importer as importer_module
from mats.local.imports.files import read_lines
from mats.local.imports.importer import DryRunRegistry, Importer
from tests.builders import a_registration
from tests.fakes import MemoryRegistry


def import_lines(importer: Importer, name: str, content: bytes, acknowledge=lambda count: None) -> None:
    importer.import_sources([(Source(name), read_lines(name, io.BytesIO(content)))], acknowledge)


def test_batches_are_acknowledged_after_they_are_written(monkeypatch):
    monkeypatch.setattr(importer_module, "BATCH", 2)
    registry, heard = MemoryRegistry(), []
    content = b"".join(b'{"namespace": "n", "name": "%d", "kind": "tool"}\n' % n for n in range(5))
    importer = Importer(registry)
    import_lines(importer, "f", content, lambda count: heard.append((count, len(registry.items))))
    assert heard == [(2, 2), (2, 4), (1, 5)]
    assert importer.report.placed[Placed.NEW] == 5


def test_change_of_kind_is_rejected_with_its_line():
    registry = MemoryRegistry()
    import_lines(Importer(registry), "a", b'{"namespace": "n", "name": "x", "kind": "tool"}')
    importer = Importer(registry)
    import_lines(importer, "b", b'{"namespace": "n", "name": "x", "kind": "agent"}')
    (rejected,) = importer.report.rejected
    assert (rejected.place.file, rejected.place.line, rejected.faults[0].attribute) == ("b", 1, "kind")


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
