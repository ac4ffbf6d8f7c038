"""`mats doctor`: what is wrong with this installation, and what to do."""

import logging
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mats import __version__
from mats.bootstrap import open_system
from mats.bootstrap.local import DATABASE, LocalSystem, is_missing, local_system
from mats.bootstrap.models import ConfiguredModels, model_names
from mats.domain.capability.capability import Kind
from mats.domain.errors import CapabilityError, command_to_install
from mats.domain.profile.profile import Profile
from mats.edge.http import local_caller
from mats.local.access import LOOPBACK
from mats.local.cli import output as ui
from mats.local.cli.registry import without_vector
from mats.local.tokens import TokenBook
from mats.settings import Settings, SettingsInvalid

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+).*extra == ['\"]([a-z]+)['\"]")
_STYLES = {"ok": "green", "note": "yellow", "fault": "bold red"}
_QUERY = "refund a card payment"
_CANDIDATES = ("translate text", "refund a card payment", "read a file", "book a room", "list repositories")
# One of them serves the query; with fewer, equal scores of a reranker could be meant


class Row(NamedTuple):
    """One check; `text` says what was found and, for a fault, what to do."""

    check: str
    state: Literal["ok", "note", "fault"]
    text: str


def doctor(
    context: typer.Context,
) -> None:
    """Check this installation: settings, packages, tokens, registry, sources, encoder and models.

    Calls a configured language model once. Exits with 1 if there is a fault, and says what to do. Changes nothing, but
    makes files of the registry private.
    """
    logging.getLogger("mats").addHandler(logging.NullHandler())  # what it would warn of is a row
    rows = [Row("version", "ok", f"mats {__version__}, Python {sys.version.split()[0]}, {shlex.join(ui.program())}")]
    if isinstance(context.obj, SettingsInvalid):
        texts = [*Settings.unknown(os.environ), *str(context.obj).split("; ")]
        rows += [Row("settings", "fault", text) for text in texts]
    else:
        settings: Settings = context.obj
        rows += [*_settings(settings), *_packages(settings), *_tokens(settings), *_registry(settings)]
        rows += [*_encoder(settings), *dict.fromkeys(_models(settings))]  # all roles may lack the same
    table = ui.table_of("check", "", "found")
    for row in rows:
        table.add_row(row.check, Text(row.state, style=_STYLES[row.state]), ui.plain(row.text))
    faults = sum(row.state == "fault" for row in rows)
    summary = ui.count_of(faults, "fault") if faults else "No fault."
    ui.show({"faults": faults, "checks": [row._asdict() for row in rows]}, table, summary)
    if faults:
        raise typer.Exit(ui.Exit.REFUSED)


def _settings(settings: Settings) -> Iterator[Row]:
    unknown = [Row("settings", "fault", text) for text in Settings.unknown(os.environ)]
    yield from unknown
    if not unknown:
        yield Row("settings", "ok", ", ".join(sorted(settings.to_env())) or "all are the defaults")
    address = urlsplit(settings.llm_url)
    if settings.llm_key and address.scheme == "http" and address.hostname not in LOOPBACK:
        yield Row("settings", "note", "MATS_LLM_KEY is sent unencrypted: use an https address in MATS_LLM_URL")


def _packages(settings: Settings) -> Iterator[Row]:
    """Check the extras: those that the settings or a command need must be complete."""
    needed = {"local": True, "aws": settings.bedrock or settings.in_aws}
    missing: dict[str, list[str]] = {name: [] for name in ("local", "aws", "evaluation")}
    for found in map(_REQUIREMENT.match, requires("mats") or ()):
        if found and found[2] in missing and not _is_installed(found[1]):
            missing[found[2]].append(found[1])
    for extra, names in missing.items():
        if names and needed.get(extra):
            yield Row("packages", "fault", f"missing {', '.join(names)}: {command_to_install(extra)}")
        elif names:
            yield Row("packages", "note", f"the extra {extra} is not installed: {command_to_install(extra)} adds it")
        else:
            yield Row("packages", "ok", f"the extra {extra} is installed")


def _is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def _tokens(settings: Settings) -> Iterator[Row]:
    try:
        made = len(TokenBook(settings.home).all())
        yield Row("tokens", "ok", ui.count_of(made, "token") if made else "none: on this machine only changes need one")
    except CapabilityError as error:
        yield Row("tokens", "fault", str(error))


def _registry(settings: Settings) -> Iterator[Row]:
    if settings.in_aws:
        try:
            open_system(settings).application.health(local_caller(settings))
            yield Row("registry", "ok", "in AWS; its index answers")
        except (CapabilityError, SettingsInvalid) as error:
            yield Row("registry", "fault", f"{error}; `make preflight` checks the account")
        return
    if is_missing(settings):
        yield Row("registry", "note", f"none at {settings.home}: `mats serve --sample`, `mats init` or `mats import`")
        return
    for file in sorted(settings.home.glob("mats.*")):
        if (mode := stat.S_IMODE(file.lstat().st_mode)) & 0o077:
            yield Row("registry", "fault", f"other users could use {file} (mode {mode:03o}): now only its owner can")
    file = settings.home / DATABASE
    if file.is_file() and not file.stat().st_size:
        to_do = (
            "restore a backup with `mats restore` into another home; if the registry was never used, delete the file"
        )
        yield Row("registry", "fault", f"{file} is empty: {to_do}")
        return
    try:
        with closing(local_system(settings, create=False)) as local:
            yield from _contents(local)
    except CapabilityError as error:
        yield Row("registry", "fault", str(error))


def _contents(local: LocalSystem) -> Iterator[Row]:
    stores, home = local.stores, local.settings.home
    stores.database.verify()
    with stores.database.rolled_back():  # raises if another process keeps the file locked
        count = sum(1 for _ in stores.registry.ids())
    yield Row("registry", "ok", f"{count:,} capabilities in {home}")
    hidden = sum(
        isinstance(one, dict)
        and bool(one.get("visible_to"))
        and set(one["visible_to"]).isdisjoint(local.settings.audiences)
        for one in stores.snapshot()
    )
    if hidden:
        text = f"{hidden:,} of them are hidden from you, because of `visible_to`: MATS_AUDIENCES names your audiences"
        yield Row("registry", "note", text)
    if dead := stores.queue.depth().dead:
        yield Row("registry", "fault", f"{dead:,} changes were given up, see `mats stats`: run `mats reconcile`")
    elif waiting := stores.queue.depth().waiting:
        yield Row("registry", "note", f"{waiting:,} changes wait: `mats serve` or `mats reconcile` handles them")
    elif local.models.encoder and (unencoded := without_vector(local)) > 0:
        yield Row("registry", "fault", f"{unencoded:,} have no vector of this encoder: run `mats reconcile`")
    for source, run, _, _ in stores.sources.all():
        if run.error:
            yield Row(
                "sources", "fault", f"{source.name}: {run.error}; correct this, then run `mats sync {source.name}`"
            )
        else:
            yield Row("sources", "ok", f"{source.name}: {'synced' if run.succeeded else 'not synced yet'}")


def _encoder(settings: Settings) -> Iterator[Row]:
    models = ConfiguredModels(settings)
    if models.encoder:
        yield Row("encoder", "ok", models.encoder.name)
    elif settings.encoder == "none":
        yield Row("encoder", "note", "MATS_ENCODER is none: words alone are searched")
    else:
        yield Row("encoder", "fault", f"{models.without_encoder}; until then words alone are searched")


def _models(settings: Settings) -> Iterator[Row]:
    """Asks each language model to rerank, since only its answer tells that address, key, model and form are right."""
    names = model_names(settings)
    if not settings.has_llm:
        yield Row("models", "note", "no language model: answers come without reranking; docs/local-models.md")
        return
    models = ConfiguredModels(settings)
    for name in sorted({*names.values()} - {"none"}):
        try:
            problem = (models.service.warning() if models.service else "") or _call(models, name)
        except CapabilityError as error:
            problem = str(error)
        yield Row("models", "fault" if problem else "ok", problem or f"{name} answers")


def _call(models: ConfiguredModels, name: str) -> str:
    """What is wrong with a model's answer; empty if nothing is. Raises DependencyFailed: it does not answer."""
    reranker = models.make_reranker(name)
    candidates = [Profile(namespace="com.example", name=one, kind=Kind.TOOL) for one in _CANDIDATES]
    reply = reranker.rerank(_QUERY, candidates) if reranker else None
    if reply is None or reply.void:
        return f"{name} answers, but its reply cannot be used ({reply.void if reply else ''}): use another model"
    if max(reply.scores) != reply.scores[_CANDIDATES.index(_QUERY)] or min(reply.scores) == max(reply.scores):
        return f"{name} answers, but scores {_QUERY!r} no higher than what has nothing to do with it: use another model"
    return ""
