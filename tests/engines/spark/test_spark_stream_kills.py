"""A stream on a cluster whose executor, driver and query are killed; `make soak` kills fifty."""

import sys

import pytest
import query_under_attack


@pytest.mark.skipif(sys.platform != "linux", reason="executors are found by /proc")
def test_kills_in_the_middle_of_batches_neither_lose_nor_repeat_a_tuple(cluster, spark_settings, tmp_path):
    found = query_under_attack.attack(cluster, tmp_path, query_under_attack.KINDS, spark_settings)

    assert sum(found["kills"].get(kind, 0) for kind in query_under_attack.KINDS) == 3
    assert found["n_side"] > 0
    assert found["n_repeated_batches"] > 0
