"""Blocks: a release of more records than fit into memory, as pure functions on batches, for any engine.

An engine reads batches, moves records between stages and writes: it is a class of the verbs of `driver.Engine`, and
`driver.make` orders the stages for all of them. Everything else is here. The stages, and what passes between them:

    fit        batch -> TableSummary                  TableSummary.of, TableSummary.merged (in any order)
    cuts       TableSummary -> Blueprint              Blueprint.of; small, pickled to wherever stages run
    assign     batch -> records with a leaf           records.travelling, Blueprint.assign
    blocks     records per leaf -> block per leaf     Blueprint.blocks; Blueprint.deepened cuts a leaf that is too large
    solve      records of a block -> with cells       solve.solve
    border     records in cells -> leaf of each       solve.destinations; SETTLED ones wait for `aggregate`
    refine     records of a block -> with cells       solve.refine_cells; border and refine run BORDER_ROUNDS times
    aggregate  whole cells -> Part                    publish.publish: published records, and what was measured
    recount    published records -> Verdict           recount.class_parts, auditing.recount, recount.merged_verdicts
    measure    what was measured -> BlockMeasures     measure.BlockMeasures

Records travel as Arrow tables: the prepared columns, two columns with a hash of the content, from `solve` on the cell.
Wherever an order could matter records are sorted by content, and sums are exact or taken over content order. So the
published records, as a multiset, depend on the records, the job and its seed alone: not on their order, files, batches,
threads, machines or the engine. `limits.LIMITS` lists what blocks cannot do.
"""
