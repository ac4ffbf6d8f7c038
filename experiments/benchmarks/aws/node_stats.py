"""What an OpenSearch node says of itself."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.request import urlopen

_GB = 1e9
_RAW, _GRAPH, _QUANTISED = ("vec",), ("vex", "vem"), ("veq", "vemq")
_USER, _SYSTEM = 11, 12


@dataclass(frozen=True)
class NodeStats:
    """Of the one node at this address."""

    url: str

    def cpu_ms(self) -> float:
        """Processor time of all its threads since it started; Linux only, because OpenSearch's own is a second old."""
        fields = self._process.read_text().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) * 1000 / os.sysconf("SC_CLK_TCK")

    @cached_property
    def _process(self) -> Path:
        return Path("/proc") / str(self._one("_nodes/process")["process"]["id"]) / "stat"

    def heap_gb(self) -> float:
        """Heap in use, garbage included."""
        return round(float(self._node("jvm")["mem"]["heap_used_in_bytes"]) / _GB, 3)

    def java(self) -> dict[str, Any]:
        """Release of its virtual machine, and whether Lucene computes with SIMD."""
        node = self._one("_nodes/jvm")["jvm"]
        return {"version": node["version"], "simd": "--add-modules=jdk.incubator.vector" in node["input_arguments"]}

    def documents(self, name: str) -> int:
        """Documents of an index that searches see."""
        return int(_json(f"{self.url}/{name}/_count")["count"])

    def merges(self, name: str) -> int:
        """Merges of an index under way."""
        return int(_json(f"{self.url}/{name}/_stats/merge")["indices"][name]["primaries"]["merges"]["current"])

    def of_index(self, name: str) -> dict[str, Any]:
        """Segments and sizes of an index; `searched_gb` is what a vector search reads, which memory should hold."""
        total = _json(f"{self.url}/{name}/_stats/segments,store?include_segment_file_sizes=true")["indices"][name][
            "primaries"
        ]
        by_kind = {
            extension.rpartition(".")[2]: file["size_in_bytes"] / _GB
            for extension, file in total["segments"]["file_sizes"].items()
        }
        raw, graph, quantised = (sum(by_kind.get(each, 0.0) for each in kinds) for kinds in (_RAW, _GRAPH, _QUANTISED))
        return {
            "segments": total["segments"]["count"],
            "disk_gb": round(total["store"]["size_in_bytes"] / _GB, 3),
            "vectors_gb": {"raw": round(raw, 3), "quantised": round(quantised, 3), "graph": round(graph, 3)},
            "searched_gb": round((quantised or raw) + graph, 3),
        }

    def _node(self, metric: str) -> dict[str, Any]:
        return dict(self._one(f"_nodes/stats/{metric}")[metric])

    def _one(self, path: str) -> dict[str, Any]:
        return dict(next(iter(_json(f"{self.url}/{path}")["nodes"].values())))


def _json(url: str) -> Any:
    with urlopen(url) as answer:
        return json.load(answer)
