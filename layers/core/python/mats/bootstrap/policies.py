"""The policies of a system, in the order in which they act; each has a row in `python -m experiments ablate`.

One line puts a policy in. The order matters where two act at one step:

- `read`: a word of a text brought along is not misspelt, and a product's name is taken out of the text so corrected.
- `nominate`: votes change the scores of fusion, and rated ones get places in that order; what was named comes first.
- `choose`: exact matches, lessons and what cannot be called are known to those that leave out near-duplicates, and
  newcomers are counted among what these keep; what does another thing than was asked takes the places left.
- `shift`: what belongs to a product that was named gains a fixed part, to which that of a title is added.
- `arrange`: votes move first; what an operator taught, and verified providers, hold against everything
  before.
"""

from collections.abc import Callable

from mats.domain.policies.acts import Acts
from mats.domain.policies.alike import Alike
from mats.domain.policies.claims import Claims
from mats.domain.policies.duplicates import Duplicates
from mats.domain.policies.exact import Exact
from mats.domain.policies.holds import Holds
from mats.domain.policies.implied import ImpliedStep
from mats.domain.policies.lessons import Lessons
from mats.domain.policies.memory import Memory
from mats.domain.policies.payload import Payload
from mats.domain.policies.policy import Policy
from mats.domain.policies.products import Products
from mats.domain.policies.rated import Rated
from mats.domain.policies.seniority import Seniority
from mats.domain.policies.spelling import Spelling
from mats.domain.policies.titles import Titles
from mats.domain.search.lookups import Vector
from mats.ports import Memory as Remembered

NAMES = tuple(
    policy.name
    for policy in (
        Payload, Spelling, Memory, Rated, ImpliedStep, Products, Exact, Lessons, Holds, Duplicates, Seniority, Acts,
        Titles, Claims, Alike,
    )
)  # fmt: skip
"""Of all policies, also of those that a system lacks."""


def policies_of(
    *,
    unrated: int,
    encode: Callable[[str], Vector] | None = None,
    memory: Remembered | None = None,
) -> tuple[Policy, ...]:
    """The policies; those that lack what they read are left out. `unrated` is the trust of an unrated profile."""
    found: tuple[Policy | None, ...] = (
        Payload(),
        Spelling(),
        Memory(memory) if memory else None,
        Rated(),
        ImpliedStep(encode),
        Products(),
        Exact(unrated),
        Lessons(memory.lesson) if memory else None,
        Holds(),
        Duplicates(unrated),
        Seniority(unrated),
        Acts(),
        Titles(),
        Claims(unrated),
        Alike(),
    )
    return tuple(filter(None, found))
