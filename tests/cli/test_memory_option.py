import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from shell import is_one_paragraph, shoal_command

from shoal.job import Input
from shoal.spelling import option_name

N = 300
PEOPLE = pa.table({"age": [20 + i % 61 for i in range(N)], "income": [100 * i % 77 for i in range(N)]})
ROLES = ("-k", 5, "--quasi-identifiers", "age,income", "--seed", 1)


@pytest.fixture
def people(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_a_limit_of_memory_makes_and_audits_the_same_release_as_its_job(people, tmp_path):
    saved = ("--save-job", tmp_path / "job.toml")
    made = shoal_command("anonymize", people, *ROLES, "--memory", "500MB", "-o", tmp_path / "r.parquet", *saved)
    audited = shoal_command(
        "audit", tmp_path / "r.parquet", "--quasi-identifiers", "age,income", "-k", 5, "--memory", "1GB"
    )
    before = (tmp_path / "r.parquet").read_bytes()
    again = shoal_command("run", tmp_path / "job.toml", "--force")

    assert (made.exit_code, audited.exit_code, again.exit_code) == (0, 0, 0)
    assert "holds: every class has at least" in made.stdout
    assert 'memory = "500MB"' in (tmp_path / "job.toml").read_text()
    assert (tmp_path / "r.parquet").read_bytes() == before


def test_a_dry_run_reads_no_record(people, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.sources.batches.Batches.read", None)
    done = shoal_command("anonymize", people, *ROLES, "--engine", "disk", "-o", tmp_path / "r.parquet", "--dry-run")

    assert done.exit_code == 0
    assert "in blocks on disk" in done.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--memory", "few"), "--memory few is not a size"),
        (("--memory", "1GB", "--engine", "memory"), "applies to --engine disk"),
        (("--memory", "1GB", "--method", "mdav"), "use --engine memory"),
    ],
)
def test_refusals_speak_of_options(people, tmp_path, given, words):
    done = shoal_command("anonymize", people, *ROLES, *given, "-o", tmp_path / "r.parquet")

    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert is_one_paragraph(done.stderr)


def test_lists_of_records_need_memory(people):
    done = shoal_command("audit", people, "--quasi-identifiers", "age", "-k", 2, "--memory", "1GB", "--list")

    assert done.exit_code == 2
    assert "Single records, originals and linked records need all records in memory" in done.stderr
    assert "Leave them out, or --memory." in done.stderr


READING = {
    "delimiter": ",",
    "encoding": "cp1252",
    "decimal": ".",
    "quote": "'",
    "null_values": "NA",
    "header": None,
    "names": "years,income",
    "thousands": ",",
    "date_format": "%d.%m.%Y",
    "max_unpacked_gb": 1,
    "fill_keys": None,
    "sheet": "People",
    "header_row": 2,
    "comment": "#",
    "blanks": "keep",
    "catalog": "labels.sas7bcat",
    "format": "csv",
    "unit": "after",
    "skip_rows": "1-3,300",
    "skip_where": "age=21",
    "table": "people",
    "query": "SELECT 1",
}


def test_every_reading_option_is_tried_here():
    assert READING.keys() == Input.model_fields.keys() - {"path", "fields"}


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_reading_option_works_on_disk_or_is_refused_by_name(people, tmp_path, name, ending):
    path = people if ending == ".parquet" else tmp_path / "people.csv"
    if ending == ".csv":
        pyarrow.csv.write_csv(PEOPLE, path)
    option, value = option_name(name), READING[name]
    given = (option, *(() if value is None else (value,)))
    done = shoal_command(
        "anonymize", path, *ROLES, "--memory", "500MB", *given, "-o", tmp_path / "r.parquet", "--dry-run"
    )
    in_memory = shoal_command("anonymize", path, *ROLES, *given, "-o", tmp_path / "r.parquet", "--dry-run")

    assert done.exit_code in (0, 2)
    if done.exit_code:
        assert is_one_paragraph(done.stderr)
        assert option in done.stderr or "years" in done.stderr or "'age'" in done.stderr
    if ending == ".csv":
        assert done.exit_code == in_memory.exit_code
