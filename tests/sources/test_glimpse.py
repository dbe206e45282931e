import gzip

import pytest

from shoal.sources import Reading
from shoal.sources.glimpse import FIRST, LAST, text_glimpse


@pytest.mark.parametrize("n_lines", [0, 1, FIRST, FIRST + 1, FIRST + LAST, FIRST + LAST + 1, 300_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_line_is_shown_once_by_its_number_first_and_last(tmp_path, n_lines, end):
    lines = [f"line {i}, of a file" for i in range(1, n_lines + 1)]
    (tmp_path / "a.csv").write_bytes(end.join(lines).encode())
    found = text_glimpse(tmp_path / "a.csv", Reading())
    shown = [(number, cells[0]) for number, cells in found.first + found.last]

    assert shown == [(i, lines[i - 1]) for i in range(1, n_lines + 1) if i <= FIRST or i > max(FIRST, n_lines - LAST)]


def test_what_cannot_be_decoded_is_shown_with_marks(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress("größe;ort\n1;2\n".encode("cp1252")))
    (tmp_path / "b.csv").write_bytes("größe;ort\n1;2\n".encode("utf-16"))

    assert text_glimpse(tmp_path / "a.csv.gz", Reading()).first[0] == (1, ["gr\ufffd\ufffde;ort"])
    assert text_glimpse(tmp_path / "a.csv.gz", Reading(encoding="cp1252")).header == ["größe", "ort"]
    assert text_glimpse(tmp_path / "b.csv", Reading()).header == ["größe", "ort"]
