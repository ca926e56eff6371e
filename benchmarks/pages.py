"""`python -m benchmarks.pages`: what a model is given of twenty pages, by us and by `@playwright/mcp`: tokens, and how much of what matters is in it.

The pages are made as common templates make them: Bootstrap's shops and dashboards, the lists of Django's administration, MediaWiki, Docusaurus,
Roundcube, Leaflet, ProseMirror and so on (`benchmarks/sites/`); their words are made up.

For each page: characters / 4 of what `snapshot` and `extract_text` give of it and of the snapshot of the peer, and how many of the page's labelled
controls (in a snapshot: in a line that has an id) and facts (in a text) are found there. What is missing is named on stderr.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import webpages
from benchmarks.browsers import Ours, Playwright

HEADINGS = (
    "page",
    "`snapshot`",
    "peer",
    "controls",
    "peer",
    "`extract_text`",
    "facts",
    "`snapshot`, all",
    "facts",
    "peer, facts",
)


SITES_FOLDER = Path(__file__).with_name("sites")


@dataclass(frozen=True)
class Site:
    """A page. `facts` are texts that its reader must be given, `controls` the names of what can be used on it."""

    name: str
    facts: Sequence[str]
    controls: Sequence[str]

    @property
    def html(self) -> str:
        return (SITES_FOLDER / f"{self.name}.html").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Told:
    """A text about a page, and what of the labels is not in it."""

    text: str
    missed: Sequence[str]
    of: int

    @property
    def tokens(self) -> int:
        return len(self.text) // 4

    @property
    def found(self) -> str:
        return f"{self.of - len(self.missed)}/{self.of}"


def sites() -> Sequence[Site]:
    labels = tomllib.loads((SITES_FOLDER / "labels.toml").read_text(encoding="utf-8"))
    return [Site(name, **labels[name]) for name in labels]


def controls(site: Site, text: str) -> Told:
    """Check which controls the text lists; a control counts if it can be acted on."""
    lines = [plain(line) for line in text.splitlines() if re.search(r"\[(ref=)?(f\d+)?e\d+\]", line)]
    missed = [name for name in site.controls if not any(plain(name) in line for line in lines)]
    return Told(text, missed, len(site.controls))


def facts(site: Site, text: str) -> Told:
    return Told(text, [fact for fact in site.facts if plain(fact) not in plain(text)], len(site.facts))


def plain(text: str) -> str:
    """Remove the characters that formats add."""
    return re.sub(r"[\s*`\\\[\]\"]+", " ", text)


async def measure(url: str, known: Sequence[Site]) -> list[tuple[Site, Told, Told, Told, Told, Told]]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-", ignore_cleanup_errors=True) as folder:
        for name in ("ours", "peer"):
            Path(folder, name).mkdir()
        ours, peer = Ours(Path(folder, "ours")), Playwright(Path(folder, "peer"))
        await ours.open()
        await peer.open()
        try:
            return [await compare(site, f"{url}{at}", ours, peer) for at, site in enumerate(known)]
        finally:
            await peer.close()
            await ours.close()


async def compare(site: Site, url: str, ours: Ours, peer: Playwright) -> tuple[Site, Told, Told, Told, Told, Told]:
    await ours.navigate(url)
    await peer.navigate(url)
    theirs = (await peer.snapshot()).partition("```yaml\n")[2].partition("\n```")[0]
    everything = await ours.do("snapshot", filter="all", limit=1_000)
    text = await ours.do("extract_text")
    return (
        site,
        controls(site, await ours.snapshot()),
        controls(site, theirs),
        facts(site, text["content"]),
        facts(site, everything["content"]),
        facts(site, theirs),
    )


def main() -> None:
    known = sites()
    with webpages.serving({f"/{at}": site.html for at, site in enumerate(known)}) as url:
        found = asyncio.run(measure(url, known))
    print(row(HEADINGS), row(["---"] * len(HEADINGS)), sep="\n")
    for site, snapshot, peer, text, everything, theirs in found:
        cells = (snapshot.tokens, peer.tokens, snapshot.found, peer.found, text.tokens, text.found)
        print(row([site.name, *cells, everything.tokens, everything.found, theirs.found]))
    columns = list(zip(*(told[1:] for told in found), strict=True))
    tokens = [sum(told.tokens for told in column) for column in columns]
    shares = [f"{sum(t.of - len(t.missed) for t in column)}/{sum(t.of for t in column)}" for column in columns]
    print(
        row(["all", tokens[0], tokens[1], shares[0], shares[1], tokens[2], shares[2], tokens[3], shares[3], shares[4]])
    )
    names = ("snapshot", "peer's controls", "extract_text", "snapshot, all", "peer's facts")
    for site, *told in found:
        for name, each in zip(names, told, strict=True):
            if each.missed:
                print(f"- {site.name}, {name}: without {', '.join(map(repr, each.missed))}", file=sys.stderr)


def row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(f'{each:,}' if isinstance(each, int) else str(each) for each in cells)} |"


if __name__ == "__main__":
    main()
