"""Documents at well-known addresses of a site: A2A agent cards and catalogs of Agentic Resource Discovery."""

from collections.abc import Iterator
from urllib.parse import urlencode, urljoin, urlsplit

from mats.domain.errors import Fault, Invalid
from mats.edge.ard.entries import REGISTRY
from mats.local.imports.addresses import Unfetchable, redact, split_url
from mats.local.imports.formats import Json, a2a, ard
from mats.local.imports.formats.decoding import decode
from mats.local.imports.formats.values import text_at
from mats.local.imports.lines import Location
from mats.local.imports.mcp_registry import Fetch

_CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_CATALOG = "/.well-known/ard.json"
_MAX_PAGES, _MAX_TOKEN, _PAGE = 1_000, 2_000, 100

Values = Iterator[tuple[Location, Json | Invalid]]


def agent_card(url: str, fetch: Fetch) -> Values:
    """The card of an agent: at the address if it has a path, else at the well-known addresses of its site."""
    is_site = not urlsplit(url).path.strip("/")
    first: Invalid | None = None
    for address in [urljoin(url, path) for path in _CARDS] if is_site else [url]:
        try:
            card = decode(fetch(address), name="agent-card.json")
        except Invalid as error:
            first = first or error
            continue
        is_card = a2a.detect(card)
        yield Location(redact(address)), card if is_card else Invalid([Fault(redact(address), "is not an agent card")])
        return
    yield Location(redact(url)), first or Invalid([Fault(redact(url), "has no agent card")])


def catalog(url: str, fetch: Fetch) -> Values:
    """The catalog of an ARD site, and every entry of the registries of the same site that it names."""
    is_site = not urlsplit(url).path.strip("/")
    address = urljoin(url, _CATALOG) if is_site else url
    try:
        value = decode(fetch(address), name="ard.json")
    except Invalid as error:
        yield Location(redact(address)), error
        return
    entries = ard.entries(value)
    if not entries:
        yield Location(redact(address)), Invalid([Fault(redact(address), "is not an ARD catalog: it has no `entries`")])
        return
    listed = [text_at(entry, "url") for entry in entries if text_at(entry, "type") == REGISTRY]
    own = [base for base in dict.fromkeys(listed) if _same_site(base, address)]
    remaining = [entry for entry in entries if text_at(entry, "type") != REGISTRY or text_at(entry, "url") not in own]
    if remaining:
        yield Location(redact(address)), {"entries": remaining}
    for base in own:
        yield from _agents(base, fetch)


def _agents(base: str, fetch: Fetch) -> Values:
    """Every entry of a registry, page by page, or the reason why the list ends."""
    address = urljoin(base if base.endswith("/") else f"{base}/", "agents")
    seen: set[str] = set()
    token = ""
    for number in range(1, _MAX_PAGES + 1):
        place = Location(f"{redact(address)} page {number}")
        query = {"pageSize": str(_PAGE), **({"pageToken": token} if token else {})}
        try:
            page = decode(fetch(f"{address}?{urlencode(query)}"), name="agents.json")
        except Invalid as error:
            yield place, error
            return
        token = text_at(page, "pageToken")
        if ard.entries(page):
            yield place, {"items": ard.entries(page)}
        if not token:
            return
        if len(token) > _MAX_TOKEN or token in seen:
            break
        seen.add(token)
    yield place, Invalid([Fault(redact(address), f"the list does not end: {number:,} pages so far")])


def _same_site(url: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common: a catalog may not lead anywhere else."""
    try:
        left, right = split_url(url), split_url(other)
    except Unfetchable:
        return False
    return (left.scheme, left.hostname, left.port) == (right.scheme, right.hostname, right.port)
