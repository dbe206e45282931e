"""Engine: the stages of `shoal.engines.blocks` one after another, on batches of a file and pieces in a scratch folder.

A stage whose pieces are complete is not repeated, so that a job that was killed is continued. Pieces that are missing
or damaged are made again, from those of the stage before.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.schema import Schema
from shoal.engines.blocks.block_records import carried, dealt, hashes_of, travelling
from shoal.engines.blocks.blueprint import DEEPER, TOO_LARGE, Blueprint, Summary
from shoal.engines.blocks.cell_destinations import SETTLED, destinations
from shoal.engines.blocks.forest import leaves_of_blocks
from shoal.engines.blocks.publish import Measured, publish
from shoal.engines.blocks.sample import Sample
from shoal.engines.blocks.solve import refine_cells, solve
from shoal.engines.disk.checked_files import DamagedError, keep, open_checked
from shoal.engines.disk.memory import Budget
from shoal.engines.disk.scratch import check_space
from shoal.engines.disk.spill import Gathering, Spill, release_memory
from shoal.files import sync_folder
from shoal.job import Job
from shoal.kernels.parallel_calls import side_by_side
from shoal.output.published_order import record_hashes
from shoal.progress import OneTotal
from shoal.sources.batches import Batches
from shoal.typing import Labels, Progress

_SPACE = 2.5
"""How often the records lie in the scratch folder at a time, at most: two stages and what is being written."""

_MERGED = 16  # summaries at a time
_BUCKET = 1 << 26  # bytes of published records that are sorted at a time, about

STAGES = {
    "fit": ("reading and measuring all records", 0.0, 0.1),
    "assign": ("sending records to blocks", 0.1, 0.2),
    "solve": ("grouping records, block by block", 0.2, 0.6),
    "border 1": ("refining cells across blocks, first round", 0.6, 0.77),
    "border 2": ("refining cells across blocks, second round", 0.77, 0.95),
}
"""What each stage is called, and from which share of the work to which it goes."""

_IN_CELLS = ("solve", "border 1")
"""The stages whose pieces are records in cells."""


@runtime_checkable
class NamesStages(Protocol):
    """A progress callback that shows the name of the stage."""

    def stage(self, name: str) -> None:
        """Take the name of the stage that begins."""


class Made(NamedTuple):
    """What the stages leave: published records by the order of their hashes, and what was measured."""

    blueprint: Blueprint
    published: Spill
    n_buckets: int
    measured: list[Measured]
    again: "Callable[[DamagedError], Made]"
    """Makes damaged pieces again."""


class _Done(NamedTuple):
    """What is kept of a complete stage: the names of its pieces, and what it found out."""

    pieces: list[str]
    found: Any


def make(
    job: Job, source: Batches, schema: Schema, scratch: Path, budget: Budget, progress: Progress | None = None
) -> Made:
    """Make the published records of a job in a scratch folder.

    Parameters
    ----------
    job : Job
        Checked against the schema, with a seed.
    source : Batches
        The table.
    schema : Schema
        Its columns with their roles.
    scratch : Path
        A folder of `shoal.engines.disk.scratch.scratch_folder`.
    budget : Budget
        Memory and threads; the result does not depend on them.
    progress : callable, optional
        Called as ``progress(done, n_records)``.
    """
    return _Making(job, source, schema, scratch, budget, progress).made()


class _Making:
    """One run of all stages."""

    def __init__(
        self, job: Job, source: Batches, schema: Schema, scratch: Path, budget: Budget, progress: Progress | None
    ) -> None:
        self.job, self.source, self.schema, self.scratch, self.budget = job, source, schema, scratch, budget
        self._progress = progress
        self._total = OneTotal(progress, max(source.n_records, 1))
        self._damaged: set[Path] = set()
        self._work: dict[str, Callable[[Spill], Any]] = {
            "fit": self._fitted,
            "assign": self._assigned,
            "solve": partial(self._sent, "solve", "assign", solve),
            "border 1": partial(self._sent, "border 1", "solve", refine_cells),
            "published": self._published,
        }

    def made(self) -> Made:
        """Run the stages until no piece is missing; one that is damaged twice ends the work."""
        while True:
            try:
                return self._made()
            except DamagedError as damage:
                self._discard(damage)

    def again(self, damage: DamagedError) -> Made:
        """Return what `made` does, with the damaged piece made again."""
        self._discard(damage)
        return self.made()

    def _discard(self, damage: DamagedError) -> None:
        if damage.path in self._damaged:
            raise damage
        self._damaged.add(damage.path)
        if damage.path.is_dir():
            shutil.rmtree(damage.path)
        damage.path.unlink(missing_ok=True)

    def _made(self) -> Made:
        check_space(self.scratch, int(_SPACE * self._found("fit").n_bytes))
        blueprint = self._found("assign")
        published, names = self._stage("published")
        for stage in ("assign", *_IN_CELLS):
            shutil.rmtree(self._folder(stage), ignore_errors=True)
        measured = [published.found(name) for name in names]
        return Made(blueprint, published, _n_buckets(blueprint), measured, self.again)

    def _stage(self, stage: str) -> tuple[Spill, Any]:
        """Return the pieces of a stage and what it found out; what is missing is made."""
        spill, done = Spill(self._folder(stage)), self._done(stage)
        if done is not None and set(done.pieces) <= set(spill.names):
            return spill, done.found
        found = self._work[stage](spill)
        # After a power failure, what was complete is there.
        sync_folder(spill.folder)
        keep(self._note(stage), _Done(spill.names, found))
        return spill, found

    def _found(self, stage: str) -> Any:
        """Return what a stage found out, also if its pieces are no longer needed."""
        done = self._done(stage)
        return self._stage(stage)[1] if done is None else done.found

    def _done(self, stage: str) -> _Done | None:
        path = self._note(stage)
        return open_checked(path).note if path.exists() else None

    def _note(self, stage: str) -> Path:
        return self._folder(stage).with_suffix(".done")

    def _folder(self, stage: str) -> Path:
        """Return the folder of the pieces of a stage."""
        return self.scratch / stage.replace(" ", "-")

    def _begin(self, stage: str) -> Callable[[int, int], None]:
        """Report that a stage begins; return how its progress is reported."""
        name, begin, end = STAGES[stage]
        if isinstance(self._progress, NamesStages):
            self._progress.stage(name)
        report = self._total.part(begin, end)
        return report or (lambda done, total: None)

    def _each(self, call: Callable[[Any], int], items: Iterable[Any], stage: str, threads: int) -> None:
        """Process items on several threads; `call` returns how many records it has done."""
        report, caller, lock, done = self._begin(stage), get_ident(), Lock(), 0

        def counted(item: Any) -> None:
            nonlocal done
            n_records = call(item)
            with lock:
                done += n_records
            if get_ident() == caller:
                report(done, self.source.n_records)

        side_by_side(counted, items, threads)

    def _fitted(self, spill: Spill) -> Blueprint:
        gathered: list[Summary] = []
        lock = Lock()
        seed = self.job.seed or 0

        def summarize(item: tuple[int, pa.Table]) -> int:
            first_record, batch = item
            highest = gathered[0].sample.highest_key if gathered else 2**64 - 1
            summary = Summary.of(batch, self.schema, seed, first_record, highest_key=highest)
            with lock:
                gathered.append(summary)
                if len(gathered) > _MERGED:
                    gathered[:] = [Summary.merged(gathered)]
            return int(batch.num_rows)

        self._each(summarize, self._numbered(), "fit", self.budget.threads)
        if not gathered:
            empty = self.source.types.empty_table().select(carried(self.schema))
            gathered.append(Summary.of(empty, self.schema, seed))
        return Blueprint.of(self.job, self.schema, Summary.merged(gathered), is_csv=self.source.kind == "csv")

    def _numbered(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield the batches of the table, each with the number of its first record."""
        first_record = 0
        for batch in self.source.read(carried(self.schema)):
            yield first_record, batch
            first_record += batch.num_rows

    def _assigned(self, spill: Spill) -> Blueprint:
        blueprint = self._found("fit")
        spill.clear()
        with Gathering(spill, "input", self.budget.buffer) as gathering:

            def send(item: tuple[int, pa.Table]) -> int:
                records = travelling(item[1], blueprint.schema, item[0])
                gathering.add(records, blueprint.assign(records))
                return int(records.num_rows)

            self._each(send, self._numbered(), "assign", self.budget.threads)
        return self._with_small_leaves(blueprint, spill)

    def _with_small_leaves(self, blueprint: Blueprint, spill: Spill) -> Blueprint:
        """Cut leaves that are too large further; scatter those whose records are equal."""
        equal: set[int] = set()
        for attempt in range(DEEPER):
            counts = spill.counts(blueprint.n_leaves())
            counts[[*blueprint.forests[0].deeper, *equal]] = 0
            large = np.flatnonzero(counts > TOO_LARGE * blueprint.size).tolist()
            for leaf in large:
                deeper = blueprint.deepened(leaf, self._sample(blueprint, spill, leaf), int(counts[leaf]))
                if deeper is blueprint:
                    equal.add(leaf)
                    continue
                blueprint = deeper
                with Gathering(spill, f"deeper-{attempt}-{leaf}", self.budget.buffer) as gathering:
                    for records in spill.batches([leaf]):
                        gathering.add(records, blueprint.assign(records))
            if not large:
                break
        for leaf in sorted(equal):
            blueprint = self._scattered(blueprint, spill, leaf)
        return blueprint

    def _sample(self, blueprint: Blueprint, spill: Spill, leaf: int) -> Sample:
        """Draw a sample from the records of a leaf."""
        names = [name for name in carried(blueprint.schema) if name in blueprint.schema.quasi_names]
        found: Sample | None = None
        for records in spill.batches([leaf]):
            drawn = Sample.of(records, names, self.job.seed or 0)
            found = drawn if found is None else Sample.merged([found, drawn])
        assert found is not None
        return found

    def _scattered(self, blueprint: Blueprint, spill: Spill, leaf: int) -> Blueprint:
        """Split a leaf of equal points, by content, into parts of the size of a block; others are the last part."""
        first = blueprint.points(self._sample(blueprint, spill, leaf).records.slice(0, 1))[0]
        begin, counts = blueprint.n_leaves(), spill.counts(blueprint.n_leaves())
        n_parts = int(-(-counts[leaf] // blueprint.size)) + 1

        def is_equal(records: pa.Table) -> NDArray[np.bool_]:
            return np.asarray((blueprint.points(records) == first).all(axis=1))

        equal = [hashes_of(records)[:, is_equal(records)] for records in spill.batches([leaf])]
        parts, n_dealt = dealt(np.concatenate(equal, axis=1), n_parts - 1), 0
        with Gathering(spill, f"scattered-{leaf}", self.budget.buffer) as gathering:
            for records, hashes in zip(spill.batches([leaf]), equal, strict=True):
                leaves = np.full(records.num_rows, begin + n_parts - 1)
                leaves[is_equal(records)] = begin + parts[n_dealt : n_dealt + hashes.shape[1]]
                n_dealt += hashes.shape[1]
                gathering.add(records, leaves)
        return blueprint.scattering(leaf, n_parts)

    def _blocks(self, blueprint: Blueprint, spill: Spill, border_round: int) -> list[Labels]:
        """Return the leaves of each block of records, or of cells in a border round."""
        counts = spill.counts(blueprint.n_leaves(border_round))
        if border_round == 0:
            counts[[*blueprint.forests[0].deeper, *blueprint.scattered]] = 0
        return leaves_of_blocks(blueprint.blocks(counts, border_round))

    def _sent(
        self, stage: str, before: str, work: Callable[[pa.Table, Blueprint, int, int], pa.Table], target: Spill
    ) -> None:
        """Make or refine the cells of all blocks, and say where they go next; each block leaves one piece."""
        blueprint, spill, border_round = self._found("assign"), self._stage(before)[0], _IN_CELLS.index(stage)
        blocks = self._blocks(blueprint, spill, border_round)
        first = list(STAGES).index(stage) << 20  # numbers that no block of another stage has
        workers, threads = self._shared(blueprint, len(blocks))

        def block(number: int) -> int:
            name = f"block-{number}"
            if target.has(name):
                return 0
            made = work(spill.read(blocks[number].tolist()), blueprint, first + number, threads)
            with kernels.using(threads=threads):
                target.add(name, made, destinations(made, blueprint, border_round + 1))
            release_memory()
            return int(made.num_rows)

        self._each(block, range(len(blocks)), stage, workers)

    def _published(self, target: Spill) -> list[str]:
        """Refine the last blocks and publish them, and the cells that needed no refinement; return the pieces."""
        blueprint, spills = self._found("assign"), [self._stage(stage)[0] for stage in _IN_CELLS]
        shutil.rmtree(self._folder("assign"), ignore_errors=True)
        blocks, n_buckets = self._blocks(blueprint, spills[-1], len(spills)), _n_buckets(blueprint)
        workers, threads = self._shared(blueprint, len(blocks))
        settled = [(spill, name) for spill in spills for name in spill.names_with(SETTLED)]
        first = len(STAGES) << 20

        def refined(number: int) -> pa.Table:
            records = spills[-1].read(blocks[number].tolist())
            return refine_cells(records, blueprint, first + number, threads)

        units: list[tuple[str, Callable[[], pa.Table]]] = [
            *((f"block-{number}", partial(refined, number)) for number in range(len(blocks))),
            *((f"{spill.folder.name}-{name}", partial(spill.read_piece, name, SETTLED)) for spill, name in settled),
        ]

        def publish_unit(unit: tuple[str, Callable[[], pa.Table]]) -> int:
            name, cells = unit
            if target.has(name):
                return 0
            with kernels.using(threads=threads):
                part = publish(cells(), blueprint)
                columns = (part.published[column.name] for column in blueprint.schema.published)
                hashes = record_hashes(columns, len(part.published))
                target.add(name, part.published, buckets_of(hashes[0], n_buckets), part.measured)
            release_memory()
            return int(part.published.num_rows)

        self._each(publish_unit, units, "border 2", workers)
        return [name for name, _ in units]

    def _shared(self, blueprint: Blueprint, n_blocks: int) -> tuple[int, int]:
        """Return how many blocks are processed at a time, and with how many threads each."""
        workers = max(1, min(self.budget.workers(blueprint), n_blocks))
        return workers, max(1, self.budget.threads // workers)


def _n_buckets(blueprint: Blueprint) -> int:
    """Return how many parts the published records are sorted in."""
    return int(blueprint.n_bytes // _BUCKET) + 1


def buckets_of(first_halves: NDArray[np.uint64], n_buckets: int) -> Labels:
    """Return the bucket of each published record, in the order of the first half of its hash."""
    return np.asarray((first_halves >> np.uint64(32)) * np.uint64(n_buckets) >> np.uint64(32), dtype=np.int64)
