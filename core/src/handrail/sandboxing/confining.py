"""What a session's sandboxed commands may reach, and what is looked after when they are over."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from handrail.config.settings import SandboxSettings
from handrail.errors import NoSandbox
from handrail.files import known_places
from handrail.judging.verdicts import View
from handrail.records.redaction import is_credential
from handrail.sandboxing import repositories
from handrail.sandboxing.aside import is_left, rename_aside
from handrail.sandboxing.denials import Denial, refused_hosts
from handrail.sandboxing.gateway import Connections, Gateway, Traffic, proxy_environment
from handrail.sandboxing.prepared import PreparedPool
from handrail.sandboxing.quarantine import HostRun, Search
from handrail.sandboxing.sandboxes import Bounds, Confined, Limits, PreparedSandbox, Sandbox
from handrail.sandboxing.scratch import Scratch
from handrail.sandboxing.survey import Found, Survey, stands_for, was_there
from handrail.sandboxing.toolchains import named_folders, toolchains
from handrail.undo.coverage import REPOSITORY_FOLDERS

MEGABYTE = 2**20
# Where files are bound, one that is replaced on the host is bound no longer.
BINDS = sys.platform == "linux"
# So many of the places that a command is kept from are watched; each takes a descriptor while it runs.
MAX_BOUND = 200
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
# What the kernel says of the machine's hardware, which a command that reads may see.
HARDWARE = ("/sys/block", "/sys/bus", "/sys/class", "/sys/devices")
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
    view: View = View.WORK
    connections: Connections = field(default_factory=Connections)
    traffic: Traffic = field(default_factory=Traffic)
    # The commands that rebases which stopped before would run when they go on, by their lists.
    rebases: Mapping[Path, frozenset[str] | None] = field(default_factory=dict[Path, frozenset[str] | None])

    @property
    def name(self) -> str:
        return self.sandbox.name

    @property
    def hosts(self) -> tuple[str, ...]:
        """The only hosts that can be connected to, where there is no other network."""
        return () if self.bounds.network else self.bounds.hosts

    @property
    def network(self) -> bool:
        return self.bounds.network

    @property
    def unsurveyed(self) -> Sequence[str]:
        """Some of the folders of the workspace that were not searched for secrets and for what programs obey; empty if all were."""
        return self.before.unsurveyed

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Confined:
        """The command that runs `argv` confined. Of the environment it gets what it needs and what the session has set.

        Raises `NoSandbox` when that cannot be done; then nothing may be run.
        """
        given = self.environment(environment)
        confined = self._located(self.sandbox.confine(argv, cwd=cwd, environment=given, bounds=self.bounds))
        if confined.channel is not None:
            proxy = self.connections.proxy_to(self.hosts, self.traffic)
            confined = Gateway(confined.channel, proxy).around(confined)
        if self.view is View.READ:
            # It can leave nothing in the workspace that would have to be looked for.
            return confined
        return self.confines.following(self, confined)

    def _located(self, confined: Confined) -> Confined:
        """The same by the absolute path of its program: a bare name would mean a file of the current folder, or one that agents put on PATH."""
        name, *words = confined.argv
        if os.path.isabs(name):
            return confined
        programs = self.sandbox.programs()
        found = programs.find(name)
        if found is None:
            for descriptor in confined.pass_fds:
                os.close(descriptor)
            confined.ended()
            raise NoSandbox(programs.why_missing(name))
        return replace(confined, argv=(found, *words))

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of `environment` that a command gets inside."""
        given = cleaned(environment, self.host)
        return {**given, **proxy_environment(self.hosts, given)} if self.hosts else given

    def prepared(self) -> PreparedSandbox | None:
        """Return a sandbox that is ready to run a command of this view at once; None where `confine` has to set one up."""
        return self.confines.prepared(self) if self.view is View.READ and not self.hosts else None

    def reading(self, *folders: Path) -> Confinement:
        """The same with these folders to read, at their own places."""
        return replace(self, bounds=replace(self.bounds, readable=(*self.bounds.readable, *folders)))

    def showing(self, place: Path, text: str) -> Confinement:
        """Return the same with a file of this content at `place`, which a command can read and not change."""
        shown = {**self.bounds.shown, place: self.confines.stand_in(text)}
        return replace(self, bounds=replace(self.bounds, shown=shown))

    def hiding(self, *places: Path) -> Confinement:
        """Return the same with these files and folders closed."""
        return replace(self, bounds=replace(self.bounds, masked=(*self.bounds.masked, *places)))

    def protecting(self, paths: Iterable[str]) -> Confinement:
        """Return the same with these files and folders of the workspace as they are: they can be read, and not changed, moved or removed."""
        hidden = set(self.bounds.masked)
        places = [place for place in map(Path, paths) if hidden.isdisjoint((place, *place.parents))]
        known = self.confines.oldest
        # As in `confinement`: what a command made that still runs is not bound.
        places = [place for place in places if known is None or place in known.bounds.kept]
        places = [place for place in places if _inside(place, self.bounds.writable) and _real(place) == place]
        if not places:
            return self
        anchored = {*self.bounds.anchored, *_above(places, self.bounds.writable)}
        kept = (*self.bounds.kept, *(place for place in places if place not in self.bounds.kept))
        return replace(self, bounds=replace(self.bounds, kept=kept, anchored=tuple(sorted(anchored))))

    def keeping_repositories(self) -> Confinement:
        """Return the same with the data of version control as it is: what the survey found of git, and what is at the top of the workspace."""
        # As in `confinement`: what a command made that still runs is not bound.
        found = [place for place in self.before.autorun if _repository(place) and place in self.bounds.anchored]
        tops = [
            root / name for root in self.bounds.writable for name in REPOSITORY_FOLDERS if not self.confines.is_running
        ]
        places = [place for place in dict.fromkeys((*found, *tops)) if place.is_dir() and _real(place) == place]
        return replace(self, bounds=replace(self.bounds, kept=(*places, *self.bounds.kept)))

    def denied(self, output: str, exit_code: int) -> Denial | None:
        """What the sandbox seems to have refused of a command that ended so; None when nothing points to it."""
        if exit_code != 0 and (found := refused_hosts(self.traffic, output)) is not None:
            return found
        return self.sandbox.denied(output, exit_code, self.bounds)

    def put_aside(self) -> list[str]:
        """Rename what the command has left in the workspace for other programs to run unasked; the names that it had."""
        return [] if self.view is View.READ else self.confines.put_aside(self)

    @property
    def left(self) -> Sequence[str]:
        """What sandboxed commands have left for other programs to run unasked and could not be renamed."""
        return () if self.view is View.READ else self.confines.left


@dataclass(slots=True)
class _Started:
    """Something that was started in the sandbox, and whether it is over."""

    given: Confinement
    over: bool = False
    # The process of the host that it is, once that is known.
    pid: int | None = None
    # What it is kept from, each open: a number of a file that is gone would be given to another one.
    bound: dict[Path, int] = field(default_factory=dict[Path, int])
    # What of that was replaced while it ran.
    replaced: list[Path] = field(default_factory=list[Path])
    # It ends in another thread.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Take down what it is kept from. What takes such a file's place on the host, it is not kept from."""
        for place in (*self.given.bounds.kept, *self.given.bounds.masked)[:MAX_BOUND]:
            with contextlib.suppress(OSError):
                self.bound[place] = os.open(place, os.O_PATH | os.O_NOFOLLOW)

    def look(self) -> bool:
        """Look whether something that it was kept from was replaced while it ran."""
        with self.lock:
            self.replaced = [place for place, fd in self.bound.items() if not _is_same(place, fd)] or self.replaced
            return bool(self.replaced)

    def end(self) -> None:
        """Take down that it is over, and changes nothing any more."""
        self.look()
        self.over = True
        self.forget()

    def forget(self) -> None:
        """Close what it was kept from."""
        with self.lock:
            for fd in self.bound.values():
                os.close(fd)
            self.bound.clear()


class Confines:
    """The bounds of one session's sandboxed commands: their private folder, and what was found in the workspace."""

    def __init__(
        self,
        *,
        workspace: Sequence[Path],
        home: Path,
        environment: Mapping[str, str],
        protected: Sequence[Path],
        host_runs: Sequence[HostRun] = (),
        renamed: Callable[[Sequence[str]], None] = lambda places: None,
    ) -> None:
        # Told of the places that were put aside.
        self._tell_renamed = renamed
        # The session's calls that run on the host now.
        self._host_runs = host_runs
        self._workspace = tuple(workspace)
        self._home = home
        self._environment = environment
        self._protected = tuple(protected)
        self._survey = Survey()
        self._scratch: Scratch | None = None
        # Those under which something was started, oldest first, until what it left was put aside.
        self._started: dict[int, _Started] = {}
        self._toolchains: tuple[Path, ...] | None = None
        self._pool = PreparedPool()
        # When the first command began that could write, and whether one began since the workspace was last searched.
        self._first_ns = 0
        self._unsearched = False
        # What commands have left and could not be put aside.
        self._left: dict[Path, None] = {}
        # Files that were replaced while a command ran which was kept from them, and when that was noticed.
        self._doubted: dict[Path, int] = {}
        # What the bounds of the last command that only reads were made from.
        self._read: tuple[object, Bounds] | None = None

    @property
    def running(self) -> bool:
        """Whether a sandboxed command runs, or has left what is not looked through yet."""
        return bool(self._started)

    def following(self, given: Confinement, confined: Confined) -> Confined:
        """Return the command so that its start and its end are known here, too."""
        # The same call may be given more to read or to see: its traffic is what stays the same.
        started = self._started[id(given.traffic)] = _Started(given)
        if BINDS:
            started.begin()
        self._first_ns = self._first_ns or time.time_ns()
        self._unsearched = True

        def begun(pid: int) -> None:
            started.pid = pid
            if not given.bounds.network:
                for run in self._host_runs:
                    run.unheld = not run.hold.hold([pid]) or run.unheld
            confined.started(pid)

        def over() -> str | None:
            started.end()
            return confined.ended()

        return replace(confined, started=begun, ended=over)

    def prepare_host_run(self, run: HostRun) -> None:
        """Hold what runs in the sandbox and put aside what it and earlier commands have left; what starts meanwhile is held, too.

        With the whole network inside, nothing is held: what runs on the host may have to talk to it.
        """
        if not self._unsearched and not self._started and not self._left and not self._doubted:
            return
        started = list(self._started.values())
        running = [one for one in started if not one.over and not one.given.bounds.network]
        run.unheld = not run.hold.hold([one.pid for one in running if one.pid is not None])
        for one in started:
            self._doubt_replaced(one)
        self.end_detached(run)
        aside = [name for one in started for name in self.put_aside(one.given)]
        search = Search(self._survey, self._first_ns)
        search.look(self._workspace)
        aside += self._renamed((*search.found, *self._left), self._workspace)
        self._unsearched = bool(self._started) or not search.whole
        run.aside, run.whole = aside, search.whole
        run.left = (*self.left, *map(str, search.kept_back), *self._still_doubted())

    def end_detached(self, run: HostRun) -> None:
        """End what runs in the sandbox and is no longer kept from a file, since another one took its place on the host."""
        # They may end meanwhile.
        for one in list(self._started.values()):
            if not one.over and one.pid is not None and one.look():
                run.hold.end([one.pid])
                one.forget()
                one.replaced.clear()

    def _doubt_replaced(self, one: _Started) -> None:
        """Take down the files that a command was kept from and may have changed, as they were replaced while it ran."""
        now_ns = time.time_ns()
        one.look()
        self._doubted |= {place: now_ns for place in one.replaced if place in one.given.bounds.kept}

    def _still_doubted(self) -> list[str]:
        """Return the files that a sandboxed command may have changed, and that nobody has saved since or removed."""
        for place, since_ns in list(self._doubted.items()):
            if not os.path.lexists(place) or os.lstat(place).st_ctime_ns > since_ns:
                del self._doubted[place]
        return [str(place) for place in self._doubted]

    @property
    def is_running(self) -> bool:
        """True while a sandboxed command that may write runs."""
        return any(not one.over for one in self._started.values())

    @property
    def oldest(self) -> Confinement | None:
        """What the oldest command was given that still runs, or has left what is not looked through yet."""
        return next((one.given for one in self._started.values()), None)

    @property
    def temporary(self) -> Path | None:
        """The private folder that is /tmp inside; None before the first sandboxed call."""
        return self._scratch.temporary if self._scratch else None

    def confinement(
        self,
        sandbox: Sandbox,
        settings: SandboxSettings,
        view: View = View.WORK,
        *,
        hosts: Sequence[str] = (),
        connections: Connections | None = None,
    ) -> Confinement:
        """What the next call is given. Looks at the workspace: some milliseconds the first time.

        `hosts` are those that the call may connect to, by way of `connections`.
        """
        found = self._survey.look(self._workspace)
        connections = connections or Connections()
        if view is View.READ:
            bounds = self._read_bounds(found, settings)
            if hosts:
                bounds = replace(bounds, hosts=tuple(hosts))
            return Confinement(sandbox, bounds, self._environment, found, {}, self, View.READ, connections)
        network = settings.network and sandbox.networks
        bounds = self._bounds(found, settings, network=network)
        bounds = replace(bounds, hosts=() if network else tuple(hosts))
        oldest = self.oldest
        if oldest is not None:
            # What a command made that still runs is not bound: it could have it lead elsewhere at that moment.
            known, before = oldest.bounds, oldest.before.autorun
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
        places = {**missing, self._workspace[0]: tuple(own)}
        return Confinement(
            sandbox,
            bounds,
            self._environment,
            found,
            places,
            self,
            View.WORK,
            connections,
            rebases=_rebases(repos),
        )

    def stand_in(self, text: str) -> Path:
        """Return a file of the host with this content, for something that is shown inside."""
        self._scratch = self._scratch or Scratch()
        return self._scratch.stand_in(text)

    def open_temporary(self) -> None:
        """Make the private folder, so that file tools can write there before the first command."""
        self._scratch = self._scratch or Scratch()

    def prepared(self, given: Confinement) -> PreparedSandbox | None:
        """Return a prepared sandbox that shows what `given` does, if one is ready."""
        return self._pool.take(given.sandbox, given.bounds)

    def put_aside(self, given: Confinement) -> list[str]:
        """Rename what came to be in the workspace since a call was confined and would be run or obeyed unasked; the names that it had."""
        with contextlib.ExitStack() as opened:
            aside = self._renamed(self._suspects(given, opened), given.bounds.writable)
        started = self._started.get(id(given.traffic))
        if started is not None and started.over:
            self._doubt_replaced(started)
            del self._started[id(given.traffic)]
        return aside

    def _suspects(self, given: Confinement, opened: contextlib.ExitStack) -> list[Path]:
        before, missing = given.before, given.missing
        now = self._survey.look_into(self._workspace, opened)
        new = [place for place, identity in now.autorun.items() if before.autorun.get(place) != identity]
        # What was masked could not be replaced inside; what the survey before may have missed and is older was there.
        new = [place for place in new if place not in given.bounds.masked and not was_there(place, before)]
        suspects = [place for place in new if not (_repository(place) and repositories.harmless(place))]
        for git, places in missing.items():
            suspects += [place for place in repositories.links(git) if before.autorun.get(place) != stands_for(place)]
            suspects += [place for place in places if git not in new and stands_for(place) is not None]
        for place, commands in _rebases(missing).items():
            known = given.rebases.get(place, frozenset())
            if known is not None and (commands is None or not commands <= known):
                suspects.append(place)
        return suspects

    @property
    def left(self) -> list[str]:
        """What is still there of what could not be put aside."""
        self._left = {place: None for place in self._left if is_left(place)}
        return [str(place) for place in self._left]

    def _renamed(self, places: Iterable[Path], roots: Sequence[Path]) -> list[str]:
        """Put places aside, and remember what cannot be; return the names of those that were."""
        aside: list[str] = []
        for place in dict.fromkeys(places):
            if rename_aside(place, roots):
                aside.append(str(place))
            elif is_left(place):
                self._left[place] = None
        if aside:
            self._tell_renamed(aside)
        return aside

    def close(self) -> None:
        """End the prepared sandboxes, and remove the private folder with all in it."""
        self._pool.close()
        if self._scratch is not None:
            self._scratch.close()

    def _bounds(self, found: Found, settings: SandboxSettings, *, network: bool) -> Bounds:
        scratch = self._scratch = self._scratch or Scratch()
        repos = [place for place in found.autorun if _repository(place)]
        others = self._repositories_elsewhere(found)
        writable = (*self._workspace, *others, *self._folders(settings.writable))
        readable = (*self._found_toolchains(), *self._folders(settings.readable))
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
        # What keeps a secret and is obeyed as well is masked, which keeps it as it is, too.
        kept = [place for place in kept if hidden.isdisjoint((place, *place.parents))]
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
            limits=_limits(settings),
        )

    def _read_bounds(self, found: Found, settings: SandboxSettings) -> Bounds:
        """Return the bounds of a command that only reads: all that one which works may see, nothing to write, no sockets, no network."""
        given = (*self._found_toolchains(), *self._folders(settings.readable), *self._folders(settings.writable))
        # Credentials may come to be at the top of these folders later (`cargo login`).
        made_from = (found.secrets, tuple(found.autorun.items()), settings, given, tuple(map(_changed_ns, given)))
        if self._read is not None and self._read[0] == made_from:
            return self._read[1]
        scratch = self._scratch = self._scratch or Scratch()
        workspace = (*self._workspace, *self._repositories_elsewhere(found))
        hardware = tuple(Path(place) for place in HARDWARE if os.path.isdir(place))
        seen = (*workspace, *given)
        hidden = {path for path in (*found.secrets, *_keys(given)) if _below(path, seen)}
        hidden |= {path for path in map(_real, self._protected) if _below(path, seen) and path.exists()}
        bounds = Bounds(
            writable=(),
            readable=(*hardware, *given, *workspace),
            temporary=scratch.temporary,
            home=self._home,
            shown=scratch.shown(self._home, _git_settings(self._home)),
            masked=tuple(sorted(place for place in hidden if hidden.isdisjoint(place.parents))),
            local_sockets=False,
            limits=_limits(settings),
        )
        self._read = made_from, bounds
        return bounds

    def _repositories_elsewhere(self, found: Found) -> set[Path]:
        """Return the repositories outside the workspace that worktrees and submodules in it belong to."""
        gits = [place for place in found.autorun if place.name == ".git" and not _repository(place)]
        folders = {folder for place in gits for folder in repositories.elsewhere(place)}
        return {folder for folder in folders if not _below(folder, self._workspace)}

    def _found_toolchains(self) -> tuple[Path, ...]:
        if self._toolchains is None:
            self._toolchains = toolchains(self._environment, home=self._home, roots=self._workspace)
        return self._toolchains

    def _folders(self, texts: Sequence[str]) -> tuple[Path, ...]:
        return named_folders(texts, workspace=self._workspace, home=self._home)


def _limits(settings: SandboxSettings) -> Limits:
    return Limits(
        memory=settings.memory * MEGABYTE,
        processes=settings.processes,
        cpu_seconds=settings.cpu_seconds,
        file_size=settings.file_size * MEGABYTE,
    )


def _repository(place: Path) -> bool:
    """Whether a place that git obeys is a repository's own folder."""
    if place.is_symlink() or not place.is_dir():
        return False
    return place.name == ".git" or known_places.is_repository(
        {name for name in known_places.REPOSITORY_NAMES if os.path.lexists(place / name)}
    )


def _rebases(repos: Iterable[Path]) -> dict[Path, frozenset[str] | None]:
    """What rebases that stopped in these repositories would run when they go on."""
    return {place: commands for git in repos for place, commands in repositories.commands_left(git).items()}


def _inside(place: Path, roots: Sequence[Path]) -> bool:
    """Whether a place is below a root, and neither one itself nor around one."""
    return _below(place, roots) and not any(root.is_relative_to(place) for root in roots)


def _above(places: Iterable[Path], roots: Sequence[Path]) -> set[Path]:
    """The folders that these places are in, below the roots."""
    return {folder for place in places for folder in place.parents if _inside(folder, roots)}


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


def _changed_ns(folder: Path) -> int:
    """Return when names in a folder last changed, in nanoseconds; 0 where it cannot be told."""
    try:
        return os.stat(folder).st_ctime_ns
    except OSError:
        return 0


def _is_same(place: Path, fd: int) -> bool:
    """Return True if what is at a place is what this descriptor is open for."""
    try:
        return os.path.samestat(os.lstat(place), os.fstat(fd))
    except OSError:
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
