"""Lists at addresses of sites: MCP registries and server cards, A2A agent cards, ARD catalogs."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from mats.domain.errors import Fault, Invalid
from mats.domain.protocols.a2a import is_card
from mats.domain.protocols.addresses import Unfetchable, redact, split_url
from mats.domain.protocols.mcp import REGISTRY_META, is_server
from mats.domain.protocols.protocol import MappedValue
from mats.domain.protocols.values import Json, objects, text_at, value_at
from mats.edge.ard.entries import REGISTRY
from mats.local.imports.decoding import decode
from mats.local.imports.files import Location
from mats.local.imports.formats.ard import entries

Fetch = Callable[[str], bytes]  # The body at an address; raises `Unfetchable`
Values = Iterator[tuple[Location, Json | MappedValue | Invalid]]

_SERVERS, _CATALOG = "/v0.1/servers", "/.well-known/ard.json"
_PAGE, _MAX_S = 100, 900.0
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)  # Before any registry, and far from the first time there is
_OVERLAP = timedelta(minutes=10)
"""Asked for again at the next sync, for changes that the registry shows later than their time."""


def _read_pages(address: str, read: Callable[[str], tuple[Json, str]], *, pages: int, longest: int) -> Values:
    """Each page that is not empty, or the reason why there is none, which ends the list.

    `read` returns the page at a cursor, and the next cursor, of at most `longest` characters; empty for none.
    """
    seen: set[str] = set()
    cursor, began = "", time.monotonic()
    for number in range(1, pages + 1):
        place = Location(f"{redact(address)} page {number}")
        try:
            page, cursor = read(cursor)
        except Invalid as error:
            yield place, error
            return
        if page:
            yield place, page
        if not cursor:
            return
        if len(cursor) > longest or cursor in seen or time.monotonic() - began > _MAX_S:
            break
        seen.add(cursor)
    yield place, Invalid([Fault(redact(address), f"the list does not end: {number:,} pages so far")])


class McpRegistry:
    """An MCP registry at an address: its API's base, or its list of servers with any filter (`?search=`)."""

    def __init__(self, url: str, fetch: Fetch, *, since: str = "") -> None:
        """`since` is the `cursor` of an earlier listing; empty: list every server."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        if not path.endswith("/servers"):
            path = f"{path}/servers" if path.endswith(("/v0", "/v0.1", "/v1")) else path + _SERVERS
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

    def pages(self) -> Values:
        """The servers, or those that changed since, page by page."""
        return _read_pages(self._base, self._page, pages=2_000, longest=1_000)

    def _page(self, cursor: str) -> tuple[Json, str]:
        query = {**self._query, **({"cursor": cursor} if cursor else {})}
        page = decode(self._fetch(f"{self._base}?{urlencode(query)}"), name="servers.json")
        if not isinstance(page, dict) or not isinstance(page.get("servers"), list):
            raise Invalid([Fault(redact(self._base), "is not an MCP registry: the answer has no list `servers`")])
        metadata = page.pop("metadata", None)
        self._note_times(page["servers"])
        following = text_at(metadata, "nextCursor") or text_at(metadata, "next_cursor")
        return (page if page["servers"] else None), following

    def _note_times(self, servers: Json) -> None:
        for entry in objects(servers):
            official = value_at(entry, "_meta", REGISTRY_META)
            text = text_at(official, "updatedAt") or text_at(official, "updated_at")
            try:
                time = datetime.fromisoformat(text)
            except ValueError:
                continue
            time = max(_EARLIEST, time.replace(tzinfo=UTC) if time.tzinfo is None else time)
            self._newest = max(time, self._newest or time)


class Cards(NamedTuple):
    """A kind of card, and the addresses to try for it."""

    what: str
    is_one: Callable[[Json], bool]
    of_site: Sequence[str]  # Well-known addresses, for the address of a site
    below: Sequence[str] = ()  # Tried below any other address, after that itself


AGENT_CARDS = Cards("an agent card", is_card, ("/.well-known/agent-card.json", "/.well-known/agent.json"))
SERVER_CARDS = Cards(
    "an MCP server card",
    is_server,
    ("/.well-known/mcp/server-card.json", "/.well-known/mcp/server-card", "/.well-known/mcp.json"),
    ("/server-card",),
)


def card(cards: Cards, url: str, fetch: Fetch) -> Values:
    """The card at the first of the possible addresses that has one; else why the first has none."""
    below = [url, *(url.rstrip("/") + each for each in cards.below)]
    addresses = [urljoin(url, path) for path in cards.of_site] if _is_site(url) else below
    first: Invalid | None = None
    for address in addresses:
        shown = redact(address)
        try:
            found = decode(fetch(address), name="card.json")
        except Invalid as error:
            first = first or error
            continue
        if cards.is_one(found):
            yield Location(shown), found
            return
        first = first or Invalid([Fault(shown, f"is not {cards.what}")])
    yield Location(redact(addresses[0])), first or Invalid([Fault(redact(url), f"has not {cards.what}")])


def catalog(url: str, fetch: Fetch) -> Values:
    """The catalog of an ARD site, and every entry of the registries of the same site that it names."""
    address = urljoin(url, _CATALOG) if _is_site(url) else url
    place = Location(redact(address))
    try:
        found = entries(decode(fetch(address), name="ard.json"))
    except Invalid as error:
        yield place, error
        return
    if not found:
        yield place, Invalid([Fault(redact(address), "is not an ARD catalog: it has no `entries`")])
        return
    listed = [text_at(entry, "url") for entry in found if text_at(entry, "type") == REGISTRY]
    own = [base for base in dict.fromkeys(listed) if _is_same_site(base, address)]
    remaining = [entry for entry in found if text_at(entry, "type") != REGISTRY or text_at(entry, "url") not in own]
    if remaining:
        yield place, {"entries": remaining}
    for base in own:
        yield from _agents(base, fetch)


def _agents(base: str, fetch: Fetch) -> Values:
    """Every entry of an ARD registry, page by page."""
    address = urljoin(base if base.endswith("/") else f"{base}/", "agents")

    def page_at(token: str) -> tuple[Json, str]:
        query = {"pageSize": str(_PAGE), **({"pageToken": token} if token else {})}
        page = decode(fetch(f"{address}?{urlencode(query)}"), name="agents.json")
        found = entries(page)
        return ({"items": found} if found else None), text_at(page, "pageToken")

    return _read_pages(address, page_at, pages=1_000, longest=2_000)


def _is_site(url: str) -> bool:
    return not urlsplit(url).path.strip("/")


def _is_same_site(url: str, other: str) -> bool:
    """True if two addresses have scheme, host and port in common: a catalog may not lead anywhere else."""
    try:
        left, right = split_url(url), split_url(other)
    except Unfetchable:
        return False
    return (left.scheme, left.hostname, left.port) == (right.scheme, right.hostname, right.port)
