from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from shoal import GuaranteeError, LDiversity, ParameterError, SchemaError, TCloseness
from shoal.columns.schema import Roles, Schema, as_settings
from shoal.models import ModelOnColumn
from shoal.models.table_columns import check_models, codes_of, refuse_impossible, violating


def coded(values, merged=False, **settings):
    table = pa.table({"x": range(len(values)), "c": values})
    roles = Roles(quasi_identifiers=("x",), confidential=("c",))
    schema = Schema.of(table.schema, roles, as_settings({"c": settings} if settings else {}))
    return codes_of(table["c"], schema["c"], merged=merged)


@pytest.mark.parametrize(
    ("values", "settings", "codes", "ordered"),
    [
        ([30, 10, None, 30], {}, [1, 0, 2, 1], True),
        ([0.5, float("nan"), -0.0, 0.0, None], {}, [1, 2, 0, 0, 2], True),
        ([Decimal("1.5"), Decimal("0.5")], {}, [1, 0], True),
        ([date(2020, 1, 2), date(2019, 1, 2), None], {}, [1, 0, 2], True),
        (["flu", None, "cold", "flu"], {}, [1, 2, 0, 1], False),
        ([True, False, None], {}, [1, 0, 2], False),
        ([3, 1, 3], {"kind": "nominal"}, [1, 0, 1], False),
        (["mild", "severe", "mild", None], {"categories": ["mild", "medium", "severe"]}, [0, 1, 0, 2], True),
        (["mild", "severe"], {"categories": ["severe", "mild"]}, [1, 0], True),
        ([None, None], {}, [0, 0], False),
    ],
)
def test_values_are_numbered_in_the_order_of_their_kind_and_missing_comes_last(values, settings, codes, ordered):
    found = coded(pa.array(values), **settings)

    assert found.codes.tolist() == codes
    assert (found.n_values, found.ordered) == (max(codes) + 1, ordered)


def test_the_order_of_categories_is_that_of_their_type():
    values = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, None]), ["low", "mid", "high"], ordered=True)

    assert coded(values).codes.tolist() == [1, 0, 1, 2]


def test_values_outside_the_order_are_refused_without_showing_them():
    with pytest.raises(SchemaError, match="some of its values are not among the 2 categories") as caught:
        coded(pa.array(["low", "secret"]), categories=["low", "high"])

    assert "secret" not in str(caught.value)


@pytest.fixture
def schema():
    types = pa.schema({"age": pa.int64(), "salary": pa.float64(), "wave": pa.int64()})
    return Schema.of(types, Roles(quasi_identifiers=("age",), confidential=("salary",), other=("wave",)))


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([TCloseness("wave", t=0.1)], SchemaError, "'wave', whose role is other, .* Name it there"),
        ([TCloseness("age", t=0.1)], SchemaError, "whose role is quasi-identifier"),
        ([TCloseness("salry", t=0.1)], SchemaError, "Did you mean 'salary'?"),
        ([TCloseness("salary", t=0.1)] * 2, ParameterError, "is given twice"),
    ],
)
def test_models_that_do_not_fit_the_roles_are_refused(schema, models, error, message):
    with pytest.raises(error, match=message):
        check_models(models, schema)


def test_a_stratum_unlike_the_table_is_refused_in_counts():
    codes, strata = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 1])
    guarded = [
        ModelOnColumn(TCloseness("salary", t=0.3), codes, 2, True),
        ModelOnColumn(LDiversity("salary", l=2), codes, 2, True),
    ]

    assert violating(guarded[:1], strata).tolist() == [True, True]
    with pytest.raises(GuaranteeError, match=r"the 3 records of a stratum.*farther than t=0.3.*merge strata"):
        refuse_impossible(guarded, strata)
    refuse_impossible(guarded, np.zeros(6, dtype=np.int64))


@pytest.mark.parametrize(
    ("values", "settings", "codes"),
    [
        (["", None, "flu", "cold"], {}, [2, 2, 1, 0]),
        (["flu", "flu ", " flu", "  ", ""], {}, [1, 1, 1, 0, 0]),
        (["caf\u00e9", "cafe\u0301", None], {}, [0, 0, 1]),
        (["mild", "", None], {"categories": ["", "mild"]}, [1, 0, 0]),
        ([30, 10, None, 30], {}, [1, 0, 2, 1]),
    ],
)
@pytest.mark.parametrize("type_", [None, "categories", pa.large_string()])
def test_values_that_look_alike_can_be_counted_as_one(values, settings, codes, type_):
    array = pa.array(values)
    if isinstance(values[0], str) and type_ is not None:
        array = array.dictionary_encode() if type_ == "categories" else array.cast(type_)
    found = coded(array, merged=True, **settings)

    def same(numbers):
        return [[one == other for other in numbers] for one in numbers]

    assert same(found.codes.tolist()) == same(codes)
    assert found.n_values == len(set(codes))
