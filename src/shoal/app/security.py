"""Security: who may ask, and what a page may do.

The app listens on this machine alone. A one-time token in the address is traded for a cookie; requests from other
sites, for other hosts or without the cookie are refused before any page sees them. Every form carries a token of its
own, and pages can load nothing but what this server sends.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.errors import fault_in_words

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page of the app may load: what this server sends, and nothing inline."""


def report_policy(script_hash: str) -> str:
    """Return what an embedded report may do.

    It has an origin of its own, so it can read nothing of the app, and runs no script but its own. Its style is part of
    the file.
    """
    return (
        "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{script_hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, browsers hide the origin of forms that the check below needs
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "SAMEORIGIN",
}
_SAFE = ("GET", "HEAD")
_LONGEST = 300  # letters of an address


@dataclass
class Keys:
    """The secrets of one run of the server.

    Attributes
    ----------
    token : str or None
        In the printed address; valid once.
    cookie : str
        What the browser then holds.
    first_page : str
        Where the browser goes with it.
    """

    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    first_page: str = "/"
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def form_token(self, action: str) -> str:
        """Return the token of the form that is sent to an address."""
        return hmac.new(self._secret, action.encode(), hashlib.sha256).hexdigest()

    def fits(self, action: str, token: str) -> bool:
        """Return whether a form carries the token of its address."""
        return hmac.compare_digest(self.form_token(action).encode(), token.encode())


class Gate:
    """Refuses what does not come from a page of this app, and adds the headers that every answer has.

    Parameters
    ----------
    app : ASGI application
    keys : Keys
    port : int
        The port that the server listens on.
    """

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app, self._keys = app, keys
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"shoal-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) or self._welcome(scope) or self._stranger(scope)
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", PAGE_POLICY)
            await send(message)

        if answer is not None:
            await answer(scope, receive, guarded)
            return
        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            if started:
                return  # the answer is cut short; the text of the error may hold values of the table
            await _page("shoal failed", fault_in_words(error), 500)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Refuse other hosts and other sites."""
        headers = Headers(scope=scope)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if len(scope["path"]) > _LONGEST:
            return _page("Refused", "There is no address as long as this one.", 414)
        if len(headers.getlist("host")) != 1 or headers["host"] not in self._hosts:
            return _page("Refused", "This address is not the one that shoal app printed.", 421)
        if origin is not None and origin != f"http://{headers['host']}":
            return _page("Refused", "The request comes from another site.", 403)
        if site not in (None, "same-origin", "none"):
            return _page("Refused", "The request comes from another site. Type the address into the browser.", 403)
        if scope["method"] not in (*_SAFE, "POST"):
            return _page("Refused", "This method is not used here.", 405)
        if scope["method"] == "POST" and origin is None:
            return _page("Refused", "The browser does not say where the form comes from.", 403)
        return None

    def _welcome(self, scope: Scope) -> Response | None:
        """Trade the one-time token for a cookie."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] != "/" or scope["method"] != "GET" or not given:
            return None
        if self._has_cookie(scope):
            return RedirectResponse(self._keys.first_page, 303)
        if self._keys.token is None or not hmac.compare_digest(given.encode(), self._keys.token.encode()):
            return None
        self._keys.token = None
        answer = RedirectResponse(self._keys.first_page, 303)
        answer.set_cookie(self._cookie, self._keys.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def _stranger(self, scope: Scope) -> Response | None:
        if self._has_cookie(scope):
            return None
        return _page(
            "This browser is not signed in",
            "The address that shoal app prints works once, in one browser. To use another browser, end shoal app with "
            "Ctrl-C, start it again and open the new address. Nothing is lost: every step is kept on disk.",
            403,
        )

    def _has_cookie(self, scope: Scope) -> bool:
        try:
            found = SimpleCookie(Headers(scope=scope).get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._keys.cookie.encode())


def _page(title: str, text: str, status: int) -> Response:
    """Return a page for those who see no other."""
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)} · shoal</title>'
        f"<main><h1>{escape(title)}</h1><p>{escape(text)}</p></main></html>"
    )
    return HTMLResponse(body, status)
