"""Office files drawn from a grammar: nothing is asked about clean ones, and no trap is silent."""

import pytest

import shoal
from office_grammar import ROWS, TRAPS, n_questions, office_file, silent
from shoal import datasets

FIRST_CLEAN = 1000


def test_no_trap_of_sixty_files_is_silent(tmp_path):
    held = [office_file(tmp_path, seed, 3)[1] for seed in range(60)]

    assert {name for traps in held for name in traps.values()} == {*TRAPS, *ROWS}
    assert silent(tmp_path, range(60), 3) == []


def test_fifty_clean_files_raise_no_alarm(tmp_path):
    for seed in range(FIRST_CLEAN, FIRST_CLEAN + 50):
        path, held = office_file(tmp_path, seed)

        assert held == {}
        # Two people who are alike by chance are noted, not asked about.
        assert {finding.name for finding in shoal.inspect(path).findings} <= {"double-records"}, path.name


@pytest.mark.parametrize("name", ["census", "tarragona", "eia"])
def test_typed_data_that_are_clean_ask_at_most_two_questions(name):
    assert n_questions(shoal.inspect(datasets.path(name))) <= 2
