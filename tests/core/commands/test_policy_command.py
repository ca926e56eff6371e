"""`handrail policy` and `handrail grants`, as a person runs them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from handrail.api.call import GrantOption
from handrail.api.verdict import Mode
from handrail.policy.grant_store import GrantStore
from handrail.policy.grants import Grant

RULES = """
[[policy.rules]]
tool = "set_switch"
decision = "deny"
name = "no switching"
reason = "the switch is not for agents"
interactive = false

[[policy.rules]]
tool = "set_switch"
decision = "allow"
priority = 3
modes = ["permissive"]
"""


def write_config(handrail, text):
    file = handrail.home / "config/config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_list_has_the_rules_in_the_order_they_answer_with_their_places(handrail):
    file = write_config(handrail, RULES)
    listed = handrail.json("policy", "list", plugins="stage")
    assert [(rule["decision"], rule["priority"], rule["tier"], rule["source"]) for rule in listed] == [
        ("allow", 3, "user", f"{file}:9"),
        ("deny", 0, "user", f"{file}:2"),
    ]
    done = handrail("policy", "list", plugins="stage")
    assert f"'no switching'  # {file}:2" in done.stdout


def test_an_explanation_has_the_parts_the_opinions_the_rules_and_why(handrail):
    file = write_config(handrail, RULES)
    call = '{"tool": "set_switch", "args": {"value": true}}'
    told = handrail("policy", "explain", call, plugins="stage").stdout
    assert "effects:writes: suggests confirm" in told
    assert "no (modes does not fit): user 3  allow" in told
    assert (
        f'no (interactive does not fit): user 0  deny  tool = ["set_switch"]  interactive = false  # {file}:2' in told
    )
    assert "decision  confirm on the host by effects:writes" in told
    headless = handrail.json("policy", "explain", call, "--mode", "headless", plugins="stage")
    assert headless["verdict"]["decision"] == "deny"
    assert headless["verdict"]["reasons"][0]["text"] == "the switch is not for agents"
    assert [rule["fits"][0]["yes"] for rule in headless["rules"]] == [False, True]


def test_an_explanation_runs_nothing_and_leaves_nothing(handrail):
    handrail("policy", "explain", '{"tool": "mark_later", "args": {"path": "x", "seconds": 0}}', plugins="stage")
    assert list(handrail.folder.iterdir()) == []
    assert not list(handrail.home.rglob("*.jsonl"))


@pytest.mark.parametrize("call", ["ls", '{"tool": "set_switch", "argz": {}}', '{"args": {}}'])
def test_a_call_that_cannot_be_explained_is_misuse(handrail, call):
    done = handrail("policy", "explain", call, plugins="stage")
    assert done.returncode == 2
    assert "Error: " in done.stderr


def test_a_check_tells_every_mistake_with_its_line(handrail):
    (handrail.folder / "rules.toml").write_text(
        '[[policy.rules]]\ntool = "set_swich"\ndecision = "deny"\n'
        '[[policy.rules]]\ntool = "greet"\ndecison = "deny"\n'
        '[[policy.rules]]\ntool = "greet"\ndecision = "deny"\n'
        '[[policy.rules]]\ntool = "greet"\ncommand = ["x"]\ndecision = "deny"\n'
        '[[policy.rules]]\ntool = "greet"\ndecision = "confirm"\n'
    )
    found = handrail.json("policy", "check", "rules.toml", plugins="stage", code=1)
    assert [(problem["severity"], problem["where"].partition(": ")[0]) for problem in found] == [
        ("error", "rules.toml:6"),
        ("error", "rules.toml:2"),
        ("error", "rules.toml:12"),
        ("warning", "rules.toml:10"),
        ("warning", "rules.toml:14"),
    ]
    assert "did you mean 'set_switch'?" in found[1]["text"]
    assert "rules.toml:7" in found[3]["text"]


def test_a_check_without_a_file_reads_what_counts_here(handrail):
    file = write_config(handrail, RULES)
    assert handrail("policy", "check", plugins="stage").returncode == 0
    write_config(handrail, RULES.replace("deny", "denied"))
    done = handrail("policy", "check", plugins="stage")
    assert (done.returncode, done.stdout.splitlines()[0].split(" ")[1]) == (1, f"{file}:4:")
    write_config(handrail, RULES.replace("set_switch", "set_swich"))
    assert handrail("policy", "check", plugins="stage").returncode == 1
    assert handrail("tools", plugins="stage").returncode == 1


@pytest.fixture
def book(handrail):
    book = GrantStore(handrail.home / "data/grants.json")
    for word in ("push", "pull"):
        option = GrantOption(f"commands that start with git {word}", "execute_cli", commands=(("git", word),))
        book.add(Grant(option, Mode.DEFAULT, ("/work",), "/work", always=True))
    return book


def test_grants_are_listed_and_revoked(handrail, book):
    first, second = handrail.json("grants", "list")
    assert (first["label"], first["commands"], first["workspace"]) == (
        "commands that start with git push",
        [["git", "push"]],
        ["/work"],
    )
    assert first["id"] in handrail("grants", "list").stdout
    assert handrail("grants", "revoke", first["id"]).stdout.startswith(f"revoked: {first['id']}")
    assert [grant.id for grant in book.read()] == [second["id"]]
    assert handrail("grants", "revoke", first["id"]).returncode == 1
    assert handrail("grants", "revoke", "--all").returncode == 0
    assert book.read() == ()
    assert handrail("grants", "revoke").returncode == 2


def test_the_file_of_grants_is_private(book: GrantStore):
    assert stat.S_IMODE(os.stat(book.file).st_mode) == 0o600
    assert Path(book.file).parent.stat().st_mode & 0o077 == 0


def test_what_a_file_was_asked_about_comes_before_a_mistake_in_the_folders_configuration(handrail):
    (handrail.folder / "rules.toml").write_text('[[policy.rules]]\ntool = "greet"\ndecision = "maybe"\n')
    (handrail.folder / "handrail.toml").write_text('mod = "x"\n')
    found = handrail.json("policy", "check", "rules.toml", plugins="stage", code=1)
    assert [problem["where"].rpartition("/")[2] for problem in found] == ["rules.toml:3", "handrail.toml:1"]


def test_a_file_to_check_that_is_missing_is_said_as_missing_with_what_is_near(handrail):
    (handrail.folder / "rules.toml").write_text("")
    done = handrail("policy", "check", "rulse.toml", plugins="stage")
    assert done.returncode == 1
    assert done.stderr == "Error: there is no file 'rulse.toml'\nHint: near it there is rules.toml\n"
