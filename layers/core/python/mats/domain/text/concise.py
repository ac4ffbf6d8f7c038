"""Shortens descriptions for a model: no stock phrases, nothing twice."""

import re
from collections.abc import Iterable

from mats.domain.text.text import stems

_NOUN = r"(?:api |mcp )?(?:skill|tool|api|agent|function|method|endpoint|service|plugin|server)"
_IT = rf"(?:(?:this|the) {_NOUN}|it)"
_USERS = r"(?:you|users?|the user|developers|agents|an agent)"
_WANT = rf"{_USERS} (?:wants?|needs?|asks?)(?: you)? to "
_STOCK = (
    rf"(?:also )?use (?:{_IT} )?(?:when|whenever|if) (?:{_WANT}|{_USERS} mentions? )",
    rf"{_IT} should be used (?:when|whenever|if) {_WANT}",
    rf"when(?:ever)? {_WANT}",
    rf"{_IT} (?:allows|enables|lets|helps) {_USERS} (?:to )?",
    rf"{_IT} (?:is|can be) used (?:by {_USERS} )?(?:to|for) ",
    rf"{_IT} (?:is designed to|provides the ability to|is able to) ",
    rf"use {_IT} to ",
    rf"(?:this is )?an? {_NOUN} (?:that|which|to) (?:(?:allows|enables|lets|helps) {_USERS} (?:to )?)?",
    rf"this {_NOUN} (?:will )?",
    r"(?:please |can you |could you |help me (?:to )?|(?:I want|I need|I'd like|I would like)(?: you)? to )+",
)
_STOCK_PHRASE = re.compile(rf"(?:(?<=[.!?;] )|^(?:- )?)(?:{'|'.join(_STOCK)})", re.IGNORECASE)
"""Only where a sentence begins, so that what stands before, such as `do not`, cannot lose its object."""
_CLAUSE_ENDS = re.compile(r"(?<=[.;:,!?])\s+|(?<=[。！？；，])")


def without_stock_phrases(text: str) -> str:
    """The text without openings of English sentences that say nothing, such as `use this skill when you need to`."""
    return _STOCK_PHRASE.sub("", text).strip()


def new_clauses(text: str, known: Iterable[str]) -> str:
    """The clauses of a text of which at least half the content words are new; `known` are stems said before."""
    said, kept = set(known), []
    for clause in _CLAUSE_ENDS.split(text):
        has = stems(clause)
        if len(has - said) * 2 >= max(1, len(has)):
            kept.append(clause)
            said |= has
    return " ".join(kept).rstrip(",;:")
