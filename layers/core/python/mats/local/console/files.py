"""The files of the console and of the evaluation report, with their security headers."""

import json
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from mats.local.asgi import METHODS
from mats.resources import resource

_CONSOLE = resource("console")
_REPORT = resource("evaluation/results/report")


class Files(StaticFiles):
    """A folder, which need not exist; every response has the headers."""

    def __init__(self, folder: Path, headers: Mapping[str, str]) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._headers = headers

    async def check_config(self) -> None:
        """Does nothing: a folder that does not exist has no files."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(self._headers)
        return response


def file_routes(console: Path = _CONSOLE, report: Path = _REPORT) -> list[BaseRoute]:
    headers = {**headers_of(console), "Cache-Control": "no-cache"}  # the browser revalidates by ETag
    files = Files(console, headers)

    async def index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [
        Route("/", index, methods=METHODS),
        Mount("/console", files),
        Mount("/evaluation", Files(report, headers)),
    ]


def headers_of(console: Path) -> dict[str, str]:
    """The headers of all files of the console, here and in AWS."""
    headers: dict[str, str] = json.loads((console / "headers.json").read_text("utf-8"))
    return headers
