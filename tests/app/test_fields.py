"""Every setting of a job is a field of a page, and a page that is sent as it is shown changes nothing."""

from html.parser import HTMLParser

import pytest
from pydantic import Field as Setting
from steward import PEOPLE

from shoal.app.fields import NO_MARK, NOT_ASKED, WORDS, field_of, on_form, sections
from shoal.columns.schema import ColumnSettings, Roles
from shoal.job import Input, Job, Output
from shoal.settings import Settings, holds_settings
from shoal.sources import KINDS, FieldReading
from shoal.sources.reading import OF_ANY_SOURCE

JOB = """
k = 5
method = "auto"
rho = 0.25
seed = 12345678901234567
truthful = false
missing = "own-value"
accept = ["zip=codes"]
[options]
effort = "best"
seconds = 2.5
[steer]
sex = -0.5
[roles]
identifiers = ["name"]
quasi_identifiers = ["age", "zip", "income"]
confidential = ["diagnosis"]
household = "sex"
household_level = ["zip", "income"]
[columns.age]
weight = 1.2345678
round = 0
top = 70.0
missing_codes = [-9, 99]
keep_zeros = true
[columns.zip]
kind = "nominal"
hierarchy = "prefix:2"
outside = "root"
distance = "information"
aggregate = "ancestor"
level = 1
[columns.income]
aggregate = "interval"
step = 50.0
[columns.diagnosis]
categories = ["qqdisease0", "qqdisease1", "qqdisease2"]
[input]
path = "people.csv"
delimiter = ";"
thousands = " "
null_values = ["NA", "unknown"]
[input.fields.age]
null_values = ["none"]
decimal = ","
[output]
path = "release.csv"
order = "keep"
json = "report.json"
manifest = "kept.json"
author = "A. Steward"
"""


class Sent(HTMLParser):
    """What a browser sends if nobody touches the forms of a page, by their address."""

    def __init__(self, text):
        super().__init__()
        self.forms, self.form, self.select, self.area = {}, {}, None, None
        self.names = set()
        self.feed(text)

    def handle_starttag(self, tag, given):
        given = dict(given)
        name = given.get("name")
        self.names.add(name)
        if tag == "form":
            self.form = self.forms[given["action"]] = {}
        elif tag == "input" and name and (given.get("type") != "checkbox" or "checked" in given):
            if given.get("type") not in ("radio", "file"):
                self.form.setdefault(name, []).append(given.get("value", "on"))
        elif tag == "select":
            self.select = name
        elif tag == "option" and ("selected" in given or self.select not in self.form):
            self.form[self.select] = [given.get("value", "")]
        elif tag == "textarea":
            self.area = name
            self.form[name] = [""]

    def handle_endtag(self, tag):
        if tag == "textarea":
            self.area = None

    def handle_data(self, data):
        if self.area:
            self.form[self.area] = [data]


@pytest.fixture
def settled(steward, folder):
    """A steward with a job in which nearly everything is said."""
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    steward.open("job.toml")
    return steward


def names_on(steward, *pages):
    return set().union(*(Sent(steward.page(page)).names for page in pages))


def columns_of(steward):
    return [f"columns/{steward.column(name)}" for name in PEOPLE[0].split(";")]


def test_every_setting_of_a_job_is_on_a_page_or_excepted_with_a_reason(settled):
    settled.roles(sex="quasi-identifier")

    assert {*on_form(Job), *on_form(Roles)} - {"steer"} <= names_on(settled, "protection")
    assert {*on_form(ColumnSettings), *on_form(FieldReading), "steer"} <= names_on(settled, *columns_of(settled))
    assert {Output.model_fields[name].alias or name for name in on_form(Output)} <= names_on(settled, "release")
    known = OF_ANY_SOURCE.union(*(kind.options for kind in KINDS))
    assert set(on_form(Input)) == known & set(on_form(Input))
    assert known - {"fields"} <= set(on_form(Input))
    assert names_on(settled, "file") >= OF_ANY_SOURCE


def test_switches_are_on_the_page_of_the_columns_that_have_them(ready):
    page = ready.page(f"columns/{ready.column('sex')}")

    assert 'name="fold"' in page
    assert 'name="keep_zeros"' not in page
    assert 'name="precision"' in page


def test_no_part_of_a_job_is_without_a_form():
    parts = {name for name, about in Job.model_fields.items() if holds_settings(about.annotation)}

    assert parts - set(NOT_ASKED[Job]) == {"roles", "columns", "input", "output"}
    for model, excepted in NOT_ASKED.items():
        assert set(excepted) <= set(model.model_fields)
        assert all(excepted.values())


def test_every_setting_and_every_choice_has_words_of_the_pages():
    without, raw = [], []
    for model in (Job, Roles, ColumnSettings, FieldReading, Input, Output):
        for name in on_form(model):
            field = field_of(model, name, None)
            without += [name] if name not in WORDS[model] else []
            raw += [(name, key) for key, word in field.choices if key == word and key != NO_MARK]

    assert without == []
    assert {name for name, _ in raw} == {"method", "precision"}  # names of the literature, and plain words


def test_a_new_setting_comes_last_in_a_closed_section_under_its_description():
    class Later(Settings):
        old: int = Setting(1, description="known before")
        new: str | None = Setting(None, description="not known before")

    first, last = sections([field_of(Later, name, None) for name in on_form(Later)], {"": ["old"]})

    assert [field.name for field in first.fields] == ["old"]
    assert (last.title, last.is_open) == ("Further settings", False)
    assert [(field.name, field.label) for field in last.fields] == [("new", "Not known before")]


def test_a_page_that_is_sent_as_it_is_shown_changes_nothing(settled):
    before = settled.work.draft
    for page in ("file", "protection", *columns_of(settled)):
        where = f"{settled.base}/{page}"
        (form,) = (form for action, form in Sent(settled.settle(page)).forms.items() if action == where)
        answer = settled.client.post(where, data=form, headers={"origin": f"{settled.client.base_url}"})

        assert answer.status_code == 200, answer.text
        assert settled.work.draft == before, page


def test_settings_that_only_a_job_could_say_are_said_on_pages(ready):
    ready.post("protection", household=str(ready.column("sex")))
    ready.post("protection", household_level=["0", "3"], options="effort=best\nseconds=3", rho="song")
    ready.post(f"columns/{ready.column('age')}", role="quasi-identifier", steer="0.5")
    draft = ready.work.draft

    assert draft.roles.household_level == ("age", "income")
    assert draft.options == {"effort": "best", "seconds": 3}
    assert draft.rho == 1.0
    assert draft.steer == {"age": 0.5}
    ready.post(f"columns/{ready.column('age')}", role="quasi-identifier", steer="")
    ready.post("protection", household="", rho="")
    assert ready.work.draft.steer == {}
    assert ready.work.draft.roles.household_level is None
    assert ready.work.draft.rho is None
    refused = ready.post("protection", options="effort")
    assert "every line has to be NAME=VALUE" in refused.text


def test_the_bound_the_json_and_the_manifest_of_a_release_are_asked_for(ready, folder):
    ready.roles(sex="other", zip="other")
    page = ready.release(bound="cheap", json="report.json", manifest="kept.json")

    assert "Every record hides" in page
    assert (folder / "report.json").is_file()
    assert (folder / "kept.json").is_file()
    assert "report.json" in page
