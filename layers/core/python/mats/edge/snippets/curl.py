"""A request as a command of curl."""

from collections.abc import Iterator
from urllib.parse import quote

from mats.edge.snippets.http_request import HttpRequest
from mats.edge.snippets.literals import json_text, shell_word

_FORM, _MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


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
        yield from _body(request)


def _body(request: HttpRequest) -> Iterator[str]:
    kind = request.media_type.partition(";")[0].strip().lower()
    if kind in (_FORM, _MULTIPART) and isinstance(request.body, dict):
        option = "--data-urlencode" if kind == _FORM else "--form-string"
        for name, value in request.body.items():
            text = value if isinstance(value, str) else json_text(value)
            field = f"{quote(name, safe='')}={text}"
            yield f"{option} {shell_word(field)}"
        return
    yield f"-H {shell_word(f'Content-Type: {request.media_type}')}"
    text = json_text(request.body) if "json" in kind else "{body}"
    yield f"--data-raw {shell_word(text)}"
