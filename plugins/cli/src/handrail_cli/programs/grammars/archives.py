"""Archives: what is packed, where it is unpacked, and the options of tar that run programs."""

from __future__ import annotations

import re

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role

PLAIN_OPTION = re.compile(
    r"--(verbose|gzip|gunzip|ungzip|bzip2|xz|zstd|lzma|lzip|lzop|compress|auto-compress|no-auto-compress|numeric-owner|same-permissions|preserve-permissions|no-same-permissions"
    r"|same-owner|no-same-owner|keep-old-files|keep-newer-files|skip-old-files|overwrite|no-overwrite-dir|touch|to-stdout|dereference|hard-dereference|one-file-system|sparse|recursion|no-recursion"
    r"|exclude-vcs|exclude-vcs-ignores|exclude-backups|exclude-caches|wildcards|no-wildcards|anchored|no-anchored|ignore-case|totals|full-time|utc|block-number|null|no-null|verbatim-files-from|ignore-failed-read|acls|xattrs|selinux"
    r"|check-links|delay-directory-restore|atime-preserve|no-ignore-command-error|warning|occurrence|unlink-first|show-transformed-names|show-stored-names|quote-chars|seek|no-seek|read-full-records|ignore-zeros|check-device|no-check-device|backup|posix|old-archive|portability|help|version)"
)
VALUED_OPTION = re.compile(
    r"--(exclude|strip-components|transform|xform|owner|group|mode|mtime|sort|format|label|blocking-factor|record-size|level|owner-map|group-map|suffix|quoting-style|newer|newer-mtime|after-date|pax-option|xattrs-include|xattrs-exclude|hole-detection|sparse-version|tape-length|starting-file|exclude-tag|exclude-tag-all|exclude-tag-under|exclude-ignore|warning|backup|no-quote-chars|atime-preserve|checkpoint|totals)"
)
RUNNING_OPTIONS = frozenset((
    "checkpoint-action", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command",
))  # fmt: skip
LINK_OPTIONS = frozenset(("absolute-names", "keep-directory-symlink", "recursive-unlink"))
NAMING_OPTIONS = {
    "file": "archive",
    "directory": "folder",
    "files-from": "read",
    "exclude-from": "read",
    "listed-incremental": "write",
    "index-file": "write",
    "volno-file": "write",
}
MODE_OPTIONS = {
    "create": "c",
    "append": "r",
    "update": "u",
    "catenate": "A",
    "concatenate": "A",
    "extract": "x",
    "get": "x",
    "list": "t",
    "diff": "d",
    "compare": "d",
}
LETTERS_VALUED = {
    "f": "archive",
    "C": "folder",
    "T": "read",
    "X": "read",
    "b": "text",
    "g": "write",
    "K": "text",
    "N": "text",
    "V": "text",
    "H": "text",
    "L": "text",
}
# Long options that make a call do more; others may abbreviate them.
SENSITIVE_OPTIONS = ("delete", "remove-files", *RUNNING_OPTIONS, *LINK_OPTIONS, *NAMING_OPTIONS, *MODE_OPTIONS)
LETTERS_PLAIN = frozenset("zjJavhkmpOUWSsoplBiRnGM")


def take_tar(taking: ArgumentMatch, start: int) -> None:
    """Match `tar MODE…`: letters with or without a dash, long options, members and files."""
    words = taking.words
    found = TarCall(taking)
    at = start
    first = words[start].text if start < len(words) else None
    if first is not None and re.fullmatch(r"[A-Za-z0-9]+", first):
        at = found.letters(first, start, bundled=True)
    while at < len(words):
        text = words[at].text
        if text is None or (words[at].glob and text.startswith(("*", "?", "["))):
            taking.doubt(at)
            found.operands.append(at)
            at += 1
        elif text == "--":
            found.operands += range(at + 1, len(words))
            break
        elif text.startswith("--"):
            at = found.long(text, at)
        elif text.startswith("-") and len(text) > 1:
            at = found.letters(text[1:], at, bundled=False)
        else:
            found.operands.append(at)
            at += 1
    found.settle()


class TarCall:
    """One call of tar as it is taken apart."""

    def __init__(self, taking: ArgumentMatch) -> None:
        self.taking = taking
        self.mode: str | None = None
        self.archive: tuple[int, str | None] | None = None
        self.folder: tuple[int, str | None] | None = None
        self.operands: list[int] = []
        self.prints = False
        self.removes = False

    def letters(self, text: str, at: int, *, bundled: bool) -> int:
        """Match a cluster of letters and return the index of the next word.

        In the old style, without a dash, their values follow in order.
        """
        behind = at + 1
        for offset, letter in enumerate(text):
            if letter in "crutxAd":
                self.mode = letter
            elif letter in LETTERS_VALUED:
                rest = text[offset + 1 :]
                if not bundled and rest:
                    self.valued(LETTERS_VALUED[letter], at, rest)
                    return at + 1
                if behind >= len(self.taking.words):
                    self.taking.doubt(at)
                    return behind
                self.valued(LETTERS_VALUED[letter], behind, None)
                behind += 1
            elif letter in "IF":
                self.runs(f"-{letter}", at)
                behind += 1
            elif letter == "P":
                self.taking.worsen("dangerous", code="writes", why="tar keeps absolute names and links", at=at)
            elif letter not in LETTERS_PLAIN:
                self.taking.doubt(at)
            self.prints |= letter == "O"
        return behind

    def long(self, text: str, at: int) -> int:
        """Match one long option and return the index of the next word."""
        name, equals, value = text.partition("=")
        bare = name[2:]
        if bare in MODE_OPTIONS:
            self.mode = MODE_OPTIONS[bare]
        elif bare == "delete":
            self.mode = "r"
        elif bare == "remove-files":
            self.removes = True
        elif bare in RUNNING_OPTIONS:
            self.runs(name, at)
            return at + 1 if equals else at + 2
        elif bare in LINK_OPTIONS:
            self.taking.worsen("dangerous", code="writes", why=f"tar follows absolute names and links ({name})", at=at)
        elif (role := NAMING_OPTIONS.get(bare)) is not None:
            if equals:
                self.valued(role, at, value)
                return at + 1
            self.valued(role, at + 1, None)
            return at + 2
        elif VALUED_OPTION.fullmatch(name) and equals:
            return at + 1
        elif PLAIN_OPTION.fullmatch(name):
            self.prints |= bare == "to-stdout"
        elif VALUED_OPTION.fullmatch(name):
            return at + 2
        else:
            self.taking.doubt(at)
            meant = [full for full in SENSITIVE_OPTIONS if bare and full.startswith(bare)]
            behind = [self.long(f"--{full}{equals}{value}", at) for full in meant]
            return behind[0] if len(behind) == 1 else at + 1
        return at + 1

    def valued(self, role: str, at: int, value: str | None) -> None:
        """Record a value with its role."""
        if at >= len(self.taking.words):
            self.taking.doubt(len(self.taking.words) - 1)
        elif role == "archive":
            self.archive = (at, value)
        elif role == "folder":
            self.folder = (at, value)
        else:
            note_role(self.taking, role, at, value)
            if role == "read":
                self.taking.needs.add("reads_list")

    def runs(self, name: str, at: int) -> None:
        """Record an option that runs a program."""
        self.taking.worsen("dangerous", code="runs_program", why=f"{name} of tar runs a program", at=at)

    def settle(self) -> None:
        """Derive the effects on the archive, the directory and the operands from the mode."""
        taking = self.taking
        if self.archive is not None and re.match(
            r"[^/]+:", self.archive[1] or taking.words[self.archive[0]].text or ":"
        ):
            taking.worsen("dangerous", code="remote", why="the archive is on another machine", at=self.archive[0])
        packs = self.mode in ("c", "r", "u", "A")
        if packs or self.mode == "d":
            taking.needs.add("reads_list")
        if self.archive is not None and (self.archive[1] or taking.words[self.archive[0]].text) != "-":
            note_role(taking, "write" if packs else "read", *self.archive)
        if packs:
            if self.folder is not None:
                taking.name("folder", *self.folder)
            for at in self.operands:
                note_role(taking, "delete_tree" if self.removes else "read", at)
        elif self.mode == "x" and not self.prints:
            taking.worsen("effect")
            taking.name("dest", *(self.folder or (0, ".")))
        elif self.mode == "d" and self.folder is not None:
            taking.name("read", *self.folder)
        elif self.mode is None and (self.operands or self.archive) and taking.unknown is None:
            taking.doubt(0)


def check_unzip(taking: ArgumentMatch) -> None:
    """Note that `unzip` extracts into the working directory, unless given another or only asked to list."""
    taking.named = [one for one in taking.named if one.role != "name"]
    if not taking.harmless and not taking.given("-d"):
        taking.name("dest", 0, ".")


def check_patch(taking: ArgumentMatch) -> None:
    """Note that `patch` changes the files the patch names, unless told which file or only to check."""
    if not taking.harmless and not any(one.role == "write" for one in taking.named):
        taking.name("dest", 0, ".")


def check_compressor(taking: ArgumentMatch) -> None:
    """Note that compressed files are replaced, unless written to standard output; `zcat` and the like only print."""
    if not taking.operands and not taking.given("-o", "--output"):
        taking.kind = "reads"
    for at in taking.operands:
        if taking.words[at].text == "-" and not taking.reasons:
            taking.named = [one for one in taking.named if one.word_index != at]
    if taking.given("-c", "--stdout", "--to-stdout") and not taking.given(
        "-o", "--output", "-r", "--recursive", "--rm"
    ):
        taking.kind = "reads"


def take_seven_zip(taking: ArgumentMatch, start: int) -> None:
    """Match `7z COMMAND [-SWITCH…] ARCHIVE [FILE…]`."""
    words = taking.words
    name = words[start].text if start < len(words) else None
    if name is None or taking.path not in ("7z", "7za", "7zr", "7zz", "rar", "unrar", "unar"):
        taking.doubt(min(start, len(words) - 1))
        return
    archive = True
    looks = name in ("l", "t", "i", "lb", "lt", "v", "vb", "vt", "p", "h")
    if looks:
        taking.kind = "reads"
    elif name not in ("a", "x", "e", "u", "d", "rn"):
        taking.doubt(start)
    folder = False
    for at in range(start + 1, len(words)):
        text = words[at].text
        if text is None:
            taking.doubt(at)
        elif (out := re.fullmatch(r"-o(.+)", text)) is not None:
            note_role(taking, "dest", at, out[1])
            folder = True
        elif re.fullmatch(
            r"-(y|r|slt|ba|bd|bs\w+|t\w+|m\w+(=\w+)?|aoa|aos|aou|x(r[0-]?)?!.*|x[^@!]*|p.*|ep1?|s|inul|c-|o[+-])", text
        ):
            continue
        elif text.startswith("-"):
            taking.doubt(at)
        elif archive:
            note_role(taking, "write" if name in ("a", "u", "d", "rn") else "read", at)
            archive = False
        elif text.startswith("@"):
            taking.needs.add("reads_list")
            note_role(taking, "read", at, text[1:])
        elif name in ("a", "u"):
            note_role(taking, "read", at)
        elif name in ("x", "e") and taking.path in ("rar", "unrar"):
            note_role(taking, "dest", at)
            folder = True
    if name in ("x", "e") and not folder:
        taking.name("dest", 0, ".")


def check_cpio(taking: ArgumentMatch) -> None:
    """Unpacking writes where it is; a list only looks."""
    if taking.given("-t", "--list") and not taking.given("-p", "--pass-through", "-o", "--create"):
        taking.kind = "reads"
        taking.named = []
    elif taking.given("-i", "--extract", "-r"):
        taking.name("dest", 0, ".")
    if taking.given("-p", "--pass-through", "-o", "--create"):
        taking.needs.add("reads_list")
    for at in taking.operands:
        if taking.given("-p", "--pass-through"):
            note_role(taking, "dest", at)
