"""The Core tools: seeing the screen and acting on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from handrail import Downstream, Input, Observation, Read, StaleObservation, ToolContext, Transform, Write, tool
from handrail_gui.act.action_types import GuiAction, MouseButton, ScrollDirection
from handrail_gui.observe import capture, outline

if TYPE_CHECKING:
    from handrail_gui.platforms.input_driver import InputDriver

LINUX_ONLY = frozenset({"linux"})
VISION_CAPABILITIES = frozenset({"parse_screen", "ocr", "understand", "accessibility_tree"})


@tool(
    layer="core",
    title="Observe screen",
    effects=[Read("screen")],
    requires=VISION_CAPABILITIES,
    platforms=LINUX_ONLY,
    exclusive="desktop",
    advice="Look before you act, and again after what changes the screen. Name elements by their ids (e12) where a tool takes one; an id is"
    " good until the element is gone, and is never reused. Coordinates are pixels of the last picture.",
    # Each backend has a deadline of its own; models on a slow processor take two minutes.
    timeout=300,
    output="text",
)
async def observe_screen(
    mode: Annotated[
        Literal["grounding", "understanding"], Field(description="grounding: elements; understanding: a description.")
    ] = "grounding",
    intent: Annotated[str | None, Field(description="What you are looking for.")] = None,
    region: Annotated[
        list[int] | None,
        Field(min_length=4, max_length=4, description="Only [x1, y1, x2, y2] of the latest image, enlarged."),
    ] = None,
    window: Annotated[str | None, Field(description="Only this window, by part of its title.")] = None,
    monitor: Annotated[int | None, Field(ge=0, description="Only this monitor, from 0.")] = None,
    max_elements: Annotated[int, Field(ge=1, le=1000, description="At most so many.")] = 200,
    image: Annotated[
        Literal["annotated", "raw", "both", "none"] | None,
        Field(description="Default: annotated (with ids); none with `since`."),
    ] = None,
    since: Annotated[str | None, Field(description="An observation_id: only what changed since.")] = None,
    after: Annotated[str | None, Field(description="When truncated: the last id, to go on after it.")] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """See the screen: elements with ids (for execute_gui and execute_accessible), all windows, and an image.

    Coordinates are pixels of the returned image and belong to its observation_id. Look again after things change.
    """
    screen, hands = await context.service("screen"), await context.service("hands")
    before = context.observations.get(since) if since else None
    found = capture.find_window(await screen.windows(), window) if window else None
    area = await capture.resolve_area(
        screen, region=region, window=found, monitor=monitor, last=_latest_observation(context)
    )
    wish = capture.ObserveRequest(area, found, intent or "", max_elements, after)
    sight = await capture.run_observation(context, screen, wish)
    seen = context.observations.add(
        sight.elements,
        transform=Transform.fit(sight.frame.screen),
        windows=await hands.surfaces(),
        backend=sight.backend,
        truncated=sight.truncated,
    )
    result = _build_result(sight, seen, before)
    if mode == "understanding":
        description, note = await capture.describe_frame(context, sight.frame, intent or "")
        result |= ({"stdout": description} if description else {}) | ({"note": note} if note else {})
    return result | await capture.build_images(sight, seen, image or ("none" if since else "annotated"))


def _latest_observation(context: ToolContext) -> Observation | None:
    try:
        return context.observations.get()
    except StaleObservation:
        return None


def _build_result(sight: capture.ObserveResult, seen: Observation, before: Observation | None) -> dict[str, Any]:
    """Build the result without pictures; with an earlier observation, only the differences."""
    result: dict[str, Any] = {
        "stdout": capture.format_observation(sight, seen),
        "ui_elements": capture.serialize_elements(seen.elements, seen.transform),
        "actual_backend": seen.backend,
        "observation_id": seen.id,
        "scale": round(seen.transform.scale, 4) if seen.transform else 1.0,
        "truncated": seen.truncated,
    }
    if sight.note:
        result["note"] = sight.note
    if before is not None:
        changed = capture.compare_elements(before, seen, sight)
        fresh = {*changed["added"], *changed["changed"]}
        told = [element for element in seen.elements if element.id in fresh]
        lines = [outline.format_elements(seen.elements, only=fresh)] if told else []
        gone = [f"gone: {outline.format_id_ranges(changed['removed'])}"] if changed["removed"] else []
        windows = capture.list_window_changes(before, seen)
        result |= {
            "stdout": "\n".join([*windows, *lines, *gone]) or "nothing changed",
            "ui_elements": capture.serialize_elements(told, seen.transform),
            "changed": changed,
        }
    return result


def _describe_call(params: BaseModel) -> str:
    given = dict(params.__dict__)
    where = given.get("element_id") or (f"({given['x']}, {given['y']})" if given.get("x") is not None else "")
    what = given.get("text") or given.get("key") or "+".join(given.get("keys") or ()) or given.get("direction") or ""
    if given["action"] == "replace_text":
        return " ".join(
            part for part in ("replace the text by", _quote_text(what), f"at {where}" if where else "") if part
        )
    told = str(given["action"]).replace("_", " ")
    return " ".join(
        part for part in (told, _quote_text(str(what)) if what else "", f"at {where}" if where else "") if part
    )


def _quote_text(text: str) -> str:
    plain = text.replace("\n", "⏎")
    return f'"{plain}"' if len(plain) <= 120 else f'"{plain[:120]}…"'


@tool(
    layer="core",
    title="Use mouse and keyboard",
    effects=[Input("desktop", arg="text")],
    requires=VISION_CAPABILITIES,
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=60,
    describe=_describe_call,
)
async def execute_gui(
    action: Annotated[GuiAction, Field(description="What to do.")],
    x: Annotated[int | None, Field(ge=0, description="Image pixel, from the left.")] = None,
    y: Annotated[int | None, Field(ge=0, description="From the top.")] = None,
    text: Annotated[
        str | None, Field(max_length=100_000, description="Any script, to the focus; replace_text: text fields only.")
    ] = None,
    key: Annotated[str | None, Field(description='hotkey, press_key: "ctrl+s", "f5".')] = None,
    direction: Annotated[ScrollDirection | None, Field(description="scroll.")] = None,
    clicks: Annotated[int, Field(ge=1, le=100, description="scroll: wheel notches.")] = 5,
    element_id: Annotated[str | None, Field(description="Act on this element instead of x, y.")] = None,
    to_x: Annotated[int | None, Field(ge=0, description="drag: end.")] = None,
    to_y: Annotated[int | None, Field(ge=0, description="drag: end.")] = None,
    keys: Annotated[list[str] | None, Field(description='Like key: ["ctrl", "s"].')] = None,
    button: Annotated[MouseButton, Field(description="click, drag, mouse_down, mouse_up.")] = "left",
    observation_id: Annotated[str | None, Field(description="Whose x, y (default: the latest).")] = None,
    settle: Annotated[bool, Field(description="Wait until it is quiet; tell what changed.")] = True,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Use mouse and keyboard. Needs an observation first for x, y; an element_id is safer.

    Check `effect`: confirmed (seen), none (nothing changed), partial, unverified. stale_observation
    or stale_element means: observe again.
    """
    from handrail_gui.act import executor

    request = executor.build_request(
        action,
        x=x,
        y=y,
        to_x=to_x,
        to_y=to_y,
        key=key,
        keys=keys,
        text=text,
        direction=direction,
        clicks=clicks,
        element_id=element_id,
        button=button,
        observation_id=observation_id,
        settle=settle,
    )
    hands: InputDriver = await context.service("hands")
    screen = await context.service("screen")
    return await executor.ActionExecutor(
        context, request, hands, screen, await executor.find_accessibility(context)
    ).run()


@tool(
    layer="core",
    title="Maximize active window",
    effects=[Write("windows")],
    requires=VISION_CAPABILITIES,
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=15,
)
async def maximize_active_window(*, context: ToolContext) -> dict[str, Any]:
    """Let the active window fill its monitor; returns was_maximized."""
    screen, hands = await context.service("screen"), await context.service("hands")
    active = next((found for found in await screen.windows() if found.active), None)
    if active is None:
        raise Downstream("no window is active", hint="call window_focus first")
    title = outline.format_window_title(active)
    if active.state == "maximized":
        return {"was_maximized": True, "description": f"{title!r} was maximized already", "effect": "confirmed"}
    context.checkpoint()
    if not await hands.maximize(active.id):
        raise Downstream(f"the window {title!r} did not become maximized")
    return {"was_maximized": False, "description": f"{title!r} is maximized now", "effect": "confirmed"}
