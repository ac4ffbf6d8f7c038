"""Profiles that another registry wrote: in a backup, or in a line of an export."""

import json

from mats.domain.profile.profile import Profile


def parse_profile(text: str) -> Profile:
    """The profile of a JSON text. Raises ValueError: it is none, or has a part that no reader of profiles can use."""
    profile = Profile.model_validate_json(text)
    for inner in filter(None, (profile.input_schema, profile.invocation)):
        json.loads(inner)
    if profile.source and not profile.kind:
        raise ValueError(f"the profile {profile.id} has no kind")
    return profile
