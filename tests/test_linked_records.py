"""Linked records: an intruder who knows any part of a person's history finds k persons and l values, or nobody.

The intruder reads the published table alone, and compares with plain loops.
"""

import itertools
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.columns.equivalence import value_codes
from shoal.measures.linked import Histories
from shoal.sources import read, write

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "bench_linked.py"
K, L = 3, 2
QUASI = ["age", "day", "town"]
SETTINGS = {
    "k": K,
    "quasi_identifiers": QUASI,
    "confidential": ["illness"],
    "subject": "patient",
    "keep_link": "subject",
    "link_order": ["day"],
    "seed": 1,
}
POLICIES = ["cut", "unlink", "withhold"]


def visits(seed, n_persons=40, most=5):
    """Return visits in a random order; few persons have many."""
    rng = np.random.default_rng(seed)
    n_visits = np.minimum(rng.geometric(0.45, n_persons), most)
    patient = np.repeat(np.arange(n_persons), n_visits)
    table = pa.table(
        {
            "patient": [f"QQ{number:04}" for number in rng.permutation(n_persons)[patient]],
            "age": rng.integers(18, 80, n_persons)[patient],
            "day": np.concatenate([np.sort(rng.choice(365, n, replace=False)) for n in n_visits]),
            "town": rng.choice(["Reus", "Valls", "Salou", "Flix"], n_persons)[patient],
            "sex": rng.choice(["f", "m"], n_persons)[patient],
            "illness": rng.choice(["flu", "cold", "gout", "none"], len(patient)),
        }
    )
    return table.take(pa.array(rng.permutation(len(patient))))


def shown_by(value, known):
    """Return whether a published interval or set holds a value."""
    if value[0] == "[":
        low, _, high = value[1:-1].partition(", ")
        return float(low) <= known <= float(high)
    return known in value.strip("{}").split(", ")


def holds(record, known):
    return all(shown_by(record[name], known[name]) for name in QUASI)


def may_be(history, known):
    """Return whether each known record can be another record of the history."""
    places = [[place for place, record in enumerate(history) if holds(record, each)] for each in known]
    return any(len(set(choice)) == len(known) for choice in itertools.product(*places))


def by_link(rows):
    """Return the published histories, and the records without the link."""
    histories, alone = defaultdict(list), []
    for row in rows:
        if row["patient"] is None:
            alone.append(row)
        else:
            histories[row["patient"]].append(row)
    return list(histories.values()), alone


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(6))
def test_an_intruder_who_knows_any_part_of_a_history_finds_k_persons_or_nobody(seed, policy):
    table = visits(seed)
    settings = SETTINGS | ({"by": ["sex"]} if seed % 2 else {"other": ["sex"]})
    release = shoal.anonymize(
        table, **settings, truthful=True, rare_patterns=policy, models=[shoal.LDiversity("illness", l=L)]
    )
    histories, alone = by_link(release.published.to_pylist())
    taken = release.linking.taken
    owners = table.take(pa.array(np.arange(table.num_rows) if taken is None else taken))["patient"].to_pylist()
    own_of_alone = [
        owner for owner, row in zip(owners, release.published.to_pylist(), strict=True) if row["patient"] is None
    ]
    rng, n_found = np.random.default_rng(seed), 0
    for person in set(table["patient"].to_pylist()):
        own = [row for row in table.to_pylist() if row["patient"] == person]
        parts = [own, *([own[i] for i in rng.permutation(len(own))[: rng.integers(1, len(own) + 1)]] for _ in range(3))]
        for known in parts:
            candidates = [history for history in histories if may_be(history, known)]
            whole = [history for history in candidates if len(history) == len(own)]
            for found in (candidates, whole):
                assert not 0 < len(found) < K
                n_found += len(found) > 0
                for each in known if found else ():
                    values = {row["illness"] for history in found for row in history if holds(row, each)}
                    assert len(values) >= L
                assert not found or len({frozenset(row["illness"] for row in history) for history in found}) >= L
        for each in own:
            found = [place for place, row in enumerate(alone) if holds(row, each)]
            assert not 0 < len({own_of_alone[place] for place in found}) < K
            assert not found or len({alone[place]["illness"] for place in found}) >= L

    assert n_found > len(table) / 2


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(4))
def test_k_persons_have_identical_histories_of_means(seed, policy):
    release = shoal.anonymize(visits(seed, 60), **SETTINGS, other=["sex"], rare_patterns=policy, method="mdav")
    histories, alone = by_link(release.published.to_pylist())
    alike = Counter(tuple(sorted(tuple(row[name] for name in QUASI) for row in history)) for history in histories)
    linked = release.verdict.linked

    assert min(alike.values()) >= K
    assert (linked.smallest, linked.n_persons, linked.n_classes) == (min(alike.values()), len(histories), len(alike))
    assert linked.lengths == Counter(map(len, histories))
    assert linked.n_unlinked == len(alone) == release.linking.n_unlinked_records
    assert release.linking.n_withheld_records == release.linking.n_records - len(release.published)


def test_each_policy_accounts_for_every_record():
    table = visits(3)
    n_visits = Counter(table["patient"].to_pylist())
    shared = {length for length, n_persons in Counter(n_visits.values()).items() if n_persons >= K}
    of = {
        policy: shoal.anonymize(table, **SETTINGS, other=["sex"], rare_patterns=policy).linking for policy in POLICIES
    }

    assert of["withhold"].n_linked == sum(length in shared for length in n_visits.values())
    assert of["cut"].n_linked == of["unlink"].n_linked == len(n_visits)
    assert of["cut"].n_linked_records == of["unlink"].n_linked_records > of["withhold"].n_linked_records
    assert of["cut"].n_withheld_records == of["unlink"].n_unlinked_records + of["unlink"].n_withheld_records > 0


def test_the_file_tells_neither_the_order_nor_the_old_identifiers(tmp_path):
    table = visits(5, 30)
    found = []
    # Each stratum has one cell for each number of visits, so that ties of distances do not depend on the order.
    for number, given in enumerate((table, table.take(pa.array(np.random.default_rng(9).permutation(len(table)))))):
        renamed = given.set_column(0, "patient", pa.array([f"{text}{number}" for text in given["patient"].to_pylist()]))
        release = shoal.anonymize(renamed, **{**SETTINGS, "k": 15}, other=["sex"])
        release.write(tmp_path / f"{number}.csv", report=tmp_path / f"{number}.html", form="public")
        found.append((tmp_path / f"{number}.csv").read_bytes())
        public = [tmp_path / f"{number}{ending}" for ending in (".csv", ".csv.public.json", ".html")]
        assert not any(b"QQ0" in path.read_bytes() for path in public)

    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["csv", "parquet", "sav", "xlsx"])
def test_files_keep_the_link(tmp_path, kind):
    path = tmp_path / f"visits.{kind}"
    write(visits(7), path)
    release = shoal.anonymize(path, **SETTINGS, other=["sex"], rare_patterns="unlink")
    release.write(tmp_path / f"release.{kind}")
    verdict = shoal.audit(
        tmp_path / f"release.{kind}", quasi_identifiers=QUASI, k=K, subject="patient", keep_link="subject"
    )

    assert verdict.holds
    assert verdict.linked == release.verdict.linked
    assert len(read(tmp_path / f"release.{kind}").arrow) == release.verdict.n_records


def test_the_report_and_the_manifests_say_what_became_of_every_record(tmp_path):
    release = shoal.anonymize(visits(7), **SETTINGS, other=["sex"])
    found = {}
    for form in ("internal", "public"):
        path = tmp_path / f"{form}.csv"
        release.write(path, json=tmp_path / f"{form}.json", form=form)
        found[form] = json.loads((tmp_path / f"{form}.json").read_text())
    public = json.loads((tmp_path / "public.csv.public.json").read_text())
    said = {form: " ".join(facts["done"]) for form, facts in found.items()}

    assert f"{release.linking.n_withheld_records} (" in said["public"]
    assert "too few share: cut" in said["public"]
    assert "The link has a price" in said["internal"]
    assert "The link has a price" not in said["public"]
    assert public["linking"] == release.linking.to_dict()
    assert any("whoever knows these values finds the history" in text for text in release.warnings)
    assert any("Too few share the pattern" in text for text in release.warnings)


def test_a_value_that_all_persons_of_a_history_have_is_counted():
    link, age, illness = [1, 1, 2, 2, 3, 4], [30, 30, 30, 30, 50, 50], ["flu", "gout", "gout", "none", "flu", "none"]
    histories = Histories.of("patient", pa.chunked_array([link]), pa.table({"age": age}))

    assert histories.n_sharing(value_codes(pa.chunked_array([illness]))) == 2


def test_an_audit_finds_a_history_that_nobody_shares(tmp_path):
    table = pa.table({"patient": [1, 1, 2, 2, 3, 3, 4, 4], "age": [30, 40, 40, 30, 30, 30, 40, 40]})
    asked = {"quasi_identifiers": ["age"], "k": 2, "subject": "patient"}
    verdict = shoal.audit(table, **asked, keep_link="subject")

    assert shoal.audit(table, **asked).holds
    assert (verdict.holds, verdict.linked.smallest, verdict.linked.n_below) == (False, 1, 2)
    with pytest.raises(shoal.GuaranteeError, match="a history that only 1 persons share"):
        verdict.require()


def test_the_same_values_in_another_order_are_no_diversity():
    table = pa.table({"patient": [1, 1, 2, 2], "age": [30, 40, 30, 40], "illness": ["flu", "cold", "cold", "flu"]})
    asked = {"quasi_identifiers": ["age"], "confidential": ["illness"], "k": 2, "subject": "patient"}
    asked |= {"models": [shoal.LDiversity("illness", l=2)]}

    assert shoal.audit(table, **asked).holds
    assert not shoal.audit(table, **asked, keep_link="subject").holds


@pytest.mark.parametrize(
    "model",
    [
        shoal.LDiversity("illness", l=2, kind="entropy"),
        shoal.LDiversity("illness", l=2, kind="recursive", c=4),
        shoal.TCloseness("illness", t=0.4),
        shoal.DeltaDisclosure("illness", delta=3),
        shoal.BetaLikeness("illness", beta=3, kind="enhanced"),
        shoal.AlphaK("illness", alpha=0.8),
        shoal.PSensitive("illness", p=2),
    ],
)
def test_every_model_holds_at_each_place_and_for_persons(model):
    release = shoal.anonymize(visits(2, 300, most=3), **SETTINGS, other=["sex"], models=[model])

    assert release.verdict.models[0].holds
    assert release.verdict.holds


def test_households_stay_linked_with_their_head_first():
    rng = np.random.default_rng(4)
    n_members = rng.choice([1, 2, 3], 60)
    home = np.repeat(np.arange(60), n_members)
    people = pa.table(
        {
            "home": home,
            "member": np.concatenate([[*(["head", "partner", "child"][:n])] for n in n_members]),
            "age": rng.integers(0, 90, len(home)),
            "rent": rng.integers(300, 2000, 60)[home],
        }
    ).take(pa.array(rng.permutation(len(home))))
    release = shoal.anonymize(
        people,
        k=K,
        quasi_identifiers=["age", "rent"],
        other=["member"],
        household="home",
        keep_link="household",
        link_order=["member"],
        columns={"member": {"categories": ["head", "partner", "child"]}},
        seed=1,
    )
    households = defaultdict(list)
    for row in release.published.to_pylist():
        households[row["home"]].append((row["member"], row["age"], row["rent"]))

    assert min(Counter(tuple(sorted(each)) for each in households.values()).values()) >= K
    assert all(len({rent for _, _, rent in each}) == 1 for each in households.values())
    assert release.verdict.linked.n_persons == 60


def test_withheld_records_are_left_out_of_audits_and_attacks(tmp_path):
    table = visits(7)
    path, kept = tmp_path / "release.csv", tmp_path / "visits.parquet"
    write(table, kept)
    release = shoal.anonymize(kept, **SETTINGS, other=["sex"], truthful=True)
    release.write(path)
    verdict = shoal.audit(path, quasi_identifiers=QUASI, k=K, original=kept)
    manifest = json.loads((tmp_path / "release.csv.internal.json").read_text())

    assert release.linking.n_withheld_records > 0
    assert [truth.n_false for truth in verdict.truth] == [0, 0, 0]
    assert manifest["linking"]["il_without_link"] < release.loss.il
    assert {one.name for one in shoal.attack(path, kept, quasi_identifiers=QUASI)} >= {"matching"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subject": None, "identifiers": ["patient"]}, "no column says whose a record is"),
        ({"link_order": ()}, "no column puts the linked records in order"),
        ({"keep_link": None}, "no records stay linked"),
        ({"keep_link": None, "link_order": (), "rare_patterns": "unlink"}, "no records stay linked"),
        ({"confidential": ["illness", "patient"]}, "has the role confidential as well"),
        ({"household": "sex"}, "beside a subject and a household column"),
        ({"link_order": ["sex"]}, "The order of linked records is not known"),
        ({"link_order": ["bed"]}, "columns with missing values: 'bed'"),
        ({"steer": {"age": 1.0}}, "steering columns"),
        ({"objective": "ncp"}, "which groups single records"),
        ({"rho": 0.5, "quasi_identifiers": ["age", "day"], "by": ["town"]}, "random aggregation"),
        ({"models": [shoal.TCloseness("illness", t=0.2, weight=1.0)]}, "a model with a weight"),
        ({"k": 41}, "fewer than 41"),
        ({"models": [shoal.LDiversity("illness", l=5)]}, "fewer than 3 of 40 persons"),
        ({"engine": "disk"}, "linked records"),
    ],
)
def test_what_cannot_be_linked_is_refused(tmp_path, changes, message):
    table = visits(1).append_column("bed", pa.array([None, *(i % 9 for i in range(len(visits(1)) - 1))]))
    write(table, tmp_path / "visits.parquet")
    settings = {**SETTINGS, "other": ["sex", "bed"], **changes}

    with pytest.raises(shoal.ShoalError, match=message):
        shoal.anonymize(tmp_path / "visits.parquet", **settings)


def test_a_pattern_that_nobody_shares_is_refused():
    table = pa.table({"patient": [1, 2, 3, 4], "day": [1, 2, 3, 4], "place": ["a", "b", "c", "d"]})

    with pytest.raises(shoal.GuaranteeError, match=r"fewer than 2 of 4 persons .* share any"):
        shoal.anonymize(
            table,
            k=2,
            quasi_identifiers=["day"],
            by=["place"],
            subject="patient",
            keep_link="subject",
            link_order="day",
        )


def test_a_record_without_a_person_is_refused():
    table = visits(1).to_pylist()
    table[3]["patient"] = None

    with pytest.raises(shoal.SchemaError, match="missing or blank in 1 records"):
        shoal.anonymize(pa.Table.from_pylist(table), **SETTINGS, other=["sex"])


def test_equal_records_of_a_person_are_no_tie():
    table = pa.concat_tables([visits(1), visits(1)])
    release = shoal.anonymize(table, **SETTINGS, other=["sex"])

    assert release.verdict.holds


def test_the_benchmark_measures_every_policy(tmp_path):
    command = [sys.executable, BENCHMARK, "--quick", "--rounds", "1", "--output", tmp_path / "results.json"]
    environment = {**os.environ, "SHOAL_DATA": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]

    assert [row["release"] for row in rows] == ["without link", *POLICIES]
    assert all(row["smallest"] >= 5 and row["n_withheld_records"] >= 0 for row in rows[1:])


def persons_of(table, n_more=0):
    """Return a table of the patients, in an order of its own, and some who never came."""
    names = sorted(set(table["patient"].to_pylist())) + [f"QQ9{number:04}" for number in range(n_more)]
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "id": names,
            "weight": rng.normal(70, 9, len(names)).round(),
            "job": rng.choice(["cook", "nurse", "pilot"], len(names)),
            "blood": rng.choice(["A", "B", "0"], len(names)),
        }
    ).take(pa.array(rng.permutation(len(names))))


@pytest.fixture
def two_tables(tmp_path, monkeypatch):
    """Return the job of two tables, in whose folder they are."""
    monkeypatch.chdir(tmp_path)
    write(visits(2), "visits.csv")
    write(persons_of(visits(2), n_more=3), "persons.csv")
    roles = {
        "quasi_identifiers": [*QUASI, "weight", "job"],
        "confidential": ["illness", "blood"],
        "other": ["sex"],
        **{name: SETTINGS[name] for name in ("subject", "keep_link", "link_order")},
    }
    return {
        "k": K,
        "seed": 1,
        "roles": roles,
        "models": [{"model": "l-diversity", "column": name, "l": L} for name in ("illness", "blood")],
        "input": {"path": "visits.csv"},
        "output": {"path": "visits_release.csv", "report": "report.html"},
        "tables": [{"input": {"path": "persons.csv"}, "key": "id", "output": "persons_release.csv"}],
    }


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("truthful", [False, True])
def test_two_tables_have_the_same_new_identifiers_and_k_persons_look_alike_in_both(two_tables, policy, truthful):
    release = shoal.run(shoal.Job.of(**two_tables, rare_patterns=policy, truthful=truthful))
    rows, persons = (read(name).arrow.to_pylist() for name in ("visits_release.csv", "persons_release.csv"))
    histories, alone = by_link(rows)
    about = {row["id"]: row for row in persons}
    alike = defaultdict(list)
    for history in histories:
        person = about[history[0]["patient"]]
        records = sorted(tuple(row[name] for name in QUASI) for row in history)
        alike[(person["weight"], person["job"], *records)].append((person["blood"], history))

    assert set(about) == {history[0]["patient"] for history in histories}
    assert set(persons[0]) == {"id", "weight", "job", "blood"}
    assert set(rows[0]) == {"patient", *QUASI, "sex", "illness"}
    assert min(map(len, alike.values())) >= K
    for found in alike.values():
        assert len({blood for blood, _ in found}) >= L
        for record in {tuple(row[name] for name in QUASI) for _, history in found for row in history}:
            at = {row["illness"] for _, history in found for row in history if tuple(row[n] for n in QUASI) == record}
            assert len(at) >= L
    assert len(alone) == release.linking.n_unlinked_records
    assert release.linking.n_without == 3
    assert not any("QQ" in json.dumps(row) for row in (*rows, *persons))


def test_an_intruder_who_knows_both_tables_finds_k_persons_or_nobody(two_tables):
    job = shoal.Job.of(**two_tables, rare_patterns="unlink", truthful=True)
    shoal.run(job)
    rows, persons = (read(name).arrow.to_pylist() for name in ("visits_release.csv", "persons_release.csv"))
    histories, about = by_link(rows)[0], {row["id"]: row for row in persons}
    n_found = 0
    for known in read("persons.csv").arrow.to_pylist():
        own = [row for row in read("visits.csv").arrow.to_pylist() if row["patient"] == known["id"]]
        for part in (own, own[:1], own[1:], []):
            candidates = [
                history
                for history in histories
                if may_be(history, part)
                and all(shown_by(about[history[0]["patient"]][name], known[name]) for name in ("weight", "job"))
            ]
            assert not 0 < len(candidates) < K
            n_found += len(candidates) > 0
            bloods = {about[history[0]["patient"]]["blood"] for history in candidates}
            assert not candidates or len(bloods) >= L

    assert n_found > 40


def test_a_job_of_two_tables_repeats_and_is_refused_where_it_cannot_be(two_tables, tmp_path):
    Path("job.toml").write_text(shoal.Job.of(**two_tables).to_toml())
    shoal.run("job.toml")
    names = ["visits_release.csv", "persons_release.csv", "visits_release.csv.public.json"]
    before = [Path(name).read_bytes() for name in names]
    shoal.run("job.toml", force=True)
    public = json.loads(before[2])

    assert [Path(name).read_bytes() for name in names] == before
    assert set(public["files"]) == {"persons_release.csv"}
    assert "persons.csv" not in before[2].decode()
    for path in Path().glob("visits_release*"):
        path.unlink()
    Path("report.html").unlink()
    with pytest.raises(shoal.FileError, match=r"'persons_release\.csv' already exists"):
        shoal.run("job.toml")
    assert not Path("visits_release.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: pa.concat_tables([table, table.slice(0, 2)]), "2 repeat one"),
        (lambda table: table.slice(1), "belong to no person in 'persons.csv'"),
        (lambda table: table.rename_columns(["who", "weight", "job", "blood"]), "has no column 'id'"),
        (lambda table: table.append_column("age", table["weight"]), "Several of the tables have a column 'age'"),
    ],
)
def test_tables_that_do_not_fit_are_refused_and_nothing_is_written(two_tables, change, message):
    write(change(persons_of(visits(2))), "persons.csv", force=True)

    with pytest.raises(shoal.SchemaError, match=message):
        shoal.run(shoal.Job.of(**two_tables))
    assert not list(Path().glob("*release*"))


@pytest.mark.parametrize("kind", ["parquet", "xlsx", "sav"])
def test_two_tables_of_any_format(two_tables, kind):
    write(visits(2), f"visits.{kind}")
    write(persons_of(visits(2)), f"persons.{kind}")
    two_tables["input"]["path"], two_tables["output"]["path"] = f"visits.{kind}", f"visits_release.{kind}"
    two_tables["tables"][0] |= {"input": {"path": f"persons.{kind}"}, "output": f"persons_release.{kind}"}
    release = shoal.run(shoal.Job.of(**two_tables))

    assert read(f"visits_release.{kind}").n_records == release.verdict.n_records
    assert read(f"persons_release.{kind}").n_records == release.verdict.linked.n_persons


def test_the_command_runs_and_plans_a_job_of_two_tables(two_tables):
    Path("job.toml").write_text(shoal.Job.of(**two_tables).to_toml())
    command = [sys.executable, "-m", "shoal.cli", "run", "job.toml"]
    plan = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    assert not Path("persons_release.csv").exists()
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (plan.returncode, done.returncode) == (0, 0), plan.stderr + done.stderr
    assert "persons_release.csv" in plan.stdout
    assert "would link" in plan.stdout
    assert "3 persons without records are left out" in done.stdout


def test_a_person_without_records_is_no_rare_pattern(tmp_path):
    persons = pa.table({"patient": np.arange(11), "age": np.arange(11) * 7 % 60 + 20})
    visits = pa.table({"patient": np.repeat(np.arange(10), 2), "day": np.arange(20) * 13 % 365})
    files = [
        str(tmp_path / name) for name in ("visits.csv", "persons.csv", "visits_release.csv", "persons_release.csv")
    ]
    write(visits, files[0])
    write(persons, files[1])
    roles = {"quasi_identifiers": ["day", "age"], "subject": "patient", "keep_link": "subject", "link_order": ["day"]}
    release = shoal.run(
        shoal.Job.of(
            k=5,
            seed=1,
            roles=roles,
            input={"path": files[0]},
            output={"path": files[2]},
            tables=[{"input": {"path": files[1]}, "output": files[3]}],
        )
    )

    assert "Not everybody is published: 1 person without records is left out." in release.warnings
    assert not any("Too few share" in text for text in release.warnings)
