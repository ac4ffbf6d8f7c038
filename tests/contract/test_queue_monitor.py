"""Contract of the port `QueueMonitor`."""

from mats.domain.capability.capability import Id
from tests.contract.conftest import LocalStores

A, B = Id("com.acme/a"), Id("com.acme/b")


def test_a_waiting_change_is_unfinished_until_it_is_handled(stores: LocalStores):
    assert not stores.queue.has_unfinished(A)
    stores.announce(A)
    assert (stores.queue.has_unfinished(A), stores.queue.has_unfinished(B)) == (True, False)
    assert stores.queue.depth() == (1, 0)
    stores.handle()
    assert (stores.queue.has_unfinished(A), stores.queue.depth()) == (False, (0, 0))


def test_dead_letters_come_oldest_first_with_their_reason_and_stay_unfinished(stores: LocalStores):
    for id in (B, A):
        stores.announce(id)
    assert stores.queue.dead_letters() == []
    stores.give_up("the model did not answer")
    assert stores.queue.dead_letters() == [(B, "the model did not answer"), (A, "the model did not answer")]
    assert (stores.queue.depth(), stores.queue.has_unfinished(A)) == ((0, 2), True)
