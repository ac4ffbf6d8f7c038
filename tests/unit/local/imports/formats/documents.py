"""Small documents of every format, made up, of the shape that real ones have, with what they become.

A variant is another case with some of its values changed or gone, each by its JSON pointer.
"""

import copy
import json
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent


def _load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def _vary(case: Any, changes: dict[str, Any], gone: list[str]) -> Any:
    varied = copy.deepcopy(case)
    for pointer in (*changes, *gone):
        *path, key = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        holder = varied
        for step in path:
            holder = holder[int(step) if isinstance(holder, list) else step]
        if pointer in gone:
            del holder[key]
        else:
            holder[int(key) if isinstance(holder, list) else key] = changes[pointer]
    return varied


CASES: dict[str, dict[str, Any]] = {path.stem: _load(path) for path in sorted((_HERE / "cases").glob("*.json"))}
CASES |= {
    name: _vary(CASES[variant["of"]], variant["changes"], variant.get("gone", []))
    for name, variant in _load(_HERE / "variants.json").items()
}
SERVER, OLD_SERVER, TOOLS, CARD, OPENAPI, SKILL, MODELS = (
    CASES[name]["document"]
    for name in ("mcp-server", "mcp-server-old", "mcp-tools", "a2a-card", "openapi", "skill", "bedrock")
)
