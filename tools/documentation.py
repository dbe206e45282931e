"""Build the documentation, whose search works from a folder too: python tools/documentation.py."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
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


if __name__ == "__main__":
    main()
