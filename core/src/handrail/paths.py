"""Paths as calls name them: where they really lead, and what kind of place that is.

One resolver for evaluators and file tools, so that what was judged is what is opened. Nothing here opens a file; names and links are looked
at. Judging for another machine works too: what is not there is taken as it is written, and Windows paths are read by their grammar alone.
"""

from __future__ import annotations

import ntpath
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from handrail.judging import Reason

# What Linux allows, too.
MAX_LINKS = 40
MAX_LENGTH = 4096

# Text in which nothing is strange; most paths are of this kind.
PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+,=@-]{0,4000}")
# Shown text that is not what it looks like: direction overrides, invisible letters, tags.
DECEPTIVE = re.compile("[\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
# Look-alikes of separators occur in honest names; behind two dots they do not.
FALSE_SEPARATOR = re.compile("[\u2044\u2215\u29f8\uff0f\u2216\u29f5\u29f9\uff3c\u200e\u200f]")
FALSE_CLIMB = re.compile(r"[.\u2024\uff0e]{2}" + FALSE_SEPARATOR.pattern)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
ENCODED_CLIMB = re.compile(r"(\.|%2e){2}(%2f|%5c)|%2e(\.|%2e)[/\\]|%00|%25(2e|2f|5c)", re.IGNORECASE)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
VARIABLE = re.compile(r"\$\{?[A-Za-z_]|%[A-Za-z_][A-Za-z0-9_()]*%|\$\(|`")

# Links in /proc/<process> that stand for a place or a file of that process, not for their text.
MAGIC_LINKS = frozenset(("root", "cwd", "exe", "fd", "map_files", "ns"))

HARMLESS_DEVICES = frozenset(("null", "zero", "full", "random", "urandom"))
RESERVED_NAME = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])")
SHORT_NAME = re.compile(r"[^\\/.]{1,8}~\d{1,6}(\.[^\\/.]{0,3})?")


# What was found at absolute places: mode and, of a link, its target; None where nothing is. One judgement looks at each place once when it
# passes the same dictionary to all that it asks; nothing is kept longer than that.
Seen = dict[str, tuple[int, str | None] | None]


# A path, or the text of a POSIX path.
Place = PurePath | str


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a path of a call leads, as text and as a path.

    `path` is the real place: absolute, without links, `.` or `..`, as far down as it exists; what does not exist yet is kept as written.
    `named` is the same without following links. `refused`: no tool may follow such a path. `doubtful`: a person should look first.
    """

    real: str
    written: str
    refused: Reason | None = None
    doubtful: Reason | None = None
    kind: type[PurePath] = Path

    @property
    def path(self) -> PurePath:
        return self.kind(self.real)

    @property
    def named(self) -> PurePath:
        return self.kind(self.written)

    @property
    def linked(self) -> bool:
        """Whether it goes through a link."""
        return self.real != self.written and self.path != self.named


def resolve(text: str, *, cwd: PurePath, home: PurePath, platform: str = "linux", seen: Seen | None = None) -> Resolved:
    """Where `text` leads from `cwd`. `~` is `home` and `~name` the home beside it; nothing else is expanded or decoded.

    `platform` is that of the machine judged for (a value of `sys.platform`).
    """
    plain = PLAIN.fullmatch(text) is not None
    refused = None if plain else _deceptive(text)
    if platform == "win32":
        return _resolve_windows(text, cwd=cwd, home=home, refused=refused)
    start = _at_home(text, PurePosixPath(home)) if text.startswith("~") else text
    named = os.path.join(str(cwd), start)
    if refused is not None:
        bare = CONTROL.sub("?", os.path.join("/", named))
        return Resolved(bare, bare, refused, kind=PurePosixPath)
    real, refused = _follow(named, {} if seen is None else seen)
    return Resolved(real, os.path.normpath(named), refused, None if plain else _doubtful(text))


def inside(path: Place, roots: Iterable[PurePath], *, seen: Seen | None = None) -> bool:
    """Whether a resolved path is one of the roots or below one. Roots are resolved too."""
    if isinstance(path, PureWindowsPath):
        return any(path.is_relative_to(PureWindowsPath(ntpath.normpath(str(root)))) for root in roots)
    text = str(path)
    for root in map(str, roots):
        if _below(text, root):
            return True
        real, refused = _follow(root, {} if seen is None else seen)
        if refused is None and real != root and _below(text, real):
            return True
    return False


def secret(path: Place) -> str | None:
    """What secret a file or folder of that name keeps, in words; None when it looks like none."""
    parts = _lowered(path)
    if not parts:
        return None
    name = parts[-1]
    if name.endswith(PUBLIC_ENDINGS) or name in PUBLIC_NAMES:
        return None
    if not SECRET_STARTS.isdisjoint(parts) and (what := _secret_place(parts)) is not None:
        return what
    return _secret_name(name) or _secret_of_process(parts)


def device(path: Place, *, seen: Seen | None = None) -> str | None:
    """What a device, a socket or a part of the kernel it is; None for an ordinary file's place."""
    # Most paths are none of these, and are not taken apart for it.
    text = str(path).lower()
    parts = _lowered(path) if "dev" in text or "run" in text else ()
    if parts[:1] == ("dev",) and len(parts) > 1 and parts[1] != "shm":
        return None if len(parts) == 2 and parts[1] in HARMLESS_DEVICES else "a device"
    if parts[:2] == ("run", "user") and len(parts) > 3:
        return "a part of a running desktop session"
    found = _look(str(path), {} if seen is None else seen) if isinstance(path, Path | str) else None
    if found is None:
        return None
    if stat.S_ISSOCK(found[0]):
        return "a socket"
    return "a device" if stat.S_ISBLK(found[0]) else None


def kernel(path: PurePath) -> bool:
    """Whether it lies in /proc or /sys, where reading and writing are not what they are elsewhere."""
    return _lowered(path)[:1] in (("proc",), ("sys",))


def startup(path: PurePath, *, home: PurePath) -> str | None:
    """What would run it unasked, later, outside the workspace (a shell, a login, the system); None when nothing known would."""
    parts = _lowered(path)
    below = _below_home(parts, _lowered(home))
    if below:
        for length in range(1, min(LONGEST, len(below)) + 1):
            if (what := HOME_STARTUP.get(below[:length])) is not None:
                return what
    return next((what for start, what in SYSTEM_STARTUP.items() if parts[: len(start)] == start), None)


def autorun(path: PurePath) -> str | None:
    """What program runs such a file of a project without being asked; None when none does."""
    parts = _lowered(path)
    for start in range(len(parts)):
        for length in (1, 2):
            if (what := PROJECT_AUTORUN.get(parts[start : start + length])) is not None:
                return what
    return None


def protected(path: PurePath, places: Iterable[PurePath]) -> bool:
    """Whether it is one of the protected places, lies in one, or holds one."""
    return any(inside(path, (place,)) or PurePath(place).is_relative_to(path) for place in places)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _deceptive(text: str) -> Reason | None:
    if not text:
        return Reason("empty_path", "the path is empty")
    if len(text) > MAX_LENGTH:
        return Reason("long_path", f"the path is longer than {MAX_LENGTH} characters")
    if CONTROL.search(text):
        return Reason("control_character", "the path holds a control character")
    if text.isascii():
        return _encoded(text)
    if DECEPTIVE.search(text) or FALSE_CLIMB.search(text):
        return Reason("deceptive_path", "the path holds characters that make it look like another one")
    return _encoded(text)


def _encoded(text: str) -> Reason | None:
    if "%" in text and ENCODED_CLIMB.search(text):
        return Reason("encoded_path", "the path hides `..` or a separator in percent signs, which are never decoded")
    return None


def _doubtful(text: str) -> Reason | None:
    if SCHEME.match(text):
        return Reason("url_as_path", "an address stands where a path belongs; it is taken as a file name")
    if VARIABLE.search(text):
        return Reason("unexpanded_variable", "variables in paths are not expanded; it is taken as a file name")
    if text.startswith("-"):
        return Reason("option_as_path", "the path starts like an option")
    if not text.isascii() and FALSE_SEPARATOR.search(text):
        return Reason("false_separator", "the path holds a character that looks like a separator and is none")
    return None


def _at_home(text: str, home: PurePath) -> str:
    user, slash, rest = text[1:].partition("/")
    start = home if not user or user == home.name else home.parent / user
    return f"{start}{slash}{rest}"


def _look(at: str, seen: Seen) -> tuple[int, str | None] | None:
    """What is at an absolute place, from `seen` when it was looked at before."""
    if at not in seen:
        try:
            mode = os.lstat(at).st_mode
            seen[at] = mode, os.readlink(at) if stat.S_ISLNK(mode) else None
        except OSError:
            seen[at] = None
    return seen[at]


def _follow(path: str, seen: Seen) -> tuple[str, Reason | None]:
    """The real path of an absolute one, and why it must not be followed."""
    waiting = path.split("/")[::-1]
    real = ""
    links = 0
    there = True
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            # What is above something missing may be there again.
            there = True
            continue
        at = f"{real}/{name}"
        if real.startswith("/proc/") and name in MAGIC_LINKS and _of_process(real):
            return at, Reason("magic_link", f"{at!r} stands for a place of a running process")
        if not there:
            seen[at] = None
            real = at
            continue
        if at in ("/proc/self", "/proc/thread-self"):
            real = at
            continue
        found = seen[at] if at in seen else _look(at, seen)
        there = found is not None
        if found is None or (target := found[1]) is None:
            real = at
            continue
        links += 1
        if links > MAX_LINKS:
            return at, Reason("link_loop", "the path goes through more links than can be followed")
        if target.startswith("/"):
            real = ""
        waiting.extend(target.split("/")[::-1])
    return real or "/", None


def _of_process(folder: str) -> bool:
    parts = folder.split("/")[2:]
    return len(parts) == 1 or (len(parts) == 3 and parts[1] == "task")


def _resolve_windows(text: str, *, cwd: PurePath, home: PurePath, refused: Reason | None) -> Resolved:
    """By grammar alone: prefixes, separators, case, trailing dots, streams, device names and short names."""
    plain = text.replace("/", "\\")
    extended = re.match(r"\\\\[?.]\\(UNC\\)?", plain)
    if extended:
        plain = ("\\\\" if extended[1] else "") + plain[extended.end() :]
    if plain.startswith("~"):
        user, slash, rest = plain[1:].partition("\\")
        at = PureWindowsPath(home)
        plain = f"{at if not user or user == at.name else at.parent / user}{slash}{rest}"
    drive, tail = ntpath.splitdrive(ntpath.join(str(cwd), plain))
    names = [name if name in (".", "..") else name.rstrip(" .") for name in tail.split("\\")]
    named = str(PureWindowsPath(ntpath.normpath(drive + "\\".join(names))))
    refused = refused or _windows_device(plain, extended is not None, names)
    doubtful = _doubtful(text) or _windows_doubt(plain, drive, names)
    return Resolved(named, named, refused, doubtful, PureWindowsPath)


def _windows_device(plain: str, extended: bool, names: list[str]) -> Reason | None:
    if "globalroot" in plain.lower() or (extended and not re.match(r"[A-Za-z]:\\|\\\\", plain)):
        return Reason("device_path", "the path names a device of the kernel")
    if any(RESERVED_NAME.fullmatch(name.partition(".")[0].rstrip().lower()) for name in names):
        return Reason("device_name", "the path holds a reserved device name")
    if any(":" in name for name in names):
        return Reason("data_stream", "the path names an alternate data stream")
    return None


def _windows_doubt(plain: str, drive: str, names: list[str]) -> Reason | None:
    if any(SHORT_NAME.fullmatch(name) for name in names):
        return Reason("short_name", "the path holds a short (8.3) name, which stands for another one")
    if drive.startswith("\\\\"):
        return Reason("network_path", "the path is on another machine")
    if re.match(r"[A-Za-z]:(?!\\)", plain):
        return Reason("drive_relative", "the path is relative to a drive's own folder")
    return None


def _lowered(path: Place) -> tuple[str, ...]:
    """The names in a path, without what it starts at."""
    if isinstance(path, PureWindowsPath):
        return tuple(part.lower() for part in (path.parts[1:] if path.anchor else path.parts))
    return tuple([name for name in str(path).lower().split("/") if name not in ("", ".")])


def _secret_place(parts: tuple[str, ...]) -> str | None:
    for start in range(len(parts)):
        for length in range(1, min(LONGEST, len(parts) - start) + 1):
            if (what := SECRET_PLACES.get(parts[start : start + length])) is not None:
                return what
    return None


def _below_home(parts: tuple[str, ...], home: tuple[str, ...]) -> tuple[str, ...]:
    """The parts below a home: the person's own, another's, or root's."""
    if parts[: len(home)] == home:
        return parts[len(home) :]
    if parts[:1] == ("root",):
        return parts[1:]
    return parts[2:] if parts[:1] in (("home",), ("users",)) else ()


def _secret_name(name: str) -> str | None:
    if (what := SECRET_NAMES.get(name)) is not None:
        return what
    if name.startswith(".env.") and name.rpartition(".")[2] not in TEMPLATES:
        return "settings with secrets"
    if name.startswith(".") and name.endswith("_history"):
        return "a history of commands"
    if name.endswith(KEY_ENDINGS):
        return "a private key"
    if name.endswith(".pem") and not any(word in name for word in ("cert", "chain", "public", "ca-", "cacert")):
        return "a private key"
    if name.startswith("ssh_host_") and name.endswith("_key"):
        return "a private key"
    if name.endswith(".json") and name.startswith(("service-account", "service_account", "client_secret")):
        return "a cloud credential"
    return None


def _secret_of_process(parts: tuple[str, ...]) -> str | None:
    if parts[:1] != ("proc",) or len(parts) < 2:
        return None
    if parts[-1] in ("environ", "mem", "auxv", "kcore", "kmem"):
        return "the memory or environment of a process"
    return None


def _places(what: str, *paths: str) -> dict[tuple[str, ...], str]:
    return {tuple(path.split("/")): what for path in paths}


# Keys below are in lower case. A place counts wherever it stands in a path: copies of a home are as secret as the home.
SECRET_PLACES: dict[tuple[str, ...], str] = {
    **_places("private keys", ".ssh", ".gnupg", ".pki", "etc/ssl/private", "etc/ipsec.secrets", "etc/wireguard", "etc/krb5.keytab"),
    **_places("passwords", "etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-", "etc/master.passwd", "etc/security/opasswd"),
    **_places("passwords", "etc/networkmanager/system-connections", "etc/wpa_supplicant", "var/lib/networkmanager/secret_key"),
    **_places("rules of privilege", "etc/sudoers", "etc/sudoers.d"),
    **_places("secrets of a service", "run/secrets", "var/run/secrets", "run/credentials", "etc/credstore"),
    **_places("cloud credentials", ".aws", ".azure", ".config/gcloud", ".kube", ".oci", ".config/doctl", ".boto", ".s3cfg", ".fly"),
    **_places("cloud credentials", ".config/rclone", ".databrickscfg", ".config/heroku", ".terraform.d/credentials.tfrc.json", ".ibmcloud"),
    **_places("cloud credentials", ".config/op", ".vault-token", ".config/scw", ".config/hcloud", ".bluemix", ".config/configstore"),
    **_places("credentials", ".docker/config.json", ".dockercfg", ".config/containers/auth.json", ".config/gh", ".config/glab-cli"),
    **_places("credentials", ".config/hub", ".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    **_places("credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".composer/auth.json"),
    **_places("credentials", ".config/composer/auth.json", ".nuget/nuget.config", ".subversion/auth", ".config/filezilla", ".purple"),
    **_places("passwords", ".local/share/keyrings", ".password-store", ".local/share/kwalletd", ".config/keepassxc", "library/keychains"),
    **_places("a browser profile", ".mozilla", ".thunderbird", ".librewolf", ".waterfox", ".config/google-chrome", ".config/chromium"),
    **_places("a browser profile", ".config/google-chrome-beta", ".config/google-chrome-unstable", ".config/bravesoftware", ".config/vivaldi"),
    **_places("a browser profile", ".config/microsoft-edge", ".config/opera", "snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox"),
    **_places("a browser profile", ".var/app/com.google.chrome", ".var/app/org.chromium.chromium", "application support/google/chrome"),
    **_places("a browser profile", "application support/firefox", "application support/bravesoftware", "library/safari", "library/cookies"),
    **_places("a browser profile", "google/chrome/user data", "microsoft/edge/user data", "bravesoftware/brave-browser", "mozilla/firefox"),
    **_places("private messages", ".config/signal", ".config/slack", ".config/discord", "library/messages", "library/mail"),
    **_places("a history of commands", ".local/share/fish/fish_history", ".lesshst", ".viminfo"),
    **_places("passwords", "system32/config", "windows/repair", "windows/ntds", "microsoft/credentials", "microsoft/protect"),
    **_places("passwords", "microsoft/vault", "microsoft/crypto", "panther/unattend.xml", "sysprep/unattend.xml"),
    **_places("a history of commands", "powershell/psreadline"),
}  # fmt: skip
SECRET_STARTS = frozenset(place[0] for place in SECRET_PLACES)
LONGEST = 3

SECRET_NAMES: dict[str, str] = {
    **dict.fromkeys(("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "identity"), "a private key"),
    **dict.fromkeys((".env", ".dev.vars", ".secrets", ".htpasswd", "secrets.toml", "secrets.yml", "secrets.yaml"), "settings with secrets"),
    **dict.fromkeys((".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf"), "credentials"),
    **dict.fromkeys((".mylogin.cnf", ".fetchmailrc", ".msmtprc", ".smbcredentials", ".s3cfg", "kubeconfig"), "credentials"),
    **dict.fromkeys(("application_default_credentials.json", "wp-config.php", "credentials.json"), "credentials"),
    **dict.fromkeys(("logins.json", "key4.db", "key3.db", "login data", "cookies.sqlite", "web data"), "a browser profile"),
    **dict.fromkeys(("ntds.dit", "sam.hive"), "passwords"),
    **dict.fromkeys((".xauthority", ".iceauthority"), "the key of a display"),
}  # fmt: skip
KEY_ENDINGS = (".key", ".ppk", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".kdb", ".ovpn", ".agekey", ".p8")
PUBLIC_ENDINGS = (".pub",)
PUBLIC_NAMES = frozenset(("known_hosts", "known_hosts.old"))
TEMPLATES = frozenset(("example", "sample", "template", "dist", "defaults", "tmpl", "tpl", "schema"))

# Places in a home whose content runs at the next login, shell or start of a program.
HOME_STARTUP: dict[tuple[str, ...], str] = {
    **_places("the next shell", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    **_places("the next shell", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login"),
    **_places("the next shell", ".config/fish", ".config/powershell", "documents/powershell", "documents/windowspowershell", ".oh-my-zsh"),
    **_places("the next login", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".xserverrc", ".pam_environment", ".config/autostart"),
    **_places("the next login", ".config/systemd", ".config/environment.d", ".local/share/systemd", "library/launchagents", ".config/upstart"),
    **_places("the next login", ".config/autostart-scripts", ".config/plasma-workspace", ".config/openbox", ".config/i3", ".config/sway"),
    **_places("the desktop", ".local/share/applications", ".local/share/dbus-1", ".config/mimeapps.list", ".local/share/nautilus"),
    **_places("git", ".gitconfig", ".config/git"),
    **_places("an editor", ".vimrc", ".vim", ".gvimrc", ".exrc", ".nanorc", ".emacs", ".emacs.d", ".config/nvim", ".config/emacs"),
    **_places("an interpreter", ".pythonrc", ".pythonrc.py", ".pdbrc", ".irbrc", ".rprofile", ".gdbinit", ".lldbinit", ".perldb", ".psqlrc"),
    **_places("a terminal", ".tmux.conf", ".screenrc", ".config/tmux", ".config/kitty", ".config/alacritty", ".mailcap", ".lessfilter"),
    **_places("ssh", ".ssh", ".rhosts", ".shosts", ".forward", ".procmailrc"),
    **_places("a package manager", ".npmrc", ".config/pip", ".pip", ".pydistutils.cfg", ".cargo/config.toml", ".cargo/config", ".condarc"),
    **_places("an agent", ".claude", ".codex", ".gemini", ".cursor", ".continue"),
}  # fmt: skip

SYSTEM_STARTUP: dict[tuple[str, ...], str] = {
    **_places("the system", "etc", "boot", "lib/systemd", "usr/lib/systemd", "lib/modules", "usr/lib/modules", "efi"),
    **_places("the system's clock", "var/spool/cron", "var/spool/at", "var/spool/anacron"),
    **_places("whoever types that name", "bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"),
    **_places("every program", "lib", "lib64", "usr/lib", "usr/lib64", "usr/local/lib"),
    **_places("the next login", "library/launchagents", "library/launchdaemons", "system/library"),
    **_places("the next login", "programdata/microsoft/windows/start menu/programs/startup"),
}  # fmt: skip

# Files of a project that a program runs or obeys without being asked.
PROJECT_AUTORUN: dict[tuple[str, ...], str] = {
    **_places("git", ".git", ".gitmodules", ".husky", ".githooks", ".pre-commit-config.yaml"),
    **_places("direnv", ".envrc"),
    **_places("an editor", ".vscode", ".idea", ".vim", ".nvim.lua", ".exrc", ".devcontainer", ".dir-locals.el"),
    **_places("an agent", ".claude", ".codex", ".gemini", ".cursor", ".continue", ".mcp.json", "handrail.toml", ".windsurf", ".roo"),
    **_places("a shell", ".autoenv", ".autoenv.zsh", ".tool-versions", "mise.toml", ".mise.toml"),
    **_places("Python", "sitecustomize.py", "usercustomize.py"),
    **_places("a package manager", ".npmrc", ".yarnrc", ".yarnrc.yml", ".cargo/config.toml"),
    **_places("the next login", "programs/startup"),
}  # fmt: skip
