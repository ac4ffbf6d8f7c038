"""Look at the endpoints of all capabilities: a handshake or HEAD for each, never a call, and at polite intervals."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from mats.domain.shortlist.fitness import Life, Proof, Sighting, Target, target_of
from mats.ports import Clock, ProfileStore, ProofBook
from mats.usecases.deadline import in_pages

_PAGE = 256
_TRIES = 3  # Looks that fail in one round before it counts as a miss


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeEndpoints:
    """Looks at endpoints, those first that wait the longest, one at a time of a host."""

    profiles: ProfileStore
    book: ProofBook
    look: Callable[[Target], Sighting | None]
    clock: Clock
    pause: Callable[[float], object]
    fresh: timedelta = timedelta(minutes=10)  # Within this, an endpoint is not looked at again
    workers: int = 16  # Hosts at once
    pause_s: float = 1.0  # Between two requests to a host
    most_per_host: int = 20  # Endpoints of a host in a round

    def __call__(self, *, budget_ms: float = 600_000) -> Mapping[str, int]:
        """Make one round, within a time; the number of endpoints by what they showed.

        Raises:
            DependencyFailed: a store did not answer.
        """
        targets = self.targets()
        proofs = {target: proof for target, proof in self.book.load().items() if target in targets}
        ends_ms, stop = self.clock.elapsed_ms() + budget_ms, threading.Event()

        def is_over() -> bool:
            return stop.is_set() or self.clock.elapsed_ms() >= ends_ms

        counts: Counter[str] = Counter(endpoints=len(targets))
        with ThreadPoolExecutor(self.workers, thread_name_prefix="probe") as pool:
            hosts = [pool.submit(self._look_at_host, host, is_over) for host in self._due(targets, proofs)]
            try:
                for done in as_completed(hosts):
                    for target, seen, at in done.result():
                        proof = (proofs.get(target) or Proof(Life.ALIVE, at)).follow(seen, at)
                        proofs[target] = proof
                        counts[proof.life] += 1
            finally:
                stop.set()
        self.book.save(proofs)
        return counts

    def targets(self) -> dict[Target, list[str]]:
        """The endpoints, with the ids of the capabilities at each."""
        found = defaultdict[Target, list[str]](list)
        for page in in_pages(self.profiles.ids(), _PAGE):
            for stored in self.profiles.get(page).values():
                if stored.profile.findable and (target := target_of(stored.profile)):
                    found[target].append(stored.profile.id)
        return found

    def _due(self, targets: Iterable[Target], proofs: Mapping[Target, Proof]) -> Sequence[Sequence[Target]]:
        """The endpoints to look at, by host."""
        latest = datetime.fromisoformat(self.clock.now()) - self.fresh
        hosts = defaultdict[str, list[Target]](list)
        for at, target in sorted((proofs[each].at if each in proofs else "", each) for each in targets):
            if not at or datetime.fromisoformat(at) <= latest:
                hosts[urlsplit(target.url).netloc].append(target)
        return [waiting[: self.most_per_host] for waiting in hosts.values()]

    def _look_at_host(
        self, targets: Sequence[Target], is_over: Callable[[], bool]
    ) -> list[tuple[Target, Sighting, str]]:
        found = list[tuple[Target, Sighting, str]]()
        for target in targets:
            for _ in range(_TRIES):
                if is_over():
                    return found
                seen = self.look(target)
                self.pause(self.pause_s)
                if seen is None or seen.life is not Life.MISSED:
                    break
            if seen is not None:
                found.append((target, seen, self.clock.now()))
        return found
