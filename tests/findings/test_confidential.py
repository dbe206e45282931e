"""Confidential columns are published as they are: a misreading is a warning, or a question if a model counts on it."""

import warnings

import numpy as np
import pytest

import shoal
from shoal.findings import QuestionError

N = 300
RNG = np.random.default_rng(4)
AGES = RNG.integers(18, 90, N)


def people(folder, texts):
    lines = ["age;pay", *(f"{age};{text}" for age, text in zip(AGES, texts, strict=True))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    return folder / "people.csv"


def told(path, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with shoal.anonymize(path, k=5, seed=1, quasi_identifiers=["age"], confidential=["pay"], **settings) as release:
            assert release.verdict.holds
            found = " ".join(release.warnings)
    return found + " ".join(str(each.message) for each in caught)


PAY = list(map(str, RNG.integers(30, 90, N)))
MISREAD = {
    "a stray text": [*PAY[1:], "n = 300"],
    "a unit": [f"{pay} EUR" for pay in PAY],
    "a code": [*PAY[40:], *["-9"] * 40],
}


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("sort", MISREAD)
def test_a_misread_confidential_column_is_a_warning_and_a_question_of_its_model(sort, engine, tmp_path):
    path = people(tmp_path, MISREAD[sort])
    models = [shoal.LDiversity("pay", l=2)]

    assert "Column 'pay'" in told(path, engine=engine)
    with pytest.raises(QuestionError) as caught:
        told(path, engine=engine, models=models)
    (finding,) = caught.value.findings
    assert finding.column == "pay"
    assert "n = 300" not in str(caught.value)
    assert "It is published as it was read" not in str(caught.value)
    assert told(path, engine=engine, models=models, accept=[f"pay={finding.name}"])


def test_answers_spelled_in_two_ways_are_a_warning_beside_a_model(tmp_path):
    path = people(tmp_path, RNG.choice(["yes", "no", "Yes"], N))

    assert "differ from another only in case" in told(path, models=[shoal.LDiversity("pay", l=2)])


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_clean_confidential_column_is_no_warning(engine, tmp_path):
    for texts in (PAY, RNG.choice(["flu", "cold", "gout"], N)):
        assert "Column 'pay'" not in told(people(tmp_path, texts), engine=engine)
