"""A call as a program in Python or a command of curl; untrusted values as literals of their languages."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from mats.domain.protocols.bedrock import BedrockCall
from mats.domain.protocols.mcp_server import McpRemote, McpServer, McpStdio
from mats.domain.text.fence import escape_hidden, is_hidden, spell_out
from mats.edge.snippets.http_request import FORM, MULTIPART, HttpRequest, Secret, placeholder, secrets_of

_WIDTH = 88  # Characters of a line of Python, above which a list or an object has a line for each entry
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON with hidden and control characters as escapes."""
    return escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent))


class Expression(str):
    """Code that stands for a value as it is."""


def python_literal(value: Any, *, indent: int = 0) -> str:
    """A JSON value as a Python expression, broken into lines if it is long; `indent` counts the columns before it."""
    flat = _flat(value)
    if (len(flat) + indent <= _WIDTH and "\n" not in flat) or not value or not isinstance(value, list | dict):
        return flat
    inner = indent + 4
    if isinstance(value, dict):
        opening, closing = "{}"
        entries = [f"{_flat(name)}: {python_literal(entry, indent=inner)}" for name, entry in value.items()]
    else:
        opening, closing = "[]"
        entries = [python_literal(entry, indent=inner) for entry in value]
    lines = "".join(f"{' ' * inner}{entry},\n" for entry in entries)
    return f"{opening}\n{lines}{' ' * indent}{closing}"


def _flat(value: Any) -> str:
    match value:
        case Expression():
            return str(value)
        case str():
            written = json.dumps(value, ensure_ascii=False)  # its escapes mean the same in Python
            return "".join(_python_escape(c) if is_hidden(c) or _CONTROL.match(c) else c for c in written)
        case dict():
            return f"{{{', '.join(f'{_flat(name)}: {_flat(entry)}' for name, entry in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_flat, value))}]"
        case _:
            return repr(value)


def _python_escape(character: str) -> str:
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def shell_word(text: str, variable: str = "") -> str:
    """One word of a shell: a text as it is, then the value of a variable.

    Hidden and control characters are spelled out: no shell has an escape for them that all others have, too.
    """
    shown = _CONTROL.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", spell_out(text))
    if not variable:
        return shlex.quote(shown)
    safe = re.fullmatch(r"[\w ./:=?&%,@+-]*", shown, re.ASCII)
    return f'"{shown}${variable}"' if safe else f'{shlex.quote(shown)}"${variable}"'


_OF_HTTPX = ("application/json", FORM, MULTIPART)  # Media types that httpx sets itself


def http_program(request: HttpRequest) -> str:
    arguments = [python_literal(request.method), python_literal(request.url), *_arguments(request)]
    lines = "".join(f"    {argument},\n" for argument in arguments)
    imports = "import os\n\nimport httpx" if request.secrets or request.user_and_password else "import httpx"
    return f"{imports}\n\nresponse = httpx.request(\n{lines})\nprint(response.status_code, response.text)"


def _arguments(request: HttpRequest) -> Iterator[str]:
    places: Mapping[str, tuple[str, Mapping[str, str]]] = {
        "params": ("query", dict(request.query)),
        "headers": ("header", request.headers),
        "cookies": ("cookie", request.cookies),
    }
    for argument, (place, given) in places.items():
        values = {**given, **{secret.name: _secret(secret) for secret in request.secrets if secret.place == place}}
        if argument == "headers" and request.body is not None and request.kind not in _OF_HTTPX:
            values["Content-Type"] = request.media_type
        if values:
            yield f"{argument}={python_literal(values, indent=4)}"
    if request.user_and_password:
        yield 'auth=(os.environ["API_USER"], os.environ["API_PASSWORD"])'
    if request.body is not None:
        yield _body(request)


def _body(request: HttpRequest) -> str:
    if request.kind in (FORM, MULTIPART) and isinstance(request.body, dict):
        if request.kind == FORM:
            return f"data={python_literal(request.body, indent=4)}"
        texts = {name: each if isinstance(each, str) else json_text(each) for name, each in request.body.items()}
        parts = {name: Expression(f"(None, {python_literal(text)})") for name, text in texts.items()}
        return f"files={python_literal(parts, indent=4)}"
    return f"json={python_literal(request.body, indent=4)}" if "json" in request.kind else 'content="{body}"'


def _secret(secret: Secret) -> Expression:
    read = f'os.environ["{secret.variable}"]'
    return Expression(f"{python_literal(secret.prefix)} + {read}" if secret.prefix else read)


def mcp_program(server: McpServer, arguments: Mapping[str, Any]) -> str:
    """A call of the server's tool with the MCP SDK; without a tool, the list of its tools."""
    imports, setup, argument = _stdio(server) if isinstance(server, McpStdio) else _remote(server)
    call = "list_tools()"
    if server.tool:
        call = f"call_tool({python_literal(server.tool)}, {python_literal(arguments, indent=8)})"
    lines = "\n".join((*imports, "", *setup))
    return f"""{lines}

async def main() -> None:
    async with Client({argument}) as client:
        print(await client.{call})

asyncio.run(main())"""


def _stdio(server: McpStdio) -> tuple[list[str], list[str], str]:
    arguments = [f"command={python_literal(server.command)}"]
    if server.args:
        arguments.append(f"args={python_literal(list(server.args), indent=4)}")
    if server.env:
        arguments.append(f"env={python_literal(dict.fromkeys(server.env, ''), indent=4)}")
    setup = ["server = StdioServerParameters(", *(f"    {argument}," for argument in arguments), ")"]
    return ["import asyncio\n", "from mcp import Client, StdioServerParameters"], setup, "server"


def _remote(server: McpRemote) -> tuple[list[str], list[str], str]:
    secrets = [secret for secret in secrets_of(server.auth) if secret.place == "header"]
    values = {name: placeholder(name) for name in server.headers}
    values |= {secret.name: _secret(secret) for secret in secrets}
    imports = ["import asyncio", *(["import os"] if secrets else [])]
    setup = [f"url = {python_literal(server.url)}"]
    if values:
        setup.append(f"headers = {python_literal(values)}")
    if server.transport == "sse":
        shown = "sse_client(url, headers=headers)" if values else "sse_client(url)"
        return [*imports, "", "from mcp import Client", "from mcp.client.sse import sse_client"], setup, shown
    if not values:
        return [*imports, "", "from mcp import Client"], setup, "url"
    from_sdk = ["from mcp import Client", "from mcp.client.streamable_http import streamable_http_client"]
    transport = "streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers))"
    return [*imports, "", "import httpx2", *from_sdk], setup, transport


def converse_program(call: BedrockCall) -> str:
    region = f", region_name={python_literal(call.region)}" if call.region else ""
    client = f'bedrock = boto3.client("bedrock-runtime"{region})'
    return f"""import boto3

{client}
reply = bedrock.converse(
    modelId={python_literal(call.model)},
    messages=[{{"role": "user", "content": [{{"text": "Hello"}}]}}],
)
print(reply["output"]["message"])"""


def curl_command(request: HttpRequest) -> str:
    """The command, an option on each line.

    Every value is given so that curl takes it as it is: it reads no file that `@` or `<` names, and expands no braces.
    """
    return " \\\n  ".join((_first_line(request), *_options(request)))


def _first_line(request: HttpRequest) -> str:
    query = "&".join(f"{quote(name, safe='')}={value}" for name, value in request.query)
    url = f"{request.url}?{query}" if query else request.url
    keys = [secret for secret in request.secrets if secret.place == "query"]
    address, literal = "", url
    for key in keys:
        literal += f"{'&' if '?' in url or address else '?'}{quote(key.name, safe='')}="
        address, literal = address + shell_word(literal, key.variable), ""
    address += shell_word(literal) if literal else ""
    method = "" if request.method == "GET" and request.body is None else f" -X {request.method}"
    if request.method == "HEAD":
        method = " --head"
    return f"curl{' --globoff' if set(url) & set('{}[]') else ''}{method} {address}"


def _options(request: HttpRequest) -> Iterator[str]:
    if request.user_and_password:
        yield '-u "$API_USER:$API_PASSWORD"'
    for secret in request.secrets:
        if secret.place == "header":
            yield f"-H {shell_word(f'{secret.name}: {secret.prefix}', secret.variable)}"
        elif secret.place == "cookie":
            yield f"-b {shell_word(f'{secret.name}=', secret.variable)}"
    for name, value in request.headers.items():
        yield f"-H {shell_word(f'{name}: {value}')}"
    for name, value in request.cookies.items():
        yield f"-b {shell_word(f'{name}={value}')}"
    if request.body is not None:
        yield from _curl_body(request)


def _curl_body(request: HttpRequest) -> Iterator[str]:
    if request.kind in (FORM, MULTIPART) and isinstance(request.body, dict):
        option = "--data-urlencode" if request.kind == FORM else "--form-string"
        for name, value in request.body.items():
            if request.kind == MULTIPART and name in request.files:
                yield f"--form {shell_word(f'{name}=@{placeholder(name)}')}"
                continue
            text = value if isinstance(value, str) else json_text(value)
            field = f"{quote(name, safe='')}={text}"
            yield f"{option} {shell_word(field)}"
        return
    yield f"-H {shell_word(f'Content-Type: {request.media_type}')}"
    text = json_text(request.body) if "json" in request.kind else "{body}"
    yield f"--data-raw {shell_word(text)}"
