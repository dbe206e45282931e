"""The front door: what is let in, and what is said to what is not."""

import numpy as np
import pytest

import shoal
from shoal import GuaranteeError, ParameterError, ShoalError, partition

LARGEST = np.finfo(np.longdouble).max if np.finfo(np.longdouble).max > np.finfo(float).max else np.inf
"""On Windows and on macOS, a long double is no longer than a double."""

X = np.random.default_rng(0).normal(size=(50, 3))


@pytest.mark.parametrize(
    "other",
    [
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        X.tolist(),
        X.astype(np.longdouble),
        X.astype(X.dtype.newbyteorder()),
    ],
    ids=["fortran order", "strided", "lists", "long double", "other byte order"],
)
def test_any_layout_of_the_same_numbers_gives_the_same_labels(other):
    np.testing.assert_array_equal(partition(other, 5, seed=0), partition(X, 5, seed=0))


def test_a_read_only_matrix_works():
    frozen = X.copy()
    frozen.setflags(write=False)

    np.testing.assert_array_equal(partition(frozen, 5, seed=0), partition(X, 5, seed=0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, bool])
def test_other_real_numbers_are_converted_exactly(dtype):
    values = (10 * X).astype(dtype)

    np.testing.assert_array_equal(partition(values, 5, seed=0), partition(values.astype(float), 5, seed=0))


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.where(np.arange(50)[:, None] == 7, np.nan, X), "150|3 entries.*column.*0, 1, 2.*index 7"),
        (np.where(np.arange(3) == 1, np.inf, X), "50 entries.*column.*1.*index 0"),
        (np.zeros((0, 3)), "only 0 records"),
        (np.zeros((5, 0)), "no columns"),
        (np.zeros(5), "two dimensions.*has 1"),
        (np.zeros((5, 2, 2)), "two dimensions.*has 3"),
        (np.array([["a", "b"]] * 5), "real numbers"),
        (np.array([[object()] * 2] * 5), "real numbers"),
        (X.astype(complex), "real numbers"),
        (np.array([["2020-01-01"]] * 5, dtype="datetime64[D]"), "real numbers"),
        ([[1.0, 2.0], [3.0]], "different lengths|real numbers"),
        (None, "real numbers|two dimensions"),
        (np.full((5, 2), LARGEST), "finite"),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_a_matrix_that_cannot_be_used_is_refused_with_a_reason(matrix, said):
    with pytest.raises(ShoalError, match=said):
        partition(matrix, 2)


@pytest.mark.parametrize("k", [1, 0, -3])
def test_a_k_below_two_is_refused(k):
    with pytest.raises(ParameterError, match=f"k={k} "):
        partition(X, k)


@pytest.mark.parametrize("k", [2.5, "5", None, [5]])
def test_a_k_that_is_no_whole_number_is_refused(k):
    with pytest.raises(ParameterError, match="whole number"):
        partition(X, k)


def test_a_numpy_integer_is_a_whole_number():
    np.testing.assert_array_equal(partition(X, np.int32(5), seed=0), partition(X, 5, seed=0))


def test_more_than_n_records_to_a_cell_cannot_be_guaranteed():
    with pytest.raises(GuaranteeError, match=r"k=51 .* only 50 records.*Lower k"):
        partition(X, 51)


def test_an_unknown_method_lists_those_there_are():
    with pytest.raises(ParameterError, match=r"'madv'.*mdav"):
        partition(X, 5, "madv")


def test_an_unknown_option_is_an_error():
    with pytest.raises(ParameterError, match="no option 'gamma'"):
        partition(X, 5, "mdav", gamma=1)


@pytest.mark.parametrize("seed", ["7", 1.5])
def test_a_seed_must_be_a_whole_number(seed):
    with pytest.raises(ParameterError, match="seed"):
        partition(X, 5, seed=seed)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_must_be_a_positive_whole_number(threads):
    with pytest.raises(ParameterError, match="threads"):
        partition(X, 5, threads=threads)


def test_progress_must_be_callable():
    with pytest.raises(ParameterError, match="progress"):
        partition(X, 5, progress=5)


def test_messages_show_no_value_of_the_table():
    secret = np.full((5, 2), 123456.75)
    secret[3, 1] = np.nan
    with pytest.raises(ShoalError) as caught:
        partition(secret, 2)

    assert "123456" not in str(caught.value)


def test_the_package_says_its_version():
    assert shoal.__version__


@pytest.mark.parametrize(
    ("method", "option"),
    [("vmdav", "gamma"), ("blocks", "size"), ("topdown", "c"), ("auto", "seconds")],
)
def test_an_option_that_should_be_a_number_is_refused_by_its_name(method, option):
    others = {"effort": "best"} if method == "auto" else {}
    with pytest.raises(ParameterError, match=rf"\b{option}\b.* number .*; got 'nan'\."):
        partition(np.eye(9), 3, method, **{option: "nan"}, **others)
