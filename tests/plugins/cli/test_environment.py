"""What of the host's environment commands may see."""

from __future__ import annotations

import pytest

from handrail import Desktop
from handrail.redaction import is_credential
from handrail_cli.process.environment import create_system_environment, point_to_desktop


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("aws_secret_access_key", "x"),
        ("DB_PASSWORD", "x"),
        ("OPENAI_API_KEY", "x"),
        ("HARMLESS", "ghp_" + "a" * 36),
        ("HARMLESS", "postgres://me:word@host/db"),
        ("npm_config__auth", "x"),
        ("npm_config_otp", "123456"),
        ("UV_INDEX", "https://a-token-as-user@host/simple"),
        ("HARMLESS", "-----BEGIN OPENSSH PRIVATE KEY-----\nx"),
    ],
)
def test_credentials_are_known_by_name_or_by_value(name: str, value: str) -> None:
    assert is_credential(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin"),
        ("PWD", "/x"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
        ("KEYBOARD_LAYOUT", "de"),
        ("MONKEY", "x"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("http_proxy", "http://proxy:3128/"),
        ("REMOTE", "ssh://git@host/repository"),
        ("XDG_SESSION_DESKTOP", "gnome"),
    ],
)
def test_ordinary_variables_are_not_taken_for_credentials(name: str, value: str) -> None:
    assert not is_credential(name, value)


def test_a_private_desktop_takes_the_place_of_the_persons_own() -> None:
    private = Desktop("x", ":99", {"DISPLAY": ":99"}, private=True)
    assert point_to_desktop({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0", "A": "b"}, private) == {
        "DISPLAY": ":99",
        "A": "b",
    }


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("LC_ALL", "C.UTF-8", True),
        ("COLUMNS", "200", True),
        ("TZ", "Europe/Vienna", True),
        ("TZ", ":/home/user/x", False),
        ("TC_LIB_DIR", "/work/lib", False),
        ("GREP", "./evil.sh", False),
        ("PS_FORMAT", "pid,environ", False),
    ],
)
def test_a_program_that_inspects_the_system_is_given_tame_variables_of_the_session_only(
    name: str, value: str, *, kept: bool
) -> None:
    assert (create_system_environment({"HOME": "/home/user"}, {name: value}).get(name) == value) is kept


def test_without_a_desktop_nothing_leads_to_a_screen() -> None:
    assert point_to_desktop({"DISPLAY": ":0", "XAUTHORITY": "/x", "A": "b"}, None) == {"A": "b"}


def test_the_persons_own_desktop_is_left_as_it_is() -> None:
    assert point_to_desktop({"DISPLAY": ":0"}, Desktop("current", ":0", {"XAUTHORITY": "/x"})) == {
        "DISPLAY": ":0",
        "XAUTHORITY": "/x",
    }
