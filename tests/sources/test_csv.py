import csv
import gzip
import io
import tracemalloc
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shoal import FileError, ParameterError, SchemaError
from shoal.sources import read, write
from strategies import arrow_tables, texts

HALF_PAST_ONE = datetime(2020, 1, 1, 13, 30, tzinfo=UTC)


@pytest.fixture
def file(tmp_path):
    """Return what makes a file of some content."""

    def make(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def column(path, name="b", **options):
    found = read(path, **options).arrow[name]
    return found.type, found.to_pylist()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_delimiter_is_found_and_told(file, delimiter, end):
    lines = [["id", "full name", "x"], ["1", "a", "2"], ["2", f'"b{delimiter} c"', "3"], ["3", '"two\nlines"', "4"]]
    table = read(file(end.join(map(delimiter.join, lines))))

    assert table.receipt.found.delimiter == delimiter
    assert table.arrow.to_pydict() == {
        "id": [1, 2, 3],
        "full name": ["a", f"b{delimiter} c", "two\nlines"],
        "x": [2, 3, 4],
    }


def test_what_was_found_can_be_given_and_gives_the_same(file):
    path = file("a;b\n1,5;x\n2,25;y\n")
    found = read(path).receipt.found

    assert (found.delimiter, found.decimal, found.encoding, found.quote) == (";", ",", "utf-8", '"')
    assert read(path, delimiter=";", decimal=",", encoding="utf-8", quote='"').arrow == read(path).arrow


@pytest.mark.parametrize(
    ("texts", "type_", "values"),
    [
        (["1", "-2", ""], pa.int64(), [1, -2, None]),
        ([" 1", "2 "], pa.int64(), [1, 2]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["1", "1e3"], pa.float64(), [1.0, 1000.0]),
        (["01234", "12345"], pa.string(), ["01234", "12345"]),
        (["0", "0.5"], pa.float64(), [0.0, 0.5]),
        (["0x1F", "1"], pa.string(), ["0x1F", "1"]),
        (["+49151", "+49152"], pa.string(), ["+49151", "+49152"]),
        (["99999999999999999999", "1"], pa.string(), ["99999999999999999999", "1"]),
        (["NA", "1"], pa.string(), ["NA", "1"]),
        (["nan", "inf"], pa.string(), ["nan", "inf"]),
        (["true", "FALSE"], pa.bool_(), [True, False]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["2020-02-29", "1999-12-31"], pa.date32(), [date(2020, 2, 29), date(1999, 12, 31)]),
        (["2020-02-30", "1999-12-31"], pa.string(), ["2020-02-30", "1999-12-31"]),
        (["2020-01-01", "2020-01-01 10:00"], pa.timestamp("s"), [datetime(2020, 1, 1), datetime(2020, 1, 1, 10)]),
        (["2020-01-01T10:00:00.25"], pa.timestamp("ms"), [datetime(2020, 1, 1, 10, 0, 0, 250000)]),
        (["2020-01-01T10:00+01:00"], pa.timestamp("s", "+01:00"), [datetime(2020, 1, 1, 9, tzinfo=UTC)]),
        (["2020-01-01 10:00-0330", "2020-01-01 10:00-03:30"], pa.timestamp("s", "-03:30"), 2 * [HALF_PAST_ONE]),
        (["2020-01-01T13:30Z", "2020-01-01T13:30+00:00"], pa.timestamp("s", "UTC"), 2 * [HALF_PAST_ONE]),
        (["2020-01-01T10:00+01", "2020-07-01T10:00+02"], pa.string(), ["2020-01-01T10:00+01", "2020-07-01T10:00+02"]),
        (["10:00", "11:00"], pa.string(), ["10:00", "11:00"]),
        (["", ""], pa.string(), [None, None]),
        (['""', ""], pa.string(), ["", None]),
        (['"1"', '""'], pa.int64(), [1, None]),
    ],
)
def test_a_type_is_given_only_where_nothing_is_lost(file, texts, type_, values):
    assert column(file("a,b\n" + "".join(f"x,{text}\n" for text in texts))) == (type_, values)


@pytest.mark.parametrize(("last", "type_"), [("x", pa.string()), ("1.5", pa.float64()), ("007", pa.string())])
def test_a_type_is_decided_by_the_whole_column_however_late(file, last, type_):
    path = file("a,b\n" + "1,1\n" * 2_000_000 + f"1,{last}\n")

    assert column(path)[0] == type_


def test_only_an_empty_field_is_missing_unless_told(file):
    path = file("a,b\nNA,1\nnull,NA\n,-9\n")

    assert column(path, "a") == (pa.string(), ["NA", "null", None])
    assert column(path, "b", null_values=["NA", "-9"]) == (pa.int64(), [1, None, None])


def test_a_decimal_comma_is_found_in_the_whole_file_and_both_marks_together_are_refused(file):
    assert column(file("a;b\nx;1,5\ny;2\n")) == (pa.float64(), [1.5, 2.0])
    assert column(file("a;b\n" + "x;1\n" * 300_000 + "y;2,5\n"))[0] == pa.float64()
    mixed = file("a;b\n1.5;1,5\n")
    with pytest.raises(FileError, match="decimal commas in 'b' and decimal points in 'a'"):
        read(mixed)
    assert column(mixed, decimal=".") == (pa.string(), ["1,5"])
    assert column(mixed, decimal=",") == (pa.float64(), [1.5])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("34,Smith\n35,Jones\n", r"looks like a record.*column\(s\) 1 hold a number"),
        ("Smith,2020-01-01\nJones,2021-01-01\n", r"looks like a record.*column\(s\) 2 hold"),
        ("Smith,Smith\nJones,Jones\n", r"column\(s\) 2 the name of an earlier column"),
        ("Smith,\nJones,x\n", r"column\(s\) 2 without a name"),
    ],
)
def test_a_first_record_never_becomes_the_header_nor_part_of_the_message(file, content, complaint):
    with pytest.raises(FileError, match=complaint) as caught:
        read(file(content))

    assert not {"Smith", "Jones", "34", "2020"} & set(str(caught.value).replace("'", " ").split())


def test_a_header_can_be_vouched_for_replaced_or_given(file):
    years, bare = file("2019,2020\n1,2\n", "years.csv"), file("1,2\n3,4\n", "bare.csv")

    assert read(years, header=True).names == ("2019", "2020")
    assert read(years, header=True, names=["a", "b"]).arrow.to_pydict() == {"a": [1], "b": [2]}
    assert read(bare, names=["a", "b"]).arrow.to_pydict() == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(ParameterError, match=r"3 names, but the first line .* 2 fields"):
        read(bare, names=["a", "b", "c"])
    with pytest.raises(ParameterError, match="header=False"):
        read(bare, header=False)
    with pytest.raises(SchemaError, match="same name: 'a'"):
        read(file("a,a\n1,2\n"), header=True)


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file_is_refused(file, content):
    with pytest.raises(FileError, match="is empty"):
        read(file(content))


def test_a_header_alone_is_a_table_without_records(file):
    assert read(file("a,b\n")).n_records == 0


def test_broken_records_are_counted_and_placed_but_not_shown(file):
    content = 'a,b\n1,2\n\n1,SECRET,3\n"two\nlines",SECRET\nSECRET\n' + "1,2\n" * 10 + "1,2,3\n" * 9
    with pytest.raises(
        FileError, match=r"11 records .* 2 fields, .* 1 or 3: line\(s\) 4, 7, 18, 19, 20 and 6 more"
    ) as caught:
        read(file(content))

    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("title", ["Office of statistics", "Office of statistics;;", "sep=;", "2024;;;"])
def test_a_header_below_titles_is_proposed_and_read_when_named(file, title):
    people = "".join(f"{i};x{i % 3};{i}\n" for i in range(30))
    path = file(f"{title}\r\n\nid;group;size\n{people}")
    with pytest.raises(FileError, match="If line 3 is the header, give header_row=3") as caught:
        read(path)
    table = read(path, header_row=3)

    assert "statistics" not in str(caught.value)
    assert table.names == ("id", "group", "size")
    assert table.n_records == 30
    assert table.receipt.found.delimiter == ";"
    assert read(path, header_row=3, names=["a", "b", "c"]).arrow["a"].to_pylist() == [*range(30)]


def test_a_header_that_is_not_there_is_refused_and_a_title_asked_about(file):
    with pytest.raises(FileError, match=r"header_row=9 is given, but 'people\.csv' has 3 lines"):
        read(file("a,b\n1,2\n3,4\n"), header_row=9)
    with pytest.raises(FileError, match=r"most lines below have several.*header=True"):
        read(file("streets of the town\nstreet,town\n" + "Elm Street,Ulm\n" * 9))


def test_notes_below_the_records_are_left_out_by_their_numbers(file):
    path = file("People\na;b\n" + "1;2\n" * 5 + "Source: office\n1;2\nend;of;file\n")
    with pytest.raises(FileError, match=r'line\(s\) 8, 10\. .*skip_rows="6,8"') as caught:
        read(path, header_row=2)
    table = read(path, header_row=2, skip_rows="6,8")

    assert "Source" not in str(caught.value)
    assert table.arrow["a"].to_pylist() == [1] * 6
    assert table.receipt.left_out.tolist() == [5, 7]
    assert read(path, header_row=2, skip_rows="1,6,8").n_records == 5


@pytest.mark.parametrize(
    ("content", "line"),
    [('a,b\n1,"SECRET\n2,3\n', 2), ('a,b\n1,x\n1,5" SECRET\n', 3), ('a,b\n1,"x"SECRET"\n2,"y"\n', 2), ('a,b\n1,"', 2)],
)
def test_a_stray_quote_is_refused_before_it_swallows_records(file, content, line):
    path = file(content)
    with pytest.raises(FileError, match=f"first in line {line}") as caught:
        read(path)

    assert "SECRET" not in str(caught.value)
    assert read(path, quote="").n_records == content.count("\n", 4) + (not content.endswith("\n"))


def test_another_quote_can_be_given(file):
    assert column(file("a,b\n1,'x,\"y'\n"), quote="'")[1] == ['x,"y']


@pytest.mark.parametrize("offset", [5, (1 << 20) - 1, 1 << 20])
def test_a_file_in_another_encoding_is_refused_with_the_place_and_read_when_told(file, offset):
    content = b"a,b\n" + b"1,2\n" * (offset // 4 - 1) + b"x" * (offset % 4) + b"1,M\xfcnchen\n"
    path = file(content)
    at = content.index(b"\xfc")
    with pytest.raises(
        FileError, match=rf"byte at offset {at}, in line {content[:at].count(10) + 1},.*encoding="
    ) as caught:
        read(path)

    assert "nchen" not in str(caught.value)
    assert column(path, encoding="cp1252")[1][-1] == "München"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_byte_order_marks_are_no_part_of_a_name(file, encoding):
    path = file("é,b\n1,2\n".encode(encoding))

    assert read(path, encoding=encoding).names == ("é", "b")
    assert read(file("é,b\n1,2\n".encode("utf-8-sig"))).names == ("é", "b")


def test_utf_16_and_unknown_encodings_are_told_apart_from_text(file):
    with pytest.raises(FileError, match=r'offset 0, .*encoding="utf-16"'):
        read(file("a,b\n1,2\n".encode("utf-16")))
    with pytest.raises(FileError, match="holds a NUL character, in line 1"):
        read(file("a,b\n1,2\n".encode("utf-16-le")))
    with pytest.raises(ParameterError, match="klingon"):
        read(file("a,b\n1,2\n"), encoding="klingon")
    with pytest.raises(FileError, match="is not ascii: the byte at offset 6"):
        read(file("a,b\n1,é\n"), encoding="ascii")


@pytest.mark.parametrize(
    "option",
    [
        *({"delimiter": ""}, {"delimiter": "ab"}, {"quote": "''"}, {"decimal": "x"}),
        *({"decimal": ",", "delimiter": ","}, {"null_values": "NA"}, {"names": "ab"}),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(file, option):
    with pytest.raises(ParameterError, match=next(iter(option))):
        read(file("a,b\n1,2\n"), **option)


def test_only_the_columns_asked_for_are_taken_in_their_order(file):
    path = file("a,b,c\n1,2,3\n")

    assert read(path, columns=["c", "a"]).arrow.to_pydict() == {"c": [3], "a": [1]}
    with pytest.raises(SchemaError, match=r"no column 'd'\. .*Columns: a, b, c\."):
        read(path, columns=["d"])


def test_a_record_larger_than_a_block_is_read(file):
    long = "x" * (9 << 20)

    assert column(file(f"a,b\n1,{long}\n2,y\n")) == (pa.string(), [long, "y"])


def test_one_column_keeps_its_gaps(file, tmp_path):
    assert column(file("b\n1\n\n3\n")) == (pa.int64(), [1, None, 3])
    assert column(file("\n\r\nb\n1\n")) == (pa.int64(), [1])
    write(pa.table({"b": [None, "x", None]}), tmp_path / "out.csv")

    assert column(tmp_path / "out.csv")[1] == [None, "x", None]


def test_an_archive_is_read_and_one_cut_short_refused(file):
    packed = gzip.compress(b"a,b\n1,2\n" * 1)

    assert column(file(packed, "a.csv.gz"))[1] == [2]
    with pytest.raises(FileError, match="not a complete gzip file"):
        read(file(packed[:-9], "b.csv.gz"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrow=arrow_tables(), delimiter=st.sampled_from([",", ";", "\t", "|"]), decimal=st.sampled_from(".,"))
def test_what_is_written_is_read_again(tmp_path, arrow, delimiter, decimal):
    decimal = "." if delimiter == "," else decimal
    like = like_file(tmp_path, delimiter, decimal)
    write(arrow, tmp_path / "out.txt", like=like, force=True)
    content = io.StringIO((tmp_path / "out.txt").read_bytes().decode(), newline="")
    theirs = [record for record in csv.reader(content, delimiter=delimiter) if record]
    again = read(tmp_path / "out.txt", delimiter=delimiter, decimal=decimal).arrow

    assert {len(record) for record in theirs} == {arrow.num_columns}
    for name in arrow.column_names:
        check_column(arrow[name], again[name])


def like_file(folder, delimiter, decimal):
    path = folder / "like.txt"
    path.write_text(delimiter.join("ab") + "\n" + delimiter.join(["x", f"1{decimal}5"]) + "\n")
    return read(path, delimiter=delimiter)


def check_column(wrote, found):
    """Text may come back as the type that it looks like; everything else comes back as it was."""
    if pa.types.is_large_string(wrote.type):
        if pa.types.is_string(found.type):
            assert found.to_pylist() == wrote.to_pylist()
        return
    if wrote.null_count == len(wrote):
        assert found.null_count == len(found)
        return
    if pa.types.is_timestamp(wrote.type):
        # Summer and winter have different offsets, and such a column stays text, so that no hour is moved.
        values = [datetime.fromisoformat(v) if isinstance(v, str) else v for v in found.to_pylist()]
        assert [v and v.timestamp() for v in values] == [v and v.timestamp() for v in wrote.to_pylist()]
    else:
        assert found.to_pylist() == wrote.to_pylist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.none() | texts(), min_size=1))
@example(values=["", None, "01", '"', '""', "\n", "\r", "a\r\nb"])
def test_text_comes_back_letter_for_letter_with_empty_text_apart_from_missing(tmp_path, values):
    # A letter in the column keeps it text.
    arrow = pa.table({"a": pa.array([*values, "text"]), "b": pa.array([*map(str, range(len(values))), "x"])})
    write(arrow, tmp_path / "out.csv", force=True)

    assert read(tmp_path / "out.csv").arrow.to_pydict() == arrow.to_pydict()


def test_files_are_written_in_the_dialect_of_their_ending_or_of_the_file_that_came_in(file, tmp_path):
    arrow = pa.table({"a": [1.5, 2.0], "b": ["x;y", "=1+1"]})
    german = read(file("a;b\n1,5;x\n"))
    written = {}
    for name, like in [("a.csv", None), ("a.tsv", None), ("b.csv", german), ("b.tsv", german)]:
        write(arrow, tmp_path / name, like=like)
        written[name] = (tmp_path / name).read_text()

    assert written == {
        "a.csv": "a,b\n1.5,x;y\n2.0,=1+1\n",
        "a.tsv": "a\tb\n1.5\tx;y\n2.0\t=1+1\n",
        "b.csv": 'a;b\n1,5;"x;y"\n2,0;=1+1\n',
        "b.tsv": "a\tb\n1,5\tx;y\n2,0\t=1+1\n",
    }


def test_numbers_are_written_in_the_shortest_form_that_gives_them_back(tmp_path):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000), [0.1, -0.0, 5e-324, 1e22]])
    write(pa.table({"x": values}), tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]

    assert [float(line) for line in lines] == values.tolist()
    assert max(map(len, lines)) <= max(len(repr(v)) for v in values.tolist()) + 2
    assert read(tmp_path / "out.csv").arrow["x"].to_pylist() == values.tolist()


def test_the_same_table_gives_the_same_bytes_packed_or_not(tmp_path):
    arrow = pa.table({"x": np.arange(200_000), "t": ["é"] * 200_000})
    for name in ("a.csv", "b.csv", "a.csv.gz", "b.csv.gz"):
        write(arrow, tmp_path / name)

    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()


def test_what_csv_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(FileError, match="'l', 's', 'b' hold lists, structs, bytes"):
        write(pa.table({"l": [[1]], "s": [{"x": 1}], "b": [b"x"]}), tmp_path / "out.csv")

    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_holds_far_more_than_it_seems_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 5_000_000))
    monkeypatch.setattr("shoal.sources.unpacking.MAX_UNPACKED_GB", 0.001)
    tracemalloc.start()
    with pytest.raises(FileError, match=r"unpacks to more than 0\.001 GB.*max_unpacked_gb"):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 15e6
    assert read(path, max_unpacked_gb=0.1).n_records == 5_000_000


@pytest.mark.parametrize("most", [0, -1, float("nan"), True, "2"])
def test_a_bound_on_archives_is_a_number_above_0(tmp_path, most):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(ParameterError, match="max_unpacked_gb"):
        read(tmp_path / "a.csv.gz", max_unpacked_gb=most)


@pytest.mark.parametrize("encoding", [None, "cp1252", "utf-8"])
def test_a_nul_character_is_told_as_such(tmp_path, encoding):
    (tmp_path / "people.csv").write_bytes(b"age,city\n20,Turin\n30,Ro\0me\n")
    with pytest.raises(FileError, match="holds a NUL character, in line 3") as refused:
        read(tmp_path / "people.csv", encoding=encoding)

    assert "not UTF-8" not in str(refused.value)


def test_a_first_line_of_more_than_a_megabyte_is_not_taken_for_a_header(file):
    with pytest.raises(FileError, match=r"The first line of 'people\.csv' has more than 1 MB"):
        read(file("[" + '{"age": 20}, ' * 100_000 + "]\n1\n2\n"))
