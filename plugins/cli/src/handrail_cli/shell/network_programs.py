"""Commands that communicate with other machines: what they fetch, send, listen for, or run from there."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

from handrail_cli.shell.bash.syntax import SimpleCommand
from handrail_cli.shell.program_wrappers import SHELLS

FETCHERS = frozenset((
    "curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lwp-request", "GET", "lynx", "w3m", "links", "axel",
))  # fmt: skip
# What prints what another machine says.
ANSWERERS = frozenset(("dig", "host", "drill", "nslookup", "ssh", "rsh", "ftp"))
LISTENERS = frozenset(("nc", "ncat", "netcat", "socat", "telnet"))
SENDERS = FETCHERS | LISTENERS | frozenset((
    "scp", "sftp", "ftp", "tftp", "ssh", "rclone", "mail", "sendmail", "dig", "host", "nslookup", "drill", "ping", "mutt", "mailx", "gsutil", "aws",
    "az", "xhs", "httpie", "wput", "curlftpfs",
))  # fmt: skip
# What runs a program that it gets from an address.
RUNNERS = frozenset(("npx", "pnpx", "bunx", "deno", "bun", "uv", "pipx", "jbang"))
FETCHER_NAMES = "|".join(sorted(FETCHERS | ANSWERERS))
SHELL_NAMES = "|".join(sorted(SHELLS))
OUTPUT_OPTION = re.compile(r"--output|--output-document|-[a-zA-Z]*[oO]")
FETCH_PIPED_TO_SHELL = re.compile(
    rf"^(sudo\s+)?({SHELL_NAMES})\b[^;|&\n]*<\s*<\(\s*({FETCHER_NAMES})\b|^({FETCHER_NAMES})\b[^;|&\n]*>\s*>\(\s*({SHELL_NAMES})\b"
)


def is_socket_path(target: str) -> bool:
    """Return True if bash opens a connection for a redirection to this target."""
    return target.startswith(("/dev/tcp/", "/dev/udp/"))


def list_read_redirects(command: SimpleCommand) -> list[str]:
    """Return the files that a command reads by redirections."""
    return [r.target.guess for r in command.redirects if r.target is not None and r.operator in ("<", "<>")]


def fetches_from_network(words: Sequence[str], command: SimpleCommand) -> bool:
    """Return True if a command gets data from the network; `words` are those after its wrappers."""
    name = words[0].rpartition("/")[2] if words else ""
    if name in FETCHERS or name in ANSWERERS or (name == "openssl" and "s_client" in words):
        return True
    if name == "git" and any(word.startswith("--remote=") for word in words):
        return True
    return any(map(is_socket_path, list_read_redirects(command)))


def sends_to_network(words: Sequence[str]) -> bool:
    """Return True if a program sends the data it is given to another machine."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "rsync":
        return any(re.match(r"[^/]*:", word) for word in words[-1:])
    return name in SENDERS or (name == "gh" and "gist" in words) or (name == "openssl" and "s_client" in words)


def runs_from_url(argv: Sequence[str]) -> bool:
    """Return True for a runner whose program is an address, such as `deno run https://…`."""
    if argv[0].rpartition("/")[2] not in RUNNERS:
        return False
    words = [word for word in argv[1:] if not word.startswith("-")]
    words = words[1:] if words[:1] and words[0] in ("run", "x", "exec", "dlx") else words
    return bool(words) and re.match(r"https?://", words[0]) is not None


def is_variable_fetched(text: str, variable: str) -> bool:
    """Return True if a line sets a variable to data from the network."""
    pattern = rf"\b{variable}=\"?(\$\(|`)\s*({FETCHER_NAMES})\b|\b(read|mapfile|readarray)\b[^;|&\n<]*\b{variable}\b\s*<\s*<\(\s*({FETCHER_NAMES})\b"
    return re.search(pattern, text) is not None


def list_fetched_files(words: Sequence[str]) -> list[str]:
    """Return the files that a fetcher is instructed to write, or names after the address."""
    pairs = list(pairwise(words))
    folder = next((value for option, value in pairs if option in ("-P", "--directory-prefix", "--output-dir")), "")
    told = [value for option, value in pairs if OUTPUT_OPTION.fullmatch(option)]
    addresses = [word for word in words if "://" in word]
    return told + [os.path.join(folder, word.rstrip("/").rpartition("/")[2] or "index.html") for word in addresses]
