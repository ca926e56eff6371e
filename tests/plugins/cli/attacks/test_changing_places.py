"""Places that change under a session: files and folders swapped for links while tools read them, and a workspace that leads elsewhere."""

from __future__ import annotations

import anyio
from tests.plugins.cli.attacks.attacker import Attacker, open_attacker
from tests.plugins.cli.attacks.stage import Stage

# Swaps a file and a folder for links to the home, again and again; each is a plain one most of the time.
SWAPPING = """\
import os
os.makedirs("folder", exist_ok=True)
for name in ("file.txt", "folder/notes.md"):
    open(name, "w").write("fine")
while True:
    os.symlink("{home}/notes.md", "link")
    os.rename("link", "file.txt")
    open("plain", "w").write("fine")
    os.rename("plain", "file.txt")
    os.symlink("{home}", "link")
    os.rename("folder", "kept")
    os.rename("link", "folder")
    os.unlink("folder")
    os.rename("kept", "folder")
"""
ROUNDS = 40


async def test_no_tool_follows_a_link_that_is_there_for_a_moment(stage: Stage) -> None:
    (stage.workspace / "swap.py").write_text(stage.fill_in(SWAPPING))
    (stage.workspace / "Makefile").write_text("all:\n\tpython3 swap.py\n")
    calls = (
        ("execute_cli", {"command": "cat file.txt folder/notes.md; grep -rh zq file.txt folder"}),
        ("read_file", {"file_path": "file.txt"}),
        ("read_file", {"file_path": "folder/notes.md"}),
        ("read_many_files", {"paths": ["*.txt", "folder/*"]}),
        ("find_files", {"search_text": "zq"}),
        ("find_files", {"pattern": "*letter*"}),
        ("write_file", {"file_path": f"folder/{stage.mark}", "content": "x"}),
        ("edit_file", {"file_path": "folder/notes.md", "old_string": "fine", "new_string": "good"}),
    )
    async with open_attacker(stage, mode="accept_edits") as attacker:
        swapping = await attacker.call("make all", background=True)
        assert swapping["sandbox"] == "bubblewrap"
        with anyio.move_on_after(20):
            for _ in range(ROUNDS):
                for name, arguments in calls:
                    result = await attacker.session.call(name, arguments)
                    assert stage.leaked_labels(str(result)) == set(), f"{name} {arguments}"
        await attacker.session.call("stop_process", {"process_id": swapping["process_id"]})
    assert not (stage.home / stage.mark).exists()


async def test_a_workspace_that_became_a_link_is_not_followed(attacker: Attacker, stage: Stage) -> None:
    stage.workspace.rename(stage.outside / "moved")
    stage.workspace.symlink_to(stage.home)
    read = await attacker.session.call("execute_cli", {"command": "cat notes.md"})
    assert stage.leaked_labels(str(read)) == set()
    assert "link" in str(read["error"]["message"])
    for name, arguments in (
        ("execute_cli", {"command": f"touch {stage.mark}"}),
        ("read_file", {"file_path": "notes.md"}),
        ("write_file", {"file_path": stage.mark, "content": "x"}),
    ):
        result = await attacker.session.call(name, arguments)
        assert result.status in ("denied", "error"), name
    assert not (stage.home / stage.mark).exists()


async def test_a_sandboxed_command_cannot_lead_an_inner_workspace_elsewhere(stage: Stage) -> None:
    (stage.workspace / "apps/one").mkdir(parents=True)
    async with open_attacker(stage, workspace=[str(stage.workspace), str(stage.workspace / "apps/one")]) as attacker:
        await attacker.call("mv apps old; mkdir apps; ln -s ../.. apps/one")
        read = await attacker.call("cat apps/one/notes.md; cat apps/one/documents/letter.txt")
        assert stage.leaked_labels(str(read)) == set()
        await attacker.call(f"touch apps/one/{stage.mark}")
    assert attacker.tally.breaches == []
    assert not (stage.home / stage.mark).exists()
