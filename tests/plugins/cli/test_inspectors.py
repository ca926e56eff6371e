"""Commands that inspect the system on the host without approval."""

from __future__ import annotations

import os
from pathlib import Path

import handrail


async def test_a_program_that_only_filters_leaves_no_file_on_the_host(tmp_path: Path) -> None:
    """`sort` spills what does not fit into its memory, and leaves that behind when it is killed."""
    spills = tmp_path / "spills"
    spills.mkdir()
    environment = {**os.environ, "TMPDIR": str(spills)}
    before = set(os.listdir("/tmp"))
    environment["HANDRAIL_HOME"] = str(tmp_path / "handrail")
    async with handrail.open(plugins=["cli"], workspace=[spills], cwd=spills, environment=environment) as session:
        result = await session.call("execute_cli", {"command": "nproc; yes x | timeout -s KILL 0.4 sort -S 1M | wc -l"})
        small = await session.call("execute_cli", {"command": "uptime | sort | wc -l"})
    assert "sandbox" not in result
    assert not list(spills.iterdir())
    assert not [name for name in set(os.listdir("/tmp")) - before if name.startswith("sort")]
    assert small.ok, dict(small)
    assert small["stdout"].strip() == "1"
