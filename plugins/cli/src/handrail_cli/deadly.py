"""Programs that can ruin a machine, each with what of its words says that it does: whole systems deleted, disks overwritten, hosts laid open."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from handrail import Reason
from handrail_cli.programs.grammars.finding import narrows
from handrail_cli.wrappers import WRAPPERS, inside

MAX_NESTING = 6
BLOCK_DEVICE = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper/|md|dm-|loop|mtd|nbd|zd|rdisk|mem$|kmem$|port$|root$|block/|sr\d)"
)
DRIVE = re.compile(r"([A-Za-z]):[\\/]*")
VITAL_FILE = re.compile(
    r"/etc/(passwd|shadow|gshadow|group|sudoers|master\.passwd)-?|/etc/sudoers\.d/.*|/boot/.*|/proc/sysrq-trigger"
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a command runs: the folders that relative paths and `~` mean. With `drives`, `C:\\x` is `/c/x`, as shells on Windows have it."""

    cwd: str
    home: str
    drives: bool = False

    def place(self, text: str) -> str:
        """The absolute path without `.` and `..`; links are not followed."""
        if self.drives:
            return Scene(_unix(self.cwd), _unix(self.home)).place(_unix(text))
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
        home = self.place("~")
        if place in ("/", home, "/root"):
            return True
        parent = place.rpartition("/")[0] or "/"
        if parent == "/":
            return place not in ("/tmp", "/workspace")
        homes = home.rpartition("/")[0]
        return parent in ("/home", "/Users", homes) or place == homes


def _unix(text: str) -> str:
    drive = DRIVE.match(text)
    return text if drive is None else f"/{drive[1].lower()}/{text[drive.end() :]}".replace("\\", "/")


def innermost(argv: Sequence[str]) -> Sequence[str]:
    """The words behind plain wrappers."""
    for _ in range(MAX_NESTING):
        parts = [part for part in inside(argv) if part.argv] if argv and argv[0].rpartition("/")[2] in WRAPPERS else []
        if not parts:
            return argv
        argv = parts[0].argv
    return argv


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
    if narrows(argv):
        return None
    removes = "-delete" in argv or any(
        part.argv and innermost(part.argv)[0].rpartition("/")[2] in ("rm", "shred", "unlink", "chmod", "chown")
        for part in inside(argv)
    )
    return _vital_operand(starts, scene, "deletes") if removes else None


def listed(argv: Sequence[str], scene: Scene) -> Reason | None:
    """What prints names of all that is in a place, for others to delete."""
    name = argv[0].rpartition("/")[2] if argv else ""
    if name not in ("find", "ls", "fd") or narrows(argv):
        return None
    starts: list[str] = []
    for word in argv[1:]:
        if word.startswith("-") and name == "find" and word not in ("-H", "-L", "-P"):
            break
        starts.append(word)
    return _vital_operand([word for word in starts if not word.startswith("-")], scene, "deletes")


def _git(argv: Sequence[str], scene: Scene) -> Reason | None:
    """`git clean` where a home or the system is the work tree."""
    words = list(argv[1:])
    while len(words) > 1 and words[0] in ("-C", "-c"):
        scene = replace(scene, cwd=scene.place(words[1])) if words[0] == "-C" else scene
        words = words[2:]
    if words[:1] != ["clean"]:
        return None
    short, long, operands = _options(words)
    forced = (
        ("f" in short or _abbreviates(long, "force", least=1))
        and "n" not in short
        and not _abbreviates(long, "dry-run")
    )
    return _vital_operand(operands or ["."], scene, "cleans") if forced else None


def _packs_away(argv: Sequence[str], scene: Scene) -> Reason | None:
    """Archivers that delete what they have packed, or write the archive to a device."""
    short, long, operands = _options(argv)
    moves = "m" in short if argv[0].endswith("zip") else "--remove-files" in long
    return (_vital_operand(operands, scene, "deletes") if moves else None) or _overwritten(operands[:2], scene)


def _rsync(argv: Sequence[str], scene: Scene) -> Reason | None:
    _, long, operands = _options(argv)
    deletes = any(word.startswith(("--del", "--remove-source")) for word in long)
    return _vital_operand(operands[-1:], scene, "empties") if deletes and len(operands) > 1 else None


WRITING_ALL = frozenset(("tee", "shred", "truncate", "wipe", "srm", "sed", "pv", "ddrescue"))


def _tree(argv: Sequence[str], scene: Scene) -> Reason | None:
    short, _, operands = _options(argv)
    return (_vital_operand(operands, scene, "deletes") if "r" in short.lower() else None) or _overwrites(argv, scene)


def _saves(argv: Sequence[str], scene: Scene) -> Reason | None:
    outputs = [
        argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-o", "-O", "--output", "--output-document")
    ]
    return _overwritten(outputs, scene)


def _sort(argv: Sequence[str], scene: Scene) -> Reason | None:
    outputs = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-o", "--output")]
    return _overwritten([*outputs, *(word.partition("=")[2] for word in argv if word.startswith("--output="))], scene)


def _overwrites(argv: Sequence[str], scene: Scene) -> Reason | None:
    """Programs that write their operands: any of them that is a disk or a vital file."""
    _, _, operands = _options(argv)
    written = operands if argv[0].rpartition("/")[2] in WRITING_ALL else operands[-1:]
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


def formats(argv: Sequence[str], scene: Scene) -> Reason | None:
    """What makes a file system, or takes one away."""
    if any(word in ("--help", "--version", "-V", "-n") for word in argv[1:]):
        return None
    return Reason("overwrites_device", "it destroys what is on a disk or volume") if len(argv) > 1 else None


def _when(*words: str) -> Callable[[Sequence[str], Scene], Reason | None]:
    """For tools of disks that destroy only by some of their commands or options."""

    def judge(argv: Sequence[str], scene: Scene) -> Reason | None:
        hit = any(word in words or (word[:1] == "-" and word.partition("=")[0] in words) for word in argv[1:])
        return formats(argv, scene) if hit else None

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
    "wipe": _tree,
    "srm": _tree,
    "sed": _sed,
    "dd": _dd,
    "mke2fs": formats,
    "mkswap": formats,
    "wipefs": _when("-a", "--all", "-af", "-fa", "-o", "--offset"),
    "blkdiscard": formats,
    "cryptsetup": _when("luksFormat", "luksErase", "erase", "reencrypt"),
    "lvremove": formats,
    "vgremove": formats,
    "pvremove": formats,
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
    "mdadm": _when("--zero-superblock", "--create", "-C"),
    "zfs": _when("destroy", "rollback"),
    "debugfs": _when("-w"),
    "sg_format": _when("--format", "-F"),
    "dcfldd": _dd,
    "dc3dd": _dd,
    "ddrescue": _overwrites,
    "pv": _overwrites,
    "bmaptool": _overwrites,
    "mkntfs": formats,
    "sort": _sort,
    **dict.fromkeys(("curl", "wget"), _saves),
    "git": _git,
    "tar": _packs_away,
    "zip": _packs_away,
    "kill": _kill,
    "nc": _netcat,
    "ncat": _netcat,
    "netcat": _netcat,
    "socat": _socat,
    "docker": _container,
    "podman": _container,
    "nerdctl": _container,
}
