import csv
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pytest

from shoal import ParameterError, datasets

SETS = [
    (datasets.census, "census", "census", (1080, 13)),
    (datasets.tarragona, "tarragona", "tarragona", (834, 13)),
    (datasets.eia, "eia-11", "eia", (4092, 11)),
    (lambda: datasets.eia(n_columns=10), "eia-10", "eia", (4092, 10)),
]
MEASURES = (
    *("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES"),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
)


def read_table(name: str) -> list[dict[str, str]]:
    with open(datasets.path(name), encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(("load", "name", "file", "shape"), SETS)
def test_a_set_holds_the_numbers_of_its_file_column_by_column(load, name, file, shape):
    data = load()
    table = read_table(file)

    assert data.name == name
    assert data.X.shape == shape
    assert data.X.dtype == np.float64
    assert data.X.tolist() == [[float(row[column]) for column in data.columns] for row in table]


@pytest.mark.parametrize("name", ["census", "tarragona"])
def test_census_and_tarragona_have_every_column_of_their_file(name):
    data = getattr(datasets, name)()

    assert data.columns == tuple(read_table(name)[0])


def test_eia_is_the_utility_number_and_ten_measures_unless_asked_for_the_ten_alone():
    eleven, ten = datasets.eia(), datasets.eia(n_columns=10)

    assert eleven.columns == ("UTILITYID", *MEASURES)
    assert ten.columns == MEASURES
    np.testing.assert_array_equal(eleven.X[:, 1:], ten.X)


def test_census_repeats_no_record_and_tarragona_two():
    census, tarragona = datasets.census().X, datasets.tarragona().X

    assert len(np.unique(census, axis=0)) == 1080
    assert len(np.unique(tarragona, axis=0)) == 834 - 2


@pytest.mark.parametrize("n_columns", [0, 12, 15, "11", None])
def test_eia_in_another_reading_is_refused(n_columns):
    with pytest.raises(ParameterError, match=r"n_columns must be 11 .* or 10"):
        datasets.eia(n_columns=n_columns)


def test_each_call_gives_a_fresh_copy():
    first = datasets.census()
    first.X[:] = 0.0

    assert datasets.census().X.any()


def test_a_set_cannot_be_reassigned_and_prints_its_size_without_its_values():
    data = datasets.tarragona()

    assert repr(data) == "Dataset('tarragona', 834 records x 13 columns)"
    with pytest.raises(FrozenInstanceError):
        data.name = "other"


@pytest.mark.parametrize("name", datasets.NAMES)
def test_the_file_of_each_set_lies_beside_a_notice_that_names_it(name):
    file = datasets.path(name)

    assert isinstance(file, Path)
    assert file.is_file()
    assert f"`{file.name}`" in (file.parent / "NOTICE.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["adult", "eia-11", "../datasets", ""])
def test_an_unknown_name_is_refused_with_the_names_there_are(name):
    with pytest.raises(ParameterError, match="Data sets: census, tarragona, eia"):
        datasets.path(name)
