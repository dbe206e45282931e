import pyarrow as pa
import pytest

from shoal import ParameterError, SchemaError
from shoal.columns.schema import ColumnSettings, Kind, Role, Roles, Schema, as_names, as_settings, natural_kind

TYPES = pa.schema(
    {
        "id": pa.string(),
        "age": pa.int64(),
        "zip": pa.string(),
        "born": pa.date32(),
        "level": pa.dictionary(pa.int8(), pa.string(), ordered=True),
        "disease": pa.dictionary(pa.int8(), pa.string()),
        "tags": pa.list_(pa.string()),
    }
)
ROLES = {"identifiers": ["id"], "quasi_identifiers": ["age", "zip", "born", "level"], "confidential": ["disease"]}


def schema(columns=None, **roles):
    return Schema.of(TYPES, Roles.model_validate(ROLES | {"other": ["tags"]} | roles), as_settings(columns))


def test_columns_have_the_roles_that_were_given_and_the_kinds_of_their_types():
    found = {column.name: (column.role, column.kind) for column in schema().columns}

    assert found == {
        "id": (Role.IDENTIFIER, Kind.NOMINAL),
        "age": (Role.QUASI, Kind.NUMERIC),
        "zip": (Role.QUASI, Kind.NOMINAL),
        "born": (Role.QUASI, Kind.DATE),
        "level": (Role.QUASI, Kind.ORDINAL),
        "disease": (Role.CONFIDENTIAL, Kind.NOMINAL),
        "tags": (Role.OTHER, Kind.NOMINAL),
    }


def test_a_column_of_strata_is_among_what_an_intruder_may_know_but_is_not_replaced():
    found = schema(quasi_identifiers=["age", "born", "level"], by=["zip"])

    assert found.quasi_names == ["age", "zip", "born", "level"]
    assert [column.name for column in found.quasi] == ["age", "born", "level"]


def test_a_helper_is_dropped_unless_it_has_a_role():
    assert schema(identifiers=[], subject="id")["id"].role is Role.IDENTIFIER
    assert schema(identifiers=[], other=["tags", "id"], subject="id")["id"].role is Role.OTHER


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"other": []}, r"1 of 7 columns have no role: 'tags'\. .*identifiers \(dropped\).*shoal inspect"),
        ({"quasi_identifiers": [], "other": ["age", "zip", "born", "level", "tags"]}, "No quasi-identifier is named"),
        ({"confidential": ["diseese"]}, "'diseese', named in confidential columns, is not .* Did you mean 'disease'"),
        ({"other": ["tags", "age"]}, "'age' is named twice: as quasi-identifier and as other"),
        ({"quasi_identifiers": ["age", "age", "zip", "born", "level"]}, "'age' is named twice"),
        ({"quasi_identifiers": [*ROLES["quasi_identifiers"], "tags"], "other": []}, "'tags' holds list"),
        ({"confidential": ["disease", "tags"], "other": []}, "'tags' holds list"),
        ({"subject": "ID"}, "'ID', named in subject, household, weights or key"),
        ({"household": "id", "household_level": ["disease"]}, "'disease' is given as household-level, but it is not"),
        ({"household_level": ["age"]}, "no column that says which records form a household"),
    ],
)
def test_roles_that_do_not_fit_the_table_are_refused(roles, message):
    with pytest.raises(SchemaError, match=message):
        schema(**roles)


def test_a_column_of_strata_cannot_be_household_level():
    with pytest.raises(SchemaError, match="'zip' is given as household-level"):
        schema(quasi_identifiers=["age", "born", "level"], by=["zip"], household="id", household_level=["zip"])


def test_two_columns_of_one_name_are_refused():
    types = pa.schema([("a", pa.int64()), ("a", pa.int64())])

    with pytest.raises(SchemaError, match="same name: 'a'"):
        Schema.of(types, Roles(quasi_identifiers=("a",)))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"zip": {"kind": "numeric"}}, "'zip' is declared numeric, but it holds text"),
        ({"disease": {"kind": "numeric"}}, "'disease' is declared numeric, but it holds text"),
        ({"age": {"kind": "date"}}, "'age' is declared date, but it holds int64"),
        ({"zip": {"kind": "ordinal"}}, "order of its categories is not known"),
        (
            {"age": {"kind": "nominal", "categories": [1, 2]}},
            "Ordered categories are given for column 'age', which is nominal",
        ),
        ({"zip": {"round": 2}}, "round is set for column 'zip', which is nominal"),
        ({"born": {"top": 3}}, "top is set for column 'born', which is date"),
        ({"zip": {"aggregate": "mean"}}, "nominal and has no mean"),
        ({"level": {"aggregate": "mean"}}, "ordinal and has no mean"),
        ({"zip": {"aggregate": "median"}}, "nominal and has no median"),
        ({"age": {"aggregate": "withhold", "round": 0}}, "numeric and has no values to withhold"),
        ({"born": {"aggregate": "withhold"}}, "date and has no values to withhold"),
        ({"level": {"aggregate": "withhold"}}, "ordinal and has no values to withhold"),
        ({"age": {"top": 3, "bottom": 3}}, "bottom code of column 'age' is not below"),
        ({"disease": {"weight": 2}}, "weight is set for column 'disease', whose role is confidential"),
        ({"id": {"missing_codes": ["x"]}}, "missing_codes is set for column 'id', whose role is identifier"),
        ({"nobody": {"weight": 2}}, "'nobody', named in columns, is not in the table"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(columns, message):
    with pytest.raises(SchemaError, match=message):
        schema(columns)


@pytest.mark.parametrize(
    "settings",
    [
        {"round": True},
        {"round": "0"},
        {"round": 13},
        {"round": 1.0},
        {"weight": True},
        {"weight": 0},
        {"weight": -1.0},
        {"weight": float("inf")},
        {"weight": float("nan")},
        {"weight": 1e200},
        {"top": "90"},
        {"top": float("nan")},
        {"keep_zeros": 1},
        {"keep_zeros": "yes"},
        {"missing_codes": -9},
        {"missing_codes": "NA"},
        {"missing_codes": [True]},
        {"categories": [None]},
        {"kind": "number"},
        {"aggregate": "max"},
        {"toop": 3},
    ],
)
def test_settings_are_not_bent_into_shape(settings):
    with pytest.raises(ParameterError, match=r"columns\.age"):
        as_settings({"age": settings})


def test_an_unknown_setting_is_answered_with_the_nearest_known_one():
    with pytest.raises(ParameterError, match=r"'columns\.age\.toop'\. Did you mean 'top'"):
        as_settings({"age": {"toop": 3}})


def test_codes_keep_their_type_so_that_a_text_stays_a_text():
    settings = ColumnSettings(missing_codes=("9", 9, 9.5))

    assert [type(code) for code in settings.missing_codes] == [str, int, float]


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        (pa.uint64(), Kind.NUMERIC),
        (pa.float16(), Kind.NUMERIC),
        (pa.decimal256(40, 2), Kind.NUMERIC),
        (pa.bool_(), Kind.NOMINAL),
        (pa.null(), Kind.NOMINAL),
        (pa.large_string(), Kind.NOMINAL),
        (pa.string_view(), Kind.NOMINAL),
        (pa.time32("s"), Kind.DATE),
        (pa.timestamp("ns", "UTC"), Kind.DATE),
        (pa.duration("us"), Kind.DATE),
        (pa.dictionary(pa.int32(), pa.int64()), Kind.NOMINAL),
        (pa.month_day_nano_interval(), None),
        (pa.struct([("a", pa.int8())]), None),
        (pa.binary(), None),
    ],
)
def test_a_type_says_what_kind_its_values_are(type_, kind):
    assert natural_kind(type_) is kind


@pytest.mark.parametrize("name", ["", " ", "a'b", 'a"b', "größe", "😀", "<b>", "a.b", "0"])
def test_any_name_is_a_name(name):
    found = Schema.of(pa.schema({name: pa.int64()}), Roles(quasi_identifiers=(name,)), {name: ColumnSettings(round=0)})

    assert found[name].settings.round == 0


def test_one_name_is_a_list_of_one():
    assert as_names("age") == ["age"]
    assert as_names(("age", "zip")) == ["age", "zip"]
    with pytest.raises(ParameterError, match="not by int"):
        as_names(3)
