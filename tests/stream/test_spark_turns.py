"""The turns of shards, without Spark: state in, changes and tuples out."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import LDiversity, Stream
from shoal.errors import FileError, InputError, ParameterError, SchemaError
from shoal.job import SparkSettings
from shoal.stream.rules import Rules
from shoal.stream.spark_query.plan import Plan, packed, unpacked
from shoal.stream.spark_query.turn import Now, take_turn
from shoal.stream.stream import TupleError
from shoal.stream.stream_columns import Layout

AT_ONCE = Now(-1, -1)
K = 3


def tuples(n, seed=0, subjects=None):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "number": np.arange(n) + 10_000 * seed,
            "age": rng.integers(0, 90, n),
            "income": rng.normal(size=n),
            "diagnosis": rng.choice(["flu", "asthma", "gout"], n),
            "person": rng.integers(0, subjects or max(1, n), n),
        }
    )


def plan_for(table, k=K, delay=20, split=None, **options):
    options = {"quasi_identifiers": ["age", "income"], "confidential": ["diagnosis"], "subject": "person"} | options
    if "tracked" not in options:
        taken = {*options["quasi_identifiers"], *options["confidential"], options["subject"]}
        options["tracked"] = [name for name in table.column_names if name not in taken]
    rules = Stream(k, delay=delay, **options).rules
    return Plan(rules, SparkSettings(**(split or {})), Layout.of(table.schema, rules).schema, "1")


class Shards:
    """The states of all shards, as Spark keeps them."""

    def __init__(self, plan):
        self.plan, self.states = plan, {}
        self.released, self.side, self.figures = [], [], Counter()

    def batch(self, table, now=AT_ONCE, cuts=()):
        """Send a batch, in parts, to its shards; return their turns."""
        arrived = {}
        for begin, end in zip([0, *cuts], [*cuts, len(table)], strict=True):
            for shard, rows in self.plan.deal(table.slice(begin, end - begin)):
                arrived.setdefault(shard, []).append(unpacked(packed(rows), self.plan.columns))
        return {shard: self.turn(shard, rows, now) for shard, rows in sorted(arrived.items())}

    def turn(self, shard, rows=(), now=AT_ONCE):
        before = dict(self.states.get(shard, {}))
        turn = take_turn(self.plan, dict(before), list(rows), now)
        assert outcome(take_turn(self.plan, dict(before), list(rows), now)) == outcome(turn)  # it was retried
        self.states[shard] = {name: each for name, each in before.items() if name not in turn.gone} | turn.changed
        self.released.append(turn.released)
        self.side.append(turn.side)
        self.figures.update({name: n for name, n in turn.figures.items() if name != "smallest_cell"})
        return turn

    def rows(self, which="released"):
        return pa.Table.from_batches(getattr(self, which))


def outcome(turn):
    return turn.changed, turn.gone, packed(turn.released), packed(turn.side), turn.figures, turn.due


def smallest_class(released, names=("age", "income")):
    return min(released.group_by(list(names)).aggregate([([], "count_all")])["count_all"].to_pylist(), default=None)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    delay=st.integers(5, 30),
    subjects=st.sampled_from([None, 8]),
    n_shards=st.sampled_from([1, 3]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_every_tuple_leaves_once_or_waits(sizes, delay, subjects, n_shards, seed):
    batches = [tuples(n, seed=seed * 10 + i, subjects=subjects) for i, n in enumerate(sizes)]
    models = [LDiversity("diagnosis", l=2)]
    shards = Shards(
        plan_for(batches[0], delay=delay, split={"shards": n_shards}, models=models, other=["number"], tracked=())
    )
    for batch in batches:
        shards.batch(batch)

    figures, released, side = shards.figures, shards.rows(), shards.rows("side")
    assert figures["n_in"] == sum(sizes) == figures["n_released"] + figures["n_side"] + figures["n_buffered"]
    assert figures["n_released"] == len(released)
    assert figures["n_side"] == len(side)
    left = released["number"].to_pylist() + side["number"].to_pylist()
    assert len(left) == len(set(left))
    assert len(released) == 0 or smallest_class(released) >= K


def test_a_shard_releases_what_a_stream_does():
    batches = [tuples(n, seed=i) for i, n in enumerate([50, 1, 7, 200])]
    plan = plan_for(batches[0], split={"shards": 1})
    shards, stream = Shards(plan), Stream(**plan.rules.plain())
    alone = []
    for batch in batches:
        shards.batch(batch)
        alone.append(stream.push(pa.Table.from_batches([plan.in_order(batch.combine_chunks().to_batches()[0])])))

    as_texts = [sorted(map(str, table.to_pylist())) for table in (shards.rows(), pa.concat_tables(alone))]
    assert as_texts[0] == as_texts[1]


def test_the_order_and_the_parts_of_a_batch_change_nothing():
    batches = [tuples(80, seed=i) for i in range(3)]
    plain, shuffled = (Shards(plan_for(batches[0])) for _ in range(2))
    for i, batch in enumerate(batches):
        other = batch.take(np.random.default_rng(i).permutation(len(batch)))
        turns, again = plain.batch(batch), shuffled.batch(other, cuts=[10, 11, 60])

        assert {shard: outcome(turn) for shard, turn in turns.items()} == {
            s: outcome(turn) for s, turn in again.items()
        }


def test_columns_give_the_order_of_arrival():
    table = tuples(60).append_column("offset", pa.array(np.arange(60)[::-1]))
    plan = plan_for(table, split={"order_by": ["offset"], "shards": 1})
    ((_, rows),) = plan.deal(table)

    assert plan.in_order(rows).column("offset").to_pylist() == list(range(60))


def test_neither_shard_nor_order_depends_on_confidential_values():
    table = tuples(300)
    others = pa.array(np.random.default_rng(9).permutation(table["diagnosis"].to_pylist()))
    plan = plan_for(table, subject=None, tracked=["number", "person"], split={"shards": 5})
    dealt = [
        {shard: plan.in_order(rows).column("number").to_pylist() for shard, rows in plan.deal(each)}
        for each in (table, table.set_column(3, "diagnosis", others))
    ]

    assert dealt[0] == dealt[1]
    assert len(dealt[0]) == 5


def test_the_order_of_released_tuples_does_not_tell_who_is_who():
    """Of two batches in which two tuples have exchanged what is confidential, both have the same order of values."""
    table = pa.table({"age": [1, 2, 3], "diagnosis": ["flu", "gout", "asthma"]})
    options = {"quasi_identifiers": ["age"], "subject": None, "delay": 2, "split": {"shards": 1}}
    plan = plan_for(table, **options)
    orders = []
    for diagnoses in (["flu", "gout", "asthma"], ["asthma", "gout", "flu"], ["gout", "flu", "asthma"]):
        shards = Shards(plan)
        shards.batch(table.set_column(1, "diagnosis", pa.array(diagnoses)))
        orders.append(shards.rows()["diagnosis"].to_pylist())

    assert len(orders[0]) == 3
    assert orders[0] == orders[1] == orders[2]


def test_a_person_stays_in_one_shard_however_the_subject_is_spelled():
    table = pa.table({"age": np.arange(4), "person": [" 7", "7", "7.0", "07"], "diagnosis": list("abcd")})
    plan = plan_for(table, quasi_identifiers=["age"])

    assert len(list(plan.deal(table))) == 1


def test_a_column_names_the_shards():
    table = tuples(30).append_column("ward", pa.array(["north", "south"] * 15))
    plan = plan_for(table, split={"shard": "ward"})

    assert sorted(shard for shard, _ in plan.deal(table)) == ["north", "south"]
    missing = table.set_column(5, "ward", pa.array([None, *["south"] * 29]))
    with pytest.raises(InputError, match="'ward' names the shard of a tuple, and is missing in 1 tuples"):
        list(plan.deal(missing))


def test_identifiers_do_not_travel():
    table = tuples(30).append_column("name", pa.array([f"person {i}" for i in range(30)]))
    plan = plan_for(table, identifiers=["name"], tracked=["number"])

    assert all("name" not in rows.schema.names for _, rows in plan.deal(table))


def test_large_tuples_travel_in_several_rows():
    table = pa.table({"age": np.arange(40), "diagnosis": [f"{i}" * 1_000_000 for i in range(40)]})
    plan = plan_for(table, quasi_identifiers=["age"], subject=None, split={"shards": 1})
    sizes = [rows.num_rows for _, rows in plan.deal(table)]

    assert sum(sizes) == 40
    assert len(sizes) > 1


# Time.


def in_seconds(*seconds):
    return [Now(int(1000 * each), -1) for each in seconds]


def aged(**options):
    table = tuples(2)
    return Shards(plan_for(table, delay=None, max_age=10.0, split={"shards": 1}, subject=None, **options))


def test_a_timer_releases_what_is_too_old():
    shards = aged()
    (turn,) = shards.batch(tuples(5), Now(1_000_000, -1)).values()
    early = shards.turn("0", now=Now(turn.due - 2, -1))
    late = shards.turn("0", now=Now(turn.due, -1))

    assert (turn.due, early.figures["n_released"], late.figures["n_released"], late.due) == (1_010_001, 0, 5, None)


def test_what_no_cell_can_take_goes_to_the_side_output():
    shards = aged()
    (turn,) = shards.batch(tuples(2), Now(1_000_000, -1)).values()
    shards.turn("0", now=Now(turn.due, -1))

    assert shards.rows("side")["reason"].to_pylist() == ["too-few-tuples"] * 2
    assert shards.figures["n_too_few_tuples"] == 2


def test_ages_go_on_where_the_clock_was_set_back():
    shards = aged()
    for seconds, seed in ((5000, 1), (1000, 2), (1004, 3)):
        (turn,) = shards.batch(tuples(2, seed), Now(1000 * seconds, -1)).values()

    assert turn.due == 1_010_001  # ten seconds after the clock was set back, the first ones are old
    assert shards.turn("0", now=Now(turn.due, -1)).figures["n_released"] >= 4


def timed(seconds, seed=0):
    times = pa.array([int(1e6 * each) for each in seconds], pa.timestamp("us", "UTC"))
    return tuples(len(seconds), seed).append_column("at", times)


def in_event_time(**options):
    table = timed([0])
    split = {"shards": 1, "event_time": "at"}
    return Shards(plan_for(table, delay=None, max_age=100.0, split=split, subject=None, **options))


def test_the_watermark_releases_what_is_too_old():
    shards = in_event_time()
    (first,) = shards.batch(timed([1000, 1005, 1010]), Now(1, 0)).values()
    (second,) = shards.batch(timed([1050], 1), Now(2, 1_000_000)).values()
    timer = shards.turn("0", now=Now(3, first.due))

    assert first.due == second.due == 1_100_001
    assert timer.figures["n_released"] == 4


def test_late_tuples_go_to_the_side_output_and_are_counted():
    shards = in_event_time(tracked=["number", "person", "at"])
    shards.batch(timed([1000, 1001]), Now(1, 0))
    shards.batch(timed([999.999, 1000.0, 2000], 1), Now(2, 1_000_000))

    assert shards.rows("side")["reason"].to_pylist() == ["late"]
    assert (shards.figures["n_late"], shards.figures["n_in"], shards.figures["n_buffered"]) == (1, 5, 4)


def test_after_a_pause_a_tuple_has_its_whole_time():
    shards = in_event_time()
    shards.batch(timed([1000] * 3), Now(1, 0))
    (turn,) = shards.batch(timed([90_000] * 2, 1), Now(2, 1_000_000)).values()

    assert turn.figures["n_released"] >= 3  # with one of the new ones, if it is near
    assert turn.due is None or turn.due == 90_100_001


def test_a_tuple_without_event_time_cannot_be_used():
    table = (
        timed([1000, 1001]).drop(["at"]).append_column("at", pa.array([None, 1_001_000_000], pa.timestamp("us", "UTC")))
    )
    with pytest.raises(TupleError, match="'at' gives the times of tuples, and is missing in 1 of them"):
        in_event_time().batch(table)
    shards = in_event_time(on_error="side")
    shards.batch(table, Now(1, 0))

    assert shards.rows("side")["reason"].to_pylist() == ["missing-value"]


# State.


def running(**options):
    table = tuples(50)
    shards = Shards(plan_for(table, split={"shards": 1}, **options))
    shards.batch(table)
    return shards


def test_other_rules_are_refused():
    shards = running()
    shards.plan = plan_for(tuples(1), k=5, split={"shards": 1})
    with pytest.raises(ParameterError, match=r"made with other rules than these.*new_rules=.finish.; .*spark.finish"):
        shards.batch(tuples(1, 1))


def test_a_shard_ends_its_old_stream_before_it_takes_new_rules():
    shards = running()
    n_waited = shards.figures["n_buffered"]
    shards.plan = plan_for(tuples(1), k=5, split={"shards": 1, "new_rules": "finish"})
    (turn,) = shards.batch(tuples(40, 1)).values()

    assert n_waited > 0
    assert shards.figures["n_in"] == 90 == sum(shards.figures[name] for name in ("n_released", "n_side", "n_buffered"))
    assert smallest_class(pa.Table.from_batches([turn.released])) == K  # those of the old rules
    shards.batch(tuples(40, 2))
    assert json.loads(shards.states["0"]["meta"])["rules"]["k"] == 5
    assert smallest_class(pa.Table.from_batches([shards.released[-1]])) == 5


def test_another_number_of_shards_is_refused():
    shards = running()
    shards.plan = plan_for(tuples(1), split={"shards": 2})
    with pytest.raises(ParameterError, match=r"has 1 shards, and 2 shards are asked for\. .* one person in two shards"):
        shards.turn("0")


def test_other_columns_are_refused():
    shards = running()
    changed = tuples(5).set_column(1, "age", pa.array(np.arange(5, dtype=np.float64)))
    shards.plan = plan_for(changed, split={"shards": 1})
    with pytest.raises(SchemaError, match="not those of the tuples that wait in the checkpoint: age"):
        shards.batch(changed)


def test_a_state_of_another_version_is_refused():
    shards = running()
    shards.states["0"]["meta"] = shards.states["0"]["meta"].replace(b"version 2", b"version 9")
    with pytest.raises(ParameterError, match="written by another version of shoal"):
        shards.turn("0")


@pytest.mark.parametrize("field", ["head", "chunk"])
def test_a_damaged_state_is_refused(field):
    shards = running()
    (name,) = (name for name in shards.states["0"] if name.startswith(field))
    content = bytearray(shards.states["0"][name])
    content[-1] ^= 1
    shards.states["0"][name] = bytes(content)
    with pytest.raises(FileError, match="The state in the checkpoint of the query is damaged"):
        shards.turn("0")


def test_the_state_is_small_and_written_as_a_difference():
    table = tuples(5000)
    shards = Shards(plan_for(table, k=10, delay=1000, split={"shards": 1}, subject=None, tracked=["person", "number"]))
    shards.batch(table)
    sizes = []
    for i in range(40):
        (turn,) = shards.batch(tuples(50, i + 1)).values()
        sizes.append(sum(map(len, turn.changed.values())))
    stream = shards.plan
    n_waiting = shards.figures["n_buffered"]
    state = sum(map(len, shards.states["0"].values()))
    as_arrow = packed(stream.in_order(tuples(n_waiting).select(stream.columns.names).combine_chunks().to_batches()[0]))

    assert state <= 3 * len(as_arrow)
    assert max(sizes) < state / 3


def test_a_subject_with_a_thousand_tuples_never_fills_a_cell():
    table = tuples(1200).set_column(4, "person", pa.array([0] * 1000 + list(range(1, 201))))
    shards = Shards(plan_for(table, k=5, delay=100, split={"shards": 1}, other=["number"], tracked=()))
    shards.batch(table)
    shards.batch(tuples(200, 1))
    released = shards.rows()
    persons = dict(zip(table["number"].to_pylist(), table["person"].to_pylist(), strict=True))
    cells = {}
    for row in released.to_pylist():
        cells.setdefault((row["age"], row["income"]), set()).add(persons.get(row["number"], row["number"]))

    assert min(map(len, cells.values())) >= 5
    assert shards.figures["n_too_few_subjects"] > 0


def test_nested_values_travel_and_wait():
    nested = pa.array([{"codes": [i, i + 1], "by": {"ward": str(i)}} for i in range(20)])
    table = pa.table({"age": np.arange(20), "diagnosis": nested})
    shards = Shards(plan_for(table, quasi_identifiers=["age"], subject=None, delay=5, split={"shards": 1}))
    shards.batch(table)

    assert shards.figures["n_released"] > 0
    assert all(row in table["diagnosis"].to_pylist() for row in shards.rows()["diagnosis"].to_pylist())


def test_rules_travel_to_tasks():
    import pickle

    plan = plan_for(tuples(1), models=[LDiversity("diagnosis", l=2)])
    again = pickle.loads(pickle.dumps(plan))

    assert isinstance(again.rules, Rules)
    assert (again.rules, again.columns, again.split) == (plan.rules, plan.columns, plan.split)
