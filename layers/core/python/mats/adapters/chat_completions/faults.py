"""Errors of a model server as errors of ours, each with what to do."""

import json
import re
from collections.abc import Mapping

from mats.adapters.llm.question import at_path
from mats.domain.errors import DependencyFailed, ModelRefused, NotPermitted
from mats.domain.text.words import clip

_MOST = 300
"""Characters quoted of a server's message."""
_NO_MODEL = re.compile(
    r"model_not_found|(model|deployment)\b.{0,200}?\b(not found|not exist|not available|unknown|not loaded)|"
    r"(unknown|invalid|no such) model|no endpoints found for",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|exceed_context|too (long|large|many tokens)|prompt is too", re.IGNORECASE
)
_EXAMPLE = "http://127.0.0.1:8080/v1"


def message_of(content: bytes, key: str = "") -> str:
    """The message in the body of an error, in one line, without the key."""
    text = content.decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    said = _error_text(body) if isinstance(body, Mapping) else text
    if key:
        said = said.replace(key, "…")
    return clip(" ".join("".join(c if c.isprintable() else " " for c in said[:2_000]).split()), _MOST)


def _error_text(body: Mapping[str, object]) -> str:
    error = body.get("error") or body.get("message") or body.get("detail")
    if not isinstance(error, Mapping):
        return str(error or "")
    code = error.get("code")
    named = f" [{code}]" if isinstance(code, str) and code else ""
    return f"{error.get('message') or ''}{named}"


def is_too_long(message: str) -> bool:
    """Whether a server says that a request exceeds the model's context."""
    return bool(_TOO_LONG.search(message))


def status_in_body(answer: object) -> int:
    """The status of an error that a server reports in a body under 200; 0 if the body is no error."""
    if at_path(answer, "choices") or not at_path(answer, "error"):
        return 0
    code = at_path(answer, "error", "code")
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else 500


def error_of(url: str, model: str, status: int, message: str, *, with_key: bool) -> DependencyFailed:
    """The error for a status that is not 200.

    Args:
        url: The address in the settings.
        model: The name that was asked for.
        status: Of HTTP.
        message: What the server says, in one line.
        with_key: Whether a key was sent.
    """
    what, said = f"{model} at {url}", f"{status}: {message}" if message else str(status)
    if is_too_long(message) or status == 413:
        return DependencyFailed(
            f"{what}: the request is longer than the model's context ({said}); start the server with a longer context "
            "or lower MATS_K"
        )
    if status in (400, 404, 422) and _NO_MODEL.search(message):
        text = f"{what} cannot be used ({said}); set MATS_LLM_MODEL to a model that the server has"
        return ModelRefused(text, model=model, cause=said)
    if to_do := _to_do(url, status, with_key=with_key):
        return NotPermitted(f"{what} cannot be used ({said}); {to_do}")
    if status == 429:
        return DependencyFailed(f"{what} is busy ({said}); ask less often or raise the server's limit")
    return DependencyFailed(f"{what} did not answer ({said})")


def _to_do(url: str, status: int, *, with_key: bool) -> str:
    """The remedy for a status, for an operator; empty if another attempt may help."""
    if 300 <= status < 400:
        return "the address redirects, which is not followed: set MATS_LLM_URL to the final address"
    if status in (404, 405, 410):
        return f"set MATS_LLM_URL to the address before /chat/completions, such as {_EXAMPLE}"
    if status in (401, 403, 407):
        return f"the server {'refuses the key' if with_key else 'asks for a key'}: set MATS_LLM_KEY to a valid one"
    return "add credit at the server or use another" if status == 402 else ""


def output_refused(url: str, model: str, cause: str) -> ModelRefused:
    """The error of a server that does not take the output which the settings choose."""
    text = f"{model} at {url} does not take the output of MATS_LLM_OUTPUT ({cause}); set it to auto"
    return ModelRefused(text, model=model, cause=cause)


def unexpected_answer(url: str) -> DependencyFailed:
    """The error for a response that is not one of chat completions."""
    return DependencyFailed(
        f"{url}: the response is not one of chat completions; check that MATS_LLM_URL is the address of a model "
        f"server, such as {_EXAMPLE}"
    )
