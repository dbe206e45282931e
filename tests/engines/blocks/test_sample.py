import numpy as np
import pyarrow as pa

from shoal.engines.blocks.block_records import HASHES
from shoal.engines.blocks.sample import copy_keys


def test_a_sample_has_its_share_of_equal_records():
    hashes = np.repeat([11, 12], [8_000, 2_000])
    keys = copy_keys(pa.table(dict.fromkeys(HASHES, pa.array(hashes))), seed=3)
    sampled = keys < np.uint64(2**62)

    assert len(np.unique(keys)) == 10_000
    assert abs(sampled[:8_000].mean() - 0.25) < 0.03
    assert abs(sampled[8_000:].mean() - 0.25) < 0.03


def test_keys_of_copies_do_not_depend_on_the_records_beside_them():
    one, both = (pa.table(dict.fromkeys(HASHES, pa.array(hashes))) for hashes in ([12, 12], [11, 12, 12]))

    assert copy_keys(both, seed=3)[1:].tolist() == copy_keys(one, seed=3).tolist()
