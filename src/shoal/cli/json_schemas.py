"""JSON schemas: what commands print with ``--json``, key by key, with the units. ``--json-schema`` prints them.

Names and units are those of the manifests and of the objects in Python: shares, risks and losses are from 0 to 1. The
page docs/json.md is generated from here, and a test compares what commands print.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


def _is(description: str) -> Any:
    return Field(description=description)


class Shape(BaseModel):
    """An object all of whose keys are stated."""

    model_config = ConfigDict(extra="forbid")


class Found(Shape):
    """What was counted of a privacy model, after the model's own settings, such as l or t."""

    model_config = ConfigDict(extra="allow")

    model: Annotated[str, _is("name of the model")]
    column: Annotated[str, _is("confidential column")]
    promise: Annotated[str, _is("the model in words")]
    promised: Annotated[bool, _is("whether it promises anything, or only measures")]
    holds: Annotated[bool, _is("whether all classes satisfy it")]
    unit: Annotated[str, _is("what value and mean are")]
    value: Annotated[float | None, _is("the worst value of a class; null if infinite")]
    mean: Annotated[float | None, _is("mean over the records")]
    n_classes: int
    n_failing: Annotated[int, _is("classes that violate it")]
    note: str


class Diversity(Shape):
    """Diversity of a confidential column, in the worst class."""

    distinct: Annotated[int, _is("different values")]
    entropy: Annotated[float, _is("entropy l")]
    recursive: Annotated[float | None, _is("recursive c; null if infinite")]
    t: Annotated[float, _is("largest distance from the distribution in the table")]
    mean_t: Annotated[float, _is("its mean over the records")]


class Truth(Shape):
    """Whether intervals, sets, ancestors or periods are true."""

    column: str
    form: Annotated[str, _is("interval, set, ancestor or period")]
    n_values: Annotated[int, _is("different published values")]
    n_false: Annotated[int | None, _is("records for which it is false; null without the originals")]
    n_exposed: Annotated[int | None, _is("records with an end that too few people share")] = None


class Unchanged(Shape):
    """A column that is published unchanged and nearly identifies."""

    column: str
    share: Annotated[float, _is("records whose value fewer than k have")]
    alone: Annotated[float, _is("records whose value no other has")]


class Linked(Shape):
    """Whole histories."""

    column: Annotated[str, _is("column that links the records of a person")]
    n_persons: int
    n_classes: Annotated[int, _is("different histories")]
    smallest: Annotated[int, _is("persons who share the rarest history")]
    n_below: Annotated[int, _is("persons whose history fewer than k share")]
    lengths: Annotated[dict[str, int], _is("number of persons by number of records")]
    n_unlinked: Annotated[int, _is("records without the link")]


class BelowK(Shape):
    """A record in a class smaller than k."""

    record: Annotated[int, _is("number of the record, from 1")]
    size: Annotated[int, _is("size of its class")]


class Verdict(Shape):
    """What `shoal audit` counts in a published table."""

    holds: Annotated[bool, _is("whether every class has k records and satisfies every model")]
    withdrawn: Annotated[str | None, _is("why a release promises nothing, as after random aggregation")]
    k: Annotated[int | None, _is("k that was asked for")]
    n_records: int
    n_classes: int
    smallest: Annotated[int, _is("size of the smallest class: the k that was found")]
    n_below: Annotated[int, _is("records in classes smaller than k")]
    sizes: Annotated[dict[str, int], _is("number of classes by size")]
    quasi_identifiers: list[str]
    subjects: Annotated[int | None, _is("different subjects in the class that has fewest")]
    confidential: Annotated[dict[str, Diversity], _is("by column")]
    models: list[Found]
    truth: list[Truth]
    linked: Linked | None = None
    unchanged: list[Unchanged]
    below_k: Annotated[list[BelowK] | None, _is("with --list")] = None


class Learned(Shape):
    """What all releases of a series tell about some people."""

    n_people: int
    n_groups: Annotated[int, _is("groups of people with the same classes and absences")]
    smallest: Annotated[int, _is("people in the smallest")]
    n_below: Annotated[int, _is("people in groups smaller than k")]
    n_alone: int
    n_computed: Annotated[int, _is("people whose values follow by subtraction")]
    n_failing: Annotated[dict[str, int], _is("people in groups that violate a model")]
    n_determined: Annotated[dict[str, int], _is("people with one possible value, by column")]


class SeriesVerdict(Shape):
    """What `shoal audit --series` counts."""

    holds: bool
    k: int
    n_releases: int
    present: Annotated[Learned, _is("people in the last release")]
    left: Annotated[Learned, _is("people who left before it")]


class Receipt(Shape):
    """How a column was read."""

    name: str
    read_as: str
    label: str | None
    special: Annotated[list[str], _is("marks of numbers and the like")]
    decided_by: Literal["settings", "file", "default"]
    n_missing: int | None
    n_different: int | None
    n_decimals: Annotated[int | None, _is("decimals of the numbers, if they have few")]
    missing_by: Annotated[list[str], _is("what stands for a missing value; may be a value")]
    public: str
    line: Annotated[str, _is("all of it in a line")]


class ColumnLoss(Shape):
    """Loss of one column."""

    il: Annotated[float, _is("share of its variance within classes")]
    sse: float
    sst: float
    mse: float
    changed: Annotated[float, _is("records whose value has changed")]


class Loss(Shape):
    """Information lost."""

    il: Annotated[float, _is("information loss, SSE / SST")]
    sse: float
    sst: float
    mse: Annotated[float, _is("mean squared distance from the published record")]
    mae: Annotated[float, _is("mean distance")]
    columns: dict[str, ColumnLoss]


class Certainty(Shape):
    """Normalised certainty penalty."""

    ncp: float
    columns: dict[str, float]


class Linkage(Shape):
    """Linkage by distance."""

    dld: Annotated[float, _is("published records whose own original is the nearest")]
    dld_within_2: Annotated[float, _is("among the two nearest")]
    linked: Annotated[float, _is("originals linked to their own published record")]
    within: Annotated[dict[str, float], _is("the same within so many nearest")]
    median_rank: float
    n_ranked: Annotated[int, _is("records ranked: all, or a sample")]


class ClassRisk(Shape):
    """Risk by class sizes."""

    prosecutor_max: float
    prosecutor_mean: float
    prosecutor_above: Annotated[float, _is("records above the threshold")]
    n_highest: Annotated[int, _is("records with the highest risk")]
    journalist_max: float
    journalist_mean: float
    journalist_above: float
    marketer: float
    threshold: float
    population: Annotated[str, _is("what the journalist's numbers are of: sample, or estimated population")]


class Uniqueness(Shape):
    """Records that are alone in the original."""

    sample: float
    population: Annotated[float | None, _is("estimated; null without weights")]


class Interval(Shape):
    """Values recovered within an interval around the published one."""

    by_rank: float
    by_sd: float


class Matching(Shape):
    """All originals matched with all published records."""

    linked: float
    n_tried: int
    n_blocks: int


class Risk(Shape):
    """Reidentification by somebody who holds the originals."""

    linkage: Linkage
    classes: ClassRisk
    uniqueness: Uniqueness | None
    intervals: dict[str, Interval]
    matching: Matching | None


class NumericChange(Shape):
    """Changes of a numeric column."""

    mean: Annotated[float, _is("in standard deviations of the original")]
    variance: Annotated[float, _is("after over before, minus 1")]
    il1s: float
    removed: Annotated[float, _is("values that are missing in the release")]


class NumericUtility(Shape):
    """Changes of numbers."""

    columns: dict[str, NumericChange]
    il1s: float
    correlation_max: float
    correlation_mean: float
    eigenvalues_before: list[float]
    eigenvalues_after: list[float]


class NominalChange(Shape):
    """Changes of a column of categories."""

    changed: float
    total_variation: float
    hellinger: float


class Utility(Shape):
    """What the release preserves."""

    numeric: NumericUtility | None
    nominal: dict[str, NominalChange] | None


class Attack(Shape):
    """An attack that was tried."""

    name: str
    column: str | None
    before: Annotated[float | None, _is("share of people for whom it succeeds on the originals; null if not tried")]
    after: Annotated[float | None, _is("the same on the release")]
    meaning: Annotated[str, _is("what counts as a success, or why it was not tried")]


class Quality(Shape):
    """A measure of other tools."""

    value: Annotated[float, _is("as it is defined")]
    loss: Annotated[float, _is("from the original to one class of which nothing is known")]
    columns: dict[str, float]


class Linking(Shape):
    """What became of linked records."""

    policy: str
    n_persons: int
    n_linked: int
    n_cut: int
    n_linked_records: int
    n_unlinked_records: int
    n_withheld_records: int
    n_without: int
    n_patterns: int
    n_rare: int
    il_without_link: Annotated[float | None, _is("loss of the same records without the link")]


class Release(Shape):
    """What `shoal run` has made; for internal use, as the internal manifest is."""

    job: Annotated[dict[str, Any], _is("all settings, with the seed: what a job file holds")]
    verdict: Verdict
    n_left_out: Annotated[int, _is("records left out on request")]
    reading: list[Receipt]
    loss: Loss
    certainty: Certainty | None = None
    risk: Risk
    utility: Utility
    attacks: list[Attack]
    quality: Annotated[dict[str, Quality] | None, _is("as ARX measures it, by measure")] = None
    linking: Linking | None = None
    series: Annotated[dict[str, Any] | None, _is("what the release is in its series")] = None
    sampled: Annotated[dict[str, Any] | None, _is("what was measured on a sample, with a limit of memory")] = None
    written: Annotated[list[str], _is("files, the release first")]
    warnings: Annotated[list[str], _is("what to check before publishing")]


class Planned(Shape):
    """What `shoal run --dry-run` says."""

    job: Annotated[dict[str, Any], _is("all settings")]
    table: Annotated[str, _is("what would be read, in words")]
    cells: Annotated[str, _is("what would be grouped, in words")]
    n_left_out: Annotated[int, _is("records left out on request")]
    n_withheld: Annotated[int, _is("people withheld because of earlier releases")]
    would_write: list[str]


class Remedy(Shape):
    """Settings that answer a finding."""

    place: Literal["field", "column", "role", "accept", "rows"]
    column: str
    settings: dict[str, Any]
    option: Annotated[str, _is("on the command line")]
    key: Annotated[str, _is("in a job")]
    argument: Annotated[str, _is("in Python")]
    r: Annotated[str, _is("in R")]


class Finding(Shape):
    """What may be misread."""

    name: str
    column: str
    what: str
    why: str
    remedies: list[Remedy]
    question: Annotated[bool, _is("whether a release asks")]


class InspectedColumn(Shape):
    """A column of a table."""

    name: str
    type: Annotated[str, _is("its type in Arrow")]
    kind: Annotated[str | None, _is("numeric, ordinal, nominal or date; null if it cannot be used")]
    is_number: bool
    label: str | None
    read: Receipt
    missing: Annotated[int, _is("records without a value")]
    distinct: Annotated[int | None, _is("different values")]
    unique: Annotated[float | None, _is("records that it alone makes unique")]
    role: Annotated[str, _is("proposed role")]
    used_for: Annotated[str | None, _is("subject, household or weights, if proposed")]
    proposed_kind: str | None
    proposed_round: Annotated[int | None, _is("decimals of published means")]
    reason: str
    findings: list[Finding]


class Combination(Shape):
    """Columns that together make records unique."""

    columns: list[str]
    unique: float


class Inspection(Shape):
    """What `shoal inspect` counts."""

    n_records: int
    columns: list[InspectedColumn]
    together: Annotated[float, _is("records that the proposed quasi-identifiers make unique")]
    combinations: list[Combination]
    complete: Annotated[bool, _is("whether all combinations were examined")]
    notes: list[str]
    command: Annotated[str | None, _is("command with the proposed roles; null if there are too few records")]


class Choice(Shape):
    """A k with a method."""

    method: str
    k: int
    loss: float
    risk: float
    marketer: float
    n_classes: int
    smallest: int
    rho: float
    k_anonymous: bool
    undominated: bool
    ncp: float | None


class Skipped(Shape):
    """A choice that was not made."""

    method: str
    k: int | None
    reason: str


class Comparison(Shape):
    """What `shoal compare` measures."""

    n_records: int
    risk: Annotated[str, _is("what the risk of a choice is")]
    seed: int
    models: Annotated[list[str], _is("models that all choices satisfy, in words")]
    choices: list[Choice]
    recommended: Choice | None
    skipped: list[Skipped]
    warnings: list[str]


class Plan(Shape):
    """What `shoal plan` computes; times are in seconds, from the end of the collection on."""

    late_share: Annotated[float, _is("share of the records that arrive after the start")]
    start: float
    base_seconds: float
    late_seconds: float
    wait: float
    finish: float
    finish_between: tuple[float, float]
    ordinary: Annotated[float, _is("duration of the ordinary job")]
    deadline: float | None
    extra_loss: float | None
    variant: str
    collection: float


SCHEMAS: dict[str, TypeAdapter[Any]] = {
    "run": TypeAdapter(Release | Planned),
    "audit": TypeAdapter(Verdict | SeriesVerdict),
    "inspect": TypeAdapter(Inspection),
    "compare": TypeAdapter(Comparison),
    "attack": TypeAdapter(list[Attack]),
    "plan": TypeAdapter(Plan),
}
"""What each command prints with ``--json``."""

OBJECTS: tuple[type[Shape], ...] = (
    *(
        Release,
        Planned,
        Verdict,
        SeriesVerdict,
        Inspection,
        Comparison,
        Plan,
        Attack,
        Found,
        Diversity,
        Truth,
        Unchanged,
    ),
    *(Linked, BelowK, Learned, Receipt, Loss, ColumnLoss, Certainty, Risk, Linkage, ClassRisk, Uniqueness, Interval),
    *(Matching, Utility, NumericUtility, NumericChange, NominalChange, Quality, Linking, InspectedColumn, Finding),
    *(Remedy, Combination, Choice, Skipped),
)
"""All of them, those of whole commands first."""
