"""The commands that show the registry."""

import json
from typing import Any

import typer
from rich.table import Table

from mats.bootstrap.local import local_system
from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound
from mats.local.cli.output import AsJson, CapabilityId, exit_codes, out, plain, print_json
from mats.local.counts import counts


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(show)
    app.command()(stats)


def show(context: typer.Context, id: CapabilityId, as_json: AsJson = False) -> None:
    """Show a capability: its registration, its profile and its earlier versions."""
    with exit_codes():
        local = local_system(context.obj)
        key = Id(id)
        item, stored = local.stores.registry.get([key]).get(key), local.stores.profiles.get([key]).get(key)
        if item is None and stored is None:
            raise CapabilityNotFound(id)
        shown = {
            "id": id,
            "registration": item,
            "trust": local.stores.trust.get([key]).get(key),
            "profile": stored.profile.model_dump(mode="json") if stored else None,
            "vector": len(stored.vector) if stored and stored.vector else None,
            "versions": [version.model_dump(mode="json") for version in local.stores.profiles.versions(key)],
        }
    if as_json:
        print_json(shown)
    else:
        _show_capability(shown)


def _show_capability(shown: dict[str, Any]) -> None:
    out.print(plain(shown["id"]), style="bold cyan")
    profile = shown["profile"]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for key, value in (shown["registration"] or {"registration": "removed"}).items():
        table.add_row(key, plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    if profile:
        table.add_row("trust", plain("none given" if shown["trust"] is None else shown["trust"]))
        state = profile["status"] + (", enriched" if profile["enriched"] else ", raw")
        table.add_row("status", plain((profile["error"] and f"{state}: {profile['error']}") or state))
        summary = profile["enrichment"]["summary"]
        table.add_row("summary", plain(summary or "none"))
        for refusal in profile["refused"]:
            table.add_row("refused", plain(f"{refusal['role']} {refusal['model']}: {refusal['cause']}"))
        for key in ("suspicious", "notes"):
            if profile[key]:
                table.add_row(key, plain("\n".join(profile[key])))
        table.add_row("vector", f"{shown['vector']} components" if shown["vector"] else "none")
        indexed = "indexed" if profile["indexed_rev"] == profile["rev"] else "not indexed yet"
        cause = f", {profile['cause']['time']} ({profile['cause']['event_id']})" if profile["cause"] else ""
        table.add_row("revision", f"{profile['rev']}, {indexed}{cause}")
        for version in reversed(shown["versions"]):
            before = version["cause"] or {"time": "?", "event_id": "?"}
            table.add_row("earlier", f"{version['rev']}, {version['status']}, {before['time']} ({before['event_id']})")
    out.print(table)


def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Count registrations, profiles, waiting changes and vectors."""
    with exit_codes():
        local = local_system(context.obj)
        totals = counts(local)
    if as_json:
        print_json(totals)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for key, value in totals.items():
        table.add_row(key.replace("_", " "), plain(_format_count(value)))
    out.print(table)


def _format_count(value: dict[str, int] | list[str] | int | str) -> str:
    match value:
        case dict():
            return ", ".join(f"{count:,} {name}" for name, count in value.items()) or "none"
        case list():
            return "\n".join(value) or "none"
        case int():
            return f"{value:,}"
    return value
