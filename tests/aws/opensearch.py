"""Real OpenSearch nodes with k-NN on loopback."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self
from urllib.request import urlopen

from tests.aws import maven
from tests.aws.jvm import JavaServer
from tests.aws.listening import serve

_LATEST_SIMD = "org.apache.lucene.vectorization.upperJavaFeatureVersion"
"""Lucene uses SIMD up to the releases of Java that it knew, unless this says otherwise."""

_START_S, _REPLAY_S = 60, 900
"""Until its indices can be searched: new ones, or those of a node that was killed amid writes."""


class OpenSearchNode(JavaServer):
    """A node of version 2.19.1.

    Made for a quick start; a benchmark gives it `heap="2g", collector="G1", quick=False`. Such a node computes with
    SIMD, as OpenSearch is distributed, if the machine has a Java that can.

    `settings` are settings of the node, such as {"indices.query.bool.max_clause_count": "4096"}; `kept` is a folder
    for its data that stays.
    No write makes an index by itself. Vectors need `"engine": "lucene"`: Maven lacks the native library of the other.
    """

    name = "opensearch"
    main = "OpenSearchNode"
    locales: Sequence[str] = ()  # Options of the virtual machine

    def __init__(
        self,
        *,
        port: int = 0,
        heap: str = "512m",
        collector: str = "Serial",
        quick: bool = True,
        settings: Mapping[str, str] | None = None,
        kept: Path | None = None,
    ) -> None:
        self._simd = None if quick else maven.simd_machine()
        options = [
            f"-Xms{heap}", f"-Xmx{heap}", f"-XX:+Use{collector}GC", *(["-XX:TieredStopAtLevel=1"] if quick else []),
            "-Dfile.encoding=UTF-8", "-Djava.awt.headless=true", "-Dlog4j.shutdownHookEnabled=false",
            "-Dlog4j2.disable.jmx=true", *self.locales,
        ]  # fmt: skip
        if self._simd:
            options += ["--add-modules=jdk.incubator.vector", f"-D{_LATEST_SIMD}={self._simd[1]}"]
        super().__init__(port=port, java_options=options)
        self._settings, self._kept = dict(settings or {}), kept

    def java(self) -> str:
        return self._simd[0] if self._simd else super().java()

    def arguments(self, home: Path, folder: Path) -> list[str]:
        return [str(home), str(self._kept or folder)]

    def options(self) -> list[str]:
        return [f"{name}={value}" for name, value in self._settings.items()]

    def __enter__(self) -> Self:
        super().__enter__()
        patience_s = _REPLAY_S if self._kept else _START_S
        with urlopen(f"{self.url}/_cluster/health?wait_for_status=yellow&timeout={patience_s}s") as health:
            health.read()
        return self


class OpenSearch3Node(OpenSearchNode):
    """A node of the next major version, 3.5.0: the newest whose k-NN plugin Maven has."""

    name = "opensearch3"
    release = 21
    locales = ("-Djava.locale.providers=SPI,CLDR",)  # finds ThaiWords.java

    @classmethod
    def missing(cls) -> str | None:
        return super().missing() or OpenSearchNode.missing()

    def classpath(self, home: Path) -> list[str]:
        """With the launcher of the earlier version, which a compiler older than 21 can build."""
        return [*super().classpath(home), str(maven.assembled(OpenSearchNode.name))]


_NODES = {"2": OpenSearchNode, "3": OpenSearch3Node}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--heap", default="512m")
    parser.add_argument("--collector", default="Serial", help="Serial, G1, Parallel, Z")
    parser.add_argument("--optimise", action="store_true", help="let the second compiler work too, for measurements")
    parser.add_argument("--kept", type=Path, help="folder for its data that stays; default: none")
    parser.add_argument("--version", choices=_NODES, default="2", help="major version")
    chosen = parser.parse_args()
    quick = not chosen.optimise
    made = _NODES[chosen.version]
    serve(made(port=chosen.port, heap=chosen.heap, collector=chosen.collector, quick=quick, kept=chosen.kept))


if __name__ == "__main__":
    main()
