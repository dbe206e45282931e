import datetime
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import datasets
from shoal.columns.column_counts import count
from shoal.columns.name_topics import Topic, topics_of, words_of
from shoal.columns.schema import Kind, Role
from shoal.inspection import combinations
from shoal.inspection.combinations import joined, revealing, unique_share

N = 200


def columns(**values):
    return pa.table({name: list(column) for name, column in values.items()})


def proposed(name, values):
    """Return what is proposed for a column."""
    return shoal.inspect(pa.table({name: values})).columns[0].proposal


@given(values=st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1))
def test_counts_are_those_of_plain_python(values):
    facts, codes = count("a", pa.chunked_array([pa.array(values, pa.int64())]))

    assert facts.missing == values.count(None)
    assert facts.distinct == len(set(values) - {None})
    assert facts.alone == sum(values.count(value) == 1 for value in values)
    assert [codes[i] == codes[0] for i in range(len(values))] == [value == values[0] for value in values]


def test_not_a_number_counts_as_missing():
    facts, _ = count("a", pa.chunked_array([pa.array([1.0, float("nan"), None])]))

    assert (facts.missing, facts.distinct) == (2, 1)


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        *[(name, Topic.PERSON) for name in ("E-Mail", "phone_number", "Nachname", "Straße", "apellidos", "prénom")],
        *[(name, Topic.NUMBER) for name in ("id", "patientId", "Name", "UTILITYID", "Kundennummer")],
        *[(name, Topic.KNOWN) for name in ("age", "Geburtsdatum", "Code postal", "sexo", "marital-status", "leeftijd")],
        *[(name, Topic.PRIVATE) for name in ("diagnosis", "Einkommen", "salaire", "enfermedad", "ICD10", "ziekte")],
        *[(name, Topic.WEIGHT) for name in ("fnlwgt", "sample_weight", "Hochrechnungsfaktor")],
        *[(name, Topic.HOUSEHOLD) for name in ("hhid", "household_id")],
    ],
)
def test_names_tell_what_columns_are_about(name, topic):
    assert topic in topics_of(name)


@pytest.mark.parametrize("name", ["x", "paid", "v17", "", "12", "STATETAX", "covid"])
def test_other_names_tell_nothing(name):
    assert topics_of(name) == set()


def test_words_are_found_in_any_spelling():
    assert words_of("Dernière-Année 2") == ["derniere", "annee"]
    assert words_of("GeburtsOrt") == ["geburts", "ort"]


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("text", [f"t{i}" for i in range(N)], Role.IDENTIFIER),
        ("comment", [f"{'word ' * 10}{i * 2 // 3}" for i in range(N)], Role.IDENTIFIER),
        ("row", range(1000, 1000 + N), Role.IDENTIFIER),
        ("id", [i // 3 for i in range(N)], Role.IDENTIFIER),
        ("list", [[i] for i in range(N)], Role.IDENTIFIER),
        ("email", ["a", "b"] * (N // 2), Role.IDENTIFIER),
        ("region_id", [i % 4 for i in range(N)], Role.QUASI),
        ("age", [i % 60 for i in range(N)], Role.QUASI),
        ("v1", [i % 3 for i in range(N)], Role.QUASI),
        ("v2", [i * 0.7 for i in range(N)], Role.QUASI),
        ("income", [i * 37.5 for i in range(N)], Role.QUASI),
        ("since", [datetime.date(2020, 1, 1 + i % 28) for i in range(N)], Role.QUASI),
        ("diagnosis", ["a", "b"] * (N // 2), Role.CONFIDENTIAL),
        ("year", [1996] * N, Role.OTHER),
        ("nothing", [None] * N, Role.OTHER),
    ],
)
def test_a_role_is_proposed_with_a_reason(name, values, role):
    proposal = proposed(name, list(values))

    assert proposal.role is role
    assert proposal.reason


def test_codes_that_look_like_numbers_are_proposed_as_categories():
    assert proposed("zip", [10115 + i % 7 for i in range(N)]).kind is Kind.NOMINAL
    assert proposed("age", [i % 60 for i in range(N)]).kind is None


def test_weights_and_households_are_proposed_as_such():
    table = columns(fnlwgt=np.linspace(1, 9, N), hhid=np.arange(N) // 4, age=np.arange(N) % 50)
    found = shoal.inspect(table)

    assert found.roles() == {"weights": "fnlwgt", "household": "hhid", "quasi_identifiers": ["age"]}


def test_columns_that_reveal_people_together_are_found():
    rng = np.random.default_rng(1)
    a, b, c = (rng.permutation(900) // 12 for _ in range(3))
    found = shoal.inspect(columns(a=a, b=b, c=c, d=np.arange(900) % 2))
    pair = next(combination for combination in found.combinations if combination.columns == ("a", "b"))

    assert [column.facts.unique for column in found.columns] == [0, 0, 0, 0]
    assert pair.unique == unique_share(a * 900 + b)
    assert pair.unique < found.together


def test_a_triple_is_reported_only_if_no_pair_of_it_is():
    rng = np.random.default_rng(2)
    parts = {name: rng.integers(0, 14, 900).astype(np.int32) for name in "abc"}
    found, complete = revealing(parts)

    assert complete
    assert [combination.columns for combination in found] == [("a", "b", "c")]


def test_too_many_combinations_are_left_out_aloud(monkeypatch):
    monkeypatch.setattr(combinations, "WORK", 900)
    rng = np.random.default_rng(2)
    found = shoal.inspect(columns(**{name: rng.integers(0, 50, 900) for name in "abcd"}))

    assert not found.complete
    assert "Not all pairs" in str(found)


@given(parts=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=40))
def test_records_are_joined_if_they_agree_in_every_part(parts):
    columns = [np.array(column) for column in zip(*parts, strict=True)]
    ids = joined(columns)

    assert [one == other for one in ids for other in ids] == [one == other for one in parts for other in parts]
    assert unique_share(ids) == sum(parts.count(part) == 1 for part in parts) / len(parts)


def test_many_wide_columns_are_joined_without_overflow():
    codes = [np.arange(1000) * 10**6 for _ in range(8)]

    assert unique_share(joined(codes)) == 1.0


def test_a_parquet_file_gives_what_the_frame_gives(tmp_path):
    table = columns(age=np.arange(N) % 50, sex=["f", "m"] * (N // 2), text=[f"t{i}" for i in range(N)])
    pq.write_table(table, tmp_path / "people.parquet")
    found = shoal.inspect(tmp_path / "people.parquet")

    assert found.columns == shoal.inspect(table).columns
    assert found.combinations == shoal.inspect(table).combinations


def test_no_value_is_told():
    table = columns(
        name=[f"Zyxwv{i}" for i in range(N)], zip=[77777] * N, diagnosis=[f"qqdisease{i % 3}" for i in range(N)]
    )
    found = shoal.inspect(table)
    told = f"{found}{found!r}{found.to_dict()}{found.job().to_toml()}"

    assert [secret for secret in ("Zyxwv", "77777", "qqdisease") if secret in told] == []


def test_progress_counts_columns():
    calls = []
    shoal.inspect(columns(a=[1, 2], b=[1, 2]), progress=lambda *call: calls.append(call))

    assert calls == [(1, 2), (2, 2)]


def test_a_table_without_records_can_be_inspected():
    found = shoal.inspect(pa.table({"age": pa.array([], pa.int64()), "sex": pa.array([], pa.string())}))

    assert found.n_records == 0
    assert [column.facts.unique for column in found.columns] == [0, 0]
    assert "0 records" in str(found)


def test_names_cannot_move_the_cursor_of_a_terminal():
    assert "\x1b" not in str(shoal.inspect(columns(**{"\x1b[2Jage": [1, 2, 2]})))


def test_the_command_and_the_job_propose_the_same():
    found = shoal.inspect(datasets.path("eia"))
    words = shlex.split(found.command(5))
    job = found.job(5)

    assert words[words.index("--quasi-identifiers") + 1].split(",") == list(job.roles.quasi_identifiers)
    assert words[words.index("--identifiers") + 1].split(",") == ["UTILITYID", "UTILNAME"]
    assert job.roles.identifiers == ("UTILITYID", "UTILNAME")
    assert job.input.path == words[2]


def test_missing_quasi_identifiers_are_proposed_as_a_value_of_their_own():
    found = shoal.inspect(columns(age=[1, None, 2, 2]))

    assert found.job().missing == "own-value"
    assert "--missing own-value" in found.command()


def test_models_are_advised_for_confidential_columns_and_can_be_kept():
    rng = np.random.default_rng(3)
    salary = np.repeat(rng.normal(3000, 500, N // 2).round(), 2)
    table = columns(age=rng.integers(20, 60, N), salary=salary, diagnosis=rng.choice(["flu", "cold", "none"], N))
    found = shoal.inspect(table)

    assert found.models() == ["--t-closeness", "salary=0.2", "--l-diversity", "diagnosis=2"]
    assert "To guarantee more, add: --t-closeness salary=0.2 --l-diversity diagnosis=2" in str(found)
    assert shoal.inspect(columns(age=range(N))).models() == []


def test_every_way_of_reading_a_file_is_kept_in_the_proposed_command(tmp_path):
    path = tmp_path / "people.csv"
    rows = "".join(f"{20 + i};1.{100 + i},5;1.2.{1950 + i}\n" for i in range(60))
    path.write_text(f"age;pay;born\n{rows}", encoding="utf-16")
    reading = {
        **{"delimiter": ";", "encoding": "utf-16", "decimal": ",", "quote": "'", "thousands": ".", "header": True},
        **{
            "null_values": ["NA", "a,b"],
            "max_unpacked_gb": 1.5,
            "names": ["age", "pay", "born"],
            "date_format": "%d.%m.%Y",
        },
        "fields": {"age": {"null_values": ["x"]}},
    }
    words = shlex.split(shoal.inspect(path, **reading).command())

    assert {word for word in words if word.startswith("--")} >= {
        *("--delimiter", "--encoding", "--decimal", "--quote", "--thousands", "--header", "--null-values"),
        *("--max-unpacked-gb", "--names", "--date-format"),
    }
    assert "age=x" in words
    assert "1.5" in words


def test_amounts_with_a_unit_are_no_identifiers():
    table = pa.table({"amount": [f"{number} kg" for number in range(1000, 1100)], "age": [*range(50)] * 2})

    assert shoal.inspect(table).columns[0].proposal.role is Role.QUASI
