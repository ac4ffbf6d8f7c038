"""Response models of Agentic Resource Discovery with their identifiers, and their construction from profiles."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from mats.domain.capability.capability import Id, Kind, capability_id
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import from_text
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.search.candidate import Result
from mats.domain.text.words import clip
from mats.edge.http import Response

PATTERN = r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"
"""From the specification, which has no percent-encoding in an identifier."""
_SYNTAX = re.compile(PATTERN.removesuffix("$") + r"\Z")
_RESERVED = ".localhost"
_LONGEST = 8_000  # Characters. Our longest identifier has less than 3,000.

_TO_ESCAPE = re.compile(
    r"(?P<slash>(?<=[^/])/(?=[^/]))"
    r"|_(?=x[0-9a-f]+[^A-Za-z0-9.-])"  # would read as an escape
    r"|[^A-Za-z0-9._-]"
)
_ESCAPED = re.compile(r":|_x([0-9a-f]{1,6})_")


def identifier(kind: Kind, namespace: str, name: str) -> str:
    """The identifier of a capability, `urn:air:<publisher>:<kind>:<name>`; distinct ones for distinct capabilities.

    The publisher is the namespace as a host name, `com.acme.pay` as `pay.acme.com`. It must be fully qualified, so a
    namespace of a single label gets the reserved suffix `.localhost`. In the name, a slash between two other characters
    becomes a colon, and characters that the specification does not allow are escaped, as in `_x20_`.
    """
    escaped = _TO_ESCAPE.sub(lambda found: ":" if found["slash"] else f"_x{ord(found[0]):x}_", name)
    return f"urn:air:{publisher(namespace)}:{kind}:{escaped}"


def parse_identifier(text: str) -> tuple[Kind, Id] | None:
    """The kind and id in an identifier, which need not exist; None if it is valid but none that `identifier` returns.

    Raises RequestInvalid: it breaks the specification.
    """
    if len(text) > _LONGEST or not _SYNTAX.match(text):
        raise RequestInvalid([Fault("identifier", "is not of the form urn:air:<publisher>:<namespace>:<name>")])
    _, _, domain, *segments = text.split(":", 4)
    namespace = namespace_of(domain)
    if namespace is None or len(segments) < 2 or segments[0] not in set(Kind):
        return None
    kind = Kind(segments[0])
    try:
        name = _ESCAPED.sub(lambda found: "/" if found[0] == ":" else chr(int(found[1], 16)), segments[1])
        name.encode()
    except (ValueError, OverflowError):  # beyond Unicode, or half a character
        return None
    return (kind, capability_id(namespace, name)) if identifier(kind, namespace, name) == text else None


def publisher(namespace: str) -> str:
    """The namespace as a host name."""
    host = ".".join(reversed(namespace.split(".")))
    return host + _RESERVED if "." not in host or host.endswith(_RESERVED) else host


def namespace_of(domain: str) -> str | None:
    """The namespace of a publisher; None if `publisher` never returns this host name."""
    namespace = ".".join(reversed(domain.removesuffix(_RESERVED).split(".")))
    return namespace if publisher(namespace) == domain else None


_CODES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED", 413: "REQUEST_TOO_LARGE", 429: "RATE_LIMIT_EXCEEDED", 500: "INTERNAL_ERROR",
    503: "UNAVAILABLE",
}  # fmt: skip


def ard_error(response: Response) -> Response:
    """A problem document as an ARD error, which knows no 422; any other response unchanged."""
    if response.headers.get("Content-Type") != "application/problem+json":
        return response
    status = 400 if response.status == 422 else response.status
    error = {"errorCode": error_code(status), "message": json.loads(response.body)["detail"]}
    cache_control = {"Cache-Control": "no-cache"} if status == 404 else {}
    headers = {**response.headers, "Content-Type": "application/json", **cache_control}
    return Response(status, json.dumps(error, ensure_ascii=False), headers)


def error_code(status: int) -> str:
    """ARD's code for a status, which the gateway's own errors have, too; others get the code of 400 or 500."""
    return _CODES.get(status, _CODES[400] if status < 500 else _CODES[500])


SERVER_CARD = "application/mcp-server-card+json"
AGENT_CARD = "application/a2a-agent-card+json"
SKILL = "application/ai-skill+md"
REGISTRY = "application/ai-registry+json"

PROTOCOLS = {
    Kind.TOOL: (SERVER_CARD, frozenset({MCP, MCP.upper()})),
    Kind.AGENT: (AGENT_CARD, frozenset({A2A, A2A.upper()})),
    Kind.SKILL: (SKILL, frozenset[str]()),
}
"""ARD's media type for a kind, and the tags by which an owner declares that protocol."""

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", re.IGNORECASE)
_MAX_QUERIES, _MAX_DESCRIPTION = 5, 1_000


class _Terms(BaseModel):
    """Attribute names follow the specification; unknown terms are left out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class ArdEntry(_Terms):
    """The description of one capability, as a catalog holds it."""

    identifier: Annotated[str, Field(pattern=PATTERN)]
    display_name: str
    type: str = Field(description="The media type of what `url` refers to.")
    url: str
    description: str | None = None
    tags: list[str] | None = None
    capabilities: list[str] | None = None
    representative_queries: list[str] | None = None
    version: str | None = None
    updated_at: str | None = Field(default=None, json_schema_extra={"format": "date-time"})
    metadata: dict[str, str | float | bool] | None = None

    @classmethod
    def of(cls, profile: Profile, base: str) -> Self:
        """The entry of a profile in the registry at this address."""
        queries = list(profile.enrichment.positive_examples[:_MAX_QUERIES])
        several = queries if len(queries) > 1 else None  # the specification asks for two at least
        return cls(**_terms(profile, base), representative_queries=several, metadata=_metadata(profile))


class ArdResult(ArdEntry):
    """An entry as a search found it; what was only for indexing is left out."""

    score: Annotated[int, Field(ge=0, le=100)] = Field(
        description="Relevance to the query and nothing else: no trust, no safety."
    )
    source: str = Field(description="The registry that has this entry.")

    @classmethod
    def of_result(cls, result: Result, base: str) -> Self:
        profile = result.candidate.profile
        metadata = {**_metadata(profile), "blendedScore": round(result.score, 4)}
        if result.suspicious:
            metadata["suspicious"] = "; ".join(result.suspicious)
        return cls(**_terms(profile, base), metadata=metadata, score=relevance(result), source=base)


class ArdSearchAnswer(_Terms):
    """The entries that a search found, most relevant first."""

    results: list[ArdResult]
    referrals: list[ArdEntry] | None = Field(default=None, description="Empty: no other registry is known.")
    page_token: str | None = None


class ArdList(_Terms):
    """A page of all entries."""

    items: list[ArdEntry]
    page_token: str | None = None


class ArdManifest(_Terms):
    """The well-known document: where the registry is."""

    entries: list[ArdEntry]


class ArdError(_Terms):
    """An error."""

    error_code: str
    message: str


def relevance(result: Result) -> int:
    """Relevance as a percentage, rounded."""
    return round(100 * min(max(result.relevance, 0.0), 1.0))


def own_type(kind: Kind) -> str:
    """The media type of our own profile document for this kind."""
    return f"application/vnd.mats.{kind}+json"


def media_type(profile: Profile) -> str:
    """ARD's media type if the owner gave an address and declared the protocol, else `own_type`."""
    kind = profile.indexed_kind
    known, tags = PROTOCOLS.get(kind, ("", frozenset[str]()))
    if known and is_address(profile.endpoint) and (not tags or not tags.isdisjoint(profile.tags)):
        return known
    return own_type(kind)


def is_address(endpoint: str) -> bool:
    """True if an endpoint is a valid absolute http or https URL."""
    try:
        return bool(_ADDRESS.fullmatch(endpoint) and urlsplit(endpoint).hostname)
    except ValueError:
        return False


def _terms(profile: Profile, base: str) -> dict[str, Any]:
    kind, type_, time = profile.indexed_kind, media_type(profile), None
    with suppress(ValueError):
        time = datetime.fromisoformat(profile.cause.time).astimezone(UTC) if profile.cause else None
    description = profile.enrichment.summary or (profile.source.description if profile.source else "")
    return {
        "identifier": identifier(kind, profile.namespace, profile.name),
        "display_name": profile.name,
        "type": type_,
        "url": f"{base}capabilities/{quote(profile.id)}" if type_ == own_type(kind) else profile.endpoint,
        "description": clip(description, _MAX_DESCRIPTION) or None,
        "tags": list(profile.tags) or None,
        "capabilities": list(profile.type_tags) or None,
        "version": profile.version or None,
        "updated_at": time.isoformat() if time else None,
    }


def _metadata(profile: Profile) -> dict[str, str | float | bool]:
    known: dict[str, str | float | bool] = {
        "id": profile.id, "kind": str(profile.kind), "lifecycle": str(profile.lifecycle), "enriched": profile.enriched,
    }  # fmt: skip
    is_url = media_type(profile) != own_type(profile.indexed_kind)
    endpoint = "" if is_url else profile.endpoint
    invocation = from_text(profile.invocation)
    optional = {
        "protocol": invocation.protocol if invocation else "",
        "provider": profile.provider,
        "endpoint": endpoint,
        "suspicious": "; ".join(profile.suspicious),
    }
    verified = {"providerVerified": profile.provider_verified} if profile.provider else {}
    return known | {name: value for name, value in optional.items() if value} | verified
