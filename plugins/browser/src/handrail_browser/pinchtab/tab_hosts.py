"""Whose tabs are worked: those of a PinchTab that runs one browser, or of one instance that a server of several gives us."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import anyio

from handrail import Downstream
from handrail.json_types import is_list, is_object
from handrail_browser.pinchtab.client import PinchTabClient, UnknownEndpoint, build_tab_path

START_S = 30.0
START_POLL_S = 0.1


class TabHost(ABC):
    """The tabs of one browser of PinchTab's."""

    def __init__(self, client: PinchTabClient) -> None:
        self._client = client

    @abstractmethod
    async def tabs(self) -> Sequence[Mapping[str, Any]]:
        """Id, url and title of each."""

    @abstractmethod
    async def open(self) -> str:
        """Open an empty tab, and return its id."""

    async def shut(self, tab: str) -> None:
        """Close a tab."""
        # The last one cannot be closed.
        if len(await self.tabs()) <= 1:
            await self.open()
        try:
            await self._client.post(build_tab_path(tab, "close"))
        # A PinchTab with one browser has this path from 0.9 on.
        except UnknownEndpoint:
            await self._client.post("/tab", {"action": "close", "tabId": tab})

    async def leave(self) -> None:
        """Give back what is ours."""


class SingleBrowserHost(TabHost):
    """PinchTab with one browser (`pinchtab bridge`), or the one that a server assigns to an agent session."""

    async def tabs(self) -> Sequence[Mapping[str, Any]]:
        return _check_tab_rows((await self._client.get("/tabs")).get("tabs"))

    async def open(self) -> str:
        return _get_tab_id(await self._client.post("/tab", {"action": "new", "url": "about:blank"}, seconds=START_S))


class InstanceHost(TabHost):
    """One browser of a server that has several (`pinchtab server`), started for us alone."""

    def __init__(self, client: PinchTabClient, id: str) -> None:
        super().__init__(client)
        self._id = id

    @classmethod
    async def started(cls, client: PinchTabClient, *, headless: bool) -> InstanceHost:
        """Start an instance, and return it once it is running."""
        told = await client.post("/instances/start", {"mode": "headless" if headless else "headed"}, seconds=START_S)
        id = str(told.get("id") or "")
        ends = monotonic() + START_S
        while told.get("status") != "running":
            if told.get("status") == "error" or not id or monotonic() > ends:
                raise Downstream(f"PinchTab started no browser: {str(told.get('error') or told.get('status'))[:200]}")
            await anyio.sleep(START_POLL_S)
            told = await client.get(f"/instances/{id}")
        return cls(client, id)

    async def tabs(self) -> Sequence[Mapping[str, Any]]:
        return _check_tab_rows(await self._client.rows(f"/instances/{self._id}/tabs"))

    async def open(self) -> str:
        return _get_tab_id(await self._client.post(f"/instances/{self._id}/tabs/open", {"url": ""}, seconds=START_S))

    async def leave(self) -> None:
        await self._client.post(f"/instances/{self._id}/stop")


def _check_tab_rows(found: Any) -> Sequence[Mapping[str, Any]]:
    if not is_list(found):
        raise Downstream("PinchTab's list of tabs is not of its protocol")
    rows = [each for each in found if is_object(each)]
    return [each for each in rows if isinstance(each.get("id"), str)]


def _get_tab_id(told: Mapping[str, Any]) -> str:
    if not isinstance(id := told.get("tabId"), str) or not id:
        raise Downstream("PinchTab opened no tab")
    return id
