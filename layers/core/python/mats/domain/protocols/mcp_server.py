"""How an MCP server is reached: the command that starts it, or its address.

It is read from what an importer or an owner wrote into a descriptor: `server`, or the `remotes` and `packages` of a
`server.json`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Literal

from mats.domain.protocols.authentication import AuthScheme, auth_from_list, auth_of_headers
from mats.domain.protocols.protocol import Call, Facts, mapping_at, objects
from mats.domain.text import redaction
from mats.domain.text.words import word_set

Transport = Literal["streamable-http", "sse"]

_TRANSPORTS: Mapping[str, Transport] = {
    "streamable-http": "streamable-http",
    "streamable": "streamable-http",
    "streamableHttp": "streamable-http",
    "http": "streamable-http",
    "sse": "sse",
}
"""Best first: the last is deprecated."""
_ADDRESS_ENDS = {"mcp": "streamable-http", "sse": "sse"}
_COMMAND_ENTRY = frozenset({"command", "args", "env"})
_ADDRESS_ENTRY = frozenset({"url", "transport", "auth", "headers"})
_MAX_ARGUMENTS, _MAX_LINE = 100, 16_000  # Limits of a command in arguments and characters
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,99})=(.*)", re.DOTALL)
_CONTAINER_RUNNERS = frozenset({"docker", "podman", "nerdctl"})
_RUNNERS = {"npm": "npx", "pypi": "uvx", "oci": "docker", "docker": "docker", "nuget": "dnx"}
_PACKAGE_RUNNERS = frozenset(
    {*_RUNNERS.values(), *_CONTAINER_RUNNERS, "npm", "pnpm", "yarn", "bunx", "bun", "uv", "pipx"}
)
_SUBCOMMANDS = word_set("run exec dlx x tool container")
_NAMES_A_PACKAGE = word_set("--from --package -p --image")
_TAKES_A_VALUE = word_set(
    "-e --env --env-file -v --volume --mount --name --network --net --publish -w --workdir -u --user --entrypoint "
    "--python --with --platform --pull --gpus --add-host -h --hostname -l --label --index-url --registry "
    "--directory"
)
"""Options of package runners whose value is the next argument."""
_WORD = re.compile(r"[A-Za-z0-9@][\w./:@+-]*")


class McpStdio(Call):
    """A server that a command starts, and one of its tools."""

    protocol: Literal["mcp"] = "mcp"
    transport: Literal["stdio"] = "stdio"
    command: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()  # Names of variables to be set
    inputs: tuple[str, ...] = ()  # The names in braces in `command` and `args` to be filled in
    tool: str = ""

    def facts(self) -> Facts:
        command = shlex.join((self.command, *self.args))
        return (("protocol", "MCP over stdio"), ("runs", self.runs), ("command", command), ("tool", self.tool))

    @property
    def runs(self) -> str:
        """The program that starts, with the package or image that a package runner fetches: `npx some-package`."""
        program = _program(self.command)
        package = _package_of(self.args) if program in _PACKAGE_RUNNERS else ""
        return shlex.join(filter(None, (self.command, package)))


class McpRemote(Call):
    """A server at an address, and one of its tools. `headers` has names of headers besides those of `auth`."""

    protocol: Literal["mcp"] = "mcp"
    transport: Transport
    url: str
    auth: tuple[AuthScheme, ...] = ()
    headers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    tool: str = ""

    def facts(self) -> Facts:
        transport = {"streamable-http": "streamable HTTP", "sse": "SSE"}[self.transport]
        return (("protocol", f"MCP over {transport}"), ("endpoint", self.url), ("tool", self.tool))


McpServer = McpStdio | McpRemote


def server_of(written: object, tool: str = "") -> McpServer | None:
    """The server of an entry as `.mcp.json` files have it: `command`, `args`, `env`, or `url`, `transport`, `headers`.

    Of variables and headers only names are kept.
    """
    if not isinstance(written, Mapping):
        return None
    if isinstance(command := written.get("command"), str) and command.strip():
        env = written.get("env")
        names = list(env) if isinstance(env, Mapping | list | tuple) else []
        return stdio_server(command, written.get("args"), names, tool)
    stated = written.get("transport") or written.get("type")
    return remote_server(
        written.get("url"), stated, written.get("headers"), auth_from_list(written.get("auth")), tool=tool
    )


def server_entry(server: McpServer) -> dict[str, Any]:
    """The entry of a descriptor from which `server_of` makes this server again."""
    kept = _COMMAND_ENTRY if isinstance(server, McpStdio) else _ADDRESS_ENTRY
    return {key: value for key, value in server.model_dump(mode="json").items() if key in kept}


def stdio_server(command: str, arguments: object, env: Sequence[object] = (), tool: str = "") -> McpStdio | None:
    """A command without values of variables and what looks like a secret; None if it is not plain text.

    `env NAME=value COMMAND` is the command with that variable; so is `docker run -e NAME=value`.
    """
    given = arguments if isinstance(arguments, list | tuple) else ()
    line = [command.strip(), *given]
    if len(line) > _MAX_ARGUMENTS or not all(map(_is_argument, line)) or sum(map(len, line)) > _MAX_LINE:
        return None
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


def _package_of(args: Sequence[str]) -> str:
    """The package or image that a runner is told to fetch: of an option that names one, else the first argument."""
    before, first = "", ""
    for argument in args:
        option, sign, value = argument.partition("=")
        if sign and option in _NAMES_A_PACKAGE:
            return value
        if before in _NAMES_A_PACKAGE and not argument[:1].isdigit():  # `-p 80:80` publishes a port
            return argument
        is_value = before in _TAKES_A_VALUE or before in _NAMES_A_PACKAGE
        if not first and not is_value and not argument.startswith("-") and argument not in _SUBCOMMANDS:
            first = argument
        before = argument
    return first


def _pass_on_variables(line: Sequence[str], names: list[str]) -> Iterator[str]:
    """The line of a container runner, each variable passed on by its name, which is added to `names`."""
    before = ""
    for argument in line:
        option, sign, rest = argument.partition("=")
        if before in ("-e", "--env") and _VARIABLE_NAME.fullmatch(option):
            names.append(option)
            yield option
        elif option in ("-e", "--env") and sign and _VARIABLE_NAME.fullmatch(rest.partition("=")[0]):
            names.append(rest.partition("=")[0])
            yield f"{option}={names[-1]}"
        else:
            yield argument
        before = argument


def remote_server(
    url: object, transport: object = None, headers: object = None, auth: tuple[AuthScheme, ...] = (), *, tool: str = ""
) -> McpRemote | None:
    """A server at an http or https address. An unknown transport is what the end of the address says, else HTTP."""
    given = redaction.redact_url(url) if isinstance(url, str) else None
    if given is None:
        return None
    shown = redaction.without_expansions(given)
    named = _TRANSPORTS.get(transport) if isinstance(transport, str) else None
    of_headers, others = auth_of_headers(headers)
    return McpRemote(
        transport=named or ("sse" if address_transport(shown) == "sse" else "streamable-http"),
        url=shown,
        auth=(*auth, *(scheme for scheme in of_headers if scheme not in auth)),
        headers=others,
        inputs=redaction.placeholders(shown),
        tool=tool,
    )


def address_transport(url: str) -> str:
    """The transport by convention: the path of an MCP server ends in `mcp` or `sse`; empty for another address."""
    last = url.partition("?")[0].rstrip("/").rpartition("/")[2].lower()
    return _ADDRESS_ENDS.get(last, "")


def published_server(descriptor: Mapping[str, Any]) -> McpServer | None:
    """The server of a `server.json`: the best remote, else the first package that a known runner starts."""
    remotes = (
        remote_server(_filled_in(each, "url"), _type(each), each.get("headers"))
        for each in best_first(descriptor.get("remotes"))
    )
    packages = map(_package, objects(descriptor.get("packages")))
    return next(filter(None, remotes), None) or next(filter(None, packages), None)


def best_first(remotes: object) -> list[Mapping[str, Any]]:
    """The remotes of a `server.json`, those of better transports first."""
    order = list(_TRANSPORTS)
    return sorted(objects(remotes), key=lambda each: order.index(t) if (t := _type(each)) in order else len(order))


def _type(remote: Mapping[str, Any]) -> str:
    return _text(remote, "type", "transport_type")


def _package(package: Mapping[str, Any]) -> McpStdio | None:
    identifier, version = _text(package, "identifier", "name"), _text(package, "version")
    runner = _RUNNERS.get(_text(package, "registryType", "registry_name"))
    transport = package.get("transport")
    type = transport.get("type") if isinstance(transport, Mapping) else "stdio"
    if runner is None or type != "stdio" or not _WORD.fullmatch(identifier):
        return None
    variables = objects(package.get("environmentVariables") or package.get("environment_variables"))
    env = [str(variable["name"]) for variable in variables if isinstance(variable.get("name"), str)]
    runtime = list(_arguments(package.get("runtimeArguments") or package.get("runtime_arguments")))
    own = list(_arguments(package.get("packageArguments") or package.get("package_arguments")))
    match runner:
        case "npx":
            runtime = runtime or ["-y"]
        case "docker":
            runtime = ["run", "-i", "--rm", *(part for name in env for part in ("-e", name)), *runtime]
        case "dnx":
            own = ["--yes", *(["--", *own] if own else [])]
    separator = ":" if runner == "docker" else "@"
    has_version = separator in identifier.rpartition("/")[2].removeprefix("@")
    name = f"{identifier}{separator}{version}" if _WORD.fullmatch(version) and not has_version else identifier
    hint = _text(package, "runtimeHint", "runtime_hint")
    return stdio_server(hint if _WORD.fullmatch(hint) else runner, [*runtime, name, *own], env)


def _arguments(written: object) -> Iterator[str]:
    for argument in objects(written):
        name, value = _text(argument, "name"), _value(argument)
        if argument.get("type") == "named" and name:
            yield name
        if value:
            yield value


def _value(argument: Mapping[str, Any]) -> str:
    """The value of an argument, or a placeholder where the caller has to give one."""
    hint = _text(argument, "valueHint", "value_hint", "name").lstrip("-")
    unknown = f"{{{hint}}}" if re.fullmatch(r"[A-Za-z][\w.-]*", hint) else "{value}"
    secret = argument.get("isSecret") is True or argument.get("is_secret") is True
    value = _filled_in(argument, "value") or _text(argument, "default")
    if value:
        return unknown if secret else value
    required = argument.get("isRequired") is True or argument.get("is_required") is True
    return unknown if required and argument.get("format") != "boolean" else ""


def _filled_in(entry: Mapping[str, Any], key: str) -> str:
    """A text whose `{variables}` with a default that is no secret have it."""
    text = _text(entry, key)
    for name, variable in mapping_at(entry, "variables").items():
        public = isinstance(variable, Mapping) and variable.get("isSecret") is not True
        if public and (known := _text(variable, "value", "default")):
            text = text.replace(f"{{{name}}}", known)
        if len(text) > redaction.MAX_TEXT:
            return ""  # a default may contain other variables, and grow with each
    return text


def _text(value: Mapping[str, Any], *keys: str) -> str:
    return next((found.strip() for key in keys if isinstance(found := value.get(key), str) and found.strip()), "")
