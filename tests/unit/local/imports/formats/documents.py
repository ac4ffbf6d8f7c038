"""Small documents of every format, made up, of the shape that real ones have, with what they become.

A part of its document in an entry is written as `{"=": "/skills"}`, by a JSON pointer, with `less` and `more` for
the keys that differ. A variant is another case with some of its values changed or gone.
"""

import copy
import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def _load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _steps(value: Any, path: list[str]) -> Any:
    for step in path:
        value = value[int(step) if isinstance(value, list) else step]
    return value


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _vary(case: Any, changes: dict[str, Any], gone: list[str]) -> Any:
    varied = copy.deepcopy(case)
    for pointer in (*changes, *gone):
        *path, key = _parts(pointer)
        holder = _steps(varied, path)
        if pointer in gone:
            del holder[key]
        else:
            holder[int(key) if isinstance(holder, list) else key] = changes[pointer]
    return varied


def _resolve(value: Any, document: Any) -> Any:
    if isinstance(value, dict) and "=" in value:
        same = _steps(document, _parts(value["="]))
        if value.keys() == {"="}:
            return same
        kept = {key: one for key, one in same.items() if key not in value.get("less", ())}
        return {**kept, **_resolve(value.get("more", {}), document)}
    if isinstance(value, dict):
        return {key: _resolve(one, document) for key, one in value.items()}
    return [_resolve(one, document) for one in value] if isinstance(value, list) else value


_WRITTEN = {path.stem: _load(path) for path in sorted((_HERE / "cases").glob("*.json"))}
_WRITTEN |= {
    name: _vary(_WRITTEN[variant["of"]], variant["changes"], variant.get("gone", []))
    for name, variant in _load(_HERE / "variants.json").items()
}
CASES: dict[str, dict[str, Any]] = {
    name: {**case, "becomes": _resolve(case["becomes"], case["document"])} for name, case in _WRITTEN.items()
}
SERVER, OLD_SERVER, TOOLS, CARD, OPENAPI, SKILL, MODELS = (
    CASES[name]["document"]
    for name in ("mcp-server", "mcp-server-old", "mcp-tools", "a2a-card", "openapi", "skill", "bedrock")
)
