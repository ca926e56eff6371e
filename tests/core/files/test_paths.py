"""Where paths lead and what kinds of place there are."""

from __future__ import annotations

import os
import socket
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from handrail.fs import path_resolution

HOME = PurePosixPath("/home/user")
WORK = HOME / "project"
WINDOWS_HOME = PureWindowsPath(r"C:\Users\user")


def led_to(text: str) -> str:
    return str(path_resolution.resolve_path(text, cwd=WORK, home=HOME).path)


def on_windows(text: str) -> path_resolution.ResolvedPath:
    return path_resolution.resolve_path(text, cwd=WINDOWS_HOME / "project", home=WINDOWS_HOME, platform="win32")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.txt", "/home/user/project/a.txt"),
        ("./a//b/../c", "/home/user/project/a/c"),
        ("../../..//..", "/"),
        ("~", "/home/user"),
        ("~/x", "/home/user/x"),
        ("~user/x", "/home/user/x"),
        ("~other/x", "/home/other/x"),
        ("a~b", "/home/user/project/a~b"),
        ("$HOME/x", "/home/user/project/$HOME/x"),
        ("/no/such/dir/../x", "/no/such/x"),
    ],
)
def test_a_path_is_taken_from_the_cwd_and_only_a_leading_tilde_is_expanded(text: str, expected: str) -> None:
    assert led_to(text) == expected


def test_links_are_followed_down_to_the_deepest_part_that_exists(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    work = tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (work / "link").symlink_to("../outside")
    found = path_resolution.resolve_path("link/new/file.txt", cwd=work, home=tmp_path)
    assert found.path == outside / "new/file.txt"
    assert found.named == work / "link/new/file.txt"
    assert found.linked
    assert not path_resolution.is_inside_roots(found.path, [work])


def test_dots_behind_a_link_climb_from_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    assert path_resolution.resolve_path("link/../x", cwd=tmp_path, home=tmp_path).path == tmp_path / "a/x"


def test_a_path_that_comes_back_from_something_missing_still_follows_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert path_resolution.resolve_path("missing/../link/x", cwd=tmp_path, home=tmp_path).path == tmp_path / "real/x"


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    found = path_resolution.resolve_path("a/x", cwd=tmp_path, home=tmp_path)
    assert found.refused is not None
    assert found.refused.code == "link_loop"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty_path"),
        ("x" * 5000, "long_path"),
        ("a\0b", "control_character"),
        ("a\x1b[2Jb", "control_character"),
        ("\ud800", "control_character"),
        ("\u202egpj.cod", "deceptive_path"),
        ("..\u2215..\u2215etc\u2215passwd", "deceptive_path"),
        ("..%2f..%2fetc", "encoded_path"),
        ("%2e%2e/x", "encoded_path"),
        ("/proc/self/root/etc/hosts", "magic_link"),
        ("/proc/1/cwd", "magic_link"),
        ("/proc/self/task/1/fd/3", "magic_link"),
        ("/dev/fd/0", "magic_link"),
        ("/dev/stdin", "magic_link"),
    ],
)
def test_paths_that_deceive_or_lead_through_a_process_are_refused(text: str, code: str) -> None:
    found = path_resolution.resolve_path(text, cwd=WORK, home=HOME)
    assert found.refused is not None
    assert found.refused.code == code


@pytest.mark.parametrize(
    "text", ["Ünïcode/漢字 😀.txt", "👨\u200d👩\u200d👧.png", "100%.txt", "a b", "%20x", "a..b", "...", "root/cwd"]
)
def test_honest_names_are_taken_as_they_are(text: str) -> None:
    found = path_resolution.resolve_path(text, cwd=WORK, home=HOME)
    assert (found.refused, found.doubtful) == (None, None)
    assert str(found.path) == f"{WORK}/{text}"


@pytest.mark.parametrize(
    "text", ["$HOME/a", "${X}/a", "%APPDATA%/a", "file:///etc/hosts", "-rf", "`id`", "a\u2215b", " a"]
)
def test_paths_that_somebody_else_would_expand_are_doubtful(text: str) -> None:
    assert path_resolution.resolve_path(text, cwd=WORK, home=HOME).doubtful is not None


def test_inside_does_not_take_a_longer_name_for_the_folder() -> None:
    assert path_resolution.is_inside_roots(Path("/home/user/project/a"), [WORK])
    assert path_resolution.is_inside_roots(Path("/home/user/project"), [WORK])
    assert not path_resolution.is_inside_roots(Path("/home/user/project2/a"), [WORK])
    assert path_resolution.is_inside_roots(Path("/etc"), [PurePosixPath("/")])


def test_a_root_that_is_a_link_holds_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    assert path_resolution.is_inside_roots(tmp_path / "real/x", [tmp_path / "root"])


@pytest.mark.parametrize(
    "path",
    [
        "/home/user/.ssh/id_rsa",
        "/home/user/.ssh",
        "/backup/home/user/.aws/credentials",
        "/home/user/project/.env",
        "/home/user/project/config/.env.production",
        "/home/user/.config/google-chrome/Default/Login Data",
        "/home/user/.bash_history",
        "/etc/shadow",
        "/etc/ssh/ssh_host_rsa_key",
        "/proc/1/environ",
        "/home/user/project/server.key",
        "/home/user/.SSH/config",
        "/home/user/\uff0essh/config",
        "/home/user/.s\u200csh/config",
        "/home/user/.config/BraveSoftware/Brave-Browser/Default/Cookies",
        "/home/user/.config/Bitwarden/data.json",
        "/home/user/.local/share/keyrings/login.keyring",
        "/home/user/vault.kdbx",
        "/home/user/.zsh_history",
        "/home/user/.local/share/fish/fish_history",
        "/Users/user/Library/Keychains/login.keychain-db",
        "/Users/user/Library/Application Support/Google/Chrome/Default/History",
        "/private/etc/master.passwd",
        "/tmp/ssh-Xa1/agent.4711",
        "/tmp/krb5cc_1000",
        "/home/user/.kube/config",
        "/home/user/project/terraform.tfstate",
        "/home/user/project/.env~",
        "/home/user/project/.env.bak",
        "/home/user/project/#.env#",
        "/home/user/project/.server.key.swp",
        "/home/user/project/prod.env",
        "/home/user/project/id_rsa.old",
    ],
)
def test_places_of_secrets_are_known_by_their_class(path: str) -> None:
    assert path_resolution.describe_secret(PurePosixPath(path)) is not None


@pytest.mark.parametrize(
    "path",
    [
        "/home/user/project/.env.example",
        "/home/user/project/example.env",
        "/home/user/project/main.py.bak",
        "/home/user/project/notes.md~",
        "/home/user/.ssh/id_rsa.pub",
        "/home/user/.ssh/known_hosts",
        "/home/user/project/environment.py",
        "/etc/passwd",
        "/etc/ssl/certs/ca-certificates.pem",
        "/proc/cpuinfo",
        "/home/user/project/src/ssh/keys.py",
        "/",
    ],
)
def test_ordinary_places_are_not_taken_for_secrets(path: str) -> None:
    assert path_resolution.describe_secret(PurePosixPath(path)) is None


@pytest.mark.parametrize(
    "path",
    [
        "/dev/sda",
        "/dev/mem",
        "/dev/tty",
        "/run/user/1000/keyring/control",
        "/var/run/docker.sock",
        "/tmp/.X11-unix/X0",
        "/dev/tcp/h/80",
    ],
)
def test_devices_and_session_sockets_are_known(path: str) -> None:
    assert path_resolution.describe_device(Path(path)) is not None


@pytest.mark.parametrize("path", ["/dev/null", "/dev/shm/x", "/home/user/dev/x", "/dev"])
def test_harmless_devices_are_no_devices(path: str) -> None:
    assert path_resolution.describe_device(Path(path)) is None


def test_a_socket_is_a_device(tmp_path: Path) -> None:
    # A socket's name may be at most 107 bytes, which a temporary folder's easily is not.
    where = os.open(tmp_path, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{where}/s")
        assert path_resolution.describe_device(tmp_path / "s") == "a socket"
    os.close(where)


@pytest.mark.parametrize(
    "path",
    [
        "/home/user/.bashrc",
        "/root/.profile",
        "/home/user/.config/autostart/x.desktop",
        "/etc/cron.d/x",
        "/usr/bin/ls",
        "/home/user/.gitconfig",
        "/home/user/.config/nushell/config.nu",
        "/home/user/.xonshrc",
        "/home/user/.zshrc.d/x",
        "/home/user/.config/systemd/user/x.service",
        "/root/.bash_profile",
        "/var/spool/cron/crontabs/user",
        "/home/user/.claude/settings.json",
    ],
)
def test_start_up_files_are_known(path: str) -> None:
    assert path_resolution.describe_startup(PurePosixPath(path), home=HOME) is not None


@pytest.mark.parametrize("path", ["/home/user/project/.bashrc", "/home/user/notes.txt", "/tmp/x", "/srv/etc/x"])
def test_the_same_names_elsewhere_are_not_start_up_files(path: str) -> None:
    assert path_resolution.describe_startup(PurePosixPath(path), home=HOME) is None


def test_files_that_a_program_obeys_are_known() -> None:
    assert path_resolution.describe_autorun(WORK / ".git/hooks/pre-commit") == "git"
    assert path_resolution.describe_autorun(WORK / ".envrc") == "direnv"
    for folder in (".hg", ".svn", ".jj", ".bzr"):
        assert path_resolution.describe_autorun(WORK / folder / "store/new") == "a version control system"
    for name in (".qwen/settings.json", "QWEN.md", "WARP.md", ".goosehints", ".aider.model.settings.yml"):
        assert path_resolution.describe_autorun(WORK / name) == "an agent"
    assert path_resolution.describe_autorun(WORK / ".vs/tasks.vs.json") == "an editor"
    assert path_resolution.describe_autorun(WORK / ".lfsconfig") == "git"
    assert path_resolution.describe_autorun(WORK / ".ansible.cfg") == "a program that connects"
    assert path_resolution.describe_autorun(WORK / "_vimrc") == "an editor"
    assert path_resolution.describe_autorun(WORK / ".GITHUB/Workflows/ci.yml") == "a builder"
    assert path_resolution.describe_autorun(WORK / "a/.vscode/tasks.json") == "an editor"
    assert path_resolution.describe_autorun(WORK / "x.pth") == "Python"
    assert path_resolution.describe_autorun(WORK / "src/git/hooks.py") is None


def test_a_folder_that_holds_a_protected_file_is_protected_too() -> None:
    policy = PurePosixPath("/home/user/.config/handrail/config.toml")
    assert path_resolution.is_protected_path(policy, [policy])
    assert path_resolution.is_protected_path(policy.parent, [policy])
    assert not path_resolution.is_protected_path(policy.with_name("other.toml"), [policy])


@pytest.mark.parametrize(
    "text", ["SRC\\Main.py", "src/main.py", "c:\\users\\USER\\PROJECT\\a.txt", "\\\\?\\C:\\Users\\user\\project\\a"]
)
def test_windows_paths_are_inside_whatever_their_case_and_separators(text: str) -> None:
    found = on_windows(text)
    assert (found.refused, found.doubtful) == (None, None)
    assert path_resolution.is_inside_roots(found.path, [WINDOWS_HOME / "project"])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("con", "device_name"),
        ("sub\\NUL.txt", "device_name"),
        ("com1 .x", "device_name"),
        ("aux.c", "device_name"),
        ("CLOCK$", "device_name"),
        ("\\??\\C:\\x", "device_path"),
        ("\\\\.\\C:", "device_path"),
        ("\\\\.\\pipe\\x", "device_path"),
        ("\\\\server\\PIPE\\x", "device_path"),
        ("\\\\?\\Volume{0}\\x", "device_path"),
        ("C:\\$MFT", "device_path"),
        (".git::$INDEX_ALLOCATION\\hooks", "data_stream"),
        ("\\\\.\\PhysicalDrive0", "device_path"),
        ("\\\\?\\GLOBALROOT\\Device\\x", "device_path"),
        ("a.txt::$DATA", "data_stream"),
        ("a.txt:hidden", "data_stream"),
    ],
)
def test_windows_devices_and_streams_are_refused(text: str, code: str) -> None:
    found = on_windows(text)
    assert found.refused is not None
    assert found.refused.code == code


@pytest.mark.parametrize(
    "text",
    [
        "PROJEC~1\\a.txt",
        "\\\\server\\share\\x",
        "C:x",
        "%USERPROFILE%\\x",
        "\\\\?\\UNC\\server\\share",
        "a\uff3cb",
        "\u00a5x",
        "//server/share",
    ],
)
def test_windows_names_that_stand_for_others_are_doubtful(text: str) -> None:
    assert on_windows(text).doubtful is not None


@pytest.mark.parametrize(
    "text",
    [
        "..\\.ssh\\id_rsa",
        "..\\.SSH.\\ID_RSA",
        ".env.",
        ".env ",
        "\\\\?\\C:\\Users\\user\\.ssh\\id_rsa",
        "C:\\Windows\\System32\\config\\SAM",
    ],
)
def test_windows_secrets_are_known_through_case_and_trailing_dots(text: str) -> None:
    assert path_resolution.describe_secret(on_windows(text).path) is not None
