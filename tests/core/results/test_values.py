"""Small values: bags, artifacts, errors, and the public names."""

from __future__ import annotations

import importlib
import os
import stat
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import handrail
from handrail import Bag, HandrailError, Invocation, Read, ToolResult, Write, errors as tree, tool
from handrail.api.result import RESULT_STATUSES
from handrail.artifacts.store import ArtifactStore

DOCS = Path(__file__).parents[3] / "docs"
paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join)


def test_a_bag_is_read_and_written_by_path() -> None:
    bag = Bag({"mail": {"folder": "inbox"}})
    bag.set("mail.seen", [1])
    assert bag.get("mail") == {"folder": "inbox", "seen": [1]}
    assert bag.get("mail.nothing.deeper", "default") == "default"
    assert list(bag.keys()) == ["mail.folder", "mail.seen"]
    with pytest.raises(ValueError, match=r"goes through 'folder'"):
        bag.set("mail.folder.name", 1)


def test_a_call_names_every_file_it_touches() -> None:
    @tool(effects=[Read("file", arg="sources"), Write("file", arg="target"), Read("screen")])
    async def join(sources: list[str], target: Path | None = None) -> None:
        """Join files."""

    for args, touched in [
        ({"sources": ["a", "b"], "target": "c"}, ["a", "b", "c"]),
        ({"sources": []}, []),
    ]:
        call = Invocation(join, args, join.validate(args), "c1")
        assert [location.path for location in call.locations()] == touched


def test_an_invocation_never_changes_and_equals_one_that_says_the_same() -> None:
    @tool(name="plain")
    async def plain(n: int) -> None:
        """Do nothing."""

    call = Invocation(plain, {"n": 1}, plain.validate({"n": 1}), "c1")
    with pytest.raises(FrozenInstanceError):
        call.args = {"n": 2}  # type: ignore[misc] # what is tested
    assert replace(call) == call
    assert (replace(call, call_id="c2").call_id, call.edited({"n": 2}, by="a person").before) == ("c2", call)


def test_a_bag_gives_copies_and_keeps_copies() -> None:
    given_values = {"list": [1]}
    bag = Bag(given_values)
    given_values["list"].append(2)
    bag.get("list").append(3)
    kept = [4]
    bag.set("other", kept)
    kept.append(5)
    assert (bag.get("list"), bag.get("other")) == ([1], [4])


@given(st.lists(st.tuples(paths, st.integers()), max_size=8))
def test_what_was_put_into_a_bag_last_is_there(puts: list[tuple[str, int]]) -> None:
    bag = Bag()
    for path, value in puts:
        try:
            bag.set(path, value)
        except ValueError:
            continue
        assert bag.get(path) == value
    assert all(bag.get(path) is not None for path in bag.keys())  # noqa: SIM118 # a bag is no mapping


def test_artifacts_are_files_of_their_owner_with_handles_in_order(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path / "held")
    assert not (tmp_path / "held").exists()
    first, second = artifacts.create(), artifacts.create("json")
    first.write("zwölf".encode())
    artifacts.close()
    assert first.path.read_text() == "zwölf"
    assert stat.S_IMODE(first.path.stat().st_mode) == 0o600
    assert first.wire() == {"id": "a1", "kind": "text", "path": str(first.path), "bytes": 6, "lines": 1}
    assert [artifact.id for artifact in artifacts] == ["a1", "a2"]
    assert len(artifacts) == 2
    assert second.kind == "json"


def kinds(kind: type[HandrailError] = HandrailError) -> list[type[HandrailError]]:
    own = [sub for sub in kind.__subclasses__() if sub.__module__ == tree.__name__]
    return [kind, *(deeper for sub in own for deeper in kinds(sub))]


@pytest.mark.parametrize("kind", kinds())
def test_every_error_makes_a_whole_result(kind: type[HandrailError]) -> None:
    result = ToolResult.failure(kind("it went wrong", hint="mend it", details={"n": 1}), title="Try")
    assert result.status in RESULT_STATUSES - {"success"}
    assert result["error"] == {
        "code": kind.code,
        "message": "it went wrong; mend it",
        "retryable": kind.retryable,
        "details": {"n": 1},
    }
    assert result["voice_message"].startswith("Try ")
    assert kind.__doc__


def test_every_public_name_is_there() -> None:
    for name in handrail.__all__:
        assert getattr(handrail, name) is not None
    with pytest.raises(AttributeError, match="nothing_like_it"):
        handrail.nothing_like_it  # noqa: B018
    testing = importlib.import_module("handrail.testing")
    assert all(hasattr(testing, name) for name in testing.__all__)


@pytest.mark.parametrize("name", handrail.__all__)
def test_every_public_name_is_told_of_on_a_page(name: str) -> None:
    pages = [(DOCS / page).read_text(encoding="utf-8").splitlines() for page in ("names.md", "error-codes.md")]
    assert any(f"{mark} {name}" in page for page in pages for mark in ("##", "###"))


@pytest.mark.parametrize("module", ["handrail", "handrail.plugins.hookspecs"])
def test_what_every_plugin_imports_is_light(module: str) -> None:
    script = f"import {module}, sys; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"pydantic", "anyio", "asyncio", "jinja2", "yaml", "packaging", "docstring_parser", "click", "pytest"}
    assert not heavy & set(loaded), "If this fails, import it in the function that needs it."


def test_the_pytest_plugin_imports_nothing_of_ours_before_a_test_asks(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\ndef test_it():\n    assert 'handrail.session.session' not in sys.modules\n"
        "    assert 'pydantic' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "handrail", str(tmp_path)],
        # Other packages' plugins import what they like.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout
