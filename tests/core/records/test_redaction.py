"""Secrets in what is recorded, and honest values beside them."""

from __future__ import annotations

import logging
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from handrail.cli._stderr_log import OneLineFormatter
from handrail.redaction import REDACTED_TEXT, SECRET_VALUES, is_credential, is_secret_name, redact_text, redact_value

SECRETS = [
    pytest.param("AKIAIOSFODNN7EXAMPLE", id="aws"),
    pytest.param("ghp_16C7e42F292c6912E7710c838347Ae178B4a", id="github"),
    pytest.param("github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ", id="github-fine"),
    pytest.param("glpat-zyxwvutsrqponmlkjihg", id="gitlab"),
    pytest.param("xoxb-123456789012-abcdefABCDEF", id="slack"),
    pytest.param("sk-proj-abcdefghijklmnop1234567890", id="openai"),
    pytest.param("sk-ant-api03-abcdefghijklmnop1234567890", id="anthropic"),
    pytest.param("AIzaSyA1234567890abcdefghijklmnopqrstuv", id="google"),
    pytest.param("npm_abcdefghijklmnopqrstuvwxyz0123456789", id="npm"),
    pytest.param(
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", id="jwt"
    ),
    pytest.param(
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA\n-----END OPENSSH PRIVATE KEY-----", id="key-block"
    ),
    pytest.param("-----BEGIN RSA PRIVATE KEY-----\nMIIEow", id="torn-key-block"),
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "set it to {} now", 'x="{}"', "a\n{}\nb"])
def test_secrets_are_told_by_their_form(secret: str, around: str) -> None:
    shown = redact_text(around.format(secret))
    assert REDACTED_TEXT in shown
    assert secret[-20:] not in shown


@settings(max_examples=300, deadline=None)
@given(st.from_regex(SECRET_VALUES))
def test_no_secret_that_has_its_form_is_passed_over_at_the_first_glance(text: str) -> None:
    assert redact_text(text) != text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgres://ada:hunter2@db.example/x", "postgres://[redacted]@db.example/x"),
        ("curl -H 'Authorization: Bearer abc' https://x", "curl -H 'Authorization: [redacted]' https://x"),
        ("Cookie: session=abc; other=def\nHost: x", "Cookie: [redacted]\nHost: x"),
        ("//registry.example/:_authToken=0a1b2c3d", "//registry.example/:_authToken=[redacted]"),
        ("DB_PASSWORD=swordfish run", "DB_PASSWORD=[redacted] run"),
        ('{"client_secret": "swordfish"}', '{"client_secret": "[redacted]"}'),
        ("Server=x;Password=S3cr3t!;User=a", "Server=x;Password=[redacted];User=a"),
        ("mysql --password swordfish9 -u a", "mysql --password [redacted] -u a"),
        ("https://x.example/?token=abcd1234&page=2", "https://x.example/?token=[redacted]&page=2"),
        ("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY: [redacted]"),
        ("apiKey = 'abcd-1234'", "apiKey = '[redacted]'"),
        ("curl -s -u bob:sword4fish http://x", "curl -s -u bob:[redacted] http://x"),
        ("curl --user 'bob:sword4fish' http://x", "curl --user 'bob:[redacted]' http://x"),
        ("mysql -h db -psword4fish -e x", "mysql -h db -p[redacted] -e x"),
        ("sshpass -p sword4fish ssh h", "sshpass -p [redacted] ssh h"),
    ],
)
def test_secrets_are_told_by_their_name(text: str, shown: str) -> None:
    assert redact_text(text) == shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "id 123e4567-e89b-12d3-a456-426614174000, etag W/\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "password: required, token: string; the secret garden; passed 12 tests in 3s",
        "key=value monkey=banana4 keyboard: qwerty1 PATH=/usr/bin:/bin author: Ada1815",
        "token=$TOKEN password=secret:mail PASSWORD=******** --password-file /run/pass",
        "ssh://git@github.com:22/a.git user@example.org:8080/a https://x.example:8443/@a",
        "max_tokens=4096 tokenize(text) bypass=1234567",
        "docker run -u ada:staff -p 8080:80 x; curl -u $USER:$PASS http://x; mysql -P 3306 -u root -p; mkdir -p src/pages",
    ],
)  # fmt: skip
def test_honest_values_stay(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY", "apiKey", "user-password", "_authToken", "GITHUB_TOKEN", "aws_secret_access_key", "MYSQL_PWD", "dbPwd", "DB_PW", "PGPASS",
        "RABBITMQPASS", "DOCKER_AUTH_CONFIG", "AZURE_STORAGE_CONNECTION_STRING", "connectionString", "SLACK_WEBHOOK", "webhook_url", "JWT",
        "MNEMONIC", "wallet-seed-phrase",
    ],
)  # fmt: skip
def test_names_are_read_word_by_word(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PWD", "OLDPWD", "OLD_PWD", "INIT_CWD", "SSH_AUTH_SOCK", "MANPATH", "keyboard", "monkey", "compass", "bypass", "primary_key", "passes",
        "author", "connection", "webhook_port", "GIT_CONFIG",
    ],
)  # fmt: skip
def test_names_that_only_sound_alike_are_not(name: str) -> None:
    assert not is_secret_name(name)
    assert not is_credential(name, "value") or name == "primary_key"


@pytest.mark.parametrize(
    ("name", "credential"),
    [
        ("STRIPE_SK", True),
        ("COMPOSER_AUTH", True),
        ("BUNDLE_GEMS__EXAMPLE__COM", True),
        ("BUNDLE_BUILD__NOKOGIRI", False),
        ("BUNDLE_PATH", False),
        ("LABEL_SKI", False),
    ],
)
def test_variables_are_known_by_what_tools_name_credentials(name: str, *, credential: bool) -> None:
    assert is_credential(name, "value") is credential


def test_text_is_redacted_after_a_name_of_that_kind() -> None:
    assert redact_text("MYSQL_PWD=hunter22 PWD=/home/ada") == "MYSQL_PWD=[redacted] PWD=/home/ada"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"api_key": "abc"}, {"api_key": "[redacted]"}),
        ({"API-KEY": "abc"}, {"API-KEY": "[redacted]"}),
        ({"user_password": "abc"}, {"user_password": "[redacted]"}),
        ({"keyboard": "abc", "tokens_used": 3}, {"keyboard": "abc", "tokens_used": 3}),
        ({"password": "secret:mail"}, {"password": "secret:mail"}),
        ({"passwords": ["a", "b"]}, {"passwords": ["[redacted]", "[redacted]"]}),
        ({"url": "https://ada:hunter2@example.org/"}, {"url": "https://[redacted]@example.org/"}),
        ({"h": "Authorization: Bearer abcdefghijklmnop"}, {"h": "Authorization: [redacted]"}),
        ({"image_b64": "A" * 100}, {"image_b64": "[100 characters]"}),
        ([1, 2.5, None, True], [1, 2.5, None, True]),
    ],
)
def test_what_is_redacted(value: Any, shown: Any) -> None:
    assert redact_value(value) == shown


def test_long_texts_are_cut_behind_what_is_hidden() -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    shown = redact_value({"a": "x" * 1_990 + f" {secret} " + "y" * 5_000})["a"]
    assert "ghp_" not in shown
    assert "characters]" in shown


@pytest.mark.parametrize(
    "piece",
    [
        "token=",
        "eyJaaaaaaaaa.",
        "a://b:",
        "-----BEGIN PRIVATE KEY-----",
        "key",
        "Authorization:",
        "-",
        "token: ",
        "x=y ",
    ],
)
def test_redaction_is_linear(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        began = process_time()
        redact_text(text)
        return process_time() - began

    part = min(seconds(25_000) for _ in range(3))
    assert min(seconds(400_000) for _ in range(2)) < 64 * max(part, 0.003)


def test_the_log_holds_no_secrets() -> None:
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "failed: %s", ("https://ada:hunter2@x.example",), None)
    assert OneLineFormatter("%(message)s").format(record) == "failed: https://[redacted]@x.example"


def test_what_is_nested_without_end_is_cut() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert str(redact_value({"deep": nested})).count("…") == 1
