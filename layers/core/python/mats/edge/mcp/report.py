"""The MCP tool that reports outcomes."""

from typing import Annotated, Any

from pydantic import Field

from mats.domain.learning.outcome import Event
from mats.edge.caller import Caller
from mats.edge.feedback import FeedbackRequest, FeedbackService, require
from mats.edge.mcp.arguments import Arguments

DESCRIPTION = (
    "Report what came of a result that you used, or what you needed and did not find (`missing`), so that later "
    "answers are better."
)


class ReportArguments(Arguments):
    """Arguments of `report_outcome`."""

    query_id: Annotated[str, Field(min_length=1)]
    id: str = ""
    event: Event | None = None
    missing: str = ""


def report(service: FeedbackService | None, caller: Caller, arguments: Any) -> dict[str, Any]:
    """Record one outcome, or what was missing. Raises as `FeedbackService`."""
    wish = ReportArguments.parse(arguments)
    given = {"id": wish.id, "event": wish.event}
    outcomes = [{name: value for name, value in given.items() if value}] if wish.id or wish.event else []
    request = {"query_id": wish.query_id, "outcomes": outcomes, "missing": wish.missing or None}
    return require(service)(caller, FeedbackRequest.parse(request)).model_dump()
