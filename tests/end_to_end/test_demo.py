"""The demo's claims, checked from outside; and that the check would notice if any step did not do its job."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.end_to_end.demo_run import DEMO, ROOT, check, run_demo
from tests.end_to_end.mutate_demo import survivors


@pytest.mark.timeout(200)
def test_the_demo_does_what_it_says(tmp_path: Path) -> None:
    check(run_demo(DEMO / "desktop.yaml", tmp_path))


@pytest.mark.timeout(200)
def test_make_demo_prints_the_client_entry_and_ends_with_the_report() -> None:
    made = subprocess.run(
        ["make", "demo"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=True
    )
    entry, _ = json.JSONDecoder().raw_decode(made.stdout[made.stdout.index("{") :])
    (server,) = entry["mcpServers"].values()
    assert server["args"] == ["serve", "--desktop", "private"]
    assert Path(server["command"]).exists()
    last = Path(made.stdout.splitlines()[-1])
    assert last == ROOT / "build" / "demo" / "report.html"
    assert last.exists()


@pytest.mark.timeout(900)
def test_every_broken_step_is_noticed() -> None:
    assert survivors() == []
