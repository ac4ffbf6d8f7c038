"""A running service, as `--url` names it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault
from mats.domain.profile.origin import Placed
from mats.settings import SettingsInvalid, variable_of

if TYPE_CHECKING:
    from mats.client import Client

_BATCH_BYTES = 4_000_000  # With every character escaped, still below the limit of a body


@contextmanager
def service_at(url: str, token: str, timeout_s: float = 10) -> Iterator["Client"]:
    """A client of the service, which is sent this token.

    Raises:
        typer.BadParameter: the address, or what it was asked, is invalid.
        SettingsInvalid: the service does not know the token, or the token may not do this.
        DependencyFailed: it does not answer.
    """
    try:
        from mats import client as api  # noqa: PLC0415 - urllib3, for --url only
    except ImportError as error:
        raise typer.BadParameter("needs urllib3: pip install 'mats[client]'", param_hint="--url") from error
    variable = variable_of("token")
    try:
        with api.Client(url, auth=api.Bearer(token) if token else None, timeout_s=timeout_s) as client:
            yield client
    except (ValueError, api.WrongRequest) as error:
        hint = "check it" if token else f"set {variable} to its token"
        raise typer.BadParameter(f"{error} ({hint})", param_hint="--url") from error
    except api.NotAllowed as error:
        raise SettingsInvalid(f"{url} refuses the request ({error.problem.detail}): set {variable}") from error
    except api.MatsError as error:
        raise DependencyFailed(str(error)) from error


@dataclass(slots=True)
class RemoteRegistry:
    """The registry of a service, to put to. What it refuses is in `refusals`."""

    client: "Client"
    refusals: dict[Id, Sequence[Fault]] = field(default_factory=dict)

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        placed: dict[Id, Placed] = {}
        for batch in _batches(registrations):
            answer = self.client.register([registration.item() for registration in batch])
            placed |= answer.placed
            for one in answer.rejected:
                if one.place < len(batch):
                    self.refusals[batch[one.place].id] = [Fault(each.field, each.message) for each in one.errors]
            if {registration.id for registration in batch} - placed.keys() - self.refusals.keys():
                raise DependencyFailed("the service does not say what became of a registration: run the import again")
        return placed


def _batches(registrations: Sequence[Registration]) -> Iterator[Sequence[Registration]]:
    batch: list[Registration] = []
    size = 0
    for registration in registrations:
        more = len(registration.model_dump_json(exclude_defaults=True))
        if batch and size + more > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(registration)
        size += more
    yield batch
