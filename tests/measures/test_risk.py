import json

import numpy as np

from shoal import kernels, partition
from shoal.arrays import standardize
from shoal.datasets import tarragona
from shoal.measures import Risk, class_risk, interval_disclosure, linkage, matching, uniqueness


def test_all_risks_of_a_release_fit_into_one_report():
    X = standardize(tarragona().X)
    labels = partition(X, 3, "mdav")
    Y = (kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None])[labels]
    risk = Risk(
        linkage(X, Y, labels),
        class_risk(labels),
        uniqueness(np.arange(len(X))),
        interval_disclosure(X, Y),
        matching(X, Y, labels),
    )
    report = json.loads(json.dumps(risk.to_dict(), allow_nan=False))

    assert set(report) == {"linkage", "classes", "uniqueness", "intervals", "matching"}
    assert report["linkage"]["linked"] == risk.linkage.linked <= 1 / 3
    assert report["classes"]["prosecutor_max"] == 1 / 3
    assert report["uniqueness"] == {"sample": 1.0, "population": None}
    assert len(report["intervals"]) == X.shape[1]
    assert report["matching"]["n_tried"] == len(X)


def test_what_was_not_asked_for_is_not_in_the_report():
    report = Risk(linkage([[1.0]], [[1.0]]), class_risk([0])).to_dict()

    assert (report["uniqueness"], report["intervals"], report["matching"]) == (None, {}, None)
