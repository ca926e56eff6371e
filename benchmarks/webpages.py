"""Pages that browsers are measured on, and the server of this machine that has them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BUTTON = "Count"
ROWS = 100
# Where the button is, as JavaScript tells it.
PLACE_OF_BUTTON = "(b => ({x: b.x + b.width / 2, y: b.y + b.height / 2}))(count.getBoundingClientRect())"


def administration() -> str:
    """A list with a hundred rows, and a button whose clicks the title counts."""
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
    """The address of a server with these pages, by path; that list at `/` if none are given."""
    held = pages or {"/": administration()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            page = held.get(self.path.partition("?")[0])
            body = (page or "").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            # A browser that ends breaks its connections off.
            return

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
