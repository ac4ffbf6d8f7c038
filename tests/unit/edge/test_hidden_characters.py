"""Hidden characters in every attribute, against every output that a model or a person reads."""

import json
import logging
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from mats.adapters.bedrock.client import prompt_request
from mats.adapters.llm import LlmReranker, LlmWriter, ModelReply
from mats.bootstrap.models import prompt
from mats.domain.errors import ReplyUnusable
from mats.domain.profile.profile import Enrichment, Profile
from mats.domain.prompts.usage import Usage
from mats.domain.text.fence import is_hidden, spell_out
from mats.domain.text.words import every_text
from mats.edge.ard.entries import identifier
from mats.edge.http import Response
from mats.edge.schema import Format
from mats.local.cli.output import plain
from mats.local.log import LineFormatter
from tests import aws_events
from tests.builders import a_profile, a_registration, an_earlier_profile
from tests.world import an_application

HIDDEN = (  # zero width, soft hyphen, direction, selectors, tags, fillers, private use, annotation, invisible plus
    "\u200b\u200d\u2060\ufeff\u00ad\u202e\u2066\u200f\ufe0f\U000e0101\U000e0049\u3164\uffa0\u034f\ue000\U000f0001\ufff9\u2064"
)
CONTROLS = "\x00\x07\x08\x0b\x0c\r\x1b\x1c\x7f\x85\x9b\u2028\u2029"


def text(hidden: str) -> str:
    return f"refund{hidden} a payment"


def schema(hidden: str, key: str = "") -> dict[str, Any]:
    said = text(hidden)
    charge = {
        "type": "string", "title": said, "description": said, "enum": [said], "default": said, "examples": [said],
        "const": said, "x-note": {"deep": [said]},
    }  # fmt: skip
    return {"type": "object", "title": said, "properties": {f"charge{key}": charge}, "$defs": {"a": {"title": said}}}


def attributes(hidden: str) -> dict[str, Any]:
    """Every attribute of a registration that may contain hidden characters."""
    said = text(hidden)
    return {
        "description": said, "examples": [said], "negative_examples": [said], "input_schema": schema(hidden),
        "descriptor": {"title": said, said: said, "skills": [{"name": said, "description": said}]},
        "visible_to": None,
    }  # fmt: skip


def accepted(hidden: str) -> Profile:
    """A profile of today; without flags, for which `format` would leave it out."""
    profile = a_profile(**attributes(hidden), enrichment=written(hidden))
    return profile.model_copy(update={"suspicious": ()}).seal()


def earlier(hidden: str) -> Profile:
    """A profile of a release that refused hidden characters nowhere."""
    said = text(hidden)
    labels = {"name": said, "endpoint": f"https://acme.example/{said}", "version": said, "provider": said}
    profile = an_earlier_profile(
        **{**attributes(hidden), **labels, "tags": [said], "type_tags": [said], "input_schema": schema(hidden, hidden)},
        enrichment=written(hidden),
    )
    return profile.model_copy(update={"suspicious": ()}).seal()


def written(hidden: str) -> Enrichment:
    said = text(hidden)
    return Enrichment(summary=said, action=said, keywords=(said,), positive_examples=(said,), negative_examples=(said,))


def ask(profile: Profile, method: str, path: str, body: Any = None) -> Response:
    headers = {"Content-Type": "application/json"}
    return aws_events.call(an_application(profile), method, path, body, headers=headers)


def call(tool: str, profile: Profile, **arguments: Any) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    result = json.loads(ask(profile, "POST", "/mcp", message).body)["result"]
    text = result.pop("content")[0]["text"].replace(spell_out(profile.id), "id")
    return json.dumps([result, text], ensure_ascii=False)


def made_for(format: Format) -> Callable[[Profile], str]:
    def tools(profile: Profile) -> str:
        request = {"query": "refund a payment", "format": format, "min_relevance": 0}
        body = json.loads(ask(profile, "POST", "/discover", request).body)
        assert body["names"]
        assert not body["left_out"]
        return json.dumps(body, ensure_ascii=False)

    return tools


def keeping(requests: list[Any]) -> Callable[[Any], ModelReply]:
    """A stand-in for Converse that keeps the requests."""

    def ask_model(question: Any) -> ModelReply:
        requests.append(prompt_request(question))
        return ModelReply(stop="end_turn", calls=(), text="", usage=Usage())

    return ask_model


def rerank_request(profile: Profile) -> str:
    sent: list[Any] = []
    LlmReranker(ask=keeping(sent), name="m", text=prompt("rerank")).rerank("refund", [profile])
    return json.dumps(sent, ensure_ascii=False)


MODELS_READ: dict[str, Callable[[Profile], str]] = {
    "MCP search": lambda profile: call("search_capabilities", profile, query="refund", min_relevance=0),
    "MCP get": lambda profile: call("get_capability", profile, id=profile.id),
    "rerank request": rerank_request,
    **{f"format {format}": made_for(format) for format in Format},
}
PEOPLE_READ: dict[str, Callable[[Profile], str]] = {
    "discover": lambda profile: ask(profile, "POST", "/discover", {"query": "refund", "explain": True}).body,
    "capability": lambda profile: ask(profile, "GET", f"/capabilities/{quote(profile.id)}").body,
    "ARD search": lambda profile: ask(profile, "POST", "/search", {"query": {"text": "refund"}}).body,
    "ARD list": lambda profile: ask(profile, "GET", "/agents").body,
    "ARD entry": lambda profile: (
        ask(profile, "GET", f"/agents/{identifier(profile.indexed_kind, profile.namespace, profile.name)}").body
    ),
    "unknown id": lambda profile: ask(a_profile(), "GET", f"/capabilities/{quote(profile.id + 'x')}").body,
    "unknown path": lambda profile: ask(a_profile(), "GET", f"/{quote(profile.id)}").body,
    "terminal": lambda profile: plain(f"{profile.id} {profile.enrichment.summary} {profile.provider}").plain,
}


@pytest.mark.parametrize("made", [accepted, earlier])
@pytest.mark.parametrize("output", MODELS_READ.values(), ids=MODELS_READ.keys())
def test_no_hidden_character_reaches_a_model(output, made):
    shown = output(made(HIDDEN))
    assert "refund" in shown
    assert "U+" not in "".join(every_text(_without_ids(json.loads(shown))))
    assert not [c for c in "".join(every_text(json.loads(shown))) if is_hidden(c)]


@pytest.mark.parametrize("output", MODELS_READ.values(), ids=MODELS_READ.keys())
def test_no_control_character_reaches_a_model(output):
    texts = "".join(every_text(json.loads(output(accepted(CONTROLS)))))
    assert not [c for c in texts if unicodedata.category(c) in ("Cc", "Zl", "Zp") and c not in "\t\n\r"]


@pytest.mark.parametrize("made", [accepted, earlier])
@pytest.mark.parametrize("output", PEOPLE_READ.values(), ids=PEOPLE_READ.keys())
def test_hidden_characters_are_spelled_out_to_people(output, made):
    shown = output(made(HIDDEN))
    assert not any(map(is_hidden, shown))
    assert not any(map(is_hidden, json.dumps(shown)))


@pytest.mark.parametrize("output", ["discover", "capability", "ARD search", "ARD entry", "terminal"])
def test_nothing_hidden_is_dropped_in_silence(output):
    assert [c for c in HIDDEN if f"⟨U+{ord(c):04X}⟩" not in PEOPLE_READ[output](accepted(c))] == []


def test_no_hidden_character_reaches_the_writer():
    sent: list[Any] = []
    writer = LlmWriter(ask=keeping(sent), name="m", text=prompt("enrich"))
    with pytest.raises(ReplyUnusable):
        writer.describe(a_registration(**attributes(HIDDEN)))
    assert "refund" in str(sent)
    assert not [c for c in "".join(every_text(sent)) if is_hidden(c)]


def test_no_text_forges_or_hides_in_a_log_line(caplog):
    forged = "".join(f"{c}2026-01-01 00:00:00,000 INFO mats forged" for c in f"{CONTROLS}\n{HIDDEN}")
    with caplog.at_level("INFO", "mats"):
        assert ask(accepted(HIDDEN), "POST", "/discover", {"query": forged}).status == 200
        logging.getLogger("mats").warning("a key of the issuer is invalid: %s", forged)
        try:
            raise ValueError(forged)
        except ValueError:
            logging.getLogger("mats").exception("internal error at %s", forged)
    lines = "\n".join(map(LineFormatter().format, caplog.records)).splitlines()
    assert len([line for line in lines if line.startswith("20")]) == 3
    assert all(line.startswith(("20", "    ")) for line in lines)
    assert all(line.isascii() and line.isprintable() for line in lines)


def _without_ids(value: Any) -> Any:
    """Ids of earlier profiles are spelled out: without its hidden characters, an id could be another's."""
    match value:
        case dict():
            return {key: _without_ids(entry) for key, entry in value.items() if key not in ("id", "mats/id", "names")}
        case list():
            return [_without_ids(entry) for entry in value]
        case str() if value.startswith("{"):
            return _without_ids(json.loads(value))
    return value
