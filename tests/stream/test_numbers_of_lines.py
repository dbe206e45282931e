"""Numbers in lines: what is read as one, what is refused, and that neither depends on the locale."""

import contextlib
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import kernels


def read(texts):
    """Return the numbers of a column of CSV, and the positions of those that are none."""
    reader = kernels.TextReader(["a", "b"], [0, 3], True, ";")
    _, _, lines, columns, bad, _ = reader.read(b"".join(text.encode() + b";\n" for text in texts), True)
    found = dict(zip(lines.tolist(), columns[0].tolist(), strict=True))
    assert all(fault == 3 for _, fault, _, _ in bad)
    return [found.get(position) for position in range(len(texts))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0), ("-0", -0.0), ("7", 7.0), ("+7", 7.0), ("007", 7.0), ("5.", 5.0), (".5", 0.5), ("-.5", -0.5),
        ("1e3", 1000.0), ("1E3", 1000.0), ("1e+3", 1000.0), ("1e-3", 0.001), ("+1.5e00", 1.5), (" 1 ", 1.0),
        ("9007199254740993", 9007199254740992.0), ("0.1", 0.1), ("2.2250738585072011e-308", 2.2250738585072011e-308),
        ("5e-324", 5e-324), ("1e-400", 0.0), ("1e400", math.inf), ("-1e400", -math.inf), ("1e99999999999", math.inf),
        ("inf", math.inf), ("-inf", -math.inf), ("+Infinity", math.inf), ("Infinity", math.inf),
        ("9" * 400, math.inf), ("0." + "0" * 400 + "1", 0.0), ("1" + "0" * 30 + "e-30", 1.0),
    ],
)  # fmt: skip
def test_what_is_a_number_is_read_as_the_nearest_double(text, value):
    [found] = read([text])

    assert found == value
    assert math.copysign(1, found) == math.copysign(1, value)


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "+NaN", ""])
def test_what_is_missing_is_read_as_nan(text):
    assert math.isnan(read([text])[0])


@pytest.mark.parametrize(
    "text",
    [
        ".", "-", "+", "e5", "1e", "1e+", "1e-", "1ex", "--1", "+-1", "-+1", "++1", "1.2.3", "1,5", "0x10", "1_000",
        "1 2", "NAN", "Nan", "nan(1)", "INF", "Inf", "infinity", "INFINITY", "infx", "1f", "1d5", "\uff11", "½",
        "true", "1\x00",
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused(text):
    assert read([text]) == [None]


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_every_double_is_read_back_from_every_spelling(values):
    spelled = [f"{value!r}" for value in values] + [f"{value:.17e}" for value in values] + [f"{v:.25g}" for v in values]

    np.testing.assert_array_equal(read(spelled), values * 3)


LOCALE = """\
LC_NUMERIC
decimal_point ","
thousands_sep ""
grouping -1
END LC_NUMERIC
"""
# ASCII; a small system has no files of character sets.
CHARACTERS = """\
<escape_char> /
CHARMAP
<U0000>..<U007F> /x00
END CHARMAP
"""


@pytest.fixture
def comma_locale(tmp_path):
    """Return the name of a locale with decimal commas, made here where the system can, and the environment it needs."""
    (tmp_path / "comma").write_text(LOCALE)
    (tmp_path / "characters").write_text(CHARACTERS)
    command = ["localedef", "-c", "-f", tmp_path / "characters", "-i", tmp_path / "comma", tmp_path / "xx_XX"]
    with contextlib.suppress(FileNotFoundError):
        # It ends with exit code 1, since the locale says nothing but how numbers look.
        subprocess.run(command, capture_output=True, check=False)
    made = (tmp_path / "xx_XX" / "LC_NUMERIC").is_file()
    return ("xx_XX", {**os.environ, "LOCPATH": str(tmp_path)}) if made else ("de_DE.UTF-8", dict(os.environ))


def test_numbers_are_the_same_under_a_locale_with_decimal_commas(comma_locale):
    name, environment = comma_locale
    script = f"""
        import locale, sys
        locale.setlocale(locale.LC_NUMERIC, {name!r})
        assert locale.localeconv()["decimal_point"] == ","
        from shoal import kernels
        reader = kernels.TextReader(["a", "b"], [0, 1], False, ",")
        line = b'{{"a":0.12345678901234566,"b":1.5e-30}}\\n'
        *_, columns, bad, _ = reader.read(line, True)
        assert not bad
        assert columns[0].tolist() == [0.12345678901234566]
        out = kernels.TextWriter(["a", "b"], False, ",").write(columns, 1)
        assert out == b'{{"a":0.12345678901234566,"b":1.5e-30}}\\n', out
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
