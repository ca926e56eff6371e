"""What was judged is what is opened, whatever happens to names in between."""

from __future__ import annotations

import os
import stat
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from handrail import Denied, Downstream, HandrailError, NotFound
from handrail.fs import safe_open

ROUNDS = 1_500


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "work/sub/a.txt").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.txt").write_text("SECRET")
    return tmp_path / "work"


@contextmanager
def exchanged(place: Path, target: Path) -> Generator[None]:
    """All the time, `place` is now itself, now a link to `target`, now missing."""
    over = threading.Event()
    aside = place.with_name("aside")
    pauses = cycle((0, 0.0001, 0.0004, 0.002))

    def exchange() -> None:
        while not over.is_set():
            place.rename(aside)
            place.symlink_to(target)
            place.unlink()
            aside.rename(place)
            time.sleep(next(pauses))

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def tried(act: Callable[[], object]) -> list[object]:
    """What many tries gave: results and errors of ours."""
    found: list[object] = []
    for _ in range(ROUNDS):
        try:
            found.append(act())
        except HandrailError as exc:
            found.append(type(exc))
    return found


def content(path: Path) -> bytes:
    with safe_open.open_for_reading(path) as file:
        return os.read(file.fd, 100)


def test_a_file_is_read(work: Path) -> None:
    with safe_open.open_for_reading(work / "sub/a.txt") as file:
        assert (os.read(file.fd, 100), file.size, file.path) == (b"inside", 6, work / "sub/a.txt")


@pytest.mark.parametrize("name", ["link", "folder/a.txt"])
def test_nothing_is_opened_through_a_link(work: Path, name: str) -> None:
    (work / "link").symlink_to("sub/a.txt")
    (work / "folder").symlink_to("sub")
    for act in (content, lambda path: safe_open.replace_file(path, b"x")):
        with pytest.raises(Denied, match="has become a link"):
            act(work / name)
    assert (work / "sub/a.txt").read_text() == "inside"


@pytest.mark.parametrize(("name", "kind"), [("sub", "a folder"), ("pipe", "a pipe")])
def test_only_ordinary_files_are_opened_and_nothing_is_waited_for(work: Path, name: str, kind: str) -> None:
    os.mkfifo(work / "pipe")
    for act in (content, lambda path: safe_open.replace_file(path, b"x")):
        with pytest.raises(Downstream, match=kind):
            act(work / name)


@pytest.mark.parametrize("name", ["none", "none/a", "sub/a.txt/b"])
def test_what_is_not_there_is_said(work: Path, name: str) -> None:
    with pytest.raises(NotFound):
        content(work / name)


@pytest.mark.parametrize("name", ["../outside/a.txt", "sub/../../outside/a.txt"])
def test_a_path_that_is_not_real_is_refused(work: Path, name: str) -> None:
    for path in (work / name, Path(name)):
        with pytest.raises(Denied, match="not a path that was judged"):
            content(path)


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(work: Path) -> None:
    path = work / "sub/a.txt"
    path.chmod(0o751)
    before = path.stat().st_ino
    safe_open.replace_file(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)
    assert path.stat().st_ino != before
    assert os.listdir(work / "sub") == ["a.txt"]


def test_a_new_file_has_the_usual_mode_and_its_folders_are_made_when_wanted(work: Path) -> None:
    with pytest.raises(NotFound):
        safe_open.replace_file(work / "x/y/b.txt", b"new")
    safe_open.replace_file(work / "x/y/b.txt", b"new", create_dirs=True)
    (work / "plain").touch()
    assert (work / "x/y/b.txt").stat().st_mode == (work / "plain").stat().st_mode
    assert (work / "x/y/b.txt").read_bytes() == b"new"


def test_of_a_write_that_fails_no_folder_is_left(work: Path) -> None:
    gone = safe_open.ExpectedState((work / "sub/a.txt").stat())
    with pytest.raises(Downstream):
        safe_open.replace_file(work / "sub/x/y/b.txt", b"new", create_dirs=True, expected=gone)
    with pytest.raises(Downstream):
        safe_open.replace_file(work / "sub/x/y" / ("b" * 300), b"new", create_dirs=True)
    with pytest.raises(Downstream):
        safe_open.replace_file(work / "sub/x" / ("y" * 300) / "b", b"new", create_dirs=True)
    assert os.listdir(work / "sub") == ["a.txt"]


def test_without_overwrite_a_file_that_is_there_is_left_alone(work: Path) -> None:
    with pytest.raises(Downstream, match="is there already"):
        safe_open.replace_file(work / "sub/a.txt", b"new", overwrite=False)
    safe_open.replace_file(work / "sub/b.txt", b"new", overwrite=False)
    assert sorted(os.listdir(work / "sub")) == ["a.txt", "b.txt"]
    assert (work / "sub/a.txt").read_text() == "inside"


def test_files_links_and_folders_are_deleted_and_what_links_lead_to_is_not(work: Path) -> None:
    outside = work.parent / "outside"
    (work / "link").symlink_to(outside)
    (work / "sub/link").symlink_to(outside)
    safe_open.delete_path(work / "link")
    with pytest.raises(Downstream):
        safe_open.delete_path(work / "sub")
    safe_open.delete_path(work / "sub", recursive=True)
    assert os.listdir(work) == []
    assert os.listdir(outside) == ["a.txt"]


def test_a_folder_that_is_exchanged_for_a_link_while_it_is_read_never_shows_another_file(work: Path) -> None:
    with exchanged(work / "sub", work.parent / "outside"):
        found = tried(lambda: content(work / "sub/a.txt"))
    assert set(found) <= {b"inside", Denied, NotFound}
    assert b"inside" in found


def test_a_file_that_is_exchanged_for_a_link_while_it_is_read_never_shows_another_file(work: Path) -> None:
    with exchanged(work / "sub/a.txt", work.parent / "outside/a.txt"):
        found = tried(lambda: content(work / "sub/a.txt"))
    assert set(found) <= {b"inside", Denied, NotFound}
    assert b"inside" in found


def test_nothing_outside_is_written_or_deleted_while_folders_are_exchanged(work: Path) -> None:
    outside = work.parent / "outside"
    target = work / "sub/a.txt"
    with exchanged(work / "sub", outside):
        for act in (
            lambda: safe_open.replace_file(target, b"new"),
            lambda: safe_open.replace_file(work / "sub/b", b"new", overwrite=False),
            lambda: safe_open.delete_path(work / "sub/b"),
            lambda: safe_open.delete_path(target),
        ):
            assert set(tried(act)) - {Denied, NotFound, Downstream}
    assert os.listdir(outside) == ["a.txt"]
    assert (outside / "a.txt").read_text() == "SECRET"


def test_nothing_is_left_open(work: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for name in ("sub/a.txt", "none", "none/a", "sub"):
        for act in (content, lambda path: safe_open.replace_file(path, b"x"), safe_open.delete_path):
            with suppress(HandrailError):
                act(work / name)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/etc/x",
        "\\x",
        "..\\x",
        "C:\\x",
        "a:stream",
        "a/.. /x",
        "a./x",
        "a\0",
        "a\nb",
        "",
        ".",
        "//h/x",
    ],
)
def test_a_member_that_leads_out_of_the_folder_is_refused(work: Path, name: str) -> None:
    with pytest.raises(Denied, match="does not belong"):
        safe_open.resolve_archive_member(work, name)


@pytest.mark.parametrize("name", ["a", "a/b.txt", "./a/b", "a//b", "a\\b", "..a", "a b"])
def test_an_ordinary_member_goes_below_the_folder(work: Path, name: str) -> None:
    assert safe_open.resolve_archive_member(work, name).is_relative_to(work)


@given(st.text(alphabet="./\\ab: \0~", max_size=12))
def test_no_member_ever_leads_out(name: str) -> None:
    try:
        path = safe_open.resolve_archive_member(Path("/work"), name)
    except Denied:
        return
    assert os.path.normpath(path).startswith("/work/")


def test_an_archive_that_slips_writes_nothing_outside(work: Path) -> None:
    with zipfile.ZipFile(work / "a.zip", "w") as archive:
        archive.writestr("../outside/b", "x")
        archive.writestr("good/b", "x")
    with zipfile.ZipFile(work / "a.zip") as archive:
        for name in archive.namelist():
            try:
                safe_open.replace_file(
                    safe_open.resolve_archive_member(work, name), archive.read(name), create_dirs=True
                )
            except Denied:
                continue
    assert (work / "good/b").read_text() == "x"
    assert os.listdir(work.parent / "outside") == ["a.txt"]


def test_a_link_out_of_an_archive_is_not_written_through(work: Path) -> None:
    with tarfile.open(work / "a.tar", "w") as archive:
        link = tarfile.TarInfo("x")
        link.type, link.linkname = tarfile.SYMTYPE, str(work.parent / "outside")
        archive.addfile(link)
    with tarfile.open(work / "a.tar") as archive:
        # As a careless program does.
        os.symlink(archive.getmembers()[0].linkname, work / "x")
    with pytest.raises(Denied):
        safe_open.replace_file(safe_open.resolve_archive_member(work, "x/b"), b"x", create_dirs=True)
    assert os.listdir(work.parent / "outside") == ["a.txt"]


def test_a_file_that_arrives_piece_by_piece_is_there_when_it_is_whole(work: Path) -> None:
    with safe_open.open_new_file(work / "b.txt") as file:
        file.write(b"one ")
        file.settle()
        file.write(b"two")
        assert not (work / "b.txt").exists()
    assert (work / "b.txt").read_bytes() == b"one two"
    assert sorted(entry.name for entry in work.iterdir()) == ["b.txt", "sub"]


def test_a_file_that_does_not_arrive_leaves_what_was_there(work: Path) -> None:
    def broken_off() -> None:
        with safe_open.open_new_file(work / "sub/a.txt") as file:
            file.write(b"half")
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        broken_off()
    assert [(entry.name, entry.read_text()) for entry in (work / "sub").iterdir()] == [("a.txt", "inside")]


def test_a_file_that_arrives_takes_nothing_over_from_the_one_that_was_there(work: Path) -> None:
    (work / "sub/a.txt").chmod(0o600)
    os.link(work / "sub/a.txt", work / "other-name")
    with safe_open.open_new_file(work / "sub/a.txt") as file:
        file.write(b"new")
    usual = work / "usual"
    usual.touch()
    assert stat.S_IMODE((work / "sub/a.txt").stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    assert (work / "other-name").read_text() == "inside"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_no_file_that_arrives_takes_the_place_of_a_program_or_a_link(work: Path, when: str) -> None:
    place = work / "sub/a.txt"
    if when == "before":
        place.chmod(0o744)
        with pytest.raises(Downstream, match="may be executed"):
            safe_open.check_new_file_allowed(place)

    def exchanging() -> None:
        with safe_open.open_new_file(place) as file:
            file.write(b"new")
            place.unlink()
            place.symlink_to("../../outside/a.txt")

    with pytest.raises((Downstream, Denied)):
        exchanging()
    assert "new" not in (work.parent / "outside/a.txt").read_text()
    assert len(list((work / "sub").iterdir())) == 1
