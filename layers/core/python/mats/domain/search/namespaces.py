"""Say which namespaces a filter may have meant."""

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from mats.domain.profile.index_keys import namespace_words
from mats.domain.search.query import Filter

_NEAREST, _MOST_COMPARED, _ALIKE = 3, 2_000, 0.75


def notes_on_absent(wanted: Collection[str], known: Collection[str]) -> Iterator[str]:
    """A note on each namespace of a filter in which no known one is."""
    for space in sorted(wanted):
        if not any(map(Filter(namespaces=frozenset([space])).admits_namespace, known)):
            nearest = ", ".join(nearest_spaces(space, known)) or "none is near; `mats stats` lists the largest"
            yield f"no capability is in the namespace {space}; nearest: {nearest}"


def nearest_spaces(wanted: str, known: Collection[str]) -> list[str]:
    """At most three known namespaces, or what is above them, that a filter which matches none may mean."""
    every = {
        ".".join(parts[:end]) for parts in (space.split(".") for space in known) for end in range(1, len(parts) + 1)
    }
    plain = wanted.lower().rstrip("*").rstrip(".")
    if plain in every:
        return [plain]
    asked = namespace_words(plain)
    sharing = sorted(space for space in known if any(w in own for w in asked for own in namespace_words(space)))
    near = get_close_matches(plain, sorted(every)[:_MOST_COMPARED], n=_NEAREST, cutoff=_ALIKE)
    return list(dict.fromkeys((*near, *sharing)))[:_NEAREST]
