"""`mats search` and `mats call`."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.protocols.addresses import AddressRefused, Unfetchable
from mats.domain.protocols.catalogue import from_text
from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.search.shortlist import NEAREST
from mats.domain.search.signals import Signal
from mats.domain.search.verdict import Verdict
from mats.edge.http import local_caller, to_json
from mats.edge.routes import search_answer
from mats.edge.schema import DiscoverRequest, Format
from mats.local.cli import output as ui
from mats.local.cli.import_ import service_at
from mats.ports import Answered, Observation
from mats.settings import Settings

_REPORTS = {"match": "--succeeded ID", "weak": "--succeeded ID, or --missing WHAT", "none": "--missing WHAT"}
_VERDICTS = {"match": "bold green", "weak": "bold yellow", "none": "bold red"}
_INDENT = 10
_LEFT_OUT = 5  # Of what is left out, so many are named
_HEADINGS = {"match": "results:", "weak": "the nearest:", "none": "the nearest, probably not it:"}


def search(
    context: typer.Context,
    query: Annotated[list[str], ui.argument("The task, in plain words; or two to seven steps, each in quotes.")],
    kinds: ui.Kinds = None,
    namespaces: ui.Namespaces = None,
    tags: ui.Tags = None,
    effects: ui.Effects = None,
    holds: Annotated[
        str | None,
        ui.option(
            "What you can call with: auth, transports, read_only; with leave_out, the rest is left out.", metavar="JSON"
        ),
    ] = None,
    limit: Annotated[int | None, ui.option("Maximum number of results.", show_default="15; 5 with --format")] = None,
    min_relevance: Annotated[
        str | None,
        ui.option("Only results of at least this relevance, 0 to 1, or `weak`.", show_default="weak; with --json: 0"),
    ] = None,
    explain: Annotated[
        bool, ui.option("Show the matched words and fields, and the time of each stage.", "--explain")
    ] = False,
    format: Annotated[
        Format | None, ui.option("Print tools for a model instead of results; with --json, the whole answer.")
    ] = None,
    url: Annotated[str | None, ui.option("Ask the service at this address, with the token in MATS_TOKEN.")] = None,
    exit_code: Annotated[bool, ui.option("Exit with 1 if the verdict is `none`.", "--exit-code")] = False,
) -> None:
    """Rank the capabilities that serve a request."""
    request = {
        **_text(query), "kinds": [str(one) for one in kinds or []], "namespaces": namespaces or [],
        "tags": tags or [], "effects": [str(one) for one in effects or []], "explain": explain, "limit": limit,
        "min_relevance": _relevance(min_relevance or (None if ui.is_json() else "weak")), "format": format,
        "holds": ui.parse_object(holds, "--holds") if holds else None,
    }  # fmt: skip
    parsed = DiscoverRequest.parse(request)
    local = None if url else local_system(context.obj, create=False)
    answer, faults = _search_locally(local, parsed) if local else (_search_at(url or "", parsed, context.obj), ())
    without = local.models.without_encoder if local else ""
    if without and (format or ui.is_json()) and context.obj.encoder != "none":
        ui.note(f"{without}; until then words alone are searched")
    if format and not ui.is_json():
        _print_tools(answer)
    else:
        reasons = [*filter(None, [without]), *faults]
        reports = bool(url or (local and local.stores.receipts))
        why = "; ".join(reasons)
        ui.show(answer, answer_lines(answer, explain=explain, why_degraded=why, reports=reports, url=url or ""))
    if exit_code and answer["verdict"] == Verdict.NONE:
        raise typer.Exit(ui.Exit.REFUSED)


def _text(query: list[str]) -> dict[str, Any]:
    """One query, or several of more than a word each; single words are those of a query without quotes."""
    if len(query) > 1 and any(" " in text.strip() for text in query):
        return {"queries": query}
    return {"query": " ".join(query)}


def _search_locally(local: LocalSystem, request: DiscoverRequest) -> tuple[dict[str, Any], Sequence[str]]:
    """The answer, and why parts of it are degraded, which only operators see."""
    faults = list[str]()

    def observe(observation: Observation) -> None:
        faults.extend(observation.shortlist.trace.faults if isinstance(observation, Answered) else ())

    with closing(local):
        observed = replace(local.application, observe=observe)  # what the log would say is printed
        answer = search_answer(observed, local_caller(local.settings), request)
        if waits := sum(local.stores.queue.depth()):
            ui.note(
                f"{ui.count_of(waits, 'change')} not findable yet: a running service or `mats reconcile` completes this"
            )
        elif not getattr(answer, "results", True) and next(iter(local.stores.registry.ids()), None) is None:
            ui.note("The registry is empty: `mats import`, `mats init` or `mats add` fills it")
    content: dict[str, Any] = json.loads(to_json(answer))
    return {**content, **({"faults": faults} if faults else {})}, faults


def _relevance(text: str | None) -> str | float | None:
    """A number, if it is one; the request's schema checks the rest."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _print_tools(answer: dict[str, Any]) -> None:
    """Print the tools on standard output, and those left out on standard error."""
    ui.print_json(answer["output"])
    lines = [f"withheld: {one['id']}: {'; '.join(one['reasons'])}; {one['clear']}" for one in answer["withheld"]]
    unnamed = [left["id"] for left in answer["left_out"] if left["reason"] == "property_names"]
    lines += [f"left out, requires an input whose name that API rejects: {id}" for id in unnamed]
    for line in lines:
        ui.err.print(ui.plain(line, "yellow"), soft_wrap=True)


def answer_lines(answer: dict[str, Any], *, explain: bool, why_degraded: str, reports: bool, url: str = "") -> ui.Lines:
    results, verdict = answer["results"], answer["verdict"]
    if not results:
        count = len(answer["excluded"])
        left_out = f"; {count:,} left out:" if count else ""
        none = "no results" if verdict == "none" else "no result of the relevance that was asked for"
        yield Text(f"Verdict: {verdict}: {none}{left_out}", style=_VERDICTS[verdict])
        yield from _left_out(answer)
        yield from (ui.plain(f"Note: {text}", "yellow") for text in answer["notes"])
        return
    nearest = next((note for note in answer["notes"] if note.startswith(NEAREST)), "")
    if nearest and not (explain or answer["parts"]):
        yield ui.plain(f"{_verdict(answer)}; {nearest}", _VERDICTS[verdict])
        answer = {**answer, "notes": [note for note in answer["notes"] if note != nearest]}
    else:
        yield Text(f"{_verdict(answer)}; {_HEADINGS[verdict]}", style=_VERDICTS[verdict])
        yield from (_part(part, results) for part in answer["parts"] or ())
        for position, result in enumerate(results, start=1):
            yield _headline(position, result)
            yield Padding(_details(result, explain), (0, 0, 0, _INDENT), expand=False)
    yield _footer(answer, explain=explain, why_degraded=why_degraded)
    yield from _left_out(answer)
    if reports:
        at = f"--url {url} " if url else ""
        report = f"Report what happened: mats feedback {answer['query_id']} {at}{_REPORTS[verdict]}"
        yield Text(report, style="dim")


def _verdict(answer: dict[str, Any]) -> str:
    """The verdict and what decides it: the best relevance, beside that of a match if it is more."""
    best, least = max(one["relevance"] for one in answer["results"]), (answer.get("thresholds") or {}).get("match", 0)
    shown, beside = (best, "") if best >= least else (floor(100 * best) / 100, f", match from {least:.2f}")
    return f"Verdict: {answer['verdict']} (relevance {shown:.2f}{beside})"


def _left_out(answer: dict[str, Any]) -> Iterator[Text]:
    """What is withheld from agents, what `holds` and the filters of the answer left out, and why."""
    for one in answer.get("withheld", ()):
        yield ui.plain(f"Withheld from agents: {one['id']}: {one['clear']}", "yellow")
    for left in answer["excluded"][:_LEFT_OUT]:
        yield ui.plain(f"Left out: {left['id']}: {left['because']}", "dim")
    if (more := len(answer["excluded"]) - _LEFT_OUT) > 0:
        yield Text(f"Left out: {more:,} more; --json lists them", style="dim")


def _part(part: dict[str, Any], results: list[dict[str, Any]]) -> Text:
    """A part, its verdict, and the positions of the results that serve it."""
    positions = {result["id"]: position for position, result in enumerate(results, start=1)}
    serving = ", ".join(str(positions[one["id"]]) for one in part["results"])
    verdict = part["verdict"] or "not searched"
    served = f" by {serving}" if serving else ""
    return Text.assemble(
        "part ", ui.plain(part["text"], "cyan"), ": ", (verdict, _VERDICTS.get(verdict, "red")), served
    )


def _headline(position: int, result: dict[str, Any]) -> Text:
    return Text.assemble(
        (f"{position:>2}  ", "dim"),
        (f"{result['score']:.2f}", "bold"),
        f"  {result['kind']:<5}  ",
        ui.plain(result["id"], "bold cyan"),
        ("  deprecated" if result["lifecycle"] == "deprecated" else "", "red"),
    )


def _details(result: dict[str, Any], explain: bool) -> Text:
    lines = []
    if result["suspicious"]:
        lines.append(ui.plain(f"suspicious: {'; '.join(result['suspicious'])}", "red"))
    if unfit := result.get("unfit"):
        lines.append(ui.plain(f"unfit: {unfit}", "yellow"))
    if result["summary"]:
        lines.append(ui.plain(result["summary"]))
    signals = ", ".join(f"{name} {result['signals'][name]:.2f}" for name in Signal if name in result["signals"])
    lines.append(Text(signals, style="dim"))
    if explain and result["why"]:
        why = result["why"]
        matched = ", ".join(why["matched"]) or "no word; close in meaning"
        where = f" in {', '.join(why['fields'])}" if why["fields"] else ""
        lines.append(Text(f"matched {matched}{where}", style="dim"))
    return Text("\n").join(lines)


def _footer(answer: dict[str, Any], *, explain: bool, why_degraded: str) -> Text:
    took = answer["took_ms"]
    text = Text(f"{ui.count_of(len(answer['results']), 'result')} in {took['total']:.0f} ms", style="dim")
    if explain:
        stages = ", ".join(f"{stage} {ms:.1f}" for stage, ms in took.items() if stage != "total")
        weights = ", ".join(f"{name} {share:.2f}" for name, share in answer["results"][0]["weights"].items())
        text.append(f" ({stages}); weights of the first: {weights}")
    if answer["without"]:
        text.append(f"; without: {', '.join(answer['without'])}")
    if answer["degraded"]:
        text.append(f"; degraded: {', '.join(answer['degraded'])}")
    if why_degraded:
        text.append_text(ui.plain(f" ({why_degraded})"))
    for remark in answer["notes"]:
        text.append(f"\nNote: {remark}")
    return text


def _search_at(url: str, request: DiscoverRequest, settings: Settings) -> dict[str, Any]:
    """The answer of `POST /discover`. Raises as `service_at`."""
    filters = {name: getattr(request, name) for name in ("kinds", "namespaces", "tags", "effects")}
    held = request.holds.model_dump(exclude_none=True, mode="json") if request.holds else None
    limits = {"limit": request.limit, "min_relevance": request.min_relevance, "holds": held}
    query = list(request.queries or ()) or request.query
    with service_at(url, settings.token) as client:
        asked: Any = client
        if request.format:
            answer = asked.tools(query, request.format, **filters, **limits)
        else:
            answer = asked.discover(query, explain=request.explain, **filters, **limits)
    content: dict[str, Any] = json.loads(to_json(answer))
    return content


def call(
    context: typer.Context,
    id: ui.CapabilityId,
    input: Annotated[
        str, ui.option("JSON of the input, by the capability's input schema; @FILE, or - for standard input.")
    ] = "{}",
    dry_run: Annotated[bool, ui.option("Print the request, and send nothing.", "--dry-run")] = False,
    yes: Annotated[bool, ui.option("Start the owner's command without a question.", "--yes")] = False,
    values: Annotated[
        list[str] | None,
        ui.option("A placeholder in braces of the invocation, or a header.", "--set", metavar="NAME=VALUE"),
    ] = None,
    tool: Annotated[str, ui.option("Of an MCP server that is registered as a whole.", show_default=False)] = "",
    private: Annotated[
        bool, ui.option("The address may be of this machine or of a private network.", "--private")
    ] = False,
    timeout: Annotated[float, ui.option("Seconds of the call.", min=0.1)] = 60.0,
) -> None:
    """Call a capability with an input. Its invocation and its answer are its owner's text.

    Credentials are read from variables that end in the host, such as API_TOKEN_API_STRIPE_COM; --dry-run names them.
    """
    local = local_system(context.obj, create=False)
    profile = local.application.get_or_suggest(local_caller(local.settings), Id(id))
    given = dict(_pair(one) for one in values or ())
    from mats.client.calls import Caller, check_names  # noqa: PLC0415 - urllib3, for this command only

    caller = Caller(
        values=given, private=private, timeout_s=timeout, may_run=lambda command: _confirm(command, yes=yes)
    )
    invocation, schema = from_text(profile.invocation), json.loads(profile.input_schema or "{}")
    arguments = _parse(input)
    check_names(invocation, given)
    for reason in profile.suspicious:
        ui.note(f"suspicious: {reason}")
    if dry_run:
        shown = caller.prepare(invocation, arguments, tool=tool, schema=schema).shown
        ui.print_json(shown)
        if "url" in shown and not (private or namespace_of_url(shown["url"])):
            ui.note("If the address is of this machine or of a private network, the call needs --private.")
        return
    try:
        called = caller(invocation, arguments, tool=tool, schema=schema)
    except Unfetchable as error:
        if private or not isinstance(error.__cause__, AddressRefused):
            raise
        raise RequestInvalid([*error.faults, Fault("", "`--private` allows it, if you trust the owner")]) from error
    plain = isinstance(called.content, str) and not ui.is_json()
    value = {"ok": called.ok, "status": called.status, "content": called.content} if ui.is_json() else called.content
    ui.say(called.content) if plain else ui.print_json(value)
    if not called.ok:
        ui.note(f"the call failed{f' with status {called.status}' if called.status else ''}")
        raise typer.Exit(ui.Exit.REFUSED)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter("must be NAME=VALUE", param_hint="--set")
    return name, value


def _parse(text: str) -> Mapping[str, Any]:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise typer.BadParameter(f"cannot be read: {reason}; check path and rights", param_hint="--input") from error
    return ui.parse_object(text, "--input")


def _confirm(command: str, *, yes: bool) -> bool:
    """Show the command that an owner chose, and ask whether it may run."""
    ui.err.print(ui.plain(f"starts: {command}"), soft_wrap=True)
    if not (yes or (sys.stdin.isatty() and typer.confirm("Run this program of its owner?", err=True))):
        raise NotPossible([Fault("", "starts a program of its owner: confirm it with --yes")])
    return True
