"""Rank what a caller cannot call with what it holds behind what is as good a match."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mats.domain.policies.policy import Ask, Policy, Pool
from mats.domain.profile.profile import Profile
from mats.domain.protocols.authentication import AuthScheme, auth_from_list
from mats.domain.protocols.descriptors import READS
from mats.domain.search.candidate import Exactness, Result
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.query import Holds as Held
from mats.domain.search.shortlist import Ranked
from mats.domain.search.verdict import Verdict

_GRADES = (Verdict.NONE, Verdict.WEAK, Verdict.MATCH)


@dataclass(frozen=True)
class Holds(Policy):
    """Callers say what they hold; where they ask for it, what needs more is left out, with the reason."""

    name: ClassVar = "holds"

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Held | None:
        return ask.holds

    def choose(self, pool: Pool, evidence: Held | None) -> Pool:
        if evidence is None:
            return pool
        unfit = {each.id: why for each in pool.profiles if (why := lacks(each, evidence))}
        if evidence.leave_out:
            return pool.without(unfit)
        for id, why in unfit.items():
            pool = pool.mark([id], unfit=why)
        return pool

    def arrange(self, ranked: Ranked) -> Ranked:
        """Each unfit one behind the last fit one that is as good a match; the others keep their order."""
        order = list(ranked.results)

        def grade(result: Result) -> int:
            """Ids and what was taught are better than any match."""
            exact = result.candidate.marks.exact in (Exactness.ID, Exactness.TAUGHT)
            return len(_GRADES) if exact else _GRADES.index(ranked.thresholds.verdict(result.relevance))

        for result in [each for each in reversed(order) if each.unfit]:
            place, own = order.index(result), grade(result)
            equals = [n for n in range(place + 1, len(order)) if not order[n].unfit and grade(order[n]) >= own]
            if equals:
                order.insert(equals[-1], order.pop(place))
        return ranked.with_results(order)


def lacks(profile: Profile, holds: Held) -> str:
    """Why a caller that holds this cannot call a capability; empty if nothing is known against it."""
    call: Mapping[str, Any] = json.loads(profile.invocation or "{}")
    if not call:
        return "its owner gave no way to call it"
    ways = [call["protocol"], *filter(None, [call.get("transport")])]
    if holds.transports is not None and not {*ways} & {*holds.transports}:
        return f"is called over {'/'.join(ways)}"
    if holds.read_only and READS not in profile.effects:
        return "is not said to be read-only"
    return "" if holds.auth is None else _lacks_auth(call, profile, holds.auth)


def _lacks_auth(call: Mapping[str, Any], profile: Profile, auth: Sequence[str]) -> str:
    split = (one.partition("@") for one in auth)
    here = f"{profile.namespace}."
    held = {scheme for scheme, sign, place in split if not sign or here.startswith(f"{place}.")}
    needed = _options(auth_from_list(call.get("auth")))
    if not any(option <= held for option in needed):
        return f"needs {' or '.join(' and '.join(sorted(option)) for option in needed)}"
    return ""


def _options(auth: Sequence[AuthScheme]) -> list[frozenset[str]]:
    """The schemes of each alternative; one without any, if none is needed."""
    numbers: list[int | None] = [*dict.fromkeys(each.option for each in auth if each.option is not None)] or [None]
    return [frozenset(each.scheme for each in auth if each.option in (None, number)) - {"none"} for number in numbers]
