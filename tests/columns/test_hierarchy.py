from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.columns.hierarchy import Hierarchy, coverage, hierarchy_of, read_hierarchy
from shoal.errors import FileError, SchemaError

JOBS = [("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*")]


def chunked(values):
    return pa.chunked_array([values])


def labels_above(tree, leaf):
    return [tree.labels[node] for node in tree.nodes[tree.leaves.index(leaf)]]


@pytest.fixture
def written(tmp_path):
    def write(text, name="jobs.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@st.composite
def trees(draw):
    """Return the rows of a tree with uneven branches, in ARX's form."""
    n_leaves, n_levels = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rows = [[f"leaf {i}"] for i in range(n_leaves)]
    groups = [[i] for i in range(n_leaves)]
    for level in range(1, n_levels):
        merged = {}
        for members in groups:
            merged.setdefault(draw(st.integers(0, max(len(groups) // 2, 0))), []).append(members)
        for number, parts in merged.items():
            for leaf in [leaf for part in parts for leaf in part]:
                rows[leaf].append(rows[leaf][-1] if len(parts) == 1 else f"group {level}.{number}")
        groups = [[leaf for part in parts for leaf in part] for parts in merged.values()]
    return [(*row, "*") for row in rows]


@given(trees())
def test_every_node_counts_its_leaves_and_levels_lead_to_one_root(rows):
    tree = Hierarchy.of_rows(rows)

    assert tree.leaves == tuple(row[0] for row in rows)
    assert set(tree.nodes[:, -1]) == {tree.root}
    assert [int((tree.nodes == node).any(axis=1).sum()) for node in range(len(tree.labels))] == tree.sizes.tolist()
    for path, row in zip(tree.nodes, rows, strict=True):
        assert [tree.labels[node] for node in path] == list(row)


@given(trees(), st.randoms(use_true_random=False))
def test_the_common_ancestor_is_the_lowest_node_above_all_leaves_of_a_cell(rows, random):
    tree = Hierarchy.of_rows(rows)
    leaf = np.array([random.randrange(tree.n_leaves) for _ in range(20)])
    cells = np.array([random.randrange(4) for _ in range(20)])
    found = tree.common(leaf, cells, 4)

    for cell in set(cells.tolist()):
        paths = tree.nodes[leaf[cells == cell]]
        lowest = next(level for level in range(tree.n_levels) if len(set(paths[:, level].tolist())) == 1)
        assert found[cell] == paths[0, lowest]


def test_ancestors_stay_at_a_level_or_above():
    tree = Hierarchy.of_rows(JOBS)
    found = tree.common(np.array([0, 2]), np.array([0, 1]), 2, lowest=1)

    assert [tree.labels[node] for node in found] == ["health", "food"]


@pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
def test_arx_files_are_read_whatever_separates_their_levels(written, delimiter):
    tree = read_hierarchy(written("\n".join(delimiter.join(row) for row in JOBS)))

    assert labels_above(tree, "cook") == ["cook", "food", "*"]


def test_lists_of_child_and_parent_are_the_same_tree_with_short_branches_repeated(written):
    listed = "child,parent\nnurse,health\ndoctor,health\nhealth,*\nnone,*\n*,\n"
    tree = read_hierarchy(written(listed))

    assert labels_above(tree, "nurse") == ["nurse", "health", "*"]
    assert labels_above(tree, "none") == ["none", "none", "*"]
    assert tree.sizes[tree.by_label["*"]] == 3


def test_labels_in_quotes_keep_their_commas(written):
    tree = read_hierarchy(written('17,"[15, 20)",*\n18,"[15, 20)",*\n'))

    assert labels_above(tree, "18") == ["18", "[15, 20)", "*"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a;b\nb;c\nc;a\n", "has a cycle"),
        ("a;b\nb;*\nx;y\ny;x\n", "has a cycle"),
        ("a;g;*\nb;g;**\n", "has 2 roots: rows 1 and 2"),
        ("a;g\nb;h\n", "has 2 roots"),
        ("a;g;*\nb;g;*\na;h;*\n", "a leaf twice: rows 1 and 3"),
        ("a;g\na;h\ng;*\nh;*\n", "twice: row 2"),
        ("a;g;h;*\nb;g;i;*\n", "inconsistent levels: rows 1 and 2"),
        ("a;g;*\nb;*\nc;g;*\n", "3 levels in row 1 and 2 in row 2"),
        ("a;x;x;*\nb;y;x;*\nc;z;y;*\nd;y;x;*\n", "one label for different groups"),
        ("a;g or missing;*\nb;h;*\n", "or missing"),
        ("a;g;\nb;g;\n", "an empty label in row 1"),
        ("a;g;*\nb;;*\n", "an empty label in row 2"),
        ("a\nb\n", "not a table of values and groups"),
        ("", "not a table of values and groups"),
    ],
)
def test_what_is_no_hierarchy_is_refused_in_a_paragraph(written, text, said):
    with pytest.raises(SchemaError, match=said) as error:
        read_hierarchy(written(text))

    assert "\n" not in str(error.value)


def test_labels_in_quotes_keep_their_line_breaks(written):
    assert read_hierarchy(written('"a\n\nb";g;*\n\nc;g;*\n')).leaves == ("a\n\nb", "c")


def test_a_file_that_cannot_be_read_is_said_so(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"caf\xe9;*\n")
    (tmp_path / "quote.csv").write_text('"a;g;*\n' + "b;g;*\n" * 30_000)

    with pytest.raises(FileError, match="never closed"):
        read_hierarchy(tmp_path / "quote.csv")

    with pytest.raises(FileError, match="not UTF-8"):
        read_hierarchy(tmp_path / "latin.csv")
    with pytest.raises(FileError, match="cannot be read"):
        read_hierarchy(tmp_path / "none.csv")


def test_values_missing_from_it_are_counted_not_shown_and_put_under_the_root_on_request(written):
    file = str(written("\n".join(";".join(row) for row in JOBS)))
    values = chunked(["nurse", "Nurse", "pilot", "pilot", None])

    with pytest.raises(SchemaError) as error:
        hierarchy_of(file, values, "job")
    tree = hierarchy_of(file, values, "job", outside="root")

    assert "3 of 5 records" in str(error.value)
    assert "(2 different). 1 of them would be listed but for spelling" in str(error.value)
    assert "pilot" not in str(error.value)
    assert labels_above(tree, "pilot") == ["pilot", "pilot", "*"]
    assert tree.sizes[tree.root] == 5
    assert labels_above(tree, "cook") == ["cook", "food", "*"]
    assert coverage(tree, values).absent == ()


@pytest.mark.parametrize("value", ["health", "nurse or missing"])
def test_values_under_the_root_are_not_written_like_something_else(written, value):
    file = str(written("\n".join(";".join(row) for row in JOBS)))

    with pytest.raises(SchemaError, match=r"1 of the values in column 'job'.* would be ambiguous") as error:
        hierarchy_of(file, chunked(["nurse", value, "pilot"]), "job", outside="root")
    assert value not in str(error.value)
    assert labels_above(hierarchy_of(file, chunked(["*"]), "job", outside="root"), "*") == ["*", "*", "*"]


def test_numbers_and_dates_are_leaves_as_they_are_written(written):
    tree = read_hierarchy(written("17;young;*\n18;young;*\n40;old;*\n"))

    assert tree.leaf_codes(chunked([18.0, 40.0, 17.5, None])).tolist() == [1, 2, -1, -1]
    assert tree.leaf_codes(chunked([18, 40])).tolist() == [1, 2]


def test_rules_build_prefixes_steps_and_periods():
    codes = hierarchy_of("prefix:1,3", chunked(["A01", "A01.1", "B20.5"]), "icd")
    ages = hierarchy_of("steps:5,10", chunked([17, 23]), "age")
    days = hierarchy_of("calendar:quarter,decade", chunked([date(2024, 5, 31), date(2021, 1, 7)]), "day")

    assert labels_above(codes, "A01.1") == ["A01.1", "A01*", "A*", "*"]
    assert labels_above(codes, "A01") == ["A01", "A01*", "A*", "*"]
    assert labels_above(ages, "17") == ["17", "[15, 20)", "[10, 20)", "*"]
    assert labels_above(days, "2021-01-07") == ["2021-01-07", "2021-Q1", "2020s", "*"]


@pytest.mark.parametrize(
    ("number", "label"),
    [
        (0.3, "[0.3, 0.4)"),
        (0.7, "[0.7, 0.8)"),
        (-0.3, "[-0.3, -0.2)"),
        (-0.05, "[-0.1, 0)"),
        (2**60 + 7, "[1152921504606846983, 1152921504606846983.1)"),
        (1e22, "[10000000000000000000000, 10000000000000000000000.1)"),
    ],
)
def test_the_range_of_a_number_holds_it_as_both_are_written(number, label):
    tree = hierarchy_of("steps:0.1,0.5", chunked([number]), "x")

    assert tree.labels[tree.nodes[0, 1]] == label


@pytest.mark.parametrize(
    ("rule", "values", "said"),
    [
        ("prefix:3,1", ["abc"], "ascending"),
        ("prefix:x", ["abc"], "lengths of the prefixes"),
        ("prefix:9", ["abc"], "the longest code has 3"),
        ("steps:5,7", [1, 2], "multiple of the one before"),
        ("steps:0", [1, 2], "above 0"),
        ("steps:nan", [1, 2], "above 0"),
        ("steps:1e-400,1e999999999", [1, 2], "above 0"),
        ("steps:0.003,1e30", [1, 2], "multiple of the one before"),
        ("steps:5", ["a"], "groups numbers"),
        ("calendar:week", [date(2024, 1, 1)], "no period 'week'"),
        ("calendar", ["a"], "groups dates"),
        ("prefx:1", ["abc"], "Did you mean 'prefix'"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(rule, values, said):
    with pytest.raises(SchemaError, match=said):
        hierarchy_of(rule, chunked(values), "code")
