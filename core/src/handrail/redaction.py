"""Detection of secrets by name or form, and their redaction in records.

Used for the audit log, reports, event lines, the log, and the environment of commands. Hashes, ids and checksums are
not secrets and stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from handrail.json_types import BASE64_KEYS, is_mapping, is_sequence

__all__ = ["is_credential", "is_secret_name", "redact_text", "redact_value", "remove_credentials"]

MAX_TEXT_CHARS = 2_000
MAX_ITEMS = 50
MAX_INTEGER_BITS = 10_000
# Containers in one another that are looked into; no honest data has more.
MAX_REDACT_DEPTH = 100
REDACTED_TEXT = "[redacted]"

# Whole words of a name, however they are joined: `api-key`, `apiKey`, `API_KEY`. SSH_AUTH_SOCK has none of them.
SECRET_WORDS = frozenset((
    "token", "tokens", "secret", "secrets", "password", "passwords", "passwd", "passphrase", "pass", "apikey", "credential",
    "credentials", "creds", "cred", "bearer", "cookie", "cookies", "authorization", "pat", "dsn", "passcode", "passkey",
    "jwt", "mnemonic",
))  # fmt: skip
# Endings of words that are written without a separator: PGPASSWORD, `authtoken`, RABBITMQPASS. Some English words end alike.
SECRET_ENDINGS = ("password", "passwd", "passphrase", "pass", "token", "secret", "apikey", "privatekey", "secretkey")
ENDING_ALIKE = frozenset(("bypass", "compass", "encompass", "overpass", "surpass", "trespass", "underpass"))
# The last word or two of a name: SLACK_WEBHOOK, `connectionString`, DOCKER_AUTH_CONFIG, DB_PW.
SECRET_PHRASES = frozenset((
    "webhook", "webhooks", "webhook url", "webhook uri", "connection string", "connection strings", "conn string", "conn str", "auth config",
    "seed phrase", "recovery phrase", "recovery code", "recovery codes", "pw",
))  # fmt: skip
# `MYSQL_PWD` is a password, `PWD` a folder, and so are these before it.
FOLDER_WORDS = frozenset((
    "old", "last", "prev", "previous", "init", "initial", "start", "orig", "original", "logical", "physical", "current",
))  # fmt: skip
# A key alone may be that of a keyboard or a table; under these words before it, it opens something.
KEY_WORDS = frozenset(("key", "keys"))
OPENING_WORDS = frozenset((
    "api", "access", "private", "secret", "signing", "encryption", "master", "service", "account", "ssh", "ssl", "license", "auth", "client",
    "shared",
))  # fmt: skip
# Words with which variables of the environment end that hold credentials; elsewhere they are ordinary words.
ENVIRONMENT_ENDINGS = frozenset(("auth", "otp", "totp", "sk", "sas"))
# Bundler's credentials for a host, whose dots are two underscores: BUNDLE_GEMS__EXAMPLE__COM. Settings of gems and mirrors look alike.
_BUNDLER_HOST = re.compile(r"BUNDLE_(?!(?:BUILD|LOCAL|MIRROR|PLUGINS|DISABLE)_)[A-Z0-9_]*[A-Z0-9]__[A-Z0-9_]+")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

# How tokens of known services begin, and what follows.
_TOKEN_FORMATS: tuple[tuple[tuple[str, ...], str], ...] = (
    # GitHub, GitLab.
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"[A-Za-z0-9_]{16,255}"),
    (("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glft-", "glsoat-", "glagent-"), r"[A-Za-z0-9_-]{16,}"),
    # OpenAI, Anthropic, Stripe.
    (("sk-",), r"[A-Za-z0-9_-]{16,}"),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_"), r"[A-Za-z0-9]{16,}"),
    # Slack.
    (("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), r"[A-Za-z0-9-]{10,}"),
    # AWS.
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z0-9]{16}\b"),
    # Google.
    (("AIza",), r"[A-Za-z0-9_-]{30,}"),
    (("ya29.", "GOCSPX-"), r"[A-Za-z0-9_-]{20,}"),
    (("hf_", "npm_"), r"[A-Za-z0-9]{20,}"),
    (("pypi-", "hvs."), r"[A-Za-z0-9_-]{20,}"),
    (("dop_v1_", "shpat_"), r"[a-f0-9]{32,}"),
    (("SG.",), r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (("AGE-SECRET-KEY-1",), r"[A-Z0-9]{20,}"),
    # A JSON web token.
    (("eyJ",), r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)
_KNOWN_TOKENS = "|".join(f"(?:{'|'.join(map(re.escape, beginnings))}){rest}" for beginnings, rest in _TOKEN_FORMATS)
_AUTH_SCHEMES = ("bearer", "basic", "token", "digest", "negotiate", "apikey")
SECRET_VALUES = re.compile(
    rf"""
    (?P<block>-----BEGIN\ [A-Z0-9 ]{{0,40}}PRIVATE\ KEY(?:\ BLOCK)?-----(?:[^-]|-(?!----))*(?:-----END\ [A-Z0-9 ]{{0,40}}-----)?)
  | (?<![A-Za-z0-9])(?P<known>{_KNOWN_TOKENS})
  | (?P<userinfo>(?<=://)[^\s/:@'"]{{0,256}}:[^\s/@'"]{{1,1024}}(?=@))
  | (?P<scheme>\b(?:{"|".join(_AUTH_SCHEMES)})\ +)(?P<credential>[A-Za-z0-9+/=_.~-]{{16,4096}})
    """,
    re.VERBOSE,
)
# A user name of this length in an address is a token.
_TOKEN_AS_USER = re.compile(r"(?<=://)[^\s/:@'\"]{12,1024}(?=:?@)")
# One of these is in each that is no token.
_SECRET_SIGNS = ("-----BEGIN ", "://", *(f"{scheme} " for scheme in _AUTH_SCHEMES))
_TOKEN_PREFIXES = tuple(beginning for beginnings, _ in _TOKEN_FORMATS for beginning in beginnings)
# No token is shorter.
_MIN_TOKEN_CHARS = 15
_SECRET_HEADER = re.compile(
    r"""(?P<header>
        \b(?:proxy-)?authorization\s{0,9}[:=]\s{0,9} | \b(?:set-)?cookie\s{0,9}:\s{0,9} | \bx-[a-z-]{1,30}-(?:key|token)\s{0,9}:\s{0,9}
      )(?P<told>[^\r\n'"]{4,4096})""",
    re.VERBOSE | re.IGNORECASE,
)
# One of these is in each name that promises a secret.
_IN_NAMES = (
    "pass", "token", "secret", "key", "cred", "cookie", "bearer", "auth", "pat", "dsn", "pw", "jwt", "mnemonic", "webhook", "conn", "phrase",
    "recovery",
)  # fmt: skip
# `name = value`, `"name": "value"`, `--name value`: whether the name promises a secret is looked at afterwards.
_NAMED_VALUE = re.compile(
    rf"""(?<![A-Za-z0-9_.-])
        (?P<name>-{{0,2}}[A-Za-z0-9_.-]{{0,40}}(?:{"|".join(_IN_NAMES)})[A-Za-z0-9_.-]{{0,40}})
        (?P<between>["']?\s{{0,3}}(?:=>|[=:])\s{{0,3}}["']?|[ ](?=[^\s-]))
        (?P<value>[^\s"'&;,<>(){{}}\[\]|]{{4,4096}})""",
    re.VERBOSE | re.IGNORECASE,
)
# Options of some programs that take a password as it is: `curl -u name:…`, `mysql -p…`, `sshpass -p …`.
_OPTION_VALUE = re.compile(
    r"""(?P<option>
        \bcurl\b[^\n|;&]{0,200}?\s(?:-u|-U|--user|--proxy-user)[ =]?["']?[^\s:'"/]{1,80}: | \bsshpass\s{1,3}-p\s{0,3}["']?
      | \b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n|;&]{0,200}?\s-p["']?
      )(?P<given>[^\s"'|;&]{3,1024})""",
    re.VERBOSE,
)
# What stands for a secret, or where one is found.
STAND_IN = re.compile(
    r"\$|secret:|\*+$|x+$|\.{3}|/|~|(?:true|false|none|null|nil|undefined|redacted|changeme|example|your)\b|\d{1,6}$",
    re.IGNORECASE,
)
_PLAIN_WORD = re.compile(r"[a-z]+[.,:]?", re.IGNORECASE)


def is_secret_name(name: str) -> bool:
    """Return True if the words of a name indicate that its value is a secret."""
    return len(name) <= 256 and _is_secret_name_cached(name)


@lru_cache(maxsize=4_096)
def _is_secret_name_cached(name: str) -> bool:
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    if not SECRET_WORDS.isdisjoint(words) or any(map(_has_secret_ending, words)):
        return True
    if words and (words[-1] in SECRET_PHRASES or " ".join(words[-2:]) in SECRET_PHRASES):
        return True
    if len(words) > 1 and words[-1] == "pwd":
        return words[-2] not in FOLDER_WORDS
    return any(word in KEY_WORDS and before in OPENING_WORDS for before, word in pairwise(words))


def _has_secret_ending(word: str) -> bool:
    return word.endswith(SECRET_ENDINGS) and word not in ENDING_ALIKE


def is_credential(name: str, value: str) -> bool:
    """Return True if an environment variable holds a credential. There `KEY` alone is one, too, and `AUTH` or the like at the end."""
    words = name.lower().split("_")
    if is_secret_name(name) or not KEY_WORDS.isdisjoint(words) or words[-1] in ENVIRONMENT_ENDINGS:
        return True
    if _BUNDLER_HOST.fullmatch(name):
        return True
    return len(value) >= 12 and (SECRET_VALUES.search(value) or _TOKEN_AS_USER.search(value)) is not None


def remove_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the host's environment without credentials, for programs that Handrail starts."""
    kept = {name: value for name, value in environment.items() if not is_credential(name, value)}
    if folders := kept.get("LD_LIBRARY_PATH"):
        # An empty item means the working directory, where anybody may have put a library.
        kept["LD_LIBRARY_PATH"] = ":".join(filter(None, folders.split(":")))
    return kept


def redact_text(text: str) -> str:
    """Return the text with secrets replaced by `[redacted]`, in linear time."""
    if _may_contain_secret(text):
        text = SECRET_VALUES.sub(_redact_value_match, text)
    if ":" in text or "=" in text or "--" in text:
        folded = text.casefold()
        if "x-" in folded or "authorization" in folded or "cookie" in folded:
            text = _SECRET_HEADER.sub(_redact_header_match, text)
        if any(word in folded for word in _IN_NAMES):
            text = _NAMED_VALUE.sub(_redact_named_match, text)
    if " -" in text:
        text = _OPTION_VALUE.sub(_redact_option_match, text)
    return text


def _may_contain_secret(text: str) -> bool:
    """Return False if `SECRET_VALUES` finds nothing, as in most texts; faster than searching."""
    if any(sign in text for sign in _SECRET_SIGNS):
        return True
    long_words = " ".join([word for word in text.split() if len(word) >= _MIN_TOKEN_CHARS])
    return bool(long_words) and any(beginning in long_words for beginning in _TOKEN_PREFIXES)


def _redact_value_match(match: re.Match[str]) -> str:
    return f"{match['scheme']}{REDACTED_TEXT}" if match["scheme"] else REDACTED_TEXT


def _redact_header_match(match: re.Match[str]) -> str:
    return f"{match['header']}{REDACTED_TEXT}"


def _redact_option_match(match: re.Match[str]) -> str:
    return match[0] if STAND_IN.match(match["given"]) else f"{match['option']}{REDACTED_TEXT}"


def _redact_named_match(match: re.Match[str]) -> str:
    name, between, value = match["name"], match["between"], match["value"]
    # With nothing but a blank between them, only an option names what follows; and `password: required` is prose.
    named = between != " " or name.startswith("--")
    prose = between.strip() == ":" and _PLAIN_WORD.fullmatch(value)
    if not named or prose or not is_secret_name(name) or STAND_IN.match(value):
        return match[0]
    return f"{name}{between}{REDACTED_TEXT}"


def redact_value(value: Any, *, name: str = "", depth: int = MAX_REDACT_DEPTH, whole: bool = False) -> Any:
    """Return plain data with secrets redacted (by key name or form) and long texts truncated.

    Base64 pictures are replaced by their length.  Values nested deeper than `depth` are omitted. `whole`: do not
    truncate.
    """
    if not depth:
        return "…"
    if isinstance(value, str):
        if name in BASE64_KEYS:
            return f"[{len(value)} characters]"
        if name and is_secret_name(name) and not value.startswith("secret:"):
            return REDACTED_TEXT
        if whole:
            return redact_text(value)
        # Cut after what is hidden: half a secret no longer looks like one.
        shown = redact_text(value[: 2 * MAX_TEXT_CHARS])
        return shown if len(value) <= MAX_TEXT_CHARS else f"{shown[:MAX_TEXT_CHARS]}… [{len(value)} characters]"
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        # Python writes out no integer of more than 4,300 digits.
        return f"[an integer of {value.bit_length()} bits]"
    if isinstance(value, int | float) or value is None:
        return value
    if is_mapping(value):
        return {
            str(key): redact_value(item, name=str(key), depth=depth - 1, whole=whole) for key, item in value.items()
        }
    if is_sequence(value):
        shown = value if whole else value[:MAX_ITEMS]
        return [redact_value(item, name=name, depth=depth - 1, whole=whole) for item in shown] + (
            [f"… {len(value)} items"] if len(value) > len(shown) else []
        )
    return redact_text(str(value)[:MAX_TEXT_CHARS])
