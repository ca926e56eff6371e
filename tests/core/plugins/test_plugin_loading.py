"""Plugins as people install them: distributions with entry points, loaded one by one in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from handrail import PluginError, Session, hookimpl
from handrail.testing import open_test_session

# What the process prints: every plugin's state, and the tools, backends and services that are there.
REPORT = """
import asyncio, json, sys
import handrail
from handrail import HandrailError

async def main():
    settings = json.loads(sys.argv[1])
    try:
        async with handrail.open(desktop="private", **settings) as session:
            runtime = session.runtime
            print(json.dumps({
                "plugins": {f"{p.name}/{p.distribution}": {
                    "state": p.state, "reason": p.reason, "seconds": p.seconds, "tools": p.tools, "hooks": p.hooks
                } for p in runtime.plugins.listed},
                "tools": {o.tool.name: o.plugin for o in runtime.registry},
                "backends": list(runtime.backends),
                "services": [s.capability for s, _ in runtime.services],
            }))
    except HandrailError as exc:
        print(json.dumps({"error": str(exc), "hint": exc.hint}))

asyncio.run(main())
"""

HOOKS = """
    from handrail import Evaluator, Service, VisionBackend, hookimpl, tool
"""

GOOD = """
    @tool()
    async def {name}_tool() -> str:
        '''Return a word.'''
        return "{name}"

    @hookimpl
    def handrail_register_tools():
        return [{name}_tool]
"""

Report = dict[str, Any]


class Site:
    """A folder of installed distributions, as `pip install --target` leaves them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "site"
        self.path.mkdir()

    def install(self, name: str, source: str, *, distribution: str = "", requires: Sequence[str] = ()) -> None:
        distribution = distribution or f"thing-{name}"
        module = distribution.replace("-", "_")
        (self.path / f"{module}.py").write_text(dedent(HOOKS) + dedent(source.replace("{name}", name)))
        info = self.path / f"{module}-1.2.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n{needs}")
        (info / "entry_points.txt").write_text(f"[handrail]\n{name} = {module}\n")
        (info / "RECORD").write_text(f"{module}.py,,\n")

    def __call__(self, only: str = "", settings: Mapping[str, Any] | None = None) -> Report:
        """What a process finds in which `only` those plugins are wanted (default: every one of this site)."""
        names = [
            line.split(" = ")[0]
            for f in sorted(self.path.glob("*/entry_points.txt"))
            for line in f.read_text().splitlines()[1:]
        ]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "HANDRAIL_HOME": str(self.root / "state"),
            "PYTHONPATH": str(self.path),
            "HANDRAIL_PLUGINS": only or ",".join(names),
        }
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", REPORT, json.dumps(settings or {})],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.root,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        report: Report = json.loads(done.stdout)
        # By plugin name alone, where that is unambiguous.
        for key, found in list(report.get("plugins", {}).items()):
            report["plugins"].setdefault(key.split("/")[0], found)
        return report


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_an_installed_plugin_is_loaded_under_its_entry_points_name(site: Site) -> None:
    site.install("notes", GOOD, distribution="acme-notes-for-handrail")
    report = site()
    assert report["tools"]["notes_tool"] == "notes"
    found = report["plugins"]["notes/acme-notes-for-handrail"]
    assert (found["state"], found["tools"], found["hooks"]) == ("loaded", ["notes_tool"], ["handrail_register_tools"])


BROKEN: list[tuple[str, str, str]] = [
    ("import", "raise RuntimeError('a bug at import')", "RuntimeError: a bug at import"),
    ("syntax", "def broken(:", "SyntaxError"),
    ("missing", "import no_such_module_anywhere", "no_such_module_anywhere"),
    ("exits", "raise SystemExit(3)", "SystemExit"),
    ("empty", "x = 1", "no hook"),
    ("misspelt", "@hookimpl\ndef handrail_register_tool():\n    return []", "did you mean 'handrail_register_tools'"),
    ("unmarked", "def handrail_register_tools():\n    return []", "not marked with @hookimpl"),
    ("argued", "@hookimpl\ndef handrail_register_tools(session):\n    return []", "session"),
    ("raising", "@hookimpl\ndef handrail_register_tools():\n    raise KeyError('lost')", "KeyError"),
    ("halfway", "@hookimpl\ndef handrail_register_tools():\n    yield from ()\n    raise KeyError('lost')", "KeyError"),
    ("no_list", "@hookimpl\ndef handrail_register_tools():\n    return 42", "int"),
    ("no_tools", "@hookimpl\ndef handrail_register_tools():\n    return ['a tool']", "a str"),
    (
        "a_class",
        "class E(Evaluator):\n    name='e'\n    async def opinion(self, i, j): ...\n@hookimpl\ndef handrail_register_evaluators():\n    return [E]",
        "the class E",
    ),
    (
        "an_object",
        "class B(VisionBackend):\n    name='b'\n@hookimpl\ndef handrail_register_vision_backends():\n    return [B()]",
        "a B",
    ),
    (
        "nameless",
        "class B(VisionBackend): ...\n@hookimpl\ndef handrail_register_vision_backends():\n    return [B]",
        "the class B",
    ),
    ("blocking", "@tool()\ndef now() -> str:\n    'Say.'\n    return ''", "not an async function"),
    (
        "twice",
        "@tool()\nasync def t() -> str:\n    'Say.'\n    return ''\n@hookimpl\ndef handrail_register_tools():\n    return [t, t]",
        "registers the tool 't'",
    ),
    ("odd_config", "@hookimpl\ndef handrail_register_config():\n    return {'a': 1}", "pydantic model"),
]


def test_whatever_is_wrong_with_one_plugin_the_others_work(site: Site) -> None:
    for name, source, _ in BROKEN:
        site.install(name, dedent(source))
    site.install("zgood", GOOD)
    report = site()
    assert report["tools"]["zgood_tool"] == "zgood"
    assert set(report["tools"]) == {"wait", "get_action_history", "undo_call", "zgood_tool"}
    assert not report["backends"]
    for name, _, reason in BROKEN:
        found = report["plugins"][name]
        assert found["state"] == "failed", name
        assert reason in found["reason"], (name, found["reason"])


def test_a_plugin_that_collides_is_taken_out_whole(site: Site) -> None:
    site.install("early", GOOD)
    site.install(
        "late",
        """
        class Seer(VisionBackend):
            name = "seer"

        @tool(name="early_tool")
        async def mine() -> str:
            '''Say.'''
            return ""

        @tool()
        async def innocent() -> str:
            '''Say.'''
            return ""

        @hookimpl
        def handrail_register_tools():
            return [innocent, mine]

        @hookimpl
        def handrail_register_vision_backends():
            return [Seer]

        @hookimpl
        def handrail_register_services():
            return [Service("late", None, "process")]
        """,
    )
    report = site()
    assert report["tools"] == {"wait": "core", "get_action_history": "core", "undo_call": "core", "early_tool": "early"}
    assert (report["backends"], report["services"]) == ([], [])
    reason = report["plugins"]["late"]["reason"]
    assert all(name in reason for name in ("'late'", "'early'", "'early_tool'"))


@pytest.mark.parametrize(
    ("hook", "given", "what"),
    [
        ("vision_backends", "[type('B', (VisionBackend,), {'name': 'same'})]", "vision backend 'same'"),
        ("services", "[Service('same', None, 'process')]", "service 'same'"),
    ],
)
def test_backends_and_services_collide_too(hook: str, given: str, what: str, site: Site) -> None:
    for name in ("early", "late"):
        site.install(name, f"@hookimpl\ndef handrail_register_{hook}():\n    return {given}")
    report = site()
    assert report["plugins"]["early"]["state"] == "loaded"
    assert what in report["plugins"]["late"]["reason"]


def test_core_tools_cannot_be_taken_by_accident(site: Site) -> None:
    site.install("greedy", GOOD.replace("{name}_tool", "wait"))
    report = site()
    assert report["tools"]["wait"] == "core"
    assert "core" in report["plugins"]["greedy"]["reason"]


def test_a_tool_may_be_replaced_by_one_that_says_so(site: Site) -> None:
    site.install("better", GOOD.replace("{name}_tool", "wait").replace("@tool()", "@tool(on_collision='replace')"))
    assert site()["tools"]["wait"] == "better"


def test_two_distributions_with_one_plugin_name_do_not_mix(site: Site) -> None:
    site.install("same", GOOD, distribution="acme-a")
    site.install("same", GOOD.replace("{name}_tool", "other"), distribution="acme-b")
    report = site(only="same")
    assert report["plugins"]["same/acme-a"]["state"] == "loaded"
    assert "acme-a" in report["plugins"]["same/acme-b"]["reason"]
    assert "other" not in report["tools"]


def test_a_slow_plugin_is_loaded_and_its_time_is_told(site: Site) -> None:
    site.install("slow", "import time\ntime.sleep(0.3)" + dedent(GOOD))
    found = site()["plugins"]["slow"]
    assert found["state"] == "loaded"
    assert found["seconds"] >= 0.3


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        ("handrail-core>=0.1,<0.2", True),
        ("handrail_core[testing] (>=0.1)", True),
        ("handrail-core>=99", False),
        ("handrail-core<0.1", False),
        ("Handrail.Core~=9.0; python_version > '3'", False),
        ("handrail-corelike>=99", True),
        ("handrail-core", True),
        ("handrail-core>=99; python_version < '3'", True),
        ("handrail-core>=99; extra == 'later'", True),
        ("handrail-core>=zzz", False),
    ],
)
def test_a_plugin_for_another_core_is_not_loaded(requirement: str, fits: bool, site: Site) -> None:
    site.install("picky", GOOD, requires=[requirement])
    found = site()["plugins"]["picky"]
    assert (found["state"] == "loaded") is fits
    assert fits or "handrail-core" in found["reason"]


def test_a_plugin_for_another_core_is_not_even_imported(site: Site) -> None:
    site.install("picky", "open('imported', 'w').close()" + dedent(GOOD), requires=["handrail-core>=99"])
    site()
    assert not (site.root / "imported").exists()


def test_a_disabled_plugin_is_listed_and_not_imported(site: Site) -> None:
    site.install("off", "open('imported', 'w').close()" + dedent(GOOD))
    site.install("on", GOOD)
    report = site(settings={"plugins.disabled": ["off"]})
    assert report["plugins"]["off"]["state"] == "disabled"
    assert "off_tool" not in report["tools"]
    assert "on_tool" in report["tools"]
    assert not (site.root / "imported").exists()


def test_the_allow_list_is_exact(site: Site) -> None:
    for name in ("one", "two"):
        site.install(name, GOOD)
    report = site(only="two, absent")
    assert "one_tool" not in report["tools"]
    assert "two_tool" in report["tools"]
    assert report["plugins"]["one"]["state"] == "disabled"
    assert "not installed" in report["plugins"]["absent"]["reason"]
    # An empty list is a list, too: nothing is loaded.
    assert set(site(only=",")["tools"]) == {"wait", "get_action_history", "undo_call"}


@pytest.mark.parametrize(
    ("install", "reason"),
    [
        (lambda site: None, "not installed"),
        (lambda site: site.install("needed", "raise RuntimeError('bug')"), "RuntimeError: bug"),
        (lambda site: site.install("needed", GOOD.replace("{name}_tool", "wait")), "'wait'"),
    ],
)
def test_nothing_runs_without_a_required_plugin(install: Callable[[Site], None], reason: str, site: Site) -> None:
    site.install("other", GOOD)
    install(site)
    report = site(only="other,needed", settings={"plugins.require": ["needed"]})
    assert "'needed' is required" in report["error"]
    assert reason in report["error"]
    assert report["hint"]


def test_a_required_plugin_that_is_disabled_is_an_error(site: Site) -> None:
    site.install("needed", GOOD)
    report = site(settings={"plugins.require": ["needed"], "plugins.disabled": ["needed"]})
    assert "disabled" in report["error"]


def test_plugins_come_in_the_order_of_their_names(site: Site) -> None:
    for name in ("zeta", "alpha", "mid"):
        site.install(name, GOOD)
    assert list(site()["tools"])[3:] == ["alpha_tool", "mid_tool", "zeta_tool"]


def test_settings_of_a_plugin_are_its_own_models_and_unknown_keys_are_errors(site: Site) -> None:
    site.install(
        "mail",
        """
        from pydantic import BaseModel, ConfigDict

        class Mail(BaseModel):
            model_config = ConfigDict(extra="forbid")
            folder: str = "inbox"

        @hookimpl
        def handrail_register_config():
            return Mail
        """,
    )
    assert site(settings={"plugins.mail.folder": "sent"})["plugins"]["mail"]["state"] == "loaded"
    report = site(settings={"plugins.mail.flder": "sent"})
    assert "plugins.mail.flder" in report["error"]
    assert "did you mean 'folder'" in report["error"]


class Nothing:
    """A plugin that registers nothing, which is no mistake."""

    @hookimpl
    def handrail_register_tools(self) -> list[Any]:
        return []


async def test_hooks_may_give_nothing() -> None:
    async with open_test_session(plugins={"nothing": Nothing()}) as session:
        plugin = session.runtime.plugins.get("nothing")
        assert plugin is not None
        assert plugin.state == "loaded"


async def test_a_toolset_may_be_registered_beside_tools() -> None:
    class Later:
        async def tools(self, session: Session) -> list[Any]:
            return []

    later = Later()
    async with open_test_session(tools=[later]) as session:
        assert later in [toolset for toolset, _ in session.runtime.toolsets]


async def test_test_sessions_say_why_a_plugin_did_not_load() -> None:
    class Bad:
        @hookimpl
        def handrail_register_tools(self) -> list[Any]:
            raise ValueError("half a tool")

    with pytest.raises(PluginError, match="half a tool"):
        async with open_test_session(plugins={"bad": Bad()}):
            pass
