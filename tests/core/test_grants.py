"""What a yes may be good for: narrowed to what was shown, and nothing where it may not be remembered."""

from __future__ import annotations

import pytest

from handrail import Decision, GrantOption, Input, Invocation, Part, Run, Send, Tool, Touch, Verdict, Write, tool
from handrail.grants import options


@tool(effects=[Write("file", arg="path")])
async def edit(path: str = "a.txt") -> None:
    """Edit a file."""


@tool(effects=[Run("shell", arg="command")])
async def run(command: str = "ls") -> None:
    """Run a command."""


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change the settings."""


@tool(effects=[Input("desktop")])
async def click() -> None:
    """Click."""


@tool(effects=[Send("network", arg="url")], server="docs")
async def mcp_docs_search(url: str = "") -> None:
    """Search."""


def offered(of: Tool, *parts: Part, grantable: bool = True, narrowed: tuple[tuple[str, ...], ...] = ()) -> list[str]:
    verdict = Verdict(Decision.CONFIRM, parts=parts, narrowed=narrowed, grantable=grantable)
    return [option.label for option in options(Invocation(of, {}, of.validate({}), "1"), verdict)]


def part(*touches: tuple[str, str]) -> Part:
    return Part(touches=tuple(Touch(kind, what) for kind, what in touches))  # pyright: ignore[reportArgumentType]


EXACT = "exactly this call"


@pytest.mark.parametrize(
    ("of", "parts", "expected"),
    [
        pytest.param(
            edit,
            [part(("write", "/home/ada/shop/a.txt"))],
            ["edit of /home/ada/shop/a.txt", "edit of everything in /home/ada/shop"],
            id="a-file-and-its-folder",
        ),
        pytest.param(edit, [part(("write", "/home/ada/a"))], ["edit of /home/ada/a"], id="never-a-whole-home"),
        pytest.param(
            edit, [part(("write", "/w/x/y/a"), ("write", "/w/x/z/b"))], ["edit of /w/x/y/a, /w/x/z/b"], id="two-folders"
        ),
        pytest.param(edit, [part(("write", ""))], [], id="a-file-that-is-not-known"),
        pytest.param(edit, [part(("network", "a.example"))], ["edit on a.example"], id="a-host"),
        pytest.param(
            edit,
            [part(("network", "a.example:80"), ("write", "/tmp/f"))],
            ["edit of /tmp/f on a.example:80"],
            id="a-download-is-from-its-host",
        ),
        pytest.param(edit, [part(("write", "/tmp/f"), ("privilege", "root"))], [], id="more-than-files"),
        pytest.param(run, [Part(("rm", "x"), (Touch("delete", "/w/x"),))], [], id="no-command-by-its-files"),
        pytest.param(run, [], [], id="no-shell-as-a-whole"),
        pytest.param(click, [], [], id="no-hands-as-a-whole"),
        pytest.param(change, [], ["every call of change"], id="a-tool-with-nothing-to-narrow"),
        pytest.param(
            mcp_docs_search,
            [],
            ["every call of mcp_docs_search on the server docs", "every tool of the server docs"],
            id="a-server",
        ),
    ],
)
def test_a_yes_is_narrowed_to_what_the_call_touches(of: Tool, parts: list[Part], expected: list[str]) -> None:
    assert offered(of, *parts) == [EXACT, *expected]


def test_commands_are_narrowed_to_what_their_judge_says() -> None:
    both = offered(run, Part(("git", "push", "x")), narrowed=(("git", "push"), ("npm", "a b"), ("git", "push")))
    assert both == [EXACT, "commands that start with git push and npm 'a b'"]


def test_nothing_is_offered_where_a_yes_may_not_be_remembered() -> None:
    assert offered(change, grantable=False) == []


def test_a_tool_offers_its_own_after_the_exact_one() -> None:
    own = GrantOption("every small change", "small")
    small = tool(name="small", description="Change.", grants=lambda params: [own])(nothing)
    assert offered(small)[:2] == [EXACT, "every small change"]


async def nothing() -> None: ...
