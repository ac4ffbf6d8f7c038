"""Search by what is asked, without the text that the request brings along for it.

Its vector stays in: a mean of the vectors with it and without it won one more place among 15 of skills, and lost four
first places of skills and models.
"""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.text.words import content_words

_BROUGHT = re.compile(
    r"```.*?(?:```|\Z)"  # code
    r"|^\#{1,3}[ ]?Input:.*?(?=^\#|\Z)"
    r"|(?<!\w)(?:\"[^\"\n]+\"|'[^'\n]+'|“[^”]+”)(?!\w)",  # a quotation
    re.DOTALL | re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
_LEAST_QUOTED = 6  # Words: a shorter quotation may name what is meant
_LEAST_LEFT = 3  # Content words that say what is asked


def without_payload(text: str) -> str:
    """The text without code, input and quotations; as it is, if hardly anything would be left."""
    rest = _BROUGHT.sub(lambda found: " " if found[0][0] in "`#" or _is_long(found[0]) else found[0], text)
    return rest if len({*content_words(rest)}) >= _LEAST_LEFT else text


def _is_long(quotation: str) -> bool:
    return len(quotation.split()) >= _LEAST_QUOTED


@dataclass(frozen=True)
class Payload(Policy):
    """The words of a payload are not searched; the vector is that of the whole request."""

    name: ClassVar = "payload"

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        return replace(ask, searched=without_payload(ask.text)), None
