"""Answer a request with ranked capabilities: find k by words and vectors, rerank once, blend. Nothing is invoked."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.learning.outcome import asking
from mats.domain.policies.policy import Ask, Order, Policy, Pool
from mats.domain.profile.index_fields import pairs_found
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import UNMARKED, Candidate
from mats.domain.search.lookups import Vector, fetch_admitted, search_both
from mats.domain.search.query import ANYWHERE, Filter, Query, Scope
from mats.domain.search.scale import LEXICAL_SHARE, best_first, fuse
from mats.domain.search.shortlist import Ranked, Shortlist, Steps, present
from mats.domain.search.trace import CalibrationSource, Trace
from mats.domain.search.verdict import VerdictThresholds
from mats.domain.text.words import pairs
from mats.ports import Encoder, Ids, LanguageBound, SearchIndex
from mats.usecases.found import Found, Hits, check_sides, find_each, merge_measured, merge_pools
from mats.usecases.receipts import LeaveReceipt
from mats.usecases.rerank import Rerank
from mats.usecases.stages import Run, Stage, Stages

_FOREIGN = "the encoder does not read the language of this query: results are found by its words, little by meaning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discover:
    """The paper's pipeline (sections 3.1 to 3.3); what was added to it is in `policies`.

    What fails or is late is left out, and the answer is marked as degraded.
    """

    index: SearchIndex
    encoder: Encoder | None
    rerank: Rerank
    policies: Sequence[Policy]
    scoring: Scoring
    thresholds: VerdictThresholds
    stages: Stages
    ids: Ids
    calibration: CalibrationSource | None = None
    language: LanguageBound | None = None  # Tells what the encoder reads
    k: int = 15  # Candidates
    depth: int = 200  # Hits of each side that are fused
    window: int = 60  # The first hits, among which candidates are found

    def answer(
        self,
        query: Query,
        audiences: Collection[str] = (),
        scope: Scope = ANYWHERE,
        *,
        caller: str = "",
        request_id: str = "",
        receipts: LeaveReceipt | None = None,
    ) -> Shortlist:
        """Rank the capabilities visible to a caller in these audiences.

        The caller's own reports count more than those of others. `request_id` is for the log of the reranker's calls.
        Without `receipts`, the answer leaves none.

        Raises:
            RequestInvalid: `limit` exceeds the number of candidates.
            DependencyFailed: neither side of retrieval answered.
        """
        limit = query.limit or self.k
        if limit > self.k:
            raise RequestInvalid([Fault("limit", f"must be at most {self.k}, the number of candidates")])
        run, query_id = self.stages.begin(self._trace()), self.ids()
        found = self._find(query, Filter.of(query, audiences, scope), asking(caller), run)
        complete = receipts.begin(query_id, query, found, caller, audiences, run) if receipts else None
        judge = self.rerank.begin(query.text, found.profiles, run, {"query_id": query_id, "request_id": request_id})
        candidates, steps = self._measure(found, run)
        opinion = judge()
        understood = found.may_have_terms or self.language is None or self.language.has_words(query.text)
        thresholds = self.thresholds.of(
            reranked=bool(opinion.scores), compared=found.has_cosines, understood=understood
        )
        ranked = Ranked.of(candidates, opinion, self.scoring, thresholds)
        for policy in self.policies:
            ranked = policy.arrange(ranked)
        excluded, intent = found.pool.excluded, opinion.intent
        shortlist = present(query_id, query, ranked, steps, excluded, limit=limit, intent=intent, trace=run.trace)
        run.end()
        return complete(shortlist) if complete else shortlist

    def _trace(self) -> Trace:
        encoder, reranker = self.encoder, self.rerank.reranker
        return Trace(
            index=self.index.name,
            encoder=encoder.name if encoder else None,
            reranker=reranker.name if reranker else None,
            prompt=reranker.prompt if reranker else None,
            calibration=self.calibration,
            without=[] if encoder else ["neural"],
        )

    def _find(self, query: Query, admitted: Filter, caller: str, run: Run) -> Found:
        """The candidates of a request. Raises DependencyFailed: none of its texts could be searched."""
        now_s = datetime.fromisoformat(self.stages.clock.now()).timestamp()

        def find(text: str, own: Run) -> Hits:
            return self._search(Ask.of(text, admitted, now_s=now_s, caller=caller, holds=query.holds), own)

        with run.turn():
            if len(query.texts) == 1:
                hits = find(query.text, run)
                return Found(texts=query.texts, hits=[hits], pool=hits.pool)
            every = find_each(query.texts, find, run)
        first = next(hits for hits in every if hits)
        profiles, marks = merge_pools(every, self.window)
        pool = replace(first.pool, ask=replace(first.ask, text=query.text), marks=marks)
        return Found(texts=query.texts, hits=every, pool=self._narrow(pool, profiles, first.evidence))

    def _search(self, ask: Ask, run: Run) -> Hits:
        """The candidates for one text: the first of BM25 beside k-NN, fused."""
        index, trace = self.index, run.trace
        if self.language and not self.language.reads(ask.text):
            ask, trace.foreign = replace(ask, foreign=True, notes=(_FOREIGN,)), True
        evidence: dict[str, Any] = {}
        early = self._encode(ask.text, run) if self.stages.concurrent else None  # hardly any policy changes the text
        for policy in self.policies:
            ask, evidence[policy.name] = self._begin(policy, "read", run, ask, index)() or (ask, None)
        trace.notes += ask.notes
        encoding = early if early and ask.plain == ask.text else self._encode(ask.plain, run)
        lexical = run.start("lexical", partial(ask.words.search, index, ask.admitted, depth=self.depth))
        vector = encoding.finish() if encoding else None
        neural = run.start("neural", partial(index.neural, vector, ask.admitted, depth=self.depth)) if vector else None
        looks = [(p.name, self._begin(p, "look", run, ask, index, vector, evidence[p.name])) for p in self.policies]
        bm25, cosine = check_sides(lexical.finish(), neural.finish() if neural else None, index, ask, run)
        evidence = {name: look() for name, look in looks}
        fused = fuse(bm25 or {}, cosine, lexical_share=LEXICAL_SHARE)
        order = Order(scores=fused, cosine=cosine, k=self.k, ids=best_first(fused))
        for policy in self.policies:
            order = self._begin(policy, "nominate", run, order, evidence[policy.name])() or order
        pool = run.start("fetch", partial(self._choose, ask, vector, order, evidence)).result()
        return Hits(ask=ask, vector=vector, bm25=bm25, cosine=cosine, evidence=evidence, pool=pool)

    def _encode(self, text: str, run: Run) -> Stage[Vector] | None:
        return run.start("encode", partial(self.encoder.encode_query, text)) if self.encoder else None

    def _begin(self, policy: Policy, step: str, run: Run, *args: Any) -> Callable[[], Any]:
        """Start a step of a policy that reads a store, as a stage; the value is None if that failed."""
        work = partial(getattr(policy, step), *args)
        return run.start(policy.name, work).finish if step in policy.reads else work

    def _choose(self, ask: Ask, vector: Vector | None, order: Order, evidence: Mapping[str, Any]) -> Pool:
        """The first `k` that all policies keep; what lacks comes from the window, then from what one searches else."""
        fresh, ids, end = Pool(ask=ask, k=self.k), list(order.ids[: self.window]), self.k
        profiles = fetch_admitted(self.index, ids[:end], ask.admitted)
        pool = self._narrow(fresh, profiles, evidence)
        for _ in range(2):
            if pool.free > 0:
                size = self.k + pool.free if end == self.k and not pool.instead else self.window
                profiles += fetch_admitted(self.index, ids[end:size], ask.admitted)
                pool, end = self._narrow(fresh, profiles, evidence), size
        if pool.free > 0 and pool.instead:
            hits, _ = search_both(self.index, ask.words, vector, pool.instead, depth=self.window)
            others = [id for id in hits if id not in ids]
            profiles += fetch_admitted(self.index, others[: self.k], ask.admitted)
            pool = self._narrow(fresh, profiles, evidence)
        return pool

    def _narrow(self, pool: Pool, profiles: Sequence[Profile], evidence: Mapping[str, Any]) -> Pool:
        """The pool of these profiles, after every policy has chosen."""
        pool = replace(pool, profiles=profiles, seen=len(profiles), kept=range(len(profiles)), spare=(), instead=None)
        for policy in self.policies:
            pool = policy.choose(pool, evidence[policy.name])
        return pool

    def _measure(self, found: Found, run: Run) -> tuple[Sequence[Candidate], Steps]:
        """The candidates as measured by the text that each is most relevant to."""
        by_text = [self._measure_by(hits, found.pool, run) if hits else None for hits in found.hits]
        return merge_measured(found.texts, by_text, self.scoring.scale)

    def _measure_by(self, hits: Hits, pool: Pool, run: Run) -> Sequence[Candidate]:
        profiles, asked = pool.candidates(), frozenset().union(*map(pairs, hits.ask.texts))
        measure = partial(hits.measure, self.index, [profile.id for profile in profiles])
        bm25, cosine = run.start("measure", measure).finish() or ({}, hits.cosine)
        candidates: Sequence[Candidate] = [
            Candidate(
                profile=profile,
                bm25=bm25.get(profile.id),
                cosine=cosine.get(profile.id),
                pairs=pairs_found(asked, profile),
                marks=pool.marks.get(profile.id, UNMARKED),
            )
            for profile in profiles
        ]
        for policy in self.policies:
            shift = self._begin(policy, "shift", run, candidates, hits.evidence[policy.name], hits.ask, self.scoring)
            candidates = shift() or candidates
        return candidates
