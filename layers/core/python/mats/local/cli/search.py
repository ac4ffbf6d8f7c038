"""`mats search`."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.ranking.blend import Signal, Verdict
from mats.edge.http import local_caller, to_json
from mats.edge.requests import DiscoverRequest, Format
from mats.edge.routes import search_answer
from mats.local.cli.output import (
    AsJson,
    Effects,
    Exit,
    Kinds,
    Namespaces,
    Tags,
    err,
    out,
    parse_object,
    plain,
    print_json,
)
from mats.local.cli.remote import service_at
from mats.ports import Answered, Observation
from mats.settings import Settings

_VERDICTS = {"match": "bold green", "weak": "bold yellow", "none": "bold red"}
_REASONS = {
    "token_budget": "over the budget", "less_relevant": "far less relevant", "suspicious": "suspicious",
    "property_names": "requires an input whose name that API rejects",
}  # fmt: skip
_INDENT = 10
_LEFT_OUT = 5  # Of what is left out, so many are named
_NEAREST = {"none": "No capability matches; the nearest, probably not it:", "weak": "No clear match; the nearest are:"}


def search(
    context: typer.Context,
    query: Annotated[
        list[str], typer.Argument(help="The task, in plain words; or two to seven steps, each in quotes.")
    ],
    parts: Annotated[bool, typer.Option("--parts", help="Cut the task at its clauses, and show each part.")] = False,
    kinds: Kinds = None,
    namespaces: Namespaces = None,
    tags: Tags = None,
    effects: Effects = None,
    holds: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="What you can call with: auth, transports, read_only; with leave_out, the rest is left out.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Maximum number of results.", show_default="15; 5 with --format")
    ] = None,
    min_relevance: Annotated[
        str | None,
        typer.Option(
            help="Only results of at least this relevance, 0 to 1, or `weak`.", show_default="all; `weak` with --format"
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the matched words and fields, and the time of each stage.")
    ] = False,
    format: Annotated[
        Format | None, typer.Option(help="Print tools for a model instead of results; with --json, the whole answer.")
    ] = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Limit of the tools in estimated tokens; with --format.")
    ] = None,
    known: Annotated[
        list[str] | None, typer.Option(help="A tool not to print again; may be given several times; with --format.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Ask the service at this address, with the token in MATS_TOKEN.")
    ] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the verdict is `none`.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rank the capabilities that serve a request."""
    request = {
        **_text(query), "parts": parts, "kinds": [str(one) for one in kinds or []], "namespaces": namespaces or [],
        "tags": tags or [], "effects": [str(one) for one in effects or []], "explain": explain, "limit": limit,
        "min_relevance": _relevance(min_relevance), "format": format, "token_budget": token_budget, "known": known,
        "holds": parse_object(holds, "--holds") if holds else None,
    }  # fmt: skip
    parsed = DiscoverRequest.parse(request)
    local = None if url else local_system(context.obj, create=False)
    answer, faults = _search_locally(local, parsed) if local else (ask_service(url or "", parsed, context.obj), ())
    if as_json:
        print_json(answer)
    elif format:
        _print_tools(answer)
    else:
        reasons = [*filter(None, [local.models.without_encoder if local else ""]), *faults]
        _show(answer, explain=explain, why_degraded="; ".join(reasons))
        if local and local.stores.receipts and answer["results"]:
            hint = f"Report what happened: mats feedback {answer['query_id']} --succeeded ID"
            out.print(Text(hint, style="dim"), soft_wrap=True)
    if exit_code and answer["verdict"] == Verdict.NONE:
        raise typer.Exit(Exit.REFUSED)


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
    print_json(answer["output"])
    for left in answer["left_out"]:
        line = f"left out, {_REASONS[left['reason']]}: {left['id']} ({left['tokens']:,} tokens)"
        err.print(plain(line, "yellow"), soft_wrap=True)


def _show(answer: dict[str, Any], *, explain: bool, why_degraded: str) -> None:
    results = answer["results"]
    if not results:
        out.print("Nothing found.", style="bold red")
        return
    out.print(Text(_NEAREST.get(answer["verdict"], "Found:"), style=_VERDICTS[answer["verdict"]]))
    for part in answer["parts"] or ():
        out.print(_part(part, results), soft_wrap=True)
    for position, result in enumerate(results, start=1):
        out.print(_headline(position, result), soft_wrap=True)  # so that ids can be copied whole
        out.print(Padding(_details(result, explain), (0, 0, 0, _INDENT), expand=False))
    out.print(_footer(answer, explain=explain, why_degraded=why_degraded))


def _part(part: dict[str, Any], results: list[dict[str, Any]]) -> Text:
    """A part, its verdict, and the positions of the results that serve it."""
    positions = {result["id"]: position for position, result in enumerate(results, start=1)}
    serving = ", ".join(str(positions[one["id"]]) for one in part["results"])
    verdict = part["verdict"] or "not searched"
    served = f" by {serving}" if serving else ""
    return Text.assemble("part ", plain(part["text"], "cyan"), ": ", (verdict, _VERDICTS.get(verdict, "red")), served)


def _headline(position: int, result: dict[str, Any]) -> Text:
    return Text.assemble(
        (f"{position:>2}  ", "dim"),
        (f"{result['score']:.2f}", "bold"),
        f"  {result['kind']:<5}  ",
        plain(result["id"], "bold cyan"),
        ("  deprecated" if result["lifecycle"] == "deprecated" else "", "red"),
    )


def _details(result: dict[str, Any], explain: bool) -> Text:
    lines = []
    if result["suspicious"]:
        lines.append(plain(f"suspicious: {'; '.join(result['suspicious'])}", "red"))
    if unfit := result.get("unfit"):
        lines.append(plain(f"unfit: {unfit}", "yellow"))
    if result["summary"]:
        lines.append(plain(result["summary"]))
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
    text = Text(f"{len(answer['results'])} results in {took['total']:.0f} ms", style="dim")
    if explain:
        stages = ", ".join(f"{stage} {ms:.1f}" for stage, ms in took.items() if stage != "total")
        weights = ", ".join(f"{name} {share:.2f}" for name, share in answer["results"][0]["weights"].items())
        text.append(f" ({stages}); weights of the first: {weights}")
    if answer["without"]:
        text.append(f"; without: {', '.join(answer['without'])}")
    if answer["degraded"]:
        text.append(f"; degraded: {', '.join(answer['degraded'])}")
    if why_degraded:
        text.append_text(plain(f" ({why_degraded})"))
    for note in answer["notes"]:
        text.append(f"\nNote: {note}")
    for left in answer["excluded"][:_LEFT_OUT]:
        text.append_text(plain(f"\nLeft out: {left['id']}: {left['because']}"))
    if (more := len(answer["excluded"]) - _LEFT_OUT) > 0:
        text.append(f"\nLeft out: {more:,} more; --json lists them")
    return text


def ask_service(url: str, request: DiscoverRequest, settings: Settings) -> dict[str, Any]:
    """The answer of `POST /discover`. Raises as `service_at`."""
    with service_at(url, settings.token or settings.read_token or settings.write_token) as client:
        return _ask(client, request)


def _ask(client: Any, request: DiscoverRequest) -> dict[str, Any]:
    filters = {name: getattr(request, name) for name in ("kinds", "namespaces", "tags", "effects")}
    held = request.holds.model_dump(exclude_none=True, mode="json") if request.holds else None
    limits = {"limit": request.limit, "min_relevance": request.min_relevance, "holds": held}
    query = list(request.queries or ()) or request.query
    if request.format:
        tools = {"token_budget": request.token_budget, "known": request.known}
        answer = client.tools(query, request.format, **tools, **filters, **limits)
    else:
        answer = client.discover(query, parts=request.parts, explain=request.explain, **filters, **limits)
    content: dict[str, Any] = json.loads(to_json(answer))
    return content
