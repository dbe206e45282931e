"""Files as offices have them: read as their owner means it, or asked about before anything is made."""

import collections
import warnings

import pytest

import shoal
from office_files import LOCALES, N_CLEAN, TRAPS, office_files
from shoal import datasets
from shoal.findings import FINDINGS, QuestionError

SEED = 13
# The first two are not found in CSV files; a file with decimal commas beside points is refused by the reader. The
# others are traps of `office_grammar`.
NOT_HERE = {"labelled-values", "mixed-types", "thousands-as-decimals", "outliers", "perhaps-codes", "two-forms"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return office_files(tmp_path_factory.mktemp("office"))


@pytest.fixture(scope="module")
def inspected(files):
    return [shoal.inspect(file.path, show_values=True) for file in files]


def quiet(*arguments, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)
        return shoal.anonymize(*arguments, **settings)


def test_every_trap_of_fifty_files_in_three_locales_is_found_and_nothing_else(files, inspected):
    held = collections.Counter((file.locale.name, name) for file in files for name in file.traps.values())

    assert len(files) == 50
    assert len({locale for locale, _ in held}) == len(LOCALES)
    assert {name for _, name in held} >= set(FINDINGS) - NOT_HERE
    assert len(TRAPS) == 30
    for file, found in zip(files, inspected, strict=True):
        # Of several columns with a word for a total, the first is named.
        totals = {(name, "total-records") for name in [name for name in file.columns if name in file.totals][:1]}
        told = {(finding.column, finding.name) for finding in found.findings}
        assert told == set(file.traps.items()) | totals, file.path.name


def test_a_release_of_a_clean_file_is_never_refused(files):
    for file in files[:N_CLEAN]:
        names = list(file.columns)
        release = quiet(file.path, k=5, quasi_identifiers=names[:-1], confidential=names[-1:], seed=SEED)

        assert release.verdict.holds


def roles_with(found, quasi):
    """Return the proposed roles with some columns as quasi-identifiers, and without a household."""
    roles = found.roles()
    dropped = [*roles.get("identifiers", []), *([roles.pop("household")] if "household" in roles else [])]
    roles["identifiers"] = [name for name in dropped if name not in quasi]
    roles["quasi_identifiers"] = [*roles["quasi_identifiers"], *(name for name in dropped if name in quasi)]
    return roles


def test_what_would_publish_single_values_or_averages_of_codes_is_asked_about(files, inspected):
    asked = 0
    for file, found in zip(files, inspected, strict=True):
        questions = {finding.column for finding in found.findings if finding.question}
        if questions:
            asked += 1
            with pytest.raises(QuestionError) as caught:
                quiet(file.path, k=5, missing="own-value", **roles_with(found, questions))
            assert {finding.column for finding in caught.value.findings} == questions
    assert asked > 30


def test_the_first_remedy_of_each_question_settles_it(files, inspected):
    for file, found in zip(files[N_CLEAN:], inspected[N_CLEAN:], strict=True):
        settings = {"field": {}, "column": {}, "role": {}, "accept": {}, "rows": {}}
        for finding in found.findings:
            if finding.question:
                settings[finding.remedies[0].place][finding.column] = finding.remedies[0].settings
        release = quiet(
            file.path,
            k=5,
            missing="own-value",
            columns=settings["column"],
            reading={
                "fields": settings["field"],
                **{k: v for given in settings["rows"].values() for k, v in given.items()},
            },
            accept=[name for given in settings["accept"].values() for name in given["accept"]],
            seed=SEED,
            **roles_with(found, []),
        )

        assert release.verdict.holds, file.path.name


def test_bundled_data_raise_alarms_in_fewer_than_one_of_twenty_columns_and_only_where_they_should():
    found = {name: shoal.inspect(datasets.path(name)) for name in ("census", "tarragona", "eia")}
    alarms = {(name, one.column, one.name) for name, each in found.items() for one in each.findings}

    assert alarms == {
        ("census", "AFNLWGT", "weight"),
        ("eia", "UTILITYID", "subject"),
        ("eia", "UTILITYID", "zeros"),  # of the adjustments of whole states, which are no utilities
        ("eia", "UTILNAME", "subject"),
        ("eia", "YEAR", "constant"),
        ("tarragona", "FIXED.ASSETS", "double-records"),  # two companies are in it twice
    }
