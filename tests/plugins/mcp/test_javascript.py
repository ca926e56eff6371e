"""The same server for a client that is not in Python: the protocol's own SDK for JavaScript."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from .place import HANDRAIL, Place
from .test_web import ALICE, serving_web, with_tokens

CLIENT = Path(__file__).parents[2] / "node" / "handrail_client.mjs"


def run(node: Path, place: Place, *args: str) -> dict[str, Any]:
    """What the client saw."""
    environment = {**place.environment, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [str(node), str(CLIENT), *args], env=environment, cwd=place.folder, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def check(seen: dict[str, Any], place: Place) -> None:
    assert seen["server"]["name"] == "handrail"
    assert "see_tree" in seen["tools"]
    assert seen["scribbled"]["status"] == "success"
    assert len(seen["questions"]) == 1
    assert "may scribble run this command" in seen["questions"][0]
    assert seen["progress"] == sorted(set(seen["progress"]))
    assert len(seen["progress"]) >= 2
    assert seen["pictures"] == ["text", "image", "image", "audio"]
    assert [seen["envelope"][0], seen["envelope"][2]] == ["<untrusted ", "</untrusted"]
    assert not seen["structured"]
    assert [uri for uri in seen["resources"] if uri.startswith("handrail://artifacts/a")]
    assert seen["page"]["page"] == 2
    assert place.scribbled == ["hello"]
    # The call that was cancelled.
    assert not psutil.pid_exists(int((place.folder / "child.pid").read_text()))


@pytest.mark.usefixtures("node_modules")
def test_the_javascript_sdk_is_served_on_stdio(place: Place, node: Path):
    check(run(node, place, "stdio", str(HANDRAIL), "serve"), place)


@pytest.mark.usefixtures("node_modules")
def test_the_javascript_sdk_is_served_over_http(place: Place, node: Path):
    with serving_web(with_tokens(place)) as web:
        check(run(node, place, "http", web.url, ALICE), place)
