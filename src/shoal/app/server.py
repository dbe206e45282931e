"""Server: the addresses of the app, on this machine alone."""

import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shoal.app.folders import Folders
from shoal.app.pages import columns, file, history, protection, release, running, start, trying
from shoal.app.pages import look_closer as closer
from shoal.app.pages.common import Services, posting, refused, showing
from shoal.app.projects import Works
from shoal.app.security import Gate, Keys

_TYPES = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}


def application(root: Path, state: Path, port: int, keys: Keys | None = None) -> Starlette:
    """Return the app.

    Parameters
    ----------
    root : Path
        Folder below which files are read and written.
    state : Path
        Folder for jobs, runs and uploads.
    port : int
        Port on which the server listens; requests for another one are refused.
    keys : Keys, optional
        Secrets of this run; new ones by default.
    """
    keys = keys or Keys()
    places = Folders(root, state)
    works = Works(places, state)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        works.close()
        places.close()

    app = Starlette(
        routes=_routes(),
        lifespan=life,
        middleware=[Middleware(Gate, keys=keys, port=port)],
        exception_handlers={404: _missing, 405: _missing, 400: _missing},
    )
    app.state.parts = Services(works, places, keys)
    return app


def _routes() -> list[Route]:
    work = "/work/{work}"
    return [
        Route("/", showing(start.show)),
        Route("/open", posting(start.open_file, start.show), methods=["POST"]),
        Route("/static/{name}", static),
        Route("/alive", alive),
        Route(work, showing(_first_page)),
        *_step(f"{work}/file", file.show, file.change),
        _post(f"{work}/file/replace", file.replace_file, file.show),
        _post(f"{work}/file/settle", file.settle, file.show),
        _post(f"{work}/file/again", file.read_again, file.show),
        _post(f"{work}/values", file.values, file.show),
        *_step(f"{work}/columns", columns.show, columns.change),
        _post(f"{work}/columns/find", columns.find, columns.show),
        *_step(f"{work}/columns/{{number:int}}", columns.show_one, columns.change_one),
        *_step(f"{work}/protection", protection.show, protection.change),
        _post(f"{work}/protection/model", protection.add_model, protection.show),
        _post(f"{work}/protection/model/remove", protection.remove_model, protection.show),
        *_step(f"{work}/try", trying.show, trying.start),
        _post(f"{work}/try/take", trying.take, trying.show),
        *_step(f"{work}/release", release.show, release.start),
        _post(f"{work}/release/settle", release.settle, release.show),
        Route(f"{work}/release/{{number:int}}/report", showing(release.report)),
        Route(f"{work}/release/{{number:int}}/files/{{file:int}}", showing(release.download)),
        Route(f"{work}/job.toml", showing(release.job_file)),
        Route(f"{work}/release.py", showing(release.script)),
        Route(f"{work}/release.sh", showing(release.command)),
        Route(f"{work}/closer", showing(closer.show)),
        _post(f"{work}/closer/records", closer.records, closer.show),
        _post(f"{work}/closer/audit", closer.audit, closer.show),
        _post(f"{work}/closer/compare", closer.compare, closer.show),
        Route(f"{work}/history", showing(history.show)),
        _post(f"{work}/history/undo", history.undo, history.show),
        _post(f"{work}/history/redo", history.redo, history.show),
        _post(f"{work}/history/go", history.go, history.show),
        _post(f"{work}/history/compare", history.compare, history.show),
        _post(f"{work}/history/remove", history.remove, history.show),
        Route(f"{work}/runs/{{number:int}}/events", showing(running.events)),
        _post(f"{work}/runs/{{number:int}}/cancel", running.cancel, None),
    ]


def _step(path: str, show: Callable[..., Response], change: Any) -> list[Route]:
    return [Route(path, showing(show)), _post(path, change, show)]


def _post(path: str, change: Any, show: Callable[..., Response] | None) -> Route:
    return Route(path, posting(change, show), methods=["POST"])


def _first_page(request: Request) -> Response:
    return RedirectResponse(f"{request.url.path}/file", 303)


def _missing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return refused(request, "There is no such page, or it cannot be used in this way.", status)


def alive(request: Request) -> Response:
    """Tell an open page that the app still answers."""
    return Response(status_code=204)


def static(request: Request) -> Response:
    """Send the style or the script."""
    name = request.path_params["name"]
    if name not in _TYPES:
        return _missing(request, ValueError())
    return Response(_static(name), media_type=_TYPES[name])


@cache
def _static(name: str) -> str:
    """Return a file; the style begins with the colours of the report and the marks of the map."""
    text = resources.files("shoal.app").joinpath("static", name).read_text(encoding="utf-8")
    if name != "app.css":
        return text
    from shoal.comparison.picture import STYLE  # not before: the server starts without

    colours = resources.files("shoal.output.report").joinpath("page", "variables.css").read_text(encoding="utf-8")
    return colours + STYLE + text


def _import_the_rest() -> None:
    """Import what the first pages do without, so that no later page waits for it."""
    for name in ("shoal.comparison.picture", "shoal.app.repeat", "shoal.output.report.html"):
        import_module(name)


def listening() -> socket.socket:
    """Return a socket on a random port of this machine, which others cannot reach."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.bind(("127.0.0.1", 0))
    found.listen(128)
    return found


def serve(app: Starlette, door: socket.socket, ready: Callable[[], None]) -> None:
    """Answer requests until Ctrl-C; nothing is logged, since addresses and errors may hold values of the table."""

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()
            threading.Thread(target=_import_the_rest, daemon=True).start()

    settings = uvicorn.Config(
        app, access_log=False, log_level="critical", server_header=False, timeout_graceful_shutdown=1, lifespan="on"
    )
    Server(settings).run(sockets=[door])
