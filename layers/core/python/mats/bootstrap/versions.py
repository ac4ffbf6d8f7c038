"""The function that deletes old versions of the discovery function."""

from mats.adapters.function_versions import FunctionVersions
from mats.settings import Settings, SettingsInvalid
from mats.usecases.prune_versions import PruneVersions


def prune_versions(settings: Settings) -> PruneVersions:
    """The use case that deletes old versions of the function that the settings name; makes no call.

    Raises:
        SettingsInvalid: they name none.
        NotPermitted: AWS's own settings cannot be used.
    """
    if not settings.discovery_function:
        raise SettingsInvalid("MATS_DISCOVERY_FUNCTION must be set: it names the function whose versions are deleted")
    return PruneVersions(versions=FunctionVersions(settings.discovery_function, region=settings.region))
