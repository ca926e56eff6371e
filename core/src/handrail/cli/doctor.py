"""`handrail doctor`"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

import handrail
from handrail.cli._common import (
    MAKE_WRITABLE,
    SessionOptions,
    describe_system_error,
    disable_audit,
    json_option,
    open_runtime_for,
    print_json,
    read_config,
    run_async,
    session_options,
)
from handrail.errors import DesktopError, HandrailError

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.plugins.loader import PluginRecord
    from handrail.session.runtime import Runtime
    from handrail.session.session import Session

NO_SANDBOX = "none is usable here: commands that could run in one are asked about instead"
BUG_HINT = "this is a bug of what supplies it; `handrail --debug doctor` shows more"
UNOPENED_MESSAGE = "it was not opened, since no desktop was"
# Seconds that a desktop, a service or a backend may take to open.
OPEN_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing that was looked at. `needed`: without it, what was asked for does not work."""

    name: str
    ok: bool
    detail: str = ""
    cure: str = ""
    needed: bool = True


@click.command("doctor")
@session_options
@json_option
@click.pass_context
def command(context: click.Context, choices: SessionOptions, as_json: bool) -> None:
    """Check what is missing here, and say the cure.

    The desktop that is chosen, and what reads it, are opened for real. The last line counts what was found and gives the first cure. Exits
    with 1 when something needed is missing.

    Example: handrail doctor --desktop private
    """
    checks = run_async(lambda: _run_checks(choices))
    summary = _summarize_checks(checks)
    if as_json:
        print_json([asdict(check) for check in (*checks, summary)])
    else:
        for check in checks:
            _print_check(check)
        click.echo(f"\n{summary.detail}{f'; first: {summary.cure}' if summary.cure else ''}")
    context.exit(0 if summary.ok else 1)


def _summarize_checks(checks: Sequence[DoctorCheck]) -> DoctorCheck:
    """Summarize the checks: how many are fine, how many need repair, and the first remedy."""
    fine = sum(check.ok for check in checks)
    mend = [check for check in checks if check.needed and not check.ok]
    said = (
        f"{fine} fine",
        f"{len(mend) or 'nothing'} to mend",
        f"{len(checks) - fine - len(mend)} absent and not needed",
    )
    cures = (*(check.cure for check in mend if check.cure), *(f"mend {check.detail}" for check in mend))
    cure = cures[0] if cures else ""
    return DoctorCheck("summary", not mend, ", ".join(said), cure, needed=False)


def _print_check(check: DoctorCheck) -> None:
    mark = "ok" if check.ok else "MISSING" if check.needed else "absent"
    detail = check.detail.removesuffix(f"; {check.cure}")
    click.echo(f"{mark:<8} {check.name}{': ' if detail else ''}{detail}")
    if check.cure:
        click.echo(f"{'':<8} cure: {check.cure}")


async def _run_checks(choices: SessionOptions) -> Sequence[DoctorCheck]:
    python = ".".join(map(str, sys.version_info[:3]))
    checks = [
        DoctorCheck("handrail", True, f"{handrail.__version__} on Python {python}, {sys.platform}"),
        *_check_other_copies(),
    ]
    try:
        config = disable_audit(read_config(choices))
        async with open_runtime_for(choices, config=config, follow=False) as runtime:
            checks += [
                *_check_plugins(runtime),
                *_check_folders(runtime),
                *_check_stop_switches(runtime),
                *_check_services(runtime),
            ]
            checks += [check async for check in _check_sandboxes(runtime)]
            on_desktop = [check async for check in _check_desktop(runtime)]
            # What was opened says more than what only looks usable.
            opened = {check.name for check in on_desktop}
            checks += [check for check in _check_backends(runtime) if check.name not in opened]
            checks += on_desktop
            lost = any(not check.ok and check.name == _desktop_name(runtime) for check in on_desktop)
            checks += [check async for check in _check_examined_services(runtime, lost=lost)]
    except HandrailError as exc:
        # Without a configuration nothing starts, so nothing else can be looked at.
        checks.append(DoctorCheck("start", False, str(exc), exc.hint or ""))
    except OSError as exc:
        checks.append(_failed_check("start", exc))
    return checks


def _check_other_copies() -> Iterator[DoctorCheck]:
    """Check that the command `handrail` starts this copy; another one may have other plugins and another version."""
    mine, found = os.path.join(sysconfig.get_path("scripts"), "handrail"), shutil.which("handrail")
    if found is not None and os.path.exists(mine) and not os.path.samefile(mine, found):
        detail = f"PATH leads to another copy, {found!r}; this one is {mine!r}"
        cure = f"put {os.path.dirname(mine)!r} before it in PATH, or remove it"
        yield DoctorCheck("command handrail", False, detail, cure, needed=False)


def _check_plugins(runtime: Runtime) -> Iterator[DoctorCheck]:
    for plugin in runtime.plugins.listed:
        failed = plugin.state == "failed"
        yield DoctorCheck(
            f"plugin {plugin.name}", not failed, plugin.reason or plugin.state, _plugin_cure(plugin) if failed else ""
        )


def _plugin_cure(plugin: PluginRecord) -> str:
    from handrail.plugins.loader import UNKNOWN_VALUE

    if plugin.distribution == UNKNOWN_VALUE:
        return "install it, or take it out of HANDRAIL_PLUGINS"
    return f"mend or uninstall {plugin.distribution}; `handrail --debug plugins` shows more"


def _check_folders(runtime: Runtime) -> Iterator[DoctorCheck]:
    for folder in runtime.places.all:
        why = _find_write_obstacle(folder)
        yield DoctorCheck(f"folder {folder}", why is None, why or "", MAKE_WRITABLE if why else "")


def _failed_check(name: str, exc: Exception) -> DoctorCheck:
    """Return the failed check for an error of plugin code or startup: an unwritable directory, or a bug."""
    if isinstance(exc, OSError):
        said, cure = describe_system_error(exc)
        if cure is not None:
            return DoctorCheck(name, False, said, cure)
    return DoctorCheck(name, False, f"{type(exc).__name__}: {exc}", BUG_HINT)


def _find_write_obstacle(folder: Path) -> str | None:
    """Return why the directory, or the one it would be created in, cannot be written, or None."""
    import os

    # Unlike `Path.exists`, this takes what may not be looked into for absent.
    there = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not os.path.isdir(there):
        return f"{there} is not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written"


def _check_stop_switches(runtime: Runtime) -> Iterator[DoctorCheck]:
    from handrail.desktop.stop_switches import EVERY_DESKTOP

    stopped = runtime.stops.all()
    if stopped:
        where = "every desktop" if EVERY_DESKTOP in stopped else ", ".join(stopped)
        yield DoctorCheck("agents", False, f"stopped on {where}", "handrail resume")


def _check_services(runtime: Runtime) -> Iterator[DoctorCheck]:
    for service, plugin in runtime.services:
        lacks = service.missing()
        cure = _split_cure(lacks)
        # What nothing cures is not for this machine.
        yield DoctorCheck(
            f"service {service.capability}", lacks is None, lacks or f"from {plugin}", cure, needed=bool(cure)
        )


async def _check_examined_services(runtime: Runtime, *, lost: bool) -> AsyncGenerator[DoctorCheck]:
    """Yield what services report about their dependencies, in a separate session.

    `lost`: the missing desktop has been reported already.
    """
    looked_at = [service for service, _ in runtime.services if service.examine is not None]
    if not looked_at:
        return
    async with runtime.session() as session:
        for service in looked_at:
            assert service.examine is not None
            try:
                for found in await service.examine(session):
                    yield DoctorCheck(found.name, found.ok, found.detail, found.cure)
            # Services are plugin code; a doctor names what is ill instead of falling ill.
            except Exception as exc:  # noqa: BLE001 # it becomes the finding
                if not (lost and isinstance(exc, DesktopError)):
                    yield _failed_check(f"service {service.capability}", exc)


def _check_backends(runtime: Runtime) -> Iterator[DoctorCheck]:
    """Check every backend without opening it; only those that the configuration names are needed."""
    named = _list_configured_backends(runtime)
    for name in sorted(named - set(runtime.backends)):
        yield DoctorCheck(f"backend {name}", False, "no plugin supplies it", "see `handrail plugins`")
    for name, backend in runtime.backends.items():
        lacks = runtime.lacks(backend)
        # Whether its key is there and its server answers, nobody has seen.
        yield DoctorCheck(
            f"backend {name}",
            False,
            lacks or UNOPENED_MESSAGE,
            _split_cure(lacks),
            needed=lacks is not None and name in named,
        )


def _list_configured_backends(runtime: Runtime) -> set[str]:
    """Return the backends that the configuration names."""
    settings = runtime.settings
    return {
        name for name in (settings.backend, *settings.backend_fallback, *settings.backend_merge) if name is not None
    }


async def _check_sandboxes(runtime: Runtime) -> AsyncGenerator[DoctorCheck]:
    """Check which sandbox is used and why others are not, starting each where possible.

    Yields nothing if no tool runs in a sandbox.
    """
    from handrail.sandbox.confinement import find_unfit_workspace
    from handrail.sandbox.selection import try_sandbox

    if not any(entry.tool.confinable for entry in runtime.registry):
        return
    chosen = await runtime.sandbox()
    refused = dict(chosen.refused)
    for name, why in refused.items():
        yield DoctorCheck(f"sandbox {name}", False, why, _split_cure(why), needed=False)
    for name, sandbox in runtime.sandboxes.items():
        if chosen.sandbox is not None and name == chosen.sandbox.name:
            network = "with" if runtime.settings.sandbox.network and sandbox.networks else "without"
            yield DoctorCheck(f"sandbox {name}", True, f"is used, {network} the network", needed=False)
        elif name not in refused:
            made = await try_sandbox(sandbox, runtime.settings, lambda: runtime.programs)
            why = made if isinstance(made, str) else None
            yield DoctorCheck(
                f"sandbox {name}", why is None, why or "works, and is not used", _split_cure(why), needed=False
            )
            if not isinstance(made, str):
                await made.close()
    if chosen.sandbox is None:
        yield DoctorCheck("sandbox", False, NO_SANDBOX, "see the lines above, and docs/sandbox.md", needed=False)
    elif (why := find_unfit_workspace(runtime.judging.workspace, home=runtime.judging.home)) is not None:
        yield DoctorCheck(
            "workspace", False, f"no sandbox is used in it: {why.partition('; ')[0]}", _split_cure(why), needed=False
        )


def _split_cure(lacks: str | None) -> str:
    """Return what follows the semicolon in a message of `missing()`: by convention, the remedy."""
    return lacks.partition("; ")[2] if lacks else ""


async def _check_desktop(runtime: Runtime) -> AsyncGenerator[DoctorCheck]:
    """Open and check the chosen desktop and everything that works on it."""
    if not any(service.capability == "desktops" for service, _ in runtime.services):
        return
    choice = runtime.settings.desktop
    if (why := runtime.desktop_missing(choice)) is not None:
        cure = "handrail doctor --desktop private" if choice == "current" else _split_cure(why)
        yield DoctorCheck(_desktop_name(runtime), False, why, cure)
        return
    async with runtime.session() as session:
        opened = await _try_opening(_desktop_name(runtime), _open_display(session))
        yield opened
        if opened.ok:
            for capability in _list_desktop_services(runtime):
                yield await _try_opening(f"{capability} on {choice}", _open_service(session, capability))
            if session.backend is not None:
                yield await _try_opening(f"vision on {choice}", _open_vision(session))
            named = _list_configured_backends(runtime)
            for name, backend in runtime.backends.items():
                if runtime.lacks(backend) is None:
                    yield await _try_opening(
                        f"backend {name}", _open_backend(runtime, name, session), needed=name in named
                    )


def _desktop_name(runtime: Runtime) -> str:
    return f"desktop {runtime.settings.desktop}"


def _list_desktop_services(runtime: Runtime) -> Iterable[str]:
    return [
        service.capability
        for service, _ in runtime.services
        if service.scope == "desktop" and service.missing() is None
    ]


async def _open_display(session: Session) -> str:
    return f"display {(await session.desktop()).display}"


async def _open_service(session: Session, capability: str) -> str:
    await session.service(capability)
    return "open"


async def _open_vision(session: Session) -> str:
    return f"by {await session.vision.ready()}"


async def _open_backend(runtime: Runtime, name: str, session: Session) -> str:
    """Open a backend: only this shows if its key exists and its server answers."""
    await (await runtime.open_backend(name, session)).close()
    return ""


async def _try_opening(name: str, opening: Awaitable[str], *, needed: bool = True) -> DoctorCheck:
    """Open it, and say how that went."""
    import anyio

    try:
        with anyio.fail_after(OPEN_TIMEOUT_S):
            return DoctorCheck(name, True, await opening, needed=needed)
    except HandrailError as exc:
        return DoctorCheck(name, False, str(exc), exc.hint or _split_cure(str(exc)), needed)
    except TimeoutError:
        again = "try again, and see `handrail --debug doctor`"
        return DoctorCheck(name, False, f"it did not open in {OPEN_TIMEOUT_S} s", again, needed)
    # Services and backends are plugin code; a doctor names what is ill instead of falling ill.
    except Exception as exc:  # noqa: BLE001 # it becomes the finding
        return replace(_failed_check(name, exc), needed=needed)
