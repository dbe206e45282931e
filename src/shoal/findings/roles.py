"""Roles: which role a column may have, by its name and its counts, and why; and columns that should not be published.

In doubt a column is proposed as a quasi-identifier, the safest role. A person decides. A column that would be proposed
as an identifier and is to be published unchanged is a question.
"""

from dataclasses import dataclass

import pyarrow as pa

from shoal.columns.column_counts import Facts
from shoal.columns.name_topics import Topic, is_code, topics_of
from shoal.columns.schema import Kind, Role, is_text
from shoal.findings.finding import Finding, Remedy

_NEAR_UNIQUE = 0.9  # different values per record
_OFTEN = 0.05  # a number or name that fewer than 20 records share
_FREE_TEXT = 40  # letters
_MOST = 0.5
_FEW_RECORDS = 20  # too few for their counts to say what a column is
_FEWEST = 10  # different values of what numbers persons or households
_SOME = 0.1  # of the records: a column that makes more of them unique would identify if published unchanged


@dataclass(frozen=True)
class Proposal:
    """A role, the reason for it, and other proposals for the column.

    Attributes
    ----------
    role : Role
    reason : str
    helper : {"weights", "household", None}
        The use of a column that is not published.
    kind : Kind or None
        The kind of the values, if it differs from what their type suggests.
    is_shared : bool
        Whether it is a person number that several records share.
    """

    role: Role
    reason: str
    helper: str | None = None
    kind: Kind | None = None
    is_shared: bool = False


PUBLISHED = "published-identifier"
"""The finding of a column that is published unchanged and proposed as identifier, subject or household."""


def published_identifier(facts: Facts, telling: float) -> Finding | None:
    """Return what is to be asked about a column that is published unchanged, if its name and its values identify.

    `telling` is the share of the records whose value fewer than k records have.
    """
    proposal = propose(facts)
    role = finding_of(facts, proposal)
    if _by_name(facts, topics_of(facts.name)) is None and facts.present < _FEW_RECORDS:
        return None
    # Whether somebody has a telephone is no telephone number.
    identifies = telling >= _SOME or (facts.variety >= _OFTEN and facts.distinct >= _FEWEST)
    if role is None or role.name == "weight" or not identifies:
        return None
    drop = Remedy("role", facts.name, {"identifiers": [facts.name]})
    return Finding(
        PUBLISHED,
        facts.name,
        f"it is to be published unchanged, but {proposal.reason.split('; ')[0]}",
        "What names or numbers persons or households finds their records, whatever k is",
        role.remedies if drop in role.remedies else (*role.remedies, drop),
        question=True,
    )


def propose(facts: Facts, misread: bool = False) -> Proposal:
    """Propose a role for a column; the counts of a misread column (numbers or dates as text) are not used."""
    if facts.kind is None:
        return Proposal(Role.IDENTIFIER, f"its values ({facts.type}) have no distance and cannot be grouped")
    if facts.distinct <= 1:
        return Proposal(Role.OTHER, "every record has the same value")
    topics = topics_of(facts.name)
    return _by_name(facts, topics) or (None if misread else _by_counts(facts)) or _quasi(facts, topics)


def finding_of(facts: Facts, proposal: Proposal) -> Finding | None:
    """Return the role that the name or the counts of a column suggest, if it is not quasi-identifier."""
    name, role = facts.name, proposal.helper
    if role is None and proposal.role is Role.IDENTIFIER and facts.kind is not None:
        role = "subject" if proposal.is_shared else "identifiers"
    if role is None:
        return None
    remedy = Remedy("role", name, {role: [name] if role == "identifiers" else name})
    return Finding(role.rstrip("s"), name, proposal.reason, _CONSEQUENCES[role], (remedy,))


_CONSEQUENCES = {
    "weights": "With it means are weighted, so that weighted totals are kept; it is not published",
    "household": "Without it records of one household can be recognised as belonging together",
    "subject": "Without it k counts records, and all records of a cell may belong to one person",
    "identifiers": "Published, it would identify the person of a record",
}


def _by_name(facts: Facts, topics: set[Topic]) -> Proposal | None:
    """Propose an identifier, a helper or a confidential column if the name says so and the counts agree."""
    if Topic.WEIGHT in topics and facts.kind is Kind.NUMERIC:
        return Proposal(Role.IDENTIFIER, f"{_name_says(Topic.WEIGHT)}; used, not published", "weights")
    if Topic.HOUSEHOLD in topics and facts.variety < _NEAR_UNIQUE:
        return Proposal(Role.IDENTIFIER, f"{_name_says(Topic.HOUSEHOLD)}; used, not published", "household")
    if Topic.PERSON in topics:
        return Proposal(Role.IDENTIFIER, _name_says(Topic.PERSON))
    if Topic.NUMBER in topics and facts.variety >= _OFTEN and _can_number(facts):
        is_shared = facts.variety < _NEAR_UNIQUE
        repeated = "; as several records share one, perhaps --subject" if is_shared else ""
        return Proposal(Role.IDENTIFIER, _name_says(Topic.NUMBER) + repeated, is_shared=is_shared)
    if Topic.PRIVATE in topics and facts.unique <= _SOME:
        return Proposal(Role.CONFIDENTIAL, _name_says(Topic.PRIVATE))
    return None


def _name_says(topic: Topic) -> str:
    return f"by its name, {topic.value}"


def _can_number(facts: Facts) -> bool:
    """Return whether it may be a number of persons; amounts with decimals are not."""
    return is_text(facts.type) or facts.whole or pa.types.is_dictionary(facts.type)


def _by_counts(facts: Facts) -> Proposal | None:
    """Propose an identifier if nearly every record has its own value and the values are not amounts."""
    if is_text(facts.type) and facts.variety >= _NEAR_UNIQUE:
        return Proposal(Role.IDENTIFIER, "nearly every record has its own text")
    if facts.length >= _FREE_TEXT and facts.variety >= _MOST:
        return Proposal(Role.IDENTIFIER, "long texts, mostly different: free text can name people")
    if facts.dense and facts.distinct == facts.present and facts.present >= _FEW_RECORDS:
        return Proposal(Role.IDENTIFIER, "whole numbers, all different and with few gaps, like record numbers")
    return None


def _quasi(facts: Facts, topics: set[Topic]) -> Proposal:
    coded = facts.whole and is_code(facts.name)
    kind = Kind.NOMINAL if coded else None
    if Topic.KNOWN in topics:
        reason = _name_says(Topic.KNOWN)
    elif Topic.PRIVATE in topics:
        reason = f"{_name_says(Topic.PRIVATE)}, but published unchanged it would identify"
    elif facts.unique > _MOST:
        reason = "most records have their own value: whoever knows it can find the record"
    else:
        reason = "nothing indicates its role; in doubt it is grouped"
    return Proposal(Role.QUASI, reason, kind=kind)
