"""Calls of what was found: HTTP operations, tools of MCP servers, and messages to A2A agents. Nothing here ranks.

from mats.client import Client, call

with Client("http://127.0.0.1:8080") as mats:
    found = mats.capability("com.deepwiki.mcp/ask_question")
print(call(found.invocation, {"repoName": "modelcontextprotocol/python-sdk", "question": "Which transports?"}).content)
"""

import asyncio
import base64
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mats.domain.capability.json_schema import NO_TEXTS, Texts, faults_of
from mats.domain.errors import DependencyFailed, Fault, NotInstalled, NotPossible, RequestInvalid, command_to_install
from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.authentication import is_basic, secrets_of, variable_of
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.mcp_server import McpRemote, McpStdio, values_of
from mats.domain.protocols.openapi import HttpCall, media_type_of
from mats.domain.protocols.openapi_document import FORM, MULTIPART
from mats.domain.protocols.values import text_at
from mats.domain.text.fence import spell_out

if TYPE_CHECKING:
    import httpx2

    from mats.client.mcp_session import Ask
    from mats.client.requests import Credential

T = TypeVar("T")
Object: TypeAlias = Mapping[str, Any]
Stated: TypeAlias = Invocation | Object | None  # An invocation, or its JSON
_OTHER = re.compile(r"\W")
_FAILED = frozenset({"failed", "rejected", "canceled"})  # States of a task of A2A


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What came of a call: whether it succeeded, the status over HTTP, and its result: a JSON value or text."""

    ok: bool
    status: int | None = None
    content: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCall:
    shown: Mapping[str, Any]  # What it sends, with names of variables, set or not, in place of secrets
    send: Callable[[], Called] = field(repr=False)
    command: str = ""  # The command line that it starts, if it starts one


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Calls capabilities. What an invocation and an answer say is text of its owner: nothing of it is trusted.

    Args:
        environment: Where credentials are read from, each by a name for its host: `API_TOKEN_API_STRIPE_COM`.
        values: Of the placeholders in braces that an owner left to the caller, and of headers that a server asks for.
        may_run: Whether a command line may be started; it runs its owner's program. By default none.
        private: Whether addresses of this machine and of private networks may be called.
        timeout_s: Of a call as a whole.
        max_bytes: Of an answer.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    may_run: Callable[[str], bool] = lambda command: False
    private: bool = False
    timeout_s: float = 60.0
    max_bytes: int = 4_000_000

    def __call__(
        self, invocation: Stated, arguments: Object, *, tool: str = "", schema: Object | None = None
    ) -> Called:
        """Call a capability once.

        Args:
            invocation: Of `Client.capability(id)`, or its JSON.
            arguments: The input, by the capability's input schema; of an agent its `message`.
            tool: Of an MCP server whose invocation names none; without one, the server's tools are the result.
            schema: The capability's input schema: nothing is sent that lacks what it requires, or has other types.

        Raises:
            RequestInvalid: the input, a value or a credential is missing, or cannot be sent.
            NotPossible: it cannot be called by this client, or its command was not confirmed.
            Unfetchable: its address is blocked, does not answer in time, or answers too much.
            DependencyFailed: an MCP server did not answer.
        """
        prepared = self.prepare(invocation, arguments, tool=tool, schema=schema)
        if prepared.command and not self.may_run(prepared.command):
            raise _impossible(f"starts a program of its owner: confirm it by `may_run`: {prepared.command}")
        return prepared.send()

    def prepare(
        self, invocation: Stated, arguments: Object, *, tool: str = "", schema: Object | None = None
    ) -> PreparedCall:
        """The call, without sending or starting anything; credentials are read when it is sent.

        Raises as `__call__`; RequestInvalid has all faults of the input and of the values.
        """
        call = from_text(json.dumps(invocation)) if isinstance(invocation, Mapping) else invocation
        texts = NO_TEXTS
        if isinstance(call, HttpCall):
            body, kind = call.body_input, media_type_of(call.body)
            texts = Texts(True, "" if kind in (FORM, MULTIPART) else body, body if kind == MULTIPART else "")
        found = () if isinstance(call, A2aCall) else faults_of(arguments, schema, schema or {}, texts=texts)
        faults = {name: Fault(name, message) for name, message in found}
        try:
            prepared = self._prepare(call, arguments, tool)
        except RequestInvalid as error:
            faults |= {fault.attribute: fault for fault in error.faults}
        if faults:
            raise RequestInvalid([*faults.values()])
        return prepared

    def _prepare(self, call: Invocation | None, arguments: Mapping[str, Any], tool: str) -> PreparedCall:
        try:
            match call:
                case McpStdio():
                    return self._stdio(call, arguments, tool or call.tool)
                case McpRemote() if call.transport == "streamable-http":
                    return self._remote(call, arguments, tool or call.tool)
                case HttpCall() | A2aCall():
                    return self._http(call, arguments)
        except ModuleNotFoundError as error:
            raise NotInstalled(f"{error.name} is not installed: {command_to_install('call')}") from error
        raise _impossible(
            "it cannot be called: its owner registered no address or command (of an API: `mats import --server`)"
            if call is None
            else f"this client does not call {call.facts()[0][1]}"
        )

    def _http(self, call: HttpCall | A2aCall, arguments: Mapping[str, Any]) -> PreparedCall:
        from mats.client import requests  # noqa: PLC0415 - loads the HTTP library

        def build(*, reveal: bool) -> "httpx2.Request":
            faults, url, secrets = list[Fault](), re.sub("[{}]", "", call.url), list["Credential"]()
            with requests.gather(faults):
                url, secrets = self._address(call, reveal=reveal)
            with requests.gather(faults):
                if isinstance(call, HttpCall):
                    request = requests.operation(call, arguments, url, secrets)
                else:
                    request = requests.message(call, arguments, url, secrets)
            if faults:
                raise RequestInvalid(faults)
            return request

        shown = build(reveal=False)
        return PreparedCall(
            shown={
                "method": shown.method, "url": str(shown.url), "headers": dict(shown.headers),
                **({"body": shown.content.decode("utf-8", "replace")} if shown.content else {}),
            },
            send=lambda: self._send(build(reveal=True), read_message=isinstance(call, A2aCall)),
        )  # fmt: skip

    def _address(self, call: HttpCall | A2aCall | McpRemote, *, reveal: bool) -> "tuple[str, list[Credential]]":
        """The filled-in address and the credentials for it; unless to `reveal`, by name, also of variables not set."""
        from mats.client import requests  # noqa: PLC0415 - loads the HTTP library

        named = {name: variable_of(f"INPUT_{_OTHER.sub('_', name)}", call.url) for name in call.inputs}
        values = {**{name: self.environment.get(each, "") for name, each in named.items()}, **self.values}
        url = requests.fill_in(call.url, call.inputs, values, in_url=True)
        secrets = requests.credentials_for(call.auth, url, self.environment, private=self.private, reveal=reveal)
        if not reveal:
            url = requests.fill_in(call.url, call.inputs, requests.hide_secrets(values), in_url=True)
        return url, secrets

    def _send(self, request: "httpx2.Request", *, read_message: bool) -> Called:
        from mats.client.bounded_http import send  # noqa: PLC0415 - loads the HTTP library

        sent = partial(send, request, timeout_s=self.timeout_s, max_bytes=self.max_bytes, private=self.private)
        status, type, body = _outside_loops(sent)
        content = _content(type, body)
        ok = 200 <= status < 300
        if read_message and isinstance(content, Mapping):
            ok, content = ok and _has_succeeded(content), content.get("result", content.get("error", content))
        return Called(ok=ok, status=status, content=content)

    def _remote(self, call: McpRemote, arguments: Mapping[str, Any], tool: str) -> PreparedCall:
        from mats.client import mcp_session, requests  # noqa: PLC0415 - loads the MCP SDK

        values = {**values_of(call.stated), **self.values}
        given = {name: value for name, value in values.items() if name in call.headers}
        missing = [name for name in call.headers if name not in {*given, *call.optional}]
        faults, shown_url, secrets = list[Fault](), "", list["Credential"]()
        with requests.gather(faults):
            requests.check_values(missing, "the server asks for this header")
            given = {name: requests.header_value(name, value) for name, value in given.items()}
        with requests.gather(faults):
            shown_url, secrets = self._address(call, reveal=False)
        if faults:
            raise RequestInvalid(faults)
        shown_url, shown = requests.with_secrets(shown_url, requests.hide_secrets(given), [], secrets)

        def ask(wanted: "Ask") -> Any:
            url, secrets = self._address(call, reveal=True)
            url, sent = requests.with_secrets(url, given, [], secrets)
            try:
                return mcp_session.ask_address(
                    url, wanted, timeout_s=self.timeout_s, headers=sent, max_bytes=self.max_bytes, private=self.private
                )
            except mcp_session.ServerFailed as error:
                variable = variable_of("API_TOKEN", url)
                hint = f": set {variable}" if "requires authentication" in str(error) else ""
                raise DependencyFailed(f"{error}{hint}") from error

        return _tool_call({"url": shown_url, "headers": shown}, arguments, tool, ask)

    def _stdio(self, call: McpStdio, arguments: Mapping[str, Any], tool: str) -> PreparedCall:
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415 - loads the MCP SDK

        from mats.client import mcp_session, requests  # noqa: PLC0415 - as above

        line, shown = (
            [requests.fill_in(part, call.inputs, values) for part in (call.command, *call.args)]
            for values in (self.values, requests.hide_secrets(self.values))
        )
        given = {name: self.environment[name] for name in call.env if name in self.environment}
        stated = {
            name: value for name, value in values_of(call.stated).items() if name in call.env and name not in given
        }
        named = (f"{name}={shlex.quote(stated[name]) if name in stated else f'${name}'}" for name in call.env)
        command = spell_out(" ".join((*named, shlex.join(shown))))
        env = {**get_default_environment(), **stated, **given}
        ask = partial(mcp_session.ask_command, line, timeout_s=self.timeout_s, env=env)
        return _tool_call({"command": command}, arguments, tool, ask)


def check_names(call: Invocation | None, names: Collection[str]) -> None:
    """Refuse values that a call would ignore. Raises RequestInvalid: with every such name."""
    known = [*getattr(call, "inputs", ()), *getattr(call, "headers", ())]
    takes = f"cannot be set: this call takes {', '.join(known) or 'no values'} by --set"
    variables = {name: name for name in getattr(call, "env", ())}
    if url := getattr(call, "url", ""):
        auth = getattr(call, "auth", ())
        secrets = {"authorization": ("API_USER", "API_PASSWORD") if is_basic(auth) else ("API_TOKEN",)}
        secrets |= {secret.name.lower(): (secret.variable,) for secret in secrets_of(auth)}
        variables = {
            name: " and ".join(variable_of(each, url) or f"{each}_…" for each in used) for name, used in secrets.items()
        }
    faults = [
        Fault(name, f"is not taken by --set: set {variable} in the environment" if variable else takes)
        for name in names
        if name not in known
        for variable in [variables.get(name) or variables.get(name.lower())]
    ]
    if faults:
        raise RequestInvalid(faults)


def call(invocation: Stated, arguments: Mapping[str, Any], *, tool: str = "", **options: Any) -> Called:
    """Call a capability once; `options` are the fields of `Caller`, and the rest is as for calling one."""
    return Caller(**options)(invocation, arguments, tool=tool)


def _impossible(message: str) -> NotPossible:
    return NotPossible([Fault("", message)])


def _tool_call(
    shown: Mapping[str, Any], arguments: Mapping[str, Any], tool: str, ask: "Callable[[Ask], Mapping[str, Any]]"
) -> PreparedCall:
    """The call of a tool of an MCP server, or the list of its tools; `ask` is how the server is reached."""
    from mats.client.mcp_session import list_tools  # noqa: PLC0415 - loads the MCP SDK

    params = {"name": tool, "arguments": dict(arguments)}
    request = {"method": "tools/call", "params": params} if tool else {"method": "tools/list"}
    wanted: Ask = (lambda session: session.request("tools/call", params)) if tool else list_tools
    return PreparedCall(
        shown={**shown, **request},
        send=lambda: _of_tool(_outside_loops(partial(ask, wanted))),
        command=shown.get("command", ""),
    )


def _of_tool(result: Mapping[str, Any]) -> Called:
    """The structured content of a tool's result, else its texts, else its blocks; of a list all of it."""
    blocks = result.get("content")
    if not isinstance(blocks, list):
        return Called(ok="tools" in result, content=dict(result))
    texts = [one.get("text") for one in blocks if isinstance(one, Mapping) and one.get("type") == "text"]
    content = result.get("structuredContent")
    if content is None:
        content = "\n".join(map(str, texts)) if len(texts) == len(blocks) else blocks
    ok = result.get("isError") is not True and result.get("resultType", "complete") == "complete"
    return Called(ok=ok, content=content)


def _has_succeeded(reply: Mapping[str, Any]) -> bool:
    """True if a reply, of JSON-RPC or HTTP+JSON, has a message, or a task that did not fail."""
    result = reply.get("result", None if reply.keys() & {"jsonrpc", "error"} else reply)
    task = result.get("task", result) if isinstance(result, Mapping) else None
    state = text_at(task, "status", "state").lower().removeprefix("task_state_")
    return task is not None and state not in _FAILED


def _content(type: str, body: bytes) -> Any:
    """A JSON value, text, or what is neither as `base64`."""
    try:
        text = body.decode()
        return json.loads(text) if "json" in type and text else text
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}
    except (ValueError, RecursionError):
        return text


def _outside_loops(work: Callable[[], T]) -> T:
    """The result of work that runs an event loop, in a thread of its own if this one runs one already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()
