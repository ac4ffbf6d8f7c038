"""Rank what belongs to the product that a request names before the rest, and say if none does: docs/decisions/0082.

A product is named by a label of a namespace or by a provider of the registry. Names are free, so none is a filter. That
a product is not here can be told of well-known ones only (`products.txt`): other capitals are places, months, people.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import islice
from typing import ClassVar, NamedTuple

from mats.domain.policies.policy import Ask, Order, Policy
from mats.domain.profile.index_fields import searched_text
from mats.domain.profile.index_keys import name_key, names
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import Candidate, Elsewhere
from mats.domain.search.lookups import Lookups, NameUse, Vector
from mats.domain.search.query import Filter
from mats.domain.search.scale import LEXICAL_SHARE, Scores, best_first, fuse
from mats.domain.search.shortlist import Ranked
from mats.domain.search.signals import Signal
from mats.domain.text.words import STOP_WORDS, first_sentence, index_terms, word_set

_MARKS = word_set("on with in via from using use")  # Words before the name of a product
_BETWEEN = word_set("the my our your a an")
_DETERMINERS = _BETWEEN | word_set("this that all each every any some new")
_TOWARDS = word_set("to into")  # Words before the name of a well-known one, beside those
_WITHIN = word_set("of in to from into")  # Words before the name of one whose part is asked for
_ABOUT = word_set(
    "news information info data details facts report reports article articles paper papers research docs documentation "
    "tutorial tutorials guide guides opinion opinions"
)
"""Words after which `on` says what they are about."""
_MOST_BEFORE = 3  # Words before a name that stands before what is asked for: `please list the`
_SPACES = word_set("account app workspace instance organization organisation tenant")  # Words after it that add nothing
_TOKEN = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"(?:\w+://|www\.)\S+|\S+@\S+")
_MOST_TOKENS, _MOST_IN_NAME = 40, 3
_NAME, _ORDINARY = 0.5, 0.2
"""Share of the capabilities with its words that own a name, from which on it is one, and up to which it is no name."""
_GAIN = 0.15  # What a product's capabilities, and others for it, gain in the mixture by which candidates are ordered
_STRONG = 0.5  # Strength of a name from which on its product counts
_MOST_SPACES = 50
_DEPTH = 15  # Hits of the products on each side
_MOST = 3  # Capabilities of the products that are candidates, whatever else is found


@dataclass(frozen=True, slots=True)
class Named:
    """The products that a request names: the namespaces that each name counts for, and the request without them."""

    spaces: Mapping[str, Set[str]]
    spelled: Sequence[str]
    rest: str
    free: Sequence[str] = ()  # Those spelled whose owners no operator trusts
    elsewhere: Elsewhere | None = None
    """Well-known ones that no namespace and no provider has, or else those in which the request is to be done."""

    def within(self, admitted: Filter) -> Filter:
        """The filter of what has one of the names."""
        spaces = frozenset[str]().union(*self.spaces.values())
        few = spaces if len(spaces) <= _MOST_SPACES else frozenset[str]()
        scope = replace(admitted.scope, keys=frozenset(map(name_key, self.spaces)), exact_namespaces=few)
        return replace(admitted, scope=scope)

    def has(self, profile: Profile) -> bool:
        own = names(profile.namespace, profile.provider)
        return any(name in own and profile.namespace in spaces for name, spaces in self.spaces.items())

    def is_for(self, profile: Profile) -> bool:
        """True for what belongs to the product, or says that it is for it: others serve Spotify's playlists, too."""
        text = searched_text(profile).lowered if self.free else ""
        return self.has(profile) or any(re.search(rf"\b{re.escape(name)}\b", text) for name in self.free)


@dataclass(frozen=True, slots=True)
class Found:
    """The best of the products, for this text."""

    named: Named
    bm25: Scores
    cosine: Scores


@dataclass(frozen=True)
class Products(Policy):
    """Its best capabilities are candidates and come before equals; they are no better a match for that.

    If what is first is not of the product and does not speak of it, a note says so. Where the request is to be done in
    the product, the verdict is at most `weak` unless something of it is a match.

    The request is encoded without the name: in a vector it would say that those are near which mention it. Where every
    entry is of the product, the name says nothing, and the request is answered as if it were not there.
    """

    name: ClassVar = "products"
    reads: ClassVar = ("read", "look")

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, Named | None]:
        if ask.admitted.namespaces or ask.admitted.scope.exact_namespaces:
            return ask, None
        uses = index.names(asked_names(ask.plain), ask.admitted)
        named = products_named(ask.plain, uses)
        if not named.spaces:
            return ask, named if named.elsewhere else None
        if frozenset[str]().union(*named.spaces.values()).issuperset(index.namespaces(ask.admitted)):
            return replace(ask, searched=named.rest, plain=named.rest), None
        note = f"ranks what belongs to {', '.join(named.spelled)} higher, which the query names"
        return replace(ask, plain=named.rest, notes=(*ask.notes, note)), named

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: Named | None) -> Found | None:
        if evidence is None:
            return None
        if not evidence.spaces:
            return Found(evidence, {}, {})
        own = evidence.within(ask.admitted)
        bm25 = ask.words.search(index, own, depth=_DEPTH)
        return Found(evidence, bm25, index.neural(vector, own, depth=_DEPTH) if vector else {})

    def nominate(self, order: Order, evidence: Found | None) -> Order:
        if evidence is None:
            return order
        return order.led_by(best_first(fuse(evidence.bm25, evidence.cosine, lexical_share=LEXICAL_SHARE))[:_MOST])

    def shift(
        self, candidates: Sequence[Candidate], evidence: Found | None, ask: Ask, scoring: Scoring
    ) -> Sequence[Candidate]:
        if evidence is None:
            return candidates
        named, elsewhere = evidence.named, evidence.named.elsewhere
        own = {each.id for each in candidates if named.is_for(each.profile)}
        candidates = [replace(each, gain=_GAIN) if each.id in own else each for each in candidates]
        if elsewhere is None:
            return candidates
        return [
            each if each.id in own or _is_of(each.profile, elsewhere)
            else replace(each, marks=replace(each.marks, elsewhere=elsewhere))
            for each in candidates
        ]  # fmt: skip

    def arrange(self, ranked: Ranked) -> Ranked:
        results = ranked.results
        missing = [each.candidate.marks.elsewhere for each in results]
        if not missing or not missing[0]:
            return ranked
        signal, least = Signal.LLM if ranked.reranked else Signal.RETRIEVAL, ranked.thresholds.match
        nearness = [each.signals.get(signal, 0.0) for each in results]
        own = [
            each for each, near in zip(results, nearness, strict=True)
            if not each.candidate.marks.elsewhere and each.relevance >= least and near >= nearness[0]
        ]  # fmt: skip
        if own and missing[0].told:  # another signal put what is not of the product first
            ids = {each.candidate.id for each in own}
            return ranked.with_results([*own, *(each for each in results if each.candidate.id not in ids)])
        found = "nothing found here belongs" if all(missing) else "the first result does not belong"
        names = dict.fromkeys(name for each in missing if each for name in each.products)
        return ranked.with_results(ranked.results, f"{found} to {', '.join(names)}, which the query names")


class _Token(NamedTuple):
    start: int
    end: int
    lowered: str
    stem: str
    capital: bool
    first: bool  # Of a sentence
    introduces: bool  # A colon follows


@lru_cache(maxsize=256)
def _tokens(text: str) -> Sequence[_Token]:
    found: list[_Token] = []
    for match in islice(_TOKEN.finditer(_ADDRESS.sub(lambda found: " " * len(found[0]), text)), _MOST_TOKENS):
        before, start, end = text[: match.start()].rstrip(" \"'(*"), *match.span()
        first = not before or before[-1] in ".!?:\n"
        found += [
            _Token(start, end, match[0].lower(), term, match[0][0].isupper(), first, text[end : end + 2] == ": ")
            for term in index_terms(match[0])[:1]
        ]
    shouted = sum(token.capital for token in found) > len(found) / 2 > 1
    return [token._replace(capital=False) for token in found] if shouted else found


def _spans(tokens: Sequence[_Token]) -> Iterator[tuple[str, range]]:
    """The runs of a few words that may be names, and where they are."""
    for start in range(len(tokens)):
        for stop in range(start + 1, min(start + _MOST_IN_NAME, len(tokens)) + 1):
            if stop > start + 1 or tokens[start].lowered not in STOP_WORDS:
                yield " ".join(token.stem for token in tokens[start:stop]), range(start, stop)


def asked_names(text: str) -> list[str]:
    """The runs of words of a request that may be names."""
    return list(dict.fromkeys(name for name, _ in _spans(_tokens(text))))


def products_named(text: str, uses: Mapping[str, NameUse]) -> Named:
    """The products that a request names, by the use of its `asked_names`."""
    tokens = _tokens(text)
    missing = [span for span in _known_spans(tokens) if not _has_owner(span, tokens, uses)]
    names = dict.fromkeys(text[tokens[span.start].start : tokens[span.stop - 1].end] for span in missing)
    parts = {place for span in missing for place in span}  # The teams of `Microsoft Teams` are not those of others
    places = [(name, span) for name, span in _spans(tokens) if name in uses and parts.isdisjoint(span)]
    covered = {place for _, span in places for place in span}
    spaces: dict[str, Set[str]] = {}
    spans: dict[str, range] = {}
    for name, span in places:
        use, run = uses[name], _capitals(tokens, span)
        if not _is_told(tokens, span, run) and not _is_attribute(tokens, span):
            continue
        known = run == span and _is_well_known(tokens, span)
        owned = 1.0 if known else use.owned / (use.owned + use.elsewhere)
        strength = min(1.0, max(0.0, (owned - _ORDINARY) / (_NAME - _ORDINARY)))
        strength *= (len(covered.intersection(run)) / len(run)) ** 2  # `Google Drive` is more than `Google`
        if strength >= _STRONG:
            spaces[name], spans[name] = use.trusted or use.spaces, span
    said = {name: tokens[span.start : span.stop] for name, span in spans.items()}
    spelled = {name: " ".join(token.lowered for token in those) for name, those in said.items()}
    free = [each for name, each in spelled.items() if not uses[name].trusted]
    told = not spaces and any(_is_place(tokens, span) for span in missing)
    absent = Elsewhere(tuple(names)[:_MOST], told) if names else None
    is_place = any(_is_place(tokens, span) or _is_attribute(tokens, span) for span in spans.values())
    here = Elsewhere(tuple(spelled.values()), told=True) if is_place else None
    return Named(spaces, list(spelled.values()), _without(text, tokens, spans.values()), free, absent or here)


@cache
def _well_known_names() -> Mapping[tuple[str, ...], bool]:
    """Well-known products by their words in lower case, and whether each counts only with a capital."""
    lines = resources.files("mats.domain.policies").joinpath("products.txt").read_text("utf-8").splitlines()
    names = " ".join(line for line in lines if not line.startswith("#")).split(",")
    return {tuple(token.lowered for token in _tokens(name)): name.strip()[0].isupper() for name in names}


def _is_well_known(tokens: Sequence[_Token], span: range) -> bool:
    """True for the name of a well-known product, however many others mention it; an ordinary word has its capital."""
    ordinary = _well_known_names().get(tuple(each.lowered for each in tokens[span.start : span.stop]))
    return ordinary is False or (ordinary is True and tokens[span.start].capital and _capitals(tokens, span) == span)


def _known_spans(tokens: Sequence[_Token]) -> Iterator[range]:
    """Where a text names well-known products as what it asks of, the longest name at each place."""
    known, end = _well_known_names(), 0
    for start in range(len(tokens)):
        for stop in range(min(start + _MOST_IN_NAME, len(tokens)), max(start, end), -1):
            ordinary = known.get(tuple(each.lowered for each in tokens[start:stop]))
            if ordinary is not None and _asks_of(tokens, range(start, stop), ordinary):
                end = stop
                yield range(start, stop)
                break


def _asks_of(tokens: Sequence[_Token], span: range, ordinary: bool) -> bool:
    """True if a text names a well-known product there as what it asks of: `in Trello`, `a Trello card`.

    An ordinary word has to have its capital, and a word before it that marks it.
    """
    if _is_place(tokens, span):
        return _is_well_known(tokens, span)
    before = tokens[span.start - 1].lowered if span.start else ""
    told = not any(token.first for token in tokens[1 : span.start + 1])  # Later sentences tell what happened
    return not ordinary and before in _BETWEEN and told


def _is_place(tokens: Sequence[_Token], span: range) -> bool:
    """True if a text says that what it asks for is to be done there: `in X`, `to my X account`, or nothing but X.

    `in the X queue` and `from X's page` say it of something else; so do `news on X`, and `on X` that is not the end.
    """
    stop, run = _end(tokens, span), _capitals(tokens, span)
    after = tokens[stop : stop + 1]
    if any(each.lowered not in STOP_WORDS and each.start - tokens[stop - 1].end == 1 for each in after):
        return False
    start = _marker(tokens, run)
    if tokens[start].lowered == "on" and (after or (start and tokens[start - 1].lowered in _ABOUT)):
        return False
    return _is_told(tokens, span, run) or _marker(tokens, run, _TOWARDS) < run.start


def _has_owner(span: range, tokens: Sequence[_Token], uses: Mapping[str, NameUse]) -> bool:
    """True if a namespace or a provider has this name, all of its words, or it without its maker: `excel`."""
    stems = [tokens[place].stem for place in span]
    if any(" ".join(each) in uses for each in (stems, stems[1:]) if each):
        return True
    return bool(frozenset.intersection(*(frozenset(uses[one].spaces if one in uses else ()) for one in stems)))


def _is_of(profile: Profile, named: Elsewhere) -> bool:
    """True if a profile says that it is of one of the products where it says what it is.

    In words of its own, in one word, or as a singular. Others that its description names it may but work with.
    """
    source = profile.source or SourceText()
    texts = (profile.namespace, profile.provider, profile.name, source.title, first_sentence(source.description))
    said = _TOKEN.findall(" ".join(texts).lower())
    names = [[token.lowered for token in _tokens(name)] for name in named.products]
    return any("".join(name).removesuffix("s") in "".join(said) or {*said}.issuperset(name) for name in names)


def _capitals(tokens: Sequence[_Token], span: range) -> range:
    """The span with the capitalised words around it, if it begins with one itself."""
    start, stop = span.start, span.stop
    if tokens[start].capital:
        while start > 0 and tokens[start - 1].capital and not tokens[start].first and not tokens[start - 1].first:
            start -= 1
        while stop < len(tokens) and tokens[stop].capital and not tokens[stop].first:
            stop += 1
    return range(start, stop)


def _is_told(tokens: Sequence[_Token], span: range, run: range) -> bool:
    """True if the sentence marks a name as one: by a word before it, a colon after it, or nothing else.

    A capital does not: the alerts of Kubernetes are no request to its tools.
    """
    return tokens[span.stop - 1].introduces or len(span) == len(tokens) or _marker(tokens, run) < run.start


def _is_attribute(tokens: Sequence[_Token], span: range) -> bool:
    """True if a name stands before what is asked for: `create an asana task`, `the members of an Asana project`.

    Later in a request it tells of something: `find out why a Kubernetes alert is firing`, `to the Linear channel`.
    """
    run = _capitals(tokens, span)
    after, late = tokens[run.stop : run.stop + 1], run.start > _MOST_BEFORE
    before = tokens[run.start - 1].lowered if run.start else ""
    return (
        (run.start == 1 or before in (_BETWEEN - {"the"} if late else _DETERMINERS))
        and not (late and tokens[run.start - 2].lowered not in _WITHIN)
        and not any(token.first for token in tokens[1 : run.start + 1])
        and any(each.lowered not in STOP_WORDS and each.start - tokens[run.stop - 1].end == 1 for each in after)
    )


def _marker(tokens: Sequence[_Token], run: range, marks: Set[str] = _MARKS) -> int:
    """Where the words begin that mark a run as a name, such as `in the`; where the run begins if there are none."""
    before = [token.lowered for token in tokens[max(0, run.start - 2) : run.start]]
    if before and before[-1] in marks:
        return run.start - 1
    return run.start - 2 if len(before) > 1 and before[1] in _BETWEEN and before[0] in marks else run.start


def _end(tokens: Sequence[_Token], span: range) -> int:
    """Where the words of a name end, with one such as `account` right after it."""
    last, after = tokens[span.stop - 1], tokens[span.stop : span.stop + 1]
    return span.stop + any(
        each.lowered in _SPACES and each.start - last.end == 1 and not (each.first or last.introduces) for each in after
    )


def _without(text: str, tokens: Sequence[_Token], spans: Iterable[range]) -> str:
    """The text without these names and what marks them; the whole text if nothing else is in it."""
    rest = text
    for span in sorted(spans, key=lambda span: -span.start):
        start, end = tokens[_marker(tokens, span)].start, tokens[_end(tokens, span) - 1].end
        before, after = rest[:start], rest[end:].removeprefix(":")
        rest = before + (after.lstrip() if before.endswith(" ") else after)
    return rest.strip(" ,") if index_terms(rest) else text
