"""What must never happen unasked, whatever else is allowed: lost systems and homes, overwritten disks, foreign code, stolen credentials.

Looks at the likeliest reading of a command, through wrappers and nested code. It need not be complete to be safe: whatever is not proved to be
harmless is asked about anyway. This is the part that a yes cannot undo.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from handrail import Reason, paths
from handrail_cli.analysis import Codes
from handrail_cli.commandline import Analysis, Command, substitutions
from handrail_cli.producing import constant_output
from handrail_cli.wrappers import INTERPRETER, SHELLS, SPECIAL, WRAPPERS, Inside, inside, reads_code

MAX_NESTING = 6
MAX_FRAGMENTS = 100

BLOCK_DEVICE = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|md|dm-|loop|mtd|nbd|zd|rdisk|mem$|kmem$|port$|root$|block/|sr\d)"
)
VITAL_FILE = re.compile(
    r"/etc/(passwd|shadow|gshadow|group|sudoers|master\.passwd)-?|/etc/sudoers\.d/.*|/boot/.*|/proc/sysrq-trigger"
)
FETCHERS = frozenset((
    "curl", "wget", "fetch", "aria2c", "http", "https", "xh", "lwp-request", "GET", "lynx", "w3m", "links", "axel",
))  # fmt: skip
SENDERS = FETCHERS | frozenset(
    ("nc", "ncat", "netcat", "socat", "telnet", "scp", "sftp", "ftp", "tftp", "ssh", "rclone", "mail", "sendmail")
)
LISTENERS = frozenset(("nc", "ncat", "netcat", "socat", "telnet"))
NARROWING = re.compile(
    r"-(i?l?name|i?path|i?wholename|i?regex|[acm](min|time)|newer.*|size|empty|user|group|perm|uid|gid|links|inum|samefile|nouser)"
)
FORK_BOMB = re.compile(r"([\w:.@-]{1,40})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")
SPAWNS = re.compile(r"system|popen|subprocess|exec|spawn|child_process|`|qx|\brun\(", re.IGNORECASE)
REMOVES = re.compile(r"rmtree|removedirs|\brm(dir)?(Sync)?\s*\(|rm_rf|remove_tree|unlink|\bremove\s*\(|deltree")
SOCKETS = re.compile(r"TCPSocket|fsockopen|IO::Socket|net\.Socket|\bconnect\s*\(", re.IGNORECASE)
FETCHES = re.compile(
    r"urlopen|urllib|requests\.(get|post)|https?\.get|fetch\(|open-uri|LWP|file_get_contents\(\s*['\"]https?:",
    re.IGNORECASE,
)
EVALUATES = re.compile(r"\b(exec|eval|compile|Function|system|popen|instance_eval|loads)\b")
LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|`([^`]*)`")
ADDED_LITERALS = re.compile(r"(['\"])\s*\+\s*\1")


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a command runs: the folders that relative paths and `~` mean."""

    cwd: str
    home: str

    def place(self, text: str) -> str:
        """The absolute path without `.` and `..`; links are not followed."""
        if text.startswith("~"):
            user, _, rest = text[1:].partition("/")
            text = os.path.join(self.home if not user else f"{os.path.dirname(self.home)}/{user}", rest)
        placed = os.path.normpath(os.path.join(self.cwd, text))
        return placed[1:] if placed.startswith("//") else placed

    def vital(self, text: str) -> bool:
        """Whether a path names the root, a direct child of it, or a whole home, or all that is in one of them."""
        place = self.place(text)
        while (name := place.rpartition("/")[2]) and set(name) <= set("*.?[]!{},"):
            place = place.rpartition("/")[0] or "/"
        if place in ("/", self.home, "/root"):
            return True
        parent = place.rpartition("/")[0] or "/"
        if parent == "/":
            return place not in ("/tmp", "/workspace")
        return parent in ("/home", "/Users")


def catastrophes(
    analysis: Analysis, scene: Scene, *, variables: Mapping[str, str], codes: Codes, depth: int = 0
) -> Iterator[Reason]:
    """Every reason why the command line is one, with where it stands in the outermost text."""
    if not analysis.opaque and not analysis.functions and not any(map(_matters, analysis.commands)):
        return
    if ("(" in analysis.text and FORK_BOMB.search(analysis.text)) or _forks_without_end(analysis):
        yield Reason("fork_bomb", "it starts copies of itself without end")
    if any(reason.code in ("syntax", "word") for reason in analysis.opaque) and depth < MAX_NESTING:
        yield from _in_fragments(analysis.text, scene, variables=variables, codes=codes, depth=depth)
    judge = _Judge(analysis, scene, variables, codes, depth)
    for number, command in enumerate(analysis.commands):
        for reason in judge.command(number, command):
            yield replace(reason, span=command.span)
    yield from judge.flows()
    if depth < MAX_NESTING:
        for text in analysis.hidden:
            inner = codes.analyse(text, variables)
            yield from catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 2)


class _Judge:
    """Looks through the commands of one analysis in their order, following `cd`."""

    def __init__(
        self, analysis: Analysis, scene: Scene, variables: Mapping[str, str], codes: Codes, depth: int
    ) -> None:
        self.analysis = analysis
        self.scene = scene
        self.variables = variables
        self.codes = codes
        self.depth = depth
        self.fetched: set[str] = set()
        self.feeders = _feeders(analysis)
        # What stands behind plain wrappers, for each command.
        self.innermost = [_innermost(command.guess) for command in analysis.commands]
        self.names = [words[0].rpartition("/")[2] if words else "" for words in self.innermost]

    def command(self, number: int, command: Command) -> Iterator[Reason]:
        for redirect in command.redirects:
            if redirect.target is not None and redirect.operator not in ("<", "<&"):
                yield from self.target(redirect.target.guess)
        yield from self.words(command.guess, command, self.fed(number, command), self.depth)
        if command.guess[:1] == ("cd",) and len(command.guess) > 1:
            self.scene = replace(self.scene, cwd=self.scene.place(command.guess[1]))
        self.remember_fetched(command.guess)

    def words(self, argv: Sequence[str], command: Command, fed: str | None, depth: int) -> Iterator[Reason]:
        """The reasons against one command and against all that it runs in its turn."""
        if not argv or depth > MAX_NESTING:
            return
        name = argv[0].rpartition("/")[2]
        deadly = DEADLY.get(name) or (_format if name.startswith(("mkfs", "newfs")) else None)
        if deadly is not None and (reason := deadly(argv, self.scene)) is not None:
            yield reason
        if INTERPRETER.fullmatch(name):
            yield from self.program_text(argv, fed)
        yield from self.foreign(argv, command)
        found = inside(argv, fed=fed)
        for part in found:
            yield from self.part(part, command, depth + 1)
        if not found and name in WRAPPERS:
            # An option that is not known: the command begins at one of the later words.
            for at in range(1, len(argv)):
                yield from self.words(argv[at:], command, fed, MAX_NESTING)

    def part(self, part: Inside, command: Command, depth: int) -> Iterator[Reason]:
        if part.code is not None and depth <= MAX_NESTING:
            inner = self.codes.analyse(part.code, self.variables)
            yield from catastrophes(inner, self.scene, variables=self.variables, codes=self.codes, depth=depth)
        if part.argv:
            yield from self.words(part.argv, command, None, depth)

    def target(self, text: str) -> Iterator[Reason]:
        place = self.scene.place(text)
        if BLOCK_DEVICE.match(place):
            yield Reason("overwrites_device", f"it writes to the device {place}")
        elif VITAL_FILE.fullmatch(place):
            yield Reason("overwrites_system_file", f"it overwrites {place}")

    def foreign(self, argv: Sequence[str], command: Command) -> Iterator[Reason]:
        """Code from the network that is run at once, by a substitution or from a file it was just fetched to."""
        name = argv[0].rpartition("/")[2]
        runs = name in SHELLS or name in ("eval", "source", ".", "exec") or bool(INTERPRETER.fullmatch(name))
        if runs and any(self.fetches(n) for n in substitutions(command.words) if n < len(self.names)):
            yield Reason("network_code", "it runs code straight from the network")
        files = argv if runs else argv[:1]
        if self.fetched and any(self.scene.place(word) in self.fetched for word in files if not word.startswith("-")):
            yield Reason("network_code", "it runs a file that it has just fetched from the network")

    def program_text(self, argv: Sequence[str], fed: str | None) -> Iterator[Reason]:
        """Code for an interpreter: looked at for what its literals would do."""
        code = ADDED_LITERALS.sub("", "\n".join((*argv[1:], fed or "")))
        if EVALUATES.search(code) and FETCHES.search(code):
            yield Reason("network_code", "it runs code straight from the network")
        if SOCKETS.search(code) and SPAWNS.search(code):
            yield Reason("remote_shell", "it hands a shell to another machine")
        literals = [
            next((group for group in match.groups() if group is not None), "") for match in LITERAL.finditer(code)
        ]
        if REMOVES.search(code) and any(lit.startswith(("/", "~")) and self.deadly_literal(lit) for lit in literals):
            yield Reason("deletes_system", "it deletes the system or a home")
        if SPAWNS.search(code) and self.depth < MAX_NESTING:
            for literal in literals:
                inner = self.codes.analyse(literal, self.variables)
                yield from catastrophes(
                    inner, self.scene, variables=self.variables, codes=self.codes, depth=self.depth + 2
                )

    def deadly_literal(self, literal: str) -> bool:
        return self.scene.vital(literal) or VITAL_FILE.fullmatch(literal) is not None

    def flows(self) -> Iterator[Reason]:
        """What matters only together: who feeds whom."""
        for stages in self.analysis.pipelines:
            flat = [[n for n in stage if n < len(self.names)] for stage in stages]
            fetched = False
            for stage in flat:
                if fetched and any(_takes_code(self.innermost[n]) for n in stage):
                    yield Reason("network_code", "it runs code straight from the network")
                fetched = fetched or any(map(self.fetches, stage))
            together = [n for stage in flat for n in stage]
            listens = any(self.names[n] in LISTENERS for n in together)
            if listens and any(_takes_code(self.innermost[n]) for n in together):
                yield Reason("remote_shell", "it hands a shell to another machine")
        for number, command in enumerate(self.analysis.commands):
            yield from self.leaks(number, command)
        yield from self.sockets()

    def fetches(self, number: int) -> bool:
        """Whether the command gets something from the network."""
        if self.names[number] in FETCHERS:
            return True
        return any(map(_is_connection, _read_targets(self.analysis.commands[number])))

    def leaks(self, number: int, command: Command) -> Iterator[Reason]:
        """A credential that goes into a program that sends: as its operand, or fed to it."""
        if self.names[number] not in SENDERS:
            return
        commands = self.analysis.commands
        near = (*self.feeders.get(number, ()), number, *substitutions(command.words))
        words = (word for n in near if n < len(commands) for word in (*commands[n].guess, *_read_targets(commands[n])))
        if any(self.secret(word) for word in words):
            yield Reason("leaks_credentials", "it sends credentials to another machine")

    def secret(self, word: str) -> bool:
        text = re.sub(r"^(-{1,2}[\w-]+=|[\w.-]+=@?|@|file://|-[A-Za-z]@?)", "", word)
        return "/" in text + word and paths.secret(PurePosixPath(self.scene.place(text))) is not None

    def sockets(self) -> Iterator[Reason]:
        """A shell whose input or output is a connection."""
        for name, command in zip(self.names, self.analysis.commands, strict=True):
            targets = [r.target.guess for r in command.redirects if r.target is not None]
            if (name in SHELLS or name == "exec") and any(map(_is_connection, targets)):
                yield Reason("remote_shell", "it hands a shell to another machine")

    def fed(self, number: int, command: Command) -> str | None:
        for redirect in command.redirects:
            if redirect.body is not None:
                return redirect.body.guess
        earlier = self.feeders.get(number)
        return constant_output([self.analysis.commands[n] for n in earlier]) if earlier else None

    def remember_fetched(self, argv: Sequence[str]) -> None:
        words = _innermost(argv)
        if not words or words[0].rpartition("/")[2] not in FETCHERS:
            return
        for at, word in enumerate(words):
            into = word in ("--output", "--output-document") or re.fullmatch(r"-[a-zA-Z]*[oO]", word)
            if into and at + 1 < len(words):
                self.fetched.add(self.scene.place(words[at + 1]))
            if "://" in word:
                self.fetched.add(self.scene.place(word.rstrip("/").rpartition("/")[2] or "index.html"))


def _matters(command: Command) -> bool:
    """Whether a command may be a part of one: by its program, or by where it is redirected."""
    guess = command.guess
    if command.redirects or (guess and guess[0].rpartition("/")[2] in PROGRAMS):
        return True
    return bool(guess) and OTHERS.match(guess[0].rpartition("/")[2]) is not None


def _feeders(analysis: Analysis) -> Mapping[int, tuple[int, ...]]:
    """For each command of a pipeline, the commands of the stages before its own."""
    feeders: dict[int, tuple[int, ...]] = {}
    for stages in analysis.pipelines:
        before: tuple[int, ...] = ()
        for stage in stages:
            for number in stage:
                feeders.setdefault(number, before)
            before += stage
    return feeders


def _forks_without_end(analysis: Analysis) -> bool:
    return any(
        re.search(rf"(?<![\w-]){re.escape(name)}\s*(\|\s*{re.escape(name)}\s*)?&", body)
        for name, body in analysis.functions.items()
    )


def _in_fragments(
    text: str, scene: Scene, *, variables: Mapping[str, str], codes: Codes, depth: int
) -> Iterator[Reason]:
    """What could not be parsed whole, in the pieces that separators make of it, with braces expanded."""
    from handrail_cli.folding import braces

    fragments = dict.fromkeys(re.split(r"[;&|\n()`]+|\$\(", re.sub(r"\$IFS|\$\{IFS\}", " ", text)))
    for fragment in list(fragments)[:MAX_FRAGMENTS]:
        words = [part for word in fragment.split() for part in braces(word) or [word]]
        words = [word.strip("\"'\\{}") or "" for word in words]
        plain = " ".join(word for word in words if word)
        if plain and plain != text:
            inner = codes.analyse(plain, variables)
            yield from catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 2)


def _innermost(argv: Sequence[str]) -> Sequence[str]:
    """The words behind plain wrappers."""
    for _ in range(MAX_NESTING):
        parts = [part for part in inside(argv) if part.argv] if argv and argv[0].rpartition("/")[2] in WRAPPERS else []
        if not parts:
            return argv
        argv = parts[0].argv
    return argv


def _takes_code(words: Sequence[str]) -> bool:
    return reads_code(words) or (bool(words) and words[0] in ("source", ".") and "/dev/stdin" in words)


def _is_connection(target: str) -> bool:
    return target.startswith(("/dev/tcp/", "/dev/udp/"))


def _read_targets(command: Command) -> list[str]:
    return [r.target.guess for r in command.redirects if r.target is not None and r.operator in ("<", "<>")]


# What single programs do. Each takes the words and the scene and gives the reason, or None.


def _options(argv: Sequence[str]) -> tuple[str, list[str], list[str]]:
    """Short options as one string, long options, operands."""
    short, long, operands = "", list[str](), list[str]()
    words = list(argv[1:])
    for at, word in enumerate(words):
        if word == "--":
            operands.extend(words[at + 1 :])
            break
        if word.startswith("--"):
            long.append(word)
        elif word.startswith("-") and len(word) > 1:
            short += word[1:]
        else:
            operands.append(word)
    return short, long, operands


def _abbreviates(long: Sequence[str], name: str, *, least: int = 3) -> bool:
    return any(len(word) >= least + 2 and name.startswith(word[2:].partition("=")[0]) for word in long)


def _rm(argv: Sequence[str], scene: Scene) -> Reason | None:
    short, long, operands = _options(argv)
    if any(VITAL_FILE.fullmatch(scene.place(word)) for word in operands):
        return Reason("overwrites_system_file", "it deletes a file that the system cannot do without")
    if not ("r" in short.lower() or _abbreviates(long, "recursive", least=1)):
        return None
    return _vital_operand(operands, scene, "deletes")


def _change_mode(argv: Sequence[str], scene: Scene) -> Reason | None:
    short, long, operands = _options(argv)
    if not ("R" in short or _abbreviates(long, "recursive", least=3)):
        return None
    return _vital_operand(operands, scene, "changes the owner or mode of")


def _mv(argv: Sequence[str], scene: Scene) -> Reason | None:
    _, _, operands = _options(argv)
    return _vital_operand(operands[:-1], scene, "moves away") or _overwrites(argv, scene)


def _vital_operand(operands: Sequence[str], scene: Scene, does: str) -> Reason | None:
    hit = next((word for word in operands if scene.vital(word)), None)
    return None if hit is None else Reason("deletes_system", f"it {does} {scene.place(hit)!r} with all that is in it")


def _find(argv: Sequence[str], scene: Scene) -> Reason | None:
    starts: list[str] = []
    for word in argv[1:]:
        if word.startswith("-") and word not in ("-H", "-L", "-P"):
            break
        starts.append(word)
    if any(NARROWING.fullmatch(word) for word in argv):
        return None
    removes = "-delete" in argv or any(
        part.argv and _innermost(part.argv)[0].rpartition("/")[2] in ("rm", "shred", "unlink", "chmod", "chown")
        for part in inside(argv)
    )
    return _vital_operand(starts, scene, "deletes") if removes else None


def _rsync(argv: Sequence[str], scene: Scene) -> Reason | None:
    _, long, operands = _options(argv)
    deletes = any(word.startswith(("--del", "--remove-source")) for word in long)
    return _vital_operand(operands[-1:], scene, "empties") if deletes and len(operands) > 1 else None


def _overwrites(argv: Sequence[str], scene: Scene) -> Reason | None:
    """Programs that write their operands: any of them that is a disk or a vital file."""
    _, _, operands = _options(argv)
    written = (
        operands if argv[0].rpartition("/")[2] in ("tee", "shred", "truncate", "wipe", "srm", "sed") else operands[-1:]
    )
    return _overwritten(written, scene)


def _overwritten(texts: Sequence[str], scene: Scene) -> Reason | None:
    for place in map(scene.place, texts):
        if BLOCK_DEVICE.match(place):
            return Reason("overwrites_device", f"it writes to the device {place}")
        if VITAL_FILE.fullmatch(place):
            return Reason("overwrites_system_file", f"it overwrites {place}")
    return None


def _sed(argv: Sequence[str], scene: Scene) -> Reason | None:
    short, long, _ = _options(argv)
    return _overwrites(argv, scene) if "i" in short or _abbreviates(long, "in-place", least=2) else None


def _dd(argv: Sequence[str], scene: Scene) -> Reason | None:
    return _overwritten([word[3:] for word in argv if word.startswith("of=")], scene)


def _format(argv: Sequence[str], scene: Scene) -> Reason | None:
    if any(word in ("--help", "--version", "-V", "-n") for word in argv[1:]):
        return None
    return Reason("overwrites_device", "it destroys what is on a disk or volume") if len(argv) > 1 else None


def _when(*words: str) -> Callable[[Sequence[str], Scene], Reason | None]:
    """For tools of disks that destroy only by some of their commands or options."""

    def judge(argv: Sequence[str], scene: Scene) -> Reason | None:
        hit = any(word in words or (word[:1] == "-" and word.partition("=")[0] in words) for word in argv[1:])
        return _format(argv, scene) if hit else None

    return judge


def _fdisk(argv: Sequence[str], scene: Scene) -> Reason | None:
    short, long, operands = _options(argv)
    if "l" in short or "x" in short or "--list" in long:
        return None
    return _overwritten(operands, scene)


def _kill(argv: Sequence[str], scene: Scene) -> Reason | None:
    everyone = len(argv) > 2 and argv[-1] == "-1"
    return Reason("kills_everything", "it ends every process of the user") if everyone else None


def _netcat(argv: Sequence[str], scene: Scene) -> Reason | None:
    runs = any(re.fullmatch(r"-[a-zA-Z]*[ec]|--exec|--sh-exec|--lua-exec|--(sh-)?exec=.*", word) for word in argv[1:])
    return Reason("remote_shell", "it hands a program to another machine") if runs else None


def _socat(argv: Sequence[str], scene: Scene) -> Reason | None:
    runs = any(word.upper().startswith(("EXEC:", "SYSTEM:", "SHELL:")) for word in argv[1:])
    return Reason("remote_shell", "it hands a program to another machine") if runs else None


def _container(argv: Sequence[str], scene: Scene) -> Reason | None:
    if not {"run", "create", "exec"} & set(argv[1:4]):
        return None
    for at, word in enumerate(argv):
        if word in ("--privileged", "--privileged=true"):
            return Reason("host_from_container", "it gives a container power over this machine")
        value = argv[at + 1] if word in ("-v", "--volume", "--mount") and at + 1 < len(argv) else word
        if re.match(r"(-v|--volume=)?/:|(.*,)?(source|src)=/(,|$)|--mount=(.*,)?(source|src)=/(,|$)", value):
            return Reason("host_from_container", "it gives a container the whole disk of this machine")
    return None


DEADLY: Mapping[str, Callable[[Sequence[str], Scene], Reason | None]] = {
    "rm": _rm,
    "chmod": _change_mode,
    "chown": _change_mode,
    "chgrp": _change_mode,
    "setfacl": _change_mode,
    "mv": _mv,
    "find": _find,
    "rsync": _rsync,
    "cp": _overwrites,
    "install": _overwrites,
    "ln": _overwrites,
    "tee": _overwrites,
    "shred": _overwrites,
    "truncate": _overwrites,
    "wipe": _overwrites,
    "srm": _overwrites,
    "sed": _sed,
    "dd": _dd,
    "mke2fs": _format,
    "mkswap": _format,
    "wipefs": _when("-a", "--all", "-af", "-fa", "-o", "--offset"),
    "blkdiscard": _format,
    "cryptsetup": _when("luksFormat", "luksErase", "erase", "reencrypt"),
    "lvremove": _format,
    "vgremove": _format,
    "pvremove": _format,
    "zpool": _when("destroy", "labelclear"),
    "parted": _when("mklabel", "mktable", "mkpart", "rm", "resizepart"),
    "sgdisk": _when("-Z", "-z", "-o", "--zap-all", "--zap", "--clear", "-d", "--delete"),
    "sfdisk": _fdisk,
    "fdisk": _fdisk,
    "cfdisk": _fdisk,
    "gdisk": _fdisk,
    "badblocks": _when("-w", "-wsv", "-n"),
    "hdparm": _when("--security-erase", "--security-erase-enhanced", "--trim-sector-ranges"),
    "nvme": _when("format", "sanitize"),
    "mdadm": _when("--zero-superblock"),
    "kill": _kill,
    "nc": _netcat,
    "ncat": _netcat,
    "netcat": _netcat,
    "socat": _socat,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
}

# All programs that anything here speaks of.
PROGRAMS = frozenset((*DEADLY, *WRAPPERS, *SPECIAL, *SHELLS, *SENDERS, *LISTENERS, "exec", "eval", "source", ".", "cd"))
OTHERS = re.compile(rf"(?:{INTERPRETER.pattern})$|mkfs|newfs")
