"""Output of the command line: tables for a terminal, JSON for scripts, one line and an exit code for an error."""

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
"""Control characters that JSON need not escape, line separators, and characters that change the text direction."""

out = Console()
err = Console(stderr=True)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]


def _id(text: str) -> str:
    """Check that an argument is text that can be encoded."""
    if any(unicodedata.category(c) == "Cs" for c in text):
        raise typer.BadParameter("is not valid text")
    return text


CapabilityId = Annotated[str, typer.Argument(metavar="ID", help="namespace/name", parser=_id)]


class Exit(IntEnum):
    """Exit codes of all commands."""

    DONE = 0
    REFUSED = 1
    """Something was rejected, or was not found."""
    USAGE = 2
    """Invalid arguments or settings."""
    UNAVAILABLE = 3
    """The registry or another dependency cannot be used."""
    INTERRUPTED = 130


def plain(text: object) -> Text:
    """Untrusted text for a terminal: without markup, control characters and changes of the text direction."""
    return Text("".join(c for c in str(text) if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs")))


def print_json(value: Any) -> None:
    """Print JSON on standard output, indented on a terminal, with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def complain(message: str) -> None:
    """Print an error, one line on standard error."""
    err.print(Text("error: ", style="bold red") + plain(message), soft_wrap=True)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn every expected error into one line and an exit code."""
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
        complain("interrupted; acknowledged writes are saved")
        raise typer.Exit(Exit.INTERRUPTED) from None
