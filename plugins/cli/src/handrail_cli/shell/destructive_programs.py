"""Programs that can ruin a machine, each with the words that make it do so.

They delete entire systems, overwrite disks or expose hosts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from handrail import Reason
from handrail_cli.programs.grammars.find_expression import is_search_narrowed
from handrail_cli.shell.program_wrappers import WRAPPERS, find_inner_commands

MAX_NESTING = 6
BLOCK_DEVICE = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|md|dm-|loop|mtd|nbd|zd|rdisk|mem$|kmem$|port$|root$|block/|sr\d)"
)
DRIVE_PATH = re.compile(r"([A-Za-z]):[\\/]*")
VITAL_FILE = re.compile(
    r"/etc/(passwd|shadow|gshadow|group|sudoers|master\.passwd)-?|/etc/sudoers\.d/.*|/boot/.*|/proc/sysrq-trigger"
)


@dataclass(frozen=True, slots=True)
class PathContext:
    r"""Directories that relative paths and `~` refer to in a command.

    With `drives`, `C:\x` is `/c/x`, as in shells on Windows.
    """

    cwd: str
    home: str
    drives: bool = False

    def place(self, text: str) -> str:
        """Return the absolute path without `.` and `..`; symlinks are not followed."""
        if self.drives:
            return PathContext(_to_unix_path(self.cwd), _to_unix_path(self.home)).place(_to_unix_path(text))
        if text.startswith("~"):
            user, _, rest = text[1:].partition("/")
            text = os.path.join(self.home if not user else f"{os.path.dirname(self.home)}/{user}", rest)
        placed = os.path.normpath(os.path.join(self.cwd, text))
        return placed[1:] if placed.startswith("//") else placed

    def vital(self, text: str) -> bool:
        """Return True if a path names the root, a direct child of it, an entire home, or everything in one of them."""
        place = self.place(text)
        while (name := place.rpartition("/")[2]) and set(name) <= set("*.?[]!{},"):
            place = place.rpartition("/")[0] or "/"
        home = self.place("~")
        if place in ("/", home, "/root"):
            return True
        parent = place.rpartition("/")[0] or "/"
        if parent == "/":
            return place not in ("/tmp", "/workspace")
        homes = home.rpartition("/")[0]
        return parent in ("/home", "/Users", homes) or place == homes


def _to_unix_path(text: str) -> str:
    drive = DRIVE_PATH.match(text)
    return text if drive is None else f"/{drive[1].lower()}/{text[drive.end() :]}".replace("\\", "/")


def unwrap_command(argv: Sequence[str]) -> Sequence[str]:
    """Return the words after plain wrappers."""
    for _ in range(MAX_NESTING):
        parts = (
            [part for part in find_inner_commands(argv) if part.argv]
            if argv and argv[0].rpartition("/")[2] in WRAPPERS
            else []
        )
        if not parts:
            return argv
        argv = parts[0].argv
    return argv


def _split_options(argv: Sequence[str]) -> tuple[str, list[str], list[str]]:
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


def _has_abbreviation(long: Sequence[str], name: str, *, least: int = 3) -> bool:
    return any(len(word) >= least + 2 and name.startswith(word[2:].partition("=")[0]) for word in long)


def _check_rm(argv: Sequence[str], scene: PathContext) -> Reason | None:
    short, long, operands = _split_options(argv)
    if any(VITAL_FILE.fullmatch(scene.place(word)) for word in operands):
        return Reason("overwrites_system_file", "it deletes a file that the system cannot do without")
    if not ("r" in short.lower() or _has_abbreviation(long, "recursive", least=1)):
        return None
    return _check_vital_operands(operands, scene, "deletes")


def _check_chmod(argv: Sequence[str], scene: PathContext) -> Reason | None:
    short, long, operands = _split_options(argv)
    if not ("R" in short or _has_abbreviation(long, "recursive", least=3)):
        return None
    return _check_vital_operands(operands, scene, "changes the owner or mode of")


def _check_mv(argv: Sequence[str], scene: PathContext) -> Reason | None:
    _, _, operands = _split_options(argv)
    return _check_vital_operands(operands[:-1], scene, "moves away") or _check_written_operands(argv, scene)


def _check_vital_operands(operands: Sequence[str], scene: PathContext, does: str) -> Reason | None:
    hit = next((word for word in operands if scene.vital(word)), None)
    return None if hit is None else Reason("deletes_system", f"it {does} {scene.place(hit)!r} with all that is in it")


def _check_find(argv: Sequence[str], scene: PathContext) -> Reason | None:
    starts: list[str] = []
    for word in argv[1:]:
        if word.startswith("-") and word not in ("-H", "-L", "-P"):
            break
        starts.append(word)
    if is_search_narrowed(argv):
        return None
    removes = "-delete" in argv or any(
        part.argv and unwrap_command(part.argv)[0].rpartition("/")[2] in ("rm", "shred", "unlink", "chmod", "chown")
        for part in find_inner_commands(argv)
    )
    return _check_vital_operands(starts, scene, "deletes") if removes else None


def check_listing(argv: Sequence[str], scene: PathContext) -> Reason | None:
    """Return the reason against a program that prints the names of everything in a place, for others to delete."""
    name = argv[0].rpartition("/")[2] if argv else ""
    if name not in ("find", "ls", "fd") or is_search_narrowed(argv):
        return None
    starts: list[str] = []
    for word in argv[1:]:
        if word.startswith("-") and name == "find" and word not in ("-H", "-L", "-P"):
            break
        starts.append(word)
    return _check_vital_operands([word for word in starts if not word.startswith("-")], scene, "deletes")


def _check_git_clean(argv: Sequence[str], scene: PathContext) -> Reason | None:
    """Return the reason against `git clean` if a home or the system is the work tree."""
    words = list(argv[1:])
    while len(words) > 1 and words[0] in ("-C", "-c"):
        scene = replace(scene, cwd=scene.place(words[1])) if words[0] == "-C" else scene
        words = words[2:]
    if words[:1] != ["clean"]:
        return None
    short, long, operands = _split_options(words)
    forced = (
        ("f" in short or _has_abbreviation(long, "force", least=1))
        and "n" not in short
        and not _has_abbreviation(long, "dry-run")
    )
    return _check_vital_operands(operands or ["."], scene, "cleans") if forced else None


def _check_archiver(argv: Sequence[str], scene: PathContext) -> Reason | None:
    """Return the reason against archivers that delete what they have packed, or write the archive to a device."""
    short, long, operands = _split_options(argv)
    moves = "m" in short if argv[0].endswith("zip") else "--remove-files" in long
    return (_check_vital_operands(operands, scene, "deletes") if moves else None) or _check_written_paths(
        operands[:2], scene
    )


def _check_rsync(argv: Sequence[str], scene: PathContext) -> Reason | None:
    _, long, operands = _split_options(argv)
    deletes = any(word.startswith(("--del", "--remove-source")) for word in long)
    return _check_vital_operands(operands[-1:], scene, "empties") if deletes and len(operands) > 1 else None


WRITES_ALL_OPERANDS = frozenset(("tee", "shred", "truncate", "wipe", "srm", "sed", "pv", "ddrescue"))


def _check_wipe(argv: Sequence[str], scene: PathContext) -> Reason | None:
    short, _, operands = _split_options(argv)
    return (
        _check_vital_operands(operands, scene, "deletes") if "r" in short.lower() else None
    ) or _check_written_operands(argv, scene)


def _check_download(argv: Sequence[str], scene: PathContext) -> Reason | None:
    outputs = [
        argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-o", "-O", "--output", "--output-document")
    ]
    return _check_written_paths(outputs, scene)


def _check_sort(argv: Sequence[str], scene: PathContext) -> Reason | None:
    outputs = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-o", "--output")]
    return _check_written_paths(
        [*outputs, *(word.partition("=")[2] for word in argv if word.startswith("--output="))], scene
    )


def _check_written_operands(argv: Sequence[str], scene: PathContext) -> Reason | None:
    """Return the reason against a program that writes to its operands, if one is a disk or a vital file."""
    _, _, operands = _split_options(argv)
    written = operands if argv[0].rpartition("/")[2] in WRITES_ALL_OPERANDS else operands[-1:]
    return _check_written_paths(written, scene)


def _check_written_paths(texts: Sequence[str], scene: PathContext) -> Reason | None:
    for place in map(scene.place, texts):
        if BLOCK_DEVICE.match(place):
            return Reason("overwrites_device", f"it writes to the device {place}")
        if VITAL_FILE.fullmatch(place):
            return Reason("overwrites_system_file", f"it overwrites {place}")
    return None


def _check_sed(argv: Sequence[str], scene: PathContext) -> Reason | None:
    short, long, _ = _split_options(argv)
    return (
        _check_written_operands(argv, scene) if "i" in short or _has_abbreviation(long, "in-place", least=2) else None
    )


def _check_dd(argv: Sequence[str], scene: PathContext) -> Reason | None:
    return _check_written_paths([word[3:] for word in argv if word.startswith("of=")], scene)


def check_formatting(argv: Sequence[str], scene: PathContext) -> Reason | None:
    """Return the reason against a command that creates or removes a file system."""
    if any(word in ("--help", "--version", "-V", "-n") for word in argv[1:]):
        return None
    return Reason("overwrites_device", "it destroys what is on a disk or volume") if len(argv) > 1 else None


def _create_disk_check(*words: str) -> Callable[[Sequence[str], PathContext], Reason | None]:
    """Return a check for disk tools that destroy only by some of their commands or options."""

    def judge(argv: Sequence[str], scene: PathContext) -> Reason | None:
        hit = any(word in words or (word[:1] == "-" and word.partition("=")[0] in words) for word in argv[1:])
        return check_formatting(argv, scene) if hit else None

    return judge


def _check_fdisk(argv: Sequence[str], scene: PathContext) -> Reason | None:
    short, long, operands = _split_options(argv)
    if "l" in short or "x" in short or "--list" in long:
        return None
    return _check_written_paths(operands, scene)


def _check_kill(argv: Sequence[str], scene: PathContext) -> Reason | None:
    everyone = len(argv) > 2 and argv[-1] == "-1"
    return Reason("kills_everything", "it ends every process of the user") if everyone else None


def _check_netcat(argv: Sequence[str], scene: PathContext) -> Reason | None:
    runs = any(re.fullmatch(r"-[a-zA-Z]*[ec]|--exec|--sh-exec|--lua-exec|--(sh-)?exec=.*", word) for word in argv[1:])
    return Reason("remote_shell", "it hands a program to another machine") if runs else None


def _check_socat(argv: Sequence[str], scene: PathContext) -> Reason | None:
    runs = any(word.upper().startswith(("EXEC:", "SYSTEM:", "SHELL:")) for word in argv[1:])
    return Reason("remote_shell", "it hands a program to another machine") if runs else None


def _check_container(argv: Sequence[str], scene: PathContext) -> Reason | None:
    if not {"run", "create", "exec"} & set(argv[1:4]):
        return None
    for at, word in enumerate(argv):
        if word in ("--privileged", "--privileged=true"):
            return Reason("host_from_container", "it gives a container power over this machine")
        value = argv[at + 1] if word in ("-v", "--volume", "--mount") and at + 1 < len(argv) else word
        if re.match(r"(-v|--volume=)?/:|(.*,)?(source|src)=/(,|$)|--mount=(.*,)?(source|src)=/(,|$)", value):
            return Reason("host_from_container", "it gives a container the whole disk of this machine")
    return None


DESTRUCTIVE: Mapping[str, Callable[[Sequence[str], PathContext], Reason | None]] = {
    "rm": _check_rm,
    "chmod": _check_chmod,
    "chown": _check_chmod,
    "chgrp": _check_chmod,
    "setfacl": _check_chmod,
    "mv": _check_mv,
    "find": _check_find,
    "rsync": _check_rsync,
    "cp": _check_written_operands,
    "install": _check_written_operands,
    "ln": _check_written_operands,
    "tee": _check_written_operands,
    "shred": _check_written_operands,
    "truncate": _check_written_operands,
    "wipe": _check_wipe,
    "srm": _check_wipe,
    "sed": _check_sed,
    "dd": _check_dd,
    "mke2fs": check_formatting,
    "mkswap": check_formatting,
    "wipefs": _create_disk_check("-a", "--all", "-af", "-fa", "-o", "--offset"),
    "blkdiscard": check_formatting,
    "cryptsetup": _create_disk_check("luksFormat", "luksErase", "erase", "reencrypt"),
    "lvremove": check_formatting,
    "vgremove": check_formatting,
    "pvremove": check_formatting,
    "zpool": _create_disk_check("destroy", "labelclear"),
    "parted": _create_disk_check("mklabel", "mktable", "mkpart", "rm", "resizepart"),
    "sgdisk": _create_disk_check("-Z", "-z", "-o", "--zap-all", "--zap", "--clear", "-d", "--delete"),
    "sfdisk": _check_fdisk,
    "fdisk": _check_fdisk,
    "cfdisk": _check_fdisk,
    "gdisk": _check_fdisk,
    "badblocks": _create_disk_check("-w", "-wsv", "-n"),
    "hdparm": _create_disk_check("--security-erase", "--security-erase-enhanced", "--trim-sector-ranges"),
    "nvme": _create_disk_check("format", "sanitize"),
    "mdadm": _create_disk_check("--zero-superblock", "--create", "-C"),
    "zfs": _create_disk_check("destroy", "rollback"),
    "debugfs": _create_disk_check("-w"),
    "sg_format": _create_disk_check("--format", "-F"),
    "dcfldd": _check_dd,
    "dc3dd": _check_dd,
    "ddrescue": _check_written_operands,
    "pv": _check_written_operands,
    "bmaptool": _check_written_operands,
    "mkntfs": check_formatting,
    "sort": _check_sort,
    **dict.fromkeys(("curl", "wget"), _check_download),
    "git": _check_git_clean,
    "tar": _check_archiver,
    "zip": _check_archiver,
    "kill": _check_kill,
    "nc": _check_netcat,
    "ncat": _check_netcat,
    "netcat": _check_netcat,
    "socat": _check_socat,
    "docker": _check_container,
    "podman": _check_container,
    "nerdctl": _check_container,
}
