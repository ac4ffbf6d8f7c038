"""The known protocols, and what follows from them for a registration: its searched entries, and how it is called.

An invocation is made from what an owner wrote, and never from a model. Names of variables and of authentication schemes
are kept, their values never. What is unknown is absent.

A document of a known format is mostly boilerplate of the format, so only some entries of a descriptor are searched.
Measured on 146 judged requests for 367 agents, with MiniLM: with whole agent cards in the index Match@1 is .596, with
their skills alone .637, the same as when only skills are registered.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, TypeAdapter, ValidationError

from mats.domain.capability.registration import Registration
from mats.domain.protocols import a2a, bedrock, mcp, openapi, skill
from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.bedrock import BedrockCall
from mats.domain.protocols.descriptors import FORMAT, without_call
from mats.domain.protocols.mcp_server import McpRemote, McpStdio
from mats.domain.protocols.openapi import HttpCall
from mats.domain.protocols.protocol import Protocol
from mats.domain.protocols.skill import SkillReading

PROTOCOLS: tuple[Protocol, ...] = (skill.PROTOCOL, bedrock.PROTOCOL, mcp.PROTOCOL, a2a.PROTOCOL, openapi.PROTOCOL)
"""The first by which a registration can be called counts."""
SEARCHED = {format: entries for protocol in PROTOCOLS for format, entries in protocol.searched.items()}
MAX_INVOCATION_BYTES = 16_000  # A larger invocation counts as none: no caller could fill it in


def searchable_part(descriptor: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The entries of a descriptor that are searched; all of them if the format is unknown."""
    if descriptor is None:
        return {}
    format = descriptor.get(FORMAT)
    wanted = SEARCHED.get(format) if isinstance(format, str) else None
    if wanted is None:
        return without_call(descriptor)
    return {key: value for key, value in descriptor.items() if key in wanted}


Invocation = Annotated[
    Annotated[McpStdio | McpRemote, Discriminator("transport")] | HttpCall | A2aCall | SkillReading | BedrockCall,
    Discriminator("protocol"),
]
_ADAPTER: TypeAdapter[Invocation] = TypeAdapter(Invocation)


def invocation_of(registration: Registration) -> Invocation | None:
    """How to call it; None if its owner gave no way to call it."""
    if not (registration.endpoint or registration.descriptor):
        return None
    descriptor: Mapping[str, Any] = registration.descriptor or {}
    possible = (protocol for protocol in PROTOCOLS if protocol.kind in (None, registration.kind))
    calls = (protocol.invocation(registration, descriptor) for protocol in possible)
    found: Invocation | None = next(filter(None, calls), None)
    return found if found and len(to_text(found).encode()) <= MAX_INVOCATION_BYTES else None


def to_text(invocation: Invocation | None) -> str:
    """An invocation as JSON text; empty for none."""
    return json.dumps(invocation.model_dump(), separators=(",", ":"), ensure_ascii=False) if invocation else ""


def from_text(text: str) -> Invocation | None:
    """The invocation of a profile. One that a later release wrote in a form unknown here counts as none."""
    try:
        return _ADAPTER.validate_json(text) if text else None
    except ValidationError:
        return None
