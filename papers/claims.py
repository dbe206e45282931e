"""Claims of a paper, the measured result, and whether the claim holds: yes, no, or not testable here.

Every paper's statements are checked on a result file. ``python -m papers NAME --claims`` prints the claims of the
archived run, at the largest sizes that were run.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import NamedTuple

WIDTH = 118
NOT_MEASURED = "not measured in this run"


class Claim(NamedTuple):
    """A statement of a paper and the measured result."""

    where: str
    """The table, figure or section."""

    says: str
    found: str
    holds: bool | None
    """None where the statement cannot be tested, or was not."""

    why: str = ""
    """Why it does not hold, or cannot be tested."""

    @property
    def verdict(self) -> str:
        """The answer as text."""
        return {True: "yes", False: "no", None: "not testable"}[self.holds]


def judged(where: str, says: str, found: str, holds: bool | None, why: str = "") -> Claim:
    """Return a claim; the reason is left out if it holds."""
    return Claim(where, says, found, holds, "" if holds else why)


def untested(where: str, says: str, why: str = NOT_MEASURED) -> Claim:
    """Return a claim without an answer, with the reason."""
    return Claim(where, says, "", None, why)


def merged(answers: Sequence[Sequence[Claim]]) -> list[Claim]:
    """Take each claim from the first list that decides it, in the order of the first."""
    found: dict[tuple[str, str], Claim] = {}
    for claim in (claim for claims in answers for claim in claims):
        before = found.setdefault((claim.where, claim.says), claim)
        if before.holds is None and claim.holds is not None:
            found[claim.where, claim.says] = claim
    return list(found.values())


def as_text(claims: Iterable[Claim]) -> str:
    """Lay claims out for a terminal: the sentence, below it what was found and why."""
    lines = [f"{'where':<20}{'holds':<14}what the paper says; what we found; why not"]
    for claim in claims:
        lines += _wrapped(f"{claim.where:<20}{claim.verdict:<14}", claim.says)
        for part in (claim.found, claim.why):
            lines += _wrapped(" " * 36, part) if part else []
    return "\n".join([*lines, ""])


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=" " * max(34, len(head)))


def as_table(claims: Iterable[Claim]) -> str:
    """Format claims as a Markdown table, with those that do not hold in bold."""
    lines = ["| where | the paper says | we found | holds |", "|---|---|---|---|"]
    for claim in claims:
        verdict = "yes" if claim.holds else f"**{claim.verdict}**"
        found = "; ".join(part for part in (claim.found, claim.why) if part)
        lines.append(f"| {claim.where} | {claim.says} | {found} | {verdict} |")
    return "\n".join(lines)


def counted(claims: Sequence[Claim]) -> str:
    """Count the answers."""
    numbers = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in ("yes", "no", "not testable")}
    return ", ".join(f"{number} {verdict}" for verdict, number in numbers.items())
