"""Counts of the local registry."""

from typing import Any

from mats.bootstrap.local import DATABASE, LocalSystem


def counts(local: LocalSystem) -> dict[str, Any]:
    """The JSON of `mats stats`: counts of registrations, profiles, waiting changes and vectors."""
    stores, models = local.stores, local.models
    return {
        "home": str(local.settings.home),
        "registered": sum(1 for _ in stores.registry.ids()),
        **stores.profiles.counts(),
        "changes": stores.queue.depth()._asdict(),
        "vectors": stores.profiles.vectors() or "none",
        "given_up": [f"{id}: {reason}" for id, reason in stores.queue.dead_letters()],
        "bytes": sum(file.stat().st_size for file in stores.database.path.parent.glob(f"{DATABASE}*")),
        "encoder": models.encoder_name or f"none: {models.without_encoder}",
    }


def without_vector(local: LocalSystem) -> int:
    """How many indexed capabilities have no vector of the current encoder: neural search cannot find them."""
    profiles = local.stores.profiles
    encoded = profiles.vectors().get(local.models.encoder_name, 0)
    return int(profiles.counts()["progress"]["indexed"]) - encoded
