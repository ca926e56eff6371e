"""How Sphinx makes a site of the documentation; the pages stay as they are read in the repository."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "Handrail"
copyright = "the authors of Handrail, Apache-2.0"
extensions = ["myst_parser"]
root_doc = "docs/README"
html_theme = "furo"
# A block that names no language is in none.
highlight_language = "text"
html_title = "Handrail"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
# A link to a page names its file, as it does in the repository.
myst_links_external_new_tab = False

LINK = re.compile(r"\]\(([^)#\s]+\.md)\)")
# In the repository a link may show the file that it leads to.
FILE = re.compile(r"\[(?:docs/)?[\w/-]+\.md\](?=\([^)\s]+\.md(?:#[^)\s]+)?\))")


def titles(app: Sphinx, name: str, source: list[str]) -> None:
    """On the site such a link shows the title of its page or heading."""
    source[0] = FILE.sub("[]", source[0])


def contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Below the list of pages: the same list as the site's own, a part for each kind."""
    if name != root_doc:
        return
    listed: set[str] = set()
    kinds = re.split(r"^## (.+)$", source[0], flags=re.MULTILINE)[1:]
    for kind, text in zip(kinds[::2], kinds[1::2], strict=True):
        pages = [page for page in dict.fromkeys(LINK.findall(text)) if page not in listed]
        listed.update(pages)
        source[0] += toctree(kind, pages)
    folder = Path(app.srcdir) / "docs"
    others = sorted(page for page in folder.parent.rglob("*.md") if page != folder / "README.md")
    rest = [path for page in others if (path := relative(page, folder)) not in listed]
    source[0] += toctree("More", rest)


def relative(page: Path, folder: Path) -> str:
    """The page as the list of pages would name it."""
    return page.relative_to(folder).as_posix() if page.is_relative_to(folder) else f"/{page.relative_to(folder.parent)}"


def toctree(caption: str, pages: list[str]) -> str:
    """A part of the contents, seen beside every page and not on this one."""
    lines = "\n".join(page.removesuffix(".md") for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", contents)
    app.connect("source-read", titles)
