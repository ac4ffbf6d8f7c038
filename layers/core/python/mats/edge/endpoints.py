"""The endpoints of our own API."""

from typing import TYPE_CHECKING

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, InstructionsNotFound, RequestInvalid
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import spell_out
from mats.edge.answer import Answer, Capability, Instructions
from mats.edge.app import Application
from mats.edge.caller import Caller
from mats.edge.discover_request import DiscoverRequest
from mats.edge.http import Request, Response, json_response

if TYPE_CHECKING:
    from mats.edge.tools.formats import ReadyMade


INSTRUCTIONS = "/instructions"
_AS_TEXT = {"Content-Type": "text/markdown; charset=utf-8", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}


def search(application: Application, request: Request) -> Response:
    """`POST /discover`."""
    wish = DiscoverRequest.of(request.json(), request.query)
    return json_response(search_answer(application, request.caller, wish))


def search_answer(application: Application, caller: Caller, wish: DiscoverRequest) -> "Answer | ReadyMade":
    """The answer to a search: results, or tools if the request names a `format`. Raises as `Application.search`."""
    if wish.format and wish.min_relevance is None:
        wish = wish.model_copy(update={"min_relevance": "weak"})
    shortlist = application.search(caller, wish)
    if wish.format is None:
        return Answer.of(shortlist)
    from mats.edge.tools.formats import ReadyMade  # noqa: PLC0415 - few requests want tools; cold starts count

    return ReadyMade.of(shortlist, wish.format, wish.token_budget)


def get_capability(application: Application, request: Request) -> Response:
    """`GET /capabilities/{id}`."""
    id = Id(request.decoded_path.removeprefix("/capabilities/"))
    return _answer_of(application, application.get_or_suggest(request.caller, id), request)


def _answer_of(application: Application, profile: Profile, request: Request) -> Response:
    internal_details = request.caller.sees_internal_errors
    reliability = application.reliability(request.caller, profile)
    if not _is_true(request, "snippets"):
        return json_response(Capability.of(profile, internal_details=internal_details, reliability=reliability))
    from mats.edge.snippets.capability import CapabilityWithSnippets  # noqa: PLC0415 - cold starts count

    return json_response(
        CapabilityWithSnippets.with_snippets(profile, internal_details=internal_details, reliability=reliability)
    )


def _is_true(request: Request, name: str) -> bool:
    """The value of a query parameter that is `true` or `false`."""
    match list(request.query.get(name, ())):
        case [] | ["false"]:
            return False
        case ["true"]:
            return True
    raise RequestInvalid([Fault(name, "must be `true` or `false`")])


def get_instructions(application: Application, request: Request) -> Response:
    """`GET /capabilities/{id}/instructions`, or a capability whose own id ends so."""
    id = request.decoded_path.removeprefix("/capabilities/")
    try:
        return _answer_of(application, application.get(request.caller, Id(id)), request)
    except CapabilityNotFound:
        profile = application.get(request.caller, Id(id.removesuffix(INSTRUCTIONS)))
    if not profile.instructions:
        raise InstructionsNotFound(profile.id)
    answer = Instructions.of(profile)
    if "application/json" in (request.header("Accept") or ""):
        return json_response(answer)
    return Response(200, spell_out(answer.instructions), _AS_TEXT)


def health(application: Application, request: Request) -> Response:
    """`GET /healthz`."""
    return json_response(application.health())
