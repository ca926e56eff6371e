"""Pages that browsers are measured on, and the server of this machine that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.web_server import Answering, serving as listening

BUTTON = "Count"
ROWS = 100
# Where the button is, as JavaScript tells it.
PLACE_OF_BUTTON = "(b => ({x: b.x + b.width / 2, y: b.y + b.height / 2}))(count.getBoundingClientRect())"


def administration() -> str:
    """Return a page with a list of a hundred rows, and a button whose clicks the title counts."""
    rows = "".join(
        f"<tr><td><input type=checkbox aria-label='Select order {n}'></td><td><a href='/orders/{n}'>Order {n}</a></td>"
        f"<td>Person {n}</td><td>{n * 7 % 90}.50 EUR</td><td><button>Ship {n}</button></td></tr>"
        for n in range(ROWS)
    )
    return (
        "<!doctype html><title>0</title><header><nav><a href='/'>Home</a> <a href='/orders'>Orders</a></nav></header>"
        f"<main><h1>Orders</h1><button id=count onclick='document.title = out.textContent = +document.title + 1'>{BUTTON}</button>"
        f"<p id=out>0</p><table><thead><tr><th></th><th>No.</th><th>Who</th><th>Sum</th><th></th></tr></thead><tbody>{rows}</tbody></table></main>"
    )


@contextmanager
def serving(pages: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the address of a server with these pages, by path; without any, that list at `/`."""
    held = pages or {"/": administration()}

    class Handler(Answering):
        def answer(self) -> None:
            page = held.get(self.path.partition("?")[0])
            status = 404 if page is None else 200
            self.respond((page or "").encode(), status=status, headers={"content-type": "text/html; charset=utf-8"})

    with listening(Handler) as port:
        yield f"http://127.0.0.1:{port}/"
