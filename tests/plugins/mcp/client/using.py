"""Sessions that use servers."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from handrail import Answer, Choice, Session
from handrail.api.approval import Confirmer, yes
from handrail.testing.session_fixtures import open_test_session
from handrail_mcp import hooks

HERE = Path(__file__).parent
OpenWith = Callable[..., AbstractAsyncContextManager[Session]]


def helpful(**settings: Any) -> dict[str, Any]:
    """The table of the server that was made with the SDK."""
    return {"command": [sys.executable, str(HERE / "helpful.py"), "stdio"], **settings}


def at(url: str, **settings: Any) -> dict[str, Any]:
    """The table of a server that is reached at an address."""
    return {"url": url, **settings}


def raw(kind: str, **settings: Any) -> dict[str, Any]:
    """The table of a server that breaks the protocol in one way."""
    return {"command": [sys.executable, str(HERE / "raw.py"), kind], **settings}


@asynccontextmanager
async def using(
    servers: dict[str, dict[str, Any]],
    *,
    confirm: Confirmer | None = yes,
    start_wait: float = 60,
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
    **settings: Any,
) -> AsyncGenerator[Session, None]:
    """A session with these servers and nothing else."""
    given = {"mcp": {"servers": servers, "start_wait": start_wait}, **settings}
    with anyio.fail_after(100):
        async with open_test_session(
            plugins={"mcp": hooks}, settings=given, confirm=confirm, environment=environment, folder=folder
        ) as session:
            yield session


async def names(session: Session) -> list[str]:
    return [tool.name for tool in await session.tools() if tool.layer == "mcp"]


async def until(condition: Callable[[], Any], *, seconds: float = 60) -> Any:
    """What `condition` gives, awaited, once it is true."""
    with anyio.fail_after(seconds):
        while not (found := await condition()):
            await anyio.sleep(0.05)
    return found


def deciding(answer: Answer) -> tuple[Confirmer, list[Any]]:
    """A person who says yes, save that a server's own question is answered so; and what they were asked."""
    asked: list[Any] = []

    async def confirm(approval: Any) -> Answer:
        asked.append(approval)
        return answer if approval.verdict.rule == "mcp:elicitation" else Answer(Choice.ONCE)

    return confirm, asked
