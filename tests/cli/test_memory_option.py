import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import is_one_paragraph, shoal_command

N = 300
PEOPLE = pa.table({"age": [20 + i % 61 for i in range(N)], "income": [100 * i % 77 for i in range(N)]})
ROLES = ("-k", 5, "--quasi", "age,income", "--seed", 1)


@pytest.fixture
def people(tmp_path):
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_a_limit_of_memory_makes_and_audits_the_same_release_as_its_job(people, tmp_path):
    saved = ("--save-job", tmp_path / "job.toml")
    made = shoal_command("anonymize", people, *ROLES, "--memory", "500MB", "-o", tmp_path / "r.parquet", *saved)
    audited = shoal_command("audit", tmp_path / "r.parquet", "--quasi", "age,income", "-k", 5, "--memory", "1GB")
    before = (tmp_path / "r.parquet").read_bytes()
    again = shoal_command("run", tmp_path / "job.toml", "--force")

    assert (made.exit_code, audited.exit_code, again.exit_code) == (0, 0, 0)
    assert "holds: every class has at least" in made.stdout
    assert 'memory = "500MB"' in (tmp_path / "job.toml").read_text()
    assert (tmp_path / "r.parquet").read_bytes() == before


def test_a_dry_run_reads_no_record(people, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.table.batches.Batches.read", None)
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
    done = shoal_command("audit", people, "--quasi", "age", "-k", 2, "--memory", "1GB", "--list")

    assert done.exit_code == 2
    assert "--list, --risks and --original need all records in memory" in " ".join(done.stderr.split())
