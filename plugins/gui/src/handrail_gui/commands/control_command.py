"""`handrail control`: direct manual control of a desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from handrail.cli import SessionOptions, json_option, open_runtime_for, print_json, run_async, session_options

if TYPE_CHECKING:
    from handrail import ToolResult

DEVICE_ACTIONS = ("lock_screen", "keep_awake_on", "keep_awake_off")
MANUAL_ACTIONS = ("move", "click", "right_click", "scroll", "key_combo", "type", "mouse_down", "mouse_up")


@click.command("control")
@click.argument("action", type=click.Choice([*DEVICE_ACTIONS, *MANUAL_ACTIONS]))
@click.option("--x", type=int, help="Screen pixel to go to first.")
@click.option("--y", type=int, help="Likewise.")
@click.option("--dx", type=int, help="Pixels to the right of where the pointer is.")
@click.option("--dy", type=int, help="Pixels down.")
@click.option("--keys", metavar="CHORD", help='For key_combo: "ctrl+s".')
@click.option("--text", metavar="TEXT", help="For type: what to type, by keys.")
@click.option("--amount", type=int, help="For scroll: notches down; negative: up.")
@session_options
@json_option
@click.pass_context
def control_desktop(context: click.Context, action: str, choices: SessionOptions, as_json: bool, **given: Any) -> None:
    """Work a desktop by hand: pointer, keys, lock.

    The same desktop that agents work, from a shell or from elsewhere. It is recorded like any call, asks nothing, and works while agents are
    stopped. No agent can call it.

    Example: handrail control key_combo --keys ctrl+s
    """
    args = {"action": action} | {name: value for name, value in given.items() if value is not None}
    result = run_async(
        lambda: _call_control_tool("device_control" if action in DEVICE_ACTIONS else "manual_control", args, choices)
    )
    if as_json:
        print_json(result.wire())
    elif result.ok:
        click.echo(result["description"])
    else:
        click.echo(f"Error: {result['error']['message']}", err=True)
    context.exit(0 if result.ok else 1)


async def _call_control_tool(name: str, args: dict[str, Any], choices: SessionOptions) -> ToolResult:
    async with open_runtime_for(choices) as runtime, runtime.session(by_hand=True) as session:
        return await session.call(name, args)
