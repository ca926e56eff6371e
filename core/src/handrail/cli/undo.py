"""`handrail undo`"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import (
    SessionOptions,
    disable_audit,
    json_option,
    open_runtime_for,
    print_json,
    read_config,
    run_async,
    session_options,
)
from handrail.errors import HandrailError
from handrail.text import make_visible

if TYPE_CHECKING:
    from handrail.api.result import ToolResult
    from handrail.session.session import Session
    from handrail.undo.plans import PathPlan, UndoPlan

# Paths of one call that are shown to a person.
MAX_SHOWN_PATHS = 20
STEP_LABELS = {"delete": "delete", "create": "put back", "restore": "restore", "mode": "mode", "replace": "replace"}


@click.command("undo")
@click.argument("call", required=False)
@click.option("--list", "listing", is_flag=True, help="Show the calls that can be undone, newest first.")
@click.option(
    "--last", metavar="N", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many of them."
)
@click.option("--all", "everywhere", is_flag=True, help="With --list: in every workspace, not just this one.")
@click.option("--dry-run", is_flag=True, help="Show what would change, as a diff, and change nothing.")
@click.option("--yes", is_flag=True, help="Undo without asking.")
@click.option("--force", is_flag=True, help="Undo what was changed again since, too.")
@click.option("--skip-changed", is_flag=True, help="Leave what was changed again since, and undo the rest.")
@session_options
@json_option
@click.pass_context
def command(
    context: click.Context, call: str | None, listing: bool, choices: SessionOptions, as_json: bool, **given: Any
) -> None:
    """Put files back as they were before a call.

    CALL is the id of a call (c5), or of a session and a call (SESSION/c5); without it, the newest call is undone that changed files in this
    workspace. Undo is a call itself: it is recorded, and undone like any other.

    Example: handrail undo --dry-run
    """
    if given["force"] and given["skip_changed"]:
        raise click.UsageError("--force and --skip-changed exclude each other")
    if listing and call is not None:
        raise click.UsageError("--list shows calls, and takes none")
    if listing:
        plans = run_async(lambda: _read_plans(choices, most=given["last"], everywhere=given["everywhere"]))
        if as_json:
            print_json([plan.wire() for plan in plans])
        else:
            _print_plans(plans)
        return
    if given["dry_run"]:
        plan, diff = run_async(lambda: _read_plan(choices, call, diff=True))
        if as_json:
            print_json({**plan.wire(), "diff": "\n".join(diff)})
        else:
            _print_lines([*_format_plan(plan), *diff])
        context.exit(1 if plan.conflicts or plan.lost or plan.final else 0)
    _run_undo(context, call, choices, as_json=as_json, given=given)


def _run_undo(
    context: click.Context, call: str | None, choices: SessionOptions, *, as_json: bool, given: dict[str, Any]
) -> None:
    from handrail.undo.undo_tool import choose_paths

    force, skip_changed = given["force"], given["skip_changed"]
    # A person who is shown that something would be gone for good may say yes to that.
    asked = not given["yes"]
    if asked:
        if not sys.stdin.isatty():
            raise HandrailError(
                "nobody is at a terminal to approve this", hint="add --yes, or look first with --dry-run"
            )
        plan, _ = run_async(lambda: _read_plan(choices, call, diff=False))
        choose_paths(plan, force=force, skip_changed=skip_changed, final=not skip_changed)
        _print_lines(_format_plan(plan), err=True)
        click.confirm("Undo this?", abort=True, err=True)
        # The call that was shown, whatever came since.
        call = plan.call
    final = asked and not skip_changed
    result = run_async(lambda: _call_undo(choices, call, force=force, skip_changed=skip_changed, final=final))
    if as_json:
        print_json(result.wire())
    elif result.ok:
        _print_lines(_format_result(result))
    else:
        click.echo(f"Error: {make_visible(result['error']['message'])}", err=True)
    context.exit(0 if result.ok else 1)


async def _read_plans(choices: SessionOptions, *, most: int, everywhere: bool) -> Sequence[UndoPlan]:
    async with _open_read_only_session(choices) as session:
        return await session.undo_plans(most=most, everywhere=everywhere)


async def _read_plan(choices: SessionOptions, call: str | None, *, diff: bool) -> tuple[UndoPlan, Sequence[str]]:
    async with _open_read_only_session(choices) as session:
        return await session.undo_plan(call, diff=diff)


@asynccontextmanager
async def _open_read_only_session(choices: SessionOptions) -> AsyncGenerator[Session]:
    """Open a session that makes no calls and leaves no audit."""
    config = disable_audit(read_config(choices))
    async with open_runtime_for(choices, config=config) as runtime, runtime.session(by_hand=True) as session:
        yield session


async def _call_undo(
    choices: SessionOptions, call: str | None, *, force: bool, skip_changed: bool, final: bool
) -> ToolResult:
    async with open_runtime_for(choices) as runtime, runtime.session(by_hand=True) as session:
        return await session.undo(call, force=force, skip_changed=skip_changed, final=final)


def _print_lines(lines: Sequence[str], *, err: bool = False) -> None:
    for line in lines:
        click.echo(make_visible(line), err=err)


def _print_plans(plans: Sequence[UndoPlan]) -> None:
    if not plans:
        click.echo("no call has changed files in this workspace", err=True)
    for plan in plans:
        _print_lines(_format_plan(plan))


def _format_plan(plan: UndoPlan) -> list[str]:
    from handrail.undo.path_states import format_line

    wire = plan.wire()
    state = " (undone)" if plan.undone else " (still running)" if wire["running"] else ""
    state += " (cannot be undone)" if plan.hopeless else " (its undo was killed half-way)" if plan.unfinished else ""
    lines = [
        *plan.passed_over,
        f"{plan.call}  {wire['at'].replace('T', ' ')[:19]}  {plan.records[-1].tool}{state}  {format_line(wire['what'])}",
    ]
    # What would be gone for good is not left out of a long list.
    first = (
        sorted(plan.paths, key=lambda path: not path.no_redo)[:MAX_SHOWN_PATHS]
        if plan.final
        else plan.paths[:MAX_SHOWN_PATHS]
    )
    lines += [f"  {line}" for path in first for line in _format_path_plan(path)]
    if len(plan.paths) > MAX_SHOWN_PATHS:
        lines.append(f"  … and {len(plan.paths) - MAX_SHOWN_PATHS} more")
    return lines + [f"  note: {format_line(note)}" for note in wire.get("notes", ())]


def _format_path_plan(plan: PathPlan) -> Iterator[str]:
    from handrail.undo.path_states import format_path

    name = format_path(_shorten_path(plan.path))
    if plan.lost:
        yield f"not kept  {name}: {plan.lost}"
    elif plan.conflict:
        yield f"changed   {name}: {plan.conflict}"
    else:
        yield f"{STEP_LABELS.get(plan.step, 'as it was'):<9} {name}"
    if plan.no_redo:
        yield f"  warning: cannot be brought back by redo: {name}: {plan.no_redo}"


def _shorten_path(path: str) -> str:
    """Return the path relative to the current directory, if it is below it."""
    here = f"{os.getcwd()}/"
    return path.removeprefix(here)


def _format_result(result: ToolResult) -> list[str]:
    lines = [*result.get("passed_over", ()), f"undid {result['call']}"]
    if "finished" in result:
        lines.append(f"  which {result['finished']} had begun to, and was killed before it was done")
    lines += [
        f"  {STEP_LABELS.get(each['step'], each['step']):<9} {_shorten_path(each['path'])}" for each in result["paths"]
    ]
    if (more := result["count"] - len(result["paths"])) > 0:
        lines.append(f"  … and {more} more")
    lines += [
        f"  not undone {_shorten_path(each['path'])}: {each.get('lost') or each.get('conflict') or each['no_redo']}"
        for each in result.get("not_undone", ())
    ]
    lines += [
        f"  also      {each['names']}: another name of {_shorten_path(each['path'])}" for each in result.get("also", ())
    ]
    lines += [f"  stays     {_shorten_path(path)}: something else is in it" for path in result.get("left", ())]
    lines += [f"  amiss     {_shorten_path(path)}: it is not as it was to be" for path in result.get("amiss", ())]
    return lines
