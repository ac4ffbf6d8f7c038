"""The input template of a Pipe: how an event becomes what its target gets."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.aws.deployment import Json, Misconfigured

_PLACEHOLDER = re.compile(r"<([^<>\s]*)>")
_STEP = re.compile(r"\.([A-Za-z0-9_/-]+)|\[(\d+)\]")


def rendered(template: str, event: Json, reserved: Mapping[str, str] | None = None) -> Any:
    """What a Pipe makes of an event: `<$.path>` outside of quotes becomes JSON, inside of quotes the text of a scalar.

    Raises:
        Misconfigured: a path that the event does not have, an unknown variable, or what comes out is no JSON.
    """

    def value(found: re.Match[str]) -> str:
        name, quoted = found[1], _within_quotes(template[: found.start()])
        if name in (reserved or {}):
            content: Any = (reserved or {})[name]
        elif name.startswith("$"):
            content = _at(event, name)
        else:
            raise Misconfigured(f"<{name}> is no variable of a Pipe")
        if not quoted:
            return json.dumps(content)
        if isinstance(content, dict | list):
            raise Misconfigured(f"<{name}> is an object or an array and must not stand in quotes")
        return json.dumps(content if isinstance(content, str) else json.dumps(content))[1:-1]

    text = _PLACEHOLDER.sub(value, template)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Misconfigured(f"no JSON: {text!r}") from error


def _within_quotes(before: str) -> bool:
    return len(re.findall(r'(?<!\\)"', before)) % 2 == 1


def _at(event: Any, path: str) -> Any:
    rest, here = path[1:], event
    while rest:
        step = _STEP.match(rest)
        if not step:
            raise Misconfigured(f"{path}: not a path that Pipes take, or one that is not played here")
        try:
            here = here[step[1]] if step[1] else here[int(step[2])]
        except (KeyError, IndexError, TypeError):
            raise Misconfigured(f"{path}: the event has no such thing: {json.dumps(event)[:500]}") from None
        rest = rest[step.end() :]
    return here
