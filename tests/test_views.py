"""Results as frames and as tables of HTML: the names and units of the JSON, escaped, without values of the table."""

import re

import narwhals as nw
import pyarrow as pa
import pytest

import shoal

PLANTED = "Zaphod Beeblebrox"
BAD = "<script>alert(1)</script>"
PEOPLE = pa.table(
    {
        "age": [20, 21, 40, 44, 60, 61, 62, 80],
        BAD: ["a", "b", "a", "b", "c", "c", "a", "b"],
        "illness": [PLANTED, "y", PLANTED, "y", PLANTED, "y", PLANTED, "y"],
    }
)
ROLES = {"quasi_identifiers": ["age", BAD], "confidential": ["illness"]}

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")


@pytest.fixture(scope="module")
def release():
    return shoal.anonymize(PEOPLE, k=2, seed=1, models=shoal.LDiversity("illness", l=2), **ROLES)


@pytest.fixture(scope="module")
def comparison():
    return shoal.compare(
        PEOPLE, k=[2, 3, 7], methods=["mdav"], seed=1, models=shoal.LDiversity("illness", l=2), **ROLES
    )


def rows_of(frame):
    assert isinstance(frame, nw.DataFrame)
    return frame.rows(named=True)


def test_a_frame_has_a_row_for_each_column_choice_or_release(release, comparison):
    loss, utility = rows_of(release.loss.to_frame()), rows_of(release.utility.to_frame())
    (verdict,), (risk,) = rows_of(release.verdict.to_frame()), rows_of(release.risk.to_frame())
    inspected = rows_of(shoal.inspect(PEOPLE).to_frame())

    assert [row["column"] for row in loss] == ["age", BAD]
    assert loss[0]["il"] == release.loss.to_dict()["columns"]["age"]["il"]
    assert utility[0]["mean"] == release.utility.to_dict()["numeric"]["columns"]["age"]["mean"]
    assert utility[0]["hellinger"] is None
    assert utility[1]["hellinger"] == release.utility.to_dict()["nominal"][BAD]["hellinger"]
    assert verdict["smallest"] == release.verdict.to_dict()["smallest"] == release.verdict.smallest
    assert verdict["confidential.illness.distinct"] == verdict["models.0.value"] == 2
    assert risk["linkage.dld"] == release.risk.to_dict()["linkage"]["dld"]
    assert [row["k"] for row in rows_of(comparison.to_frame())] == [choice.k for choice in comparison.choices]
    assert [row["name"] for row in inspected] == PEOPLE.column_names
    assert release.loss.to_frame().to_pandas().shape[0] == 2


def test_notebooks_show_small_tables_without_harm_or_values(release, comparison):
    audit = shoal.audit(release.published, k=2, models=shoal.LDiversity("illness", l=2), **ROLES)
    pages = [shoal.inspect(PEOPLE)._repr_html_(), comparison._repr_html_(), audit._repr_html_()]

    for page in pages:
        assert page.startswith("<table><caption>")
        assert "<script" not in page
        assert PLANTED not in page
        assert set(re.findall(r"</?(\w+)", page)) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert "holds" in pages[2]
    assert "2 found, 2 asked for" in pages[2]
    assert "recommended" in pages[1]
    assert "proposed role" in pages[0]


def test_an_audit_that_asks_nothing_promises_nothing():
    told = shoal.audit(PEOPLE, quasi_identifiers="age")._repr_html_()

    assert "<caption>Audit</caption>" in told
    assert "holds" not in told


def test_what_inspect_finds_in_confidential_columns_a_release_warns_of_too():
    people = pa.table({"age": list(range(60)), "pay": [f"{1000 + 7 * n} EUR" for n in range(60)]})
    found = {(one.column, one.name) for one in shoal.inspect(people).findings}
    asked = {"k": 3, "seed": 1, "quasi_identifiers": "age", "confidential": "pay", "accept": ["published-identifier"]}
    release = shoal.anonymize(people, **asked)

    assert ("pay", "numbers-with-unit") in found
    assert any("'pay'" in text and "a unit" in text for text in release.warnings)
    with pytest.raises(shoal.ShoalError, match=r"'pay'.* a unit .*A model refers to it"):
        shoal.anonymize(people, **asked, models=[shoal.LDiversity("pay", l=2)])


def test_an_index_that_is_no_column_or_has_no_role_is_named_as_such():
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame({"age": [1, 2, 3, 4], "town": list("aabb")})
    asked = {"k": 2, "seed": 1, "quasi_identifiers": "age", "confidential": "town"}
    drop = re.escape("drop it: frame.reset_index(drop=True)")

    with pytest.raises(shoal.SchemaError, match=rf"index of the data frame is read as a column, 'index', .*{drop}"):
        shoal.anonymize(people[people.age > 1], **asked)
    with pytest.raises(shoal.SchemaError, match=rf"index of the data frame is read as a column, 'person', .*{drop}"):
        shoal.anonymize(people.rename_axis("person"), **asked)
    with pytest.raises(
        shoal.SchemaError, match=r"only counts its records\. To make it a column: frame\.reset_index\(\)"
    ):
        shoal.anonymize(people, identifiers="index", **asked)
    assert shoal.anonymize(people.rename_axis("person"), identifiers="person", **asked).verdict.holds
    assert "the index of the data frame" in str(shoal.inspect(people[people.age > 1]))
