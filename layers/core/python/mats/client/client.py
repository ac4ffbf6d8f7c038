"""The client of one API."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack, cast
from urllib.parse import quote, urlencode, urlsplit

from mats.client.auth import Auth
from mats.client.transport import Retries, Transport
from mats.domain.capability.capability import Kind, quote_id
from mats.domain.learning.outcome import Event
from mats.domain.protocols.descriptors import Effect
from mats.domain.ranking.blend import MinRelevance
from mats.edge.feedback import FeedbackAnswer
from mats.edge.schema import (
    Answer,
    Capability,
    CapabilityPage,
    Format,
    Health,
    Instructions,
    ListedCapability,
    RegisteredBatch,
)
from mats.edge.tools.formats import ReadyMade

_PAGE = 100
_LISTS = ("kinds", "namespaces", "tags", "effects")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Filters(TypedDict, total=False):
    """What a search is limited to; default: nothing."""

    kinds: Iterable[Kind | str]  # Any of these
    namespaces: Iterable[str]  # In any of these or below
    tags: Iterable[str]  # All of these
    effects: Iterable[Effect | str]  # Whose owner says any of these
    holds: Mapping[str, Any] | None
    """What the caller can call with: `auth`, `transports`, `read_only`, `leave_out`; see `Holds` of the API."""
    limit: int | None
    min_relevance: MinRelevance | None  # Only results of at least this relevance, 0 to 1, or of a `weak` match


class Client:
    """Calls one API; safe to share between threads. Every method raises a `MatsError` if it has no answer."""

    def __init__(
        self, url: str, *, auth: Auth | None = None, timeout_s: float = 10.0, retries: Retries | None = None
    ) -> None:
        """Check the arguments; nothing is sent.

        Args:
            url: The address of the API: `http://127.0.0.1:8080`, or the stack's output ApiUrl.
            auth: `SigV4` or `Bearer`; the service on this machine needs neither, unless it was given tokens.
            timeout_s: Timeout of one attempt, from connecting to the end of the body.
            retries: Number of attempts and backoff; three attempts by default.

        Raises:
            ValueError: the address is neither https nor on this machine, or `auth` is missing for a remote API.
        """
        parts = urlsplit(url)
        local = parts.hostname in _LOOPBACK
        private = parts.scheme == "https" or (parts.scheme == "http" and local)
        if not (private and parts.hostname) or parts.query or parts.username:
            raise ValueError(
                f"the address must be https, or http on this machine, without user or query: {parts.hostname!r}"
            )
        if auth is None and not local:
            raise ValueError("`auth` is required for a remote API: pass SigV4 or Bearer")
        self._transport = Transport(url=url.rstrip("/"), auth=auth, timeout_s=timeout_s, retries=retries or Retries())

    def discover(
        self, query: str | Sequence[str], *, parts: bool = False, explain: bool = False, **filters: Unpack[Filters]
    ) -> Answer:
        """The capabilities that serve a request, best first.

        Args:
            query: The request in plain words, or two to seven steps of one, which the answer has as `parts`.
            parts: Cut the request at its clauses into `parts`.
            explain: Add the words that matched, and the fields they matched in.
            **filters: See `Filters`.
        """
        options = {"explain": explain, **({"parts": True} if parts else {})}
        return self._transport.call("POST", "/discover", Answer, {**_request(query, filters), **options})

    def tools(
        self,
        query: str | Sequence[str],
        format: Format | str,
        *,
        token_budget: int | None = None,
        known: Iterable[str] | None = None,
        **filters: Unpack[Filters],
    ) -> ReadyMade:
        """The same as tools for a model: `output` is in the format of its API.

        `token_budget` is the maximum of tokens of all tools, estimated by the API. By default there are none below a
        `weak` match. With `known`, names of tools that the caller has, only others are defined, in order of name.
        """
        options = {"format": format, "token_budget": token_budget, "known": None if known is None else _to_list(known)}
        return self._transport.call("POST", "/discover", ReadyMade, {**_request(query, filters), **options})

    def capability(self, id: str) -> Capability:
        """One capability in full, by `namespace/name`."""
        return self._transport.call("GET", f"/capabilities/{quote_id(id)}", Capability)

    def instructions(self, id: str) -> Instructions:
        """The instructions of a skill: text of its owner, not to be trusted."""
        return self._transport.call("GET", f"/capabilities/{quote_id(id)}/instructions", Instructions)

    def list(
        self, *, kinds: Iterable[Kind | str] = (), namespaces: Iterable[str] = (), tags: Iterable[str] = ()
    ) -> Iterator[ListedCapability]:
        """Every capability in order of id, a request for each hundred; the filters are those of `discover`."""
        filters = [("kind", _to_list(kinds)), ("namespace", _to_list(namespaces)), ("tag", _to_list(tags))]
        pairs = [(name, value) for name, values in filters for value in values]
        after: str | None = ""
        while after is not None:
            query = urlencode([*pairs, ("limit", _PAGE), *([("after", after)] if after else [])], quote_via=quote)
            page = self._transport.call("GET", f"/capabilities?{query}", CapabilityPage)
            yield from page.capabilities
            after = page.following

    def feedback(
        self, query_id: str, outcomes: Mapping[str, Event | str | Iterable[Event | str]], *, missing: str | None = None
    ) -> FeedbackAnswer:
        """Report what happened to the results of an answer; repeating it changes nothing.

        Args:
            query_id: Of the answer.
            outcomes: By the id of a result, `selected`, `succeeded`, `failed` or `wrong`, or several of them.
            missing: What was needed and not found, in plain words.
        """
        listed = [{"id": id, "event": event} for id, events in outcomes.items() for event in _to_list(events)]
        request = {"query_id": query_id, "outcomes": listed, **({"missing": missing} if missing else {})}
        return self._transport.call("POST", "/feedback", FeedbackAnswer, request)

    def register(self, registrations: Sequence[Mapping[str, Any]]) -> RegisteredBatch:
        """Register up to 256 items, with a token of the scope `write`; each is taken or rejected by itself."""
        return self._transport.call(
            "POST", "/registry/capabilities", RegisteredBatch, {"registrations": list(registrations)}
        )

    def health(self) -> Health:
        """Tell if the API can answer, and its index and models."""
        return self._transport.call("GET", "/healthz", Health)

    def close(self) -> None:
        self._transport.pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request(query: str | Sequence[str], filters: Filters) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if value is not None}
    lists = {name: _to_list(cast("Iterable[str]", values)) for name, values in filters.items() if name in _LISTS}
    return {**({"query": query} if isinstance(query, str) else {"queries": list(query)}), **given, **lists}


def _to_list(values: Iterable[str]) -> list[str]:
    """The values; a string is one value, not its letters."""
    return [values] if isinstance(values, str) else list(values)
