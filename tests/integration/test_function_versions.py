"""The versions function against a Lambda that speaks HTTP: pages, aliases with weights, deletions."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mats.adapters.function_versions import FunctionVersions
from mats.domain.errors import DependencyFailed
from mats.settings import SettingsInvalid
from tests.aws.tables import credentials

_PAGE = 4


class Lambda(ThreadingHTTPServer):
    """One function `live` with versions 1 to 12; every call needs a signature."""

    daemon_threads = True

    def __init__(self) -> None:
        self.versions = [str(number) for number in range(1, 13)]
        self.aliases: list[dict[str, Any]] = [
            {"Name": "live", "FunctionVersion": "12", "RoutingConfig": {"AdditionalVersionWeights": {"5": 0.1}}},
            {"Name": "old", "FunctionVersion": "2"},
            {"Name": "edge", "FunctionVersion": "$LATEST", "RoutingConfig": None},
        ]
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Lambda

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = parse_qs(address.query)
        key, every = {
            "/2015-03-31/functions/discovery/versions": (
                "Versions", [{"Version": each} for each in ["$LATEST", *self.server.versions]],
            ),
            "/2015-03-31/functions/discovery/aliases": ("Aliases", self.server.aliases),
        }[address.path]  # fmt: skip
        start = int(asked.get("Marker", ["0"])[0])
        more = {"NextMarker": str(start + _PAGE)} if start + _PAGE < len(every) else {}
        self._send(200, {key: every[start : start + _PAGE], **more})

    def do_DELETE(self) -> None:
        address = urlsplit(self.path)
        (number,) = parse_qs(address.query)["Qualifier"]
        assert address.path == "/2015-03-31/functions/discovery"
        self.server.versions.remove(number)
        self._send(204, None)

    def _send(self, status: int, body: Any) -> None:
        assert "/lambda/aws4_request" in self.headers["Authorization"]
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def aws_lambda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    credentials(monkeypatch)
    with Lambda() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
        loop = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        loop.start()
        yield server
        server.shutdown()
        loop.join()


def test_versions_that_nothing_points_to_are_deleted_but_for_three(aws_lambda: Lambda, monkeypatch: pytest.MonkeyPatch):
    from functions.versions import handler

    monkeypatch.setenv("MATS_DISCOVERY_FUNCTION", "discovery")
    handler._prune.cache_clear()
    output = handler.handle({"task": "versions"}, None)
    assert output == {"task": "versions", "done": True, "deleted": [1, 3, 4, 6, 7, 8, 9]}
    assert aws_lambda.versions == ["2", "5", "10", "11", "12"]
    assert handler.handle({"task": "versions"}, None)["deleted"] == []


def test_a_lambda_that_is_away_is_a_failure_that_can_be_repeated(monkeypatch: pytest.MonkeyPatch):
    credentials(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(DependencyFailed, match="function discovery"):
        FunctionVersions("discovery").numbers()


def test_without_a_name_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch):
    from functions.versions import handler

    monkeypatch.delenv("MATS_DISCOVERY_FUNCTION", raising=False)
    handler._prune.cache_clear()
    with pytest.raises(SettingsInvalid, match="MATS_DISCOVERY_FUNCTION"):
        handler.handle({"task": "versions"}, None)
