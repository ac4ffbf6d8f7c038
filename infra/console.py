"""What the console is made of where it is served: files by their path below its address, and headers of all answers."""

import json
from pathlib import Path

from infra.context import Context
from infra.vendor import ROOT

_CONSOLE = ROOT / "console"
_REPORT = ROOT / "evaluation" / "results" / "report"
_POLICY = "Content-Security-Policy"


def files(context: Context) -> dict[str, bytes]:
    """Every file by its path, as the local service serves them; `console/config.json` says how to sign in."""
    named = {f"console/{path.relative_to(_CONSOLE).as_posix()}": path for path in _kept(_CONSOLE, "**/*")}
    named["index.html"] = named.pop("console/index.html")
    named |= {f"evaluation/{path.name}": path for path in _kept(_REPORT, "report.json", "*.svg")}
    content = {name: path.read_bytes() for name, path in named.items()}
    return content | {"console/config.json": f"{json.dumps(_config(context))}\n".encode()}


def headers(context: Context) -> dict[str, str]:
    """The headers in console/headers.json; where one signs in at the issuer, it may be spoken to."""
    kept: dict[str, str] = json.loads((_CONSOLE / "headers.json").read_text("utf-8"))
    if context.console_client_id:
        token_origin = f"https://{context.console_token_host}" if context.console_token_host else ""
        origins = " ".join(filter(None, (context.issuer_origin, token_origin)))
        kept[_POLICY] = _with_source(kept[_POLICY], "connect-src", origins)
    return kept


def _kept(folder: Path, *patterns: str) -> list[Path]:
    found = (path for pattern in patterns for path in folder.glob(pattern))
    return sorted(path for path in found if path.is_file() and not path.name.startswith("."))


def _config(context: Context) -> dict[str, object]:
    if not context.console_client_id:
        return {"signIn": None}
    return {
        "signIn": {
            "issuer": context.jwt_issuer,
            "clientId": context.console_client_id,
            "audience": context.jwt_audience,
        }
    }


def _with_source(policy: str, directive: str, source: str) -> str:
    """The policy with one more source in one of its directives."""
    parts = [part.strip() for part in policy.split(";")]
    assert any(part.startswith(f"{directive} ") for part in parts), policy  # noqa: S101 - else nothing would be allowed
    return "; ".join(f"{part} {source}" if part.startswith(f"{directive} ") else part for part in parts)
