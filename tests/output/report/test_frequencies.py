import re

import reported

from shoal.output.report import gather, render
from shoal.output.report.frequencies import frequency_rows


def test_key_variables_of_every_kind_have_a_frequency_table_in_the_internal_report_only():
    release = reported.release()
    facts = gather(release)
    drawn = [
        column["name"]
        for column in facts["distributions"]
        if column["figure"] and column["role"] in ("quasi-identifier", "by")
    ]
    tables = re.findall(r'<table class="frequencies">(.*?)</table>', render(release, "html"), re.S)

    assert {column["figure"] for column in facts["distributions"] if column["name"] in drawn} == {"histogram", "bars"}
    assert len(tables) == len(drawn)
    assert 'class="frequencies"' not in render(release, "html", "public")


def test_the_counts_of_a_frequency_table_add_up_to_all_records():
    release = reported.release()
    for column in gather(release)["distributions"]:
        if column["figure"] == "histogram" and 0 in column["missing"].values():
            counts = [[int(count.replace(",", "")) for count in row.counts] for row in frequency_rows(column)]

            assert {sum(side) for side in zip(*counts, strict=True)} == {release.verdict.n_records}


def test_fewer_than_k_missing_values_are_not_counted():
    bins = [{"from": "0", "to": "5", "before": 9, "after": 8}, {"from": "5", "to": "10", "before": 7, "after": 9}]
    rows = frequency_rows({"figure": "histogram", "bins": bins, "missing": {"before": 5, "after": None}})

    assert rows[-1] == ("missing", ("5", "< k"))
