import json
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import datasets
from shoal.comparison import Choice, Comparison, Skipped, _marked
from shoal.comparison.picture import scale
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError
from shoal.measures import linkage
from shoal.methods import ALGORITHMS


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    return pa.table(
        {"age": rng.integers(20, 80, 120), "sex": rng.choice(["f", "m"], 120), "income": rng.gamma(2, 1000, 120)}
    )


ROLES = {"quasi_identifiers": ["age", "sex", "income"]}


@pytest.fixture(scope="module")
def everything(people):
    return shoal.compare(people, k=[3, 10], methods="all", seed=1, **ROLES)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"methods": 3}, "methods is of type int, and should be 'all' or a list"),
        ({"reading": 3}, "reading is of type int, and should be a dict"),
        ({"k": None}, "k must be a whole number"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_in_words(people, arguments, words):
    with pytest.raises(ParameterError, match=words):
        shoal.compare(people, **ROLES, **arguments)


def test_every_method_takes_part_for_every_k(everything):
    assert [(c.k, c.method) for c in everything.choices] == [(k, method) for k in (3, 10) for method in ALGORITHMS]
    assert everything.skipped == ()
    assert all(choice.smallest >= choice.k for choice in everything.choices)


def test_a_choice_is_the_release_of_the_same_call(people, everything):
    choice = next(c for c in everything.choices if (c.k, c.method) == (10, "auto"))
    release = shoal.anonymize(people, k=10, method="auto", seed=1, **ROLES)
    X, Y = release.space.encode(release.original), release.space.encode(release.published)

    assert choice.loss == release.loss.il
    assert choice.risk == linkage(X, Y).dld
    assert choice.marketer == release.verdict.n_classes / 120


def test_the_loss_of_the_literature_is_found():
    census = datasets.census()
    found = shoal.compare(datasets.path("census"), k=3, methods="mdav", quasi_identifiers=census.columns)

    assert [round(choice.loss, 6) for choice in found.choices] == [0.056922]


POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20)


@given(points=POINTS)
def test_a_choice_is_undominated_if_no_mixture_of_others_is_better_without_being_worse(points):
    marked = list(_marked([Choice("m", 3, loss, risk, 0.0, 1, 3) for loss, risk in points]))

    for one in marked:
        mixtures = (
            (left.loss + share * (right.loss - left.loss), left.risk + share * (right.risk - left.risk))
            for left in marked
            for right in marked
            for share in (Fraction(part, 12) for part in range(13))
        )
        better = [c for c in mixtures if c[0] <= one.loss and c[1] <= one.risk]
        assert not (one.undominated and any(c != (one.loss, one.risk) for c in better))
    assert any(one.undominated for one in marked)


def test_one_choice_is_recommended_and_few_are_left_to_look_at(people):
    found = shoal.compare(people, k=[3, 5, 10], methods=["auto", "mdav", "topdown", "vmdav"], seed=1, **ROLES)

    assert found.recommended in found.undominated
    assert len(found.undominated) < len(found.choices) / 2
    assert f"Recommended: {found.recommended.method} with k = {found.recommended.k}" in str(found)
    assert str(found).count("  recommended") == 1


def test_slow_methods_are_left_out_of_all_aloud(people, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "tfrp", replace(ALGORITHMS["tfrp"], largest=100))
    found = shoal.compare(people, k=5, methods="all", seed=1, **ROLES)
    named = shoal.compare(people, k=5, methods=["tfrp"], seed=1, **ROLES)

    assert [skipped.method for skipped in found.skipped] == ["tfrp"]
    assert "slow for 120 records" in str(found)
    assert "tfrp" not in {choice.method for choice in found.choices}
    assert [choice.method for choice in named.choices] == ["tfrp"]


def test_a_k_that_the_table_cannot_meet_is_left_out_aloud(people):
    found = shoal.compare(people, k=[5, 500], methods=["mdav"], **ROLES)

    assert [choice.k for choice in found.choices] == [5]
    assert [(skipped.method, skipped.k) for skipped in found.skipped] == [("mdav", 500)]
    assert "120 records" in found.skipped[0].reason


def test_nothing_to_compare_is_an_error(people):
    with pytest.raises(GuaranteeError, match="None of the 2 choices"):
        shoal.compare(people, k=[500, 600], methods=["mdav"], **ROLES)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"methods": ["best"]}, ParameterError, "Unknown method 'best'"),
        ({"methods": []}, ParameterError, "No method"),
        ({"k": []}, ParameterError, "No k"),
        ({"k": [1]}, ParameterError, "k"),
        ({"quasi_identifiers": ["height"]}, SchemaError, "'height'"),
        ({"methods": ["mdav"], "effort": "best"}, ParameterError, "effort"),
    ],
)
def test_what_cannot_be_compared_is_an_error(settings, error, words, people):
    with pytest.raises(error, match=words):
        shoal.compare(people, **{"k": 5, "methods": ["mdav"], **ROLES, **settings})


def test_options_that_only_some_methods_take_leave_the_others_out(people):
    found = shoal.compare(people, k=5, methods="all", phases=1, **ROLES)

    assert [choice.method for choice in found.choices] == ["tfrp"]
    assert {skipped.method for skipped in found.skipped} == set(ALGORITHMS) - {"tfrp"}


def test_the_same_seed_gives_the_same_comparison(people, everything):
    assert shoal.compare(people, k=[3, 10], methods="all", seed=1, threads=1, **ROLES) == everything


def test_warnings_are_collected_once(people):
    constant = people.append_column("year", pa.array([1996] * 120))
    found = shoal.compare(constant, k=[3, 5], methods=["mdav"], quasi_identifiers=["age", "sex", "income", "year"])

    assert len(found.warnings) == 1
    assert "'year'" in found.warnings[0]


def test_a_warning_about_some_choices_names_them(people):
    found = shoal.compare(people, k=[3, 60], methods=["mdav"], seed=1, **ROLES)
    about = [text for text in found.warnings if "More than half of the differences" in text]

    assert about
    assert all(text.startswith("k = 60 with mdav: ") for text in about)


def test_progress_grows_to_its_end(people):
    calls = []
    shoal.compare(people, k=[3, 5], methods=["mdav"], progress=lambda *call: calls.append(call), **ROLES)
    shares = [done / total for done, total in calls]

    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_it_can_be_saved_as_json(everything):
    assert json.loads(everything.to_json()) == json.loads(json.dumps(everything.to_dict()))
    assert sum(choice["undominated"] for choice in everything.to_dict()["choices"]) == len(everything.undominated)


def test_the_picture_is_whole_and_needs_nothing_else(everything):
    picture = everything.to_svg()
    root = ElementTree.fromstring(picture)
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]

    assert len(titles) == len(everything.choices)
    assert picture.count("http") == 1  # the name of the format
    assert "k = 10" in picture


def test_the_page_is_whole_and_needs_nothing_else(everything):
    page = everything.to_html()

    assert page.count("<tr") == len(everything.choices) + 1
    assert page.count('class="best"') == len(everything.undominated)
    assert "<script" not in page
    assert page.count("http") == 1


def test_texts_in_the_page_do_no_harm():
    choice = Choice("<b>", 3, 1.0, 0.5, 0.5, 1, 3, True)
    harmful = Comparison(3, (choice,), (Skipped("<i>", 3, "<script>"),), ("<img src=x>",), 1)

    assert not {"<b>", "<i>", "<script>", "<img"} & {
        tag for tag in ("<b>", "<i>", "<script>", "<img") if tag in harmful.to_html()
    }
    ElementTree.fromstring(harmful.to_svg())


@given(numbers=st.lists(st.floats(0, 1e6), min_size=1))
def test_an_axis_begins_at_zero_and_holds_all_numbers(numbers):
    axis = scale(numbers, 100, 500)

    assert axis.ticks[0] == 0
    assert 2 <= len(axis.ticks) <= 6
    assert all(100 <= axis.place(number) <= 500.000001 for number in numbers)


@pytest.mark.parametrize("name", ["map.svg", "map.html", "map.json"])
def test_it_is_written_whole_and_not_over_another(name, everything, tmp_path):
    everything.write(tmp_path / name)
    with pytest.raises(FileError, match="already exists"):
        everything.write(tmp_path / name)
    everything.write(tmp_path / name, force=True)

    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_an_ending_that_it_cannot_be_written_as_is_refused(everything, tmp_path):
    with pytest.raises(FileError, match=r"\.svg, .*\.html, \.json"):
        everything.write(tmp_path / "map.txt")

    assert list(tmp_path.iterdir()) == []


def test_rho_is_tuned_on_the_map_with_the_verdict_withdrawn(people):
    numeric = {"quasi_identifiers": ["age"], "other": ["sex", "income"]}
    found = shoal.compare(people, k=5, methods=["mdav"], rho=[0, 0.5, 1], seed=3, **numeric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        alone = [shoal.anonymize(people, k=5, method="mdav", rho=rho, seed=3, **numeric) for rho in (0, 0.5, 1)]

    assert [(c.rho, c.k_anonymous) for c in found.choices] == [(0.0, True), (0.5, False), (1.0, False)]
    assert [c.loss for c in found.choices] == [release.loss.il for release in alone]
    assert [c.risk for c in found.choices] == [release.risk.linkage.dld for release in alone]
    assert str(found).count("not k-anonymous") == 2
    assert "mdav, rho 0.5" in found.to_svg()
    assert "not k-anonymous" in found.to_html()
