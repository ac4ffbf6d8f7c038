"""List the servers of an MCP registry (`GET /v0.1/servers`) page by page: all of them, or those changed since."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from mats.domain.errors import Fault, Invalid
from mats.local.imports.addresses import redact
from mats.local.imports.formats import Json
from mats.local.imports.formats.decoding import decode
from mats.local.imports.formats.values import objects, text_at, value_at
from mats.local.imports.lines import Location

Fetch = Callable[[str], bytes]
"""The body at an address; raises `Unfetchable`."""

_PATH = "/v0.1/servers"
_PAGE = 100
_MAX_PAGES, _MAX_CURSOR, _MAX_S = 2_000, 1_000, 900.0
_OVERLAP = timedelta(minutes=10)
"""Asked for again at the next sync, for changes that the registry shows later than their time."""
_OFFICIAL = "io.modelcontextprotocol.registry/official"


class McpRegistry:
    """A registry at an address: its API's base, or its list of servers with any filter (`?search=`)."""

    def __init__(self, url: str, fetch: Fetch, *, since: str = "") -> None:
        """`since` is the `cursor` of an earlier listing; empty: list every server."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        if not path.endswith("/servers"):
            path = f"{path}/servers" if path.endswith(("/v0", "/v0.1", "/v1")) else path + _PATH
        self._base = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        asked = {"limit": str(_PAGE), "version": "latest", **dict(parse_qsl(parts.query))}
        self._query = {**asked, **({"updated_since": since} if since else {})}
        self._fetch = fetch
        self._newest: datetime | None = None

    def cursor(self, now: str) -> str:
        """The start of the next request: a little before the latest change seen, which cannot be later than now."""
        if self._newest is None:
            return self._query.get("updated_since", "")
        latest = min(self._newest, datetime.fromisoformat(now))
        return (latest - _OVERLAP).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def pages(self) -> Iterator[tuple[Location, Json | Invalid]]:
        """Each page that is not empty, or the reason why there is none, which ends the list."""
        seen: set[str] = set()
        cursor, began = "", time.monotonic()
        for number in range(1, _MAX_PAGES + 1):
            place = Location(f"{redact(self._base)} page {number}")
            try:
                page = self._page(cursor)
            except Invalid as error:
                yield place, error
                return
            metadata = page.pop("metadata", None)
            self._note_times(page["servers"])
            if page["servers"]:
                yield place, page
            cursor = text_at(metadata, "nextCursor") or text_at(metadata, "next_cursor")
            if not cursor:
                return
            if len(cursor) > _MAX_CURSOR or cursor in seen or time.monotonic() - began > _MAX_S:
                break
            seen.add(cursor)
        yield place, Invalid([Fault(redact(self._base), f"the list does not end: {number:,} pages so far")])

    def _page(self, cursor: str) -> dict[str, Any]:
        query = {**self._query, **({"cursor": cursor} if cursor else {})}
        page = decode(self._fetch(f"{self._base}?{urlencode(query)}"), name="servers.json")
        if not isinstance(page, dict) or not isinstance(page.get("servers"), list):
            raise Invalid([Fault(redact(self._base), "is not an MCP registry: the answer has no list `servers`")])
        return page

    def _note_times(self, entries: Json) -> None:
        for entry in objects(entries):
            official = value_at(entry, "_meta", _OFFICIAL)
            text = text_at(official, "updatedAt") or text_at(official, "updated_at")
            try:
                time = datetime.fromisoformat(text)
            except ValueError:
                continue
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
            self._newest = max(time, self._newest or time)
