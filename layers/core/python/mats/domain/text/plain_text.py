"""Plain text of an owner's Markdown, for index and encoder."""

import re

from mats.domain.text.words import clip, stems

_LINK = re.compile(
    r"!?\[([^\[\]]{0,500})\](?:\((?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s+\"[^\"]{0,200}\")?\)|\[[^\[\]]{0,100}\])"
)
"""A link or image, with its target or the name of its target."""
_MARKS = re.compile(
    r"</?(?:a|b|i|p|br|hr|em|ul|ol|li|td|th|tr|h[1-6]|div|img|pre|sub|sup|code|span|table|strong|details|summary|blockquote)"
    r"(?:\s[^<>]{0,300})?/?>|^[^\S\n]*(?:>|#{1,6}\s)|\[!\w{1,20}\]",
    re.IGNORECASE | re.MULTILINE,
)
"""Tags of HTML, marks of quotes and headings, alerts."""
_REFERRAL = re.compile(
    r"\W{0,4}(?:please )?(?:for (?:more|further|additional) (?:\w+ )?(?:information|details)|(?:to )?learn more|"
    r"read more|more (?:info|information|details)|see (?:also|the (?:docs|documentation)|https?://))\b",
    re.IGNORECASE,
)
"""The start of a sentence that only refers to another document."""
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])[\"')*]{0,3}\s+|(?<=[。！？])|\n\s*\n")
_ENOUGH = 5


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order."""
    return [sentence.strip() for sentence in _SENTENCE_ENDS.split(text) if sentence.strip()]


def plain(text: str) -> str:
    """The text without markup: links keep their words, not their targets.

    Sentences that only refer to another document are left out, unless there is nothing else.
    """
    if "](" in text or "][" in text:
        text = _LINK.sub(r"\1", text)
    text = _MARKS.sub(" ", text)
    parts = _SENTENCE_ENDS.split(text)
    kept = [part for part in parts if not _REFERRAL.match(part)]
    return " ".join(kept) if 0 < len(kept) < len(parts) else text


def opening(text: str, limit: int = 300) -> str:
    """The beginning of a text: whole sentences until they have five content words, at most `limit` characters.

    `Get claim. Returns a claim with its photos. Needs a key.` begins with its first two sentences.
    """
    said: set[str] = set()
    taken: list[str] = []
    for sentence in sentences(text):
        taken.append(sentence)
        said |= stems(sentence)
        if len(said) >= _ENOUGH:
            break
    return clip(" ".join(taken), limit)
