"""The tool `app_menu`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from handrail import InvalidArguments, NotFound, Run, ToolContext, ToolError, tool
from handrail.text import is_label_match
from handrail_workflows.file_dialogs import LINUX_ONLY
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import (
    UiElement,
    bring_to_front,
    find_app_windows,
    list_windows,
    read_elements,
    require_elements,
)

MENU_OPEN_TIMEOUT_S = 2.0
MENU_ITEM_ROLES = frozenset(("menu", "menu item", "check menu item", "radio menu item"))


@tool(
    layer="workflow",
    title="Choose from a menu",
    effects=[Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=60,
    loadable=True,
    describe=lambda given: f"Choose {given.menu_path}",
)
async def app_menu(
    menu_path: Annotated[str, Field(description='As shown: "File > Save As".')],
    app_name: Annotated[
        str | None, Field(description="Title, process or window id. Default: the active window.")
    ] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Choose an item of a program's menus. Returns what changed as evidence, and steps_taken; an error lists the items there are."""
    way = [name.strip() for name in menu_path.split(">")]
    if not all(way):
        raise InvalidArguments(f"{menu_path!r} names no way through menus", hint='write "File > Save As"')
    steps = WorkflowSteps(context)
    with steps.told():
        try:
            done = await _choose_item(steps, way, app_name)
        except ToolError:
            # Another window may have come to the front meanwhile, and its menus are not those that are meant.
            if app_name is None or find_app_windows(await list_windows(steps), app_name)[0].active:
                raise
            done = await _choose_item(steps, way, app_name)
    result: dict[str, Any] = {"chosen": " > ".join(way), "effect": done["effect"], "steps_taken": steps.taken}
    return {**result, "evidence": done["evidence"]} if done.get("evidence") else result


@dataclass(slots=True)
class WindowMenus:
    """The menus of the active window. `fewest`: as many items as showed when it showed least, which is without an open menu."""

    steps: WorkflowSteps
    fewest: int = sys.maxsize
    # Whether one of them has the focus, as Qt's bar has when its menu has been closed.
    focused: bool = False

    async def items(self) -> list[UiElement]:
        """Return the visible items, including the menu bar's own; the items of an open menu follow those of the bar."""
        seen = await read_elements(self.steps)
        shown = [part for part in seen if part.role in MENU_ITEM_ROLES and "offscreen" not in part.states]
        self.fewest = min(self.fewest, len(shown))
        self.focused = any(part.has("focused") for part in (*shown, *(p for p in seen if p.role == "menu bar")))
        return shown

    async def close(self, levels: int) -> None:
        """Close what was opened, and nothing else: escape closes a dialog as well."""
        for _ in range(levels + 1):
            if len(await self.items()) <= self.fewest and not self.focused:
                return
            await self.steps.attempt("execute_gui", action="press_key", key="escape")


async def _choose_item(steps: WorkflowSteps, way: Sequence[str], app_name: str | None) -> Mapping[str, Any]:
    """Click the items in turn and return the result of the last click.

    If one of them does not appear, the menus that were opened are closed again.
    """
    if app_name is not None:
        await bring_to_front(steps, find_app_windows(await list_windows(steps), app_name)[0])
    menus = WindowMenus(steps)
    done: Mapping[str, Any] = {}
    item: UiElement | None = None
    try:
        for name in way:
            item = await _find_item(menus, name, below=item)
            done = await steps.take("execute_accessible", action="click", element_id=item.id)
    except ToolError:
        if item is not None:
            await menus.close(len(way))
        raise
    return done


async def _find_item(menus: WindowMenus, name: str, *, below: UiElement | None) -> UiElement:
    """Return the visible item with that name, matched exactly, else without mnemonic, dots and case.

    `below` is the item whose menu was asked to open. Raises `NotFound` if no such item appears.
    """
    shown: list[UiElement] = []

    async def found() -> UiElement | None:
        shown[:] = await menus.items()
        exact = [part for part in shown if part.name == name]
        fitting = exact or [part for part in shown if is_label_match(name, part.name)]
        return (fitting[-1] if below else fitting[0]) if fitting else None

    item = await wait_for_value(found, MENU_OPEN_TIMEOUT_S)
    if item is None and below is not None and shown and (len(shown) <= menus.fewest or shown[-1].name == below.name):
        # Some menus close again when they are asked to open by their action, and GTK's do not open in a window that is just coming up; what
        # hangs on them has not shown.
        await menus.steps.take("execute_gui", action="click", element_id=below.id)
        item = await wait_for_value(found, MENU_OPEN_TIMEOUT_S)
    if item is None:
        if not shown:
            await require_elements(menus.steps)
        raise NotFound(
            f"no menu shows {name!r}",
            hint="write it as it is shown",
            details={"candidates": [part.name for part in shown if part.name]},
        )
    return item
