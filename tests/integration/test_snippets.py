"""The texts of `mats show --as` do what they say: what stands in braces is filled in, and they are run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import skip_or_fail
from tests.integration.conftest import Mats
from tests.integration.test_call import register
from tests.servers.site import Asked, site

SECRETS = {"API_TOKEN": "mine", "API_KEY": "k&y"}
PARCEL = {
    "summary": "File a claim",
    "operationId": "fileClaim",
    "parameters": [
        {"name": "parcel", "in": "path", "required": True, "schema": {"type": "string"}},
        {"name": "dry", "in": "query", "required": True, "schema": {"type": "boolean"}},
        {"name": "X-Trace", "in": "header", "required": True, "schema": {"type": "string"}},
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/merge-patch+json": {
                "schema": {"type": "object", "properties": {"reason": {"type": "string", "example": "it's lost"}}}
            }
        },
    },
}


def snippet(mats: Mats, id: str, format: str, **filled_in: str) -> str:
    ran = mats("show", id, "--as", format).done()
    text = ran.out
    for name, value in filled_in.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def run(format: str, text: str, **more: str) -> str:
    """Run a snippet with the secrets in its environment; its output."""
    if format == "curl" and shutil.which("curl") is None:
        skip_or_fail("curl")
    command = (
        ["/bin/sh", "-c", f"{text.rstrip()} --silent --show-error"]
        if format == "curl"
        else [sys.executable, "-c", text]
    )
    ran = subprocess.run(command, check=False, env={**SECRETS, **more}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("format", ["curl", "python"])
def test_operation_of_an_http_api(mats: Mats, format: str):
    seen: list[Asked] = []
    with site(lambda asked: seen.append(asked) or {}) as base:
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Parcels"},
            "servers": [{"url": base}],
            "security": [{"key": []}],
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
            "paths": {"/parcels/{parcel}/claims": {"post": PARCEL}},
        }
        register(mats, "-", stdin=json.dumps(document).encode())
        filled = {"parcel": "4711", "dry": "true", "X-Trace": "t"}
        text = snippet(mats, "org.example.found/fileClaim", format, **filled)
        text = text.replace("'parcel': ''", "'parcel': '4711'").replace("'X-Trace': ''", "'X-Trace': 't'")
        port = base.rpartition(":")[2]
        run(format, text.replace("'dry': False", "'dry': True"), **{f"API_KEY_127_0_0_1___{port}": "k&y"})
    [request] = seen
    headers = {name.lower(): value for name, value in request.headers.items()}
    path, _, query = request.target.partition("?")
    assert (request.method, path) == ("POST", "/parcels/4711/claims")
    assert json.loads(request.body) == {"reason": "it's lost"}
    assert headers["content-type"] == "application/merge-patch+json"
    assert headers["x-trace"] == "t"
    assert query.startswith("dry=true")
    assert headers["x-key"] == "k&y"


def test_configuration_of_a_client_can_be_imported_again(mats: Mats, tmp_path: Path):
    item = {
        "namespace": "com.acme", "name": "pay", "kind": "tool",
        "descriptor": {"server": {"command": "pay-server", "args": ["--fast"], "env": ["KEY"]}},
    }  # fmt: skip
    assert mats("add", "-", stdin=json.dumps(item).encode()).code == 0
    (tmp_path / ".mcp.json").write_text(snippet(mats, "com.acme/pay", "mcp"))
    register(mats, str(tmp_path / ".mcp.json"), namespace="org.example.again")
    shown = mats("show", "org.example.again/acme", "--json").json["invocation"]
    assert shown == {
        "protocol": "mcp", "transport": "stdio", "command": "pay-server", "args": ["--fast"], "env": ["KEY"],
    }  # fmt: skip


def test_impossible_snippets_are_refused_with_what_is_possible(mats: Mats):
    item = {"namespace": "com.acme", "name": "pay", "kind": "tool", "descriptor": {"server": {"command": "pay"}}}
    assert mats("add", "-", stdin=json.dumps(item).encode()).code == 0
    mats("show", "com.acme/pay", "--as", "curl").fails(1, "curl cannot call it", "use mcp or python")
    assert mats("show", "com.acme/nothing", "--as", "mcp").code == 1
    assert mats("show", "com.acme/pay", "--as", "perl").code == 2
    whole = mats("show", "com.acme/pay", "--as", "mcp", "--json").json
    assert (whole["id"], whole["format"]) == ("com.acme/pay", "mcp")
