"""The estimator: scikit-learn's own checks, and the same release as the other doors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import shoal
from shoal import ParameterError, ShoalWarning, datasets
from shoal.estimator import Microaggregator


@parametrize_with_checks([Microaggregator(), Microaggregator(k=2, method="mdav", scaling="minmax")])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:More than half:shoal.ShoalWarning")
@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none"])
def test_the_estimator_and_the_call_give_the_same_release(scaling):
    X = datasets.census().X
    names = [f"c{j}" for j in range(X.shape[1])]
    release = shoal.anonymize(pd.DataFrame(X, columns=names), k=7, quasi_identifiers=names, scaling=scaling, seed=1)
    estimator = Microaggregator(k=7, scaling=scaling, seed=1)

    assert np.array_equal(estimator.fit_transform(X), release.table.to_numpy())
    assert np.array_equal(estimator.labels_, release.labels)


def test_transforming_the_fitted_table_again_keeps_every_record_in_its_cell_even_where_rows_repeat():
    X = np.repeat(np.arange(6.0), 4)[:, None]
    estimator = Microaggregator(k=3, method="mdav").fit(X)

    assert np.array_equal(estimator.transform(X), estimator.fit_transform(X))
    assert np.bincount(estimator.predict(X)).min() >= 3


def test_other_records_get_the_values_of_the_nearest_cell():
    estimator = Microaggregator(k=2).fit(np.array([[1.0], [2.0], [8.0], [9.0]]))

    assert estimator.transform(np.array([[0.0], [6.0], [8.0]])).ravel().tolist() == [1.5, 8.5, 8.5]


def test_it_works_in_a_pipeline_and_keeps_frames():
    frame = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    pipeline = make_pipeline(FunctionTransformer(), Microaggregator(k=4)).set_output(transform="pandas")
    released = pipeline.fit_transform(frame)

    assert list(released.columns) == ["a", "b"]
    assert released.groupby(["a", "b"]).size().min() >= 4
    assert released.equals(pipeline.transform(frame))


def test_too_few_records_are_refused():
    with pytest.raises(ValueError, match="minimum of 5 is required"):
        Microaggregator(k=5).fit(np.ones((4, 1)))


@pytest.mark.parametrize("bad", [{"k": 2.5}, {"k": True}, {"k": 1}, {"scaling": "no"}, {"options": {"no": 1}}])
def test_settings_that_cannot_be_used_are_refused(bad):
    with pytest.raises(ValueError, match=r"k must|scaling must|no option"):
        clone(Microaggregator(method="mdav")).set_params(**bad).fit(np.arange(12.0)[:, None])


def test_the_table_of_the_estimator_is_not_changed():
    X = np.arange(12.0)[:, None]
    kept = X.copy()
    Microaggregator(k=2).fit_transform(X)

    assert np.array_equal(X, kept)


def test_rho_gives_every_record_values_of_its_own_and_says_that_k_is_gone():
    X = np.random.default_rng(0).normal(size=(60, 2))
    plain = Microaggregator(k=5, method="mdav").fit(X)
    with pytest.warns(ShoalWarning, match="k is not claimed"):
        tuned = Microaggregator(k=5, method="mdav", rho=0.5, seed=1).fit(X)

    published = tuned.transform(X)
    assert len(np.unique(published, axis=0)) == len(X) > len(np.unique(plain.transform(X), axis=0))
    np.testing.assert_array_equal(tuned.labels_, plain.labels_)
    np.testing.assert_array_equal(tuned.transform(X[:1] + 9), tuned.cell_values_[tuned.predict(X[:1] + 9)])
    for cell in range(tuned.labels_.max() + 1):
        mine = X[tuned.labels_ == cell]
        assert (published[tuned.labels_ == cell] >= mine.min(axis=0)).all()
        assert (published[tuned.labels_ == cell] <= mine.max(axis=0)).all()


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan"), True, "song"])
def test_a_rho_that_cannot_be_is_refused(rho):
    with pytest.raises(ParameterError, match="rho"):
        Microaggregator(k=2, rho=rho).fit(np.zeros((4, 1)))
