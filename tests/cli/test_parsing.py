import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli.parsing import column_and_value, option, split, values, whole_numbers
from shoal.spelling import as_listed

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1).filter(str.strip)


@given(names=st.lists(NAMES, min_size=1))
def test_any_names_can_be_given_as_a_list(names):
    assert split(",".join(map(as_listed, names))) == names


@given(name=NAMES, value=st.text("abc,=1"))
def test_any_column_can_be_given_a_value(name, value):
    assert column_and_value(f"{as_listed(name)}={value}", "--kind") == (name, value)


@pytest.mark.parametrize("text", ["", "zip", "=3", '"zip'])
def test_a_setting_without_column_or_value_is_refused(text):
    with pytest.raises(click.BadParameter, match="COLUMN=VALUE"):
        column_and_value(text, "--kind")


@pytest.mark.parametrize(
    ("text", "found"),
    [("1,2", [1, 2]), ("1.5,2", [1.5, 2.0]), ("007", ["007"]), ("1_000", ["1_000"]), ("a,1", ["a", "1"]), ("0", [0])],
)
def test_values_are_numbers_where_all_are(text, found):
    assert values(text) == found


@pytest.mark.parametrize(("text", "found"), [("a=1", 1), ("a=true", True), ("a=x", "x"), ("a=0.5", 0.5)])
def test_options_of_methods_have_the_type_that_they_look_like(text, found):
    name, value = option(text, "--options")

    assert (name, value) == ("a", found)
    assert type(value) is type(found)


def test_a_list_of_whole_numbers_holds_nothing_else():
    assert whole_numbers(None, None, "3,5") == [3, 5]
    with pytest.raises(click.BadParameter, match="whole numbers"):
        whole_numbers(None, None, "3,x")
