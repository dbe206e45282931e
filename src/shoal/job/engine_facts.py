"""Engines: what can make a release, and what each can do, as data for jobs, checks, help and docs."""

from typing import Annotated, Literal, NamedTuple

from shoal.errors import ParameterError
from shoal.settings import OneOf
from shoal.spelling import setting


class EngineFacts(NamedTuple):
    """What there is to know about an engine before it is imported."""

    summary: str
    """Where the records are, for help and docs."""

    reads: str
    writes: str

    place: Literal["anywhere", "in parts", "on Spark"] = "anywhere"
    """Where its releases can go (`shoal.output.destination`): to all files and databases, to files that are written and
    read back in parts, or to what Spark writes."""

    in_blocks: bool = False
    """Whether cells are made block by block (`shoal.engines.blocks`): what `LIMITS` there lists is refused then, the
    order of the input is not kept, and the table of the release is no frame in memory."""

    takes_memory: bool = False
    """Whether it can be given a limit of memory; one that is given without an engine chooses the first that can."""


ENGINES = {
    "memory": EngineFacts("all records in memory", "any table", "any format"),
    "disk": EngineFacts(
        "a part of them at a time, for files larger than memory",
        "a Parquet, Arrow or CSV file, a folder of Parquet files",
        "a Parquet, Arrow or CSV file",
        place="in parts",
        in_blocks=True,
        takes_memory=True,
    ),
    "spark": EngineFacts(
        "on a Spark cluster",
        "a Spark DataFrame, a Parquet file, a folder of Parquet files",
        "a folder of Parquet files, a table of Spark's catalogue",
        place="on Spark",
        in_blocks=True,
    ),
}
"""Every engine; the first one is the default."""

EngineName = Annotated[str, OneOf(ENGINES)]
"""The name of an engine, as a user gives it."""

IN_MEMORY = next(iter(ENGINES))
LIMITED = next(name for name, facts in ENGINES.items() if facts.takes_memory)
"""The engine of a job that names none, without and with a limit of memory."""


def engines_in_words() -> str:
    """Return the engines in words, for help."""
    return ", ".join(f"{name} ({facts.summary})" for name, facts in ENGINES.items())


def beyond(engine: str, what: str, why: str) -> ParameterError:
    """Return the refusal of what an engine cannot give; it names the one that can."""
    return ParameterError(
        f"The engine {engine!r} cannot do this: {what}. The reason: {why}. Leave it out, or use "
        f"{setting('engine', IN_MEMORY)} on a machine whose memory holds the table."
    )
