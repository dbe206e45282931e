"""Requests that no browser would send: never a failure of the server, never a value of the table."""

import random

import pytest
from steward import ORIGIN, PEOPLE, ROLES, SECRETS, Inline, Steward

from shoal.app.server import _routes

N_REQUESTS = 300

STRANGE = [
    *("", "0", "-1", "99999999999999999999", "1.5", "NaN", "1e999", "Infinity", "%00", "\x00", "\n", "'", '"', "<b>"),
    *(
        "../../etc/passwd",
        "/etc/passwd",
        "people.csv",
        "people.csv\x00",
        "a" * 5000,
        "9" * 5000,
        "🐟",
        "‮",
        "quasi-identifier",
    ),
    *(
        "other:",
        "none",
        "yes",
        "auto",
        "t-closeness",
        "3,5",
        "k=5",
        "identifier",
        "numeric",
        "own-value",
        "0.0.0",
        "1.0.0",
        "..",
        "5",
    ),
    *(
        "[roles]\nother = 1",
        "release.csv",
        "release.exe",
        "-9\n99",
        ";",
        "cp1252",
        "utf-16",
        "%d.%m.%Y",
        "None",
        "true",
    ),
]
FIELDS = [
    *(
        "path",
        "k",
        "missing",
        "method",
        "scaling",
        "seed",
        "subject",
        "household",
        "weights",
        "column",
        "model",
        "bound",
    ),
    *("number", "choice", "one", "other", "which", "back", "show", "find", "only", "propose", "bulk", "all", "pick"),
    *("bulk-role", "bulk-kind", "role-0", "role-1", "role-99", "kind-1", "kind-²", "remedy", "role", "kind", "weight"),
    *(
        "aggregate",
        "round",
        "top",
        "bottom",
        "fold",
        "keep_zeros",
        "order",
        "categories",
        "missing_codes",
        "remove_categories",
    ),
    *("null_values", "decimal", "thousands", "date_format", "delimiter", "encoding", "quote", "names", "header"),
    *(
        "title",
        "author",
        "date",
        "replace",
        "sample",
        "upload",
        "at",
        "l-diversity.kind",
        "l-diversity.c",
        "take",
        "header_row",
        "leave_out",
        "skip_rows",
        "sheet",
        "encoding-other",
        "round",
        "shown_order",
    ),
]


@pytest.fixture
def busy(folder, tmp_path, monkeypatch):
    """A steward whose children do nothing, so that only the server is tried."""
    monkeypatch.setattr("shoal.app.runs.subprocess.Popen", Inline)
    steward = Steward(folder, tmp_path / "state")
    steward.open("people.csv")
    steward.roles(**ROLES)
    steward.post("protection", k="5", seed="1")
    steward.release()
    monkeypatch.setattr(Inline, "write", lambda self, line: None)
    yield steward
    steward.close()


def test_strange_requests_are_answered_without_a_failure_and_without_a_value(busy):
    rng = random.Random(18)
    paths = [(route.path, "POST" in route.methods) for route in _routes()]
    failed, shown = [], []
    for _ in range(N_REQUESTS):
        path, is_form = rng.choice(paths)
        work = busy.base.rpartition("/")[2] if rng.random() < 0.95 else rng.choice(["0", "..", "x" * 300, "%2e%2e"])
        where = path.replace("{work}", work).replace("{name}", rng.choice(["app.js", "../x", "app.css"]))
        for part in ("{number:int}", "{file:int}"):
            where = where.replace(part, str(rng.choice([0, 1, 2, 3, 4, 99, 10**12])))
        if where.endswith("/events"):
            continue
        data = {rng.choice(FIELDS): rng.choice(STRANGE) for _ in range(rng.randrange(8))}
        if is_form:
            data = {"csrf": busy.keys.form_token(where), "at": str(busy.work.history.at)} | data
            if rng.random() < 0.05:
                data["csrf"] = rng.choice(STRANGE)
            answer = busy.client.post(where, data=data, headers={"origin": ORIGIN})
        else:
            answer = busy.get(where, params={"in": rng.choice(STRANGE), "only": rng.choice(STRANGE)})
        if answer.status_code >= 500:
            failed.append((where, data, answer.text[-400:]))
        is_file = "attachment" in answer.headers.get("content-disposition", "") or where.endswith("/report")
        if not is_file and any(secret in answer.text for secret in SECRETS) and not busy.work.shows_values:
            shown.append((where, data))

    assert failed == []
    assert shown == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff\xfe\x00", "application/x-www-form-urlencoded"),
        (b"--x\r\nContent-Disposition: form-data; name=upload\r\n\r\n", "multipart/form-data; boundary=x"),
        (b"no boundary at all", "multipart/form-data"),
        (b"{}", "application/json"),
        (b"a=1&" * 20_000, "application/x-www-form-urlencoded"),
    ],
)
def test_broken_bodies_are_refused(steward, body, kind):
    answer = steward.client.post("/open", content=body, headers={"origin": ORIGIN, "content-type": kind})

    assert 400 <= answer.status_code < 500


def test_the_table_is_what_the_secrets_come_from():
    assert all(any(secret in line for line in PEOPLE) for secret in SECRETS)
