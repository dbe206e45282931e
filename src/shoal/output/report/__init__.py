"""Report: a release becomes one page, one JSON text or a few lines on a terminal.

`gather` collects the facts, a format presents them; a new format is a function of the facts and a line in `FORMATS`.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shoal.errors import ParameterError
from shoal.output.report.facts import Form, gather
from shoal.output.report.terminal import to_text
from shoal.typing import ReportFormat

if TYPE_CHECKING:
    from shoal.output.release import Release

__all__ = ["FORMATS", "Form", "gather", "render"]


def to_html(facts: Mapping[str, Any]) -> str:
    """Return the facts as a page; imported here, since the other formats do not need Jinja."""
    from shoal.output.report.html import to_html

    return to_html(facts)


def to_json(facts: Mapping[str, Any]) -> str:
    """Return the facts as JSON."""
    return json.dumps(facts, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "html": to_html,
    "json": to_json,
    "terminal": to_text,
}
"""The formats of a report."""


def render(release: "Release", format: ReportFormat = "html", form: Form = "internal", **page: Any) -> str:
    """Report on a release.

    Parameters
    ----------
    release : Release
        What `shoal.anonymize` returns.
    format : {"html", "json", "terminal"}
        One of `FORMATS`.
    form : {"internal", "public"}
        The internal form compares with the original and can repeat the release; it is not for publication. The public
        form may accompany the data: it shows nothing that depends on the original beyond what the release shows.
    **page
        ``bound``, ``title``, ``author``, ``date``, ``file``, ``sha256``; see `gather`.

    Returns
    -------
    str
        The same text for the same release.

    Raises
    ------
    ParameterError
        If there is no such format or form.

    Notes
    -----
    Plots show aggregates only: every bin and bar holds at least k records, axis ends come from the released data, and
    no form contains a value of a single record.

    Examples
    --------
    >>> import shoal
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [20, 21, 40, 44], "disease": ["flu", "cold", "flu", "cold"]})
    >>> release = shoal.anonymize(people, k=2, quasi_identifiers=["age"], confidential=["disease"])
    >>> print(render(release, "terminal", "public"), end="")
    verdict           Every record hides among at least 2
    k                 2 found, 2 asked for
    records           4 in 2 groups
    disease           at least 2 values in a group, t = 0
    """
    if format not in FORMATS:
        raise ParameterError(f"A report has no format {format!r}. Formats: {', '.join(FORMATS)}.")
    return FORMATS[format](gather(release, form, **page))
