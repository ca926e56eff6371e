"""Make a site of the documentation in a folder (default: build/site); every warning, such as of a link that leads nowhere, is an error."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("*.md", "docs/**/*", "core/README.md", "plugins/*/README.md", "demo/*")


def gather(folder: Path) -> None:
    """Copy what the site shows, and nothing else: Sphinx would look through all there is."""
    for pattern in PAGES:
        for file in ROOT.glob(pattern):
            if file.is_file():
                place = folder / file.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


def faults(pages: Path, made: Path) -> str:
    """Make the site of these pages; what is wrong with them, a line each, and nothing when all is well."""
    with tempfile.TemporaryDirectory() as trees:
        sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", trees]
        done = subprocess.run(
            [*sphinx, "-c", ROOT / "scripts" / "site", pages, made], stderr=subprocess.PIPE, text=True, check=False
        )
    return done.stderr or ("Sphinx failed" if done.returncode else "")


def main() -> int:
    made = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    with tempfile.TemporaryDirectory() as gathered:
        pages = Path(gathered).resolve()
        gather(pages)
        told = faults(pages, made).replace(f"{pages}/", "")
    sys.stderr.write(told)
    shutil.copyfile(ROOT / "scripts" / "site" / "index.html", made / "index.html")
    if not told:
        print(made / "index.html")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
