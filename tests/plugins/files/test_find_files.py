"""Finding files by name and by text, with ripgrep and without it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st

import handrail
from handrail import Tool, ToolResult, hookimpl
from handrail.api.approval import yes
from handrail.testing import open_test_session
from handrail.workers.host_programs import find_own_programs
from handrail_files import find_tool, glob_patterns
from handrail_files.read_tool import read_file

Find = Callable[..., Awaitable[ToolResult]]
REAL = find_tool.find_ripgrep(find_own_programs())


class Files:
    """The plugin, searching by a program of the test's choice."""

    def __init__(self, program: str | None, seconds: float = find_tool.SEARCH_TIMEOUT_S) -> None:
        self._find = find_tool.create_find_tool(lambda programs: program, seconds=seconds)

    @hookimpl
    def handrail_register_tools(self) -> list[Tool]:
        return [self._find, read_file]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture(params=["ripgrep", "python"])
async def found(folder: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Find, None]:
    plugin = Files(REAL if request.param == "ripgrep" else None)
    async with open_test_session(plugins={"files": plugin}, folder=folder.parent, confirm=yes) as session:

        async def call(**args: Any) -> ToolResult:
            return await session.call("find_files", args)

        yield call


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def paths(result: ToolResult) -> list[str]:
    return [match["path"] for match in result["matches"]]


def test_ripgrep_comes_with_the_plugin() -> None:
    assert REAL is not None
    assert "ripgrep" in subprocess.run([REAL, "--version"], capture_output=True, text=True, check=True).stdout


async def test_names_come_newest_first(found: Find, folder: Path) -> None:
    write(folder, {"a.py": "", "b.py": "", "src/c.py": "", "d.txt": ""})
    for age, name in enumerate(["b.py", "src/c.py", "a.py"]):
        os.utime(folder / name, (1_000 - age, 1_000 - age))
    result = await found(pattern="*.py")
    assert (paths(result), result["total"], result["truncated"]) == (["b.py", "src/c.py", "a.py"], 3, False)
    assert paths(await found(pattern="*.py", max_results=1)) == ["b.py"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"a.py", "src/b.py", "src/deep/test_c.py"}),
        ("src/*.py", {"src/b.py"}),
        ("src/**/*.py", {"src/b.py", "src/deep/test_c.py"}),
        ("**/test_*", {"src/deep/test_c.py"}),
        ("*.{py,md}", {"a.py", "src/b.py", "src/deep/test_c.py", "README.md"}),
        ("[ab].py", {"a.py", "src/b.py"}),
        ("readme", {"README.md"}),
        ("deep/test", {"src/deep/test_c.py"}),
    ],
)
async def test_patterns_of_names(found: Find, folder: Path, pattern: str, expected: set[str]) -> None:
    write(folder, dict.fromkeys(["a.py", "src/b.py", "src/deep/test_c.py", "README.md", "x.txt"], ""))
    assert set(paths(await found(pattern=pattern))) == expected


async def test_text_is_found_with_line_and_content(found: Find, folder: Path) -> None:
    write(folder, {"b.txt": "one\ntwo $5\r\n", "a.txt": "x\n$5 (a|b)\n", "c": "nothing"})
    result = await found(search_text="$5")
    assert result["matches"] == [
        {"path": "a.txt", "line": 2, "content": "$5 (a|b)"},
        {"path": "b.txt", "line": 2, "content": "two $5"},
    ]
    assert (result["total"], result["truncated"]) == (2, False)


async def test_lines_around_are_shown(found: Find, folder: Path) -> None:
    write(folder, {"a": "1\n2\nhit\n4\nhit\n6\n"})
    first, second = (await found(search_text="hit", context=1))["matches"]
    assert (first["before"], first["after"]) == (["2"], ["4"])
    assert (second["before"], second["after"]) == (["4"], ["6"])


async def test_expressions_names_and_limits(found: Find, folder: Path) -> None:
    write(folder, {"a.py": "def one():\ndef two():\n", "b.txt": "def three():\n", "src/c.py": "def four():\n"})
    result = await found(search_text=r"^def \w+\(", regex=True, pattern="*.py", max_results=2)
    assert [match["content"] for match in result["matches"]] == ["def one():", "def two():"]
    assert (result["total"], result["truncated"]) == (3, True)
    assert paths(await found(search_text="def", pattern="src/*")) == ["src/c.py"]


@pytest.mark.parametrize("text", ["(", "[z", "(?=x)"])
async def test_a_wrong_expression_is_told(found: Find, text: str) -> None:
    result = await found(search_text=text, regex=True)
    assert result.error_code == "invalid_arguments"
    assert "cannot be used" in result["error"]["message"]


async def test_a_binary_file_that_has_the_text_is_named(found: Find, folder: Path) -> None:
    # In short lines: for a long one ripgrep takes a larger piece, and then such a piece of the next file, too.
    late = "word\n" + "x\n" * 100_000 + "\0"
    write(folder, {"b.bin": b"\0\n a word\n\0", "late": late, "late.md": late, "none.bin": b"\0x", "t.md": "word"})
    assert (await found(search_text="word"))["binary_matches"] == ["late", "late.md"]
    result = await found(search_text="word", pattern="*.md")
    assert (paths(result), result["binary_matches"]) == (["t.md"], ["late.md"])
    result = await found(search_text="word", path="b.bin")
    assert (result["matches"], result["binary_matches"]) == ([], ["b.bin"])
    assert "binary_matches" not in await found(search_text="word", path="none.bin")


async def test_returns_within_a_line_hide_nothing_of_it(found: Find, folder: Path) -> None:
    write(folder, {"old-mac": "one\rtwo\rthree\r"})
    assert (await found(search_text="two"))["matches"][0]["content"] == "one␍two␍three"


async def test_what_git_ignores_hidden_and_binary_files_are_left_out(found: Find, folder: Path) -> None:
    write(
        folder,
        {
            ".gitignore": "*.log\n!keep.log\n/build/\n",
            "x.log": "word",
            "keep.log": "word",
            "build/a": "word",
            "src/build/a": "word",
            ".hidden": "word",
            "late": "word\n" + "x" * 200_000 + "\0",
            "nul": "word\0",
            "wide.txt": "word\n".encode("utf-16"),
        },
    )
    (folder / ".git").mkdir()
    (folder / "link").symlink_to("keep.log")
    assert paths(await found(search_text="word")) == ["keep.log", "src/build/a", "wide.txt"]
    assert set(paths(await found(pattern="*"))) == {"keep.log", "src/build/a", "late", "nul", "wide.txt"}
    everything = set(paths(await found(search_text="word", ignore=False)))
    assert everything == {".hidden", "build/a", "keep.log", "src/build/a", "wide.txt", "x.log"}


async def test_secrets_leave_no_trace(found: Find, folder: Path) -> None:
    write(folder, {".env": "KEY=abc", "id_rsa": "KEY=abc", "a": "KEY"})
    result = await found(search_text="KEY=abc", ignore=False)
    assert (result["matches"], result["total"]) == ([], 0)
    assert "withheld" not in result
    named = await found(pattern="*", ignore=False)
    assert (paths(named), named["total"], named["withheld"]) == (["a"], 1, 2)


async def test_a_rule_that_denies_reading_is_obeyed(folder: Path, tmp_path: Path) -> None:
    write(folder, {"private/a": "word", "open/b": "word"})
    config = tmp_path / "handrail.toml"
    config.write_text(
        f'[[policy.rules]]\ntool = "read_file"\npaths = ["{folder}/private/**"]\ndecision = "deny"\n', encoding="utf-8"
    )
    async with handrail.open(cwd=folder, config=config) as session:
        result = await session.call("find_files", {"search_text": "word"})
    assert (paths(result), result["total"]) == (["open/b"], 1)


async def test_one_file_is_searched_too(found: Find, folder: Path) -> None:
    write(folder, {"sub/a": "word\n", "sub/b": "word\n"})
    assert paths(await found(search_text="word", path="sub/a")) == ["sub/a"]
    assert paths(await found(pattern="*", path="sub")) in (["sub/a", "sub/b"], ["sub/b", "sub/a"])


async def test_odd_names_and_long_lines(found: Find, folder: Path) -> None:
    write(folder, {"new\nline": "word\n", "long": "word" + "x" * 1_000_000, "12:3": "word"})
    result = await found(search_text="word")
    # No tool reads a name with a control character, and it does not upset the others.
    assert paths(result) == ["12:3", "long"]
    assert max(len(match["content"]) for match in result["matches"]) < 600


async def test_nothing_to_look_for_is_an_error(found: Find) -> None:
    assert (await found()).error_code == "invalid_arguments"
    assert (await found(pattern="*", path="missing")).error_code == "not_found"


async def searches() -> list[int]:
    """The processes of ripgrep that this program has started."""
    shown = await anyio.run_process(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())])
    return [int(line.split()[0]) for line in shown.stdout.splitlines() if line.endswith(b" rg")]


async def test_a_cancelled_search_ends_at_once(folder: Path) -> None:
    (folder / "f").write_bytes(b"word and more\n" * 500_000)
    for number in range(2_000):
        (folder / f"f{number}").hardlink_to(folder / "f")
    looking = {"search_text": "(w.*d|m.*e).*(x|y)", "regex": True}
    files = {"files": Files(REAL, seconds=600)}
    async with open_test_session(plugins=files, folder=folder.parent, confirm=yes) as session:
        call = asyncio.create_task(session.call("find_files", looking))
        with anyio.fail_after(30):
            while not (found := await searches()):
                await anyio.sleep(0.01)
        # A program that is stopped comes to no end of its own.
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        call.cancel()
        with anyio.fail_after(30):
            await asyncio.wait([call])
        assert not await searches()


# Finds as it should, and then hangs.
HANGS = """#!/bin/sh
{rg} "$@"
kill -STOP $$
"""


@pytest.mark.parametrize("asked", [{"pattern": "*.txt"}, {"search_text": "word"}], ids=["names", "text"])
async def test_a_search_that_takes_too_long_gives_what_it_found_and_ends(
    folder: Path, tmp_path: Path, asked: dict[str, str]
) -> None:
    write(folder, {"a.txt": "word\n", "b.txt": "word\n"})
    program = tmp_path / "rg"
    program.write_text(HANGS.format(rg=REAL))
    program.chmod(0o755)
    async with open_test_session(plugins={"files": Files(str(program), seconds=1.0)}, folder=tmp_path) as session:
        result = await session.call("find_files", asked)
    assert "a.txt" in paths(result)
    assert (result.status, result["truncated"]) == ("success", True)
    assert result["note"] == "the search was ended after 1 s; search a smaller folder for the rest"
    running = await anyio.run_process(["ps", "-eo", "args="])
    assert str(program) not in running.stdout.decode()


def test_a_search_has_20_seconds_before_the_call_itself_ends() -> None:
    assert (find_tool.SEARCH_TIMEOUT_S, find_tool.find_files.timeout) == (20, 30)


NAMES = st.sampled_from(["a", "b.py", "c.log", ".h", "build", "keep.log", "d e"])
LINES = st.sampled_from(["word", "a word b", "", "Word", "w\to", "grün word", "x\r", "\0", "end"])
RULES = st.sampled_from(
    ["*.log", "!keep.log", "build/", "/a", "a/b.py", "**/b.py", "a/**", "*", "!*/", "[a-b]*", "# c", "b?py", "!.h", "/*/a", "d\\ e"]
)  # fmt: skip
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.lists(LINES, max_size=4).map("\n".join), max_size=8
)
IGNORED = st.dictionaries(
    st.sampled_from(["", "a/", "build/"]).flatmap(
        lambda at: st.sampled_from([".gitignore", ".ignore", ".rgignore"]).map(lambda name: at + name)
    ),
    st.lists(RULES, max_size=3).map("\n".join),
    max_size=3,
)


def answer(folder: Path, program: str | None, **orders: Any) -> Any:
    search = find_tool.FindRequest(**orders)
    process = subprocess.run(
        find_tool._build_command(search, None, program),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    with open_pipe(process.stdout) as reader:
        if search.search_text is None:
            names = find_tool.NameMatches()
            names.take(reader, glob_patterns.compile_name_pattern(search.pattern or "*"))
            return sorted(names.found)
        lines = find_tool.LineMatches(None, search.context, 1_000)
        lines.take(reader)
        return lines.binary, {name: found for name, found in lines.found.items() if name not in lines.binary}


def open_pipe(data: bytes) -> subprocess.Popen[bytes]:
    """A program that writes just this."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)


@settings(max_examples=12, deadline=None)
@given(TREES, IGNORED, st.booleans(), st.booleans(), st.sampled_from(["word", "w.r", "^a", "d$"]))
def test_both_ways_give_the_same_answers(
    tree: dict[str, str], ignored: dict[str, str], git: bool, ignore: bool, text: str
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if git:
            (folder / ".git").mkdir()
        for name, content in {**tree, **ignored}.items():
            try:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(content)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue
        for orders in (
            {"pattern": "*"},
            {"pattern": "*b*"},
            {"search_text": text, "regex": True},
            {"search_text": "word", "context": 1},
        ):
            assert answer(folder, REAL, ignore=ignore, **orders) == answer(folder, None, ignore=ignore, **orders)


@pytest.mark.parametrize("pattern", ["/etc/*", "/**/*.py", "~/*.txt", "../**", "a/../b"])
async def test_a_pattern_that_nothing_below_can_fit_is_refused(found: Find, pattern: str) -> None:
    result = await found(pattern=pattern)
    assert result.error_code == "invalid_arguments"
    assert "`path`" in result["error"]["message"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has pipes with names")
@pytest.mark.parametrize("name", [".gitignore", "sub/.ignore", "sub/.rgignore", "../.gitignore"])
@pytest.mark.parametrize("by", [{"pattern": "*.txt"}, {"search_text": "needle"}])
async def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(
    found: Find, folder: Path, name: str, by: dict[str, str]
) -> None:
    write(folder, {"sub/a.txt": "needle\n"})
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / name)
    with anyio.fail_after(10):
        result = await found(**by)
        # Python reads ordinary files only; ripgrep would wait.
        assert result.ok or "no ordinary file" in result["error"]["message"]
        assert paths(await found(**by, ignore=False)) == ["sub/a.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless device")
async def test_an_ignore_file_that_leads_to_an_endless_device_is_not_read(found: Find, folder: Path) -> None:
    write(folder, {"a.txt": ""})
    (folder / ".ignore").symlink_to("/dev/zero")
    with anyio.fail_after(10):
        result = await found(pattern="*.txt")
    assert "is a link" in result["error"]["message"]


@pytest.mark.parametrize("name", [".gitignore", "sub/.ignore", "sub/.rgignore"])
@pytest.mark.parametrize("by", [{"pattern": "*.txt"}, {"search_text": "needle", "path": "sub"}])
async def test_an_ignore_file_that_is_a_link_to_what_may_not_be_read_is_not_followed(
    found: Find, folder: Path, name: str, by: dict[str, str]
) -> None:
    """If this fails, the names that are left out of a search tell what is in a secret."""
    write(folder, {"sub/4711.txt": "needle", "sub/0815.txt": "needle", ".env": "4711.txt\n", "plain": "*.txt\n"})
    (folder / ".git").mkdir()
    (folder / name).symlink_to(folder / ".env")
    assert "is a link" in (await found(**by))["error"]["message"]
    assert len(paths(await found(**by, ignore=False))) == 2
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "plain")
    assert paths(await found(**by)) == []


EXCHANGES = """#!/bin/sh
cd {folder} && rm x && ln -s .env x && cd "$OLDPWD"
{rg} "$@"
cd {folder} && rm x && echo {rest} >x
"""


@pytest.mark.parametrize("path", ["x", "."])
@pytest.mark.parametrize("secret", ["\0key", "key"])
async def test_what_takes_the_place_of_a_file_during_a_search_is_not_told(
    folder: Path, tmp_path: Path, path: str, secret: str
) -> None:
    """If this fails, an agent finds out by regular expressions what is in a secret."""
    program = tmp_path / "rg"
    program.write_text(EXCHANGES.format(folder=folder, rg=REAL, rest="rest"))
    program.chmod(0o700)
    write(folder, {".env": secret, "x": "rest"})
    async with open_test_session(plugins={"files": Files(str(program))}, folder=tmp_path, confirm=yes) as session:
        result = await session.call("find_files", {"search_text": "k.y", "regex": True, "path": path})
        # The file itself is found, if it is named: it was opened before.
        here = await session.call("find_files", {"search_text": "re", "path": path})
    assert "key" not in str(dict(result))
    assert not result["matches"]
    assert "binary_matches" not in result
    assert bool(here["matches"]) is (path == "x")


@pytest.mark.parametrize(("meanwhile", "told"), [("touch y; rm y", False), ("true", True)])
async def test_a_binary_file_is_told_of_only_where_nothing_was_exchanged(
    folder: Path, tmp_path: Path, meanwhile: str, told: bool
) -> None:
    """If this fails, a file that stood in the place of another one for a moment is searched bit by bit."""
    program = tmp_path / "rg"
    program.write_text(f'#!/bin/sh\n{REAL} "$@"\n{meanwhile}\n')
    program.chmod(0o700)
    # Found to be binary only after it has been taken for text.
    write(folder, {"x": b"key\n" + b"a\n" * 100_000 + b"\0"})
    async with open_test_session(plugins={"files": Files(str(program))}, folder=tmp_path, confirm=yes) as session:
        result = await session.call("find_files", {"search_text": "key"})
    assert result.get("binary_matches") == (["x"] if told else None)


async def test_python_takes_no_module_from_the_folder_that_is_searched(folder: Path) -> None:
    write(folder, {"json.py": "open('ran', 'w')", "handrail_files.py": "open('ran', 'w')", "a.txt": ""})
    async with open_test_session(plugins={"files": Files(None)}, folder=folder.parent, confirm=yes) as session:
        assert paths(await session.call("find_files", {"pattern": "*.txt"})) == ["a.txt"]
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("pattern", ["d/" + "*a" * 60 + "b", "d/" + "{a,aa}" * 40 + "b", "*a" * 60 + "b"])
async def test_a_pattern_with_many_ways_to_fit_takes_no_long_time(found: Find, folder: Path, pattern: str) -> None:
    write(folder, {f"d/{name}": "text\n" for name in ("a" * 60, "a" * 240, "a" * 60 + "b")})
    with anyio.fail_after(10):
        by_name, by_text = await found(pattern=pattern), await found(pattern=pattern, search_text="text")
    assert paths(by_name) == paths(by_text) == ["d/" + "a" * 60 + "b"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("*" + "a" * 1_000, "at most 1,000"),
        ("x" * 1_001, "at most 1,000"),
        ("{" + "a," * 101 + "b}", "at most 100"),
        ("[z-a]", "wrong way round"),
    ],
)
async def test_a_pattern_that_cannot_be_used_is_refused(found: Find, pattern: str, said: str) -> None:
    result = await found(pattern=pattern)
    assert result["error"]["code"] == "invalid_arguments"
    assert said in result["error"]["message"]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("[+-9]", "/", False),
        ("[+-9]", "0", True),
        ("[!a]", "/", False),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("[[:x]", ":", True),
        ("?", "\udcff", True),
        ("[\udc80-\udcff]", "\udcff", True),
        ("{a,}.b", ".b", True),
        ("*#. \n*", "#. \n", True),
        ("Ä", "xäx", True),
    ],
)
def test_classes_and_letters_mean_what_they_do_in_a_shell(pattern: str, name: str, fits: bool) -> None:
    assert glob_patterns.compile_name_pattern(pattern).fits(name) is fits


@pytest.mark.parametrize("rule", ["*a" * 60 + "b", "{a,aa}" * 40 + "b", "[" * 50_000, "a" + " " * 50_000 + "b"])
async def test_an_ignore_file_does_not_hold_a_search_up(found: Find, folder: Path, rule: str) -> None:
    write(folder, {".ignore": rule, "a" * 240: "text\n"})
    with anyio.fail_after(10):
        assert (await found(pattern="a*"))["total"] == 1
