"""Questions to a service elsewhere: one that `mats serve` gave tokens."""

import json
from typing import Any

import typer

from mats.domain.errors import DependencyFailed
from mats.edge.http import to_json
from mats.edge.requests import DiscoverRequest
from mats.settings import Settings, SettingsInvalid, variable_of


def ask_service(url: str, request: DiscoverRequest, settings: Settings) -> dict[str, Any]:
    """The answer of `POST /discover`, with the token of the settings.

    Raises:
        typer.BadParameter: the address, or what it was asked, is invalid.
        SettingsInvalid: the service does not know the token.
        DependencyFailed: it does not answer.
    """
    try:
        from mats import client as api  # noqa: PLC0415 - urllib3, for --url only
    except ImportError as error:
        raise typer.BadParameter("needs urllib3: pip install 'mats[client]'", param_hint="--url") from error
    token = settings.read_token or settings.write_token
    try:
        with api.Client(url, auth=api.Bearer(token) if token else None) as client:
            return _ask(client, request)
    except (ValueError, api.WrongRequest) as error:
        hint = f"set {variable_of('read_token')} to its token" if not token else "check it"
        raise typer.BadParameter(f"{error} ({hint})", param_hint="--url") from error
    except api.NotAllowed as error:
        variable = variable_of("read_token")
        raise SettingsInvalid(f"{url} refuses the request ({error.problem.detail}): set {variable}") from error
    except api.MatsError as error:
        raise DependencyFailed(str(error)) from error


def _ask(client: Any, request: DiscoverRequest) -> dict[str, Any]:
    filters = {"kinds": request.kinds, "namespaces": request.namespaces, "tags": request.tags}
    limits = {"limit": request.limit, "min_relevance": request.min_relevance}
    query = list(request.queries or ()) or request.query
    if request.format:
        answer = client.tools(query, request.format, token_budget=request.token_budget, **filters, **limits)
    else:
        answer = client.discover(query, parts=request.parts, explain=request.explain, **filters, **limits)
    content: dict[str, Any] = json.loads(to_json(answer))
    return content
