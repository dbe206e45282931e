import csv
import json

import pytest
from shell import SECRETS, is_one_paragraph, shoal_command

PUBLIC = (
    *("--bounds", "age=0,120", "--bounds", "income=0,5000", "--categories", "sex=f,m"),
    *("--identifiers", "name,diagnosis,zip"),
)


@pytest.mark.parametrize("joint", [(), ("--joint",)])
def test_a_release_and_its_manifest_are_written_and_told_about(csv_file, joint):
    out = csv_file.parent / "release.csv"
    result = shoal_command("dp", csv_file, "--epsilon", 1, *PUBLIC, *joint, "-o", out)

    assert result.exit_code == 0, result.output
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    assert set(rows[0]) == {"age", "sex", "income"}
    manifest = json.loads((csv_file.parent / "release.csv.public.json").read_text())
    assert manifest["epsilon"] == 1
    assert "internal" not in " ".join(file.name for file in csv_file.parent.iterdir())
    assert not any(secret in result.output + json.dumps(manifest) for secret in SECRETS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--epsilon", 0, *PUBLIC), "above 0"),
        (("--epsilon", -1, *PUBLIC), "above 0"),
        (("--epsilon", 1, *PUBLIC[2:]), "without looking at the data: --bounds age=0,120; or drop the column"),
        (("--epsilon", 1, "--bounds", "age=9,1", *PUBLIC[2:]), "reversed"),
        (("--epsilon", 1, "--bounds", "age", *PUBLIC[2:]), "COLUMN=VALUE"),
        (("--epsilon", 1, *PUBLIC, "--bounds", "age=0,1"), "given twice"),
        (("--epsilon", 1, *PUBLIC, "--shares", "age=0"), "above 0"),
        (("--epsilon", 1, *PUBLIC, "--joint", "--shares", "age=2"), "for marginals"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(csv_file, arguments, words):
    result = shoal_command("dp", csv_file, *arguments, "-o", csv_file.parent / "release.csv")

    assert result.exit_code == 2
    assert words in result.stderr
    assert is_one_paragraph(result.stderr.splitlines(keepends=True)[-1])
    assert not any(secret in result.stderr for secret in SECRETS)
    assert [file.name for file in csv_file.parent.iterdir()] == ["people.csv"]
