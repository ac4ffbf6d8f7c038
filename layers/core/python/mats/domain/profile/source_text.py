"""The text of a registration that index and encoder read."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from mats.domain.capability.registration import Registration
from mats.domain.protocols.descriptors import ABOUT_ITSELF, about_itself, searchable_part, title_of
from mats.domain.text.plain_text import plain
from mats.domain.text.text import clean, clip, read_parameters, split_identifier

_FIELD_LIMIT = 20_000
"""Limit in characters of each derived text, so that a profile fits an item."""


class SourceText(BaseModel):
    """The registration's own text in the index: without markup, cleaned and clipped."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str = ""
    description: str = ""
    parameter_names: str = ""
    parameter_text: str = ""
    other: str = ""

    @classmethod
    def of(cls, registration: Registration) -> Self:
        descriptor = registration.descriptor
        searched = searchable_part(descriptor)
        about_parameters = {key: value for key, value in searched.items() if key not in ABOUT_ITSELF}
        named = read_parameters(registration.input_schema, about_parameters)
        about = read_parameters(about_itself(descriptor))
        return cls(
            title=clean(plain(title_of(descriptor))),
            description=_clean_and_clip(plain(registration.description)),
            parameter_names=_clean_and_clip(split_identifier(" ".join(named.names))),
            parameter_text=_clean_and_clip(plain(" ".join(named.texts))),
            other=_clean_and_clip(" ".join((registration.provider, *registration.type_tags, *about.texts))),
        )


def _clean_and_clip(text: str) -> str:
    return clip(clean(text), _FIELD_LIMIT)
