"""`If-Match` and `If-None-Match`: under which condition a client wants something written (RFC 9110, 13.1)."""

from collections.abc import Callable


def condition(if_match: str | None, if_none_match: str | None) -> Callable[[str | None], bool]:
    """Whether what is there, told by its tag, may be written over; the tag is None where there is nothing."""
    wanted, refused = _tags(if_match), _tags(if_none_match)

    def admits(tag: str | None) -> bool:
        if if_match is not None and (tag is None or not wanted & {"*", tag}):
            return False
        return if_none_match is None or tag is None or not refused & {"*", tag}

    return admits


def _tags(header: str | None) -> set[str]:
    """The tags that a header names; a weak one says nothing of ours, which are strong."""
    named = [part.strip() for part in (header or "").split(",")]
    return {tag.strip('"') for tag in named if tag and not tag.startswith("W/")}
