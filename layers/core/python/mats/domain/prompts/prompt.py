"""Prompts: reviewed text in `prompts/`; the hash of a prompt is recorded with every result made with it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

_SECTION = re.compile(r"^## (\w+)\n", re.MULTILINE)
_PLACE = re.compile(r"\{(\w+)\}")
_SECTIONS = {"system", "request", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """System prompt, request template and the one tool that the model must answer with.

    `tool` has `name`, `description` and `schema`, whose top level has only `type`, `properties` and `required`.
    `parts` are the further texts of the file by section name.
    """

    system: str
    request: str
    tool: Mapping[str, Any]
    parts: Mapping[str, str]
    hash: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The prompt in a Markdown file of sections `## system`, `## request`, `## tool` (JSON) and others.

        Raises:
            ValueError: a section is missing or the tool is not JSON.
        """
        _, *found = _SECTION.split(text)
        sections = {name: body.strip() for name, body in zip(found[::2], found[1::2], strict=True)}
        if missing := _SECTIONS - sections.keys():
            raise ValueError(f"a prompt needs the sections {', '.join(sorted(missing))}")
        return cls(
            system=sections["system"],
            request=sections["request"],
            tool=_parse_tool(sections["tool"]),
            parts={name: body for name, body in sections.items() if name not in _SECTIONS},
            hash=hashlib.sha256(text.encode()).hexdigest()[:12],
        )

    def variant(self, name: str) -> Self:
        """The prompt with the sections `tool_NAME` and `plain_NAME` for its tool and its plain form; same hash.

        Raises:
            ValueError: the tool is not JSON; KeyError: a section is missing.
        """
        tool, plain = (self.parts[f"{section}_{name}"] for section in ("tool", "plain"))
        return replace(self, tool=_parse_tool(tool), parts={**self.parts, "plain": plain})


def _parse_tool(section: str) -> Mapping[str, Any]:
    tool: Mapping[str, Any] = json.loads(section.removeprefix("```json").removesuffix("```"))
    return tool


def fill_template(template: str, places: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced in one pass: values are never expanded again."""
    return _PLACE.sub(lambda place: places[place[1]], template)
