"""The learning function: reported outcomes to read and to forget, the memory to write."""

from mats.bootstrap.cloud import cloud_system
from mats.bootstrap.learning import follow_outcomes
from mats.edge.learning import Learner
from mats.settings import Settings, SettingsInvalid
from mats.usecases.forget_removed import ForgetRemoved


def open_learner(settings: Settings) -> Learner:
    """The learner in AWS: updates the memory from outcomes, and deletes outcomes of what was removed; makes no call.

    Raises:
        NotPermitted: AWS's own settings cannot be used.
        SettingsInvalid: there are no outcomes.
    """
    stores = cloud_system(settings).stores
    if stores.outcomes is None:
        raise SettingsInvalid("MATS_OUTCOMES_TABLE and MATS_TALLIES_TABLE must be set")
    forget = ForgetRemoved(stores.registry, stores.outcomes)
    if stores.memory is None:  # without an encoder there is nothing to compare requests by
        return Learner(lambda query_ids: None, forget)
    return Learner(follow_outcomes(stores.outcomes, stores.memory), forget)
