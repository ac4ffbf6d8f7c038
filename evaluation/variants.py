"""Every system under test, as a value: a changed field of the production object, or a baseline of the literature."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evaluation.answers import Answer, System
from evaluation.baseline import PlainBm25
from evaluation.datasets import JudgedQuery
from evaluation.workbench import WithoutWords, Workbench, asking
from mats.usecases.discover import Discover


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A system by name; `needs` says which models it cannot do without: `encoder`, `llm`."""

    name: str
    says: str
    needs: frozenset[str] = frozenset()
    built: Callable[[Workbench], System]


def _plain(bench: Workbench) -> System:
    plain, k = PlainBm25(bench.dataset.registrations), bench.settings.k

    def answer(query: JudgedQuery) -> Answer:
        found = plain.search(query.text, k)
        return Answer(ranked=found, retrieved=found)

    return answer


def lexical(discover: Discover) -> Discover:
    """Words alone."""
    return replace(discover, encoder=None)


def dense(discover: Discover, *, measures: bool = False) -> Discover:
    """Vectors alone choose the candidates; the lexical signal of those is measured only if asked for."""
    return replace(discover, index=WithoutWords(discover.index, measures))


_ENCODER = frozenset({"encoder"})

_ALL = (
    Variant(name="bm25", says="plain BM25 over name and description, the baseline", built=_plain),
    Variant(name="lexical", says="our fielded BM25 alone", built=lambda bench: asking(lexical(bench.discover))),
    Variant(
        name="dense", says="vectors alone", needs=_ENCODER, built=lambda bench: asking(dense(bench.discover))
    ),
    Variant(
        name="hybrid", says="words and vectors, fused: the first stage as shipped",
        needs=_ENCODER, built=lambda bench: asking(bench.discover),
    ),
)  # fmt: skip
VARIANTS: Mapping[str, Variant] = {variant.name: variant for variant in _ALL}
SYNONYMS = {"neural": "dense"}
