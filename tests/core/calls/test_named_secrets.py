"""Secrets by name: who is given them, and where their values never turn up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail import ConfigError, Input, Run, Send, Session, ToolContext, Write, tool
from handrail.api.approval import yes
from handrail.api.events import Event, event_wire
from handrail.config.loader import load_config
from handrail.fs.app_dirs import AppDirs
from handrail.redaction import REDACTED_TEXT
from handrail.testing import ScriptedConfirmer, open_test_session

VALUE = "tr0ub4dor-and-3"
ODD = 'a b"$(id)&c'
AROUND = {
    "HANDRAIL_SECRET_API": VALUE,
    "HANDRAIL_SECRET_ODD": ODD,
    "HANDRAIL_SECRET_PIN": "123",
    "MAIL_PASSWORD": "hunter2-hunter2",
}
GIVEN: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_given() -> None:
    GIVEN.clear()


@tool()
async def use(text: str, more: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Use a text."""
    GIVEN.append((text, more))
    return {"echo": f"<{text}>", "nested": [{"deep": text}], text: 1}


@tool(effects=[Run("shell", arg="command")])
async def run(command: str, context: ToolContext) -> str:
    """Run a command."""
    GIVEN.append(command)
    for piece in (command[:-3], command[-3:]):
        context.output("stdout", piece)
    return command


@tool(effects=[Send("network", arg="url")])
async def send(url: str) -> str:
    """Send something."""
    GIVEN.append(url)
    return url


@tool(effects=[Write("file", arg="path")])
async def write(path: str, content: str) -> None:
    """Write a file."""
    GIVEN.append(content)


@tool(effects=[Input("desktop", arg="text")])
async def press(text: str) -> None:
    """Type a text."""
    GIVEN.append(text)


@tool()
async def outer(text: str, context: ToolContext) -> dict[str, Any]:
    """Call another tool with what it was given."""
    return {"inner": dict(await context.call("use", {"text": text}))}


def secrets_session(**options: Any) -> Any:
    tools = [use, run, send, write, press, outer]
    return open_test_session(tools=tools, environment=AROUND, confirm=options.pop("confirm", yes), **options)


def written(session: Session) -> str:
    return (session.runtime.places.audit / f"{session.id}.jsonl").read_text(encoding="utf-8")


async def test_the_handler_is_given_the_value_and_nobody_else() -> None:
    heard: list[Event] = []
    async with secrets_session() as session:
        session.bus.subscribe(heard.append)
        result = await session.call("use", {"text": "secret:API", "more": {"a": ["x", "Bearer secret:api"]}})
        history = (await session.call("get_action_history"))["actions"]
        audit = written(session)
    assert [(VALUE, {"a": ["x", f"Bearer {VALUE}"]})] == GIVEN
    assert (result["echo"], result["nested"], result[REDACTED_TEXT]) == (
        f"<{REDACTED_TEXT}>",
        [{"deep": REDACTED_TEXT}],
        1,
    )
    assert VALUE not in str([dict(result), history, audit, [event_wire(event) for event in heard]])
    assert "secret:API" in audit


async def test_the_call_is_judged_and_asked_about_by_the_name() -> None:
    person = ScriptedConfirmer("once")
    async with secrets_session(confirm=person) as session:
        assert (await session.call("run", {"command": "login secret:API"})).ok
    assert [f"login {VALUE}"] == GIVEN
    assert VALUE not in str(person.asked)


async def test_the_value_does_not_turn_up_in_pieces_of_output() -> None:
    heard: list[dict[str, Any]] = []
    async with secrets_session() as session:
        session.bus.subscribe(lambda event: heard.append(event_wire(event)))
        await session.call("run", {"command": "login secret:API"})
    told = [event["text"] for event in heard if event["event"] == "output"]
    assert "".join(told) == f"login {REDACTED_TEXT}"
    assert "" not in told


async def test_output_that_only_begins_like_a_secret_comes_whole() -> None:
    heard: list[dict[str, Any]] = []
    async with secrets_session() as session:
        await session.call("use", {"text": "secret:API"})
        session.bus.subscribe(lambda event: heard.append(event_wire(event)))
        await session.call("run", {"command": f"echo {VALUE[:6]}"})
    assert "".join(event["text"] for event in heard if event["event"] == "output") == f"echo {VALUE[:6]}"


async def test_a_parent_that_hands_a_value_on_writes_it_nowhere() -> None:
    heard: list[Event] = []
    async with secrets_session() as session:
        session.bus.subscribe(heard.append)
        result = await session.call("outer", {"text": "secret:API"})
        audit = written(session)
    assert GIVEN == [(VALUE, None)]
    assert VALUE not in str([dict(result), audit, heard])


@pytest.mark.parametrize(
    ("tool", "args", "why"),
    [
        ("use", {"text": "secret:NOBODY"}, "there is no secret 'NOBODY'"),
        ("use", {"text": "secret:PIN"}, "fewer than"),
        ("run", {"command": "login secret:ODD"}, "mean something in a command"),
        ("send", {"url": "https://secret:API@example.org/"}, "path or query"),
        ("write", {"path": "secret:API", "content": "x"}, "a secret cannot be part of the file"),
    ],
)
async def test_a_value_that_would_change_what_was_judged_is_not_put_in(
    tool: str, args: Mapping[str, Any], why: str
) -> None:
    async with secrets_session() as session:
        result = await session.call(tool, args)
    assert (result.ok, GIVEN) == (False, [])
    assert why in result["error"]["message"]
    assert VALUE not in str(dict(result))


async def test_in_the_query_of_an_address_it_is_quoted() -> None:
    async with secrets_session() as session:
        result = await session.call("send", {"url": "https://example.org/?key=secret:ODD"})
    assert GIVEN == ["https://example.org/?key=a%20b%22%24%28id%29%26c"]
    assert result["content"] == f"https://example.org/?key={REDACTED_TEXT}"


async def test_a_name_that_nobody_knows_stays_in_a_longer_text() -> None:
    async with secrets_session() as session:
        await session.call("write", {"path": "a.md", "content": "write secret:NAME, or nosecret:API"})
    assert GIVEN == ["write secret:NAME, or nosecret:API"]


async def test_a_variable_can_be_named_in_the_configuration() -> None:
    async with secrets_session(settings={"secrets": {"variables": {"mail": "MAIL_PASSWORD"}}}) as session:
        result = await session.call("use", {"text": "secret:mail"})
    assert GIVEN == [("hunter2-hunter2", None)]
    assert "hunter2" not in str(dict(result))


async def test_the_audit_holds_no_value_of_a_variable_that_is_called_secret() -> None:
    async with secrets_session() as session:
        result = await session.call("use", {"text": "printed: hunter2-hunter2"})
        audit = written(session)
    assert result["echo"] == "<printed: hunter2-hunter2>"
    assert "hunter2" not in audit


async def test_the_keyring_is_asked_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "keyring"
    package.mkdir()
    (package / "__init__.py").write_text(
        f"def get_password(service, name):\n    return {VALUE!r} if (service, name) == ('mine', 'mail') else None\n"
    )
    (package / "errors.py").write_text("class KeyringError(Exception): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    async with open_test_session(tools=[use], settings={"secrets": {"keyring": "mine"}}, confirm=yes) as session:
        assert (await session.call("use", {"text": "secret:mail"})).ok
        assert (await session.call("use", {"text": "secret:other"})).error_code == "not_found"
    assert GIVEN == [(VALUE, None)]


def test_a_project_says_nothing_about_secrets(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".git").mkdir()
    (project / "handrail.toml").write_text(
        '[secrets.variables]\nx = "MAIL_PASSWORD"\n[secrets.sites]\nx = ["evil.example"]\n', encoding="utf-8"
    )
    environment = {"HOME": str(tmp_path), "HANDRAIL_HOME": str(tmp_path / "home"), "HANDRAIL_SECRET_API": VALUE}
    config = load_config(
        places=AppDirs.of(environment), folder=project, environment=environment, admin=tmp_path / "none"
    )
    assert config.settings.secrets.variables == {}
    assert config.settings.secrets.sites == {}
    assert "secrets.variables.x" in config.ignored[0]
    assert "secrets.sites.x" in config.ignored[1]
    assert VALUE not in json.dumps(config.settings.model_dump(mode="json"))
    with pytest.raises(ConfigError):
        load_config(
            places=AppDirs.of(environment), folder=project, environment={**environment, "HANDRAIL_SECRETS_KEYRING": "x"}
        )


@pytest.mark.parametrize("word", ["retryable", "success", "message", "voice_message", "details", "invalid_arguments"])
async def test_a_secret_that_is_a_word_of_ours_breaks_no_result(word: str) -> None:
    async with open_test_session(tools=[use], environment={"HANDRAIL_SECRET_WORD": word}, confirm=yes) as session:
        good = await session.call("use", {"text": "secret:WORD"})
        bad = await session.call("use", {"words": "secret:WORD"})
    assert (good.status, good["echo"]) == ("success", f"<{REDACTED_TEXT}>")
    assert (bad.status, bad.error_code, "message" in bad["error"]) == ("error", "invalid_arguments", True)


@pytest.mark.parametrize("trusted", [False, True])
async def test_a_secret_is_found_in_whatever_it_is_wrapped(trusted: bool) -> None:
    class Odd:
        def __str__(self) -> str:
            return f"odd {VALUE}"

    @tool(trusted=trusted)
    async def wrap(text: str) -> dict[str, Any]:
        """Wrap a text."""
        deep: Any = text
        for _ in range(200):
            deep = [deep]
        return {"set": {text}, "bytes": text.encode(), "error": ValueError(text), "odd": Odd(), "deep": deep}

    async with open_test_session(tools=[wrap], environment=AROUND, confirm=yes) as session:
        result = await session.call("wrap", {"text": "secret:API"})
        assert VALUE not in json.dumps(result.wire())
        assert VALUE not in repr(dict(result))
        assert VALUE not in (session.runtime.places.audit / f"{session.id}.jsonl").read_text(encoding="utf-8")


async def test_what_a_tool_writes_to_an_artifact_in_pieces_holds_no_secret() -> None:
    @tool()
    async def write(text: str, context: ToolContext) -> dict[str, Any]:
        """Write in pieces."""
        spool = context.artifacts.create("text")
        for piece in ("before ", text[:3], text[3:9], text[9:] + " after ", text[:4]):
            spool.write(memoryview(piece.encode()))
        return {"artifact": spool.wire()}

    async with open_test_session(tools=[write], environment=AROUND, confirm=yes) as session:
        result = await session.call("write", {"text": "secret:API"})
        kept = Path(result["artifact"]["path"]).read_text(encoding="utf-8")
    assert kept == f"before {REDACTED_TEXT} after {VALUE[:4]}"


@tool(effects=[Send("fetch", arg="url")])
async def fetch(url: str, prompt: str = "") -> str:
    """Get a page."""
    GIVEN.append(url)
    return url


@tool(effects=[Input("page", arg="text")])
async def fill(text: str) -> None:
    """Type into a page."""
    GIVEN.append(text)


ASKED = [
    ("fetch", {"url": "https://example.org/?k=secret:API"}, "example.org"),
    ("fetch", {"url": "https://example.org/", "prompt": "say secret:api"}, "example.org"),
    ("use", {"text": "secret:API"}, "use"),
    ("use", {"text": "x", "more": {"a": ["Bearer secret:API"]}}, "use"),
    ("run", {"command": "echo secret:API | rev"}, "run"),
    ("write", {"path": "notes.txt", "content": "secret:API"}, "write"),
    ("fill", {"text": "secret:API"}, "fill"),
]


@pytest.mark.parametrize(("name", "args", "place"), ASKED)
async def test_a_person_approves_where_a_secret_goes(name: str, args: Mapping[str, Any], place: str) -> None:
    settings = {"policy": {"rules": [{"tool": "*", "decision": "allow"}]}, "mode": "permissive"}
    tools = [use, run, write, fetch, fill]
    async with open_test_session(tools=tools, environment=AROUND, settings=settings) as session:
        denied = await session.call(name, args)
    assert (denied["status"], denied["error"]["code"], GIVEN) == ("denied", "no_confirmer", [])
    assert f"to {place}" in denied["error"]["message"]
    person = ScriptedConfirmer("once")
    async with open_test_session(tools=tools, environment=AROUND, settings=settings, confirm=person) as session:
        assert (await session.call(name, args)).ok
    assert "secret" in str(person.asked)
    assert len(GIVEN) == 1


@pytest.mark.parametrize(
    ("name", "args", "passes"),
    [
        ("fetch", {"url": "https://api.example.org/?k=secret:API"}, True),
        ("fetch", {"url": "https://example.org./?k=secret:api"}, True),
        ("fetch", {"url": "http://example.org/?k=secret:API"}, False),
        ("fetch", {"url": "https://badexample.org/?k=secret:API"}, False),
        ("fetch", {"url": "https://example.org@evil.example/?k=secret:API"}, False),
        ("fetch", {"url": "https://evil.example\\@example.org/?k=secret:API"}, False),
        ("fetch", {"url": "//example.org/?k=secret:API"}, False),
        ("fetch", {"url": "https://example.org/?k=secret:API&l=secret:ODD"}, False),
        ("run", {"command": "curl https://example.org/ -H secret:API"}, False),
        ("use", {"text": "secret:API"}, False),
    ],
)
async def test_a_secret_goes_to_its_own_sites_without_approval(
    name: str, args: Mapping[str, Any], passes: bool
) -> None:
    settings = {
        "policy": {"rules": [{"tool": "*", "decision": "allow"}]},
        "secrets": {"sites": {"api": ["example.org"]}},
    }
    async with open_test_session(tools=[use, run, fetch], environment=AROUND, settings=settings) as session:
        result = await session.call(name, args)
    assert (result.ok, len(GIVEN)) == (passes, int(passes)), dict(result)


async def test_a_rule_of_the_person_that_lifts_the_floor_lets_a_secret_pass() -> None:
    rule = {"tool": "use", "decision": "allow", "lifts": ["secrets:named_secret"]}
    async with open_test_session(tools=[use], environment=AROUND, settings={"policy": {"rules": [rule]}}) as session:
        assert (await session.call("use", {"text": "secret:API"})).ok
    assert GIVEN == [(VALUE, None)]


async def test_words_that_name_no_secret_are_not_asked_about() -> None:
    async with open_test_session(tools=[use], environment=AROUND) as session:
        assert (await session.call("use", {"text": "the secret:santa list"})).ok
