"""The client."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from mats.client.auth import Auth
from mats.client.transport import Retries, Transport
from mats.domain.capability import Kind
from mats.edge.answer import Answer, Capability, Health
from mats.edge.discover_request import Format
from mats.edge.tools.formats import ReadyMade

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Client:
    """Asks one API; may be shared by threads. Every method raises a `MatsError` if there is no answer to give."""

    def __init__(
        self, url: str, *, auth: Auth | None = None, timeout_s: float = 10.0, retries: Retries | None = None
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: Where the API is: `http://127.0.0.1:8080`, or what the stack put out as ApiUrl.
            auth: `SigV4` or `Bearer`; the service on this machine needs neither.
            timeout_s: How long one attempt may take, from connecting to the end of the answer.
            retries: How often and when to try again; three attempts by default.

        Raises:
            ValueError: what the address or the caller says would go over the network in clear, or unasked for.
        """
        parts = urlsplit(url)
        near = parts.hostname in _LOOPBACK
        private = parts.scheme == "https" or (parts.scheme == "http" and near)
        if not (private and parts.hostname) or parts.query or parts.username:
            raise ValueError(f"the address must be https, or http on this machine, and no more: {parts.hostname!r}")
        if auth is None and not near:
            raise ValueError("an API on another machine wants to know who asks: pass SigV4 or Bearer")
        self._transport = Transport(url=url.rstrip("/"), auth=auth, timeout_s=timeout_s, retries=retries or Retries())

    def discover(
        self,
        query: str,
        *,
        kinds: Iterable[Kind | str] = (),
        namespaces: Iterable[str] = (),
        tags: Iterable[str] = (),
        limit: int | None = None,
        explain: bool = False,
    ) -> Answer:
        """The capabilities that serve a request, best first.

        Args:
            query: What is wanted, in plain words.
            kinds: Any of these; none: all four.
            namespaces: In any of these or below.
            tags: Carrying every one of these.
            limit: At most so many; no more than the service looks at.
            explain: Say for each result which words matched where.
        """
        wish = _wish(query, kinds, namespaces, tags, limit)
        return self._transport.ask("POST", "/discover", Answer, {**wish, "explain": explain})

    def tools(
        self,
        query: str,
        format: Format | str,
        *,
        token_budget: int | None = None,
        kinds: Iterable[Kind | str] = (),
        namespaces: Iterable[str] = (),
        tags: Iterable[str] = (),
        limit: int | None = None,
    ) -> ReadyMade:
        """The same as tools to pass on to a model: `output` is what its API takes.

        Args:
            query: What is wanted, in plain words.
            format: Whose tools.
            token_budget: At most so many tokens of them, estimated by the API.
            kinds: As for `discover`, like all that follow.
            namespaces: See there.
            tags: See there.
            limit: See there.
        """
        wish = _wish(query, kinds, namespaces, tags, limit)
        ready = {"format": format, "token_budget": token_budget}
        return self._transport.ask("POST", "/discover", ReadyMade, {**wish, **ready})

    def capability(self, id: str) -> Capability:
        """One capability in full, by `namespace/name`."""
        return self._transport.ask("GET", f"/capabilities/{_in_path(id)}", Capability)

    def health(self) -> Health:
        """Whether the API can answer, and what it answers with."""
        return self._transport.ask("GET", "/healthz", Health)

    def close(self) -> None:
        """Let go of the connections."""
        self._transport.pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _wish(
    query: str, kinds: Iterable[Kind | str], namespaces: Iterable[str], tags: Iterable[str], limit: int | None
) -> dict[str, Any]:
    return {
        "query": query, "kinds": _several(kinds), "namespaces": _several(namespaces), "tags": _several(tags),
        "limit": limit,
    }  # fmt: skip


def _several(values: Iterable[str]) -> list[str]:
    """The values; one alone is meant as such, not as its letters."""
    return [values] if isinstance(values, str) else list(values)


def _in_path(id: str) -> str:
    """An id as it stands in a path; where a path would be shortened on its way, its slashes are escaped, too."""
    shortened = any(part in ("", ".", "..") for part in id.split("/"))
    return quote(id, safe="" if shortened else "/", errors="replace")
