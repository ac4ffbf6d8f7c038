"""Models that refuse every request: the capability stays findable, is marked, and comes back when the model does."""

from dataclasses import dataclass, field

import pytest

from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.profile.profile import ChangeResult, Profile, Refusal
from mats.ports import Written
from mats.usecases.backfill import Backfill
from mats.usecases.models import Probe
from tests.builders import a_profile, a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder, ScriptedWriter, raising
from tests.unit.usecases.test_reconcile import repair
from tests.world import FIVE, World, a_writer

PAY = a_registration(name="pay", description="Sends money")
MANY = [a_registration(name=f"pay-{n}", description="Sends money") for n in range(5)]
DENIED = ModelRefused("lite cannot be used", model="lite", cause="AccessDeniedException: no")
MARK = Refusal(role="writer", model="lite", cause="AccessDeniedException: no")


@dataclass
class Access:
    """Whether the writer may be called."""

    granted: bool = False
    writer: ScriptedWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = ScriptedWriter(lambda _: Written(enrichment=FIVE) if self.granted else DENIED, name="lite")


@dataclass
class RefusedEncoder(FakeEncoder):
    """Refuses every call until it is allowed."""

    allowed: bool = False
    calls: int = 0

    def encode_documents(self, texts):
        self.calls += 1
        if not self.allowed:
            raise ModelRefused("titan cannot be used", model="titan", cause="ValidationException: on-demand")
        return super().encode_documents(texts)


@pytest.fixture
def access() -> Access:
    return Access()


@pytest.fixture
def world(access: Access) -> World:
    return World(encoder=FakeEncoder(), writer=access.writer)


def reconcile(world: World) -> list[ChangeResult]:
    return [outcome for step in repair(world) for outcome in step.outcomes.values()]


def backfill(world: World) -> list[ChangeResult]:
    run = Backfill(enrich=world.enrich, clock=FakeClock(), ids=CountingIds())
    return [outcome for step in run(list(world.registry.ids())) for outcome in step.outcomes.values()]


def test_a_refused_writer_ends_the_change_with_a_marked_raw_profile(world: World):
    outcome = world.register(PAY)
    assert (outcome, outcome.is_final) == (ChangeResult.REFUSED, True)
    profile = world.profile(PAY.id)
    assert (profile.enriched, profile.refused, profile.indexed_rev) == (False, (MARK,), profile.rev)
    assert world.found("money") == [PAY.id]
    assert world.index.fetch([PAY.id])[PAY.id].refused == (MARK,)
    assert world.profiles.kept[PAY.id].vector is not None
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REFUSED}
    assert world.profile(PAY.id).rev == profile.rev


@pytest.mark.parametrize("run", [reconcile, backfill])
def test_a_run_asks_models_that_still_refuse_only_once(access: Access, run):
    encoder = RefusedEncoder()
    world = World(encoder=encoder, writer=access.writer)
    for registration in MANY:
        assert world.register(registration) is ChangeResult.REFUSED
    assert {refusal.role for refusal in world.profile(MANY[0].id).refused} == {"writer", "encoder"}
    revs = [world.profile(each.id).rev for each in MANY]
    access.writer.asked.clear()
    encoder.calls = 0
    assert run(world) == [ChangeResult.REFUSED] * 5
    assert (len(access.writer.asked), encoder.calls) == (1, 1)
    assert [world.profile(each.id).rev for each in MANY] == revs
    access.granted = encoder.allowed = True
    assert run(world) == [ChangeResult.INDEXED] * 5


def test_a_refused_encoder_leaves_words_and_the_writers_text():
    encoder = RefusedEncoder()
    world = World(encoder=encoder, writer=a_writer())
    assert world.register(PAY) is ChangeResult.REFUSED
    profile = world.profile(PAY.id)
    assert [refusal.role for refusal in profile.refused] == ["encoder"]
    assert (profile.enriched, profile.encoder, world.found("refund")) == (True, "", [PAY.id])
    rev = profile.rev
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REFUSED}
    assert world.profile(PAY.id).rev == rev
    encoder.allowed = True
    assert reconcile(world) == [ChangeResult.INDEXED]
    assert world.profile(PAY.id).refused == ()
    assert world.profiles.kept[PAY.id].vector is not None


def test_marks_are_part_of_the_content_and_no_mark_leaves_it_as_it_was():
    plain = a_profile()
    marked = plain.with_refusal(MARK)
    assert marked.content != plain.content
    assert marked.without_refusal("writer") == plain
    assert Profile.model_validate_json(marked.model_dump_json()) == marked
    assert marked.with_refusal(MARK.model_copy(update={"cause": "said otherwise"})) is marked
    assert marked.with_refusal(MARK.model_copy(update={"model": "pro"})).refused[0].model == "pro"


def test_a_failure_that_is_no_refusal_settles_a_probe():
    probe = Probe()
    with pytest.raises(DependencyFailed):
        probe.call(raising(DependencyFailed("busy")))
    assert probe.is_settled
    assert probe.call(lambda: 1) == 1
