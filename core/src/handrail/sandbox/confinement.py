"""Bounds of a session's sandboxed commands, and the cleanup of what those commands leave behind."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import anyio

from handrail.api.sandbox import Bounds, Confined, Denial, Limits, PreparedSandbox
from handrail.api.verdict import View
from handrail.config.settings import SandboxSettings
from handrail.errors import NoSandbox
from handrail.fs import sensitive_paths
from handrail.sandbox import repositories
from handrail.sandbox.copies import holds_nothing_else
from handrail.sandbox.denials import describe_refused_hosts
from handrail.sandbox.gateway import ProxyConnections, RefusedTraffic, SandboxGateway, build_proxy_environment
from handrail.sandbox.git_settings import read_git_settings
from handrail.sandbox.interface import Sandbox
from handrail.sandbox.leftovers import is_present_or_unknown, rename_aside
from handrail.sandbox.path_links import find_exchanged_link, find_links_on_paths
from handrail.sandbox.place_states import PlaceState, state_of, wait_for_tick
from handrail.sandbox.prepared_pool import PreparedPool
from handrail.sandbox.quarantine import COARSE_CLOCK_NS, MAX_SEARCH_S, HostRun, QuarantineSearch
from handrail.sandbox.scratch_folder import ScratchFolder, is_private_place
from handrail.sandbox.shared_runs import SharedRun, SharedRuns
from handrail.sandbox.started_commands import StartedCommands
from handrail.sandbox.survey import SKIPPED_FOLDERS, SurveyResult, WorkspaceSurvey, read_identity, was_present_before
from handrail.sandbox.toolchains import OF_OTHERS, find_toolchains, resolve_named_folders
from handrail.sandbox.visible_variables import select_visible_variables
from handrail.undo.coverage import REPOSITORY_FOLDERS

log = logging.getLogger(__name__)

MEGABYTE_BYTES = 2**20
WAIT_S = 0.02
# Places that a sandbox closes, keeps or holds in place. Each has to be bound, one after another: so many take about two seconds.
MAX_PLACES = 1_000
# How long a session that is over searches the workspace for what its commands have left.
CLOSING_SEARCH_S = 3.0
# Folders beside the workspace are searched for credentials again after this time, or when names at their top change.
SEARCHED_AGAIN_S = 10.0
# Places of the system: a workspace that is or holds one of them cannot be opened to a sandbox.
SYSTEM_FOLDERS = (
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
SYSTEM_ROOTS = ("/usr", "/etc", "/dev", "/proc", "/sys", "/run", "/boot", "/bin", "/sbin", "/lib", "/lib64")
# What the kernel says of the machine's hardware, which a command that reads may see.
HARDWARE_PATHS = ("/sys/block", "/sys/bus", "/sys/class", "/sys/devices")


@lru_cache(maxsize=64)
def find_unfit_workspace(roots: tuple[Path, ...], *, home: Path) -> str | None:
    """Return why these workspace roots cannot be opened to a sandbox, or None if they can.

    Only the path names are checked.
    """
    for root in roots:
        if root == home or home.is_relative_to(root):
            return f"the workspace {str(root)!r} is or holds the whole home folder; work in a folder of its own"
        if any(Path(place).is_relative_to(root) for place in SYSTEM_FOLDERS):
            return f"the workspace {str(root)!r} is or holds a folder of the system; work in a folder of its own"
        if any(root.is_relative_to(place) for place in SYSTEM_ROOTS):
            return f"the workspace {str(root)!r} lies in a folder of the system; work in a folder of its own"
    return None


@dataclass(frozen=True)
class Confinement:
    """The sandbox as it is given to one call. What `confine` returns is all that may be started."""

    sandbox: Sandbox
    bounds: Bounds
    host: Mapping[str, str]
    before: SurveyResult
    # Places of the repositories in the workspace, and of Handrail's own there, that are not there and must not come to be.
    missing: Mapping[Path, Sequence[Path]]
    confines: SessionConfinement
    view: View = View.WORK
    connections: ProxyConnections = field(default_factory=ProxyConnections)
    traffic: RefusedTraffic = field(default_factory=RefusedTraffic)
    # The commands that rebases which stopped before would run when they go on, by their lists.
    rebases: Mapping[Path, frozenset[str] | None] = field(default_factory=dict[Path, frozenset[str] | None])
    # The links on the way to what programs obey, which a command can exchange, and what they say.
    links: Mapping[Path, str] = field(default_factory=dict[Path, str])
    # The folders of version control that are kept as they are; they come first in `bounds.kept`.
    repositories: tuple[Path, ...] = ()
    # The key of the setting for which git may change no repository; empty where no setting keeps it from that.
    unsettled: str = ""

    @property
    def name(self) -> str:
        return self.sandbox.name

    @property
    def hosts(self) -> tuple[str, ...]:
        """The only hosts that commands can connect to if the network is otherwise closed; empty if it is open."""
        return () if self.bounds.network else self.bounds.hosts

    @property
    def network(self) -> bool:
        return self.bounds.network

    @property
    def writable(self) -> Sequence[Path]:
        """The folders that commands in the sandbox write to."""
        return (*self.bounds.writable, self.bounds.temporary)

    @property
    def unsurveyed(self) -> Sequence[str]:
        """Some of the folders of the workspace that were not searched for secrets and for what programs obey; empty if all were."""
        return self.before.unsurveyed

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]) -> Confined:
        """Return the command that runs `argv` confined.

        Its environment contains the variables that commands need and those that the session has set. Raises `NoSandbox`
        if the command cannot be confined; nothing may be run then.
        """
        given = self.environment(environment)

        def confine() -> Confined:
            # Nothing runs now that could have it lead elsewhere.
            bounds = _check_bounds(self.bounds)
            confined = self._located(self.sandbox.confine(argv, cwd=cwd, environment=given, bounds=bounds))
            if confined.channel is None:
                return confined
            proxy = self.connections.proxy_to(self.hosts, self.traffic)
            return SandboxGateway(confined.channel, proxy).around(confined)

        confined = self.confines.set_up(self.sandbox, confine)
        if self.view is View.READ:
            # It can leave nothing in the workspace that would have to be looked for.
            return confined
        return self.confines.following(self, confined)

    async def wait_to_begin(self) -> None:
        """Return once a command can begin. Call `confine` right after it, before anything else of this program runs."""
        await self.confines.wait_to_begin(self)

    def _located(self, confined: Confined) -> Confined:
        """Return the command with the absolute path of its program.

        A bare name would refer to a file in the current directory, or to a program that agents put on PATH. Raises
        `NoSandbox` if the program is not found.
        """
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
        given = select_visible_variables(environment, self.host)
        return {**given, **build_proxy_environment(self.hosts, given)} if self.hosts else given

    def prepared(self) -> PreparedSandbox | None:
        """Return a sandbox that is ready to run a command of this view at once; None where `confine` has to set one up."""
        return self.confines.prepared(self) if self.view is View.READ and not self.hosts else None

    def reading(self, *folders: Path) -> Confinement:
        """Return a copy that can also read these directories, at their own paths.

        Directories that commands could replace with a symlink are left out.
        """
        added = [folder for folder in folders if not is_private_place(folder)]
        return replace(self, bounds=replace(self.bounds, readable=(*self.bounds.readable, *added)))

    def showing(self, place: Path, text: str) -> Confinement:
        """Return the same with a file of this content at `place`, which a command can read and not change."""
        shown = {**self.bounds.shown, place: self.confines.stand_in(text)}
        return replace(self, bounds=replace(self.bounds, shown=shown))

    def hiding(self, *places: Path) -> Confinement:
        """Return the same with these files and folders closed."""
        return replace(
            self, bounds=replace(self.bounds, masked=(*self.bounds.masked, *map(_resolve_real_path, places)))
        )

    def protecting(self, paths: Iterable[str]) -> Confinement:
        """Return the same with these files and folders of the workspace as they are: they can be read, and not changed, moved or removed."""
        hidden = set(self.bounds.masked)
        places = [place for place in map(Path, paths) if hidden.isdisjoint((place, *place.parents))]
        places = [
            place
            for place in places
            if _is_inside_roots(place, self.bounds.writable) and _resolve_real_path(place) == place
        ]
        if not places:
            return self
        anchored = {*self.bounds.anchored, *_collect_parent_folders(places, self.bounds.writable)}
        kept = (*self.bounds.kept, *(place for place in places if place not in self.bounds.kept))
        return replace(self, bounds=replace(self.bounds, kept=kept, anchored=tuple(sorted(anchored))))

    def keeping_repositories(self) -> Confinement:
        """Return the same with the data of version control as it is: the repositories, and what is at the top of the workspace."""
        if self.view is View.READ:
            return self
        found = [
            place for place in self.bounds.anchored if _is_repository_folder(place) or place.name in REPOSITORY_FOLDERS
        ]
        tops = [root / name for root in self.bounds.writable for name in REPOSITORY_FOLDERS]
        kept = [
            place for place in dict.fromkeys((*found, *tops)) if place.is_dir() and _resolve_real_path(place) == place
        ]
        return replace(self, bounds=replace(self.bounds, kept=(*kept, *self.bounds.kept)), repositories=tuple(kept))

    def changing_repository(self, gits: Sequence[str]) -> Confinement:
        """Return a copy whose command may change the one repository of these `.git` paths, except what git obeys in it.

        Programs named by one repository can change another, so with several repositories none may be changed. None may
        be changed either if settings make git run something that it could put in place itself; `unsettled` is then the
        key of such a setting.
        """
        changed = repositories.find_single_repository(gits)
        used = {Path(git).parent for git in gits}
        settings, writable = self.confines.git_settings, self.writable
        if changed is not None and (
            key := repositories.unsettled_setting(changed, settings, used=used, writable=writable)
        ):
            return replace(self, unsettled=key)
        freed = {place for place in self.repositories if changed is not None and place.is_relative_to(changed)}
        rest = tuple(place for place in self.repositories if place not in freed)
        own = self.bounds.kept[len(self.repositories) :]
        return replace(self, bounds=replace(self.bounds, kept=(*rest, *own)), repositories=rest) if freed else self

    def denied(self, output: str, exit_code: int) -> Denial | None:
        """Return what the sandbox seems to have blocked, judging by a command's output and exit code, or None."""
        if exit_code != 0 and (found := describe_refused_hosts(self.traffic, output)) is not None:
            return found
        return self.sandbox.denied(output, exit_code, self.bounds)

    def put_aside(self) -> list[str]:
        """Rename what the command has left in the workspace for other programs to run unasked; the names that it had."""
        return [] if self.view is View.READ else self.confines.put_aside(self)

    @property
    def left(self) -> Sequence[str]:
        """The files left by sandboxed commands that other programs run unasked and that could not be renamed."""
        return () if self.view is View.READ else self.confines.left


class SessionConfinement:
    """The bounds of one session's sandboxed commands: their private folder, and what was found in the workspace."""

    def __init__(
        self,
        *,
        workspace: Sequence[Path],
        home: Path,
        environment: Mapping[str, str],
        protected: Sequence[Path],
        host_runs: Sequence[HostRun] = (),
        shared: SharedRuns | None = None,
        renamed: Callable[[Sequence[str]], None] = lambda places: None,
    ) -> None:
        # Told of the places that were put aside.
        self._tell_renamed = renamed
        self._commands = StartedCommands(host_runs, shared)
        self._workspace = tuple(workspace)
        self._home = home
        self._environment = environment
        self._protected = tuple(protected)
        # Settings of git beside those of repositories.
        self.git_settings = repositories.list_common_settings(home, environment)
        self._survey = WorkspaceSurvey()
        self._scratch: ScratchFolder | None = None
        self._toolchains: tuple[Path, ...] | None = None
        # Searches of folders beside the workspace for credentials: those of toolchains, and those that settings open.
        self._survey_tools = WorkspaceSurvey(SKIPPED_FOLDERS | OF_OTHERS, read_only=True)
        self._survey_readable = WorkspaceSurvey(read_only=True)
        self._beside: tuple[object, float, tuple[Path, ...]] | None = None
        self._pool = PreparedPool()
        # What commands have left and could not be put aside.
        self._left: dict[Path, None] = {}
        # What was put aside, or was made outside the sandbox while nothing ran there, as it was then.
        self._settled: dict[Path, PlaceState] = {}
        # What the bounds of the last command that only reads were made from.
        self._read: tuple[object, Bounds] | None = None

    @property
    def running(self) -> bool:
        """True while a sandboxed command runs or has left changes that were not searched yet."""
        return self._commands.is_busy

    def set_up(self, sandbox: Sandbox, confine: Callable[[], Confined]) -> Confined:
        """Have a sandbox made while nothing else runs in one."""
        return self._commands.set_up(sandbox, confine)

    async def wait_for_host(self) -> None:
        """Return once a sandboxed command that begins does not have to be held."""
        while self._commands.is_held():
            await anyio.sleep(WAIT_S)

    async def wait_to_begin(self, given: Confinement) -> None:
        """Return once a command can begin that nothing holds, and that holds nothing it would wait for."""
        while self._commands.has_to_wait(given):
            await anyio.sleep(WAIT_S)

    def following(self, given: Confinement, confined: Confined) -> Confined:
        """Return the command wrapped to record its start and end here too."""
        return self._commands.following(given, confined)

    def hold_own(self, run: HostRun) -> None:
        """Hold the session's commands while the user is prompted about a call on the host."""
        self._commands.hold_own(run)

    def announce(self, run: HostRun) -> bool:
        """Tell other sessions of a call that no sandboxed command runs beside; return False if it has to wait for one of theirs."""
        return self._commands.announce(run)

    def prepare_host_run(self, run: HostRun) -> None:
        """Hold sandboxed commands and quarantine what they and earlier commands have left.

        Commands that start meanwhile are held too. Nothing is quarantined for a sandboxed call: it can obey only what
        its sandbox shows it.
        """
        given, elsewhere = self._commands.hold(run), run.elsewhere
        if run.confined is not None:
            return
        if given or elsewhere or self._left or self._commands.unsearched:
            run.aside = [name for each in given for name in self.put_aside(each)]
            search = self._searched(elsewhere)
            run.aside = [*run.aside, *self._renamed((*search.found, *self._left), self._workspace)]
            run.whole = search.whole
            if search.whole and self._commands.is_busy:
                run.commands_begun = self._commands.begun
                run.obeyed = self._survey.look(self._workspace).autorun
            run.left = tuple(map(str, search.kept_back))
        run.left = (*self.left, *run.left, *self._commands.doubted)

    def _searched(self, elsewhere: Sequence[SharedRun], *, most_s: float = MAX_SEARCH_S) -> QuarantineSearch:
        """Search the workspace for files left by commands.

        This includes those of other sessions that have not been searched yet.
        """
        began_ns = time.time_ns()
        if elsewhere:
            self._survey.look(self._workspace)
        beside = [other for other in elsewhere if other.kind == "sandboxed"]
        own = [self._commands.first_ns] if self._commands.unsearched else []
        search = QuarantineSearch(
            self._survey,
            min((*own, *(other.since_ns for other in elsewhere)), default=time.time_ns()),
            covered_since_ns=min((other.since_ns for other in beside), default=0),
            known=frozenset(place for other in beside for place in other.obeyed),
            most_s=most_s,
        )
        search.look(self._workspace)
        search.found += (Path(place) for other in beside for place in other.missing if os.path.lexists(place))
        search.found = [place for place in search.found if not self._is_settled(place)]
        if search.whole:
            self._commands.searched_whole(began_ns)
        return search

    def end_host_run(self, run: HostRun) -> None:
        """End a command's run on the host.

        Sandboxed commands whose protected files were replaced meanwhile are ended: their sandbox no longer protects the
        new files.
        """
        if run.obeyed is not None and self._commands.have_changed_nothing(run):
            now = self._survey.look(self._workspace).autorun
            self._settle(place for place, identity in now.items() if run.obeyed.get(place) != identity)
            self._commands.begin_anew()
        self._commands.over(run)

    def written_outside(self, paths: Iterable[str]) -> Callable[[], None]:
        """Return what records that a call outside the sandbox has written these files: a sandboxed command had not, and none runs until then."""
        if not self._commands.unsearched or self._commands.is_running():
            return lambda: None
        places = [_resolve_real_path(Path(path).parent) / Path(path).name for path in paths]
        clean = [place for place in places if self._is_older(place) or self._is_settled(place)]
        begun = self._commands.begun

        def settle() -> None:
            if self._commands.begun == begun and not self._commands.is_running():
                self._settle(clean)

        return settle

    def _is_older(self, place: Path) -> bool:
        """Return True if a file is not there, or was last changed before the commands began whose leftovers were not searched for."""
        try:
            return os.lstat(place).st_ctime_ns < self._commands.first_ns - COARSE_CLOCK_NS
        except OSError:
            return not is_present_or_unknown(place)

    def _settle(self, places: Iterable[Path]) -> None:
        """Record the state of paths; until it changes they are not quarantined.

        Repository directories are skipped: they are not attributed to a call.
        """
        states = {place: state for place in places if not _is_repository_folder(place) and (state := state_of(place))}
        wait_for_tick(list(states.values()))
        self._settled |= states

    def _is_settled(self, place: Path) -> bool:
        return place in self._settled and self._settled[place] == state_of(place)

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
        connections: ProxyConnections | None = None,
    ) -> Confinement:
        """Return the confinement of the next call. Surveys the workspace: some milliseconds the first time.

        `hosts` are those that the call may connect to, by way of `connections`.
        """
        found = self._survey.look(self._workspace)
        connections = connections or ProxyConnections()
        if view is View.READ:
            bounds = self._read_bounds(found, settings)
            if hosts:
                bounds = replace(bounds, hosts=tuple(hosts))
            return Confinement(sandbox, bounds, self._environment, found, {}, self, View.READ, connections)
        network = settings.network and sandbox.networks
        bounds = self._bounds(found, settings, network=network)
        bounds = replace(bounds, hosts=() if network else tuple(hosts))
        if (oldest := self._commands.oldest) is not None:
            # What a command made that still runs is put aside when this one is over, too.
            before = oldest.before.autorun
            found = replace(found, autorun={p: made for p, made in found.autorun.items() if before.get(p) == made})
        repos = [place for place in bounds.anchored if _is_repository_folder(place)]
        missing = {
            git: tuple(
                p
                for p in repositories.iter_missing_obeyed(git, self.git_settings)
                if _is_below_roots(p, bounds.writable)
            )
            for git in repos
        }
        links = {
            place: made
            for git in repos
            for place in repositories.iter_obeyed_links(git)
            if (made := read_identity(place))
        }
        found = replace(found, autorun={**found.autorun, **links})
        own = [*self._protected, *self._named_in_workspace()]
        own = [path for path in own if _is_below_roots(path, bounds.writable) and not os.path.lexists(path)]
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
            rebases=_find_stopped_rebases(repos),
            links={**self._links(found, repos, bounds.writable), **(oldest.links if oldest is not None else {})},
        )

    def _links(self, found: SurveyResult, repos: Sequence[Path], writable: Sequence[Path]) -> dict[Path, str]:
        """Return the links in writable folders on the way to what programs obey, with what they say."""
        ways = [place for place in found.autorun if place.is_symlink()]
        ways += [*self._protected, *self._named_in_workspace()]
        ways += [way for git in repos for way in repositories.iter_paths_to_obeyed(git, self.git_settings)]
        return find_links_on_paths(ways, writable)

    def stand_in(self, text: str) -> Path:
        """Return a file of the host with this content, for something that is shown inside."""
        self._scratch = self._scratch or ScratchFolder()
        return self._scratch.stand_in(text)

    def open_temporary(self) -> None:
        """Create the private directory for file tools to write to before the first command."""
        self._scratch = self._scratch or ScratchFolder()

    def prepared(self, given: Confinement) -> PreparedSandbox | None:
        """Return a prepared sandbox that shows what `given` does, if one is ready. None is made while something runs: see `set_up`."""
        if self._commands.is_running():
            return None
        return self._pool.take(given.bounds, lambda: self._commands.prepare(given.sandbox, given.bounds))

    def put_aside(self, given: Confinement) -> list[str]:
        """Rename what came to be in the workspace since a call was confined and would be run or obeyed unasked; the names that it had."""
        with contextlib.ExitStack() as opened:
            aside = self._renamed(self._suspects(given, opened), given.bounds.writable)
        self._commands.searched(given)
        return aside

    def _suspects(self, given: Confinement, opened: contextlib.ExitStack) -> list[Path]:
        before, missing = given.before, given.missing
        now = self._survey.look_into(self._workspace, opened)
        new = [place for place, identity in now.autorun.items() if before.autorun.get(place) != identity]
        # What was masked could not be replaced inside; what the survey before may have missed and is older was there.
        new = [place for place in new if place not in given.bounds.masked and not was_present_before(place, before)]
        new = [place for place in new if not self._is_settled(place)]
        harmless = [
            place for place in new if _is_repository_folder(place) and repositories.is_harmless_repository(place)
        ]
        trees = self._new_work_trees(new, (*given.bounds.anchored, *harmless))
        suspects = [place for place in new if place not in harmless and place not in trees]
        for git, folder in trees.items():
            suspects += repositories.named_for_tree(folder, git.parent, self.git_settings)
        suspects = [place for place in suspects if not _is_checked_out(place, trees, given.bounds)]
        for git in harmless:
            named = repositories.iter_places_in_settings(self.git_settings, git.parent)
            suspects += [
                place
                for place in named
                if is_present_or_unknown(place) and _is_below_roots(place, given.bounds.writable)
            ]
        for git, places in missing.items():
            suspects += [
                place
                for place in repositories.iter_obeyed_links(git)
                if before.autorun.get(place) != read_identity(place)
            ]
            suspects += [place for place in places if git not in new and read_identity(place) is not None]
        for place, commands in _find_stopped_rebases(missing).items():
            known = given.rebases.get(place, frozenset())
            if known is not None and (commands is None or not commands <= known):
                suspects.append(place)
        suspects += [
            place
            for link in given.links
            if (place := find_exchanged_link(link, given.links[link], given.bounds.writable))
        ]
        return suspects

    def _new_work_trees(self, new: Sequence[Path], known: Sequence[Path]) -> dict[Path, Path]:
        """Return the new `.git` files that `git worktree add` makes, each with the folder of its repository, which is one of those that are known."""
        found = {place: repositories.new_work_tree(place) for place in new if place.name == ".git"}
        return {place: folder for place, folder in found.items() if folder is not None and folder in known}

    @property
    def left(self) -> list[str]:
        """Files that could not be quarantined and still exist."""
        self._left = {place: None for place in self._left if is_present_or_unknown(place)}
        return [str(place) for place in self._left]

    def _renamed(self, places: Iterable[Path], roots: Sequence[Path]) -> list[str]:
        """Put places aside, and remember what cannot be; return the names of those that were."""
        aside: list[str] = []
        for place in dict.fromkeys(places):
            if (renamed := rename_aside(place, roots)) is not None:
                aside.append(str(place))
                if (state := state_of(renamed)) is not None:
                    self._settled[renamed] = state
            elif is_present_or_unknown(place):
                self._left[place] = None
        if aside:
            self._tell_renamed(aside)
        return aside

    def finish(self) -> None:
        """End the session: quarantine what its commands have left, as far as it can be found quickly."""
        if self._commands.unsearched:
            for each in self._commands.confinements:
                self.put_aside(each)
            # Where that fails, the next session finds what is left.
            with contextlib.suppress(NoSandbox):
                search = self._searched((), most_s=CLOSING_SEARCH_S)
                if aside := self._renamed(search.found, self._workspace):
                    log.warning("put aside what sandboxed commands have left: %s", ", ".join(aside))
        self._commands.close()

    def close(self) -> None:
        """End the prepared sandboxes, and remove the private folder with all in it."""
        self._pool.close()
        if self._scratch is not None:
            self._scratch.close()

    def _bounds(self, found: SurveyResult, settings: SandboxSettings, *, network: bool) -> Bounds:
        scratch = self._scratch = self._scratch or ScratchFolder()
        repos = [place for place in found.autorun if _is_repository_folder(place)]
        others = self._repositories_elsewhere(found, settings)
        writable = (*self._workspace, *others, *self._folders(settings.writable))
        readable = (*self._found_toolchains(), *self._folders(settings.readable))
        seen = (*writable, *readable)
        secrets = [path for path in (*found.secrets, *self._secrets_beside(settings)) if _is_below_roots(path, seen)]
        own = [
            path for path in map(_resolve_real_path, self._protected) if _is_below_roots(path, seen) and path.exists()
        ]
        # A link is as good as what it leads to. It cannot be kept itself, but another one in its place is noticed.
        real = [_resolve_real_path(place) for place in found.autorun if place not in repos]
        led = [
            place for git in (*repos, *others) for place in repositories.iter_configured_places(git, self.git_settings)
        ]
        real += [_resolve_real_path(place) for place in (*led, *self._named_in_workspace()) if place.exists()]
        kept = [place for place in real if _is_inside_roots(place, writable) and place not in repos]
        kept += [place for git in (*repos, *others) for place in repositories.iter_obeyed_places(git)]
        # What is bound is what a name leads to: by a link in the workspace a command could choose any file of the host.
        kept = [place for place in kept if _resolve_real_path(place) == place]
        hidden = {*secrets, *own}
        # What keeps a secret and is obeyed as well is masked, which keeps it as it is, too.
        kept = [place for place in kept if hidden.isdisjoint((place, *place.parents))]
        masked = [place for place in sorted(hidden) if hidden.isdisjoint(place.parents)]
        return Bounds(
            writable=writable,
            readable=readable,
            temporary=scratch.temporary,
            home=self._home,
            shown=scratch.shown(self._home, read_git_settings(self._home)),
            masked=tuple(masked),
            kept=tuple(dict.fromkeys(kept)),
            # What lies in a folder that was moved would not be found there by the next command.
            anchored=tuple(sorted({*repos, *others, *_collect_parent_folders((*masked, *kept, *repos), writable)})),
            network=network,
            limits=_build_limits(settings),
        )

    def _read_bounds(self, found: SurveyResult, settings: SandboxSettings) -> Bounds:
        """Return the bounds of a command that only reads: all that one which works may see, nothing to write, no sockets, no network."""
        given = (*self._found_toolchains(), *self._folders(settings.readable), *self._folders(settings.writable))
        others = self._repositories_elsewhere(found, settings)
        beside = (*self._secrets_beside(settings), *_find_top_credentials(self._folders(settings.writable)))
        made_from = (found.secrets, tuple(found.autorun), others, settings, given, beside)
        if self._read is not None and self._read[0] == made_from:
            return self._read[1]
        scratch = self._scratch = self._scratch or ScratchFolder()
        workspace = (*self._workspace, *others)
        hardware = tuple(Path(place) for place in HARDWARE_PATHS if os.path.isdir(place))
        seen = (*workspace, *given)
        hidden = {path for path in (*found.secrets, *beside) if _is_below_roots(path, seen)}
        hidden |= {
            path for path in map(_resolve_real_path, self._protected) if _is_below_roots(path, seen) and path.exists()
        }
        bounds = Bounds(
            writable=(),
            readable=(*hardware, *given, *workspace),
            temporary=scratch.temporary,
            home=self._home,
            shown=scratch.shown(self._home, read_git_settings(self._home)),
            masked=tuple(sorted(place for place in hidden if hidden.isdisjoint(place.parents))),
            local_sockets=False,
            limits=_build_limits(settings),
        )
        self._read = made_from, bounds
        return bounds

    def _named_in_workspace(self) -> Iterable[Path]:
        """Yield what settings for all repositories name, for git that runs at the top of the workspace and in no repository."""
        return (
            place for root in self._workspace for place in repositories.iter_places_in_settings(self.git_settings, root)
        )

    def _repositories_elsewhere(self, found: SurveyResult, settings: SandboxSettings) -> Sequence[Path]:
        """Return the repositories outside the workspace that its worktrees and submodules use.

        Repositories in directories that commands can write to are left out.
        """
        gits = [place for place in found.autorun if place.name == ".git" and not _is_repository_folder(place)]
        folders = {folder for place in gits for folder in repositories.resolve_gitdir_file(place)}
        written = (*self._workspace, *self._folders(settings.writable))
        return sorted(
            folder for folder in folders if not _is_below_roots(folder, written) and not is_private_place(folder)
        )

    def _secrets_beside(self, settings: SandboxSettings) -> tuple[Path, ...]:
        """Return the credentials in folders beside the workspace that commands can read.

        They may come to be later (`cargo login`): at the top of these folders they are seen at once, deep down after some seconds.
        """
        tools, opened = self._found_toolchains(), self._folders(settings.readable)
        now, tops = time.monotonic(), (tools, opened, tuple(map(_read_change_time, (*tools, *opened))))
        if self._beside is None or self._beside[0] != tops or now - self._beside[1] > SEARCHED_AGAIN_S:
            below = (
                *self._survey_tools.look(filter(Path.is_dir, tools)).secrets,
                *self._survey_readable.look(filter(Path.is_dir, opened)).secrets,
            )
            self._beside = tops, now, tuple(dict.fromkeys((*_find_top_credentials((*tools, *opened)), *below)))
        return self._beside[2]

    def _found_toolchains(self) -> tuple[Path, ...]:
        if self._toolchains is None:
            self._toolchains = find_toolchains(self._environment, home=self._home, roots=self._workspace)
        return self._toolchains

    def _folders(self, texts: Sequence[str]) -> tuple[Path, ...]:
        return resolve_named_folders(texts, workspace=self._workspace, home=self._home)


def _is_checked_out(place: Path, trees: Mapping[Path, Path], bounds: Bounds) -> bool:
    """Return True if a place in a new work tree holds what another tree of the repository holds there, where no command could change it."""
    kept = set(bounds.kept)
    for git, folder in trees.items():
        if not place.is_relative_to(git.parent):
            continue
        below = place.relative_to(git.parent)
        originals = (tree / below for tree in repositories.iter_work_trees(folder))
        if any(original in kept and holds_nothing_else(place, original) for original in originals):
            return True
    return False


def _check_bounds(bounds: Bounds) -> Bounds:
    """Return the bounds without what is gone.

    Raises `NoSandbox` where a place leads elsewhere than when it was looked at, and where there are too many.
    """
    if len(bounds.masked) + len(bounds.kept) + len(bounds.anchored) > MAX_PLACES:
        raise NoSandbox(
            f"nothing was run: the workspace holds more than {MAX_PLACES:,} secrets, settings and folders around them, which a sandbox has to keep",
            hint="remove those that commands have left, or work in a smaller folder",
        )
    given: dict[str, tuple[Path, ...]] = {}
    for name in ("kept", "masked", "anchored"):
        places: tuple[Path, ...] = getattr(bounds, name)
        given[name] = tuple(place for place in places if os.path.lexists(place))
        # A link may have a secret's name, and is closed by it.
        around = [place.parent if name == "masked" else place for place in given[name]]
        if (led := next((place for place in around if _resolve_real_path(place) != place), None)) is not None:
            raise NoSandbox(
                f"nothing was run: {str(led)!r} has become a link, or lies behind one, since the workspace was looked at",
                hint="try again; if that does not help, end the background command that exchanges it",
            )
    same = all(given[name] == getattr(bounds, name) for name in given)
    return bounds if same else replace(bounds, **given)


def _build_limits(settings: SandboxSettings) -> Limits:
    return Limits(
        memory=settings.memory * MEGABYTE_BYTES,
        processes=settings.processes,
        cpu_seconds=settings.cpu_seconds,
        file_size=settings.file_size * MEGABYTE_BYTES,
    )


def _is_repository_folder(place: Path) -> bool:
    """Return True if a path that git obeys is a repository's own directory."""
    if place.is_symlink() or not place.is_dir():
        return False
    return place.name == ".git" or sensitive_paths.is_repository(
        {name for name in sensitive_paths.REPOSITORY_NAMES if os.path.lexists(place / name)}
    )


def _find_stopped_rebases(repos: Iterable[Path]) -> dict[Path, frozenset[str] | None]:
    """Return the commands that stopped rebases in these repositories would run when they continue."""
    return {place: commands for git in repos for place, commands in repositories.find_rebase_commands(git).items()}


def _is_inside_roots(place: Path, roots: Sequence[Path]) -> bool:
    """Return True if a path is strictly below a root and does not contain another root."""
    return _is_below_roots(place, roots) and not any(root.is_relative_to(place) for root in roots)


def _collect_parent_folders(places: Iterable[Path], roots: Sequence[Path]) -> set[Path]:
    """Return the directories below the roots that contain these paths."""
    return {folder for place in places for folder in place.parents if _is_inside_roots(folder, roots)}


def _find_top_credentials(folders: Sequence[Path]) -> list[Path]:
    """Return the credentials at the top level of these directories, as absolute real paths."""
    from handrail.fs import path_resolution

    found: list[Path] = []
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            found += [
                _resolve_real_path(Path(entry.path))
                for entry in entries
                if path_resolution.describe_secret(entry.path) is not None
            ]
    return found


def _read_change_time(folder: Path) -> int:
    """Return when names in a folder last changed, in nanoseconds; 0 where it cannot be told."""
    try:
        return os.stat(folder).st_ctime_ns
    except OSError:
        return 0


def _resolve_real_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_below_roots(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
