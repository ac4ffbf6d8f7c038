"""The endpoints of our own API."""

from typing import TYPE_CHECKING

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, InstructionsNotFound
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import spell_out
from mats.edge.answers import Answer, Capability, CapabilityPage, Instructions, ListedCapability
from mats.edge.app import Application
from mats.edge.http import Caller, Request, Response, json_response
from mats.edge.requests import CapabilityParameters, DiscoverParameters, DiscoverRequest, ListParameters

if TYPE_CHECKING:
    from mats.edge.tools.formats import ReadyMade

_TOOLS = 5
"""Default number of tools; a model reads all of their definitions."""
_PATH, _INSTRUCTIONS = "/capabilities/", "/instructions"
_AS_TEXT = {"Content-Type": "text/markdown; charset=utf-8", "X-Content-Type-Options": "nosniff", "Vary": "Accept"}


def search(application: Application, request: Request, parameters: DiscoverParameters) -> Response:
    wish = DiscoverRequest.of(request.json(), parameters)
    return json_response(search_answer(application, request.caller, wish))


def search_answer(application: Application, caller: Caller, wish: DiscoverRequest) -> "Answer | ReadyMade":
    """The answer to a search: results, or tools if the request names a `format`. Raises as `Application.search`."""
    if wish.format:
        limit = wish.limit or min(_TOOLS, application.discover.retrieve.k)
        least = "weak" if wish.min_relevance is None else wish.min_relevance
        wish = wish.model_copy(update={"limit": limit, "min_relevance": least})
    shortlist = application.search(caller, wish)
    if wish.format is None:
        return Answer.of(shortlist)
    from mats.edge.tools.formats import ReadyMade  # noqa: PLC0415 - few requests want tools; cold starts count

    return ReadyMade.of(shortlist, wish.format, wish.token_budget)


def list_capabilities(application: Application, request: Request, parameters: ListParameters) -> Response:
    return json_response(page_of(application, request.caller, parameters))


def page_of(application: Application, caller: Caller, wish: ListParameters) -> CapabilityPage:
    """A page in order of id. Raises as `Application.browse`."""
    after = Id(wish.after) if wish.after else None
    page = application.browse(caller, wish.filter, lambda profile: True, after=after, limit=wish.limit)
    listed = [ListedCapability.of(profile) for profile in page.profiles]
    return CapabilityPage(capabilities=listed, following=page.following)


def get_capability(application: Application, request: Request, parameters: CapabilityParameters) -> Response:
    id = Id(request.decoded_path.removeprefix(_PATH))
    return _answer_of(application, application.get_or_suggest(request.caller, id), request, parameters)


def _answer_of(
    application: Application, profile: Profile, request: Request, parameters: CapabilityParameters
) -> Response:
    internal_details = request.caller.sees_internal_errors
    reliability = application.reliability(request.caller, profile)
    if not parameters.snippets:
        return json_response(Capability.of(profile, internal_details=internal_details, reliability=reliability))
    from mats.edge.snippets.capability import CapabilityWithSnippets, Snippets  # noqa: PLC0415 - cold starts count

    snippets = Snippets.of(profile)
    shown = CapabilityWithSnippets.of(
        profile, internal_details=internal_details, reliability=reliability, snippets=snippets
    )
    return json_response(shown)


def get_instructions(application: Application, request: Request) -> Response:
    """`GET /capabilities/{id}/instructions`, or a capability whose own id ends so."""
    id = request.decoded_path.removeprefix(_PATH)
    try:
        profile = application.get(request.caller, Id(id))
        return _answer_of(application, profile, request, CapabilityParameters.of(request.query))
    except CapabilityNotFound:
        profile = application.get(request.caller, Id(id.removesuffix(_INSTRUCTIONS)))
    if not profile.instructions:
        raise InstructionsNotFound(profile.id)
    answer = Instructions.of(profile)
    if "application/json" in (request.header("Accept") or ""):
        return json_response(answer)
    return Response(200, spell_out(answer.instructions), _AS_TEXT)


def give_feedback(application: Application, request: Request) -> Response:
    """`POST /feedback` of a service that answers everything."""
    from mats.edge import feedback  # noqa: PLC0415 - cold starts count

    return feedback.respond(feedback.require(application.feedback), request)


def health(application: Application, request: Request) -> Response:
    return json_response(application.health())
