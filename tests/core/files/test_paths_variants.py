"""Paths written in other ways are the same paths: generated variants."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from handrail.api.verdict import Decision, EvaluationContext
from handrail.fs import path_resolution
from handrail.policy.path_rules import evaluate_reading, evaluate_writing, resolve_path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with links between them, up, down, out and in circles."""
    root = tmp_path_factory.mktemp("tree").resolve()
    (root / "a/b/c").mkdir(parents=True)
    (root / "d").mkdir()
    (root / "a/up").symlink_to("..")
    (root / "a/b/far").symlink_to(root / "d")
    (root / "d/in").symlink_to("../a/b")
    (root / "d/gone").symlink_to("nowhere/x")
    (root / "loop").symlink_to("loop")
    return root


NAMES = st.sampled_from(["a", "b", "c", "d", "up", "far", "in", "gone", "new", ".", "..", ""])


@given(st.lists(NAMES, max_size=8))
def test_a_path_leads_where_the_system_says(tree: Path, names: list[str]) -> None:
    text = "/".join(["a", *names])
    found = path_resolution.resolve_path(text, cwd=tree, home=tree)
    assert found.refused is None
    # Python's own takes `..` behind something missing as the system never would, and as we do.
    assert found.real == os.path.realpath(tree / text)
    assert found.linked == (found.real != os.path.normpath(tree / text))


FOLDERS = st.sampled_from(
    [".", "a/b", "d/in", "d/in/c", "a/up/d", "new", "d/gone", "loop", "a/../d", "/", "/proc", "/proc/self"]
)


@given(FOLDERS, st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=4), st.booleans(), st.booleans())
def test_a_path_leads_where_it_does_alone_after_others_were_looked_at(
    tree: Path, folder: str, paths_named: list[list[str]], last: bool, whole: bool
) -> None:
    seen: path_resolution.PathCache = {}
    named = ["root/x", "self/cwd", *map("/".join, paths_named)]
    for text in [os.path.join(tree / folder, name) for name in named] if whole else named:
        alone = path_resolution.resolve_path(text, cwd=tree / folder, home=tree, follow_last=last)
        assert path_resolution.resolve_path(text, cwd=tree / folder, home=tree, follow_last=last, seen=seen) == alone


def there(platform: str, home: str) -> EvaluationContext:
    work = Path(home + ("\\project" if platform == "win32" else "/project"))
    return EvaluationContext(work, Path(home), "user", {}, (work,), platform)


def decided(text: str, judging: EvaluationContext) -> list[Decision | None]:
    seen: path_resolution.PathCache = {}
    found = resolve_path(text, judging, seen)
    return [judge(text, found, judging, seen).suggestion for judge in (evaluate_reading, evaluate_writing)]


@st.composite
def posix_variants(draw: st.DrawFn, *targets: str) -> str:
    """A path below the home, from the folder `project` beside it, with steps that lead nowhere."""
    start = draw(st.sampled_from(["~", "/home/user", "..", "~user", "../../user", "//home//user", "/home/./x/../user"]))
    parts = [start]
    for name in draw(st.sampled_from(targets)).split("/"):
        parts += draw(st.sampled_from([[], ["."], [""], ["x", ".."], ["x", ".", "..", ""]]))
        parts.append(draw(st.sampled_from([name, name.upper(), name.title()])) if draw(st.booleans()) else name)
    return "/".join(parts)


@st.composite
def windows_variants(draw: st.DrawFn, *targets: str) -> str:
    starts = [
        "~",
        "C:\\Users\\user",
        "c:/users/USER",
        "..",
        "\\Users\\user",
        "\\\\?\\C:\\Users\\user",
        "//?/C:/Users/user",
    ]
    parts = [draw(st.sampled_from(starts))]
    for name in draw(st.sampled_from(targets)).split("/"):
        parts += draw(st.sampled_from([[], ["."], ["x", ".."]]))
        name = draw(st.sampled_from([name, name.upper(), name.swapcase()]))
        parts.append(name + draw(st.sampled_from(["", ".", " ", ". ."])))
    return draw(st.sampled_from(["\\", "/"])).join(parts)


SECRETS = (
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/google-chrome/Default/Cookies",
    ".gnupg/x",
    "a/.env",
    ".bash_history",
)
STARTUP = (".bashrc", ".config/autostart/x.desktop", ".zshenv", ".config/systemd/user/x.service")
WINDOWS_SECRETS = (".ssh/id_rsa", "AppData/Local/Google/Chrome/User Data/Default/Login Data", "AppData/Roaming/gnupg/x")
WINDOWS_STARTUP = (
    "Documents/PowerShell/profile.ps1",
    "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup/x.lnk",
)


@given(posix_variants(*SECRETS))
def test_no_way_to_write_a_secret_s_path_opens_it(text: str) -> None:
    assert decided(text, there("linux", "/home/user")) == [Decision.DENY, Decision.DENY]


@given(posix_variants(*STARTUP))
def test_no_way_to_write_a_start_up_file_s_path_lets_it_be_written(text: str) -> None:
    assert decided(text, there("linux", "/home/user"))[1] is Decision.DENY


@given(windows_variants(*WINDOWS_SECRETS))
def test_no_way_to_write_a_secret_s_path_on_windows_opens_it(text: str) -> None:
    assert decided(text, there("win32", "C:\\Users\\user")) == [Decision.DENY, Decision.DENY]


@given(windows_variants(*WINDOWS_STARTUP))
def test_no_way_to_write_a_start_up_file_s_path_on_windows_lets_it_be_written(text: str) -> None:
    assert decided(text, there("win32", "C:\\Users\\user"))[1] in (Decision.DENY, Decision.CONFIRM)


@given(st.text(max_size=40), st.sampled_from(["linux", "darwin", "win32"]))
def test_every_text_is_judged(text: str, platform: str) -> None:
    home = {"linux": "/home/user", "darwin": "/Users/user", "win32": "C:\\Users\\user"}[platform]
    assert all(decided(text, there(platform, home)))
