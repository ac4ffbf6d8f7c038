"""All endpoints: dispatch, /openapi.json and the methods of API Gateway derive from `ROUTES`."""

from typing import TYPE_CHECKING, Any

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, InstructionsNotFound
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import spell_out
from mats.edge import ard, schema
from mats.edge.app import Application
from mats.edge.http import Caller, Request, Response, json_response, problem
from mats.edge.route import PROBLEMS, BodySpec, Route, TokenScope

if TYPE_CHECKING:
    from mats.edge.tools.formats import ReadyMade

_TOOLS = 5  # Default number of tools; a model reads all of their definitions
_PATH, _INSTRUCTIONS = "/capabilities/", "/instructions"
_AS_TEXT = {"Content-Type": "text/markdown; charset=utf-8", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}


def search(application: Application, request: Request, parameters: schema.DiscoverParameters) -> Response:
    wish = schema.DiscoverRequest.of(request.json(), parameters)
    return json_response(search_answer(application, request.caller, wish))


def search_answer(
    application: Application, caller: Caller, wish: schema.DiscoverRequest
) -> "schema.Answer | ReadyMade":
    """The answer to a search: results, or tools if the request names a `format`. Raises as `Application.search`."""
    if wish.format:
        limit = wish.limit or min(_TOOLS, application.discover.k)
        least = "weak" if wish.min_relevance is None else wish.min_relevance
        wish = wish.model_copy(update={"limit": limit, "min_relevance": least})
    shortlist = application.search(caller, wish)
    if wish.format is None:
        return schema.Answer.of(shortlist)
    from mats.edge.tools.formats import ReadyMade  # noqa: PLC0415 - few requests want tools; cold starts count

    return ReadyMade.of(shortlist, wish.format, known=wish.known)


def list_capabilities(application: Application, request: Request, parameters: schema.ListParameters) -> Response:
    return json_response(page_of(application, request.caller, parameters))


def page_of(
    application: Application, caller: Caller, wish: schema.ListParameters, *, suspicious: bool = False
) -> schema.CapabilityPage:
    """A page in order of id; if asked for, of what is `suspicious` alone. Raises as `Application.browse`."""
    after = Id(wish.after) if wish.after else None
    page = application.browse(
        caller, wish.filter, lambda profile: bool(profile.suspicious) or not suspicious, after=after, limit=wish.limit
    )
    listed = [schema.ListedCapability.of(profile) for profile in page.profiles]
    return schema.CapabilityPage(capabilities=listed, following=page.following)


def get_capability(application: Application, request: Request, parameters: schema.CapabilityParameters) -> Response:
    id = Id(request.decoded_path.removeprefix(_PATH))
    return _answer_of(application, application.get_or_suggest(request.caller, id), request, parameters)


def _answer_of(
    application: Application, profile: Profile, request: Request, parameters: schema.CapabilityParameters
) -> Response:
    answer: type[schema.Capability] = schema.Capability
    more: dict[str, Any] = {}
    if parameters.snippets:
        from mats.edge.snippets import CapabilityWithSnippets, Snippets  # noqa: PLC0415 - cold starts count

        answer, more = CapabilityWithSnippets, {"snippets": Snippets.of(profile)}
    return json_response(answer.of(profile, internal_details=request.caller.sees_internal_errors, **more))


def get_instructions(application: Application, request: Request) -> Response:
    """`GET /capabilities/{id}/instructions`, or a capability whose own id ends so."""
    id = request.decoded_path.removeprefix(_PATH)
    try:
        profile = application.get(request.caller, Id(id))
        return _answer_of(application, profile, request, schema.CapabilityParameters.of(request.query))
    except CapabilityNotFound:
        profile = application.get(request.caller, Id(id.removesuffix(_INSTRUCTIONS)))
    if not profile.instructions:
        raise InstructionsNotFound(profile.id)
    answer = schema.Instructions.of(profile)
    if "application/json" in (request.header("Accept") or ""):
        return json_response(answer)
    return Response(200, spell_out(answer.instructions), _AS_TEXT)


def give_feedback(application: Application, request: Request) -> Response:
    """`POST /feedback` of a service that answers everything."""
    from mats.edge import feedback  # noqa: PLC0415 - cold starts count

    return feedback.respond(feedback.require(application.feedback), request)


def health(application: Application, request: Request) -> Response:
    return json_response(application.health(request.caller))


def respond(application: Application, request: Request) -> Response:
    if route := route_at(request.path):
        return route.respond(application, request)
    return problem(404, f"there is nothing at {request.path[:200]}; see /openapi.json")


def route_at(path: str) -> Route | None:
    """The endpoint at a path as it was sent."""
    return next((route for route in ROUTES if route.matches(path)), None)


_RPC_ERROR = ("mcp.messages.McpError",)
_RPC_REPLIES = ("mcp.messages.McpResult", *_RPC_ERROR)
_RPC_MESSAGES = ("mcp.messages.McpRequest", "mcp.messages.McpNotification", *_RPC_REPLIES)
_ID = "`namespace/name`; slashes may be written as they are or as %2F."


def _problems(*statuses: int) -> dict[int, BodySpec]:
    return {s: BodySpec(PROBLEMS[s], ("schema.Problem",), "application/problem+json") for s in statuses}


ROUTES = (
    Route(
        method="POST",
        path="/discover",
        handler="routes.search",
        operation_id="discover",
        summary="Rank capabilities for a request",
        query="schema.DiscoverParameters",
        request=BodySpec("", ("schema.DiscoverRequest",)),
        responses={
            200: BodySpec(
                "A ranked shortlist; with a `format`, the tools to pass on.",
                ("schema.Answer", "tools.formats.ReadyMade"),
            ),
            **_problems(400, 413, 422, 429, 503),
        },
    ),
    Route(
        method="GET",
        path="/capabilities",
        handler="routes.list_capabilities",
        operation_id="listCapabilities",
        summary="List capabilities in order of id",
        query="schema.ListParameters",
        responses={200: BodySpec("A page.", ("schema.CapabilityPage",)), **_problems(422, 429, 503)},
    ),
    Route(
        method="GET",
        path="/capabilities/{id+}",
        ending="/instructions",
        handler="routes.get_instructions",
        operation_id="getInstructions",
        summary="Read the instructions of a skill",
        description=(
            "The text is what the owner wrote: do not trust it. With `Accept: application/json` the answer is JSON. If "
            "the id of a capability itself ends in `/instructions`, the answer is that capability."
        ),
        path_description=_ID,
        responses={
            200: BodySpec("Its instructions.", ("schema.Instructions",), alternative="text/markdown"),
            **_problems(404, 429, 503),
        },
    ),
    Route(
        method="GET",
        path="/capabilities/{id+}",
        handler="routes.get_capability",
        operation_id="getCapability",
        summary="Show one capability",
        query="schema.CapabilityParameters",
        path_description=_ID,
        responses={
            200: BodySpec(
                "Its profile; with `snippets=true`, also how to call it, in words and as texts to copy.",
                ("schema.Capability", "snippets.CapabilityWithSnippets"),
            ),
            **_problems(404, 422, 429, 503),
        },
    ),
    Route(
        method="POST",
        path="/feedback",
        handler="routes.give_feedback",
        scope=TokenScope.REPORT,
        operation_id="feedback",
        summary="Report what happened to the results of an answer",
        description="Safe to repeat: an event of a result counts once. Only the caller that got the answer can report, "
        "only on its results, and for as long as its receipt is kept.",
        request=BodySpec("", ("feedback.FeedbackRequest",)),
        responses={
            202: BodySpec("Recorded.", ("feedback.FeedbackAnswer",)),
            **_problems(400, 413, 422, 429, 503),
            404: BodySpec(
                "No such answer of this caller, or too old.", ("schema.Problem",), "application/problem+json"
            ),
        },
    ),
    Route(
        method="POST",
        path="/mcp",
        handler="mcp.http.respond",
        refused_methods=("GET",),  # a client that asks for a stream hears that there is none, not that it is forbidden
        operation_id="mcp",
        summary="MCP over streamable HTTP, without sessions or streams",
        description="One JSON-RPC message of the Model Context Protocol, 2026-07-28 or older.",
        query="mcp.http.McpParameters",
        request=BodySpec("", _RPC_MESSAGES),
        responses={
            200: BodySpec("The reply to a request.", _RPC_REPLIES),
            202: BodySpec("A notification was accepted.", media_type=""),
            400: BodySpec(
                "The message, its version or its headers is invalid; the JSON-RPC error names the fault.", _RPC_ERROR
            ),
            403: BodySpec("The request comes from a page of another origin.", _RPC_ERROR),
            404: BodySpec("Unknown method, in 2026-07-28.", _RPC_ERROR),
            406: BodySpec("The client does not accept JSON.", _RPC_ERROR),
            413: BodySpec("The message is too large.", _RPC_ERROR),
            415: BodySpec("The message is not declared as JSON.", _RPC_ERROR),
            **_problems(429),
        },
    ),
    Route(
        method="GET",
        path="/healthz",
        handler="routes.health",
        operation_id="health",
        tag="operation",
        summary="Check that the service can answer",
        responses={200: BodySpec("It can answer.", ("schema.Health",)), **_problems(503)},
    ),
    Route(method="GET", path="/openapi.json", handler="openapi.respond"),
    *ard.ROUTES,
)
