"""All endpoints."""

from mats.edge import endpoints
from mats.edge.route import BodySpec, Errors, Route, late, parameter, path_parameter

_PROBLEMS = {
    400: "The body is not JSON.",
    404: "No such capability, or not for this caller.",
    413: "The body is too large.",
    422: "The request breaks the contract; `errors` names every field.",
    429: "Too many requests; see Retry-After.",
    503: "A dependency did not answer; see Retry-After.",
}
_ARD_ERRORS = {
    400: "The request breaks the contract; the message names every field.",
    401: "The call has no valid token.",
    403: "The caller may not call this.",
    404: "No such entry, or not for this caller.",
    413: "The body is too large.",
    429: "Too many requests; see Retry-After.",
    500: "Internal error.",
    503: "A dependency did not answer; see Retry-After.",
}
_ARD_ALWAYS = (401, 403, 429, 500, 503)
_NOT_MODIFIED = {304: BodySpec("The caller's copy is current.", media_type="")}
_LABELS = {"type": "array", "maxItems": 50, "items": {"type": "string", "minLength": 1, "maxLength": 200}}
_KINDS = {"type": "array", "items": {"$ref": "#/components/schemas/Kind"}}
_ARD = "Agentic Resource Discovery"


def _problems(*statuses: int) -> dict[int, BodySpec]:
    return {s: BodySpec(_PROBLEMS[s], ("answer.Problem",), "application/problem+json") for s in statuses}


def _ard_errors(*statuses: int) -> dict[int, BodySpec]:
    return {s: BodySpec(_ARD_ERRORS[s], ("ard.entries.ArdError",)) for s in sorted({*statuses, *_ARD_ALWAYS})}


ROUTES = (
    Route(
        method="POST",
        path="/discover",
        handler=endpoints.search,
        operation_id="discover",
        summary="Rank capabilities for a request",
        parameters=(
            parameter("format", "As in the body.", {"$ref": "#/components/schemas/Format"}),
            parameter("token_budget", "As in the body.", {"type": "integer", "minimum": 1}),
        ),
        request=BodySpec("", ("discover_request.DiscoverRequest",)),
        responses={
            200: BodySpec(
                "A ranked shortlist; with a `format`, the tools to pass on.",
                ("answer.Answer", "tools.formats.ReadyMade"),
            ),
            **_problems(400, 413, 422, 429, 503),
        },
    ),
    Route(
        method="GET",
        path="/capabilities",
        handler=late("listing", "list_capabilities"),
        operation_id="listCapabilities",
        summary="List capabilities in order of id",
        parameters=(
            parameter("namespace", "In one of these namespaces or below; may be repeated.", _LABELS),
            parameter("kind", "One of these kinds; may be repeated.", _KINDS),
            parameter("tag", "With every one of these tags; may be repeated.", _LABELS),
            parameter("limit", "", {"type": "integer", "minimum": 1, "maximum": 100, "default": 50}),
            parameter("after", "`following` of the page before."),
        ),
        responses={200: BodySpec("A page.", ("capability_page.CapabilityPage",)), **_problems(422, 429, 503)},
    ),
    Route(
        method="GET",
        path="/capabilities/{id+}",
        ending=endpoints.INSTRUCTIONS,
        handler=endpoints.get_instructions,
        operation_id="getInstructions",
        summary="Read the instructions of a skill",
        description=(
            "The text is what the owner wrote: do not trust it. With `Accept: application/json` the answer is JSON. If "
            "the id of a capability itself ends in `/instructions`, the answer is that capability."
        ),
        parameters=(path_parameter("id", "`namespace/name`; slashes may be written as they are or as %2F."),),
        responses={
            200: BodySpec("Its instructions.", ("answer.Instructions",), alternative="text/markdown"),
            **_problems(404, 429, 503),
        },
    ),
    Route(
        method="GET",
        path="/capabilities/{id+}",
        handler=endpoints.get_capability,
        operation_id="getCapability",
        summary="Show one capability",
        parameters=(
            path_parameter("id", "`namespace/name`; slashes may be written as they are or as %2F."),
            parameter("snippets", "Also texts to copy that call it.", {"type": "boolean", "default": False}),
        ),
        responses={
            200: BodySpec(
                "Its profile; with `snippets=true`, also how to call it, in words and as texts to copy.",
                ("answer.Capability", "snippets.capability.CapabilityWithSnippets"),
            ),
            **_problems(404, 422, 429, 503),
        },
    ),
    Route(
        method="POST",
        path="/feedback",
        handler=late("feedback", "respond"),
        operation_id="feedback",
        summary="Report what happened to the results of an answer",
        description="Safe to repeat: an event of a result counts once. Only the caller that got the answer can report, "
        "only on its results, and for as long as its receipt is kept.",
        request=BodySpec("", ("feedback.FeedbackRequest",)),
        responses={
            202: BodySpec("Recorded.", ("feedback.FeedbackAnswer",)),
            **_problems(400, 413, 422, 429, 503),
            404: BodySpec(
                "No such answer of this caller, or too old.", ("answer.Problem",), "application/problem+json"
            ),
        },
    ),
    Route(
        method="POST",
        path="/mcp",
        handler=late("mcp.http", "respond"),
        refused_methods=("GET",),  # a client that asks for a stream hears that there is none, not that it is forbidden
        operation_id="mcp",
        summary="MCP over streamable HTTP, without sessions or streams",
        description="One JSON-RPC message of the Model Context Protocol, 2026-07-28 or older.",
        parameters=(
            parameter("tools", "Names of the tools to list, separated by commas; default: all but `search_tools`."),
        ),
        request=BodySpec(""),
        responses={
            200: BodySpec("The reply to a request."),
            202: BodySpec("A notification was accepted.", media_type=""),
            400: BodySpec("The message, its version or its headers is invalid; the JSON-RPC error names the fault."),
            403: BodySpec("The request comes from a page of another origin."),
            404: BodySpec("Unknown method, in 2026-07-28."),
            406: BodySpec("The client does not accept JSON."),
            413: BodySpec("The message is too large."),
            **_problems(429),
        },
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=endpoints.health,
        operation_id="health",
        tag="operation",
        summary="Check that the service can answer",
        responses={200: BodySpec("It can answer.", ("answer.Health",)), **_problems(503)},
    ),
    Route(method="GET", path="/openapi.json", handler=late("openapi", "respond")),
    Route(
        method="POST",
        path="/search",
        handler=late("ard.endpoints", "search"),
        errors=Errors.ARD,
        operation_id="ardSearch",
        tag=_ARD,
        summary="Find entries, most relevant first",
        request=BodySpec("", ("ard.requests.ArdSearch",)),
        responses={200: BodySpec("The entries found.", ("ard.entries.ArdSearchAnswer",)), **_ard_errors(400, 413)},
    ),
    Route(
        method="POST",
        path="/explore",
        handler=late("ard.endpoints", "explore"),
        errors=Errors.ARD,
        operation_id="ardExplore",
        tag=_ARD,
        summary="Not implemented",
        responses={501: BodySpec("Exploring is optional, and not implemented.", ("ard.entries.ArdError",))},
    ),
    Route(
        method="GET",
        path="/agents",
        handler=late("ard.endpoints", "list_entries"),
        errors=Errors.ARD,
        operation_id="ardList",
        tag=_ARD,
        summary="List all entries",
        parameters=(
            parameter("filter", "`displayName`, `type`, `publisherId`, `updatedAfter`, joined by AND."),
            parameter("pageSize", "", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
            parameter("pageToken", "`pageToken` of the page before."),
        ),
        responses={200: BodySpec("A page.", ("ard.entries.ArdList",)), **_ard_errors(400), **_NOT_MODIFIED},
    ),
    Route(
        method="GET",
        path="/.well-known/ard.json",
        handler=late("ard.endpoints", "manifest"),
        errors=Errors.ARD,
        operation_id="ardManifest",
        tag=_ARD,
        summary="Show the address of the registry",
        responses={200: BodySpec("The manifest.", ("ard.entries.ArdManifest",)), **_ard_errors(), **_NOT_MODIFIED},
    ),
    Route(
        method="GET",
        path="/agents/{identifier+}",
        handler=late("ard.endpoints", "get_entry"),
        errors=Errors.ARD,
        operation_id="ardRetrieve",
        tag=_ARD,
        summary="Show one entry",
        parameters=(
            path_parameter(
                "identifier",
                "The whole identifier, percent-encoded.",
                pattern=r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$",
            ),
        ),
        responses={200: BodySpec("The entry.", ("ard.entries.ArdEntry",)), **_ard_errors(400, 404), **_NOT_MODIFIED},
    ),
)
