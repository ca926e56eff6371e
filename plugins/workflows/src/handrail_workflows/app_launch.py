"""The tools `launch_app` and `open_file`: programs started, or found running, with their window in front."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Annotated, Any

import anyio
import anyio.to_thread
from pydantic import Field

from handrail import AmbiguousElement, Downstream, NotFound, Read, Run, ToolContext, tool
from handrail.text import fold_text
from handrail_workflows.desktop_entries import DesktopEntry, find_entries, find_opener, read_all_entries
from handrail_workflows.file_dialogs import LINUX_ONLY, is_named_in_title
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import ShownWindow, bring_to_front, list_windows

READY_TIMEOUT_S = 30.0
# A program that has handed over to one that runs may take so long to show it.
HANDOVER_TIMEOUT_S = 3.0
STEADY_TIME_S = 0.3


@dataclass(frozen=True, slots=True)
class StartCommand:
    """Command to run, and the program file names by which its windows may be recognized."""

    argv: tuple[str, ...]
    programs: tuple[str, ...]
    folder: str | None = None
    found: str = "path"


@tool(
    layer="workflow",
    title="Start a program",
    effects=[Read("system"), Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=60,
    describe=lambda given: f"Start {given.app_name}",
)
async def launch_app(
    app_name: Annotated[str, Field(description="Name in the menu, or program.")],
    args: Annotated[list[str] | None, Field(description="Its arguments.")] = None,
    wait_ready: Annotated[bool, Field(description="Wait for its window.")] = True,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Start a program and wait for its window. Returns window_title, pid, wait_seconds, process_id, how."""
    steps = WorkflowSteps(context)
    with steps.told():
        start = await _resolve_program(steps, app_name, args or [])
        return await _start_program(steps, start, wait_ready=wait_ready)


@tool(
    layer="workflow",
    title="Open a file",
    effects=[Read("file", arg="file_path"), Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=60,
    describe=lambda given: f"Open {given.file_path} with the program for its type",
)
async def open_file(
    file_path: Annotated[str, Field(description="Path.")],
    wait_ready: Annotated[bool, Field(description="Wait for a window.")] = True,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Open a file with the program for its type. Returns window_title, pid, wait_seconds, effect."""
    path = context.judged_path(file_path)
    if not path.exists():
        raise NotFound(f"there is no file {file_path!r}", hint="see find_files")
    environment = {**context.host_environment, **context.environment}
    known = await anyio.to_thread.run_sync(read_all_entries, environment)
    entry = await anyio.to_thread.run_sync(partial(find_opener, known, path, environment))
    if entry is None:
        raise NotFound(f"no installed program says that it opens {path.name!r}", hint="use launch_app with args")
    steps = WorkflowSteps(context)
    with steps.told():
        start = StartCommand(tuple(entry.command.argv([str(path)])), (entry.program,), entry.folder, entry.id)
        result = await _start_program(steps, start, wait_ready=wait_ready, file=path)
    return {**result, "file_path": str(path)}


async def _resolve_program(steps: WorkflowSteps, name: str, args: Sequence[str]) -> StartCommand:
    """Find a program by its desktop entry, else on PATH, as a Flatpak or as a snap.

    Raises `AmbiguousElement` if several entries match, `NotFound` if nothing does.
    """
    context = steps.context
    environment = {**context.host_environment, **context.environment}
    known = await anyio.to_thread.run_sync(read_all_entries, environment)
    path = environment.get("PATH")
    fitting = find_entries(known, name, path)
    if len(fitting) > 1:
        raise AmbiguousElement(
            f"several programs fit {name!r}",
            hint="use one candidate's id",
            details={"candidates": [{"id": entry.id, "name": entry.names[0]} for entry in fitting]},
        )
    if fitting:
        return _build_entry_start(fitting[0], args, path)
    if (os.path.isabs(name) or "/" not in name) and shutil.which(name, path=path):
        return StartCommand((name, *args), (name,))
    if shutil.which("flatpak", path=path) and (id := await _find_flatpak(steps, name)) is not None:
        return StartCommand(("flatpak", "run", id, *args), (id.rpartition(".")[2], id), found="flatpak")
    if shutil.which("snap", path=path) and await _is_snap_installed(steps, name):
        return StartCommand(("snap", "run", name, *args), (name,), found="snap")
    raise NotFound(
        f"no installed program is called {name!r}",
        hint="install_app installs one where it is loaded, else a person does",
        details={"programs": sorted({e.names[0] for e in known if not e.hidden and not e.action})[:50]},
    )


def _build_entry_start(entry: DesktopEntry, args: Sequence[str], path: str | None) -> StartCommand:
    if (lacking := entry.lacks(path)) is not None:
        raise NotFound(
            f"{entry.names[0]!r} is started by {lacking!r}, which is not installed, or not on PATH",
            hint="install_app installs the package that has it",
        )
    if entry.terminal:
        raise Downstream(f"{entry.names[0]!r} runs in a terminal", hint="use execute_cli with pty")
    return StartCommand(tuple(entry.command.argv(args)), (entry.program, entry.window_class), entry.folder, entry.id)


async def _find_flatpak(steps: WorkflowSteps, name: str) -> str | None:
    listed = await steps.take("execute_cli", command="flatpak list --app --columns=application,name")
    rows = [line.split("\t") for line in listed["stdout"].splitlines() if line.strip()]
    sought = fold_text(name)
    ids = [r[0].strip() for r in rows if sought in (fold_text(r[0].strip()), fold_text(r[-1].strip()))]
    return ids[0] if ids else None


async def _is_snap_installed(steps: WorkflowSteps, name: str) -> bool:
    return (await steps.attempt("execute_cli", command=f"snap list {shlex.quote(name)}")).ok


async def _start_program(
    steps: WorkflowSteps, start: StartCommand, *, wait_ready: bool, file: Path | None = None
) -> dict[str, Any]:
    before = await list_windows(steps)
    began = anyio.current_time()
    order: dict[str, Any] = {"command": shlex.join(start.argv), "background": True}
    ran = await steps.take("execute_cli", **order, **({"cwd": start.folder} if start.folder else {}))
    told: dict[str, Any] = {"process_id": ran["process_id"], "pid": ran["pid"], "found_as": start.found}
    if not wait_ready:
        return {**told, "window_title": None, "wait_seconds": 0.0, "how": "started", "steps_taken": steps.taken}
    waiting = _WindowWaiter(steps, start, ran["pid"], ran["process_id"], {window.id: window.title for window in before})
    window = await waiting.window(file)
    await bring_to_front(steps, window)
    return {
        **told,
        "window_title": window.title,
        "window_id": window.id,
        "pid": window.pid,
        "how": waiting.how,
        "wait_seconds": round(anyio.current_time() - began, 2),
        "steps_taken": steps.taken,
        "effect": "confirmed" if file is None or is_named_in_title(window.title, file) else "unverified",
    }


@dataclass(slots=True)
class _WindowWaiter:
    """For the window of what was started."""

    steps: WorkflowSteps
    start: StartCommand
    pid: int
    process_id: str
    before: Mapping[str, str]
    how: str = "started"

    async def window(self, file: Path | None) -> ShownWindow:
        async def shown() -> ShownWindow | None:
            return await self._new() or await self._handed_over(file)

        found = await wait_for_value(shown, READY_TIMEOUT_S)
        if found is None:
            said = await self.steps.context.call("read_process", {"process_id": self.process_id})
            raise Downstream(
                f"{self.start.argv[0]} showed no window within {READY_TIMEOUT_S:g} s",
                hint=f"it goes on running; stop_process({self.process_id!r}) ends it",
                details={"stderr": said.get("stderr", "")[-1000:]},
            )
        return await self._settled(found)

    async def _new(self) -> ShownWindow | None:
        """Return a new window of the process, its family or its program; None if none has appeared yet."""
        new = [window for window in await list_windows(self.steps) if window.id not in self.before]
        own = [window for window in new if is_in_process_family(window.pid, self.pid) or self._looks_like_it(window)]
        return own[0] if own else None

    async def _handed_over(self, file: Path | None) -> ShownWindow | None:
        """Return the window of an already running program, if the started process has exited successfully.

        None while it runs, or without such a window; `Downstream` if it failed.
        """
        if await self._runs():
            return None
        late = await wait_for_value(self._new, HANDOVER_TIMEOUT_S)
        if late is not None:
            self.how = "handed_over"
            return late
        shown = await list_windows(self.steps)
        changed = [w for w in shown if w.title != self.before.get(w.id) and self._looks_like_it(w)]
        running = changed or [w for w in shown if self._looks_like_it(w)]
        if file is not None:
            running = [w for w in running if is_named_in_title(w.title, file)] or running
        self.how = "handed_over" if changed else "already_running"
        return running[0] if running else None

    async def _runs(self) -> bool:
        listed = await self.steps.look("list_processes")
        mine = [process for process in listed["processes"] if process["process_id"] == self.process_id]
        if not mine or mine[0]["running"]:
            return bool(mine)
        if mine[0]["exit_code"]:
            said = await self.steps.context.call("read_process", {"process_id": self.process_id})
            raise Downstream(
                f"{self.start.argv[0]} ended with exit code {mine[0]['exit_code']}",
                details={"stderr": said.get("stderr", "")[-1000:]},
            )
        return False

    def _looks_like_it(self, window: ShownWindow) -> bool:
        known = {fold_text(PurePath(program).name) for program in self.start.programs if program}
        return fold_text(window.process) in known

    async def _settled(self, window: ShownWindow) -> ShownWindow:
        """Return the window once its title is stable: splash screens disappear, and documents set the title."""
        since, last = anyio.current_time(), window

        async def rests() -> ShownWindow | None:
            nonlocal since, last
            shown = await list_windows(self.steps)
            now = next((w for w in shown if w.id == last.id), None) or await self._new() or last
            if (now.id, now.title) != (last.id, last.title):
                since, last = anyio.current_time(), now
            return last if anyio.current_time() - since >= STEADY_TIME_S else None

        return await wait_for_value(rests, READY_TIMEOUT_S) or last


def is_in_process_family(pid: int | None, started: int) -> bool:
    """Return True if a process is the started one, or in the session or process group created for it."""
    if pid is None:
        return False
    try:
        return started in (pid, os.getsid(pid), os.getpgid(pid))
    except OSError:
        return False
