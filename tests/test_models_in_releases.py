"""Privacy models through the whole flow: from a table to a file whose recount, by anybody, finds them kept."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import DeltaDisclosure, GuaranteeError, LDiversity, ParameterError, PSensitive, SchemaError, TCloseness
from shoal.output.report import render
from shoal.sources import write

pytestmark = pytest.mark.filterwarnings("ignore:More than half:shoal.ShoalWarning")

MODELS = [TCloseness("salary", t=0.2), LDiversity("diagnosis", l=2)]
CONFIDENTIAL = ["salary", "diagnosis"]


@pytest.fixture(scope="module")
def people():
    """People whose salary goes with their age, and whose diagnosis is mostly the same."""
    rng = np.random.default_rng(4)
    household = np.repeat(np.arange(100), 3)
    n = len(household)
    age = rng.normal(45, 12, n).round()
    salary = (900 * age + rng.normal(0, 6000, n)).round(-2)
    return pa.table(
        {
            "age": age,
            "height": rng.normal(170, 9, n).round(),
            "rent": rng.normal(900, 200, 100).round()[household],
            "home": household,
            "who": rng.integers(0, 120, n),
            "region": pa.array(rng.choice(["north", "south"], 100)[household]),
            "salary": pa.array(salary, mask=rng.random(n) < 0.05),
            "diagnosis": pa.array(rng.choice(["none", "flu", "cold", None], n, p=[0.7, 0.1, 0.1, 0.1]).tolist()),
        }
    )


SHAPES = {
    "plain": {"other": ["region"], "identifiers": ["home", "who"]},
    "strata": {"by": ["region"], "identifiers": ["home", "who"]},
    "subject": {"other": ["region"], "identifiers": ["home"], "subject": "who"},
    "strata and subject": {"by": ["region"], "identifiers": ["home"], "subject": "who"},
    "household": {"other": ["region"], "identifiers": ["who"], "household": "home"},
    "all of it": {"by": ["region"], "subject": "who", "household": "home"},
    "one column of a household": {"other": ["region", "age", "height"], "identifiers": ["who"], "household": "home"},
    "zeros": {
        "other": ["region"],
        "identifiers": ["home", "who"],
        "columns": {"height": {"keep_zeros": True}, "age": {"round": -1}},
    },
}


def roles(shape):
    quasi = ["age", "height", "rent"] if "one column" not in shape else ["rent"]
    return {"k": 4, "seed": 2, "quasi_identifiers": quasi, "confidential": CONFIDENTIAL, **SHAPES[shape]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("shape", SHAPES)
def test_an_audit_of_the_written_file_finds_k_and_every_model(people, shape, ending, tmp_path):
    table = people
    if shape == "zeros":
        heights = pc.if_else(pa.array(np.arange(300) % 3 == 0), 0.0, people["height"])
        table = people.set_column(1, "height", heights)
    release = shoal.anonymize(table, models=MODELS, **roles(shape))
    release.write(tmp_path / f"release.{ending}")
    quasi = list(release.verdict.quasi_identifiers)
    found = shoal.audit(
        tmp_path / f"release.{ending}", quasi_identifiers=quasi, confidential=CONFIDENTIAL, models=MODELS, k=4
    )

    assert found.holds
    # The file does not say who is who; the verdict has the worse of records and persons.
    closeness, diversity = (
        (each.value, own.value) for each, own in zip(found.models, release.verdict.models, strict=True)
    )
    assert closeness[0] <= closeness[1]
    assert closeness[0] == closeness[1] or "subject" in SHAPES[shape]
    assert diversity[0] == diversity[1]
    assert release.verdict.holds
    assert release.verdict.subjects is None or release.verdict.subjects >= 4
    assert release.verdict.n_classes > 2


@st.composite
def askings(draw):
    """Return a small table, what to promise about it, and what is around."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(12, 80))
    x = rng.normal(size=n).round(1)
    confidential = {
        "number": pa.array(x + draw(st.sampled_from([0.0, 0.5])) * rng.normal(size=n), mask=rng.random(n) < 0.2),
        "text": pa.array(rng.choice(["a", "b", "c", None], n).tolist(), pa.string()),
        "rank": pa.DictionaryArray.from_arrays(rng.integers(0, 3, n), ["z", "y", "x"], ordered=True),
    }
    asked = draw(
        st.lists(
            st.sampled_from(
                [
                    TCloseness("number", t=0.25),
                    TCloseness("rank", t=0.3),
                    TCloseness("text", t=0.4),
                    LDiversity("text", l=2),
                    LDiversity("rank", l=2, kind="entropy"),
                    LDiversity("text", l=2, kind="recursive", c=2.5),
                    PSensitive("number", p=3),
                    DeltaDisclosure("rank", delta=2.0),
                ]
            ),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    table = pa.table({"x": x, "y": rng.integers(0, 5, n), "g": rng.integers(0, 2, n), **confidential})
    by = draw(st.booleans())
    return table, asked, {"by": ["g"]} if by else {"quasi_identifiers": ["x", "y", "g"]}


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
@given(askings())
def test_models_are_kept_to_the_letter_or_refused(asking):
    table, models, around = asking
    settings = {"quasi_identifiers": ["x", "y"], "confidential": ["number", "text", "rank"], "k": 3, "seed": 0}
    try:
        release = shoal.anonymize(table, models=models, **(settings | around))
    except GuaranteeError:
        return
    quasi = list(release.verdict.quasi_identifiers)
    found = shoal.audit(
        release.table, quasi_identifiers=quasi, confidential=["number", "text", "rank"], models=models, k=3
    )

    assert found.holds


def test_cells_that_keep_the_models_already_stay_as_they_are(people):
    settings = roles("plain")
    without = shoal.anonymize(people, **settings)
    easy = [TCloseness("salary", t=0.9), PSensitive("salary", p=2)]

    assert np.array_equal(shoal.anonymize(people, models=easy, **settings).labels, without.labels)


def test_a_model_that_cannot_be_kept_in_a_stratum_is_refused_and_nothing_is_written(people, tmp_path):
    rich = pc.if_else(pc.greater(people["age"], 45), "old", "young")
    table = people.append_column("cohort", rich)
    job = shoal.Job.of(
        k=4,
        roles={
            "quasi_identifiers": ["age", "height", "rent"],
            "by": ["cohort"],
            "confidential": CONFIDENTIAL,
            "identifiers": ["home", "who", "region"],
        },
        models=[TCloseness("salary", t=0.05)],
        output={"path": str(tmp_path / "release.csv")},
    )

    with pytest.raises(GuaranteeError, match=r"records of a stratum, taken together, are farther than t=0.05"):
        shoal.run(job, table)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("models", "settings", "error", "message"),
    [
        ([TCloseness("region", t=0.1)], {}, SchemaError, "'region', whose role is other"),
        ([TCloseness("pay", t=0.1)], {}, SchemaError, "'pay', but models apply to confidential columns"),
        ([LDiversity("diagnosis", l=5)], {}, GuaranteeError, "have 4 different values"),
        ([PSensitive("diagnosis", p=5)], {}, GuaranteeError, "4 different values.*Lower p"),
        ([DeltaDisclosure("salary", delta=0.1), *MODELS, MODELS[0]], {}, ParameterError, "twice"),
        (MODELS, {"rho": 0.5}, ParameterError, "Random aggregation .* cannot be combined"),
        (
            [TCloseness("salary", t=0.1, weight=5), TCloseness("diagnosis", t=0.1, weight=5)],
            {},
            ParameterError,
            "steer",
        ),
        (["t-closeness"], {}, ParameterError, "xpected a model such as"),
        ([{"model": "t-closeness", "column": "salary"}], {}, ParameterError, "t-closeness needs t"),
    ],
)
def test_what_cannot_be_promised_is_refused(people, models, settings, error, message):
    with pytest.raises(error, match=message):
        shoal.anonymize(people, models=models, **roles("plain"), **settings)


def test_a_weight_does_not_go_with_households(people):
    with pytest.raises(ParameterError, match="households are grouped whole"):
        shoal.anonymize(people, models=TCloseness("salary", t=0.1, weight=9), **roles("household"))


def test_rho_of_zero_is_microaggregation_and_may_promise(people):
    assert shoal.anonymize(people, models=MODELS, rho=0.0, **roles("plain")).verdict.holds


def test_a_weight_promises_nothing_and_reports_what_it_reached(people):
    settings = roles("plain") | {"method": "mdav"}
    near, far = (
        shoal.anonymize(people, models=TCloseness("salary", t=0.1, weight=weight), **settings).verdict
        for weight in (300.0, 0.0)
    )

    assert near.holds
    assert far.holds
    assert not far.models[0].holds
    assert near.models[0].mean < far.models[0].mean
    assert near.to_dict()["models"][0]["promised"] is False


def test_a_weight_leads_within_strata_beside_models_that_are_kept(people):
    models = [TCloseness("salary", t=0.1, weight=50.0), LDiversity("diagnosis", l=3)]
    verdict = shoal.anonymize(people, models=models, **roles("strata and subject")).verdict

    assert verdict.holds
    assert verdict.models[1].value >= 3


def test_the_options_of_a_method_are_not_lost_on_a_steered_start(people):
    with pytest.raises(ParameterError, match="depth"):
        shoal.anonymize(people, models=TCloseness("salary", t=0.1, weight=50.0), depth=3, **roles("plain"))


def test_a_constant_column_is_close_and_the_report_says_what_that_means(people):
    table = people.set_column(6, "salary", pa.array(np.full(300, 1.0)))
    with pytest.warns(shoal.ShoalWarning, match="everybody's value is known"):
        release = shoal.anonymize(table, models=TCloseness("salary", t=0.1), **roles("plain"))

    assert release.verdict.holds
    assert release.verdict.models[0].value == 0
    assert "everybody&#39;s value is known" in render(release, "html", "public")


def test_a_missing_value_is_a_value_of_its_own():
    table = pa.table({"x": range(8), "s": pa.array(["a", None] * 4)})
    release = shoal.anonymize(table, k=2, quasi_identifiers="x", confidential="s", models=LDiversity("s", l=2))

    assert release.verdict.models[0].value == 2
    with pytest.raises(GuaranteeError, match="1 different values"):
        shoal.anonymize(
            table.set_column(1, "s", pa.array(["a"] * 8)),
            k=2,
            quasi_identifiers="x",
            confidential="s",
            models=LDiversity("s", l=2),
        )


def test_the_order_of_asking_and_the_threads_do_not_matter(people, tmp_path):
    for name, models, threads in (("a", MODELS, 1), ("b", MODELS[::-1], 2)):
        shoal.anonymize(people, models=models, threads=threads, **roles("subject")).write(tmp_path / f"{name}.csv")

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_an_audit_of_a_tampered_file_fails(people, tmp_path):
    settings = roles("plain")
    shoal.anonymize(people, models=MODELS, **settings).write(tmp_path / "release.parquet")
    table = pq.read_table(tmp_path / "release.parquet")
    place = table.column_names.index("salary")
    write(table.set_column(place, "salary", pc.sort_indices(table["rent"])), tmp_path / "tampered.parquet")
    audited = {"quasi_identifiers": settings["quasi_identifiers"], "confidential": CONFIDENTIAL, "models": MODELS}
    found = shoal.audit(tmp_path / "tampered.parquet", k=4, **audited)

    assert found.smallest >= 4
    assert not found.holds
    with pytest.raises(GuaranteeError, match=r"classes violate t-closeness of 'salary' with t = 0"):
        found.require()


def test_a_file_that_does_not_keep_the_models_is_not_written(people, tmp_path):
    release = shoal.anonymize(people, **roles("plain"))
    job = release.job.model_copy(update={"models": (TCloseness("salary", t=0.01),)})
    claiming = replace(release, records=replace(release.records, job=job))

    with pytest.raises(GuaranteeError, match=r"The written table does not satisfy t-closeness of"):
        claiming.write(tmp_path / "release.csv")
    assert list(tmp_path.iterdir()) == []


def test_orders_that_a_file_does_not_tell_are_counted_as_they_were(tmp_path):
    rng = np.random.default_rng(1)
    codes = np.arange(200) % 3
    rank = pa.DictionaryArray.from_arrays(codes, ["low", "mid", "high"], ordered=True)
    table = pa.table({"x": codes + rng.normal(size=200), "rank": rank})
    models = [TCloseness("rank", t=0.1)]
    release = shoal.anonymize(table, k=3, quasi_identifiers="x", confidential="rank", models=models, seed=1)
    release.write(tmp_path / "release.csv")
    audited = {"quasi_identifiers": "x", "confidential": "rank", "models": models}
    told = shoal.audit(tmp_path / "release.csv", **audited, columns={"rank": {"categories": ["low", "mid", "high"]}})

    assert told.models[0].value == release.verdict.models[0].value
    assert told.confidential["rank"].t == pytest.approx(told.models[0].value, abs=1e-12)


def test_manifests_reports_and_summaries_tell_what_was_promised_and_reached(people, tmp_path):
    release = shoal.anonymize(people, models=MODELS, **roles("plain"))
    release.write(tmp_path / "release.csv", report=tmp_path / "report.html", json=tmp_path / "report.json")
    manifests = [json.loads((tmp_path / f"release.csv.{kind}.json").read_text()) for kind in ("public", "internal")]
    report = json.loads((tmp_path / "report.json").read_text())

    for told in (*manifests, report):
        assert [one["model"] for one in told["verdict"]["models"]] == ["t-closeness", "l-diversity"]
        assert told["verdict"]["models"][0]["t"] == 0.2
        assert told["verdict"]["models"][0]["value"] == release.verdict.models[0].value
    assert manifests[0]["job"]["models"][0] == {"model": "t-closeness", "column": "salary", "t": 0.2}
    assert "seed" not in manifests[0]["job"]
    for text in (
        (tmp_path / "report.html").read_text(encoding="utf-8"),
        release._repr_html_(),
        render(release, "terminal"),
    ):
        assert "0.2 asked for: kept" in text
    assert "2 promises about confidential columns were kept as well" in report["explanation"]


def test_a_broken_promise_is_the_headline(people, tmp_path):
    release = shoal.anonymize(people, **roles("plain"))
    quasi = list(release.verdict.quasi_identifiers)
    models = [TCloseness("salary", t=0.01), DeltaDisclosure("diagnosis", delta=0.1)]
    verdict = shoal.audit(release.table, quasi_identifiers=quasi, confidential=CONFIDENTIAL, models=models, k=4)
    claiming = replace(release, records=replace(release.records, verdict=verdict))
    page = render(claiming, "html")

    assert "Some groups reveal more about salary and diagnosis than was promised" in page
    assert "Do not publish this table." in page
    assert json.loads(render(claiming, "json"))["verdict"]["models"][1]["value"] is None


def test_models_bring_homogeneity_and_skewness_down(people):
    settings = roles("plain")
    without = shoal.anonymize(people, **settings)
    models = [TCloseness("diagnosis", t=0.15), LDiversity("diagnosis", l=3), TCloseness("salary", t=0.15)]
    with_models = shoal.anonymize(people, models=models, **settings)
    before, after = (
        {one.name: one.after for one in release.attacks if one.column == "diagnosis"}
        for release in (without, with_models)
    )

    assert before["homogeneity"] > 0.1
    assert after["homogeneity"] == 0
    assert after["skewness"] < before["skewness"]


def test_a_hostile_name_of_a_column_stays_text_in_every_report():
    name = "<script>alert(1)</script>\x1b[31m"
    table = pa.table({"x": range(20), name: ["a", "b"] * 10})
    release = shoal.anonymize(
        table, k=2, quasi_identifiers="x", confidential=name, models=LDiversity(name, l=2), seed=1
    )

    for text in (render(release, "html"), release._repr_html_()):
        assert "<script>alert" not in text
    assert "\x1b" not in render(release, "html") + render(release, "terminal") + release._repr_html_()


def test_numbers_of_numpy_are_numbers_in_jobs_and_in_json(people):
    models = [TCloseness("salary", t=np.float32(0.5)), PSensitive("salary", p=np.int64(2))]
    release = shoal.anonymize(people, models=models, **roles("plain"))
    quasi = list(release.verdict.quasi_identifiers)
    verdict = shoal.audit(release.table, quasi_identifiers=quasi, confidential="salary", models=models)

    assert shoal.Job.from_toml(release.job.to_toml()).models == release.job.models
    assert json.loads(json.dumps(verdict.to_dict()))["models"][1]["p"] == 2


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv.gz", "sav", "dta"])
def test_from_a_parquet_file_to_any_file(people, ending, tmp_path):
    codes = np.arange(300) % 3
    rank = pa.DictionaryArray.from_arrays(codes, ["low", "mid", "high"], ordered=True)
    table = people.append_column("rank", rank)
    write(table, tmp_path / "people.parquet")
    models = [*MODELS, TCloseness("rank", t=0.2)]
    settings = roles("strata") | {"confidential": [*CONFIDENTIAL, "rank"]}
    release = shoal.anonymize(tmp_path / "people.parquet", models=models, **settings)
    release.write(tmp_path / f"release.{ending}")

    assert release.verdict.holds
    assert (tmp_path / f"release.{ending}").exists()


@pytest.mark.parametrize("roles", [{"subject": "who"}, {"other": ["who"], "models": [TCloseness("pay", t=0.2)]}])
def test_a_code_for_missing_that_was_not_declared_does_not_keep_a_release_going(roles):
    rng = np.random.default_rng(3)
    rooms = np.where(rng.random(600) < 0.3, 99_999_999, rng.integers(1, 4, 600) / 10)
    table = pa.table({"rooms": rooms, "who": rng.integers(0, 200, 600), "pay": rng.integers(0, 9, 600)})
    release = shoal.anonymize(table, k=3, quasi_identifiers=["rooms"], confidential=["pay"], seed=1, **roles)

    assert release.verdict.holds


LOOKALIKES = {"missing": ["", None], "blanks": ["flu", "flu "], "accents": ["caf\u00e9", "cafe\u0301"]}


@pytest.mark.parametrize("values", LOOKALIKES.values(), ids=LOOKALIKES)
@pytest.mark.parametrize("model", [LDiversity("d", l=2), LDiversity("d", l=2, kind="entropy"), PSensitive("d", p=2)])
def test_values_that_a_reader_cannot_tell_apart_are_no_diversity(values, model):
    people = pa.table({"x": range(8), "d": values * 4})

    with pytest.raises(
        GuaranteeError, match=r"cannot be satisfied: the 8 records, taken together, have (the entropy of )?1"
    ):
        shoal.anonymize(people, k=2, quasi_identifiers=["x"], confidential=["d"], models=[model])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".sav", ".dta"])
def test_a_released_file_is_as_diverse_to_any_reader_as_was_promised(tmp_path, ending):
    people = pa.table({"x": range(16), "d": ["", None, "flu", ""] * 4})
    release = shoal.anonymize(
        people, k=2, quasi_identifiers=["x"], confidential=["d"], models=[LDiversity("d", l=2)], seed=1
    )
    release.write(tmp_path / f"a{ending}")
    written = shoal.sources.read(tmp_path / f"a{ending}").arrow
    seen = {}
    for x, d in zip(written["x"].to_pylist(), written["d"].to_pylist(), strict=True):
        seen.setdefault(x, set()).add(d or "")

    assert min(len(values) for values in seen.values()) >= 2


def test_the_recount_of_a_file_takes_an_empty_text_for_missing(tmp_path):
    (tmp_path / "a.csv").write_text('x,d\n1,""\n1,\n')
    verdict = shoal.audit(
        tmp_path / "a.csv", quasi_identifiers=["x"], confidential=["d"], models=[LDiversity("d", l=2)]
    )

    assert verdict.confidential["d"].distinct == 1
    assert not verdict.holds


def test_closeness_tells_an_empty_text_from_a_missing_one():
    table = pa.table({"x": [1, 1, 2, 2], "d": ["", "", None, None]})
    verdict = shoal.audit(table, quasi_identifiers=["x"], confidential=["d"], models=[TCloseness("d", t=0.2)])

    assert verdict.models[0].value == verdict.confidential["d"].t == 0.5
    assert verdict.confidential["d"].distinct == 1


def test_texts_that_a_file_turns_into_one_number_are_found_by_the_recount(tmp_path):
    people = pa.table({"x": range(8), "d": ["1", "1.0"] * 4})
    release = shoal.anonymize(people, k=2, quasi_identifiers=["x"], confidential=["d"], models=[LDiversity("d", l=2)])

    with pytest.raises(GuaranteeError, match="The written table does not satisfy"):
        release.write(tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


ONE_WITH_MANY = pa.table(
    {"x": [1] * 8, "d": ["cold"] * 4 + ["flu"] * 4, "who": ["Ann"] * 4 + ["Ben", "Cid", "Dan", "Eve"]}
)


@pytest.mark.parametrize(
    "model",
    [
        LDiversity("d", l=2, kind="entropy"),
        LDiversity("d", l=2, kind="recursive", c=2.0),
    ],
)
def test_a_person_with_many_records_does_not_make_a_class_diverse(model):
    given_roles = {"quasi_identifiers": ["x"], "confidential": ["d"], "models": [model]}

    assert shoal.audit(ONE_WITH_MANY, **given_roles).holds
    verdict = shoal.audit(ONE_WITH_MANY, **given_roles, subject="who")
    assert not verdict.holds
    assert verdict.confidential["d"].recursive == 4
    with pytest.raises(GuaranteeError, match="cannot be satisfied"):
        shoal.anonymize(ONE_WITH_MANY, k=2, subject="who", **given_roles)


def test_closeness_compares_persons_with_persons_as_well():
    who = ["Ann", "Ann", "Ben", "Cid", "Dan", "Eve", "Fay", "Gus"]
    table = pa.table({"x": [1, 1, 1, 1, 2, 2, 2, 2], "d": ["a", "a", "b", "b"] * 2, "who": who})
    roles = {"quasi_identifiers": ["x"], "confidential": ["d"], "models": [TCloseness("d", t=0.05)]}

    assert shoal.audit(table, **roles).confidential["d"].t == 0
    verdict = shoal.audit(table, **roles, subject="who")
    assert verdict.confidential["d"].t == verdict.models[0].value == pytest.approx(3 / 7 - 1 / 3)
    assert not verdict.holds


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "models",
    [
        [TCloseness("salary", t=0.25)],
        [LDiversity("diagnosis", l=2, kind="entropy")],
        [TCloseness("diagnosis", t=0.3), LDiversity("diagnosis", l=2, kind="recursive", c=4.0)],
    ],
)
def test_a_release_keeps_its_models_for_persons_whatever_their_records(tmp_path, ending, models):
    rng = np.random.default_rng(7)
    who = np.sort(rng.integers(0, 60, 400) ** 2 // 60)  # some have many records, and most of them the same values
    people = pa.table(
        {
            "age": (who * 7 % 50 + rng.integers(0, 2, 400)).astype(float),
            "zone": pa.array([f"zone {i}" for i in who % 4]),
            "who": who,
            "salary": who * 13 % 40 + rng.integers(0, 2, 400),
            "diagnosis": pa.array(np.array(["flu", "cold", "cough"])[np.where(rng.random(400) < 0.7, who % 3, 0)]),
        }
    )
    roles = {"quasi_identifiers": ["age", "zone"], "confidential": ["salary", "diagnosis"], "subject": "who"}
    release = shoal.anonymize(people, k=3, models=models, seed=2, **roles)
    release.write(tmp_path / f"a{ending}", order="keep")
    written = shoal.sources.read(tmp_path / f"a{ending}").arrow.append_column("who", people["who"])
    verdict = shoal.audit(written, k=3, models=models, **roles)

    assert verdict.holds
    assert verdict.models == release.verdict.models
