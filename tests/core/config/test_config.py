from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import handrail
from handrail import Decision, Mode
from handrail.api.verdict import MODES
from handrail.config import loader as config, trust
from handrail.config.layers import map_variables
from handrail.errors import ConfigError
from handrail.fs.app_dirs import AppDirs

RULE = '[[policy.rules]]\ntool = "{tool}"\ndecision = "{decision}"\n'
DENY_A = RULE.format(tool="a", decision="deny")


class Person:
    """Somebody with a home, a project in it, and files for the configuration."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        self.places = AppDirs.of({"HANDRAIL_HOME": str(root / "state")})
        self.admin = root / "etc" / "config.toml"

    @property
    def project_file(self) -> Path:
        return self.project / "handrail.toml"

    def write(self, *, admin: str | None = None, user: str | None = None, project: str | None = None) -> None:
        for file, text in ((self.admin, admin), (self.places.config_file, user), (self.project_file, project)):
            if text is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)

    def trust(self) -> None:
        trust.trust_folder(self.project, places=self.places)

    def load(
        self,
        environment: Mapping[str, str] | None = None,
        flags: Mapping[str, Any] | None = None,
        *,
        folder: Path | None = None,
        file: Path | None = None,
    ) -> config.LoadedConfig:
        return config.load_config(
            places=self.places,
            folder=folder or self.project,
            environment={"HOME": str(self.home), **(environment or {})},
            flags=flags,
            file=file,
            admin=self.admin,
        )


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


# Layers


def test_every_key_has_a_default_that_works_and_loading_writes_nothing(person, tmp_path):
    loaded = person.load()
    assert set(loaded.sources.values()) == {"default"}
    assert loaded.settings.desktop == "current"
    assert sorted(tmp_path.rglob("*")) == [person.home, person.project]


def test_flag_beats_environment_beats_project_beats_user(person):
    person.write(user='backend = "u"\ndesktop = "u"', project='backend = "p"\ndesktop = "p"')
    person.trust()
    layers: list[tuple[dict[str, str], dict[str, Any], str, str]] = [
        ({}, {}, "p", str(person.project_file)),
        ({"HANDRAIL_BACKEND": "e"}, {}, "e", "environment HANDRAIL_BACKEND"),
        ({"HANDRAIL_BACKEND": "e"}, {"backend": "f"}, "f", "flag --backend"),
        ({"HANDRAIL_BACKEND": "e"}, {"backend": None}, "e", "environment HANDRAIL_BACKEND"),
    ]
    for environment, flags, value, source in layers:
        loaded = person.load(environment, flags)
        assert (loaded.settings.backend, loaded.sources["backend"]) == (value, source)
    person.project_file.unlink()
    assert person.load().settings.backend == "u"


def test_lists_in_the_environment_are_parted_by_commas(person):
    loaded = person.load({"HANDRAIL_TOOLS_DISABLED": "a, b,,", "HANDRAIL_BACKEND_FALLBACK": ""})
    assert loaded.settings.tools.disabled == ("a", "b")
    assert loaded.sources["backend_fallback"] == "default"


def test_tables_of_plugins_and_backends_are_merged_by_key(person):
    person.write(
        user='[backends.omni]\nurl = "u"\ndevice = "gpu"\n[plugins.cli]\nshell = "bash"',
        project='[backends.omni]\nurl = "p"',
    )
    person.trust()
    loaded = person.load()
    assert loaded.settings.backends == {"omni": {"url": "p", "device": "gpu"}}
    assert loaded.settings.plugins.table("cli") == {"shell": "bash"}
    assert loaded.sources["backends.omni.url"] == str(person.project_file)
    assert loaded.sources["plugins.cli.shell"] == str(person.places.config_file)


def test_roots_of_a_project_file_are_relative_to_it_and_others_to_where_one_is(person):
    person.write(project='workspace = [".", "/srv"]')
    person.trust()
    (person.project / ".git").mkdir()
    (person.project / "deep").mkdir()
    assert person.load(folder=person.project / "deep").settings.workspace == (str(person.project), "/srv")
    person.project_file.unlink()
    person.write(user='workspace = ["."]')
    assert person.load().settings.workspace == (".",)


# What guards


@pytest.mark.parametrize(
    ("user", "project", "environment", "flag", "held"),
    [
        pytest.param("plan", "default", "default", "default", "plan", id="the-user-stays-in-plan"),
        pytest.param("default", "permissive", None, None, "default", id="the-project-cannot-loosen"),
        pytest.param("default", "headless", None, "permissive", "headless", id="nor-can-a-flag"),
        pytest.param(None, "accept_edits", None, None, "accept_edits", id="unset-means-unset"),
        pytest.param("permissive", None, "accept_edits", None, "accept_edits", id="stricter-environment"),
        pytest.param(None, None, None, "plan", "plan", id="stricter-flag"),
    ],
)
def test_the_strictest_mode_wins(person, user, project, environment, flag, held):
    person.write(user=user and f'mode = "{user}"', project=project and f'mode = "{project}"')
    person.trust()
    loaded = person.load({"HANDRAIL_MODE": environment} if environment else {}, {"mode": flag})
    assert loaded.settings.mode == held


def test_a_flag_that_loses_to_a_stricter_mode_is_told(person):
    person.write(user='mode = "plan"')
    loaded = person.load(flags={"mode": "permissive"})
    assert loaded.sources["mode"] == str(person.places.config_file)
    (sentence,) = loaded.ignored
    assert "flag --mode" in sentence
    assert "plan" in sentence


def test_disabled_and_required_add_up(person):
    person.write(
        user='[tools]\ndisabled = ["a"]\n[plugins]\nrequire = ["x"]\ndisabled = ["m"]',
        project='[tools]\ndisabled = ["b"]\n[plugins]\nrequire = ["y"]\ndisabled = ["n"]',
    )
    person.trust()
    loaded = person.load({"HANDRAIL_TOOLS_DISABLED": "c,a"})
    assert loaded.settings.tools.disabled == ("a", "b", "c")
    assert loaded.settings.plugins.require == ("x", "y")
    assert loaded.settings.plugins.disabled == ("m", "n")
    assert loaded.sources["tools.disabled"] == (
        f"{person.places.config_file}, {person.project_file}, environment HANDRAIL_TOOLS_DISABLED"
    )


def test_rules_add_up_and_know_where_they_stand(person):
    person.write(
        admin=RULE.format(tool="a", decision="deny"),
        user=RULE.format(tool="u", decision="allow"),
        project=RULE.format(tool="p", decision="allow"),
    )
    person.trust()
    rules = person.load().settings.policy.rules
    # An administrator's file belongs to root, which the tests may not be.
    by_admin = [(("a",), "admin", Decision.DENY)] if os.getuid() == 0 else []
    assert [(rule.tool, rule.tier, rule.decision) for rule in rules] == [
        *by_admin,
        (("u",), "user", Decision.ALLOW),
        (("p",), "workspace", Decision.ALLOW),
    ]


def test_only_a_persons_own_file_says_whose_evaluators_may_allow(person):
    person.write(user='[security]\ntrust = ["cli"]', project='[security]\ntrust = ["cli", "mine"]')
    person.trust()
    loaded = person.load()
    assert loaded.settings.security.trust == ("cli",)
    assert "security.trust" in loaded.ignored[0]
    with pytest.raises(ConfigError, match="HANDRAIL_SECURITY_TRUST"):
        person.load({"HANDRAIL_SECURITY_TRUST": "mine"})


def test_only_a_persons_own_file_names_a_proxy(person):
    theirs, ours = 'proxy = "http://theirs.example:3128"', 'proxy = "http://ours.example:8080"'
    person.write(user=f"[network]\n{ours}", project=f"[network]\n{theirs}")
    person.trust()
    loaded = person.load()
    assert loaded.settings.network.proxy == "http://ours.example:8080"
    assert "network.proxy" in loaded.ignored[0]
    with pytest.raises(ConfigError, match="HANDRAIL_NETWORK_PROXY"):
        person.load({"HANDRAIL_NETWORK_PROXY": "http://theirs.example:3128"})


@pytest.mark.parametrize("proxy", ["ada:SECRET@proxy.example:1", "proxy.example", "proxy.example:1/path", "a b:1"])
def test_a_proxy_is_a_host_and_a_port(person, proxy):
    person.write(user=f'[network]\nproxy = "http://{proxy}"')
    with pytest.raises(ConfigError, match=r"network\.proxy"):
        person.load()


def test_an_audit_that_somebody_turned_on_stays_on(person):
    person.write(user="[audit]\nenabled = true", project="[audit]\nenabled = false")
    person.trust()
    assert person.load({"HANDRAIL_AUDIT_ENABLED": "false"}).settings.audit.enabled
    person.write(user="")
    assert not person.load().settings.audit.enabled


def test_an_administrators_file_counts_only_when_nobody_else_can_write_it(person):
    person.write(admin='mode = "plan"')
    os.chmod(person.admin, 0o666)
    loaded = person.load()
    assert loaded.settings.mode is Mode.DEFAULT
    assert str(person.admin) in loaded.ignored[0]


# Trust


def test_a_folder_that_nobody_trusted_may_only_tighten(person):
    person.write(
        project='backend = "evil"\nworkspace = ["/"]\nmode = "headless"\n[tools]\ndisabled = ["a"]\nprofile = "all"\n'
        + RULE.format(tool="a", decision="allow")
        + RULE.format(tool="b", decision="deny")
        + RULE.format(tool="c", decision="confirm")
        + 'lifts = ["shell"]\n'
        + '[plugins]\ndisabled = ["rules"]\n[plugins.cli]\nanswers = []\n[backends.omni]\nurl = "http://evil"'
    )
    loaded = person.load()
    kept = loaded.settings
    assert (kept.mode, kept.tools.disabled) == (Mode.HEADLESS, ("a",))
    assert [(rule.tool, rule.decision, rule.lifts) for rule in kept.policy.rules] == [
        (("b",), Decision.DENY, ()),
        (("c",), Decision.CONFIRM, ()),
    ]
    assert all(rule.tightening for rule in kept.policy.rules)
    assert (kept.backend, kept.workspace, kept.tools.profile, kept.plugins.disabled) == (None, (".",), "desktop", ())
    assert (kept.plugins.table("cli"), kept.backends) == ({}, {})
    (sentence,) = loaded.ignored
    for what in ("backend", "workspace", "tools.profile", "policy.rules", "plugins.disabled", "backends.omni.url"):
        assert what in sentence
    assert f"handrail trust {person.project}" in sentence


@pytest.mark.parametrize("mode", ["permissive", "accept_edits"])
def test_a_looser_mode_of_an_untrusted_folder_does_not_count(person, mode):
    person.write(project=f'mode = "{mode}"')
    loaded = person.load()
    assert loaded.settings.mode is Mode.DEFAULT
    assert f"mode {mode}" in loaded.ignored[0]


@given(
    project=st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(list(Mode)),
            "disabled": st.lists(st.sampled_from("abc"), max_size=2),
            "decision": st.sampled_from(list(Decision)),
            "audit": st.booleans(),
        },
    ),
    user_mode=st.sampled_from([None, *Mode]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_untrusted_file_ever_loosens(tmp_path_factory, project, user_mode):
    person = Person(tmp_path_factory.mktemp("person"))
    person.write(user=f'mode = "{user_mode}"\n' if user_mode else "")
    before = person.load().settings
    text = f'mode = "{project["mode"]}"\n' if "mode" in project else ""
    text += f"[tools]\ndisabled = {project['disabled']!r}\n" if "disabled" in project else ""
    text += f"[audit]\nenabled = {str(project['audit']).lower()}\n" if "audit" in project else ""
    text += RULE.format(tool="a", decision=project["decision"]) if "decision" in project else ""
    person.write(project=text)
    after = person.load().settings
    assert MODES.index(after.mode) >= MODES.index(before.mode)
    assert set(after.tools.disabled) >= set(before.tools.disabled)
    assert after.audit.enabled
    assert all(rule.decision is not Decision.ALLOW for rule in after.policy.rules)


@pytest.mark.parametrize("at_first", [None, 'backend = "a"'], ids=["made-later", "changed-later"])
def test_a_file_counts_as_it_was_when_its_folder_was_trusted_and_no_other(person, at_first):
    """If this fails, what one agent's command writes there is obeyed by the next Handrail that starts in the folder."""
    person.write(project=at_first)
    person.trust()
    server = '[mcp.servers.x]\ncommand = ["touch", "/tmp/x"]\n'
    person.write(project=server)
    loaded = person.load()
    assert not loaded.settings.mcp.servers
    (sentence,) = loaded.ignored
    assert "not as it was when its folder was trusted" in sentence
    assert f"handrail trust {person.project}" in sentence
    person.trust()
    assert person.load().settings.mcp.servers
    assert person.load().ignored == ()


def test_a_folder_of_an_earlier_versions_list_is_to_be_trusted_again_with_what_is_in_it(person):
    person.write(project='backend = "a"')
    person.places.state.mkdir(parents=True)
    person.places.trusted_folders.write_text(json.dumps([str(person.project)]))
    assert trust.is_trusted(person.project, places=person.places)
    assert person.load().settings.backend is None
    person.trust()
    assert person.load().settings.backend == "a"


def test_a_file_that_is_named_is_trusted_and_the_folders_own_is_not_read(person, tmp_path):
    person.write(project="broken")
    named = tmp_path / "other.toml"
    named.write_text('backend = "ocr"\n[security]\ntrust = ["mine"]')
    for loaded in (person.load(file=named), person.load({"HANDRAIL_CONFIG": str(named)})):
        assert (loaded.settings.backend, loaded.settings.security.trust, loaded.ignored) == ("ocr", ("mine",), ())
        assert loaded.sources["backend"] == str(named)
    with pytest.raises(ConfigError, match="there is no configuration file"):
        person.load(file=tmp_path / "nowhere.toml")


# Where a project's file is looked for


def test_the_nearest_file_up_to_the_repositorys_root_counts(person):
    deep = person.project / "a" / "b"
    deep.mkdir(parents=True)
    person.write(project='backend = "far"')
    (deep.parent / "handrail.toml").write_text('backend = "near"')
    trust.trust_folder(deep.parent, places=person.places)
    person.trust()
    assert person.load(folder=deep).settings.backend == "near"
    (deep.parent / "handrail.toml").unlink()
    assert person.load(folder=deep).settings.backend == "far"
    (deep / ".git").mkdir()
    assert person.load(folder=deep).settings.backend is None


def test_outside_home_and_repositories_only_the_folder_itself_counts(person, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "handrail.toml").write_text("planted by somebody else")
    assert person.load(folder=elsewhere / "inner").settings.backend is None


def test_every_file_that_was_looked_for_is_named_so_that_it_can_be_watched(person):
    loaded = person.load()
    assert {person.admin, person.places.config_file, person.project_file, person.places.trusted_folders} <= {
        *loaded.files
    }


# Mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("\n\nbackedn = 'x'", ":3: unknown key 'backedn'; did you mean 'backend'?", id="unknown-key"),
        pytest.param("[tols]\nx = 1", ":1: unknown key 'tols'; did you mean 'tools'?", id="unknown-table"),
        pytest.param("[tools]\n\n# why\nprofil = 'all'", ":4: unknown key 'tools.profil'", id="unknown-key-in-a-table"),
        pytest.param("tools.profil = 'all'", ":1: unknown key 'tools.profil'", id="dotted-key"),
        pytest.param("[plugins]\ndisabeld = ['a']", ":2: unknown key 'plugins.disabeld'", id="no-plugins-table"),
        pytest.param("backend = 3", ":1: backend is 3; it should be a valid string", id="wrong-type"),
        pytest.param("mode = 'yolo'", "'accept_edits', 'plan', 'permissive' or 'headless'", id="wrong-word"),
        pytest.param("desktop = '''\na\n'''\nbackend = 3", ":4: backend is 3", id="after-a-long-text"),
        pytest.param("workspace = [\n '.',\n 3,\n]", ":1: workspace[1] is 3", id="in-a-list"),
        pytest.param("workspace = '.'", 'it should be a list, as in ["one", "two"]', id="no-list"),
        pytest.param("\ntools = 3", ":2: tools is 3; it should be a table", id="no-table"),
        pytest.param(f"{DENY_A}[[policy.rules]]\ntool = 'b'", ":4: policy.rules[1] lacks the key 'decision'", id="missing-key"),
        pytest.param(f"{DENY_A}tier = 'admin'", ":4: unknown key 'policy.rules[0].tier'", id="tier"),
        pytest.param("\nbackend = ", ":2: this is not TOML", id="no-toml"),
        pytest.param('\n\nbackend = """', ":3: this is not TOML", id="no-end"),
        pytest.param("a = 1\na = 2", "this is not TOML", id="twice"),
        pytest.param(".".join(["a"] * 5_000) + " = 1", "nested too deep", id="deep-keys"),
        pytest.param(".".join(["a"] * 400_000) + " = 1", "nested too deep", id="very-deep-keys"),
        pytest.param('x = {a . "\\"" ' + """. '"' . "b c" """ * 40_000 + "= 1}", "nested too deep", id="deep-quoted-keys"),
        pytest.param("a = " + "[" * 200 + "]" * 200, "nested too deep", id="deep-lists"),
        pytest.param("a = " + "9" * 100_000, "an integer in it has more than 64 bits", id="long-integer"),
        pytest.param("a = [{b = 0x" + "f" * 200_000 + "}]", "an integer in it has more", id="long-hexadecimal"),
        pytest.param("# \udcff", ":1: this is not UTF-8 text", id="no-unicode"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["user", "project"])
def test_a_mistake_is_named_with_file_line_and_key_and_nothing_is_changed(person, where, text, said):
    file = person.project_file if where == "project" else person.places.config_file
    file.parent.mkdir(parents=True, exist_ok=True)
    raw = text.encode(errors="surrogateescape")
    file.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        person.load()
    assert str(caught.value).startswith(str(file))
    assert said in str(caught.value)
    assert file.read_bytes() == raw


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_are_counted_in_a_long_file(person, ends):
    text = ends.join(["# a comment", "[plugins.x]", *(f"key{n} = [{ends}1,{ends}]" for n in range(300)), "[tool]"])
    person.project_file.write_bytes(text.encode())
    line = len(text.split("\n"))
    with pytest.raises(ConfigError, match=f":{line}: unknown key 'tool'"):
        person.load()


def test_a_mark_of_windows_editors_is_no_mistake(person):
    person.places.config_file.parent.mkdir(parents=True)
    person.places.config_file.write_bytes(b"\xef\xbb\xbfbackend = 'ocr'\r\n")
    assert person.load().settings.backend == "ocr"


def test_what_is_no_file_is_refused_at_once(person):
    os.mkfifo(person.project_file)
    with pytest.raises(ConfigError, match="is not a file"):
        person.load()


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        pytest.param("HANDRAIL_BACKND", "did you mean 'HANDRAIL_BACKEND'?", id="misspelt"),
        pytest.param("HANDRAIL_POLICY_RULES", "unknown environment variable", id="no-text"),
        pytest.param("HANDRAIL_MODE", "environment HANDRAIL_MODE: mode is '1'", id="wrong-value"),
        pytest.param("HANDRAIL_AUDIT_ENABLED", None, id="truth"),
        pytest.param("HANDRAIL_MARK_SESSION", None, id="mark"),
        pytest.param("HANDRAIL_PLUGINS", None, id="plugins"),
        pytest.param("HANDRAIL_HOME", None, id="home"),
    ],
)
def test_variables_are_known_or_refused(person, variable, said):
    if said is None:
        person.load({variable: "1"})
        return
    with pytest.raises(ConfigError) as caught:
        person.load({variable: "1"})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"bakend": "x"}, "--bakend: unknown key 'bakend'; did you mean 'backend'?"),
        ({"mode": "yolo"}, "--mode: mode is 'yolo'"),
        ({"tools.profile": "x"}, "--profile: tools.profile is 'x'"),
    ],
)
def test_a_wrong_flag_is_named(person, flags, said):
    with pytest.raises(ConfigError) as caught:
        person.load(flags=flags)
    assert said in str(caught.value)


# What the page says


DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_names_every_variable_and_its_key_and_no_other():
    told = dict(re.findall(r"^\| `(HANDRAIL_\w+)` \| `([\w.]+)` \|$", DOCS.read_text(), re.MULTILINE))
    assert told == {variable: ".".join(key) for variable, key in map_variables().items()}


def test_the_example_on_the_page_is_accepted_and_has_every_key(person):
    example = DOCS.read_text().split("```toml\n")[1].split("```")[0]
    person.write(user=example)
    loaded = person.load()
    assert {key for key, source in loaded.sources.items() if source == "default"} == set()


# Other servers

SERVER = '[mcp.servers.docs]\ncommand = ["docs-server"]\n'


def test_a_server_stands_in_a_table_of_its_own(person: Person) -> None:
    person.write(user=SERVER + 'exclude = ["x"]\n[mcp.servers.web]\nurl = "https://example.org/mcp"\n')
    servers = person.load().settings.mcp.servers
    assert servers["docs"].command == ("docs-server",)
    assert servers["web"].url == "https://example.org/mcp"


def test_a_servers_table_of_the_project_takes_the_place_of_the_users(person: Person) -> None:
    person.write(user=SERVER + 'exclude = ["x"]\n', project=SERVER + "enabled = false\n")
    person.trust()
    docs = person.load().settings.mcp.servers["docs"]
    assert not docs.enabled
    assert docs.exclude == ()


def test_a_folder_that_nobody_trusts_starts_no_server(person: Person) -> None:
    person.write(project=SERVER)
    loaded = person.load()
    assert loaded.settings.mcp.servers == {}
    assert "mcp.servers.docs" in loaded.ignored[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param('comand = ["x"]', "unknown key 'mcp.servers.docs.comand'; did you mean 'command'?", id="a-slip"),
        pytest.param('url = "https://x.example"\ncommand = ["x"]', "a command or a url, not both", id="both"),
        pytest.param("timeout = 5", "a server needs a command or a url", id="neither"),
        pytest.param('url = "https://x.example"\nenv = {A = "b"}', "only a server that is started", id="env-of-a-url"),
        pytest.param('command = ["x"]\ntransport = "sse"', "stdio goes with a command", id="transport"),
        pytest.param('url = "file:///etc/passwd"', "mcp.servers.docs.url", id="another-scheme"),
    ],
)
def test_a_mistake_in_a_servers_table_is_named(person: Person, text: str, told: str) -> None:
    person.write(user=f"[mcp.servers.docs]\n{text}\n")
    with pytest.raises(ConfigError, match=re.escape(told)):
        person.load()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param('workspace = [".", "a\\u0000b"]', "toml:1: workspace", id="a-path"),
        pytest.param('\n[plugins.files]\nroot = "\\u0000"', "toml:3: plugins.files.root", id="a-plugins-own"),
    ],
)
def test_a_nul_in_a_file_is_told_with_its_place(person, text, told):
    person.write(user=text)
    with pytest.raises(ConfigError, match=re.escape(told)):
        person.load()


@pytest.mark.parametrize(
    "home",
    [
        pytest.param("state", id="relative"),
        pytest.param("./state", id="from-here"),
        pytest.param("a\0b", id="nul"),
        pytest.param("{open}", id="anybody-writes"),
        pytest.param("{file}", id="a-file"),
        pytest.param("{file}/below", id="below-a-file"),
    ],
)
def test_an_odd_home_of_handrails_own_is_refused(tmp_path, home):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "file").touch()
    named = home.format(open=tmp_path / "open", file=tmp_path / "file")
    with pytest.raises(ConfigError, match="HANDRAIL_HOME is"):
        AppDirs.of({"HANDRAIL_HOME": named})


def test_a_home_of_handrails_own_may_be_made_later_and_below_the_persons_own():
    assert AppDirs.of({"HANDRAIL_HOME": "~/not-there-yet"}).config == Path("~/not-there-yet/config").expanduser()


@pytest.mark.parametrize("root", ["/nope", "nope"])
async def test_a_root_that_is_no_folder_is_refused(tmp_path, root):
    with pytest.raises(ConfigError, match="there is no folder"):
        async with handrail.open(cwd=tmp_path, plugins=(), workspace=[root]):
            pass
