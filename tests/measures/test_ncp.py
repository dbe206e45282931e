import numpy as np
import pyarrow as pa
import pytest

import shoal

N = 200
RNG = np.random.default_rng(3)
PEOPLE = pa.table(
    {"age": RNG.integers(18, 90, N), "sex": RNG.choice(["f", "m"], N), "job": RNG.choice(list("abcdef"), N)}
)
QUASI = ["age", "sex", "job"]


pytestmark = pytest.mark.filterwarnings("ignore::shoal.errors.ShoalWarning")


def release_of(**settings):
    return shoal.anonymize(PEOPLE, **{"k": 5, "seed": 1, "quasi_identifiers": QUASI, **settings})


def test_the_penalty_is_the_mean_of_the_columns_recounted_from_the_classes():
    release = release_of(objective="ncp", columns={"age": {"weight": 3}})
    age, labels = np.asarray(PEOPLE["age"]), release.labels
    wide = np.array([np.ptp(age[labels == cell]) for cell in labels]) / np.ptp(age)

    assert release.certainty.columns["age"] == pytest.approx(wide.mean())
    assert release.certainty.ncp == pytest.approx(np.mean(list(release.certainty.columns.values())))


def test_a_release_has_the_penalty_if_its_cells_are_made_for_it_or_its_values_are_true():
    assert release_of().certainty is None
    assert release_of(objective="ncp").certainty is not None
    assert release_of(truthful=True).certainty is not None


def test_reports_and_comparisons_show_the_penalty():
    release = release_of(truthful=True, objective="ncp")
    found = shoal.compare(PEOPLE, k=[5], methods=["auto"], quasi_identifiers=QUASI, objective="ncp", seed=1)
    plain = shoal.compare(PEOPLE, k=[5], methods=["auto"], quasi_identifiers=QUASI, seed=1)

    assert release.measures["certainty"]["ncp"] == release.certainty.ncp
    assert "certainty" not in release_of().measures
    assert found.choices[0].ncp == release_of(objective="ncp").certainty.ncp
    assert f"{100 * found.choices[0].ncp:.4f}" in str(found)
    assert "NCP" not in str(plain)


def test_all_methods_that_have_no_objective_are_left_out_of_a_comparison_by_name():
    found = shoal.compare(PEOPLE, k=[5], quasi_identifiers=QUASI, objective="ncp", seed=1)

    assert [choice.method for choice in found.choices] == ["auto"]
    assert "mdav" in [skipped.method for skipped in found.skipped]
