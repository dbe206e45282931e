import json
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import FileError, Job, ParameterError
from shoal.columns.schema import Roles
from shoal.job import Input, Output

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", ".", "a.b", '"', "'", "\\", "\x00", "\x7f", "\n\r\t", "[x]", "#", "=", "größe", "😀", "\u2028", "\x85", "k"]
)
ENTRIES = TEXTS | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)


@st.composite
def jobs(draw):
    names = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))
    settings = st.fixed_dictionaries(
        {},
        optional={
            "kind": st.sampled_from(["numeric", "nominal", "ordinal", "date"]),
            "categories": st.lists(ENTRIES, max_size=3),
            "missing_codes": st.lists(ENTRIES, max_size=3),
            "weight": st.floats(1e-3, 1e3),
            "round": st.integers(-12, 12),
            "top": st.floats(allow_nan=False, allow_infinity=False),
            "keep_zeros": st.booleans(),
        },
    )
    return Job.of(
        k=draw(st.integers(2, 99)),
        seed=draw(st.none() | st.integers(0, 2**63 - 1)),
        method=draw(TEXTS),
        roles={"quasi_identifiers": names, "household_level": draw(st.none() | st.just(names))},
        columns=draw(st.dictionaries(st.sampled_from(names), settings)),
        options=draw(st.dictionaries(TEXTS, ENTRIES | st.booleans() | st.lists(ENTRIES, max_size=2), max_size=3)),
        input=draw(st.none() | st.builds(dict, path=TEXTS, sheet=TEXTS, null_values=st.lists(TEXTS, max_size=2))),
        output=draw(st.none() | st.builds(dict, path=TEXTS, json=TEXTS)),
    )


@given(jobs())
def test_a_job_is_the_same_after_a_trip_through_toml(job):
    assert Job.from_toml(job.to_toml()) == job


@given(jobs())
def test_a_job_file_is_utf_8_and_the_same_after_a_trip_through_it(tmp_path_factory, job):
    path = tmp_path_factory.mktemp("jobs") / "job.toml"
    path.write_bytes(job.to_toml().encode())

    assert Job.load(path) == job


def test_a_public_job_does_not_tell_the_seed():
    job = Job.of(k=3, roles={"quasi_identifiers": ["x"]}, seed=4711)

    assert "4711" not in job.to_toml(with_seed=False)
    assert "seed" not in job.to_dict(with_seed=False)
    assert "4711" in job.to_toml()


def test_only_what_was_said_is_written():
    job = Job.of(k=3, roles={"quasi_identifiers": ["x"]}, columns={"x": {}}, options={"seconds": None})

    assert tomllib.loads(job.to_toml()) == {
        "k": 3,
        "roles": {"quasi_identifiers": ["x"]},
        "columns": {"x": {}},
        "options": {},
    }


def test_options_of_numpy_become_plain_ones_and_what_no_file_can_hold_is_refused():
    roles = {"quasi_identifiers": ["x"]}
    job = Job.of(k=3, roles=roles, options={"a": np.float64(0.5), "b": np.int64(2), "c": [np.True_]})

    assert json.loads(json.dumps(job.to_dict()))["options"] == {"a": 0.5, "b": 2, "c": [True]}
    with pytest.raises(ParameterError, match=r"options\.a cannot be used"):
        Job.of(k=3, roles=roles, options={"a": object()})


def test_a_job_does_not_change():
    job = Job(k=3, roles=Roles(quasi_identifiers=("x",)))

    with pytest.raises(ValueError, match="frozen"):
        job.k = 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k = 3\nroles = {}\nmehtod = 'mdav'", "no key 'mehtod'. Did you mean 'method'"),
        ("k = 3\nroles = {quasi = ['x']}", "no key 'roles.quasi'. Did you mean 'quasi_identifiers'"),
        ("k = 3\nroles = {}\ncolumns.x.toop = 3", "no key 'columns.x.toop'. Did you mean 'top'"),
        ("k = 3\nroles = {}\ncolumns.order.toop = 3", "no key 'columns.order.toop'. Did you mean 'top'"),
        ("k = 3\nroles = {}\ninput = {path = 'a', separator = ','}", "no key 'input.separator'"),
        ("k = 3\nroles = {}\noutput = {path = 'a', json_file = 'b'}", "no key 'output.json_file'. Did you mean 'json'"),
        ("k = 3", "'roles' is missing"),
        ("roles = {}", "'k' is missing"),
        ("k = 3\nroles = {}\ninput = {}", "'input.path' is missing"),
        ("k = '3'\nroles = {}", "k cannot be used: it should be a whole number"),
        ("k = true\nroles = {}", "k cannot be used"),
        ("k = 3.0\nroles = {}", "k cannot be used"),
        ("k = 3\nseed = -1\nroles = {}", "seed cannot be used"),
        ("k = 3\nseed = 9223372036854775808\nroles = {}", "seed cannot be used"),
        ("k = 3\nroles = {by = 'x'}", "roles.by cannot be used"),
        ("k = 3\nroles = {by = [1]}", "roles.by.0 cannot be used"),
        ("k = 3\nroles = {}\ncolumns.x.weight = nan", "columns.x.weight cannot be used"),
        ("k = 3\nroles = {}\ncolumns = []", "columns cannot be used"),
        ("k = 3\nroles = {}\noutput = {path = 'a', order = 'random'}", "output.order cannot be used"),
        ("k = ", "not valid TOML"),
        ("k = 3\nk = 4", "not valid TOML"),
        ("k = " + "[" * 100_000, "nested too deeply"),
        ("k = " + "9" * 5_000, "too many digits"),
    ],
)
def test_what_is_wrong_with_a_job_is_said_with_its_place(text, message):
    with pytest.raises(ParameterError, match=message.replace(".", r"\.")):
        Job.from_toml(text)


def test_a_job_file_that_cannot_be_read_is_said_to_be(tmp_path):
    broken = tmp_path / "job.toml"
    broken.write_bytes(b"k = 3 # \xff")

    with pytest.raises(FileError, match="not UTF-8"):
        Job.load(broken)
    with pytest.raises(FileError, match="cannot be read"):
        Job.load(tmp_path / "nowhere.toml")


def test_reading_is_what_was_said_about_the_file():
    given = Input(path="people.csv", delimiter=";", null_values=("NA",))

    assert given.reading() == {"delimiter": ";", "null_values": ("NA",)}


def test_the_json_file_goes_by_its_short_name():
    assert Output.model_validate({"path": "a.csv", "json": "a.json"}).json_file == "a.json"


def test_a_table_is_not_a_list_of_null_values():
    with pytest.raises(ParameterError, match="should be a list of strings"):
        Job.of(k=2, roles={"quasi_identifiers": ["age"]}, input={"path": "people.csv", "null_values": {"age": ["NA"]}})
