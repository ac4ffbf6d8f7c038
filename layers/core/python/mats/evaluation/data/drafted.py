"""A first judged set of one's own registry: a query for each of some capabilities, by a model or by its owner.

A query in the words of an owner measures less than one in the words of a user, so each says where it comes from.
"""

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid, ReplyUnusable
from mats.domain.text.fence import visible
from mats.domain.text.words import clip, split_identifier
from mats.evaluation.data.datasets import JudgedSet
from mats.ports import Writer

LLM, EXAMPLE, TITLE = "llm", "example", "title"  # The writer's first example, the owner's last, the words of the name
_SEED = 20_260
_LONGEST = 500


def draft_set(
    items: Mapping[Id, Mapping[str, Any]],
    admitted: Collection[Id],
    count: int,
    writer: Writer | None,
    advance: Callable[[int], None] = lambda count: None,
) -> JudgedSet:
    """Every registration, and at most `count` queries, each with the capability that it was made for.

    The capabilities are chosen among those that are `admitted`, valid, and visible to everyone; without a writer, those
    with an example come first. A registration lacks the example that is its query. Raises DependencyFailed: the writer
    did not answer.
    """
    corpus, valid = {str(id): item for id, item in items.items()}, list[Registration]()
    for id in sorted(admitted):
        try:
            valid.append(Registration.parse(items[id]))
        except RegistrationInvalid:
            continue
    public = [one for one in valid if one.visible_to is None]
    chosen = random.Random(_SEED).sample(public, len(public))
    chosen = sorted(chosen, key=lambda one: writer is None and not one.examples)[:count]
    queries = {}
    for one in chosen:
        source, text = _query_of(one, writer)
        if source == EXAMPLE:
            corpus[one.id] = {**items[one.id], "examples": [each for each in one.examples if each != text]}
        queries[one.id] = {"text": clip(visible(text), _LONGEST), "source": source}
        advance(1)
    left_out = {
        "capability without a query: not everyone sees it": len(valid) - len(public),
        "capability without a query: its registration is invalid": len(admitted) - len(valid),
    }
    return JudgedSet(
        corpus=corpus,
        queries={f"q-{id}": query for id, query in queries.items()},
        qrels={(f"q-{id}", str(id)): 1 for id in queries},
        left_out={reason: number for reason, number in left_out.items() if number},
    )


def _query_of(registration: Registration, writer: Writer | None) -> tuple[str, str]:
    """The source and the text of a query that a capability serves."""
    if writer is not None:
        try:
            written = writer.describe(registration).enrichment.positive_examples
        except ReplyUnusable:
            written = ()
        if new := [text for text in written if text not in registration.examples]:
            return LLM, new[0]
    if registration.examples:
        return EXAMPLE, registration.examples[-1]
    return TITLE, split_identifier(registration.name)
