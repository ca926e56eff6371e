"""Reading several files by `read_many_files`."""

from __future__ import annotations

from pathlib import Path

import handrail
from handrail import Session


def write(folder: Path, **files: str) -> None:
    (folder / "src/deep").mkdir(parents=True)
    for name, content in files.items():
        (folder / name.replace("__", "/").replace("_py", ".py")).write_text(content)


async def test_files_and_patterns_are_read_once_each(session: Session, folder: Path) -> None:
    write(folder, a_py="a", src__b_py="b\nb2", src__c_py="c", src__deep__d_py="d")
    result = await session.call("read_many_files", {"paths": ["a.py", "src/*.py", "src/b.py"], "limit": 1})
    assert [(file["path"], file["stdout"]) for file in result["files"]] == [
        ("a.py", "     1\ta"),
        ("src/b.py", "     1\tb"),
        ("src/c.py", "     1\tc"),
    ]
    assert (result["skipped"], result["truncated"]) == ([], True)
    deep = await session.call("read_many_files", {"paths": ["**/d.py"]})
    assert [file["path"] for file in deep["files"]] == ["src/deep/d.py"]
    below = await session.call("read_many_files", {"paths": ["src/**"]})
    assert [file["path"] for file in below["files"]] == ["src/b.py", "src/c.py", "src/deep/d.py"]


async def test_what_cannot_be_shown_is_skipped_with_its_reason(session: Session, folder: Path) -> None:
    (folder / "ok").write_text("fine")
    (folder / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (folder / "bin").write_bytes(bytes(range(256)))
    result = await session.call("read_many_files", {"paths": ["ok", "p.png", "bin", "missing", "*.none"]})
    assert [file["path"] for file in result["files"]] == ["ok"]
    reasons = {skipped["path"]: skipped["reason"] for skipped in result["skipped"]}
    assert set(reasons) == {"p.png", "bin", "missing", "*.none"}
    assert "image/png" in reasons["p.png"]
    assert "binary" in reasons["bin"]
    assert "there is no file" in reasons["missing"]
    assert "no file fits" in reasons["*.none"]


async def test_too_much_is_left_out_and_said(session: Session, folder: Path) -> None:
    for number in range(6):
        (folder / f"{number}").write_text(("x" * 400 + "\n") * 100)
    result = await session.call("read_many_files", {"paths": ["*"]})
    assert len(result["files"]) + len(result["skipped"]) == 6
    assert result["truncated"]
    assert sum(len(file["stdout"]) for file in result["files"]) < 200_000


async def test_secrets_are_skipped(folder: Path) -> None:
    (folder / "id_rsa").write_text("KEY")
    (folder / "a").write_text("a")
    async with handrail.open(cwd=folder) as alone:
        result = await alone.call("read_many_files", {"paths": ["*"]})
    assert [file["path"] for file in result["files"]] == ["a"]
    assert "KEY" not in str(result)


async def test_a_pattern_that_fits_what_is_left_out_alone_says_so(folder: Path) -> None:
    (folder / ".env").write_text("TOKEN=x")
    (folder / ".hidden").write_text("x")
    async with handrail.open(cwd=folder) as alone:
        result = await alone.call("read_many_files", {"paths": [".[e]nv", ".hid*", "no*"]})
    reasons = {skipped["path"]: skipped["reason"] for skipped in result["skipped"]}
    assert "secrets" in reasons[".[e]nv"]
    assert "hidden" in reasons[".hid*"]
    assert reasons["no*"] == "no file fits it"
