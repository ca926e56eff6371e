"""Servers that answer over HTTP."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def web() -> Iterator[str]:
    """The address of the server that was made with the SDK, over streamable HTTP."""
    with serving("streamable-http") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="session")
def sse() -> Iterator[str]:
    """The same over SSE."""
    with serving("sse") as port:
        yield f"http://127.0.0.1:{port}/sse"


@contextmanager
def serving(transport: str) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(HERE / "helpful.py"), transport, str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _reachable(port)
            yield port
        finally:
            process.kill()


def _reachable(port: int) -> None:
    for _ in range(600):
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the server does not listen")
