"""Small documents of every format, made up, of the shape that real ones have, with what they become."""

import json
from pathlib import Path
from typing import Any

CASES: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(Path(__file__).with_name("cases").glob("*.json"))
}
SERVER, OLD_SERVER, TOOLS, CARD, OPENAPI, SKILL, MODELS = (
    CASES[name]["document"]
    for name in ("mcp-server", "mcp-server-old", "mcp-tools", "a2a-card", "openapi", "skill", "bedrock")
)
