"""Output of the command line: tables or JSON, an exit code for an error, and the cost of models."""

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from shutil import get_terminal_size, which
from typing import Annotated, Any, TypeAlias

import typer
from pydantic import BaseModel, ValidationError
from rich import progress
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from mats.bootstrap import models as bootstrap
from mats.bootstrap.system import AnySystem
from mats.domain.capability.capability import Kind
from mats.domain.capability.faults import faults_of
from mats.domain.errors import (
    CapabilityError,
    CapabilityNotFound,
    Fault,
    Invalid,
    ReceiptNotFound,
    RegistryNotFound,
    RequestInvalid,
    command_to_install,
)
from mats.domain.protocols.descriptors import Effect
from mats.domain.text.fence import escape_hidden, spell_out
from mats.evaluation.systems.models import Models
from mats.settings import SettingsInvalid

_PIPED = (1_000, 24)
"""Columns and lines where neither a terminal nor COLUMNS says how many: ids stay whole for what reads the output."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
Lines: TypeAlias = Iterator[RenderableType]
out = Console(width=None if sys.stdout.isatty() else get_terminal_size(_PIPED).columns)
err = Console(stderr=True)


def option(help: str, *names: str, **more: Any) -> Any:
    """An option of a command; its name is by default that of the parameter."""
    return typer.Option(*names, help=help, **more)


def argument(help: str, **more: Any) -> Any:
    return typer.Argument(help=help, **more)


_JSON: ContextVar[bool] = ContextVar("json", default=False)


def with_json(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the option `--json`, after which `show` prints JSON."""

    @wraps(command)
    def run(*, as_json: bool, **options: Any) -> None:
        before = _JSON.set(as_json)
        try:
            command(**options)
        finally:
            _JSON.reset(before)

    parameters = [
        one.replace(kind=Parameter.KEYWORD_ONLY) for one in signature(command, eval_str=True).parameters.values()
    ]
    kind = Annotated[bool, option("Print JSON for scripts instead of tables.", "--json")]
    json_option = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    run.__dict__["__signature__"] = Signature([*parameters, json_option])
    return run


def is_json() -> bool:
    return _JSON.get()


Kinds = Annotated[list[Kind] | None, option("Only this kind; may be given several times.", "--kind")]
Namespaces = Annotated[
    list[str] | None, option("Only this namespace and those below it; may be given several times.", "--namespace")
]
Tags = Annotated[
    list[str] | None, option("Only capabilities with this tag; given several times: with all of them.", "--tag")
]
Effects = Annotated[
    list[Effect] | None, option("Only what its owner says this of; may be given several times.", "--effect")
]
IntoNamespace = Annotated[
    str, option("Register under this namespace, not under those of the documents.", show_default=False)
]
Live = Annotated[bool, option("Ask the servers that the file of an MCP client names for their tools.", "--live")]


def parse_id(text: str) -> str:
    """Check that an argument is text that can be encoded."""
    if any(unicodedata.category(c) == "Cs" for c in text):
        raise typer.BadParameter("is not valid text")
    return text


def check_name(name: str, option: str) -> None:
    """Raises RequestInvalid: it is no name for a source or a token."""
    if not _NAME.fullmatch(name):
        raise RequestInvalid([Fault(option, "must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`, a letter or digit first")])


_OBJECT = """write it as '{"name": "value"}'"""


def parse_object(text: str, option: str) -> dict[str, Any]:
    """The JSON object that an option gives."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"is not JSON: {error}; {_OBJECT}", param_hint=option) from error
    if not isinstance(found, dict):
        raise typer.BadParameter(f"must be a JSON object: {_OBJECT}", param_hint=option)
    return found


CapabilityId = Annotated[str, argument("namespace/name", metavar="ID", parser=parse_id)]


def program(*, absolute: bool = False) -> list[str]:
    """The words of this command as it was called, for lines to be copied; `absolute`: from any folder."""
    called, known = Path(sys.argv[0]), which("mats")
    if called.name != "mats":
        return [sys.executable, "-m", "mats.local.cli"]
    if absolute:
        return [os.path.abspath(called) if called.exists() else known or str(called)]  # noqa: PTH100 - without `..`
    return ["mats" if known and Path(known).resolve() == called.resolve() else str(called)]


class Exit(IntEnum):
    DONE = 0
    REFUSED = 1  # Something was rejected, or was not found
    USAGE = 2  # Invalid arguments or settings
    UNAVAILABLE = 3  # The registry or another dependency cannot be used
    INTERRUPTED = 130


def plain(text: object, style: str = "") -> Text:
    """Untrusted text for a terminal: without markup and control characters, hidden characters spelled out."""
    kept = (c for c in str(text) if c == "\n" or unicodedata.category(c) not in ("Cc", "Zl", "Zp"))
    return Text(spell_out("".join(kept)), style=style)


def print_json(value: Any) -> None:
    """Print JSON on standard output, indented on a terminal, with hidden and control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write(escape_hidden(text) + "\n")


def say(shown: RenderableType, style: str = "") -> None:
    """Print untrusted text, its lines not wrapped so that ids can be copied whole, or a table without its padding."""
    with out.capture() as printed:
        text = plain(shown) if isinstance(shown, str) else shown
        out.print(text, style=style, soft_wrap=isinstance(text, Text))
    sys.stdout.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))


def show(value: Any, *shown: RenderableType | Lines) -> None:
    """Print what a command did or found: as JSON, or as lines of text and tables, which are made only then."""
    if is_json():
        print_json(value)
        return
    for each in shown:
        for one in each if isinstance(each, Iterator) else (each,):
            say(one)


def complain(message: str) -> None:
    err.print(Text("error: ", style="bold red") + plain(message), soft_wrap=True)


def note(message: str) -> None:
    """Print a remark on standard error."""
    err.print(plain(message), style="dim", soft_wrap=True)


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """A table of names and untrusted values."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, plain(value))
    return table


def table_of(*headings: str, right: Collection[str] = ()) -> Table:
    """An empty table with these headings, of which some stand over numbers."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right" if heading in right else "left")
    return table


def readable(value: dict[str, int] | list[str] | int | str) -> str:
    match value:
        case dict():
            return ", ".join(f"{count:,} {name}" for name, count in value.items()) or "none"
        case list():
            return "\n".join(value) or "none"
        case int():
            return f"{value:,}"
    return value


class _Pace(progress.ProgressColumn):
    """The rate since the beginning and the time that is left, from the first batch on."""

    def render(self, task: progress.Task) -> Text:
        rate = task.completed / (task.finished_time or task.elapsed or 1)
        left = f", {task.remaining / rate:,.0f} s left" if rate and task.remaining else ""
        return Text(f"{rate:,.0f}/s{left}" if rate else "", style="dim")


@dataclass(slots=True)
class Bar:
    """A progress bar; call it to advance it."""

    display: progress.Progress
    task: progress.TaskID
    count: int = 0

    def __call__(self, count: int) -> None:
        self.count += count
        self.display.advance(self.task, count)


@contextmanager
def bars(*titles: str, total: int | None) -> Iterator[list[Bar]]:
    """Progress bars on standard error, if it is a terminal or TTY_COMPATIBLE=1: count, rate and remaining time."""
    columns = ("{task.description}", progress.BarColumn(), progress.MofNCompleteColumn(), _Pace())
    with progress.Progress(*columns, console=err, disable=not err.is_terminal) as display:
        yield [Bar(display, display.add_task(title, total=total)) for title in titles]


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Bar]:
    with bars(title, total=total) as (one,):
        yield one


_EVALUATION = frozenset(("ir_measures", "matplotlib", "rank_bm25", "scipy", "Stemmer"))
"""Packages that the extra of this name installs."""


class ExitCodes(TyperGroup):
    """Commands whose every expected error becomes one line and an exit code. `--home` may stand after the command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        at = next((n for n, word in enumerate(args[:end]) if word.partition("=")[0] == "--home"), 0)
        until = at + (2 if args[at : at + 1] == ["--home"] else 1)
        return super().parse_args(ctx, [*args[at:until], *args[:at], *args[until:]] if at else args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValidationError):
                error.message = faults_of(error.__cause__, BaseModel, {})[0].message
            raise
        except (CapabilityError, SettingsInvalid) as error:
            complain(str(error))
            refused = isinstance(error, Invalid | CapabilityNotFound | ReceiptNotFound | RegistryNotFound)
            code = Exit.REFUSED if refused else Exit.UNAVAILABLE
            raise typer.Exit(Exit.USAGE if isinstance(error, SettingsInvalid | RequestInvalid) else code) from error
        except ModuleNotFoundError as error:
            if error.name not in _EVALUATION:
                raise
            complain(f"{error.name} is not installed: {command_to_install('evaluation')}")
            raise typer.Exit(Exit.USAGE) from error
        except BrokenPipeError:
            sys.stderr.close()
            raise typer.Exit(Exit.DONE) from None
        except KeyboardInterrupt:
            complain("interrupted; acknowledged writes are saved: run the command again to complete it")
            raise typer.Exit(Exit.INTERRUPTED) from None


def show_with_usage(system: AnySystem, value: Mapping[str, Any], *shown: RenderableType | Lines) -> None:
    """Print an outcome with the usage of models: tokens and dollars of each that was called."""
    spent = {model: asdict(one) for model, one in system.models.spending().items()}
    lines = (
        Text(f"{model}: {one.input_tokens:,} tokens in, {one.output_tokens:,} out, {dollars(one.usd)}", style="dim")
        for model, one in system.models.spending().items()
    )
    show({**value, **({"spent": spent} if system.models.service else {})}, *shown, lines)


def count_of(count: int, noun: str, plural: str = "") -> str:
    """A number and what it counts, such as `1 row` and `2 rows`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def and_more(count: int) -> str:
    """The suffix that counts the further rejections of a file for the same faults; empty if there are none."""
    return f" (and {count:,} more of this file)" if count else ""


MaxUsd = Annotated[
    float | None, option("The most that language models may cost; replies in the cache cost 0.", "--max-usd")
]
MaxCalls = Annotated[
    int | None, option("The most calls of language models, for models without a known price.", "--max-calls")
]


def limit_spending(models: Models, called: Sequence[str], max_usd: float | None, max_calls: int | None) -> None:
    """Set the limits of a run that calls models by these names; end the command if there is none to enforce.

    Recorded models cost nothing and need no limit.
    """
    if models.recorded:
        return
    unpriced = [model for model in called if bootstrap.prices().usage(model, 1, 1).usd is None]
    if max_usd is None and max_calls is None:
        complain("no model was called: set --max-usd, the most that they may cost, or --max-calls")
        raise typer.Exit(Exit.REFUSED)
    if max_calls is None and unpriced:
        complain(f"the price of {' and '.join(unpriced)} is not known: limit the calls with --max-calls")
        raise typer.Exit(Exit.REFUSED)
    models.budget.max_usd, models.budget.max_calls = max_usd, max_calls


def dollars(usd: float | None) -> str:
    """A cost to a hundredth of a cent, never rounded down to nothing."""
    if usd is None:
        return "price not known"
    return "< $0.0001" if 0 < usd < 0.0001 else f"${usd:,.4f}"
