"""The console as CloudFront serves it: files by their path, and the headers of every response."""

import json
from pathlib import Path

from infra.context import Context
from infra.vendor import ROOT

_CONSOLE = ROOT / "console"
_REPORT = ROOT / "experiments" / "results" / "report"
_POLICY = "Content-Security-Policy"


def files(context: Context) -> dict[str, bytes]:
    """Every file by its path, as the local service serves them; `console/config.json` says how to sign in."""
    named = {f"console/{path.relative_to(_CONSOLE).as_posix()}": path for path in _files_in(_CONSOLE, "**/*")}
    named["index.html"] = named.pop("console/index.html")
    named |= {f"evaluation/{path.name}": path for path in _files_in(_REPORT, "report.json", "*.svg")}
    content = {name: path.read_bytes() for name, path in named.items()}
    return content | {"console/config.json": f"{json.dumps(_config(context))}\n".encode()}


def headers(context: Context) -> dict[str, str]:
    """The headers in console/headers.json; with sign-in, the policy also allows connections to the issuer."""
    headers: dict[str, str] = json.loads((_CONSOLE / "headers.json").read_text("utf-8"))
    if context.console_client_id:
        token_origin = f"https://{context.console_token_host}" if context.console_token_host else ""
        origins = " ".join(filter(None, (context.issuer_origin, token_origin)))
        headers[_POLICY] = _with_source(headers[_POLICY], "connect-src", origins)
    return headers


def _files_in(folder: Path, *patterns: str) -> list[Path]:
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
    parts = [part.strip() for part in policy.split(";")]
    assert any(part.startswith(f"{directive} ") for part in parts), policy  # noqa: S101 - else nothing would be allowed
    return "; ".join(f"{part} {source}" if part.startswith(f"{directive} ") else part for part in parts)
