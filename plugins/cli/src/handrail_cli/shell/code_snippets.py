"""Code for interpreters in a command line: what its words and literals say that it would do. It is not parsed, only looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from handrail import Reason
from handrail_cli.shell.destructive_programs import VITAL_FILE

SPAWNS = re.compile(
    r"system|p(roc_)?open|passthru|\|&|getline|subprocess|exec|spawn|child_process|`|qx|\brun\(", re.IGNORECASE
)
REMOVES = re.compile(r"rmtree|removedirs|\brm(dir)?(Sync)?\s*\(|rm_rf|remove_tree|unlink|\bremove\s*\(|deltree")
# A connection by the one name that opens it, and the names that do so together with one of a library for sockets: alone they open databases, too.
CONNECTS = re.compile(
    r"""(?ix) \bTCP(Socket|Server)\b | \bp?fsockopen\b | \bstream_socket_(client|server)\b | \bsocket_(connect|accept)\b | \bIO::Socket\b
      | \bSocket\.tcp\b | \bnew\s+(java\.net\.)?(Server)?Socket\b | \bnet\.(Socket|connect|createConnection|createServer)\b | \bgen_tcp\b
      | \bsocketConnection\b | \bopen_connection\b | /inet[46]?/(tcp|udp)/"""
)
SOCKET_LIBRARIES = re.compile(r"\bsocket\b|['\"](node:)?(net|tls)['\"]", re.IGNORECASE)
CONNECTING = re.compile(
    r"\b(connect|connect_ex|create_connection|createConnection|createServer|create_server|accept|fileno)\b"
)
STARTS_PROGRAMS = re.compile(
    r"""(?ix) \b(system|popen\d?|proc_open|passthru|(shell_)?exec|exec[lv]p?e?|execFile(Sync)?|execSync|p?open[23]|(posix_)?spawn(Sync|[lv]p?e?)?
      |subprocess|child_process|processbuilder|dup2?|qx)\b
      | \bos\.execute\b | \bos:cmd\b | \|& | \bgetline\b | ` """
)
FETCHES = re.compile(
    r"urlopen|urllib|requests\.(get|post)|https?\.get|fetch\(|open-uri|LWP|file_get_contents\(\s*['\"]https?:",
    re.IGNORECASE,
)
EVALUATES = re.compile(r"\b(exec|eval|compile|Function|system|popen|instance_eval|loads)\b")
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`")
LITERAL_TEXT = re.compile(r"['\"]([^'\"]*)['\"]")
FORKS = re.compile(
    r"\bfork\s+while\b|\bwhile\s*\(?\s*(1|[Tt]rue)\s*\)?\s*[:{]?\s*(os\.|pcntl_)?fork|\bloop\s*(\{|do)\s*fork|fork\(\)\s+for\s+\w+\s+in\s+iter"
)
SENDS = re.compile(
    r"urlopen|requests\.(post|put)|\bfetch\(|Net::HTTP|HTTP::Tiny|LWP|file_get_contents\(\s*['\"]https?:|http\.request|socket",
    re.IGNORECASE,
)
IMPORTS = re.compile(r"\b(include|require|require_once|import)\b\s*\(?\s*['\"]https?://")
HOMES = re.compile(
    r"rmtree\(\s*(pathlib\.)?Path\.home\(\)\s*\)|rm_rf\W+Dir\.home|rm(Sync)?\(\s*(require\(.os.\)|os)\.homedir\(\)"
)
WRITES_VITAL = re.compile(
    rf"(open|file_put_contents|writeFile(Sync)?|File\.write)\s*\(\s*['\"]({VITAL_FILE.pattern})['\"]\s*,\s*(mode=)?['\"](?!r['\"]|rb['\"])"
    rf"|Path\(\s*['\"]({VITAL_FILE.pattern})['\"]\s*\)\.write|open\s*\(?\s*[\w$ ]+,\s*['\"]\+?>+\s*['\", ]*({VITAL_FILE.pattern})"
)
ADDED_LITERALS = re.compile(r"(['\"])\s*\+\s*\1")


@dataclass(frozen=True)
class CodeSnippet:
    """Code in an arbitrary language."""

    code: str

    @classmethod
    def of(cls, text: str) -> CodeSnippet:
        """Create a snippet with concatenated literals joined into one."""
        return cls(ADDED_LITERALS.sub("", text))

    def reasons(self) -> Iterator[Reason]:
        """Yield the reasons that the code itself gives, regardless of where it runs."""
        code = self.code
        if FORKS.search(code):
            yield Reason("fork_bomb", "it starts copies of itself without end")
        if IMPORTS.search(code) or (EVALUATES.search(code) and FETCHES.search(code)):
            yield Reason("network_code", "it runs code straight from the network")
        if self.connects and STARTS_PROGRAMS.search(code):
            yield Reason("remote_shell", "it hands a shell to another machine")
        if HOMES.search(code) or WRITES_VITAL.search(code):
            yield Reason("deletes_system", "it deletes or overwrites the system or a home")

    @cached_property
    def spawns(self) -> bool:
        """True if it starts programs."""
        return SPAWNS.search(self.code) is not None

    @property
    def connects(self) -> bool:
        """True if it opens its own connection, to any destination."""
        code = self.code
        return CONNECTS.search(code) is not None or (
            SOCKET_LIBRARIES.search(code) is not None and CONNECTING.search(code) is not None
        )

    @property
    def sends(self) -> bool:
        """True if it sends data to another machine."""
        return SENDS.search(self.code) is not None

    @property
    def removes(self) -> bool:
        """True if it deletes files."""
        return REMOVES.search(self.code) is not None

    @cached_property
    def literals(self) -> list[str]:
        return [next((g for g in match.groups() if g is not None), "") for match in LITERAL.finditer(self.code)]

    def started(self) -> list[list[str]]:
        """Return the words of the programs that it may start: the literals of each list and of each call."""
        calls = [*re.findall(r"\[([^\[\]]*)\]", self.code), *re.findall(r"\(([^()]*)\)", self.code)]
        return [LITERAL_TEXT.findall(call) for call in calls]
