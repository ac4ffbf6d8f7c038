"""Contract of the port `SynonymBook`."""

from functools import reduce

from mats.domain.text.variants import with_group
from mats.ports import SynonymBook


def test_groups_are_read_as_they_were_saved_last(synonyms: SynonymBook):
    assert synonyms.load() == ()
    groups = reduce(with_group, [["PR", "pull request"], ["発注", "purchase order"]], ())
    synonyms.save(groups)
    assert synonyms.load() == groups
    synonyms.save(groups[:1])
    assert synonyms.load() == groups[:1]
    synonyms.save(())
    assert synonyms.load() == ()
