"""A plugin of the tests that supplies a memory."""

from __future__ import annotations

from handrail import Service, ServiceContext, hookimpl


class Remembered:
    async def text(self) -> str:
        return "- likes tea"

    async def close(self) -> None:
        """Nothing is open."""


async def open_memory(context: ServiceContext) -> Remembered:
    return Remembered()


@hookimpl
def handrail_register_services() -> list[Service]:
    return [Service("memory", open_memory, "process")]
