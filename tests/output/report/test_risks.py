from reported import RISK, release

from shoal.output.report.risks import further_rows, interval_rows, moved, risk_rows

VERDICT = {"n_records": 10, "sizes": {"5": 2}}


def test_what_a_release_measures_has_words():
    rows = {row.name: row for row in risk_rows(release().measures["risk"], release().verdict.to_dict())}

    assert rows["Unique records"].before == 1.0
    assert rows["Unique records"].after == 0.0
    assert rows["Somebody known to be in the data"].after <= 1 / release().verdict.smallest
    assert {"Everybody at once", "Known values, nearest record", "Published record, nearest original"} <= set(rows)


def test_two_sides_stand_beside_each_other():
    risk = {"before": {"classes": {"marketer": 0.9}}, "after": {"classes": {"marketer": 0.1}}}
    (row,) = risk_rows(risk, VERDICT)

    assert (row.before, row.after) == (0.9, 0.1)
    assert (row.text(row.before), row.text(None)) == ("90.0%", "")


def test_no_number_is_told_twice_and_none_is_left_out():
    further = dict(further_rows(RISK))

    assert further["new, </script>"] == "50.0%"
    assert further["Median rank of the own published record among the nearest"] == "17"
    assert further["Originals whose own published record is among the 2 nearest"] == "30.0%"
    assert not any("_" in name or " / " in name for name in further)
    assert not any("dld" in name or "intervals" in name for name in further)
    assert interval_rows(RISK) == [("age", 0.8, 0.5)]


def test_nothing_measured_is_nothing_told():
    assert risk_rows({}, VERDICT) == []
    assert further_rows({"matching": None}) == []
    assert moved({}, "age") == ""


def test_a_column_of_which_nothing_is_left_kept_no_mean():
    changes = {"mean": 0.0, "variance": -1.0, "il1s": 0.0, "removed": 1.0}

    assert moved({"numeric": {"columns": {"bonus": changes}}}, "bonus") == "nothing is left"
    assert moved({"numeric": {"columns": {"bonus": {**changes, "removed": 0.25}}}}, "bonus").endswith(
        "25.0% of the values gone"
    )


def test_what_moved_is_told_for_numbers_and_categories():
    utility = {
        "numeric": {"columns": {"age": {"mean": -0.2, "variance": 0.1}, "same": {"mean": None, "variance": None}}},
        "nominal": {"town": {"total_variation": 0.03}},
    }

    assert moved(utility, "age") == "mean -0.20 sd, variance +10.0%"
    assert moved(utility, "same") == "was constant"
    assert moved(utility, "town") == "3.0% of the shares"
