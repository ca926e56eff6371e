"""The tool `execute_computer_use`, for any backend that plans."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from handrail import Read, ToolContext, Write, tool

TOOL_NAME: Final = "execute_computer_use"
# The settings say how long a call may take; this is for what is stuck.
CALL_TIMEOUT_S = 3_600.0


@tool(
    name=TOOL_NAME,
    layer="core",
    title="Use the computer",
    effects=[Read("screen"), Write("desktop")],
    requires={"plan_actions"},
    exclusive="desktop",
    timeout=CALL_TIMEOUT_S,
)
async def execute_computer_use(
    instruction: Annotated[
        str, Field(min_length=1, max_length=20_000, description="What to do, and how to tell that it is done.")
    ],
    plan_only: Annotated[bool, Field(description="Return the next actions as planned, and do nothing.")] = False,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Have a model that sees the screen work it with mouse and keyboard, step by step, until the instruction is carried out.

    Returns actions_taken with each one's result, and description: what the model says of the outcome. At most 15 steps: when it is not finished, or
    waits for a person's yes (confirmation_request), call again with the same instruction and it goes on.
    """
    from handrail_gemini_cu.task_runner import plan_actions, run_instruction

    return await (plan_actions(instruction, context) if plan_only else run_instruction(instruction, context))
