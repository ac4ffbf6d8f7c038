"""How the command line speaks: tables on a terminal, JSON for scripts, one line for an error, an exit code for each."""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from mats.domain.errors import CapabilityError, CapabilityNotFound, DependencyFailed, Invalid
from mats.settings import SettingsInvalid

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters that JSON need not escape, separators of lines, and what turns the direction of reading."""

out = Console()
err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]


def _id(text: str) -> str:
    """An id as typed, if it is text at all."""
    if any(unicodedata.category(c) == "Cs" for c in text):
        raise typer.BadParameter("is not valid text")
    return text


CapabilityId = Annotated[str, typer.Argument(metavar="ID", help="namespace/name", parser=_id)]


class Exit(IntEnum):
    """What a script can tell from the exit code."""

    DONE = 0
    REFUSED = 1
    """Something was rejected, or is not there."""
    USAGE = 2
    """The command was called wrongly."""
    UNAVAILABLE = 3
    """The registry or something else we depend on cannot be used."""
    INTERRUPTED = 130


def plain(text: object) -> Text:
    """Untrusted text for a terminal: no markup, nothing that could steer the terminal or turn the reading direction."""
    return Text("".join(c for c in str(text) if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs")))


def print_json(value: Any) -> None:
    """JSON on standard output, indented if somebody is looking; what could steer a terminal is escaped in it."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def complain(message: str) -> None:
    """One line on standard error."""
    err.print(Text("error: ", style="bold red") + plain(message), soft_wrap=True)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn every error of ours into one line and an exit code."""
    try:
        yield
    except (Invalid, CapabilityNotFound) as error:
        complain(str(error))
        raise typer.Exit(Exit.REFUSED) from error
    except SettingsInvalid as error:
        complain(str(error))
        raise typer.Exit(Exit.USAGE) from error
    except (DependencyFailed, CapabilityError) as error:
        complain(str(error))
        raise typer.Exit(Exit.UNAVAILABLE) from error
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(Exit.DONE) from None
    except KeyboardInterrupt:
        complain("interrupted; whatever was acknowledged is safe")
        raise typer.Exit(Exit.INTERRUPTED) from None
