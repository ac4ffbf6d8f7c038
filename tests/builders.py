"""Valid things to start from; a test names only what it is about."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mats.bootstrap.policies import policies_of
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.policies.policy import Policy
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Enrichment, Profile, profile_of
from mats.domain.search.blend import Opinion, Scoring, TrustRule
from mats.domain.search.candidate import Candidate, Result
from mats.domain.search.query import Query
from mats.domain.search.scale import Scale
from mats.domain.search.shortlist import Ranked, Shortlist
from mats.domain.search.signals import PAPER_WEIGHTS
from mats.domain.search.trace import Trace
from mats.domain.search.verdict import Thresholds, Verdict, VerdictThresholds
from mats.ports import Encoder, LanguageBound, Reranker, SearchIndex
from mats.usecases.discover import Discover
from mats.usecases.rerank import Rerank
from mats.usecases.stages import CircuitBreaker, Stages
from tests.fakes import AtOnce, CountingIds, FakeClock

SCORING = Scoring(
    scale=Scale(c=0.5, lo=0.0, hi=1.0), weights=PAPER_WEIGHTS, trust=TrustRule(prior=50, proportional=True)
)


def an_item(**overrides: Any) -> dict[str, Any]:
    """A Registry item as an owner writes it; an attribute set to None counts as absent."""
    return {
        "namespace": "com.acme.pay",
        "name": "refund_payment",
        "kind": "tool",
        "description": "Gives money back to the card it came from.",
        **overrides,
    }


def a_registration(**overrides: Any) -> Registration:
    """A valid registration."""
    return Registration.parse(an_item(**overrides))


def a_profile(
    *,
    trust: int | None = None,
    verified: str = "",
    origin: str = "",
    enrichment: Enrichment | None = None,
    notes: tuple[str, ...] = (),
    **overrides: Any,
) -> Profile:
    """The profile of a registration with these overrides: raw, unless an enrichment is given.

    `verified` is the provider verified for its namespace.
    """
    assigned = Assigned(trust=trust, provider=verified)
    return profile_of(a_registration(**overrides), assigned=assigned, origin=origin, enrichment=enrichment, notes=notes)


def an_earlier_profile(*, input_schema: dict[str, Any] | None = None, **shown: Any) -> Profile:
    """A profile with attributes that releases before decision 0038 accepted and registrations now refuse."""
    refused = {key: shown.pop(key) for key in _REFUSED & shown.keys()}
    refused |= {key: tuple(refused[key]) for key in ("tags", "type_tags") if key in refused}
    schema = {"input_schema": json.dumps(input_schema, ensure_ascii=False)} if input_schema else {}
    return a_profile(**shown).model_copy(update={**refused, **schema}).seal()


_REFUSED = frozenset({"name", "endpoint", "version", "provider", "tags", "type_tags"})


def a_discover(
    index: SearchIndex,
    *,
    encoder: Encoder | None = None,
    reranker: Reranker | None = None,
    k: int = 15,
    breakers: Mapping[str, CircuitBreaker] = MappingProxyType({}),
    policies: Sequence[Policy] | None = None,
    **stages: Any,
) -> Discover:
    """The online path over an index, in one thread; `stages` are fields of `Stages`.

    Without `policies`, it has those that need no more than the index.
    """
    clock = stages.get("clock", FakeClock())
    own = {"encode": CircuitBreaker(), "rerank": CircuitBreaker(), **breakers}
    usual = policies_of(unrated=50)
    return Discover(
        index=index,
        encoder=encoder,
        language=encoder if isinstance(encoder, LanguageBound) else None,
        k=k,
        rerank=Rerank(reranker=reranker),
        policies=usual if policies is None else policies,
        stages=Stages(
            **{
                "clock": clock,
                "executor": AtOnce(),
                "models": {"encode": AtOnce(), "rerank": AtOnce()},
                "breakers": own,
                "concurrent": False,
                **stages,
            }
        ),
        scoring=SCORING,
        thresholds=VerdictThresholds(
            reranked=Thresholds(match=0.7, weak=0.4),
            hybrid=Thresholds(match=0.6, weak=0.3),
            lexical=Thresholds(match=0.6, weak=0.3),
        ),
        ids=CountingIds(),
    )


def rank(
    candidates: Sequence[Candidate],
    scores: Mapping[Id, float] = MappingProxyType({}),
    *policies: Policy,
    scoring: Scoring | None = None,
    intent: str | None = None,
) -> tuple[Result, ...]:
    """The candidates blended, then arranged by these policies; `scores` are the reranker's."""
    ranked = Ranked.of(candidates, Opinion(scores, intent), scoring or SCORING, Thresholds(match=0.7, weak=0.1))
    for policy in policies:
        ranked = policy.arrange(ranked)
    return tuple(ranked.results)


def a_shortlist(
    *profiles: Profile, shown: int | None = None, verdict: Verdict = Verdict.MATCH, **trace: Any
) -> Shortlist:
    """An answer that ranks these profiles in this order and shows the first of them, by default all."""
    ranked = tuple(
        Result(
            candidate=Candidate(profile=one, bm25=1.0, cosine=None), score=0.5, signals={}, weights={}, relevance=0.5
        )
        for one in profiles
    )
    return Shortlist(
        query_id="q", query=Query(query="refund"), verdict=verdict, intent=None, ranked=ranked,
        shown=len(ranked) if shown is None else shown, trace=Trace(index="memory", **trace),
    )  # fmt: skip
