"""A steward without a browser: pages are asked for and forms are sent as a browser would, scripts left out."""

import json
import re
import time
import warnings
from html import unescape
from html.parser import HTMLParser

from shoal.app.child_process import perform
from shoal.app.security import Keys
from shoal.app.server import application

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette prefers the successor of httpx
    from starlette.testclient import TestClient

PORT = 4711
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"

PEOPLE = ["name;age;zip;sex;income;diagnosis"] + [
    f"Zyxwv{i};{20 + i * 7 % 60};D{77777 + i % 5};{'fm'[i % 2]};{1000 + i * 37 % 900};qqdisease{i % 3}"
    for i in range(60)
]
SECRETS = ("Zyxwv", "77777", "77778", "qqdisease")
"""Parts of the values of `PEOPLE`: no page may show them unless asked."""


class Inline:
    """Does the work of a child process at once and in this process; `test_runs` and the journeys have real ones."""

    returncode = 0

    def __init__(self, command, **settings):
        self.stdin = self

    def write(self, line):
        asked = json.loads(line)
        with open(asked["file"], "a", encoding="utf-8") as out:
            perform(asked, out)

    def flush(self):
        pass

    close = kill = terminate = flush

    def poll(self):
        return 0

    def wait(self, timeout=None):
        return 0


class Steward:
    """Holds the cookie of a signed-in browser, and the piece of work that is open."""

    def __init__(self, root, state):
        self.root, self.state = root, state
        self.keys = Keys()
        self.app = application(root, state, PORT, self.keys)
        self.client = TestClient(self.app, base_url=ORIGIN, headers={"sec-fetch-site": "same-origin"})
        self.client.__enter__()
        self.get("/", params={"token": self.keys.token})
        self.base = ""
        self.closed = False

    def close(self):
        if not self.closed:
            self.client.__exit__(None, None, None)
        self.closed = True

    @property
    def works(self):
        return self.app.state.parts.works

    @property
    def work(self):
        return self.works[self.base.rpartition("/")[2]]

    def get(self, path, **settings):
        return self.client.get(path, **settings)

    def page(self, step):
        """Return the text of a page of the open work."""
        return self.get(f"{self.base}/{step}").text

    def post(self, to, at=None, **fields):
        """Send a form of the open work, with its tokens."""
        where = to if to.startswith("/") else f"{self.base}/{to}"
        at = (self.work.history.at if self.base else 0) if at is None else at
        files = {name: value for name, value in fields.items() if isinstance(value, tuple)}
        data = {name: value for name, value in fields.items() if name not in files}
        return self.client.post(
            where,
            data={"csrf": self.keys.form_token(where), "at": str(at), **data},
            files=files or None,
            headers={"origin": ORIGIN},
        )

    def open(self, path):
        """Open a file and wait until it is read."""
        answer = self.post("/open", path=path)
        if answer.status_code == 200:
            self.base = re.match(r"/work/\w+", answer.url.path)[0]
            self.settle("file")
        return answer

    def settle(self, step):
        """Return the text of a page once nothing runs on it any more."""
        until = time.monotonic() + 60
        while "data-events" in (text := self.page(step)) and time.monotonic() < until:
            time.sleep(0.05)
        return text

    def column(self, name):
        """Return the number of a column."""
        run = self.work.inspection(self.work.draft)
        return [column["name"] for column in run.result["columns"]].index(name)

    def roles(self, **roles):
        """Give roles to columns, by their names."""
        return self.post("columns", **{f"role-{self.column(name)}": role for name, role in roles.items()})

    def release(self, path="release.csv", **fields):
        """Make a release and return the page that shows it."""
        self.post("release", path=path, **fields)
        return self.settle("release")


ROLES = {
    "name": "identifier",
    "age": "quasi-identifier",
    "zip": "quasi-identifier",
    "sex": "quasi-identifier",
    "income": "quasi-identifier",
    "diagnosis": "confidential",
}


def text_of(page):
    """Return the words of a page, without tags."""

    class Words(HTMLParser):
        found = ""

        def handle_data(self, data):
            self.found += f"{data} "

    words = Words()
    words.feed(page)
    return " ".join(unescape(words.found).split())
