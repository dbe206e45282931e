"""``shoal app``: make a release in the browser, on this machine alone."""

import tempfile
import webbrowser
from pathlib import Path
from threading import Thread

import click

from shoal.distribution import install
from shoal.errors import FileError, ParameterError
from shoal.files import temporary_path


@click.command(
    "app",
    epilog="\b\nExamples:\n  shoal app\n  shoal app people.csv\n  shoal app job.toml --no-browser\n"
    "  shoal app --folder /data/surveys",
)
@click.argument("file", metavar="[FILE | JOB.toml]", required=False)
@click.option("--folder", metavar="FOLDER", help="Files are read and written below it.  [default: that of FILE, or .]")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def command(file: str | None, folder: str | None, no_browser: bool) -> None:
    """Open a page on this machine, on which a release is made step by step.

    The address works once, in one browser; other machines cannot reach it. Every step is kept on disk: after Ctrl-C or
    a crash, start it again and continue. From another machine, use an SSH tunnel (docs/app.md).
    """
    try:
        from shoal.app.server import application, listening, serve
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("starlette", "uvicorn", "multipart", "python_multipart"):
            raise
        raise ParameterError(f"`shoal app` needs {missing}, which is not installed: {install('app')}.") from None
    from shoal.app.pages.start import continued
    from shoal.app.projects import state_folder
    from shoal.app.security import Keys

    root = Path(folder) if folder is not None else _folder_of(file)
    if not root.is_dir():
        raise FileError(f"The folder {str(root)!r} does not exist.")
    tempfile.tempdir = str(temporary_path("app").parent)  # where the server keeps an upload while it arrives
    with listening() as door:
        keys, port = Keys(), door.getsockname()[1]
        app = application(root, state_folder(), port, keys)
        address = f"http://127.0.0.1:{port}/?token={keys.token}"

        def ready() -> None:
            click.echo(f"shoal app: {address}")
            click.echo("The address works once, in one browser on this machine. Ctrl-C ends the app; nothing is lost.")
            if not no_browser:
                Thread(target=webbrowser.open, args=[address], daemon=True).start()  # some browsers are waited for

        parts = app.state.parts
        try:
            if file is not None:
                keys.first_page = f"/work/{continued(parts.works, parts.places, str(Path(file).resolve())).id}/file"
            serve(app, door, ready)
        finally:
            parts.works.close()
            parts.places.close()


def _folder_of(file: str | None) -> Path:
    """Return the folder of a file that is elsewhere; a job names its files from the current folder."""
    here = Path.cwd()
    if file is None or file.endswith(".toml") or Path(file).resolve().is_relative_to(here.resolve()):
        return here
    return Path(file).resolve().parent
