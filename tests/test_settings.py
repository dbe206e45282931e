"""Settings: whole numbers beyond what float64 or 64 bits hold are refused by name."""

import pyarrow as pa
import pytest

import shoal

TABLE = pa.table({"age": [20, 21, 40, 44], "disease": ["flu", "cold", "flu", "cold"]})
HUGE = 10**400


@pytest.mark.parametrize("huge", [10**25, HUGE])
@pytest.mark.parametrize(
    "columns",
    [{"missing_codes": [1]}, {"categories": [20, 21, 40, 44], "kind": "ordinal"}],
    ids=["missing_codes", "categories"],
)
def test_entries_beyond_64_bits_are_refused(columns, huge):
    name = next(iter(columns))
    columns = {**columns, name: [*columns[name], huge]}

    with pytest.raises(shoal.ParameterError, match=rf"columns\.age\.{name}.* at most 64 bits"):
        shoal.anonymize(TABLE, k=2, quasi_identifiers="age", confidential="disease", columns={"age": columns})


@pytest.mark.parametrize(
    "settings",
    [
        {"rho": HUGE},
        {"steer": {"disease": HUGE}},
        *({"columns": {"age": {s: HUGE}}} for s in ("top", "weight", "step")),
    ],
)
def test_numbers_beyond_float64_are_refused(settings):
    with pytest.raises(shoal.ParameterError, match="a number that float64 can hold"):
        shoal.anonymize(TABLE, k=2, quasi_identifiers="age", confidential="disease", **settings)


@pytest.mark.parametrize(
    "model", [lambda: shoal.TCloseness("b", t=HUGE), lambda: shoal.DeltaDisclosure("b", delta=HUGE)]
)
def test_bounds_of_models_beyond_float64_are_refused(model):
    with pytest.raises(shoal.ParameterError, match="must be"):
        model()


def test_any_number_of_threads_may_be_allowed():
    release = shoal.anonymize(TABLE, k=2, quasi_identifiers="age", confidential="disease", threads=HUGE)

    assert release.verdict.holds


@pytest.mark.parametrize("settings", [{"delay": 2**63}, {"delay": 10, "max_cell": HUGE}])
def test_whole_numbers_beyond_64_bits_are_refused(settings):
    with pytest.raises(shoal.ParameterError, match=f"{list(settings)[-1]} cannot be used.* 64 bits can hold"):
        shoal.Stream(2, quasi_identifiers=["age"], **settings)
