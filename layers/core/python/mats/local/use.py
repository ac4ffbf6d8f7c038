"""The report of use: what became of each capability in the answers of the last days, and what nothing served."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.learning.use import GivenAnswer, unserved_requests, use_by_id
from mats.domain.profile.profile import Status
from mats.domain.search.query import Filter
from mats.domain.text.words import clip
from mats.edge.schema import WHOLE, Parameters

_MOST = 10_000  # Answers that are read, the latest
_RIVALS, _TEXT = 3, 200  # Of a capability, those it lost most to; characters of a text


class UseQuery(Parameters):
    """A report over the last `days`, for an owner in these audiences; with none, for an operator."""

    days: Annotated[int, WHOLE, Field(ge=1, le=3650)] = 30
    audience: tuple[str, ...] = ()
    limit: Annotated[int, WHOLE, Field(ge=1, le=1_000)] = 100  # Of capabilities, and of requests


def report_use(local: LocalSystem, query: UseQuery) -> dict[str, Any]:
    """The registered capabilities, most asked for first, and the requests that nothing served, most frequent first.

    An owner sees the capabilities that are visible to its audiences, and requests whose callers were in no others.
    Raises DependencyFailed: the file cannot be used.
    """
    stores, audiences = local.stores, frozenset(query.audience)
    if stores.receipts:
        stores.receipts.flush()
    since = (datetime.fromisoformat(local.clock.now()) - timedelta(days=query.days)).isoformat(timespec="seconds")
    receipts = stores.receipt_log.since(since, most=_MOST)
    answers = [GivenAnswer(receipt=each, reported=stores.outcomes.of(each.query_id)) for each in receipts]
    uses, filter_ = use_by_id(answers), Filter(audiences=audiences)
    visible = {
        stored.profile.id
        for stored in stores.profiles.get([*{*uses, *(each.nearest for each in receipts if each.nearest)}]).values()
        if stored.profile.status is not Status.DELETED and (not audiences or filter_.sees(stored.profile.visible_to))
    }

    def visible_id(id: Id | None) -> Id | None:
        return id if id in visible else None

    rows = sorted((id for id in uses if id in visible), key=lambda id: (-uses[id].asked, id))
    requests = unserved_requests(each for each in answers if not audiences or each.receipt.audiences <= audiences)
    return {
        "days": query.days,
        "answers": len(answers),
        "capabilities": [
            {
                "id": id,
                **{name: getattr(uses[id], name) for name in ("asked", "shown", "first", "chosen", "succeeded")},
                "lost_to": [
                    {"id": visible_id(rival), "answers": count}
                    for rival, count in uses[id].lost_to.most_common(_RIVALS)
                    if rival in visible or not audiences
                ],
            }
            for id in rows[: query.limit]
        ],
        "more": max(0, len(rows) - query.limit),
        "unserved": [
            {
                "text": clip(one.text, _TEXT),
                "requests": one.requests,
                "last": one.last,
                "nearest": visible_id(one.nearest),
            }
            for one in requests[: query.limit]
        ],
        "more_unserved": max(0, len(requests) - query.limit),
    }
