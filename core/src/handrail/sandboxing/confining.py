"""What a session's sandboxed commands may reach, and what is looked after when they are over."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from handrail.config.settings import SandboxSettings
from handrail.records.redaction import is_credential
from handrail.sandboxing import repositories
from handrail.sandboxing.denials import Denial
from handrail.sandboxing.sandboxes import Bounds, Confined, Limits, Sandbox
from handrail.sandboxing.scratch import Scratch
from handrail.sandboxing.survey import Found, Survey, stands_for
from handrail.sandboxing.toolchains import toolchains

MEGABYTE = 2**20
ASIDE = ".handrail-aside"
# Places of the system: a workspace that is or holds one of them cannot be opened to a sandbox.
OF_THE_SYSTEM = (
    "/usr",
    "/etc",
    "/var",
    "/var/tmp",
    "/tmp",
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/boot",
    "/root",
    "/home",
    "/opt",
    "/srv",
    "/bin",
)
# Places that a workspace may not lie in.
CLOSED = ("/usr", "/etc", "/dev", "/proc", "/sys", "/run", "/boot", "/bin", "/sbin", "/lib", "/lib64")
# Variables of the host that programs need and that keep no secret. What a session has set itself is given beside them.
NEEDED = re.compile(
    r"""(?x)
      PATH | HOME | USER | LOGNAME | SHELL | LANG | LANGUAGE | LC_[A-Z]+ | TERM | COLORTERM | TZ | COLUMNS | LINES | NO_COLOR | FORCE_COLOR | CI
    | VIRTUAL_ENV | CONDA_[A-Z_]+ | PYTHON[A-Z]+ | PIP_[A-Z_]+ | UV_[A-Z_]+ | NODE_[A-Z_]+ | NVM_[A-Z]+ | npm_config_[a-z_]+ | JAVA_HOME
    | GO[A-Z]{2,12} | CARGO_[A-Z_]+ | RUSTUP_[A-Z_]+ | RUST[A-Z_]+ | PYENV_[A-Z_]+ | CC | CXX | LD | AR | [A-Z]*FLAGS | MAKE[A-Z_]* | CMAKE_[A-Z_]+
    | PKG_CONFIG_[A-Z]+ | LD_LIBRARY_PATH | LIBRARY_PATH | CPATH | C_INCLUDE_PATH | SOURCE_DATE_EPOCH | OMP_[A-Z_]+
    | GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE) | DEBIAN_FRONTEND | PAGER | GIT_PAGER | LESS | HANDRAIL_MARK_PROCESS
    """
)
# What leads to the person's keys, screen and other programs, whoever has set it.
NEVER = re.compile(
    r"""(?x)
      SSH_.* | GPG_.* | DBUS_.* | DISPLAY | WAYLAND_.* | XAUTHORITY | XDG_RUNTIME_DIR | XDG_SESSION_.* | AT_SPI_.* | SESSION_MANAGER | TMUX.*
    | STY | DOCKER_.* | KUBECONFIG | KUBERNETES_.* | AWS_.* | AZURE_.* | GOOGLE_APPLICATION_.* | VAULT_.* | BASH_ENV | ENV | LD_PRELOAD | LD_AUDIT
    | ICEAUTHORITY | PULSE_.* | INVOCATION_ID | NOTIFY_SOCKET | SUDO_.* | .*_SOCKET
    """
)
# Sections of a person's git settings that keep credentials, or lead to them.
CREDENTIAL_SECTIONS = re.compile(
    r"(?i)credential|http|url|sendemail|github|gitlab|hub|gpg|include|includeif|protocol|remote|imap"
)


@lru_cache(maxsize=64)
def unfit(roots: tuple[Path, ...], *, home: Path) -> str | None:
    """Why a workspace of these roots cannot be opened to a sandbox; None when it can. By their names alone."""
    for root in roots:
        if root == home or home.is_relative_to(root):
            return f"the workspace {str(root)!r} is or holds the whole home folder; work in a folder of its own"
        if any(Path(place).is_relative_to(root) for place in OF_THE_SYSTEM):
            return f"the workspace {str(root)!r} is or holds a folder of the system; work in a folder of its own"
        if any(root.is_relative_to(place) for place in CLOSED):
            return f"the workspace {str(root)!r} lies in a folder of the system; work in a folder of its own"
    return None


def cleaned(environment: Mapping[str, str], host: Mapping[str, str]) -> dict[str, str]:
    """The variables that a sandboxed command gets: what is needed of the host's, and what the session has set."""
    return {
        name: value
        for name, value in environment.items()
        if not NEVER.fullmatch(name)
        and (NEEDED.fullmatch(name) or host.get(name) != value)
        and not is_credential(name, value)
    }


@dataclass(frozen=True)
class Confinement:
    """The sandbox as it is given to one call. What `confine` returns is all that may be started."""

    sandbox: Sandbox
    bounds: Bounds
    host: Mapping[str, str]
    before: Found
    # Places of the repositories in the workspace, and of Handrail's own there, that are not there and must not come to be.
    missing: Mapping[Path, Sequence[Path]]
    confines: Confines

    @property
    def name(self) -> str:
        return self.sandbox.name

    @property
    def network(self) -> bool:
        return self.bounds.network

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Confined:
        """The command that runs `argv` confined. Of the environment it gets what it needs and what the session has set.

        Raises `NoSandbox` when that cannot be done; then nothing may be run.
        """
        given = cleaned(environment, self.host)
        confined = self.sandbox.confine(argv, cwd=cwd, environment=given, bounds=self.bounds)
        return replace(confined, ended=self.confines.following(self, confined.ended))

    def reading(self, *folders: Path) -> Confinement:
        """The same with these folders to read, at their own places."""
        return replace(self, bounds=replace(self.bounds, readable=(*self.bounds.readable, *folders)))

    def denied(self, output: str, exit_code: int) -> Denial | None:
        """What the sandbox seems to have refused of a command that ended so; None when nothing points to it."""
        return self.sandbox.denied(output, exit_code, self.bounds)

    def put_aside(self) -> list[str]:
        """Rename what the command has left in the workspace for other programs to run unasked; the names that it had."""
        return self.confines.put_aside(self)


@dataclass(slots=True)
class _Started:
    """Something that was started in the sandbox, and whether it is over."""

    given: Confinement
    over: bool = False


class Confines:
    """The bounds of one session's sandboxed commands: their private folder, and what was found in the workspace."""

    def __init__(
        self, *, workspace: Sequence[Path], home: Path, environment: Mapping[str, str], protected: Sequence[Path]
    ) -> None:
        self._workspace = tuple(workspace)
        self._home = home
        self._environment = environment
        self._protected = tuple(protected)
        self._survey = Survey()
        self._scratch: Scratch | None = None
        # Those under which something was started, oldest first, until what it left was put aside.
        self._started: dict[int, _Started] = {}
        self._toolchains: tuple[Path, ...] | None = None

    @property
    def running(self) -> bool:
        """Whether a sandboxed command runs, or has left what is not looked through yet."""
        return bool(self._started)

    def following(self, given: Confinement, ended: Callable[[], str | None]) -> Callable[[], str | None]:
        """What tells that a command is over, so that this is known here, too."""
        started = self._started[id(given)] = _Started(given)

        def over() -> str | None:
            started.over = True
            return ended()

        return over

    @property
    def temporary(self) -> Path | None:
        """The private folder that is /tmp inside; None before the first sandboxed call."""
        return self._scratch.temporary if self._scratch else None

    def confinement(self, sandbox: Sandbox, settings: SandboxSettings) -> Confinement:
        """What the next call is given. Looks at the workspace: some milliseconds the first time."""
        found = self._survey.look(self._workspace)
        bounds = self._bounds(found, settings, network=settings.network and sandbox.networks)
        oldest = next(iter(self._started.values()), None)
        if oldest is not None:
            # What a command made that still runs is not bound: it could have it lead elsewhere at that moment.
            known, before = oldest.given.bounds, oldest.given.before.autorun
            bounds = replace(
                bounds,
                kept=tuple(place for place in bounds.kept if place in known.kept),
                anchored=tuple(place for place in bounds.anchored if place in known.anchored),
            )
            found = replace(found, autorun={p: made for p, made in found.autorun.items() if before.get(p) == made})
        repos = [place for place in bounds.anchored if _repository(place)]
        missing = {git: tuple(p for p in repositories.obeyed_later(git) if _below(p, bounds.writable)) for git in repos}
        links = {place: made for git in repos for place in repositories.links(git) if (made := stands_for(place))}
        found = replace(found, autorun={**found.autorun, **links})
        own = [path for path in self._protected if _below(path, bounds.writable) and not os.path.lexists(path)]
        return Confinement(sandbox, bounds, self._environment, found, {**missing, self._workspace[0]: tuple(own)}, self)

    def put_aside(self, given: Confinement) -> list[str]:
        """Rename what came to be in the workspace since a call was confined and would be run or obeyed unasked; the names that it had."""
        before, missing = given.before, given.missing
        now = self._survey.look(self._workspace)
        new = [place for place, identity in now.autorun.items() if before.autorun.get(place) != identity]
        suspects = [place for place in new if not (_repository(place) and repositories.harmless(place))]
        for git, places in missing.items():
            suspects += [place for place in repositories.links(git) if before.autorun.get(place) != stands_for(place)]
            suspects += [place for place in places if git not in new and stands_for(place) is not None]
        aside = [str(place) for place in suspects if _rename(place, given.bounds.writable)]
        started = self._started.get(id(given))
        if started is not None and started.over:
            del self._started[id(given)]
        return aside

    def close(self) -> None:
        """Remove the private folder and all in it."""
        if self._scratch is not None:
            self._scratch.close()

    def _bounds(self, found: Found, settings: SandboxSettings, *, network: bool) -> Bounds:
        scratch = self._scratch = self._scratch or Scratch()
        if self._toolchains is None:
            self._toolchains = toolchains(self._environment, home=self._home, roots=self._workspace)
        gits = [place for place in found.autorun if place.name == ".git"]
        repos = [place for place in found.autorun if _repository(place)]
        others = {folder for place in gits if place not in repos for folder in repositories.elsewhere(place)}
        writable = (*self._workspace, *others, *self._folders(settings.writable))
        readable = (*self._toolchains, *self._folders(settings.readable))
        seen = (*writable, *readable)
        secrets = [path for path in (*found.secrets, *_keys(readable)) if _below(path, seen)]
        own = [path for path in map(_real, self._protected) if _below(path, seen) and path.exists()]
        # A link is as good as what it leads to. It cannot be kept itself, but another one in its place is noticed.
        real = [_real(place) for place in found.autorun if place not in repos]
        real += [_real(place) for git in (*repos, *others) for place in repositories.led_to(git) if place.exists()]
        kept = [place for place in real if _inside(place, writable) and place not in repos]
        kept += [place for git in (*repos, *others) for place in repositories.obeyed(git)]
        # What is bound is what a name leads to: by a link in the workspace a command could choose any file of the host.
        kept = [place for place in kept if _real(place) == place]
        hidden = {*secrets, *own}
        masked = [place for place in sorted(hidden) if hidden.isdisjoint(place.parents)]
        return Bounds(
            writable=writable,
            readable=readable,
            temporary=scratch.temporary,
            home=self._home,
            shown=scratch.shown(self._home, _git_settings(self._home)),
            masked=tuple(masked),
            kept=tuple(dict.fromkeys(kept)),
            # What lies in a folder that was moved would not be found there by the next command.
            anchored=tuple(sorted({*repos, *others, *_above((*masked, *kept, *repos), writable)})),
            network=network,
            limits=Limits(
                memory=settings.memory * MEGABYTE,
                processes=settings.processes,
                cpu_seconds=settings.cpu_seconds,
                file_size=settings.file_size * MEGABYTE,
            ),
        )

    def _folders(self, texts: Sequence[str]) -> tuple[Path, ...]:
        paths = (_real(self._workspace[0] / Path(text.replace("~", str(self._home), 1))) for text in texts)
        return tuple(path for path in paths if path.exists())


def _repository(place: Path) -> bool:
    """Whether a place that git obeys is a repository's own folder."""
    if place.is_symlink() or not place.is_dir():
        return False
    return place.name == ".git" or repositories.bare(
        {name for name in repositories.INSIDE if os.path.lexists(place / name)}
    )


def _inside(place: Path, roots: Sequence[Path]) -> bool:
    """Whether a place is below a root, and neither one itself nor around one."""
    return _below(place, roots) and not any(root.is_relative_to(place) for root in roots)


def _above(places: Iterable[Path], roots: Sequence[Path]) -> set[Path]:
    """The folders that these places are in, below the roots."""
    return {folder for place in places for folder in place.parents if _inside(folder, roots)}


def _rename(place: Path, roots: Sequence[Path]) -> bool:
    """Give it another name in its folder, which is reached without following a link; False when that did not work."""
    root = next((root for root in roots if place.is_relative_to(root)), None)
    if root is None:
        return False
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as opened:
        try:
            folder = os.open(root, flags)
            opened.callback(os.close, folder)
            for name in place.relative_to(root).parts[:-1]:
                folder = os.open(name, flags, dir_fd=folder)
                opened.callback(os.close, folder)
            for number in range(1, 100):
                aside = f"{place.name}{ASIDE}{number if number > 1 else ''}"
                if not _there(aside, folder):
                    os.rename(place.name, aside, src_dir_fd=folder, dst_dir_fd=folder)
                    return True
        except OSError:
            return False
    return False


def _there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _keys(folders: Sequence[Path]) -> list[Path]:
    """Credentials that lie at the top of folders that are only read."""
    from handrail.files import paths

    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found += [_real(Path(entry.path)) for entry in entries if paths.secret(entry.path) is not None]
    return found


def _git_settings(home: Path) -> str:
    """The person's git settings without what keeps credentials or leads to them."""
    lines: list[str] = []
    for file in (home / ".config/git/config", home / ".gitconfig"):
        keep = False
        try:
            if not stat.S_ISREG(file.stat().st_mode) or file.stat().st_size > MEGABYTE:
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for line in text.splitlines():
            if line.strip().startswith("["):
                keep = CREDENTIAL_SECTIONS.match(line.strip()[1:].strip()) is None
            if keep:
                lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
