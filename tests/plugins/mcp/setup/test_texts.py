"""What a person wrote stays as it is, to the byte, whatever is put in and taken out beside it."""

from __future__ import annotations

import difflib
import json
import os
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import tomlkit
import yaml
from hypothesis import assume, given, settings, strategies as st

from handrail.errors import HandrailError
from handrail_mcp.setup.clients import CLIENTS, McpClient, ServerCommand
from handrail_mcp.setup.config_edit import (
    BOM,
    TEXT_FORMATS,
    ConfigChange,
    open_config_file,
    plan_install,
    plan_uninstall,
    write_change,
)
from handrail_mcp.setup.config_format import MalformedConfigError
from handrail_mcp.setup.yaml_format import YamlFormat

from .kept import JSON, KEPT

SERVER = ServerCommand("/opt/handrail", ("serve", "--desktop", "private"))
NAMED = {client.name: client for client in CLIENTS}

each_kept = pytest.mark.parametrize(("name", "text"), KEPT.items(), ids=list(KEPT))


def made(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "settings"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def put(client: McpClient, path: Path, server: ServerCommand = SERVER, *, force: bool = False) -> ConfigChange:
    change = plan_install(client, open_config_file(path), "handrail", server, force=force)
    write_change(change, path.parent / "kept")
    return change


def take(client: McpClient, path: Path, *, force: bool = False) -> ConfigChange:
    change = plan_uninstall(client, open_config_file(path), "handrail", force=force)
    write_change(change, path.parent / "kept")
    return change


def gone(before: str, after: str) -> list[str]:
    """The lines that are not there any more as they were, but for a comma at their end."""
    lines = difflib.ndiff([line.rstrip(",") for line in before.splitlines()], after.replace(",\n", "\n").splitlines())
    return [line[2:] for line in lines if line.startswith("- ")]


@each_kept
def test_nothing_that_was_there_is_changed(name: str, text: str, tmp_path: Path):
    path = made(tmp_path, text)
    assert put(NAMED[name], path).done == "added"
    after = path.read_text()
    assert [line for line in gone(text, after) if not line.rstrip().endswith("// the last one")] == []
    content = TEXT_FORMATS[NAMED[name].format]().read(after)[NAMED[name].key]
    assert len(content) > 1
    assert content["handrail"] == NAMED[name].entry("handrail", SERVER)


@each_kept
def test_what_was_put_in_is_taken_out_without_a_trace(name: str, text: str, tmp_path: Path):
    path = made(tmp_path, text)
    put(NAMED[name], path)
    assert take(NAMED[name], path).done == "removed"
    assert path.read_text() == text


@each_kept
@pytest.mark.parametrize("mark", [b"", BOM], ids=["plain", "marked"])
def test_line_ends_and_marks_of_the_encoding_stay(name: str, text: str, mark: bytes, tmp_path: Path):
    path = made(tmp_path, mark + text.replace("\n", "\r\n").encode())
    put(NAMED[name], path)
    data = path.read_bytes()
    assert data.startswith(mark + text.replace("\n", "\r\n").encode()[:12])
    assert data.count(b"\n") == data.count(b"\r\n") > text.count("\n")
    take(NAMED[name], path)
    assert path.read_bytes() == mark + text.replace("\n", "\r\n").encode()


@each_kept
def test_done_again_nothing_changes(name: str, text: str, tmp_path: Path):
    path = made(tmp_path, text)
    put(NAMED[name], path)
    before = path.read_bytes()
    again = plan_install(NAMED[name], open_config_file(path), "handrail", SERVER, force=False)
    assert (again.done, again.after, again.diff) == ("unchanged", before.decode(), "")


@each_kept
def test_an_entry_of_ours_is_brought_up_to_date_and_keeps_what_was_added_to_it(name: str, text: str, tmp_path: Path):
    client, path = NAMED[name], made(tmp_path, text)
    put(client, path)
    editor = TEXT_FORMATS[client.format]()
    path.write_text(editor.put(path.read_text(), (client.key, "handrail", "mine"), "kept"))
    newer = ServerCommand("/other/handrail", ("serve", "--profile", "all"), {"A": "b"})
    assert put(client, path, newer).done == "updated"
    entry = editor.read(path.read_text())[client.key]["handrail"]
    assert entry == {**client.entry("handrail", newer), "mine": "kept"}
    assert [line for line in gone(text, path.read_text()) if not line.rstrip().endswith("// the last one")] == []


@each_kept
def test_an_entry_of_somebody_else_is_left_alone_unless_forced(name: str, text: str, tmp_path: Path):
    client = NAMED[name]
    theirs = client.entry("handrail", ServerCommand("/usr/bin/rails", ("server",)))
    path = made(tmp_path, TEXT_FORMATS[client.format]().put(text, (client.key, "handrail"), theirs))
    before = path.read_bytes()
    for act in (put, take):
        with pytest.raises(HandrailError, match="not Handrail's"):
            act(client, path)
    assert path.read_bytes() == before
    assert put(client, path, force=True).done == "updated"
    assert TEXT_FORMATS[client.format]().read(path.read_text())[client.key]["handrail"] == client.entry(
        "handrail", SERVER
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("claude", '{\n  "a": 1,\n  "b" 2\n}', ":3: "),
        ("claude", '{"a": 1', ":1: "),
        ("claude", "{,}", ":1: "),
        ("claude", '{"a": [ ,]}', ":1: "),
        ("claude", "[]", "not an object"),
        ("claude", '{"mcpServers": []}', "not a table"),
        ("claude", '{"mcpServers": {}, "mcpServers": {}}', "there twice"),
        ("claude", "[" * 100_000, "settings"),
        ("codex", 'model = "a\n', "line 1"),
        ("codex", "mcp_servers = 3\n", "not a table"),
        ("goose", "extensions:\n  a: [1\n", "settings:3: "),
        ("goose", "- a\n", "not a mapping"),
        ("goose", "a: 1\n---\nb: 2\n", "settings"),
        ("goose", "extensions: *gone\n", "settings:1: "),
        ("goose", "extensions: {a: {b: 1}, # mine\n  c: {}}\n", "comments"),
        ("goose", "x: &x {developer: {type: a}}\nextensions: *x\n", "cannot be edited"),
    ],
)
def test_a_file_that_cannot_be_edited_is_told_with_the_cure_and_stays(name: str, text: str, said: str, tmp_path: Path):
    path = made(tmp_path, text)
    with pytest.raises(HandrailError) as caught:
        put(NAMED[name], path)
    assert said in str(caught.value)
    assert "nothing was changed" in str(caught.value.hint)
    assert f"install {name} --print" in str(caught.value.hint)
    assert path.read_text() == text


def test_a_file_that_its_client_writes_in_the_meantime_is_left_as_it_wrote_it(tmp_path: Path):
    path = made(tmp_path, JSON)
    change = plan_install(NAMED["claude"], open_config_file(path), "handrail", SERVER, force=False)
    path.write_text('{"numStartups": 4}')
    with pytest.raises(HandrailError, match="changed by somebody else"):
        write_change(change, tmp_path / "kept")
    assert path.read_text() == '{"numStartups": 4}'


def test_what_is_no_file_is_refused(tmp_path: Path):
    with pytest.raises(HandrailError, match="cannot be read"):
        open_config_file(tmp_path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path):
    path = made(tmp_path, '{"a": "é"}'.encode("latin-1"))
    with pytest.raises(HandrailError, match="not in UTF-8"):
        put(NAMED["claude"], path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude", ""),
        ("claude", "\n\n"),
        ("claude", "{}"),
        ("claude", "{\n}\n"),
        ("claude", '{"a":1}'),
        ("claude", '{"mcpServers":{}}'),
        ("claude", '{"mcpServers": null, "b": 2}'),
        ("claude", '{"mcpServers":{"x":{"command":"y"}},"b":[1,2]}'),
        ("claude", '{\n\t"a": 1\n}'),
        ("claude", '{"a": "/* no comment */", "b": "\\"// nor this"}'),
        ("zed", "// nothing yet\n"),
        ("zed", "{\n  // nothing yet\n}\n"),
        ("zed", '{\n  "context_servers": {\n    // none\n  },\n}\n'),
        ("zed", '{\n  "a": 1, // one\n  "b": 2 /* two */ // more\n}\n'),
        ("zed", '{\n  "a": [1, 2,],\n}'),
        ("codex", ""),
        ("codex", 'model = "a"'),
        ("codex", "# only this\n"),
        ("codex", 'mcp_servers = { docs = { command = "x" } }\n'),
        ("codex", 'mcp_servers.docs.command = "x"\n'),
        ("codex", '[mcp_servers]\n[mcp_servers.docs]\ncommand = """x\n[mcp_servers.handrail]\n"""\n'),
        ("goose", ""),
        ("goose", "# only this\n"),
        ("goose", "a: 1"),
        ("goose", "{}\n"),
        ("goose", "---\n"),
        ("goose", "--- # only this\n...\n"),
        ("goose", "~\n"),
        ("goose", "extensions:\n"),
        ("goose", "extensions: # mine\n  # and mine\nb: 1\n"),
        ("goose", "extensions: {} # mine\n...\n"),
        ("goose", "extensions:\n\n# next\nb: 1\n"),
        ("goose", "extensions: {}\nb: 1\n"),
        ("goose", 'extensions: {a: {type: builtin}}\nb: "2"\n'),
        ("goose", '{"extensions": {"a": {"type": "builtin"}}, "b": 2}\n'),
        ("goose", "extensions:\n    a:\n        text: |\n            one\n            two\n\nb: 1\n"),
        ("goose", "extensions:\n  a:\n    text: >-\n      one\n      two"),
        ("goose", "extensions:\n  a:\n    enabled:\n  b:\n"),
        ("goose", '"extensions":\n  a: {enabled: true}   # yes\n'),
    ],
)
def test_every_way_of_writing_it_takes_the_entry_and_gives_it_back(name: str, text: str, tmp_path: Path):
    client, path = NAMED[name], made(tmp_path, text)
    editor = TEXT_FORMATS[client.format]()
    before = editor.read(text)
    assert put(client, path).done == "added"
    content = editor.read(path.read_text())
    assert content[client.key].pop("handrail") == client.entry("handrail", SERVER)
    assert {key: value for key, value in content.items() if value} == {
        key: value for key, value in before.items() if value
    }
    newer = ServerCommand("/b/handrail", ("serve",))
    assert put(client, path, newer).done == "updated"
    assert editor.read(path.read_text())[client.key]["handrail"] == client.entry("handrail", newer)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TABLES = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
NOTES = st.sampled_from(
    ["", " ", ' // a note, with { and "', " /* one */", " /* one */ // two", "\n// alone\n", "\n\n"]
)


@settings(max_examples=50)
@given(
    before=TABLES,
    servers=st.dictionaries(st.text(min_size=1, max_size=7), VALUES, min_size=1, max_size=3),
    after=TABLES,
    indent=st.sampled_from([None, 2, 4, "\t"]),
    notes=st.lists(NOTES, min_size=1, max_size=5),
)
def test_any_json_with_any_comments_gives_back_what_it_took(
    before: dict[str, Any],
    servers: dict[str, Any],
    after: dict[str, Any],
    indent: int | str | None,
    notes: list[str],
):
    client, editor = NAMED["zed"], TEXT_FORMATS["json"]()
    content = {**before, client.key: {**servers, "last": {}}, **after}
    noted = iter(cycle(notes if indent else [""]))
    lines = json.dumps(content, indent=indent, ensure_ascii=False).split("\n")
    text = "\n".join(f"{line}{next(noted)}" for line in lines)
    entry = client.entry("handrail", SERVER)
    put = editor.put(text, (client.key, "handrail"), entry)
    content[client.key]["handrail"] = entry
    assert editor.read(put) == content
    assert editor.drop(put, (client.key, "handrail")) == text


PLAIN = st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=12)
SERVERS = st.dictionaries(
    st.text(min_size=1, max_size=7),
    st.dictionaries(st.text(min_size=1, max_size=8), PLAIN | st.lists(PLAIN, max_size=3), max_size=3),
    min_size=1,
    max_size=3,
)
WRITERS = {
    "goose": lambda content: yaml.safe_dump(content, sort_keys=False, allow_unicode=True),
    "codex": tomlkit.dumps,
}


@settings(max_examples=50)
@given(
    name=st.sampled_from(sorted(WRITERS)),
    before=st.dictionaries(st.text(min_size=1, max_size=8), PLAIN, max_size=3),
    servers=SERVERS,
    after=SERVERS,
)
def test_any_yaml_and_toml_gives_back_what_it_took(
    name: str, before: dict[str, Any], servers: dict[str, Any], after: dict[str, Any]
):
    client = NAMED[name]
    editor, content = TEXT_FORMATS[client.format](), {**before, client.key: servers, **after}
    text = WRITERS[name](content)
    assume(editor.read(text) == content)
    entry = client.entry("handrail", SERVER)
    put = editor.put(text, (client.key, "handrail"), entry)
    assert editor.read(put) == {**content, client.key: {**servers, "handrail": entry}}
    assert editor.drop(put, (client.key, "handrail")) == text


@pytest.mark.parametrize(
    "before", ["extensions: {a: {b: 1}}\n", "{extensions: {a: {b: 1}}, c: 2}\n", "z: 1\nextensions: {a: {}} # why\n"]
)
def test_what_goes_into_a_mapping_of_one_line_comes_out_again(before: str) -> None:
    path = ("extensions", "handrail")
    with_it = YamlFormat().put(before, path, {"cmd": "handrail"})
    assert YamlFormat().read(with_it)["extensions"]["handrail"] == {"cmd": "handrail"}
    assert YamlFormat().read(YamlFormat().drop(with_it, path)) == YamlFormat().read(before)


def test_a_mapping_of_one_line_with_names_for_other_places_is_left_alone() -> None:
    with pytest.raises(MalformedConfigError, match="cannot be read by itself"):
        YamlFormat().put("a: &x {}\nextensions: {q: *x}\n", ("extensions", "handrail"), {"cmd": "handrail"})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has pipes with names")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(
            "codex",
            '{0}\n[mcp_servers.handrail]\ncommand = "/old/handrail"\nargs = ["serve"]\n\n{1}\n[mcp_servers.docs] {2}\ncommand = "x"\n',
            id="before the next table",
        ),
        pytest.param(
            "codex",
            '[mcp_servers.handrail]\ncommand = "/old/handrail"\nargs = ["serve"]\n{0}\n[mcp_servers.handrail.env]\nX = "1"\n\n{1}\n[a]\nb = 1',
            id="between its tables and after",
        ),
        pytest.param(
            "codex",
            '[mcp_servers.handrail]\ncommand = "/old/handrail"\nargs = ["serve"]\n{0}\n[a]\n[mcp_servers.handrail.env]\nX = "1"\n{1}',
            id="its tables apart",
        ),
        pytest.param(
            "goose",
            "extensions: {0}\n  {1}\n  handrail:\n    cmd: /old/handrail\n    args: [serve]\n  {2}\nb: 1 {3}",
            id="around the only one",
        ),
        pytest.param(
            "zed",
            '{{\n  "context_servers": {{ {0}\n    {1}\n    "handrail": {{"command": "/old/handrail", "args": ["serve"]}}\n    {2}\n  }} {3}\n}}',
            id="around the only one, in JSON",
        ),
    ],
)
def test_comments_around_an_entry_of_ours_stay_when_it_is_taken_out(name: str, text: str, tmp_path: Path):
    client, mark = NAMED[name], "//" if NAMED[name].format == "json" else "#"
    comments = [f"{mark} mine {at}" for at in range(4)]
    path = made(tmp_path, text.format(*comments))
    before = [comment for comment in comments if comment in path.read_text()]
    take(client, path)
    assert [comment for comment in comments if comment in path.read_text()] == before != []


def test_a_variable_that_is_added_leaves_the_others_and_their_comments(tmp_path: Path):
    path = made(
        tmp_path,
        '[mcp_servers.handrail]\ncommand = "/old/handrail"\nargs = ["serve"]\n\n[mcp_servers.handrail.env]  # mine\nX = "1"  # also\n',
    )
    before = path.read_text()
    put(NAMED["codex"], path, ServerCommand("/old/handrail", ("serve",), {"A": "b"}))
    assert path.read_text() == f'{before}A = "b"\n'


def test_a_pipe_or_a_device_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(HandrailError, match="is no file"):
            open_config_file(path)
