"""The pictures of docs/console.md, of a real console; `make pictures` takes them anew, and a test does so elsewhere."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio

from .opened import Agent, Page, agent, browser, console

PICTURES = Path(__file__).parents[3] / "docs" / "gallery"
# Names of the pictures, and the widths and heights of the pages.
SIZES = {"console": (1280, 672), "console-phone": (390, 748)}
REPORT = "# Sales in March\n\n| region | sold |\n|---|---|\n| north | 41 |\n| south | 38 |\n"


async def shoot(page: Page, session: Agent, into: Path) -> list[Path]:
    """With a question about what a session wants to write; in the end it is answered with a no."""
    wanted = session.call("write_file", file_path="march.md", content=REPORT)
    await page.wait("!!document.querySelector('article.ask')")
    files: list[Path] = []
    for name, (width, height) in SIZES.items():
        await page.size(width, height)
        await page.wait(f"document.documentElement.clientWidth === {width}")
        # For a moment after it came or moved a question takes no press.
        await page.wait("!document.querySelector('.approve').disabled")
        await page.js("scrollTo(0, 0)")
        files.append(into / f"{name}.png")
        await page.picture(files[-1])
    await page.press(".deny")
    await session.result(wanted)
    return files


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with console(home) as served, agent(served, home / "report") as report:
            async with browser() as new:
                page = await new()
                await page.goto(served.link)
                await page.wait("document.querySelectorAll('#sessions .pick').length === 1")
                await report.result(report.call("list_directory", path="."))
                await report.result(report.call("execute_cli", command="git --version"))
                await shoot(page, report, PICTURES)


if __name__ == "__main__":
    anyio.run(main)
