"""Replaces what may be secret in arguments and addresses by named placeholders: `--api-key={api-key}`."""

import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote_plus, urlsplit

from mats.domain.text.fence import remove_hidden
from mats.domain.text.words import split_identifier, word_set, words

_SECRET_WORDS = word_set(
    "accesskey apikey apitoken auth authorization authtoken bearer cookie credential credentials jwt key keys pass "
    "passphrase passwd password pat pwd secret secrets session sig signature token tokens"
)
_SWITCHED_OFF = word_set("no skip disable without")
_PASSWORD_WORDS = word_set(
    "accesskey apikey code credential credentials key keys otp pass passphrase passwd password pat pin pwd secret "
    "secrets"
)
_HARMLESS = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?|true|false|none|null", re.IGNORECASE)
"""Values that are not hidden, except under the name of a password or a key, which may be a number."""
_MIN_TOKEN = 20
MAX_TEXT = 4_096
"""Characters of an argument or address that are read; some of the patterns take the square of it in steps."""

_PLACEHOLDER = re.compile(r"\{[A-Za-z][\w.-]*\}")
_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]*)=(?!=)(.+)", re.DOTALL)
_SHELL = re.compile(r"(?:.*[/\\])?(?:ba|da|z|k|fi)?sh(?:\.exe)?")
_SCRIPT = re.compile(r"-[a-z]*c")  # The option of shells before a script
_ASSIGNMENT = re.compile(
    r"([\s;&|]*(?:export\s+)?)([A-Za-z_]\w*)=(?!=)"
    r"""((?:\\.|"(?:\\.|[^"\\])*"?|'[^']*'?|\$\([^()]*\)?|`[^`]*`?|[^\s"'`\\;&|])*)""",
    re.ASCII | re.DOTALL,
)
"""At the start of a script: a variable and its value, which ends at a blank or an operator outside quotes."""
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z][\w-]*): *(\S.*)", re.DOTALL)
_NAMED_VALUE = re.compile(r"""(?<![\w.])(["']?)([A-Za-z][\w.-]*)\1(\s*[:=]\s*["']?)([^\s"'&,;{}]+)""")
_ADDRESS = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[^\s{}\"']+", re.IGNORECASE)
_JWT = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_RUN = re.compile(rf"(?<![\w+=~-])[\w+=~-]{{{_MIN_TOKEN},}}", re.ASCII)
_KNOWN_PREFIX = re.compile(
    r"(?:[spr]k|whsec|gh[oprsu]|github_pat|glpat|xox[a-z]|xapp|hf|npm|pypi|dop_v1|shpat|lin_api|ntn|secret|tvly|fc|r8|"
    r"gsk|pplx|figd|key|pat|tok|token)[-_]|AKIA|ASIA|AIza|ya29"
)
_PINNED = re.compile(r"(?:sha256:|@|#|rev=)$")
"""The text before a digest or commit, which pins a version and is no secret."""
_HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_UNNAMED = "{secret}"
_HEADER_OPTIONS = frozenset({"-H", "--header", "--headers"})


def placeholders(*texts: str) -> tuple[str, ...]:
    """The names in braces that a caller has to fill in, in order."""
    return tuple(dict.fromkeys(found[0][1:-1] for text in texts for found in _PLACEHOLDER.finditer(text)))


_EXPANSION = re.compile(
    r"[$%]+\{[^{}]*\}*|\$+\([^()]*\)*|\$+(?:env:)?\w+|[$%]+(?=[{(])|%(?![0-9A-Fa-f]{2}%)[A-Za-z_][\w()]*%|`+", re.ASCII
)
"""`${NAME}`, `${env:NAME}`, `$(command)`, `$NAME`, `$env:NAME`, `%NAME%`, backquotes; `%C3%` is a percent-encoding."""


_NAMED_EXPANSION = re.compile(
    r"[$%]*\{?(?:\w+:)?([A-Za-z_][\w.-]*)(?::[-=]([^{}]*)\}|:[-=?+].*)?[}%]?", re.ASCII | re.DOTALL
)
_IN_BRACES = re.compile(r"\$\{(?:[^${}]|\{[^${}]*\})*\}|\{env:\w+\}", re.ASCII)


def without_expansions(text: str) -> str:
    """The text with a placeholder for what a client or a shell would put in: by the variable's name, or `{value}`."""
    return _name_all(_EXPANSION, text)


def name_variables(text: str) -> str:
    """The text with `{NAME}` for `${NAME}`, `${env:NAME}`, `{env:NAME}` and `${input:NAME}`.

    For `${NAME:-default}` it has the default, unless that looks secret or has variables.
    """
    return _name_all(_IN_BRACES, text)


def _name_all(pattern: re.Pattern[str], text: str) -> str:
    while (after := pattern.sub(_name_expansion, text)) != text:
        text = after
    return text


def _name_expansion(found: re.Match[str]) -> str:
    if found[0] in ("${/}", "${pathSeparator}"):
        return "/"
    named = _NAMED_EXPANSION.fullmatch(found[0])
    if not named:
        return "{value}"
    name, default = named.groups()
    if default is None or names_secret(name) or _looks_secret(default):
        return _placeholder(name.lstrip("_"))
    return default


def _looks_secret(value: str) -> bool:
    """True if a value of any name may be secret: like a password, unless it is an address or a path, or a token."""
    is_password = _PASSWORD.search(value) and not _PLACE.match(value)
    return len(value) > _MAX_SHOWN or bool(is_password) or _redact(value) != value


def is_plain(text: str) -> bool:
    """True if a text has no hidden and no control characters, except tabs and line breaks."""
    return bool(remove_hidden(text) == text)


def names_secret(name: str) -> bool:
    """True if a value of this name is likely to be secret: `api_key`, `X-Auth-Token`; not `no-auth`."""
    named = words(split_identifier(name))
    return not _SECRET_WORDS.isdisjoint(named) and _SWITCHED_OFF.isdisjoint(named[:1])


def redact_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Command-line arguments without values of variables, headers and options with secret names, and without tokens.

    Each has at most MAX_TEXT characters.
    """
    shown: list[str] = []
    before, in_shell = "", False
    for argument in arguments:
        follows_option = before.startswith("-") and "=" not in before and not argument.startswith("-")
        if follows_option and before in _HEADER_OPTIONS and (header := _HEADER.fullmatch(argument)):
            shown.append(f"{header[1]}: {_placeholder(header[1])}")
        elif follows_option and names_secret(before):
            shown.append(_hide(before, argument))
        else:
            shown.append(_redact_script(argument) if in_shell and _SCRIPT.fullmatch(before) else _redact(argument))
        before, in_shell = argument, in_shell or bool(_SHELL.fullmatch(argument))
    return tuple(shown)


_PASSWORD = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])[^\s{}]{6,}")
"""A value that may be secret, unlike a word that explains its name."""
_PLACE = re.compile(r"[a-z]+://|[.~]*/")
_MAX_SHOWN = 500  # Characters of a value that is shown whatever its name
_PROSE_BEARER = re.compile(r"\b(Bearer|Basic)\s+(?=\S*\d)[^\s{}\"']{8,}", re.IGNORECASE)
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)")


def redact_prose(text: str) -> str:
    """A description without values that look secret, of a secret name or like a token; other text stays as it is."""
    text = _CREDENTIALS.sub("{credentials}", text)
    text = _NAMED_VALUE.sub(lambda found: _redact_named(found) if _PASSWORD.fullmatch(found[4]) else found[0], text)
    return _redact_tokens(_PROSE_BEARER.sub(lambda found: f"{found[1]} {{token}}", text))


def _redact_script(script: str) -> str:
    """A shell's script without values of the variables that it sets before its command."""
    shown, end = list[str](), 0
    while found := _ASSIGNMENT.match(script, end):
        start, name, value = found.groups()
        shown.append(f"{start}{name}={_hide(name, value) if value else ''}")
        end = found.end()
    return "".join((*shown, _redact(script[end:])))


def _redact(argument: str) -> str:
    if variable := _VARIABLE.fullmatch(argument):
        return f"{variable[1]}={_hide(*variable.groups())}"
    if option := _OPTION.fullmatch(argument):
        name, value = option.groups()
        if names_secret(name):
            return f"{name}={_hide(name, value)}"
        header = _HEADER.fullmatch(value) if name in _HEADER_OPTIONS else None
        if header:
            return f"{name}={header[1]}: {_placeholder(header[1])}"
        return f"{name}={_redact(value)}"
    if "-----BEGIN" in argument:
        return _UNNAMED
    parts, end = list[str](), 0
    for found in _ADDRESS.finditer(argument):
        parts += [_redact_text(argument[end : found.start()]), _redact_address(found[0])]
        end = found.end()
    return "".join((*parts, _redact_text(argument[end:])))


def _redact_text(text: str) -> str:
    text = _NAMED_VALUE.sub(_redact_named, text)
    return _redact_tokens(_BEARER.sub(lambda found: f"{found[1]} {{token}}", text))


def _redact_named(found: re.Match[str]) -> str:
    mark, name, between, value = found.groups()
    hidden = _placeholder(name) if names_secret(name) and not _is_harmless(name, value) else value
    return f"{mark}{name}{mark}{between}{hidden}"


def _redact_tokens(text: str) -> str:
    text = _UUID.sub(_UNNAMED, _JWT.sub(_UNNAMED, text))
    return _RUN.sub(lambda found: _UNNAMED if _is_token(found, text) else found[0], text)


def _is_token(found: re.Match[str], text: str) -> bool:
    """True if a run of characters is a token: a known prefix, or one long part of mixed letters and digits."""
    run = found[0]
    if _HEX.fullmatch(run) and _PINNED.search(text[: found.start()]):
        return False
    if _KNOWN_PREFIX.match(run) or _KNOWN_PREFIX.match(run.rpartition("=")[2]):
        return any(map(str.isdigit, run))
    return any(
        len(part) >= _MIN_TOKEN and sum(map(str.isdigit, part)) >= 3 and sum(map(str.isalpha, part)) >= 3
        for part in re.split(r"[-_=~+]", run)
    )


def redact_url(url: str, *, shown: Collection[str] = ()) -> str | None:
    """An http or https address that anybody may read; None if it is not one.

    Without user, password and fragment; every value of its query but for the parts `shown`, and what looks like a token
    in its path or these parts, is a placeholder.
    """
    text = url.strip()
    if len(text) > MAX_TEXT or not is_plain(text) or text.split() != [text] or "\\" in text:
        return None
    try:
        parts = urlsplit(text)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        usable = usable and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    if not usable:
        return None
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme.lower()}://{host}{_redact_tokens(parts.path)}{_redact_query(parts.query, shown)}"


def public_query(url: str) -> list[str]:
    """The parts of an address's query whose names and values do not look secret, for `shown` of `redact_url`."""
    parts = (part.partition("=") for part in url.partition("#")[0].partition("?")[2].split("&"))
    named = (("".join(each), unquote_plus(each[0]), unquote_plus(each[2] if each[1] else each[0])) for each in parts)
    return [part for part, name, value in named if is_public(name, value)]


def is_public(name: str, value: str) -> bool:
    """True if neither the name nor the value looks secret."""
    return not (names_secret(name) and not _is_harmless(name, value)) and not _looks_secret(value)


def _redact_address(address: str) -> str:
    """An address of any scheme within an argument: a connection string, a repository."""
    scheme, _, rest = address.partition("://")
    rest, _, fragment = rest.partition("#")
    rest, _, query = rest.partition("?")
    host, slash, path = rest.partition("/")
    user, at, host_only = host.rpartition("@")
    shown_user = user if user in ("", "git") or _PLACEHOLDER.fullmatch(user) else "{credentials}"
    path = _redact_tokens(f"{slash}{path}")
    kept = f"#{_redact_text(fragment)}" if fragment else ""
    return f"{scheme}://{shown_user}{at}{host_only}{path}{_redact_query(query)}{kept}"


def _redact_query(query: str, shown: Collection[str] = ()) -> str:
    """The names of a query with placeholders as values; a value without a name is left out."""
    kept = []
    for part in query.split("&"):
        name, sign, value = part.partition("=")
        if part in shown and _redact_text(part) == part:
            kept.append(part)
        elif sign and name:
            kept.append(f"{name}={value if _PLACEHOLDER.fullmatch(value) else _placeholder(name)}")
    return f"?{'&'.join(kept)}" if any(kept) else ""


def _hide(name: str, value: str) -> str:
    """A placeholder of this name; a value that is one already, or no secret, stays."""
    is_placeholder = _PLACEHOLDER.fullmatch(value) and _redact_tokens(value) == value
    return value if is_placeholder or _is_harmless(name, value) else _placeholder(name)


def _is_harmless(name: str, value: str) -> bool:
    is_password = not _PASSWORD_WORDS.isdisjoint(words(split_identifier(name)))
    return bool(_HARMLESS.fullmatch(value)) and not (is_password and value[-1:].isdigit())


def _placeholder(name: str) -> str:
    kept = re.sub(r"[^A-Za-z0-9_.-]", "", name).lstrip("-_.0123456789")
    return f"{{{kept}}}" if kept else _UNNAMED
