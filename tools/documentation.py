"""Build the documentation, beside that of other versions, with a menu of them: python tools/documentation.py.

Its search works from a folder too. Publish build/site/ as it is; put the folders of older versions there first.
"""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITES = ROOT / "build" / "site"
SITE = SITES / "new"
"""As in mkdocs.yml."""

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
TO_THE_NEWEST = '<!doctype html><title>shoal</title><meta http-equiv="refresh" content="0; url={}">'
ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
"""What Zensical would have browsers fetch; docs/offline_search.js takes its place."""


def main() -> None:
    """Build the pages; fail on a broken link, with the messages."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if built.returncode:
        sys.exit(built.stdout + built.stderr)
    for page in SITE.rglob("*.html"):
        up = "../" * (len(page.relative_to(SITE).parts) - 1)
        text = page.read_text(encoding="utf-8").replace(ELSEWHERE, f"{up}offline_search.js")
        page.write_text(text, encoding="utf-8", newline="\n")
        if 'src="http' in text:
            sys.exit(f"{page.relative_to(ROOT)} fetches something from elsewhere.")
    shutil.rmtree(SITES / VERSION, ignore_errors=True)
    SITE.rename(SITES / VERSION)
    versions = sorted((path.parent.name for path in SITES.glob("*/index.html")), key=_number, reverse=True)
    listed = [{"version": each, "title": each, "aliases": []} for each in versions]
    (SITES / "versions.json").write_text(json.dumps(listed), encoding="utf-8")  # what the menu of the theme reads
    start = TO_THE_NEWEST.format(f"{versions[0]}/index.html")
    (SITES / "index.html").write_text(start, encoding="utf-8")


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    main()
