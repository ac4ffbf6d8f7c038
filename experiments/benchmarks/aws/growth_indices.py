"""The indices of the growth benchmark: filled once, kept, and copied to be merged."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from experiments.benchmarks.aws.node_stats import NodeStats
from experiments.benchmarks.aws.opensearch import REGION
from experiments.benchmarks.aws.shaped_vectors import ShapedVectors
from experiments.benchmarks.own_share import PAGE, WRITERS, fill
from experiments.data.synthetic import each_registration
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.ports import Target

ENCODINGS: Mapping[str, Mapping[str, Any]] = {
    "float": {},
    "7 bits": {"parameters": {"encoder": {"name": "sq", "parameters": {"bits": 7}}}},
}
PATIENCE_S = 600
_POLL_S = 1
_READ = 1 << 24


@dataclass(frozen=True)
class GrowthIndices:
    """Of one dimension, on the node at `url`, whose data stays in `folder`."""

    url: str
    folder: Path
    vectors: ShapedVectors
    encoder: str

    @cached_property
    def _domain(self) -> Domain:
        return Domain(self.url, region=REGION, read_s=PATIENCE_S)

    @cached_property
    def _stats(self) -> NodeStats:
        return NodeStats(self.url)

    def filled(self, size: int, encoding: str, *, smaller: str = "") -> str:
        """The name of an index of this size, as single writes leave it when its merges have ended.

        `smaller` is an index with the first of its documents, as they were left; a copy of it is filled further.
        """
        name = f"growth-{size}-{encoding.replace(' ', '-')}"
        if not self._domain.behind(write_alias(name)):
            self._create(name, encoding, smaller)
        self._follow_policy(name)
        index = OpenSearchIndex(self._domain, lambda: [Target(name, self.encoder)], encoder=self.encoder, read=name)
        there = self._stats.documents(name)
        if there < size:
            begun = there == (self._stats.documents(smaller) if smaller else 0)
            with self._noted(name, smaller, whole=begun):
                fill(
                    index,
                    each_registration(size),
                    self.encoder,
                    lambda start, texts: self.vectors.of_documents(start, len(texts)),
                    start=there if begun else max(0, there - there % PAGE - WRITERS * PAGE),
                )
                self._settle(name)
        return name

    def effort(self, name: str) -> dict[str, float] | None:
        """Seconds that the fill took, and of processor time on the node; None if it was interrupted.

        The first depends on what else the machine did.
        """
        path = self._effort(name)
        return dict(json.loads(path.read_text())) if path.exists() else None

    def read_files(self) -> None:
        """Read all files of the node, so that the machine has them in memory, as a domain of enough memory has."""
        for path in self.folder.glob("data/nodes/*/indices/**/*.*"):
            with contextlib.suppress(OSError), path.open("rb") as file:  # a merge may remove it meanwhile
                while file.read(_READ):
                    pass

    def merged(self, name: str) -> str:
        """The name of a copy with one segment; an alias marks one that is complete."""
        copy = f"{name}-merged"
        complete = f"{copy}-complete"
        if self._domain.behind(complete):
            return copy
        sys.stderr.write(f"{copy}: merging\n")
        self._domain.drop(copy)
        self._copy(name, copy)
        self._domain.merge(copy)
        self._settle(copy)
        self._domain.point(complete, copy)
        return copy

    def _create(self, name: str, encoding: str, smaller: str) -> None:
        if smaller:
            self._copy(smaller, name, write_alias(name))
            return
        body = index_body(self.vectors.dimension, aliases=[write_alias(name)], replicas="0-1", refresh="1s")
        body["mappings"]["properties"]["vector"]["method"] |= ENCODINGS[encoding]
        self._domain.create(name, body)

    def _follow_policy(self, name: str) -> None:
        """Merge as new indices are merged, if this one was filled under another policy; its effort then has both."""
        policy = index_body(None, aliases=[], replicas="0-1", refresh="1s")["settings"]["index"]["merge"]["policy"]
        settings = self._send("GET", f"{name}/_settings")[name]["settings"]["index"]
        if settings.get("merge") == {"policy": {key: str(value) for key, value in policy.items()}}:
            return
        sys.stderr.write(f"{name}: merging as new indices are merged\n")
        with self._noted(name, name, whole=True):
            self._send("PUT", f"{name}/_settings", {"index.merge.policy": policy})
            segments = 0
            while segments != (segments := self._stats.of_index(name)["segments"]):
                self._send("POST", f"{name}/_forcemerge")  # only what the policy wants
                self._settle(name)

    def _copy(self, name: str, copy: str, *aliases: str) -> None:
        """Copy an index with its segments; they share the disk."""
        self._block_writes(name, True)  # OpenSearch requires it
        body = {"settings": {"index.blocks.write": None}, "aliases": {alias: {} for alias in aliases}}
        self._send("POST", f"{name}/_clone/{copy}", body)
        self._block_writes(name, False)

    def _block_writes(self, name: str, blocked: bool) -> None:
        self._send("PUT", f"{name}/_settings", {"index.blocks.write": blocked})

    @contextlib.contextmanager
    def _noted(self, name: str, smaller: str, *, whole: bool) -> Iterator[None]:
        """Note what the fill takes, with that of the smaller index, if both are whole."""
        spent = self.effort(smaller) if smaller else {"seconds": 0.0, "node_cpu_s": 0.0}
        started, cpu_ms = time.monotonic(), self._stats.cpu_ms()
        yield
        if whole and spent:
            now = {"seconds": time.monotonic() - started, "node_cpu_s": (self._stats.cpu_ms() - cpu_ms) / 1000}
            self._effort(name).write_text(json.dumps({key: round(spent[key] + now[key], 1) for key in spent}))

    def _effort(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _settle(self, name: str) -> None:
        """Wait for merges under way, and write everything to disk, so that a restart changes nothing."""
        self._send("POST", f"{name}/_flush?wait_if_ongoing=true")
        while self._stats.merges(name):
            time.sleep(_POLL_S)
        self._send("POST", f"{name}/_flush?wait_if_ongoing=true&force=true")

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        request = Request(
            f"{self.url}/{path}",
            json.dumps(body).encode() if body else None,
            {"Content-Type": "application/json"},
            method=method,
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)
