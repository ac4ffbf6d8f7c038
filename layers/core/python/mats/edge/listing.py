"""`GET /capabilities`: the registry page by page, as far as the caller may see it."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field

from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Filter, Label
from mats.edge.app import Application
from mats.edge.caller import Caller
from mats.edge.capability_page import CapabilityPage, ListedCapability
from mats.edge.http import Request, Response, json_response

MAX_PAGE = 100
_REPEATABLE = ("kind", "namespace", "tag")


class ListRequest(RequestModel):
    """The parameters of a page."""

    kind: tuple[Kind, ...] = ()
    namespace: Annotated[tuple[Label, ...], Field(max_length=50)] = ()
    tag: Annotated[tuple[Label, ...], Field(max_length=50)] = ()
    after: Annotated[str, Field(max_length=2_000)] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50

    @classmethod
    def of(cls, parameters: Mapping[str, Sequence[str]]) -> Self:
        """Parse a query string.

        Raises:
            RequestInvalid: with every fault.
        """
        repeated = [name for name, values in parameters.items() if len(values) > 1 and name not in _REPEATABLE]
        if repeated:
            raise RequestInvalid([Fault(name, "is given more than once: give it once") for name in sorted(repeated)])
        single: dict[str, Any] = {
            name: list(values) if name in _REPEATABLE else values[0] for name, values in parameters.items() if values
        }
        return cls.parse(single)

    @property
    def filter(self) -> Filter:
        """The filter without the caller's audiences."""
        return Filter(frozenset(self.kind), frozenset(self.namespace), frozenset(self.tag))


def list_capabilities(application: Application, request: Request) -> Response:
    """`GET /capabilities`."""
    return json_response(page_of(application, request.caller, ListRequest.of(request.query)))


def page_of(application: Application, caller: Caller, wish: ListRequest) -> CapabilityPage:
    """A page in order of id. Raises as `Application.browse`."""
    after = Id(wish.after) if wish.after else None
    page = application.browse(caller, wish.filter, _every, after=after, limit=wish.limit)
    return CapabilityPage(
        capabilities=[ListedCapability.of(profile) for profile in page.profiles], following=page.following
    )


def _every(profile: Profile) -> bool:
    return True
