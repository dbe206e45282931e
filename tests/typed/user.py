"""shoal as somebody with mypy uses it: checked by ``tests/test_types.py``, never run.

Where a line says ``type: ignore`` it must be an error, since an ignored error that is none is one itself.
"""

from pathlib import Path
from typing import Any, assert_type

import pandas as pd
from numpy import float64, int64
from numpy.typing import NDArray

import shoal

people = pd.DataFrame({"age": [20, 21, 40, 44], "illness": ["a", "b", "a", "b"]})


def releases() -> None:
    release = shoal.anonymize(
        people,
        k=2,
        quasi_identifiers=["age"],
        confidential="illness",
        models=[shoal.LDiversity("illness", l=2), shoal.BetaLikeness("illness", beta=1.0, kind="enhanced")],
        method="mdav",
        scaling="minmax",
        missing="own-value",
        engine="memory",
        columns={"age": {"kind": "numeric", "weight": 2}},
        kinds={"age": "numeric"},
    )
    assert_type(release, shoal.Release)
    assert_type(release.verdict.holds, bool)
    assert_type(release.loss.il, float)
    assert_type(release.risk.linkage.dld, float)
    assert_type(release.labels, NDArray[int64])
    assert_type(release.warnings, tuple[str, ...])
    assert_type(release.write("release.csv"), list[Path | str])
    for measured in (release.loss, release.risk, release.utility, release.verdict):
        measured.to_frame().to_pandas()
        assert_type(measured.to_dict(), dict[str, Any])
    if release.quality is not None:
        assert_type(release.quality["granularity"].loss, float)
    assert_type(shoal.run("job.toml"), shoal.Release)
    assert_type(shoal.anonymize(people, k=2, keyVars="illness", numVars=["age"], weightVar="w"), shoal.Release)


def others() -> None:
    assert_type(shoal.inspect(people), shoal.Inspection)
    assert_type(shoal.compare(people, k=[3, 5], methods=["auto", "mdav"]), shoal.Comparison)
    assert_type(shoal.audit(people, quasi_identifiers="age").to_dict()["n_below"] is None, bool)
    assert_type(shoal.partition([[1.0], [2.0]], k=2), NDArray[int64])
    assert_type(shoal.compare(people).choices[0].loss, float)
    assert_type(shoal.datasets.census().X, NDArray[float64])


def mistakes() -> None:
    shoal.anonymize(people, k=2, quasi_identifiers=["age"], method="mdva")  # type: ignore[arg-type]
    shoal.anonymize(people, k=2, quasi_identifiers=["age"], scaling="z-score")  # type: ignore[arg-type]
    shoal.anonymize(people, k=2, quasi_identifiers=["age"], missing="own value")  # type: ignore[arg-type]
    shoal.anonymize(people, k=2, quasi_identifiers=["age"], engine="disc")  # type: ignore[arg-type]
    shoal.anonymize(people, k=2, quasi_identifiers=["age"], kinds={"age": "number"})  # type: ignore[dict-item]
    shoal.anonymize(people, k="2", quasi_identifiers=["age"])  # type: ignore[arg-type]
    shoal.anonymize(people, k=2, keyVars=3)  # type: ignore[arg-type]
    shoal.compare(people, methods="all of them")  # type: ignore[arg-type]
    shoal.LDiversity("illness", l=2, kind="entropic")  # type: ignore[arg-type]
    shoal.BetaLikeness("illness", beta=1.0, kind="better")  # type: ignore[arg-type]
    shoal.Microaggregator(k=3, method="mdva")  # type: ignore[arg-type]
