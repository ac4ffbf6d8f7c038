"""The offline path over fakes, with failures, conflicts and repeated delivery."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, pattern_id
from mats.domain.profile.profile import MAX_PROFILE_BYTES, ChangeResult, Enrichment, Profile, Status
from mats.ports import Written
from mats.usecases import drafts
from mats.usecases.drafts import Pass
from tests.builders import a_registration, an_item
from tests.fakes import FakeEncoder, ScriptedWriter, raising
from tests.world import FIVE, World, a_writer


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture
def world(encoder: FakeEncoder) -> World:
    return World(encoder=encoder)


PAY = a_registration(name="pay", kind=Kind.TOOL, description="Sends money")


def test_a_registration_becomes_findable_as_its_owner_wrote_it(world: World):
    assert world.register(PAY) is ChangeResult.INDEXED
    profile = world.profile(PAY.id)
    assert (profile.rev, profile.indexed_rev, profile.enriched, profile.status) == (1, 1, False, Status.ACTIVE)
    assert world.found("money") == [PAY.id]
    assert world.profiles.kept[PAY.id].vector is not None


def test_the_same_event_twice_costs_no_model_call_and_no_write(world: World, encoder: FakeEncoder):
    world.registry.put([PAY])
    assert world.deliver(PAY.id, PAY.id, PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert len(encoder.encoded) == 1
    encoder.encoded.clear()
    assert world.deliver(PAY.id, event="again") == {PAY.id: ChangeResult.UNCHANGED}
    assert encoder.encoded == []
    assert world.profile(PAY.id).rev == 1


def test_a_rejected_registration_keeps_its_content_but_not_its_verification(world: World):
    key = pattern_id(PAY.namespace)
    world.trust.put(key, Assigned(trust=60, provider="Acme"))
    world.register(PAY)
    world.registry.items[PAY.id] = {**PAY.item(), "tags": "no list"}
    assert world.deliver(PAY.id)[PAY.id] is ChangeResult.REJECTED
    assert world.profiles.kept[PAY.id].profile.provider_verified
    world.trust.put(key, NOTHING_ASSIGNED)
    assert world.deliver(PAY.id)[PAY.id] is ChangeResult.REJECTED
    profile = world.profiles.kept[PAY.id].profile
    assert (profile.trust, profile.provider, profile.provider_verified) == (None, "", False)


LONG = PAY.model_copy(update={"description": "Sends money to the account of a customer within the hour."})


def since(world: World, registration: Registration, time: str) -> str:
    """Register at this time; returns the time of the first registration in profile and index."""
    world.clock.time = time
    world.register(registration, event=time)
    indexed = world.index.fetch([registration.id])[registration.id]
    assert indexed.first_registered == world.profile(registration.id).first_registered
    return indexed.first_registered


def test_the_time_of_the_first_registration_stays_while_the_text_is_nearly_the_same(world: World):
    first = "2026-01-01T00:00:00+00:00"
    assert since(world, LONG, first) == first
    longer = LONG.model_copy(update={"description": f"{LONG.description} Safely.", "endpoint": "https://pay.example"})
    assert since(world, longer, "2026-01-02T00:00:00+00:00") == first
    world.trust.put(PAY.id, Assigned(trust=80))
    assert since(world, longer, "2026-01-03T00:00:00+00:00") == first


def test_a_change_by_its_owner_is_no_rating_and_a_lost_rating_begins_anew(world: World):
    times = [f"2026-01-0{day}T00:00:00+00:00" for day in range(1, 6)]

    def rated_since(time: str, trust: int | None, **changed: object) -> str:
        world.trust.put(PAY.id, Assigned(trust=trust))
        since(world, LONG.model_copy(update=changed), time)
        return world.profile(PAY.id).rated_since

    found = [rated_since(time, trust) for time, trust in zip(times, (None, 80, 60, None, 80), strict=True)]
    assert found == ["", times[1], times[1], "", times[4]]
    assert rated_since("2026-01-06T00:00:00+00:00", 80, tags=("money",)) == times[4]


def test_another_writers_examples_leave_the_time_of_the_first_registration(world: World):
    first = "2026-01-01T00:00:00+00:00"
    name_only = PAY.model_copy(update={"description": ""})
    assert since(world, name_only, first) == first
    kept = world.profiles.kept[PAY.id]
    texts = ("Move some funds to my landlord before Friday", "Settle the invoice of a supplier abroad")
    other = kept.profile.model_copy(update={"enriched": True, "enrichment": Enrichment(positive_examples=texts)})
    world.profiles.kept[PAY.id] = replace(kept, profile=other.seal())
    assert (
        since(world, name_only.model_copy(update={"endpoint": "https://a.example"}), "2026-01-02T00:00:00+00:00")
        == first
    )


def test_another_text_or_a_removal_begins_anew(world: World):
    since(world, LONG, "2026-01-01T00:00:00+00:00")
    other = LONG.model_copy(update={"description": "Draws a map of the city with all of its parks and rivers."})
    assert since(world, other, "2026-01-02T00:00:00+00:00") == "2026-01-02T00:00:00+00:00"
    world.registry.remove(PAY.id)
    world.deliver(PAY.id)
    assert since(world, other, "2026-01-03T00:00:00+00:00") == "2026-01-03T00:00:00+00:00"


JUNK = "Keeps lists of rivers, lakes and hills that people have walked along in the past."


def test_an_old_registration_turned_into_another_a_few_words_at_a_time_begins_anew(world: World):
    words, wanted = JUNK.split(), LONG.description.split()
    since(world, LONG.model_copy(update={"description": JUNK}), "2026-01-01T00:00:00+00:00")
    for step in range(1, len(wanted) + 1):
        text = " ".join([*wanted[:step], *words[step:]])
        last = since(world, LONG.model_copy(update={"description": text}), f"2026-01-02T00:00:{step:02}+00:00")
    assert last > "2026-01-02"


@pytest.mark.parametrize("kept", ["examples", "description"])
def test_an_old_registration_keeps_its_age_by_no_part_of_its_text_alone(world: World, kept: str):
    padding = tuple(f"water{number} hill{number} lake{number}" for number in range(40))
    first = LONG.model_copy(update={"description": JUNK, "examples": padding})
    since(world, first, "2026-01-01T00:00:00+00:00")
    changed = {"description": LONG.description} if kept == "examples" else {"examples": (LONG.description,)}
    assert since(world, first.model_copy(update=changed), "2026-01-02T00:00:00+00:00") > "2026-01-02"


def test_a_profile_of_an_earlier_release_stays_the_oldest_and_is_not_written_for_it(world: World):
    since(world, LONG, "2026-01-01T00:00:00+00:00")
    kept = world.profiles.kept[PAY.id]
    early = kept.profile.model_copy(update={"first_registered": "", "first_text": ""})
    assert early.seal().content == kept.profile.content
    world.profiles.kept[PAY.id] = replace(kept, profile=early)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.UNCHANGED}
    assert since(world, LONG.model_copy(update={"endpoint": "https://a.example"}), "2026-01-02T00:00:00+00:00") == ""


def test_a_removed_registration_leaves_a_tombstone(world: World):
    world.register(PAY)
    world.registry.remove(PAY.id)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.DELETED}
    assert world.found("money") == []
    assert world.profile(PAY.id).status is Status.DELETED
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.UNCHANGED}


@pytest.mark.parametrize("bad", [{"tags": 5}, {"kind": "agent"}], ids=str)
def test_a_bad_change_leaves_the_last_good_profile_findable_beside_the_error(world: World, bad: dict):
    world.register(PAY)
    world.registry.items[PAY.id] = {**PAY.item(), **bad}
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert (world.found("money"), world.profile(PAY.id).kind) == ([PAY.id], Kind.TOOL)
    assert next(iter(bad)) in world.profile(PAY.id).error
    world.registry.items[PAY.id] = PAY.model_copy(update={"version": "2"}).item()
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.profile(PAY.id).error == ""


def test_after_an_encoder_failure_it_is_lexically_findable_and_retried(encoder: FakeEncoder):
    encoder.broken = True
    world = World(encoder=encoder)
    outcome = world.register(PAY)
    assert outcome is ChangeResult.DEGRADED
    assert not outcome.is_final
    assert world.found("money") == [PAY.id]
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.DEGRADED}
    encoder.broken = False
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.profiles.kept[PAY.id].vector is not None


def without_models(world: World, drafted: dict[Id, int] | None = None) -> Pass:
    maker = replace(world.enrich.maker, writer=None)
    return Pass(maker=maker, vectors=False, later=world.enrich.maker, drafted=drafted)


def without_writer(world: World) -> Pass:
    return Pass(maker=replace(world.enrich.maker, writer=None), later=world.enrich.maker)


def test_an_earlier_run_without_models_makes_findable_and_leaves_vectors_to_the_next(
    world: World, encoder: FakeEncoder
):
    world.registry.put([PAY])
    assert world.deliver(PAY.id, run=without_models(world)) == {PAY.id: ChangeResult.POSTPONED}
    assert world.found("money") == [PAY.id]
    assert (world.profiles.kept[PAY.id].vector, encoder.encoded) == (None, [])
    assert world.deliver(PAY.id, run=without_models(world)) == {PAY.id: ChangeResult.POSTPONED}
    assert world.profile(PAY.id).rev == 1
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.profiles.kept[PAY.id].vector is not None
    assert len(encoder.encoded) == 1


def test_an_earlier_run_completes_what_needs_no_model(world: World, encoder: FakeEncoder):
    world.register(PAY)
    world.trust.put(PAY.id, Assigned(trust=80))
    gone = Id("com.acme/never-seen")
    assert world.deliver(PAY.id, gone, run=without_models(world)) == {
        PAY.id: ChangeResult.INDEXED, gone: ChangeResult.UNCHANGED,
    }  # fmt: skip
    assert (world.profile(PAY.id).trust, len(encoder.encoded)) == (80, 1)
    assert world.profiles.kept[PAY.id].vector is not None


def test_an_earlier_run_without_the_writer_leaves_its_text_to_the_next(encoder: FakeEncoder):
    world = World(encoder=encoder, writer=a_writer())
    world.registry.put([PAY])
    assert world.deliver(PAY.id, run=without_writer(world)) == {PAY.id: ChangeResult.POSTPONED}
    assert world.profiles.kept[PAY.id].vector is not None
    assert not world.profile(PAY.id).enriched
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.profile(PAY.id).enriched
    assert world.deliver(PAY.id, run=without_writer(world)) == {PAY.id: ChangeResult.UNCHANGED}


class Killed(BaseException):
    """A crash of the process."""


@pytest.mark.parametrize("step", ["save", "put", "mark_indexed"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_any_write_heals_when_the_event_comes_again(world: World, monkeypatch, step: str, when: str):
    owner = world.index if step == "put" else world.profiles
    original = getattr(owner, step)

    def killed(*arguments):
        if when == "after":
            original(*arguments)
        raise Killed

    monkeypatch.setattr(owner, step, killed)
    with pytest.raises(Killed):
        world.register(PAY)
    monkeypatch.setattr(owner, step, original)
    assert world.deliver(PAY.id)[PAY.id] in (ChangeResult.INDEXED, ChangeResult.UNCHANGED)
    assert world.found("money") == [PAY.id]
    profile = world.profile(PAY.id)
    assert profile.rev == profile.indexed_rev == 1


def test_a_run_that_was_overtaken_asks_for_another_delivery(world: World, monkeypatch):
    world.register(PAY)
    stale = dict(world.profiles.kept)
    world.register(PAY.model_copy(update={"description": "newer"}))
    world.registry.put([PAY.model_copy(update={"description": "newest"})])
    monkeypatch.setattr(world.profiles, "get", lambda ids: stale)
    monkeypatch.setattr(world.index, "put", raising(AssertionError("it indexes what is not saved")))
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.SUPERSEDED}
    monkeypatch.undo()
    assert world.found("newer") == [PAY.id]
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.found("newest") == [PAY.id]


def test_a_writer_enriches_profiles_that_are_already_findable(encoder: FakeEncoder):
    writer = a_writer(Written(enrichment=FIVE, notes=("dropped a url",)))
    world = World(encoder=encoder, writer=writer)
    assert world.register(PAY, event="e7") is ChangeResult.INDEXED
    assert writer.labels == [{"event_id": "e7"}]
    profile = world.profile(PAY.id)
    assert (profile.enriched, profile.rev, profile.indexed_rev) == (True, 2, 2)
    assert profile.enrichment == FIVE
    assert profile.notes == ("dropped a url",)
    assert [v.enriched for v in world.profiles.versions(PAY.id)] == [False]
    assert world.found("refund") == [PAY.id]
    assert world.found("subscription") == []


def overtaken(meanwhile) -> World:
    """A world with a change that another run handles during the writer's call."""
    world = World(encoder=FakeEncoder())

    def think(registration):
        if not world.happened:
            world.happened = True
            meanwhile(world)
            raw = replace(world.enrich, maker=replace(world.enrich.maker, writer=None))
            raw([world.change(PAY.id, "other")])
        return Written(enrichment=FIVE)

    world.happened = False
    world.use(writer=ScriptedWriter(think))
    return world


HIDDEN = PAY.model_copy(update={"visible_to": ("board",)})


@pytest.mark.parametrize(
    ("meanwhile", "found", "attribute", "kept"),
    [
        (lambda world: world.registry.remove(PAY.id), [], "status", Status.DELETED),
        (lambda world: world.registry.put([HIDDEN]), [], "visible_to", ("board",)),
        (lambda world: world.trust.put(PAY.id, Assigned(trust=0)), [PAY.id], "trust", 0),
    ],
    ids=["removed", "hidden", "trusted"],
)
def test_what_changes_during_the_writers_call_stays_changed(meanwhile, found, attribute, kept):
    world = overtaken(meanwhile)
    assert world.register(PAY).is_final
    assert (world.found("money"), getattr(world.profile(PAY.id), attribute)) == (found, kept)
    assert world.deliver(PAY.id)[PAY.id].is_final
    assert (world.found("money"), getattr(world.profile(PAY.id), attribute)) == (found, kept)


def test_a_change_between_the_two_reads_is_not_overwritten(world: World, monkeypatch):
    world.register(PAY)
    newer = PAY.model_copy(update={"visible_to": ("board",), "description": "newer money"})
    read = world.registry.get

    def overtake(ids):
        before = dict(read(ids))
        monkeypatch.undo()
        world.registry.put([newer])
        world.deliver(PAY.id)
        return before

    monkeypatch.setattr(world.registry, "get", overtake)
    world.deliver(PAY.id)
    assert world.profile(PAY.id).visible_to == ("board",)


def test_a_process_without_the_writer_does_not_undo_its_work(encoder: FakeEncoder):
    world = World(encoder=encoder, writer=a_writer())
    world.register(PAY)
    world.use(writer=None)
    world.trust.put(PAY.id, Assigned(trust=9))
    assert world.deliver(PAY.id)[PAY.id] is ChangeResult.INDEXED
    assert (world.profile(PAY.id).enriched, world.profile(PAY.id).trust) == (True, 9)
    world.register(PAY.model_copy(update={"description": "Sends money abroad"}))
    assert not world.profile(PAY.id).enriched


def test_a_failing_writer_leaves_the_raw_profile_findable_and_is_retried(encoder: FakeEncoder):
    replies = [DependencyFailed("throttled"), Written(enrichment=FIVE)]
    world = World(encoder=encoder, writer=ScriptedWriter(lambda registration: replies.pop(0)))
    assert world.register(PAY) is ChangeResult.DEGRADED
    assert world.found("money") == [PAY.id]
    assert not world.profile(PAY.id).enriched
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.INDEXED}
    assert world.profile(PAY.id).enriched


def test_an_unusable_reply_leaves_the_raw_profile_and_is_not_retried(encoder: FakeEncoder):
    writer = a_writer(ReplyUnusable("cut off"))
    world = World(encoder=encoder, writer=writer)
    assert world.register(PAY) is ChangeResult.INDEXED
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.UNCHANGED}
    assert world.profile(PAY.id).notes == ("not enriched: cut off",)
    assert world.found("money") == [PAY.id]
    assert writer.asked == [PAY.id]


def test_a_name_with_outer_white_space_is_rejected_with_the_reason(world: World):
    id = Id("com.acme.pay/pay ")
    world.registry.items[id] = {**PAY.item(), "name": "pay "}
    assert world.deliver(id)[id] is ChangeResult.REJECTED
    assert "white space" in world.profile(id).error
    assert PAY.id not in world.profiles.kept


def test_the_writer_is_not_asked_about_a_name_that_any_project_could_have():
    demo = a_registration(name="Demo Project", description=None)
    writer = a_writer()
    world = World(writer=writer)
    assert world.register(demo) is ChangeResult.INDEXED
    profile = world.profile(demo.id)
    assert (profile.enriched, profile.enrichment) == (True, Enrichment())
    assert profile.notes == ("not described: name and description say nothing of what it does",)
    assert (world.found("demo"), writer.asked) == ([demo.id], [])


def both_runs(world: World, between) -> None:
    """A run without models and the last one, with something between them."""
    registration = a_registration(description="Gives money back")
    world.registry.put([registration])
    drafted: dict[Id, int] = {}
    earlier, last = without_models(world, drafted), Pass(maker=world.enrich.maker, drafted=drafted)
    assert world.deliver(registration.id, run=earlier) == {registration.id: ChangeResult.POSTPONED}
    between(registration)
    assert world.deliver(registration.id, run=last) == {registration.id: ChangeResult.INDEXED}


def test_a_later_run_takes_over_what_an_earlier_one_has_drafted(world: World, monkeypatch):
    def analysed_again(*arguments, **options):
        pytest.fail("analysed again")

    both_runs(world, lambda registration: monkeypatch.setattr(drafts, "profile_of", analysed_again))
    stored = world.profiles.get([a_registration().id])[a_registration().id]
    assert (stored.profile.rev, stored.profile.indexed_rev, stored.vector is not None) == (2, 2, True)
    assert stored.profile == stored.profile.seal()


def test_a_change_between_two_runs_is_not_missed(world: World):
    def change(registration):
        world.registry.put([registration.model_copy(update={"description": "Gives money back to the card"})])
        world.trust.put(registration.id, Assigned(trust=70))

    both_runs(world, change)
    stored = world.profiles.get([a_registration().id])[a_registration().id]
    assert (stored.profile.source.description, stored.profile.trust) == ("Gives money back to the card", 70)
    assert stored.vector is not None


BAD = {**PAY.item(), "tags": 5}
OTHER = a_registration(name="other", description="Does other things")


@dataclass
class Listener:
    """Records announced rejections, each with its stored state at that moment."""

    world: World
    heard: list[tuple[Id, int]] = field(default_factory=list)
    kept_then: list[Status | None] = field(default_factory=list)
    deaf: bool = False

    def __call__(self, rejected: Sequence[Profile]) -> None:
        if self.deaf:
            raise DependencyFailed("the bus did not answer")
        for profile in rejected:
            before = self.world.profiles.kept.get(profile.id)
            self.heard.append((profile.id, profile.rev))
            self.kept_then.append(before.profile.status if before else None)


@pytest.fixture
def listener(world: World) -> Listener:
    listener = Listener(world)
    world.enrich = replace(world.enrich, on_reject=listener)
    return listener


def break_it(world: World) -> None:
    world.registry.items[PAY.id] = BAD


def test_a_rejection_is_announced_once_before_it_is_saved(world, listener):
    world.register(PAY)
    break_it(world)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert (listener.heard, listener.kept_then) == ([(PAY.id, 2)], [Status.ACTIVE])
    assert world.profile(PAY.id).status is Status.REJECTED
    assert world.deliver(PAY.id, event="again") == {PAY.id: ChangeResult.UNCHANGED}
    assert listener.heard == [(PAY.id, 2)]


def test_ended_between_announcing_and_keeping_it_is_announced_again(world, listener, monkeypatch):
    break_it(world)
    with monkeypatch.context() as patched:
        patched.setattr(world.profiles, "save", raising(DependencyFailed("ended here")))
        with pytest.raises(DependencyFailed, match="ended here"):
            world.deliver(PAY.id)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert listener.heard == [(PAY.id, 1), (PAY.id, 1)]


def test_an_unannounced_rejection_is_not_saved_but_retried_and_delays_no_other(world, listener):
    said = []
    world.enrich = replace(world.enrich, on_wait=lambda id, error: said.append((id, str(error))))
    world.register(PAY)
    break_it(world)
    world.registry.put([OTHER])
    listener.deaf = True
    assert world.deliver(PAY.id, OTHER.id) == {PAY.id: ChangeResult.DEGRADED, OTHER.id: ChangeResult.INDEXED}
    assert said == [(PAY.id, "the bus did not answer")]
    assert not ChangeResult.DEGRADED.is_final
    assert world.profile(PAY.id).status is Status.ACTIVE
    listener.deaf = False
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert listener.heard == [(PAY.id, 2)]


def test_an_unindexed_revision_is_indexed_after_the_announcement(world, listener):
    world.register(PAY)
    world.index.entries.clear()
    kept = world.profiles.kept[PAY.id]
    world.profiles.kept[PAY.id] = replace(kept, profile=kept.profile.model_copy(update={"indexed_rev": 0}))
    break_it(world)
    listener.deaf = True
    world.deliver(PAY.id)
    listener.deaf = False
    world.deliver(PAY.id)
    assert world.found("money") == [PAY.id]


def test_a_registration_too_long_for_a_profile_is_rejected_readably(world, listener):
    huge = tuple(f"{n:03}" + "\U0001f4b8" * 1_990 for n in range(40))
    item = an_item(name="huge", examples=list(huge), description="\U0001f4b8" * 15_000)
    registration = a_registration(name="huge", examples=huge, description=item["description"])
    assert world.register(registration) is ChangeResult.REJECTED
    profile = world.profile(registration.id)
    assert f"shorten it to fit {MAX_PROFILE_BYTES:,}" in profile.error
    assert len(profile.model_dump_json()) < 2_000
    assert listener.heard == [(registration.id, 1)]
