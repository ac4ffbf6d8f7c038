"""The mutants are of the code as it is."""

import pytest

from tests.mutants import MUTANTS, ROOT, Mutant, path_of


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.before[:40]}")
def test_each_has_one_place(mutant: Mutant):
    assert path_of(mutant, ROOT).read_text("utf-8").count(mutant.before) == 1
