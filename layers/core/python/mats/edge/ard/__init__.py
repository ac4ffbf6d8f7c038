"""Agentic Resource Discovery v0.91: the registry as catalog entries. Included by its `ROUTES`; docs/ard.md."""

from typing import Any

from mats.edge.route import PROBLEMS, BodySpec, Route

_ERRORS = {
    **PROBLEMS,
    400: "The request breaks the contract; the message names every field.",
    401: "The call has no valid token.",
    403: "The caller may not call this.",
    404: "No such entry, or not for this caller.",
    500: "Internal error.",
}
_ALWAYS = (401, 403, 429, 500, 503)


def _route(method: str, path: str, handler: str, answer: str, *statuses: int, about: str, **more: Any) -> Route:
    """An endpoint whose errors are ARD's: those that any may have, and these. `about` describes its answer."""
    errors = {status: BodySpec(_ERRORS[status], ("ard.entries.ArdError",)) for status in sorted((*statuses, *_ALWAYS))}
    return Route(
        method=method,
        path=path,
        handler=handler,
        error_format="ard.entries.ard_error",
        tag="Agentic Resource Discovery",
        responses={200: BodySpec(about, (answer,)), **errors},
        **more,
    )


ROUTES = (
    _route(
        *("POST", "/search", "ard.endpoints.search", "ard.entries.ArdSearchAnswer", 400, 413),
        operation_id="ardSearch",
        summary="Find entries, most relevant first",
        about="The entries found.",
        request=BodySpec("", ("ard.endpoints.ArdSearch",)),
    ),
    _route(
        *("GET", "/agents", "ard.endpoints.list_entries", "ard.entries.ArdList", 400),
        operation_id="ardList",
        summary="List all entries",
        about="A page.",
        query="ard.endpoints.ArdListParameters",
    ),
    _route(
        *("GET", "/.well-known/ard.json", "ard.endpoints.manifest", "ard.entries.ArdManifest"),
        operation_id="ardManifest",
        summary="Show the address of the registry",
        about="The manifest.",
    ),
    _route(
        *("GET", "/agents/{identifier+}", "ard.endpoints.get_entry", "ard.entries.ArdEntry", 400, 404),
        operation_id="ardRetrieve",
        summary="Show one entry",
        about="The entry.",
        path_description="The whole identifier, percent-encoded.",
        path_pattern=r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$",
    ),
)
