"""What a rule in a file may say, and of which calls it then speaks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from handrail import (
    Access,
    ConfigError,
    Decision,
    EvaluationContext,
    Read,
    Remote,
    Run,
    Send,
    Session,
    SubCommand,
    Tool,
    Write,
    tool,
)
from handrail.config.rule_settings import RuleSettings
from handrail.config.settings import Settings
from handrail.config.validation import find_key_line, validate_values
from handrail.policy.rules import RulePaths, RuleSet, build_rule, is_wildcard_match, is_words_match
from handrail.testing.session_fixtures import open_test_runtime


@tool(effects=[Run("shell", arg="command")])
async def run(command: str = "") -> None:
    """Run a command."""


@tool(effects=[Write("file", arg="path")], layer="file")
async def edit_file(path: str = "") -> None:
    """Edit a file."""


@tool(effects=[Read("file", arg="path"), Send("network", arg="url")], layer="web")
async def upload(path: str = "", url: str = "") -> None:
    """Upload a file."""


@tool(layer="mcp", server="docs")
async def mcp_docs_search() -> None:
    """Search."""


@tool(layer="mcp", server="docs_evil")
async def mcp_docs_evil_search() -> None:
    """Search."""


def ruled(decision: str = "deny", **matchers: Any) -> RuleSettings:
    return RuleSettings.model_validate({"decision": decision, **matchers})


# Which tools


@pytest.mark.parametrize(
    ("matchers", "of", "expected"),
    [
        pytest.param({"tool": "edit_*"}, edit_file, True, id="a-glob"),
        pytest.param({"tool": ["run", "edit_file"]}, edit_file, True, id="a-list"),
        pytest.param({"tool": "edit"}, edit_file, False, id="a-whole-name"),
        pytest.param({"tool": "discovered_tool_*"}, edit_file, False, id="another-glob"),
        pytest.param({"layer": "file"}, edit_file, True, id="a-layer"),
        pytest.param({"layer": ["web", "core"]}, edit_file, False, id="other-layers"),
        pytest.param({"kind": "edit"}, edit_file, True, id="a-kind"),
        pytest.param({"read_only": True}, edit_file, False, id="not-read-only"),
        pytest.param({"effects": "write"}, edit_file, True, id="an-effect"),
        pytest.param({"effects": "write:clipboard"}, edit_file, False, id="an-effect-on-something-else"),
        pytest.param({"effects": "send"}, upload, True, id="a-deny-for-one-of-its-effects"),
        pytest.param({"effects": "send", "decision": "allow"}, upload, False, id="an-allow-for-one-is-not-enough"),
        pytest.param({"effects": ["send", "read:file"], "decision": "allow"}, upload, True, id="for-all-it-is"),
        pytest.param({"server": "docs"}, mcp_docs_search, True, id="a-server"),
        pytest.param({"server": "docs"}, mcp_docs_evil_search, False, id="a-server-that-sounds-like-it"),
        pytest.param({"server": "docs"}, edit_file, False, id="no-server"),
        pytest.param({"tool": "mcp_docs_*", "server": "docs"}, mcp_docs_evil_search, False, id="a-tool-that-sounds-so"),
        pytest.param({"tool": "mcp_docs_*"}, mcp_docs_evil_search, True, id="a-deny-by-name-only"),
        pytest.param(
            {"tool": "mcp_docs_*", "decision": "allow"}, mcp_docs_search, False, id="an-allow-names-its-server"
        ),
        pytest.param({"tool": "*", "server": "*", "decision": "allow"}, mcp_docs_search, True, id="or-any"),
    ],
)
def test_which_tools_a_rule_is_for(matchers: dict[str, Any], of: Tool, expected: bool) -> None:
    assert build_rule(ruled(**matchers)).of_tool(of).yes is expected


def test_the_name_that_a_server_gave_counts_too() -> None:
    short = tool(name="search", description="Search.", server="docs")(nothing)
    assert build_rule(ruled(tool="mcp_docs_search", server="docs")).of_tool(short).yes
    assert not build_rule(ruled(tool="mcp_other_search", server="docs")).of_tool(short).yes


def test_of_a_name_that_had_to_be_changed_the_servers_own_counts_too() -> None:
    odd = tool(name="mcp_docs_do_it", description="Do.", server="docs", remote=Remote("do it!", "x"))(nothing)
    assert build_rule(ruled(tool="do it!", server="docs")).of_tool(odd).yes
    assert build_rule(ruled(tool="mcp_docs_do_it")).of_tool(odd).yes
    assert not build_rule(ruled(tool="do it!")).of_tool(odd).yes


async def nothing() -> None: ...


# Which parts of a call


def fits(settings: RuleSettings, part: SubCommand, *, platform: str = "linux", of: Tool = run) -> bool:
    work = Path("/work")
    judging = EvaluationContext(
        cwd=work, home=Path("/home/ada"), user="ada", environment={}, workspace=(work,), platform=platform
    )
    return build_rule(settings).of_part(part, of, judging, RulePaths()).yes


@pytest.mark.parametrize(
    ("matchers", "command", "deny", "allow"),
    [
        pytest.param({"command": ["git", "push"]}, "git push x", True, True, id="a-beginning"),
        pytest.param({"command": ["git", "push"]}, "git log push", False, False, id="no-word-between"),
        pytest.param({"command": ["git", "push"]}, "git -C x --no-pager push", True, False, id="options-between"),
        pytest.param({"command": ["git", "push"]}, "git -p log push", True, False, id="what-may-be-its-value"),
        pytest.param({"command": ["git", "push"]}, "git -C x log push", False, False, id="no-word-behind-a-value"),
        pytest.param({"command": ["git"]}, "make -C git", False, False, id="another-program"),
        pytest.param({"command": ["git"]}, "/usr/bin/git log", True, False, id="a-deny-wherever-the-program-is"),
        pytest.param({"command": ["git"]}, "GIT.EXE log", True, False, id="and-however-it-is-spelt"),
        pytest.param({"command": ["/usr/bin/git"]}, "git log", False, False, id="a-path-is-that-path"),
        pytest.param({"argv": ["git", "push", "--force*"]}, "git push --force-with-lease", True, True, id="letters"),
        pytest.param({"argv": ["git", "push", "*"]}, "git push", False, False, id="one-word-is-not-none"),
        pytest.param({"argv": ["git", "push", "*"]}, "git push a b", False, False, id="nor-two"),
        pytest.param({"argv": ["git", "**", "push", "**"]}, "git -C x push y", True, True, id="any-words"),
        pytest.param({"argv": ["git", "**", "push"]}, "git push push", True, True, id="the-last-of-two"),
        pytest.param({"argv": ["git", "**", "--force"]}, "/bin/git push --force", True, False, id="a-program-by-path"),
        pytest.param({"options": ["--force"]}, "git push x --force", True, True, id="an-option-anywhere"),
        pytest.param({"options": ["--force"]}, "git push x --force=y", True, True, id="with-a-value"),
        pytest.param({"options": ["--force"]}, "git push x --forc", True, False, id="abbreviated"),
        pytest.param({"options": ["-f"]}, "git push -uf x", True, False, id="among-others"),
        pytest.param({"options": ["-f"]}, "git push --follow-tags", False, False, id="a-long-one-is-another"),
        pytest.param({"options": ["--force"]}, "git push -- --force", False, False, id="what-follows-is-no-option"),
        pytest.param({"options": ["-Force"]}, "Remove-Item x -fo", True, False, id="of-powershell"),
        pytest.param({"command": ["git"], "options": ["-f"]}, "make -f x", False, False, id="all-that-is-given"),
    ],
)
def test_which_commands_a_rule_is_for(matchers: dict[str, Any], command: str, deny: bool, allow: bool) -> None:
    part = SubCommand(tuple(command.split()))
    assert fits(ruled("deny", **matchers), part) is deny
    assert fits(ruled("allow", **matchers), part) is allow


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("docs", "/work/docs", True),
        ("docs", "/work/docs/deep/a.md", True),
        ("docs", "/work/docs-not/a.md", False),
        ("docs/**", "/work/docs", True),
        ("docs/*.md", "/work/docs/a.md", True),
        ("docs/*.md", "/work/docs/deep/a.md", False),
        ("**/*.pem", "/work/a/b/x.pem", True),
        ("**/*.pem", "/work/x.pem", True),
        ("*.pem", "/etc/x.pem", False),
        ("/etc", "/etc/passwd", True),
        ("/", "/etc/passwd", True),
        ("~/notes", "/home/ada/notes/a", True),
        ("~/notes", "/home/bob/notes/a", False),
        ("~", "/home/ada/x", True),
    ],
)
def test_which_files_a_rule_is_for(pattern: str, path: str, expected: bool) -> None:
    part = SubCommand(touches=(Access("write", path),))
    assert fits(ruled("deny", paths=pattern), part, of=edit_file) is expected
    assert fits(ruled("allow", paths=pattern), part, of=edit_file) is expected


def test_files_on_windows_are_compared_as_windows_does() -> None:
    work = Path("/work")
    judging = EvaluationContext(
        cwd=work, home=Path("C:\\Users\\ada"), user="ada", environment={}, workspace=(work,), platform="win32"
    )
    rule = build_rule(ruled(paths="C:/Data/**"))
    assert rule.of_part(SubCommand(touches=(Access("write", "c:\\data\\x.txt"),)), edit_file, judging, RulePaths()).yes


def test_a_pattern_means_the_place_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    part = SubCommand(touches=(Access("write", str(tmp_path / "real/a")),))
    assert fits(ruled("deny", paths=str(tmp_path / "link")), part, of=edit_file)


def test_only_the_access_that_is_named_counts() -> None:
    reading, writing = (SubCommand(touches=(Access(kind, "/work/a"),)) for kind in ("read", "write"))
    assert not fits(ruled("deny", paths="a", access="write"), reading, of=edit_file)
    assert fits(ruled("deny", paths="a", access="write"), writing, of=edit_file)
    assert not fits(ruled("allow", paths="a", access="read"), writing, of=edit_file)


def test_a_file_that_is_not_known_may_be_the_one_that_is_denied() -> None:
    unknown = SubCommand(("rm", "$X"), (Access("delete", ""),))
    rule = build_rule(ruled("deny", paths="secrets"))
    judging = EvaluationContext(
        cwd=Path("/w"), home=Path("/h"), user="a", environment={}, workspace=(Path("/w"),), platform="linux"
    )
    assert rule.of_part(unknown, run, judging, RulePaths()).doubtful
    assert not fits(ruled("allow", paths="**"), unknown)


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("example.org", "example.org", True),
        ("example.org", "example.org:8080", True),
        ("example.org:443", "example.org:8080", False),
        ("example.org", "www.example.org", False),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("example.org", "example.org.evil.net", False),
        ("EXAMPLE.org", "example.ORG.", True),
        ("bücher.example", "xn--bcher-kva.example", True),
        ("*.faß.example", "www.xn--fa-hia.example", True),
        ("*", "anything.example", True),
        ("::1", "[::1]:80", True),
    ],
)
def test_which_hosts_a_rule_is_for(pattern: str, host: str, expected: bool) -> None:
    part = SubCommand(touches=(Access("network", host),))
    assert fits(ruled("deny", hosts=pattern), part, of=upload) is expected
    assert fits(ruled("allow", hosts=pattern), part, of=upload) is expected


@given(st.lists(st.sampled_from("ab*"), max_size=6).map("".join), st.text("ab", max_size=8))
def test_a_star_is_any_letters(pattern: str, text: str) -> None:
    import re

    expected = re.fullmatch(re.sub(r"\*+", ".*", pattern), text) is not None
    assert is_wildcard_match(pattern, text) is expected


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=6), st.lists(st.sampled_from("ab"), max_size=7))
def test_two_stars_are_any_words(pattern: list[str], words: list[str]) -> None:
    def slow(pattern: list[str], words: list[str]) -> bool:
        if not pattern:
            return not words
        if pattern[0] == "**":
            return any(slow(pattern[1:], words[at:]) for at in range(len(words) + 1))
        return bool(words) and is_wildcard_match(pattern[0], words[0]) and slow(pattern[1:], words[1:])

    assert is_words_match(pattern, words) is slow(pattern, words)


def test_patterns_take_no_time_to_speak_of() -> None:
    assert not is_words_match(["**", "a"] * 200, ["a"] * 2000 + ["b"])
    assert not is_wildcard_match("*a" * 500 + "b", "a" * 5000)


def test_rules_are_sorted_once_and_found_by_tool() -> None:
    rules = RuleSet(map(build_rule, (ruled(tool="run"), ruled("allow", tool="edit_file"), ruled(tool="*", priority=3))))
    assert [rule.priority for rule in rules.of(run)] == [3, 0]
    assert rules.of(run) is rules.of(run)


# What a file may not say


def toml(text: str) -> str:
    return f"[[policy.rules]]\n{text}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "tool = 'run'\ndecision = 'deny'\ncomand = ['x']", ":4: unknown key 'policy.rules[0].comand'", id="key"
        ),
        pytest.param("tool = 'run'\ndecisio = 'deny'", ":3: unknown key 'policy.rules[0].decisio'; did", id="misspelt"),
        pytest.param("tool = 'run'", ":1: policy.rules[0] lacks the key 'decision'", id="no-decision"),
        pytest.param("tool = 'run'\ndecision = 'ask'", ":3: policy.rules[0].decision is 'ask'", id="decision"),
        pytest.param(
            "decision = 'deny'", ":2: policy.rules[0].decision: it does not say of which calls", id="of-nothing"
        ),
        pytest.param("tool = ''\ndecision = 'deny'", ":2: policy.rules[0].tool[0] is ''", id="no-name"),
        pytest.param("tool = []\ndecision = 'deny'", ":2: policy.rules[0].tool: it is empty", id="no-tools"),
        pytest.param("command = []\ndecision = 'deny'", ":2: policy.rules[0].command: it is empty", id="no-words"),
        pytest.param("command = ['']\ndecision = 'deny'", ":2: policy.rules[0].command[0] is ''", id="empty-word"),
        pytest.param("command = 'git push'\ndecision = 'deny'", 'as in ["one", "two"]', id="a-text"),
        pytest.param("command = ['git push']\ndecision = 'deny'", "write each word for itself", id="one-word"),
        pytest.param("command = ['-f']\ndecision = 'deny'", "options = [...]", id="an-option-first"),
        pytest.param(
            "command = ['a']\ndecision = 'deny'\nargv = ['a']", ":4: policy.rules[0].argv: command and", id="both"
        ),
        pytest.param("options = ['force']\ndecision = 'deny'", "'force' is no option", id="no-option"),
        pytest.param("paths = ['../x']\ndecision = 'deny'", "'../x' goes up", id="upwards"),
        pytest.param("hosts = ['http://x/']\ndecision = 'deny'", "more than a host", id="an-address"),
        pytest.param("hosts = ['a.*.org']\ndecision = 'deny'", "not in front of a dot", id="a-star-inside"),
        pytest.param(
            "tool = 'x'\nlayer = 'fil'\ndecision = 'deny'", ":3: policy.rules[0].layer[0] is 'fil'", id="layer"
        ),
        pytest.param("server = 'a'\nlayer = 'file'\ndecision = 'deny'", "of the layer mcp", id="server-and-layer"),
        pytest.param(
            "kind = 'edit'\nread_only = true\ndecision = 'deny'", ":2: policy.rules[0].kind: tools", id="kind"
        ),
        pytest.param(
            "tool = '*'\nmodes = ['headless']\ninteractive = true\ndecision = 'deny'", "nobody can", id="modes"
        ),
        pytest.param("effects = ['writes']\ndecision = 'deny'", "'writes' is no effect", id="effect"),
        pytest.param(
            "tool = '*'\npriority = -1\ndecision = 'deny'", ":3: policy.rules[0].priority is -1", id="priority"
        ),
        pytest.param("tool = '*'\npriority = 1.5\ndecision = 'deny'", "policy.rules[0].priority is 1.5", id="half"),
        pytest.param("tool = '*'\nroute = 'host'\ndecision = 'deny'", ":3: policy.rules[0].route: what is", id="route"),
        pytest.param("tool = '*'\nlifts = ['x']\ndecision = 'deny'", "goes below no floor", id="lifting-deny"),
        pytest.param("tool = '*'\ntightening = false\ndecision = 'deny'", "unknown key", id="set-by-place"),
        pytest.param("tool = '*'\nlifts = ['catastrophic']\ndecision = 'confirm'", "names its tool in full", id="any"),
        pytest.param(
            "tool = 'run'\nlifts = ['catastrophic']\ndecision = 'confirm'", "says exactly which", id="all-calls"
        ),
        pytest.param(
            "tool = 'run'\ncommand = ['rm']\nlifts = ['catastrophic']\ndecision = 'allow'",
            ":5: policy.rules[0].decision: a catastrophic call can be asked about at most",
            id="allowed",
        ),
        pytest.param(
            "tool = 'run'\nargv = ['**']\nlifts = ['catastrophic']\ndecision = 'confirm'",
            "names the program",
            id="star",
        ),
    ],
)
def test_a_rule_that_can_match_nothing_is_an_error_with_its_line(text: str, said: str) -> None:
    import tomllib

    whole = toml(text)
    with pytest.raises(ConfigError) as caught:
        validate_values(tomllib.loads(whole), where=lambda key: f"file:{find_key_line(key, whole)}")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        pytest.param("[[policy.rules]]\ntool='a'\n\n# b\n[[policy.rules]]\ntool='b'", (1,), 5, id="second"),
        pytest.param("[[policy.rules]]\ntool='a'\n[[ policy . rules ]] # x\ntool='b'", (1, "tool"), 4, id="spaces"),
        pytest.param("[[policy.rules]]\ntool='a'\n[[\"policy\".'rules']]\ntool='b'", (1,), 3, id="quoted"),
        pytest.param("policy.rules = [\n  {tool='a'},\n  {tool='b'},\n]", (1, "tool"), 1, id="inline"),
        pytest.param("[policy]\nrules = [{tool='a'}]", (0, "tool"), 2, id="in-a-table"),
        pytest.param("x = '''\n[[policy.rules]]\n'''\n[[policy.rules]]\ntool='a'", (0,), 4, id="inside-a-text"),
        pytest.param("[[policy.rules]]\r\ntool='a'\r\nreason='''\r\nx\r\n'''\r\nname='n'", (0, "name"), 6, id="crlf"),
        pytest.param("[[policy.rules]]\ncommand = [\n 'a',\n 'b',\n]\ntool='a'", (0, "command"), 2, id="many-lines"),
        pytest.param("[[policy.rules]]\n[policy.rules.sub]\nx=1\n[[policy.rules]]", (1,), 4, id="sub-tables"),
    ],
)
def test_the_line_of_a_rule_in_odd_files(text: str, key: tuple[int | str, ...], line: int) -> None:
    assert find_key_line(("policy", "rules", *key), text) == line


def test_a_rule_may_not_be_given_what_its_place_says() -> None:
    assert {"tier", "tightening", "source", "index"} <= {
        name for name, info in RuleSettings.model_fields.items() if info.exclude
    }


# Rules against the tools that are here


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param(
            {"tool": "edit_fil"}, "no tool here is called 'edit_fil'; did you mean 'edit_file'?", id="unknown"
        ),
        pytest.param({"tool": "zzz_*"}, "no tool here is called 'zzz_*'", id="a-glob-of-nothing"),
        pytest.param({"tool": "edit_file", "command": ["git"]}, "edit_file runs no commands", id="command"),
        pytest.param({"tool": "edit_file", "hosts": "a.b"}, "edit_file reaches no hosts", id="hosts"),
        pytest.param({"tool": "wait", "paths": "a"}, "wait touches no files", id="paths"),
        pytest.param(
            {"tool": "edit_file", "route": "sandbox", "decision": "confirm"},
            "is not made to run in a sandbox",
            id="route",
        ),
        pytest.param({"tool": "edit_file", "layer": "web"}, "edit_file is not of that layer", id="layer"),
    ],
)
async def test_a_rule_that_fits_no_tool_here_is_an_error(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        async with open_test_runtime(tools=[edit_file], settings=given_rules(rule)):
            pass
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"tool": "mcp_docs_search"}, id="a-server-may-bring-it"),
        pytest.param({"tool": "mcp_docs_*"}, id="and-many"),
        pytest.param({"tool": "artifact_grep"}, id="a-result-may-bring-it"),
        pytest.param({"tool": "search", "server": "docs"}, id="which-is-named"),
        pytest.param({"tool": "gone", "tier": "workspace"}, id="a-shared-file-is-for-others-too"),
        pytest.param({"tool": "*", "layer": "skill"}, id="a-layer-that-may-come"),
        pytest.param({"tool": "*", "command": ["git"]}, id="one-that-fits-is-enough"),
    ],
)
async def test_but_not_what_may_come(rule: dict[str, Any]) -> None:
    async with open_test_runtime(tools=[edit_file, run, Servers()], settings=given_rules(rule)) as runtime:
        assert len(runtime.rules.ranked) == 1


class Servers:
    """A toolset that has nothing yet, and says what it may come to have."""

    names = ("mcp_*",)

    async def tools(self, session: Session) -> Sequence[Tool]:
        return ()


def given_rules(*rules: dict[str, Any]) -> dict[str, Any]:
    settings = {"policy": {"rules": [{"decision": Decision.DENY, **rule} for rule in rules]}}
    Settings.model_validate(settings)
    return settings


# The page

PAGE = Path(__file__).parents[3] / "docs/policy.md"


@pytest.mark.parametrize("example", PAGE.read_text(encoding="utf-8").split("```toml\n")[1:])
def test_the_examples_on_the_page_are_accepted(example: str) -> None:
    import tomllib

    validate_values(tomllib.loads(example.split("```")[0]), where=str)


def test_the_page_names_every_key_of_a_rule() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, info in RuleSettings.model_fields.items():
        assert info.exclude or f"`{name}`" in text
