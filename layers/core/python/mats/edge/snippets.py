"""How a capability is called, in words and as texts to copy: an MCP client's configuration, curl, a call in Python.

Every text of an owner is one literal of its language, with hidden characters escaped. Secrets are variables that are
named after the host they are sent to, as `mats call` reads them, or by us: no owner can name that of another service's.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pprint import pformat
from textwrap import indent
from typing import Any, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Kind, parts
from mats.domain.capability.json_schema import example_of, resolve_reference
from mats.domain.profile.profile import Profile
from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.authentication import TOKEN, is_basic, secrets_of, variable_of
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.mcp_server import McpRemote, McpServer, McpStdio, values_of
from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.protocols.openapi import HttpCall, media_type_of
from mats.domain.protocols.openapi_document import FORM, MULTIPART
from mats.domain.protocols.values import mapping_at
from mats.domain.text.fence import escape_hidden, is_hidden, spell_out
from mats.edge.schema import Capability

WAYS_TO_CALL: Mapping[Kind, str] = {
    Kind.TOOL: "add `descriptor.server` with the command or the address of its MCP server, or `endpoint` and "
    "`descriptor.method` of its HTTP operation",
    Kind.AGENT: "add its A2A agent card as `descriptor`, and its address as `endpoint`",
    Kind.SKILL: "add the text of its SKILL.md as `descriptor.instructions`",
    Kind.MODEL: "add the ARN of its Bedrock model as `endpoint`, or another way to call it: docs/import-formats.md",
}
"""By kind, what would say how a capability is called."""
_MAX_NAMES = 10
_GENERAL = frozenset({"mcp", "server", "tools", "api", "www"})  # Labels of a namespace that name no server
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class SnippetFormat(StrEnum):
    MCP = "mcp"
    CURL = "curl"
    PYTHON = "python"


class Snippets(BaseModel):
    """How a capability is called: in words, and as texts to copy. A text that is not possible is empty.

    The caller fills in what stands in braces and what is an empty string. Secrets are read from variables.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    facts: dict[str, str] = Field(description="Protocol, address and what a caller needs, by name; empty for none.")
    missing: str = Field(default="", description="If nothing says how it is called: what its owner should add.")
    mcp: str = Field(default="", description="The configuration of an MCP client, as `.mcp.json` has it.")
    curl: str = Field(default="", description="A command for a POSIX shell.")
    python: str = Field(default="", description="A program that calls it with `mats.client.call`.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        call = from_text(profile.invocation)
        if call is None:
            return cls(facts={}, missing=WAYS_TO_CALL[profile.indexed_kind])
        arguments = _examples_for(call, mapping_at(json.loads(profile.input_schema or "{}")))
        return cls(
            facts=facts_of(call),
            mcp=client_configuration(call, profile.id) if isinstance(call, McpStdio | McpRemote) else "",
            curl=curl_command(call, arguments) if isinstance(call, HttpCall | A2aCall) else "",
            python=python_call(call, arguments),
        )

    def text(self, format: SnippetFormat) -> str:
        """The snippet in one format; empty if it is not possible."""
        return str(getattr(self, format))


class CapabilityWithSnippets(Capability):
    """One capability's profile, and texts that call it."""

    snippets: Snippets


def facts_of(invocation: Invocation) -> dict[str, str]:
    """The facts of the call, and what the caller has to bring: texts by their names, in order."""
    options: dict[int | None, list[str]] = {}
    for scheme in getattr(invocation, "auth", ()):
        named = f"{scheme.scheme} {scheme.name} ({scheme.in_ or 'header'})" if scheme.name else scheme.scheme
        options.setdefault(scheme.option, []).append(named)
    facts = {
        **dict(invocation.facts()),
        "files": _join_names(getattr(invocation, "files", ())),
        "variables to set": _join_names(getattr(invocation, "env", ())),
        "headers to send": _join_names(getattr(invocation, "headers", ())),
        "authentication": ", or ".join(" and ".join(option) for option in options.values()),
        "to fill in": _join_names([f"{{{name}}}" for name in getattr(invocation, "inputs", ())]),
    }
    return {name: text for name, text in facts.items() if text}


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def client_configuration(server: McpServer, id: str) -> str:
    """The JSON, with an empty value for each variable that has none, and placeholders in braces for credentials."""
    entry: dict[str, Any]
    stated = values_of(server.stated)
    if isinstance(server, McpStdio):
        env = {name: stated.get(name, "") for name in server.env}
        entry = {"command": server.command, "args": list(server.args), "env": env}
    else:
        headers = {name: stated.get(name, "") for name in server.headers}
        for secret in secrets_of(server.auth):
            if secret.place == "header":
                headers[secret.name] = f"{secret.prefix}{{token}}" if secret.prefix else ""
        if is_basic(server.auth):
            headers["Authorization"] = "Basic {credentials}"
        entry = {"type": "sse" if server.transport == "sse" else "http", "url": server.url, "headers": headers}
    namespace, name = parts(id)
    labels = [label for label in reversed(namespace.split(".")) if label not in _GENERAL]
    chosen = labels[0] if server.tool and labels else name  # the server of a tool is named by its namespace
    key = re.sub(r"[^A-Za-z0-9_-]+", "-", chosen).strip("-")[:64] or "server"
    return json_text({"mcpServers": {key: {name: value for name, value in entry.items() if value != {}}}}, indent=2)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON with hidden and control characters as escapes."""
    return escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent))


def python_call(call: Invocation, arguments: Mapping[str, Any]) -> str:
    """A call with these arguments; empty for what `mats.client.call` cannot call."""
    url, options = getattr(call, "url", ""), list[str]()
    match call:
        case McpStdio():
            options.append("may_run=lambda command: True")
        case McpRemote(transport="streamable-http") | HttpCall() | A2aCall(transport="" | "JSONRPC"):
            options += [] if namespace_of_url(url) else ["private=True"]
        case _:
            return ""
    if named := dict.fromkeys((*call.inputs, *getattr(call, "headers", ())), ""):
        options.append(f"values={_literal(named)}")
    given = [_literal(call.model_dump(mode="json")), _literal(arguments), *options]
    lines = indent("".join(f"{one},\n" for one in given), "    ")
    return f"from mats.client import call\n\ncalled = call(\n{lines})\nprint(called.content)"


def _examples_for(call: Invocation, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Examples of what a schema requires, and of a body; of an agent a message."""
    if isinstance(call, A2aCall):
        return {"message": "Hello"}
    required, properties = schema.get("required"), mapping_at(schema, "properties")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    if isinstance(call, HttpCall) and call.body:
        names.append(call.body_input)
    given = {name: example_of(properties[name], schema) for name in dict.fromkeys(names) if name in properties}
    if isinstance(call, HttpCall) and (body := call.body_input) in given:
        given[body] = _with_files(call, given[body], schema)
    return given


_A_FILE: Mapping[str, Any] = {"filename": "FILE", "content": ""}
"""A file as a call takes it."""


def _with_files(call: HttpCall, body: Any, schema: Mapping[str, Any]) -> Any:
    """An example of a body with files where it is sent as a form with files, or as one file."""
    stated = resolve_reference(mapping_at(schema, "properties", call.body_input), schema)
    kind = media_type_of(call.body)
    if kind == MULTIPART and isinstance(body, dict):
        of = {name: resolve_reference(mapping_at(stated, "properties", name), schema) for name in body}
        alone = {name for name, each in of.items() if each.get("format") == "binary"}
        lists = {name for name, each in of.items() if mapping_at(each, "items").get("format") == "binary"}
        return {n: dict(_A_FILE) if n in alone else [dict(_A_FILE)] if n in lists else v for n, v in body.items()}
    is_file = kind != FORM and "json" not in kind and stated.get("format") == "binary"
    return dict(_A_FILE) if is_file else body


def _literal(value: Any) -> str:
    """A JSON value as a Python expression."""
    written = pformat(value, width=100, sort_dicts=False)
    return "".join(f"\\U{ord(c):08x}" if c != "\n" and is_hidden(c) else c for c in written)


def curl_command(call: HttpCall | A2aCall, arguments: Mapping[str, Any]) -> str:
    """The command, an option on each line; empty if a name cannot be sent.

    Every value is given so that curl takes it as it is: it expands no braces, and reads no file that `@` or `<` names
    but `FILE`, which stands for one to upload.
    """
    if (request := _request(call, arguments)) is None:
        return ""
    url, sent, body = request
    options, address, method = list[str](), "", getattr(call, "method", "POST")

    def own(variable: str) -> str:
        return variable_of(variable, call.url) or variable

    for secret in secrets_of(call.auth):
        if secret.place == "header":
            options.append(f"-H {shell_word(f'{secret.name}: {secret.prefix}', own(secret.variable))}")
        elif secret.place == "cookie":
            options.append(f"-b {shell_word(f'{secret.name}=', own(secret.variable))}")
        else:
            key = f"{'&' if '?' in url or address else '?'}{quote(secret.name, safe='')}="
            address += shell_word(f"{'' if address else url}{key}", own(secret.variable))
    if is_basic(call.auth):
        options.append(f'-u "${own("API_USER")}:${own("API_PASSWORD")}"')
    shown = "" if method == "GET" and body is None else " --head" if method == "HEAD" else f" -X {method}"
    first = f"curl{' --globoff' if set(url) & set('{}[]') else ''}{shown} {address or shell_word(url)}"
    return " \\\n  ".join((first, *options, *sent, *_body(getattr(call, "body", "application/json"), body)))


def _request(call: HttpCall | A2aCall, arguments: Mapping[str, Any]) -> tuple[str, list[str], Any] | None:
    """The address, the options for headers and cookies, and the body, with these arguments; None if impossible."""
    if isinstance(call, A2aCall):
        message = call.message(arguments["message"], call.url)
        return message and (message[0], [f"-H {shell_word(f'{n}: {v}')}" for n, v in message[1].items()], message[2])
    url, sent = call.url, list[str]()
    for each in call.parameters:
        if each.in_ == "path" or (each.property or each.name) not in arguments:
            continue
        value = f"{{{re.sub(r'[^A-Za-z0-9_.-]+', '_', each.name) or 'value'}}}"
        option, sign = ("-H", ": ") if each.in_ == "header" else ("-b", "=")
        if each.in_ == "query":
            url += f"{'&' if '?' in url else '?'}{quote(each.name, safe='')}={value}"
        elif TOKEN.fullmatch(each.name):
            sent.append(f"{option} {shell_word(each.name + sign + value)}")
        else:
            return None
    return url, sent, arguments.get(call.body_input, "") if call.body else None


def _body(media_type: str, body: Any) -> list[str]:
    """The options that send a body."""
    kind = media_type_of(media_type)
    if body is None:
        return []
    if kind in (FORM, MULTIPART) and isinstance(body, dict):
        option = "--data-urlencode" if kind == FORM else "--form-string"
        files = {name for name, one in body.items() if one in (_A_FILE, [_A_FILE])} if kind == MULTIPART else set()
        texts = {name: one if isinstance(one, str) else json_text(one) for name, one in body.items()}
        return [
            f"-F {shell_word(quote(name, safe='') + '=@FILE')}"
            if name in files
            else f"{option} {shell_word(quote(name, safe='') + '=' + text)}"
            for name, text in texts.items()
        ]
    if body == _A_FILE and "json" not in kind:
        return [f"-H {shell_word(f'Content-Type: {media_type}')}", "--data-binary @FILE"]
    text = json_text(body) if "json" in kind else "{body}"
    return [f"-H {shell_word(f'Content-Type: {media_type}')}", f"--data-raw {shell_word(text)}"]


def shell_word(text: str, variable: str = "") -> str:
    """One word of a shell: a text as it is, then the value of a variable.

    Hidden and control characters are spelled out: no shell has an escape for them that all others have, too.
    """
    shown = _CONTROL.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", spell_out(text))
    if not variable:
        return shlex.quote(shown)
    safe = re.fullmatch(r"[\w ./:=?&%,@+-]*", shown, re.ASCII)
    return f'"{shown}${variable}"' if safe else f'{shlex.quote(shown)}"${variable}"'
