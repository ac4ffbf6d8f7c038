"""The words of the index in memory, which are read when the first request has an unknown word."""

from collections import defaultdict
from dataclasses import dataclass, field

from mats.adapters.sqlite.database import Readable
from mats.domain.text.spelling import near

_NEW = "SELECT number, stem, word FROM vocabulary WHERE number > ?"


@dataclass(slots=True)
class Vocabulary:
    """Stems by their first letter, and a word of each. Not safe to share between threads without a lock."""

    words: dict[str, str] = field(default_factory=dict)
    _last: int = 0
    _stems: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def catch_up(self, source: Readable) -> None:
        """Add what has been written since."""
        for number, its_stem, word in source.rows(_NEW, (self._last,)):
            self._stems[its_stem[0]].append(its_stem)
            self.words[its_stem] = word
            self._last = max(self._last, number)

    def near(self, word: str) -> list[str]:
        """The stems that are near a word."""
        return list(near(word, self._stems.get(word[0], ())))
