"""Engine: batches of a file, and pieces in a scratch folder between the stages of `shoal.engines.blocks.driver`.

A stage whose pieces are complete is not repeated, so that a job that was killed is continued. Pieces that are missing
or damaged are made again, from those of the stage before.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.prepare import NumberOf
from shoal.columns.schema import Schema
from shoal.columns.value_hashes import record_hashes
from shoal.engines.blocks import driver
from shoal.engines.blocks.block_records import carried, dealt, hashes_of
from shoal.engines.blocks.blueprint import Blueprint, TableSummary
from shoal.engines.blocks.driver import ASSIGN, FIT, IN_CELLS, PUBLISH, SOLVE, Assign, Choose, Publish, Sent, Work
from shoal.engines.blocks.forest import leaves_of_blocks
from shoal.engines.blocks.publish import MeasuredCells, Part
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import SETTLED
from shoal.engines.disk.checked_files import DamagedError, keep, open_checked
from shoal.engines.disk.memory import MemoryBudget
from shoal.engines.disk.scratch import check_space
from shoal.engines.disk.spill import Gathering, Spill, release_memory
from shoal.files import sync_folder
from shoal.job import Job
from shoal.kernels.parallel_calls import side_by_side
from shoal.progress import OneTotal
from shoal.sources import Receipt
from shoal.sources.batches import Batches
from shoal.sources.clean import without_records
from shoal.typing import Labels, Progress

_SPACE = 2.5
"""How often the records lie in the scratch folder at a time, at most: two stages and what is being written."""

_MERGED = 16  # summaries at a time
_BUCKET = 1 << 26  # bytes of published records that are sorted at a time, about

STAGES = {
    FIT: ("reading and measuring all records", 0.0, 0.1),
    ASSIGN: ("sending records to blocks", 0.1, 0.2),
    SOLVE: ("grouping records, block by block", 0.2, 0.6),
    IN_CELLS[1]: ("refining cells across blocks, first round", 0.6, 0.77),
    PUBLISH: ("refining cells across blocks, second round", 0.77, 0.95),
}
"""What each stage is called, and from which share of the work to which it goes."""


@runtime_checkable
class NamesStages(Protocol):
    """A progress callback that shows the name of the stage."""

    def stage(self, name: str) -> None:
        """Take the name of the stage that begins."""


class DiskOutcome(NamedTuple):
    """What the stages leave: published records by the order of their hashes, and what was measured."""

    blueprint: Blueprint
    published: Spill
    n_buckets: int
    measured: list[MeasuredCells]
    again: "Callable[[DamagedError], DiskOutcome]"
    """Makes damaged pieces again."""


Pieces = Callable[[], Spill]
"""The records of a stage: returns its pieces, having made those that are missing."""


class _Done(NamedTuple):
    """What is kept of a complete stage: the names of its pieces, and what it found out."""

    pieces: list[str]
    found: Any


def make(
    job: Job, source: Batches, schema: Schema, scratch: Path, budget: MemoryBudget, progress: Progress | None = None
) -> DiskOutcome:
    """Make the published records of a checked job in a folder of `shoal.engines.disk.scratch.scratch_folder`.

    The result does not depend on the budget. A piece that is damaged twice ends the work.
    """
    engine = _DiskEngine(source, carried(schema), scratch, budget, progress)
    damaged: set[Path] = set()

    def made() -> DiskOutcome:
        while True:
            try:
                blueprint, published, measured = driver.make(engine, job, schema, source)
                engine.free(ASSIGN, *IN_CELLS)
                return DiskOutcome(blueprint, published(), _n_buckets(blueprint), measured, again)
            except DamagedError as damage:
                discard(damage)

    def again(damage: DamagedError) -> DiskOutcome:
        discard(damage)
        return made()

    def discard(damage: DamagedError) -> None:
        if damage.path in damaged:
            raise damage
        damaged.add(damage.path)
        if damage.path.is_dir():
            shutil.rmtree(damage.path)
        damage.path.unlink(missing_ok=True)

    return made()


class _DiskEngine:
    """Implements `shoal.engines.blocks.driver.Engine` with records in `Pieces`."""

    def __init__(
        self, source: Batches, columns: list[str], scratch: Path, budget: MemoryBudget, progress: Progress | None
    ) -> None:
        self._source, self._columns, self._scratch, self._budget = source, columns, scratch, budget
        self._progress = progress
        self._total = OneTotal(progress, max(source.n_records, 1))
        self._stages: dict[str, Pieces] = {}
        self._making: list[tuple[str, Spill]] = []
        """The stages that are being made, each for the one before it in this list, and where their pieces go."""

    def stage(self, name: str, make: Callable[[], tuple[Pieces, Any]]) -> tuple[Pieces, Any]:
        """Return the pieces of a stage, and what it found out, also if its pieces are no longer needed."""
        pieces = self._stages[name] = partial(self._complete, name, make)
        if self._done(name) is None:
            pieces()
        done = self._done(name)
        assert done is not None
        if name == FIT:
            check_space(self._scratch, int(_SPACE * done.found.n_bytes))
        return pieces, done.found

    def _complete(self, name: str, make: Callable[[], tuple[Pieces, Any]]) -> Spill:
        """Return the pieces of a stage; what is missing is made."""
        spill, done = Spill(self._folder(name)), self._done(name)
        if done is not None and set(done.pieces) <= set(spill.names):
            return spill
        self._making.append((name, spill))
        try:
            _, found = make()
        finally:
            self._making.pop()
        # After a power failure, what was complete is there.
        sync_folder(spill.folder)
        keep(self._note(name), _Done(spill.names, found))
        return spill

    def _done(self, stage: str) -> _Done | None:
        path = self._note(stage)
        return open_checked(path).note if path.exists() else None

    def _note(self, stage: str) -> Path:
        return self._folder(stage).with_suffix(".done")

    def _folder(self, stage: str) -> Path:
        """Return the folder of the pieces of a stage."""
        return self._scratch / stage.replace(" ", "-")

    def free(self, *stages: str) -> None:
        """Remove the pieces of stages."""
        for stage in stages:
            shutil.rmtree(self._folder(stage), ignore_errors=True)

    def _each(self, call: Callable[[Any], int], items: Iterable[Any], threads: int) -> None:
        """Process the items of a stage on several threads; `call` returns how many records it has done."""
        name, begin, end = STAGES[self._making[-1][0]]
        if isinstance(self._progress, NamesStages):
            self._progress.stage(name)
        report, caller, lock, done = self._total.part(begin, end), get_ident(), Lock(), 0

        def counted(item: Any) -> None:
            nonlocal done
            n_records = call(item)
            with lock:
                done += n_records
            if report is not None and get_ident() == caller:
                report(done, self._source.n_records)

        side_by_side(counted, items, threads)

    def _numbered(self) -> Iterator[tuple[NumberOf, pa.Table]]:
        """Yield the batches of the table, each with the numbers of its records."""
        n_before = 0
        for batch in self._source.read(self._columns):
            yield partial(_number, self._source.receipt, n_before), batch
            n_before += batch.num_rows

    @property
    def _target(self) -> Spill:
        """Where the pieces of the stage go that is being made."""
        return self._making[-1][1]

    def _gathering(self, name: str) -> Gathering:
        return Gathering(self._target, name, self._budget.buffer)

    def summarize(self, summary: Callable[..., TableSummary]) -> TableSummary:
        """Summarize batches on several threads; a record above the highest key of some is not in the sample of all."""
        gathered: list[TableSummary] = []
        lock = Lock()

        def of_batch(item: tuple[NumberOf, pa.Table]) -> int:
            number_of, batch = item
            highest = gathered[0].sample.highest_key if gathered else 2**64 - 1
            found = summary(batch, number_of=number_of, highest_key=highest)
            with lock:
                gathered.append(found)
                if len(gathered) > _MERGED:
                    gathered[:] = [TableSummary.merged(gathered)]
            return int(batch.num_rows)

        self._each(of_batch, self._numbered(), self._budget.threads)
        return TableSummary.merged(gathered or [summary(without_records(self._source.types).select(self._columns))])

    def assign(self, blueprint: Blueprint, send: Callable[..., Sent]) -> Pieces:
        """Send batches on several threads, from the first one, since pieces do not tell which batches they hold."""
        spill = self._target
        spill.clear()
        with self._gathering("input") as gathering:

            def send_batch(item: tuple[NumberOf, pa.Table]) -> int:
                number_of, batch = item
                sent = send(batch, number_of=number_of)
                gathering.add(sent.records, sent.leaves)
                return int(batch.num_rows)

            self._each(send_batch, self._numbered(), self._budget.threads)
        return lambda: spill

    def count(self, records: Pieces, n_leaves: int) -> Labels:
        """Return the number of records of each leaf, by the indexes of the pieces."""
        return records().counts(n_leaves)

    def sample(self, records: Pieces, leaf: int, draw: Callable[[pa.Table], Sample]) -> Sample:
        """Draw from the records of a leaf, batch by batch."""
        found: list[Sample] = []
        for batch in records().batches([leaf]):
            found = [Sample.merged([*found, draw(batch)])]
        return found[0]

    def reassign(self, records: Pieces, leaves: list[int], assign: Assign) -> Pieces:
        """Write the records of some leaves once more; the first ones are no longer read."""
        with self._gathering(f"deeper-{leaves[0]}") as gathering:
            for batch in records().batches(leaves):
                gathering.add(batch, assign(batch))
        return records

    def deal(self, records: Pieces, parts: dict[int, range], choose: Choose) -> Pieces:
        """Write the records of leaves once more; the hashes of those of a leaf that are dealt are in memory."""
        for leaf, (*dealing, last) in parts.items():
            spill, chosen, hashes = records(), list[NDArray[np.bool_]](), list[NDArray[np.uint64]]()
            for batch in spill.batches([leaf]):
                chosen.append(choose(batch, np.full(batch.num_rows, leaf)))
                hashes.append(hashes_of(batch)[:, chosen[-1]])
            ends = np.cumsum([each.shape[1] for each in hashes])
            places = np.split(dealt(np.concatenate(hashes, axis=1), len(dealing)), ends[:-1])
            with self._gathering(f"dealt-{leaf}") as gathering:
                for batch, which, dealt_to in zip(spill.batches([leaf]), chosen, places, strict=True):
                    leaves = np.full(batch.num_rows, last)
                    leaves[which] = dealing[0] + dealt_to
                    gathering.add(batch, leaves)
        return records

    def by_block(self, records: Pieces, blueprint: Blueprint, blocks: Labels, work: Work) -> Pieces:
        """Write one piece for each block."""
        before, target, leaves = records(), self._target, leaves_of_blocks(blocks)

        def of_block(number: int) -> Sent:
            return work(before.read(leaves[number].tolist()), number)

        self._write(blueprint, {f"block-{number}": partial(of_block, number) for number in range(len(leaves))})
        return lambda: target

    def publish(self, records: Pieces, blueprint: Blueprint, blocks: Labels, work: Publish) -> Pieces:
        """Write one piece for each block, and one for each piece of earlier stages that holds settled cells."""
        spills = [*(self._stages[stage]() for stage in IN_CELLS[:-1]), records()]
        target, leaves, n_buckets = self._target, leaves_of_blocks(blocks), _n_buckets(blueprint)
        self.free(ASSIGN)

        def of_block(number: int) -> Sent:
            return in_buckets(work(spills[-1].read(leaves[number].tolist()), number))

        def of_settled(spill: Spill, name: str) -> Sent:
            return in_buckets(work(spill.read_piece(name, SETTLED), None))

        def in_buckets(part: Part) -> Sent:
            columns = (part.published[column.name] for column in blueprint.schema.published)
            hashes = record_hashes(columns, len(part.published))
            return Sent(part.published, buckets_of(hashes[0], n_buckets), part.measured)

        pieces = {f"block-{number:06}": partial(of_block, number) for number in range(len(leaves))}
        for stage, spill in enumerate(spills):
            for name in spill.names_with(SETTLED):
                pieces[f"settled-{stage}-{name}"] = partial(of_settled, spill, name)
        self._write(blueprint, pieces)
        return lambda: target

    def _write(self, blueprint: Blueprint, pieces: Mapping[str, Callable[[], Sent]]) -> None:
        """Make and write the pieces that are missing, several at a time."""
        target = self._target
        workers = max(1, min(self._budget.workers(blueprint), len(pieces)))
        threads = max(1, self._budget.threads // workers)

        def write(name: str) -> int:
            if target.has(name):
                return 0
            with kernels.using(threads=threads):
                piece = pieces[name]()
                target.add(name, *piece)
            release_memory()
            return int(piece.records.num_rows)

        self._each(write, pieces, workers)

    def measured(self, published: Pieces) -> list[MeasuredCells]:
        """Return what was measured, in the order of the names of the pieces."""
        spill = published()
        return [spill.found(name) for name in spill.names]


def _n_buckets(blueprint: Blueprint) -> int:
    """Return how many parts the published records are sorted in."""
    return int(blueprint.n_bytes // _BUCKET) + 1


def buckets_of(first_halves: NDArray[np.uint64], n_buckets: int) -> Labels:
    """Return the bucket of each published record, in the order of the first half of its hash."""
    return np.asarray((first_halves >> np.uint64(32)) * np.uint64(n_buckets) >> np.uint64(32), dtype=np.int64)


def _number(receipt: Receipt, n_before: int, place: int) -> int:
    """Return the number of a record in its source, by its place in a batch."""
    return receipt.number_of(n_before + place)
