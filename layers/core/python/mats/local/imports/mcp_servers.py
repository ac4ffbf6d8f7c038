"""List the tools and skills of live MCP servers: all pages; no tool is called. Import this module late."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp.shared.exceptions import MCPError

from mats.client.mcp_session import GRACE_S, ServerFailed, Session, ask_address, ask_command, list_all
from mats.domain.errors import DependencyFailed, Fault, Invalid, RequestInvalid
from mats.domain.protocols.addresses import redact, without_query
from mats.domain.protocols.mcp import is_disabled, servers_of
from mats.domain.protocols.mcp_server import McpStdio, server_entry, server_of
from mats.domain.protocols.protocol import (
    Json,
    Source,
    join_labels,
    namespace_of_url,
    objects,
    text_at,
    to_label,
    value_at,
)
from mats.local.imports.decoding import MAX_BYTES as MAX_DOCUMENT_BYTES
from mats.local.imports.decoding import decode
from mats.local.imports.files import Location, Stream, is_address


def list_by_command(
    command: Sequence[str], *, timeout_s: float, grace_s: float = GRACE_S, env: Mapping[str, str] | None = None
) -> Json:
    """The tools of a server that a command starts; `env` is added to the environment. Raises as `ask_command`."""
    return ask_command(command, list_offered, timeout_s=timeout_s, env={**os.environ, **(env or {})}, grace_s=grace_s)


def list_by_address(url: str, *, timeout_s: float, headers: Mapping[str, str] | None = None) -> Json:
    """The tools of a server at an address. Raises as `ask_address`."""
    try:
        return ask_address(url, list_offered, timeout_s=timeout_s, headers=headers)
    except ServerFailed as error:
        if "requires authentication" not in str(error):
            raise
        raise ServerFailed(f"{error}; save its tools/list result to a file and import that") from error


SKILLS = "io.modelcontextprotocol/skills"
_MAX_SKILLS = 500


async def list_offered(session: Session) -> Json:
    """The tools, and the skills of a server that declares them (SEP-2640), each with its SKILL.md.

    Other files of a skill are not read. What is not as it was listed has a `problem` in place of a `skill`.
    """
    if value_at(session.declared, "extensions", SKILLS) is None:
        return {"tools": await list_all(session, "tools")}
    tools = await list_all(session, "tools") if "tools" in session.declared else []
    listed = await list_all(session, "skills")
    if len(listed) > _MAX_SKILLS:
        raise ServerFailed(f"the server lists {len(listed):,} skills, and {_MAX_SKILLS} are the limit")
    return {"tools": tools, "skills": [await _read_skill(session, entry) for entry in listed]}


async def _read_skill(session: Session, entry: Mapping[str, Any]) -> Json:
    uri = text_at(entry, "uri")
    try:
        try:
            return await _read_as_listed(session, uri, entry)
        except Invalid:  # perhaps it was changed since the list was made
            answer = await session.request("skills/get", {"uri": uri})
            return await _read_as_listed(session, uri, answer.get("skill"))
    except Invalid as error:
        return {"uri": uri, "problem": error.faults[0].message}
    except MCPError as error:
        return {"uri": uri, "problem": f"cannot be read: {error.message[:200]}"}


async def _read_as_listed(session: Session, uri: str, entry: object) -> Json:
    """A skill whose SKILL.md has the digest and the front matter of its entry. Raises Invalid for another one."""
    read = await session.request("resources/read", {"uri": uri})
    text = next((each["text"] for each in objects(read.get("contents")) if isinstance(each.get("text"), str)), "")
    files = {text_at(each, "uri"): text_at(each, "digest") for each in objects(value_at(entry, "resources"))}
    digest = f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
    if files and files.get(uri) != digest:
        raise Invalid([Fault("", "its SKILL.md has another digest than the server listed")])
    skill = decode(text.encode(errors="replace"), name="SKILL.md")
    if _as_texts(skill["frontMatter"]) != _as_texts(value_at(entry, "frontmatter")):
        raise Invalid([Fault("", "the front matter of its SKILL.md is not what the server listed")])
    root = uri.removesuffix("SKILL.md")
    return {"uri": uri, "skill": skill, "files": [each.removeprefix(root) for each in files if each.startswith(root)]}


def _as_texts(value: Any) -> Any:
    """A value with its scalars as text: YAML and JSON differ in numbers and dates."""
    if isinstance(value, Mapping):
        return {str(key): _as_texts(inner) for key, inner in value.items()}
    return [_as_texts(inner) for inner in value] if isinstance(value, list) else str(value)


_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNKNOWN = re.compile(r"\$\{[^}]*\}")


def open_servers(path: str, namespace: str, timeout_s: float) -> Iterator[tuple[Source, Stream]]:
    """The tools of each server of an `mcpServers` file; the reason instead, for one that does not list them.

    The tools of a server are in a namespace of its own below `namespace`, without one in that of its address.

    Raises:
        RequestInvalid: it is no such file on this machine: mats starts no command that another machine names.
    """
    key, servers = servers_in(path)
    for name, entry in servers.items():
        if not is_mats(name, entry):
            yield _open(Location(path, where=f"{key}.{name}"), name, entry, namespace, timeout_s)


def servers_in(path: str) -> tuple[str, Mapping[str, Json]]:
    """The key under which an `mcpServers` file names its servers, and those that are not disabled.

    Raises:
        RequestInvalid: it is no such file on this machine.
        Undecodable: it is malformed.
    """
    if is_address(path) or not Path(path).is_file():
        raise RequestInvalid([Fault("--live", "is for an `mcpServers` file on this machine")])
    with Path(path).open("rb") as file:
        found = servers_of(decode(file.read(MAX_DOCUMENT_BYTES + 1), name="mcp.json"))
    if found is None:
        raise RequestInvalid([Fault("--live", f"is for an `mcpServers` file, and {path} is none")])
    key, servers = found
    return key, {name: entry for name, entry in servers.items() if not is_disabled(entry)}


def is_mats(name: str, entry: Json) -> bool:
    """True if a server is mats itself, whose tools are no capabilities of its registry."""
    server = server_of(entry)
    if not isinstance(server, McpStdio):
        return name == "mats"
    return "mcp" in server.args and (Path(server.command).name == "mats" or "mats.local.cli" in server.args)


def _open(place: Location, name: str, entry: Json, namespace: str, timeout_s: float) -> tuple[Source, Stream]:
    server = server_of(entry)
    url = entry.get("url") if isinstance(entry, Mapping) and "command" not in entry else None
    shown = without_query(url) if isinstance(url, str) and "${" not in url else ""
    own = join_labels((namespace, to_label(name))) if namespace else namespace_of_url(shown)

    def tools() -> Stream:
        try:
            if server is None:
                raise Invalid([Fault("", "must have a `command` with plain arguments, or an http or https `url`")])
            if not own:
                raise Invalid([Fault("", "does not name its owner: give --namespace, such as com.acme")])
            yield place, _list_configured(_fill_in(entry), timeout_s)
        except (DependencyFailed, Invalid) as error:
            yield place, Invalid([Fault(place.where, str(error))])

    return Source(place.file, own, server=shown, server_entry=server_entry(server) if server else None), tools()


def _list_configured(entry: Mapping[str, Any], timeout_s: float) -> Json:
    if isinstance(command := entry.get("command"), str):
        arguments = [one for one in entry.get("args") or () if isinstance(one, str)]
        return list_by_command([command, *arguments], timeout_s=timeout_s, env=_texts(entry.get("env")))
    url = str(entry.get("url"))
    try:
        return list_by_address(url, timeout_s=timeout_s, headers=_texts(entry.get("headers")))
    except DependencyFailed as error:
        raise DependencyFailed(f"{redact(url)}: {error}") from error


def _texts(value: object) -> dict[str, str]:
    given = value.items() if isinstance(value, Mapping) else ()
    return {str(name): text for name, text in given if isinstance(text, str)}


def _fill_in(value: Any) -> Any:
    """The entry with `${VARIABLE}` and `${VARIABLE:-default}` replaced from the environment."""
    if isinstance(value, str):
        text = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0] if found[2] is None else found[2]), value)
        if left := _UNKNOWN.search(text):
            raise Invalid([Fault("", f"{left[0][:80]} has no value here: set it in the environment")])
        return text
    if isinstance(value, Mapping):
        return {key: _fill_in(inner) for key, inner in value.items()}
    return [_fill_in(inner) for inner in value] if isinstance(value, list) else value
