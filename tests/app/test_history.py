import pytest

from shoal.app.draft import Draft
from shoal.app.history import History
from shoal.errors import FileError
from shoal.system import system


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "jobs")


def test_undo_and_redo_have_no_limit(history):
    for k in range(2, 14):
        history.add(Draft(k=k), f"k is {k}")
    back = [history.undo().k for _ in range(15)]
    forward = [history.redo().k for _ in range(15)]

    assert back == [*range(12, 1, -1), *[2] * 4]
    assert forward == [*range(3, 14), *[13] * 4]


def test_a_change_after_undo_loses_nothing(history):
    history.add(Draft(k=2), "first")
    history.add(Draft(k=3), "second")
    history.undo()
    history.add(Draft(k=4), "third")

    assert [(step.number, step.parent, step.what) for step in history.steps()] == [
        (1, 0, "first"),
        (2, 1, "second"),
        (3, 1, "third"),
    ]
    assert history.go(2).k == 3


def test_a_history_opened_again_stands_where_it_stood(history, tmp_path):
    history.add(Draft(k=2), "first")
    history.add(Draft(k=3), "second")
    history.undo()

    assert History(tmp_path / "jobs").draft.k == 2


def test_only_the_owner_can_read_the_jobs(history, tmp_path):
    history.add(Draft(k=2), "first")

    assert system.is_private(tmp_path / "jobs")
    assert all(map(system.is_private, (tmp_path / "jobs").iterdir()))


def test_a_job_without_its_pointer_is_not_lost(history, tmp_path):
    history.add(Draft(k=2), "first")
    (tmp_path / "jobs" / "at").unlink()

    assert history.draft.k == 2


def test_what_changed_cannot_break_out_of_its_line(history):
    history.add(Draft(k=2), 'x\nk = 99\n[roles]\nother = ["a"]')

    assert history.draft == Draft(k=2)


def test_a_job_that_does_not_exist_is_refused(history):
    with pytest.raises(FileError, match="no job 7"):
        history.draft_at(7)
