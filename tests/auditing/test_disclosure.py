import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditing.disclosure import Classes, disclosed, intersected


def naive(classes, own, published):
    """Return the shares that are homogeneous and guessed, person by person."""
    homogeneous, guessed = [], []
    for person, value in enumerate(own):
        there = [v for c, v in zip(classes.of_published, published, strict=True) if c == classes.nearest[person]]
        homogeneous.append(set(there) == {value})
        most = max(there.count(v) for v in there)
        guessed.append(min(v for v in there if there.count(v) == most) == value)
    return np.mean(homogeneous), np.mean(guessed)


@st.composite
def problems(draw):
    n = draw(st.integers(1, 12))
    labels = np.unique(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), return_inverse=True)[1]
    nearest = draw(st.lists(st.integers(0, int(labels.max())), min_size=n, max_size=n))
    own, published = (np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))) for _ in range(2))
    return Classes(labels, np.array(nearest)), own, published


@given(problems())
def test_shares_are_those_counted_person_by_person(problem):
    found = disclosed(*problem)

    assert (found.homogeneous, found.guessed) == naive(*problem)
    assert found.gain <= found.largest_gain <= 1


@given(problems())
def test_a_release_crossed_with_itself_tells_what_its_homogeneous_classes_tell(problem):
    classes, own, published = problem

    assert intersected(classes, classes, own, (published, published)) == disclosed(*problem).homogeneous


def test_two_releases_tell_what_neither_tells_alone():
    own = np.array([0, 1, 2, 3])
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])

    assert intersected(Classes(rows, rows), Classes(rows, rows), own, (own, own)) == 0
    assert intersected(Classes(rows, rows), Classes(columns, columns), own, (own, own)) == 1
