"""Fields: the settings of a job as fields of a form, each from its one definition, so that no page forgets one.

`WORDS` says what the pages call a setting; one without an entry goes by its description. A page orders and groups its
fields by a layout; what the layout does not name comes last, in a closed section. `NOT_ASKED` names the settings that
no form asks for, with the reason.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from shoal.columns.aggregates import AGGREGATES
from shoal.columns.schema import ColumnSettings, Kind, Role, Roles
from shoal.errors import ParameterError
from shoal.job import Input, Job, Output
from shoal.methods import ALGORITHMS
from shoal.output.report.sentences import kind_in_words
from shoal.settings import Settings, choices, holds_settings
from shoal.sources import FieldReading
from shoal.spelling import as_plain_text, number, plain_value
from shoal.typing import holds

if TYPE_CHECKING:
    from shoal.app.pages.common import Form

VALUES = frozenset({"missing_codes", "null_values", "categories", "top", "bottom", "skip_where"})
"""Settings that hold values of the table: where values are hidden, they are counted."""

ROLES = {
    Role.IDENTIFIER: "Leave out",
    Role.QUASI: "Protect: others may know it",
    Role.BY: "Keep groups apart by it",
    Role.CONFIDENTIAL: "Publish as it is: confidential",
    Role.OTHER: "Publish as it is",
}
"""What the roles are called on the pages."""

KINDS = {kind: kind_in_words(kind) for kind in Kind}
HELPS = {
    "subject": "says whose record it is",
    "household": "says which records form a household",
    "weights": "survey weights",
    "key": "names persons in all releases",
}

Control = Literal["switch", "choice", "menu", "lines", "pairs", "number", "whole", "text", "exact", "column", "columns"]
"""How a setting is entered; an exact text may be a blank or a tab, and a menu has room for another text."""

NO_MARK = "none"
"""The entry of a menu that stands for an empty text, where that is another thing than to leave the setting out."""

OTHER = "other:"
"""The entry of a menu that is followed by a text."""


class Words(NamedTuple):
    """What the pages call a setting, a hint, its values (the empty one is none), and whether it takes a line alone."""

    label: str
    hint: str = ""
    values: Mapping[str, str] = {}
    wide: bool = False


ENCODINGS = {
    "": "detected: Unicode (UTF-8)",
    "cp1252": "Western European (Windows)",
    "cp1250": "Central European (Windows)",
    "cp1251": "Cyrillic (Windows)",
    "cp1253": "Greek (Windows)",
    "cp1254": "Turkish (Windows)",
    "cp1257": "Baltic (Windows)",
    "utf-8": "Unicode (UTF-8)",
    "utf-16": "Unicode (UTF-16)",
    "iso8859-15": "Western European (ISO 8859-15)",
    "iso8859-2": "Central European (ISO 8859-2)",
    "cp850": "Western European (DOS)",
    "cp437": "United States (DOS)",
    "mac-roman": "Western European (Mac)",
    "shift_jis": "Japanese (Shift-JIS)",
    "gb18030": "Chinese simplified (GB18030)",
}
"""Encodings by the names that Windows and its programs give them."""

DELIMITER_NAMES = {"": "detected", ",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar", " ": "blank"}
DECIMALS = {"": "detected", ".": "point: 2.5", ",": "comma: 2,5"}
THOUSANDS = {"": "none", ".": "point: 1.000", ",": "comma: 1,000", " ": "blank: 1 000", "'": "apostrophe: 1'000"}
DATES = {
    "": "year-month-day: 2024-12-31",
    "%d.%m.%Y": "day.month.year: 31.12.2024",
    "%d/%m/%Y": "day/month/year: 31/12/2024",
    "%m/%d/%Y": "month/day/year: 12/31/2024",
    "%d-%m-%Y": "day-month-year: 31-12-2024",
    "%d.%m.%y": "day.month.year: 31.12.24",
    "%Y%m%d": "year, month, day: 20241231",
    "%d.%m.%Y %H:%M": "with time: 31.12.2024 23:59",
}

WORDS: Mapping[type[Settings], Mapping[str, Words]] = {
    Job: {
        "k": Words("k: records that hide together, at least", wide=True),
        "missing": Words(
            "Missing values of protected columns",
            "As a value of their own they group together: a group most of whose records have a value publishes one for "
            "all of them, also for those without one; where most have none, it publishes none.",
            values={"error": "are not allowed", "own-value": "are a value of their own"},
        ),
        "truthful": Words(
            "Publish only what is true of everybody in a group: ranges, sets and periods in place of means"
        ),
        "method": Words("Method"),
        "options": Words("Options of the method"),
        "scaling": Words(
            "Columns are compared",
            values={"zscore": "by the same spread", "minmax": "by the same range", "none": "in their own units"},
        ),
        "objective": Words(
            "Groups are made for",
            values={"sse": "means near to every record", "ncp": "narrow ranges and small sets"},
        ),
        "intervals": Words(
            "Ranges are published",
            values={"text": "as text, [30, 39]", "columns": "in two columns", "struct": "as pairs (Parquet, Arrow)"},
        ),
        "rare_patterns": Words(
            "Linked records whose number too few share",
            values={
                "cut": "stay linked as far as enough share, the rest is withheld",
                "unlink": "stay linked as far as enough share, the rest is published without the link",
                "withhold": "are withheld with all records of the person",
            },
        ),
        "seed": Words("Seed", "Repeats the release; drawn if empty."),
        "strict": Words("Ask about everything that may be misread, also what is only worth a look"),
        "rho": Words(
            "How random published means are, from 0 to 1", "Above 0 the release is not k-anonymous.", wide=True
        ),
        "after": Words(
            "Earlier releases of the same people",
            "Their files RELEASE.cells below the folder, one a line: all of them, also other versions.",
            wide=True,
        ),
        "may_withhold": Words("Share of people who may be withheld because of them, from 0 to 1"),
        "leavers": Words(
            "Where fewer than k people have left a group",
            values={"withhold": "withhold the rest of it", "state": "state what is told of those who left"},
        ),
        "reserve": Words("Share of people expected to leave before later releases, from 0 to 0.5"),
        "steer": Words(
            "Weight with which it steers the groups",
            "Above 0, equal values come into the same groups; below 0, into different ones. This promises nothing.",
            wide=True,
        ),
    },
    Roles: {
        "subject": Words("Column that says whose record it is"),
        "household": Words("Column that says which records form a household"),
        "weights": Words("Column with survey weights"),
        "keep_link": Words(
            "Records that stay linked",
            "They show a new random identifier, and k counts whole histories.",
            values={"": "none", "subject": "those of a person", "household": "those of a household"},
        ),
        "link_order": Words(
            "Columns that put linked records in order", "One a line, such as a date; the first decides."
        ),
        "key": Words("Column that names persons in all releases"),
        "household_level": Words(
            "Columns that stay equal within a household", "If none is ticked, those that are equal in the file."
        ),
    },
    ColumnSettings: {
        "kind": Words("Taken for", values={"": "as the file says"} | KINDS),
        "categories": Words("Order of its categories", "One a line, the lowest first; for ordered categories."),
        "missing_codes": Words("Codes for a missing value", "One a line, such as -9 or 999."),
        "weight": Words("Weight in distances"),
        "aggregate": Words(
            "A group publishes",
            values={
                "": "what suits its kind",
                **{name: aggregate.choice for name, aggregate in AGGREGATES.items()},
            },
        ),
        "hierarchy": Words("Hierarchy of its values", "A file below the folder, or prefix:1,3, steps:5,10, calendar"),
        "outside": Words(
            "Values that the hierarchy does not list",
            values={"error": "are not allowed", "root": "belong to its root alone"},
        ),
        "level": Words("Lowest level of it that is published"),
        "distance": Words(
            "Values of it are compared", values={"path": "by levels", "information": "by how rare their group is"}
        ),
        "step": Words("Ends of ranges are multiples of"),
        "precision": Words("Periods are, at the finest", values={"": "as fine as a group allows"}),
        "round": Words("Decimals of published numbers", values={"": "all"}),
        "top": Words("Larger values become"),
        "bottom": Words("Smaller values become"),
        "fold": Words("Texts that differ only in case or blanks are the same"),
        "keep_zeros": Words("Group records with a zero apart from others"),
    },
    FieldReading: {
        "decimal": Words("Decimal mark", values=DECIMALS),
        "thousands": Words("Mark between thousands", values=THOUSANDS),
        "date_format": Words("Format of dates", values=DATES),
        "unit": Words("Unit of the numbers", values={"": "none", "before": "before them", "after": "after them"}),
        "null_values": Words("Texts that mean “missing” here", "One a line, such as NA."),
    },
    Input: {
        "delimiter": Words("Character between fields", values=DELIMITER_NAMES),
        "encoding": Words("Encoding", values=ENCODINGS),
        "decimal": Words("Decimal mark", values=DECIMALS),
        "quote": Words("Quotation mark", values={"": 'double: "', "'": "single: '", NO_MARK: "none"}),
        "null_values": Words("Texts that mean “missing”", "One a line, such as NA."),
        "header": Words("The first line that is read holds the names of the columns"),
        "names": Words("Names of the columns", "One a line, if the file has none or other ones are wanted."),
        "thousands": Words("Mark between thousands", values=THOUSANDS),
        "date_format": Words("Format of dates", values=DATES),
        "unit": Words("Unit of numbers", values={"": "none", "before": "before them", "after": "after them"}),
        "max_unpacked_gb": Words("Largest size to unpack to, in GB"),
        "sheet": Words("Sheet of the workbook"),
        "header_row": Words("Line or row that names the columns", "Counted from 1; what is above it is not read."),
        "comment": Words("Lines that begin with this are comments, such as #"),
        "blanks": Words(
            "Blanks beside the character between fields",
            values={"": "no part of a field if the first line has them", "strip": "no part", "keep": "part of a field"},
        ),
        "fill_keys": Words("Keys that some lines lack are missing values"),
        "catalog": Words("Catalogue with the labels (.sas7bcat), below the folder"),
        "skip_rows": Words("Records to leave out, by number", "Such as 1-3,812; the first below the header is 1."),
        "skip_where": Words("Records to leave out, by a value", "COLUMN=VALUE, one a line, such as name=Total."),
    },
    Output: {
        "path": Words("File for the release"),
        "order": Words(
            "Order of the records", values={"shuffle": "shuffled", "keep": "as in the file, which can tell who is who"}
        ),
        "title": Words("Title of the report"),
        "author": Words("Who answers for the release"),
        "date": Words("Date in the report"),
        "bound": Words(
            "Show a lower bound of the loss in the report",
            values={"": "no", "cheap": "yes, quickly", "strong": "yes, as near as a minute allows"},
        ),
        "releases": Words("Folder of earlier releases", "You are warned if one of them holds people of the file."),
        "manifest": Words("File for the internal manifest", "By default beside the release."),
        "json_file": Words("JSON file with what the report says"),
    },
}

NOT_ASKED: Mapping[type[Settings], Mapping[str, str]] = {
    Job: {
        "models": "the form below adds one promise at a time, with the settings of its model",
        "accept": "a button beside each finding accepts it",
        **dict.fromkeys(("codes", "numbers", "kinds"), "the page Columns asks for the kinds of single columns"),
        "hierarchies": "the page Columns asks for the hierarchy of single columns",
        "engine": "the app makes releases in memory",
        "memory": "the app makes releases in memory",
        "late": "the app makes no collections",
        "stream": "the app makes no streams",
        "tables": "the app releases one table",
    },
    Roles: dict.fromkeys(
        ("identifiers", "quasi_identifiers", "by", "confidential", "other"), "the page Columns asks by column"
    ),
    Input: {
        "path": "a form of its own uses another file",
        "format": "the app does not read standard input",
        "table": "the app does not read databases",
        "query": "the app does not read databases",
    },
    Output: {
        "to_table": "the app does not write databases",
        "to_format": "the app does not write standard output",
        "report": "the report always stands beside the release",
        "form": "both forms of the report are written",
    },
}
"""Settings that no form asks for, with the reason."""

ELSEWHERE = "Further settings"
"""The section of the fields that a layout does not name."""

Layout = Mapping[str, Sequence[str]]
"""The fields of a form in order, by section; those of the section without a title are shown at once."""


@dataclass(frozen=True)
class Field:
    """A field of a form.

    Attributes
    ----------
    name : str
        The key of the setting in a job.
    label, hint : str
    control : str
        How it is entered.
    value : Any
        What it shows: a text, a switch, or the columns that are chosen.
    choices : list of pairs of str
        What can be chosen, and what it is called.
    placeholder : str
        What applies if it is empty.
    wide : bool
        Whether it takes a line of the form alone.
    is_set : bool
        Whether the job says something else than the default.
    """

    name: str
    label: str
    hint: str
    control: Control
    value: Any
    choices: list[tuple[str, str]]
    placeholder: str
    wide: bool
    is_set: bool

    @property
    def holds_values(self) -> bool:
        """Whether it is a list of values of the table."""
        return self.control == "lines" and self.name in VALUES

    def read(self, form: "Form", entry: Callable[[str], Any] = str) -> dict[str, Any]:
        """Return the setting as a form has it, and nothing if the form says nothing about it.

        A number that is none is left for the job to refuse; `entry` makes a value of a line.
        """
        if self.control == "switch":
            return {self.name: form.has(self.name) or None}
        if self.control == "columns":
            known = dict(self.choices)
            return {self.name: [known[place] for place in form.many(self.name) if place in known] or None}
        if self.holds_values and not (form.lines(self.name) or form.has(f"shown_{self.name}")):
            # A hidden list is kept unless it is written anew, or its removal is asked for.
            return {self.name: None} if form.has(f"remove_{self.name}") else {}
        return {self.name: self._entered(form, entry)} if form.has(self.name) else {}

    def _entered(self, form: "Form", entry: Callable[[str], Any]) -> Any:
        text = form.text(self.name)
        if self.control == "menu":
            chosen = form.raw(self.name)
            if chosen == NO_MARK:
                return ""
            return (form.raw(f"{self.name}-other") if chosen == OTHER else chosen) or None
        if self.control == "exact":
            return form.raw(self.name) or None
        if self.control == "lines":
            return [entry(line) for line in form.lines(self.name)]
        if self.control == "pairs":
            return dict(_pair(line, self.label) for line in form.lines(self.name))
        if self.control in ("choice", "column") and text and text not in dict(self.choices):
            raise ParameterError(f"{self.label}: there is no such choice.")
        if self.control == "column" and text:
            return dict(self.choices)[text]
        return (number(text) if self.control in ("number", "whole") else text) if text else None


class Section(NamedTuple):
    """Some fields of a form, below a title that opens and closes them."""

    title: str
    fields: list[Field]

    @property
    def is_open(self) -> bool:
        """Whether a field is set, so that it is shown."""
        return any(field.is_set for field in self.fields)


def words_of(key: str) -> Words:
    """Return what the pages call a setting, whichever part of a job it is in.

    Examples
    --------
    >>> words_of("sheet").label, words_of("none such").label
    ('Sheet of the workbook', 'none such')
    """
    return next((words[key] for words in WORDS.values() if key in words), Words(key))


def label_of(key: str) -> str:
    """Return the label of a setting in the middle of a sentence."""
    return words_of(key).label.partition(":")[0]


def value_in_words(key: str, value: Any) -> str:
    """Return a value of a setting as its field shows it.

    Examples
    --------
    >>> value_in_words("encoding", "cp1252"), value_in_words("seed", 3), value_in_words("names", ["a", "b"])
    ('Western European (Windows)', '3', 'a, b')
    """
    if isinstance(value, list | tuple):
        return ", ".join(value_in_words(key, entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return words_of(key).values.get(str(value), str(value))


def on_form(model: type[Settings]) -> list[str]:
    """Return the settings of a model that a form asks for; parts of a job have forms of their own."""
    not_asked = NOT_ASKED.get(model, {})
    return [
        name
        for name, about in model.model_fields.items()
        if name not in not_asked and not holds_settings(about.annotation)
    ]


def field_of(model: type[Settings], name: str, given: Settings | None, columns: Iterable[str] = ()) -> Field:
    """Return the field of a setting, with its value in `given`; `columns` are those of the file."""
    about, words = model.model_fields[name], WORDS.get(model, {}).get(name)
    default = None if about.is_required() else about.get_default(call_default_factory=True)
    value = default if given is None else getattr(given, name)
    if words is None:
        text = about.description or name.replace("_", " ")
        words = Words(f"{text[:1].upper()}{text[1:]}")
    control, is_set = _control(model, name), value not in (default, None)
    if control in ("column", "columns"):
        known = [(str(place), column) for place, column in enumerate(columns)]
        chosen = value or () if control == "columns" else (value,)
        value = [place for place, column in known if column in chosen]
        known = [("", "none"), *known] if control == "column" else known
    elif control == "menu":
        shown = _shown(control, value, is_set)
        known = [*words.values.items(), (OTHER, "another one")]
        known += [] if shown in words.values else [(shown, shown)]
    else:
        known = [(key, words.values.get(key, key or "by default")) for key in _choices(model, name, default)]
    return Field(
        name=about.alias or name,
        label=words.label,
        hint=words.hint,
        control=control,
        value=_shown(control, value, is_set),
        choices=known,
        placeholder=_shown(control, default, True) if control == "number" and default else words.values.get("", ""),
        wide=words.wide,
        is_set=is_set,
    )


def sections(fields: Iterable[Field], layout: Layout) -> list[Section]:
    """Return fields in the order and the groups of a layout; those that it does not name come last.

    Examples
    --------
    >>> found = sections([field_of(Job, name, None) for name in ("rho", "seed", "k")], {"": ["k"], "Seed": ["seed"]})
    >>> [(section.title, [field.name for field in section.fields]) for section in found]
    [('', ['k']), ('Seed', ['seed']), ('Further settings', ['rho'])]
    """
    waiting = {field.name: field for field in fields}
    found = [
        Section(title, [waiting.pop(name) for name in names if name in waiting]) for title, names in layout.items()
    ]
    return [section for section in (*found, Section(ELSEWHERE, list(waiting.values()))) if section.fields]


@cache
def _control(model: type[Settings], name: str) -> Control:
    """Return how a setting is entered, by its type."""
    annotation = model.model_fields[name].annotation
    if model is Roles and name != "link_order" and not choices(annotation):
        return "columns" if holds(annotation, tuple) else "column"
    if holds(annotation, bool):
        return "switch"
    if choices(annotation) or (model, name) == (Job, "method"):
        return "choice"
    for kind, control in ((tuple, "lines"), (dict, "pairs"), (int, "whole"), (float, "number")):
        if holds(annotation, kind):
            return control  # type: ignore[return-value]
    if WORDS.get(model, {}).get(name, Words("")).values:
        return "menu"
    return "exact" if model in (Input, FieldReading) else "text"


def _choices(model: type[Settings], name: str, default: Any) -> list[str]:
    """Return what can be chosen; first nothing, where no choice is the default."""
    known = list(ALGORITHMS) if (model, name) == (Job, "method") else choices(model.model_fields[name].annotation)
    return ["", *known] if known and default is None else known


def _shown(control: Control, value: Any, is_set: bool) -> Any:
    """Return a value as its field shows it; a default is shown as one, except in a choice."""
    if control == "switch":
        return bool(value)
    if control == "columns":
        return value
    if control == "column":
        return value[0] if value else ""
    if control in ("choice", "menu"):
        return NO_MARK if value == "" else "" if value is None else str(value)
    if not is_set:
        return ""
    if control == "lines":
        return "\n".join(map(str, value))
    if control == "pairs":
        return "\n".join(f"{name}={as_plain_text(entry)}" for name, entry in value.items())
    short = f"{value:g}" if isinstance(value, float) else ""
    return short if short and float(short) == value else str(value)


def _pair(line: str, label: str) -> tuple[str, Any]:
    name, sign, value = line.partition("=")
    if not sign or not name.strip():
        raise ParameterError(f"{label}: every line has to be NAME=VALUE, such as effort=best.")
    return name.strip(), plain_value(value.strip())
