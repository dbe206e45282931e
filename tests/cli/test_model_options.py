import json
import re

import pytest
from shell import is_one_paragraph, shoal_command

import shoal
from shoal import LDiversity, TCloseness
from shoal.cli import options
from shoal.models import MODELS

ROLES = (
    "--quasi-identifiers",
    "age,zip,income",
    "--confidential",
    "sex,diagnosis",
    "--identifiers",
    "name",
    "--seed",
    1,
    "-k",
    4,
)
SETTINGS = {
    "k": 4,
    "seed": 1,
    "quasi_identifiers": ["age", "zip", "income"],
    "confidential": ["sex", "diagnosis"],
    "identifiers": ["name"],
}
ASKED = ("--t-closeness", "diagnosis=0.2", "--l-diversity", "sex=2,kind=entropy")
MODELS_ASKED = [LDiversity("sex", l=2, kind="entropy"), TCloseness("diagnosis", t=0.2)]
AUDITED = ("--quasi-identifiers", "age,zip,income", "--confidential", "sex,diagnosis")


@pytest.fixture
def folder(csv_file, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    return csv_file.parent


@pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
def test_the_call_the_command_and_the_job_give_the_same_bytes(folder, csv_file):
    made = shoal_command("anonymize", csv_file.name, *ROLES, *ASKED, "-o", "a.csv", "--save-job", "job.toml")
    again = shoal_command("run", "job.toml", "--force")
    shoal.anonymize(csv_file.name, models=MODELS_ASKED, **SETTINGS).write("b.csv")
    job = shoal.Job.load("job.toml").model_copy(update={"output": None})
    shoal.run(job).write("c.csv")

    assert (made.exit_code, again.exit_code) == (0, 0), made.output + again.output
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes() == (folder / "c.csv").read_bytes()
    assert "and keeps the models" in made.stdout
    assert "0.2 asked for: kept" in made.stdout


def test_an_audit_recounts_models_and_its_exit_code_is_the_verdict(folder, csv_file):
    shoal_command("anonymize", csv_file.name, *ROLES, *ASKED, "-o", "a.csv")
    kept = shoal_command("audit", "a.csv", *AUDITED, *ASKED)
    broken = shoal_command("audit", "a.csv", *AUDITED, "--t-closeness", "diagnosis=0.0001", "-k", 4)
    counted = shoal_command("audit", "a.csv", *AUDITED, *ASKED, "--json")

    assert kept.exit_code == 0
    assert "holds: every class keeps the models" in kept.stdout
    assert broken.exit_code == 1
    assert "some classes break t-closeness of diagnosis" in broken.stdout
    assert [one["holds"] for one in json.loads(counted.stdout)["models"]] == [True, True]


def test_a_tampered_file_fails_its_audit(folder, csv_file):
    shoal_command("anonymize", csv_file.name, *ROLES, *ASKED, "-o", "a.csv", "--order", "keep")
    lines = (folder / "a.csv").read_text(encoding="utf-8").splitlines()
    head, rows = lines[0], [line.split(",") for line in lines[1:]]
    place = head.split(",").index("diagnosis")
    values = sorted(row[place] for row in rows)
    rows = [[*row[:place], value, *row[place + 1 :]] for row, value in zip(sorted(rows), values, strict=True)]
    (folder / "a.csv").write_text("\n".join([head, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")

    assert shoal_command("audit", "a.csv", *AUDITED, *ASKED).exit_code == 1


def test_comparisons_keep_the_models(folder, csv_file):
    words = [word for word in ROLES if word not in ("-k", 4)]
    result = shoal_command("compare", csv_file.name, *words, *ASKED, "-k", "4,6", "--methods", "mdav")

    assert result.exit_code == 0
    assert "Every choice: In every group the values of 'diagnosis'" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--t-closeness", "diagnosis"), "has to be COLUMN=VALUE"),
        (("--t-closeness", "diagnosis="), "t must be a number"),
        (("--t-closeness", "diagnosis=0"), "t must be above 0"),
        (("--t-closeness", "diagnosis=0.1,wight=2"), "Did you mean 'weight'?"),
        (("--t-closeness", "diagnosis=0.1,t=2"), "'t' is given twice"),
        (("--t-closeness", "age=0.1"), "whose role is quasi-identifier"),
        (("--l-diversity", "diagnosis=9"), "have 3 different values"),
        (("--l-diversity", "diagnosis=2,kind=many"), "kind must be one of"),
        (("--t-closeness", "diagnosis=0.1", "--rho", 0.5), "cannot be combined"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_what_cannot_be_promised_is_refused_in_a_paragraph_and_nothing_is_written(
    folder, csv_file, words, message, dry
):
    result = shoal_command("anonymize", csv_file.name, *ROLES, *words, "-o", "a.csv", *dry)

    assert result.exit_code == 2
    assert message in result.stderr
    assert is_one_paragraph(result.stderr)
    assert not (folder / "a.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--by", "income", "--t-closeness", "diagnosis=0.0001"), "fewer than k=4 records"),
        (("--subject", "sex"), "only 2 subjects"),
        (("--household", "sex"), "no quasi-identifier is the same"),
    ],
)
def test_a_dry_run_refuses_what_the_run_would_refuse(folder, csv_file, words, message):
    quasi = "age,zip" if "--by" in words else "age,zip,income"
    given = ("--quasi-identifiers", quasi, "--confidential", "diagnosis", "--identifiers", "name,sex", "-k", 4, *words)
    for last in ((), ("--dry-run",)):
        result = shoal_command("anonymize", csv_file.name, *given, "-o", "a.csv", *last)

        assert result.exit_code == 2
        assert message in result.stderr


def test_a_dry_run_says_what_is_promised(folder, csv_file):
    result = shoal_command("anonymize", csv_file.name, *ROLES, *ASKED, "-o", "a.csv", "--dry-run")

    assert result.exit_code == 0
    assert "t-closeness: diagnosis" in result.stdout
    assert [path.name for path in folder.iterdir()] == [csv_file.name]


@pytest.mark.parametrize("command", ["anonymize", "audit", "compare"])
def test_every_model_of_the_registry_has_its_option_and_a_sentence(command):
    text = " ".join(shoal_command(command, "--help").stdout.split())

    for name in MODELS:
        assert f"--{name} COLUMN=" in text


def test_a_column_with_an_equals_sign_stands_in_quotes():
    (found,) = options.models_of({"model__l_diversity": ('"a=b"=2,kind=recursive,c=3',)})

    assert found == LDiversity("a=b", l=2, kind="recursive", c=3)


@pytest.mark.parametrize("command", ["anonymize", "compare"])
def test_models_have_an_option_each_and_none_together(command):
    result = shoal_command(command, "people.csv", "--models", "t-closeness")

    assert result.exit_code == 2
    assert re.search("No such option:? '?--models", result.stderr)  # as click words it, in one version or another
