"""How an MCP server is reached: the command that starts it, or its address.

It is read from what an importer or an owner wrote into a descriptor: `server`, or the `remotes` and `packages` of a
`server.json`.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Literal

from mats.domain.protocols.authentication import AuthScheme, auth_from_list, auth_of_headers, is_secret
from mats.domain.protocols.protocol import Call, Compact, Facts
from mats.domain.protocols.values import mapping_at, objects, text_at, to_camel_case, value_at
from mats.domain.text import redaction

Transport = Literal["streamable-http", "sse"]

_TRANSPORTS = ("streamable-http", "streamable", "streamableHttp", "streamable_http", "http", "sse")
"""Best first: the last is deprecated."""
_ADDRESS_ENDS = {"mcp": "streamable-http", "sse": "sse"}
_ENTRY = frozenset({"command", "args", "env", "url", "auth", "headers"})
_MAX_ARGUMENTS, _MAX_LINE = 100, 16_000  # Limits of a command in arguments and characters
_MAX_STATED = 20  # Values, so that the invocation is not too large for all of them
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,99})=(.*)", re.DOTALL)
_CONTAINER_RUNNERS = frozenset({"docker", "podman", "nerdctl"})
_RUNNER_OF = {"npm": "npx", "pypi": "uvx", "oci": "docker", "docker": "docker", "nuget": "dnx"}
_RUNNERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "npx": (("-y",), "@"), "bunx": ((), "@"), "pnpm": (("dlx",), "@"),
    "uvx": ((), "@"), "uv": (("tool", "run"), "@"), "pipx": (("run",), "=="), "dnx": ((), "@"),
    **dict.fromkeys(_CONTAINER_RUNNERS, (("run", "-i", "--rm"), ":")),
}  # fmt: skip
"""What starts a package: the arguments before its name, and what separates its name from its version."""
_PACKAGE_RUNNERS = frozenset({*_RUNNERS, "npm", "yarn", "bun"})
_PASSES_ON = ("-e", "--env")  # Options of container runners for a variable
_INSTEAD = frozenset({"--from", "--package"})  # Options of runners after which no name of a package follows
_WORD = re.compile(r"[A-Za-z0-9@][\w./:@+-]*")


class StatedValue(Compact):
    """The value that a publisher states of a variable or a header; none that may be secret is kept."""

    name: str
    value: str


def values_of(stated: Iterable[StatedValue]) -> dict[str, str]:
    return {each.name: each.value for each in stated}


class McpStdio(Call):
    """A server that a command starts, and one of its tools."""

    protocol: Literal["mcp"] = "mcp"
    transport: Literal["stdio"] = "stdio"
    command: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # Names of variables to be set
    stated: tuple[StatedValue, ...] = ()  # Of variables that are not set
    inputs: tuple[str, ...] = ()  # The names in braces in `command` and `args` to be filled in
    tool: str = ""

    def facts(self) -> Facts:
        command = shlex.join((self.command, *self.args))
        return (("protocol", "MCP over stdio"), ("command", command), ("tool", self.tool))


class McpRemote(Call):
    """A server at an address, and one of its tools. `headers` has names of headers besides those of `auth`."""

    protocol: Literal["mcp"] = "mcp"
    transport: Transport
    url: str
    auth: tuple[AuthScheme, ...] = ()
    headers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # Of `headers`, those that may be left out
    stated: tuple[StatedValue, ...] = ()  # Of headers for which no other value is given
    inputs: tuple[str, ...] = ()
    tool: str = ""

    def facts(self) -> Facts:
        transport = {"streamable-http": "streamable HTTP", "sse": "SSE"}[self.transport]
        return (("protocol", f"MCP over {transport}"), ("endpoint", self.url), ("tool", self.tool))


McpServer = McpStdio | McpRemote


_KEYS: Mapping[str, tuple[str, ...]] = {
    "command": ("command", "cmd"),
    "args": ("args", "arguments"),
    "env": ("env", "environment", "envs", "env_vars", "env_keys"),
    "url": ("httpUrl", "url", "serverUrl", "server_url", "uri"),
    "headers": ("headers", "http_headers"),
    "transport": ("transport", "transportType", "type"),
    "auth": ("auth",),
}
"""The keys under which clients write what starts or reaches a server. The first that is given counts."""
_NESTED = ("transport", "command", "config", "requestOptions")  # With such keys inside: Continue, Zed, Goose


def plain_entry(written: object) -> dict[str, Any]:
    """An entry of any client's configuration under the keys of `.mcp.json`; an argument that is no scalar is None."""
    given = mapping_at(written)
    for key in _NESTED:
        if inner := mapping_at(given, key):
            given = {**given, key: inner.get("path"), **inner}
    entry: dict[str, Any] = {k: next((given[n] for n in each if given.get(n)), None) for k, each in _KEYS.items()}
    command, args = entry["command"], entry["args"]
    if isinstance(command, str) and not args and _program(command.partition(" ")[0]) in _PACKAGE_RUNNERS:
        command = command.split()
    line = [*_to_list(command), *(args.split() if isinstance(args, str) else _to_list(args))]
    entry["command"], *entry["args"] = map(as_text, line or [None])
    entry["env"] = {}
    for env in (given.get(key) for key in _KEYS["env"]):
        names = (text_at(each, "name") or str(each).partition("=")[0] for each in _to_list(env))
        entry["env"].update(env if isinstance(env, Mapping) else dict.fromkeys(names))
    sent = {name: f"${{{variable}}}" for name, variable in mapping_at(given, "env_http_headers").items()}
    if token := given.get("bearer_token_env_var"):
        sent["Authorization"] = f"Bearer ${{{token}}}"
    entry["headers"] = {**mapping_at(entry, "headers"), **sent} if sent else entry["headers"]
    return entry


def _to_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def as_text(value: object) -> str | None:
    """A text, number or boolean as a command line has it."""
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, int | float) else None


def server_of(written: object, tool: str = "") -> McpServer | None:
    """The server of an entry, or of a descriptor. Of variables and headers only names are kept."""
    entry = plain_entry(written)
    if (command := entry["command"]) and command.strip():
        return stdio_server(command, entry["args"], list(entry["env"]), tool)
    return remote_server(entry["url"], entry["transport"], entry["headers"], auth_from_list(entry["auth"]), tool=tool)


def server_entry(server: McpServer) -> dict[str, Any]:
    """The entry of a descriptor from which `server_of` makes this server again."""
    kept = _ENTRY if isinstance(server, McpStdio) else _ENTRY | {"transport"}
    return {key: value for key, value in server.model_dump(mode="json").items() if key in kept}


def stdio_server(command: str, arguments: Sequence[Any], env: Sequence[object] = (), tool: str = "") -> McpStdio | None:
    """A command without values of variables and what looks like a secret; None if it is not plain text.

    `env NAME=value COMMAND` is the command with that variable; so is `docker run -e NAME=value`.
    """
    line = [command.strip(), *arguments]
    if len(line) > _MAX_ARGUMENTS or not all(map(_is_argument, line)) or sum(map(len, line)) > _MAX_LINE:
        return None
    line = list(map(redaction.name_variables, line))
    names = [name for name in env if isinstance(name, str)]
    if _program(line[0]) == "env":
        while len(line) > 1 and (assigned := _ASSIGNMENT.fullmatch(line[1])):
            names.append(assigned[1])
            del line[1]
        del line[0]
    if not line or not line[0]:
        return None
    if _program(line[0]) in _CONTAINER_RUNNERS:
        line = list(_pass_on_variables(line, names))
    command, *args = map(redaction.without_expansions, redaction.redact_arguments(line))
    return McpStdio(
        command=command,
        args=tuple(args),
        env=tuple(dict.fromkeys(name for name in names if _VARIABLE_NAME.fullmatch(name)))[:_MAX_ARGUMENTS],
        inputs=redaction.placeholders(command, *args),
        tool=tool,
    )


def _is_argument(value: object) -> bool:
    return isinstance(value, str) and len(value) <= redaction.MAX_TEXT and redaction.is_plain(value)


def _program(command: str) -> str:
    return PureWindowsPath(PurePosixPath(command).name).name.lower().removesuffix(".exe")


def _pass_on_variables(line: Sequence[str], names: list[str]) -> Iterator[str]:
    """The line of a container runner, each variable passed on by its name, which is added to `names`."""
    before = ""
    for argument in line:
        option, _, rest = argument.partition("=")
        start, assigned = (
            (f"{option}=", rest) if option in _PASSES_ON else ("", argument if before in _PASSES_ON else "")
        )
        before, name = argument, assigned.partition("=")[0]
        is_variable = _VARIABLE_NAME.fullmatch(name)
        names += [name] if is_variable else []
        yield start + name if is_variable else argument


def remote_server(
    url: object, transport: object = None, headers: object = None, auth: tuple[AuthScheme, ...] = (), *, tool: str = ""
) -> McpRemote | None:
    """A server at an http or https address, with what in its query does not look secret.

    An unknown transport is what the end of the address says, else HTTP.
    """
    named = redaction.name_variables(url) if isinstance(url, str) else ""
    given = redaction.redact_url(named, shown=redaction.public_query(named))
    if given is None:
        return None
    shown = redaction.without_expansions(given)
    is_sse = transport == "sse" if transport in _TRANSPORTS else address_transport(shown) == "sse"
    of_headers, others = auth_of_headers(headers)
    optional = [_text(each, "name") for each in objects(headers) if each.get("isRequired") is not True]
    return McpRemote(
        transport="sse" if is_sse else "streamable-http",
        url=shown,
        auth=(*auth, *(scheme for scheme in of_headers if scheme not in auth)),
        headers=others,
        optional=tuple(name for name in others if name in optional),
        inputs=redaction.placeholders(shown),
        tool=tool,
    )


def address_transport(url: str) -> str:
    """The transport by convention: the path of an MCP server ends in `mcp` or `sse`; empty for another address."""
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2].lower()
    return _ADDRESS_ENDS.get(last, "")


def published_server(descriptor: Mapping[str, Any]) -> McpServer | str:
    """The server of a `server.json`: the best that can be called of its remotes and packages; or why there is none.

    A remote comes before a package that a known runner starts, and that before a remote over SSE, which is not called.
    """
    remotes = list(filter(None, map(_remote, best_first(descriptor.get("remotes")))))
    tried = [_package(to_camel_case(package)) for package in objects(descriptor.get("packages"))]
    called = (remote for remote in remotes if remote.transport != "sse")
    packages = (found for found in tried if isinstance(found, McpStdio))
    return next(chain(called, packages, remotes, tried), "")


def best_first(remotes: object) -> list[Mapping[str, Any]]:
    """The remotes of a `server.json`, those of better transports first."""
    return sorted(objects(remotes), key=lambda each: (*_TRANSPORTS, _type(each)).index(_type(each)))


def _remote(remote: Mapping[str, Any]) -> McpRemote | None:
    found = remote_server(_filled_in(remote, "url"), _type(remote), remote.get("headers"))
    return found and found.model_copy(update={"stated": _stated_values(remote.get("headers"), found.headers)})


def _stated_values(written: object, names: Sequence[str]) -> tuple[StatedValue, ...]:
    """The values of variables or headers of these names: of those that are not secret and leave nothing open."""
    filled = (
        (_text(each, "name"), _filled_in(each, "value") or _text(each, "default"), each) for each in objects(written)
    )
    found = (
        StatedValue(name=name, value=value)
        for name, value, each in filled
        if name in names and not is_secret(each) and _is_whole(value)
        if redaction.is_public(name, value)
    )
    return tuple(islice(found, _MAX_STATED))


def _is_whole(value: str) -> bool:
    is_sent = value.isascii() and value.isprintable()
    return bool(value) and is_sent and not redaction.placeholders(redaction.without_expansions(value))


def _type(remote: Mapping[str, Any]) -> str:
    return _text(remote, "type", "transport_type")


def _package(package: Mapping[str, Any]) -> McpStdio | str:
    """The command that starts a package, whole, or the reason why there is none."""
    identifier, version = _text(package, "identifier", "name"), _text(package, "version")
    registry, hint = _text(package, "registryType", "registryName"), _program(_text(package, "runtimeHint"))
    runner = hint if hint in _RUNNERS else _RUNNER_OF.get(registry, "")
    runtime, own = (_arguments(package.get(key)) for key in ("runtimeArguments", "packageArguments"))
    type, url = (_text(mapping_at(package, "transport"), key) for key in ("type", "url"))
    if type not in ("", "stdio"):
        address = redaction.redact_url(url) or "an address of its own"
        return f"is not called: once started, it is reached over {type[:40]} at {address}; register that address"
    if not runner:
        return f"is not called: no runner is known for the registryType {registry[:40]!r}"
    if not _WORD.fullmatch(identifier):
        return f"is not called: {identifier[:100]!r} is no name of a package"
    env = [name for each in objects(package.get("environmentVariables")) if (name := _text(each, "name"))]
    before, separator = _RUNNERS[runner]
    has_version = separator in identifier.rpartition("/")[2].removeprefix("@")
    name = f"{identifier}{separator}{version}" if _WORD.fullmatch(version) and not has_version else identifier
    if runner == "dnx":
        own = ["--yes", *(["--", *own] if own else [])]
    passed_on = [part for name in env for part in ("-e", name)] if runner in _CONTAINER_RUNNERS else []
    line = [*before, *passed_on, *(part for part in runtime if part not in before)]
    unversioned = {str(part).rpartition(separator)[0] for part in runtime}
    if not ({identifier, name} & {*runtime, *unversioned} or _INSTEAD & {*runtime[:-1]}):
        line.append(name)
    if not (found := stdio_server(runner, [*line, *own], env)):
        return "is not called: its arguments are not all short and plain texts"
    return found.model_copy(update={"stated": _stated_values(package.get("environmentVariables"), found.env)})


def _arguments(written: object) -> list[str | None]:
    """The words of a package's arguments; None for what is no argument."""
    words = (_argument(each) if isinstance(each, Mapping) else [as_text(each)] for each in _to_list(written))
    return list(chain.from_iterable(words))


def _argument(argument: Mapping[str, Any]) -> list[str | None]:
    """The words of an argument: none for a switch that is off, and for one that is not required and has no value.

    A variable without a default is no value.
    """
    name, is_required = _text(argument, "name"), argument.get("isRequired") is True
    value, is_switch = _filled_in(argument, "value") or _text(argument, "default"), argument.get("format") == "boolean"
    hint = (_text(argument, "valueHint") or name).lstrip("-")
    is_open = redaction.placeholders(shown := redaction.without_expansions(value)) == (shown[1:-1],)
    unknown = f"{{{hint}}}" if re.fullmatch(r"[A-Za-z][\w.-]*", hint) else "{value}"
    if (value and is_secret(argument)) or (not value and is_required and not is_switch):
        value = unknown
    if not name or argument.get("type") not in ("named", None) or not (argument.get("type") or name.startswith("-")):
        return [value] if value and not (is_open and argument.get("isRequired") is False) else []
    words: list[str | None] = [*name.split(None, 1)]  # some write the value into the name, too
    if value == name or is_switch:
        return words if value in ("true", name) or (is_required and not value) else []
    left = [each for key, each in mapping_at(argument, "variables").items() if f"{{{key}}}" in value]
    if (
        (left or (is_open and not is_secret(argument)))
        and not is_required
        and name not in _PASSES_ON
        and not any(value_at(each, "isRequired") is True for each in left)
    ):
        return []
    if value:
        return [*words, value.removeprefix(f"{name} ").removeprefix(f"{name}=")]
    return words if is_required or len(words) > 1 or argument.get("value") == "" else []


def _filled_in(entry: Mapping[str, Any], key: str) -> str:
    """A text whose `{variables}` with a default that is no secret have it."""
    text = _text(entry, key)
    for name, variable in mapping_at(entry, "variables").items():
        public = isinstance(variable, Mapping) and not is_secret(variable)
        if public and (known := _text(variable, "value", "default")):
            text = text.replace(f"{{{name}}}", known)
        if len(text) > redaction.MAX_TEXT:
            return ""  # a default may contain other variables, and grow with each
    return text


def _text(value: Mapping[str, Any], *keys: str) -> str:
    """The first text, number or boolean under these keys, as text."""
    return next((text for key in keys if (text := (as_text(value.get(key)) or "").strip())), "")
