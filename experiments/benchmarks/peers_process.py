"""Peers, asked in a process of their own, because their pins differ: run by the Python that has them.

On standard input JSON: `documents` (name, text, schema), `queries`, `patterns`, `k`, and `vectors`, a file of both. To
standard output by system: the ranked rows of each query, the milliseconds of each search, and the version.
"""

# mypy: ignore-errors

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeAlias

import bm25s
import faiss
import numpy as np
import Stemmer
from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
from fastmcp.tools.base import Tool

Search: TypeAlias = Callable[[str, int], list[int]]  # A query and its number; the rows, best first


def main() -> None:
    asked = json.load(sys.stdin)
    documents, k = asked["documents"], asked["k"]
    texts = [f"{one['name']} {one['text']}" for one in documents]
    stored = np.load(asked["vectors"])
    tools = [
        Tool(
            name=f"{re.sub(r'[^A-Za-z0-9_.-]', '_', one['name'])}-{row}",
            description=one["text"],
            parameters=one["schema"],
        )
        for row, one in enumerate(documents)
    ]

    stem = Stemmer.Stemmer("english")
    words = bm25s.BM25()
    words.index(bm25s.tokenize(texts, stopwords="en", stemmer=stem, show_progress=False), show_progress=False)

    def by_words(query: str, number: int) -> list[int]:
        tokens = bm25s.tokenize([query], stopwords="en", stemmer=stem, show_progress=False)
        rows, scores = words.retrieve(tokens, k=min(k, len(texts)), show_progress=False)
        return [int(row) for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

    flat = faiss.IndexFlatIP(stored["documents"].shape[1])
    flat.add(stored["documents"])

    def by_vector(query: str, number: int) -> list[int]:
        return flat.search(stored["queries"][number : number + 1], k)[1][0].tolist()

    def by_transform(transform: Any, texts: list[str]) -> Search:
        return lambda query, number: [
            int(tool.name.rpartition("-")[2]) for tool in asyncio.run(transform._search(tools, texts[number]))
        ]

    systems = {
        "fastmcp-bm25": (by_transform(BM25SearchTransform(max_results=k), asked["queries"]), "fastmcp"),
        "fastmcp-regex": (by_transform(RegexSearchTransform(max_results=k), asked["patterns"]), "fastmcp"),
        "bm25s": (by_words, "bm25s"),
        "faiss": (by_vector, "faiss-cpu"),
    }
    results = {}
    for name, (search, package) in systems.items():
        search(asked["queries"][0], 0)  # builds its index
        ranked, taken = [], []
        for number, query in enumerate(asked["queries"]):
            began = time.perf_counter()
            ranked.append(search(query, number))
            taken.append(1_000 * (time.perf_counter() - began))
        results[name] = {"ranked": ranked, "ms": taken, "version": f"{package} {version(package)}"}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
