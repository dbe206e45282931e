from shell import ROLES, shoal_command

import shoal


def job_file(csv_file, seed=7):
    job = shoal.Job.of(
        k=5,
        seed=seed,
        roles={
            "identifiers": ["name"],
            "quasi_identifiers": ["age", "zip", "sex", "income"],
            "confidential": ["diagnosis"],
        },
        input={"path": str(csv_file)},
        output={"path": str(csv_file.with_name("release.parquet"))},
    )
    path = csv_file.with_name("job.toml")
    path.write_text(job.to_toml())
    return path


def test_a_job_gives_the_release_of_the_command(csv_file):
    shoal_command("run", job_file(csv_file))
    shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "--seed", 7, "-o", csv_file.with_name("other.parquet"))

    assert csv_file.with_name("release.parquet").read_bytes() == csv_file.with_name("other.parquet").read_bytes()


def test_a_job_runs_twice_with_the_same_bytes(csv_file):
    job = job_file(csv_file)
    shoal_command("run", job)
    first = csv_file.with_name("release.parquet").read_bytes()
    result = shoal_command("run", job, "--force", "--threads", 1)

    assert result.exit_code == 0, result.output
    assert csv_file.with_name("release.parquet").read_bytes() == first


def test_a_dry_run_writes_nothing(csv_file):
    result = shoal_command("run", job_file(csv_file), "--dry-run")

    assert result.exit_code == 0, result.output
    assert "Nothing was written." in result.stdout
    assert {file.name for file in csv_file.parent.iterdir()} == {"people.csv", "job.toml"}
