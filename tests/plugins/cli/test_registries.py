"""Sources of package managers and git: a program's own hosts, unless the person or the project configures others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from handrail import Decision, EvaluationContext, Route, SandboxOffer, View
from handrail.fs.small_files import read_small_text
from handrail_cli.programs import rows
from handrail_cli.programs.values import RegistryFamily
from handrail_cli.shell import package_sources
from handrail_cli.shell.package_sources import SOURCE_FINDERS, RegistryLookup
from handrail_cli.shell.verdict import judge_line


@pytest.fixture
def around(tmp_path: Path) -> RegistryLookup:
    """A project in a home, with nothing configured."""
    work, home = tmp_path / "work", tmp_path / "home"
    for folder in (work / "deep", home):
        folder.mkdir(parents=True)
    return RegistryLookup({}, home, (work / "deep",), (work,), read_small_text)


def put(folder: object, name: str, text: str) -> None:
    file = Path(str(folder)) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


DEFAULTS = {
    "npm": ("registry.npmjs.org",),
    "yarn": ("registry.npmjs.org", "registry.yarnpkg.com"),
    "pip": ("pypi.org", "files.pythonhosted.org"),
    "uv": ("pypi.org", "files.pythonhosted.org"),
    "cargo": ("index.crates.io", "static.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "gem": ("rubygems.org", "index.rubygems.org"),
}


@pytest.mark.parametrize(("family", "hosts"), DEFAULTS.items())
def test_a_program_has_hosts_of_its_own(around: RegistryLookup, family: str, hosts: tuple[str, ...]) -> None:
    assert package_sources.find_package_sources(family, around).places == hosts
    assert package_sources.find_package_sources(family, replace(around, read_text=None)).places == hosts


MIRROR = "https://me:hunter2@mirror.example:8443/x/"


@pytest.mark.parametrize(
    ("family", "variables"),
    [
        ("npm", {"npm_config_registry": MIRROR}),
        ("npm", {"NPM_CONFIG_REGISTRY": MIRROR}),
        ("yarn", {"npm_config_registry": MIRROR}),
        ("pip", {"PIP_INDEX_URL": MIRROR}),
        ("uv", {"UV_INDEX_URL": MIRROR}),
        ("uv", {"UV_DEFAULT_INDEX": MIRROR}),
        ("go", {"GOPROXY": f"{MIRROR},direct", "GOSUMDB": "off"}),
    ],
)
def test_a_variable_of_the_person_takes_the_place_of_it(
    around: RegistryLookup, family: str, variables: dict[str, str]
) -> None:
    found = package_sources.find_package_sources(family, replace(around, environment=variables))
    assert found.places == ("mirror.example:8443",)
    assert "hunter2" not in str(found.variables)
    assert family == "yarn" or "https://mirror.example:8443/x/" in str(found.variables)


@pytest.mark.parametrize(
    ("family", "file", "text"),
    [
        ("npm", ".npmrc", f"; mine\nregistry = {MIRROR}\n//mirror.example:8443/x/:_authToken=hunter2\n"),
        ("pip", ".config/pip/pip.conf", f"[global]\nindex-url = {MIRROR}\n"),
        ("pip", ".pip/pip.conf", f"[install]\nindex_url = {MIRROR}\n"),
        ("uv", ".config/uv/uv.toml", f'[[index]]\nurl = "{MIRROR}"\ndefault = true\n'),
        (
            "cargo",
            ".cargo/config.toml",
            f'[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+{MIRROR}"\n[registries.m]\ntoken = "hunter2"\n',
        ),
        ("go", ".config/go/env", f"GOPROXY={MIRROR}\nGOSUMDB=off\n"),
    ],
)
def test_so_does_a_file_of_the_persons_home(around: RegistryLookup, family: str, file: str, text: str) -> None:
    put(around.home, file, text)
    found = package_sources.find_package_sources(family, around)
    assert found.places == ("mirror.example:8443",)
    told = f"{found.variables}{package_sources.create_cargo_config(around) if family == 'cargo' else ''}"
    assert "https://mirror.example:8443/x/" in told, "a confined program is told the same"
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("family", "file", "text"),
    [
        ("npm", ".npmrc", "registry=https://project.example/\n"),
        ("yarn", ".yarnrc.yml", 'npmRegistryServer: "https://project.example"\n'),
        ("yarn", ".yarnrc", 'registry "https://project.example"\n'),
        ("uv", "uv.toml", 'index-url = "https://project.example/simple"\n'),
        ("uv", "pyproject.toml", '[tool.uv]\nindex-url = "https://project.example/simple"\n'),
        (
            "cargo",
            ".cargo/config.toml",
            '[source.crates-io]\nreplace-with = "p"\n[source.p]\nregistry = "https://project.example/index"\n',
        ),
        ("gem", "Gemfile", "source 'https://project.example'\n"),
    ],
)
def test_what_a_file_of_the_project_names_is_told(around: RegistryLookup, family: str, file: str, text: str) -> None:
    put(around.roots[0], file, text)
    assert package_sources.find_package_sources(family, around).places[:1] == ("project.example",)


def test_scopes_that_the_project_names_are_told_beside_its_registry(around: RegistryLookup) -> None:
    put(around.roots[0], ".npmrc", "@mine:registry=https://project.example/\n")
    put(around.home, ".npmrc", "@theirs:registry=https://me:hunter2@user.example/\n")
    found = package_sources.find_package_sources("npm", around)
    assert found.places == ("registry.npmjs.org", "project.example")
    assert found.variables["npm_config_@mine:registry"] == "https://project.example/"
    assert found.variables["npm_config_@theirs:registry"] == "https://user.example/"


@pytest.mark.parametrize(
    "text", ["registry=https://${TOKEN}.project.example/\n", "registry=file:///etc\n", "registry=https://[/\n", "\0"]
)
def test_what_is_no_plain_address_is_left_out(around: RegistryLookup, text: str) -> None:
    put(around.roots[0], ".npmrc", text)
    found = package_sources.find_package_sources("npm", replace(around, environment={"TOKEN": "hunter2"}))
    assert found.places == ("registry.npmjs.org",)


def test_a_link_out_of_the_workspace_is_not_followed(around: RegistryLookup) -> None:
    put(around.home, "theirs", "registry=https://hunter2.example/\n")
    Path(str(around.roots[0]), ".npmrc").symlink_to(Path(str(around.home), "theirs"))
    assert package_sources.find_package_sources("npm", around).places == ("registry.npmjs.org",)


def test_every_family_of_the_rows_is_known() -> None:
    from typing import get_args

    named = {
        row.reaches
        for blocks in map(rows.find_program_blocks, rows.load_row_index())
        for row in map(rows.parse_row, blocks)
        if row.reaches
    }
    assert named == set(get_args(RegistryFamily))
    assert set(SOURCE_FINDERS) | {"urls", "git", "submodules"} == set(get_args(RegistryFamily))


# What is judged


@pytest.fixture
def judging(around: RegistryLookup) -> EvaluationContext:
    work = Path(str(around.roots[0]))
    return EvaluationContext(
        cwd=work,
        home=Path(str(around.home)),
        user="ada",
        environment={"PATH": "/usr/bin"},
        workspace=(work,),
        platform="linux",
        sandbox=SandboxOffer("box", filters=True),
        read_text=read_small_text,
        undoable=True,
    )


REMOTES = '[remote "origin"]\n\turl = https://git.example/a\n[remote "fork"]\n\turl = git@fork.example:a\n'


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("curl https://example.org:8443/a -o a", ("example.org:8443",)),
        ("wget example.org/a https://Example.COM./b", ("example.org", "example.com")),
        ("curl http://localhost:3000/health", ("localhost:3000",)),
        ("npm ci && npx cowsay@1.5 hi", ("registry.npmjs.org",)),
        ("pip install --target lib six", ("pypi.org", "files.pythonhosted.org")),
        (".venv/bin/pip install six", ("pypi.org", "files.pythonhosted.org")),
        (".venv/bin/python -m pip install six", ("pypi.org", "files.pythonhosted.org")),
        ("go mod download", ("proxy.golang.org", "sum.golang.org")),
        ("git clone https://git.example/a b", ("git.example",)),
        ("git fetch", ("git.example",)),
        ("git pull origin main", ("git.example",)),
        ("git submodule update --init", ("sub.example",)),
    ],
)
def test_a_command_that_lacks_nothing_but_hosts_is_asked_about_by_these(
    judging: EvaluationContext, command: str, hosts: tuple[str, ...]
) -> None:
    put(judging.cwd, ".git/config", REMOTES)
    put(judging.cwd, ".gitmodules", '[submodule "s"]\n\tpath = s\n\turl = https://sub.example/s\n')
    opinion = judge_line(command, judging)
    assert (opinion.suggestion, opinion.route, opinion.view) == (Decision.CONFIRM, Route.SANDBOX, View.WORK)
    assert opinion.reach is not None
    assert (opinion.reach.hosts, opinion.reach.needed) == (hosts, True)
    assert all(host in opinion.reasons[0].text for host in hosts)
    named = {touch.what for part in opinion.parts for touch in part.touches if touch.kind == "network"}
    assert named == set(hosts)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("ping -c1 example.org", id="another-protocol"),
        pytest.param("dig example.org", id="names"),
        pytest.param("git clone git@git.example:a b", id="ssh"),
        pytest.param("git fetch fork", id="a-remote-by-ssh"),
        pytest.param("git fetch nobody", id="a-remote-that-is-not-there"),
        pytest.param("git push", id="what-takes-credentials"),
        pytest.param("docker pull debian", id="a-service-of-the-host"),
        pytest.param("pip install six", id="what-would-be-lost"),
        pytest.param("poetry install", id="an-environment-elsewhere"),
        pytest.param("go install example.org/x@latest", id="an-install-for-the-account"),
        pytest.param("curl ftp://example.org/a", id="ftp"),
        pytest.param("curl https://example.org/a; ping example.org", id="one-of-two"),
        pytest.param("curl -d @src https://example.org", id="what-sends"),
        pytest.param("curl https://10.0.0.1/", id="a-private-place"),
        pytest.param("curl $URL", id="an-unknown-place"),
        pytest.param("npm ci --unknown-option", id="an-option-that-is-not-known"),
        pytest.param("npm install --registry=https://x.example a", id="another-registry"),
        pytest.param("npm ci && rm -rf ~", id="what-else-is-dangerous"),
    ],
)
def test_all_else_that_needs_the_network_is_asked_about_for_the_host(judging: EvaluationContext, command: str) -> None:
    put(judging.cwd, ".git/config", REMOTES)
    opinion = judge_line(command, judging)
    assert opinion.suggestion is not Decision.ALLOW
    assert (opinion.route, opinion.view, opinion.reach) == (Route.HOST, None, None)


@pytest.mark.parametrize("sandbox", [SandboxOffer("box"), SandboxOffer("box", network=True, filters=True)])
def test_a_sandbox_that_cannot_filter_or_has_the_network_is_told_no_hosts(
    judging: EvaluationContext, sandbox: SandboxOffer
) -> None:
    opinion = judge_line("npm ci", replace(judging, sandbox=sandbox))
    assert opinion.reach is None
    assert opinion.route is (Route.SANDBOX if sandbox.network else Route.HOST)


def test_hosts_of_the_settings_are_no_question(judging: EvaluationContext) -> None:
    allowed = replace(judging, sandbox=SandboxOffer("box", filters=True, hosts=("*.npmjs.org", "pypi.org")))
    assert judge_line("npm ci", allowed).suggestion is Decision.ALLOW
    asked = judge_line("pip install -t lib six", allowed)
    assert asked.suggestion is Decision.CONFIRM


@pytest.mark.parametrize(
    ("command", "hosts"),
    [("cargo build", ("index.crates.io", "static.crates.io")), ("make", ()), ("bash ./build.sh", ())],
)
def test_what_may_need_hosts_runs_without_a_question(
    judging: EvaluationContext, command: str, hosts: tuple[str, ...]
) -> None:
    put(judging.cwd, "build.sh", "make\n")
    opinion = judge_line(command, judging)
    assert opinion.suggestion is Decision.ALLOW
    assert opinion.reach is not None
    assert (opinion.reach.hosts, opinion.reach.needed) == (hosts, False)


@pytest.mark.parametrize("program", [".venv/bin/pip", ".venv/bin/python -m pip", "pip"])
def test_the_index_of_the_projects_virtual_environment_is_told(judging: EvaluationContext, program: str) -> None:
    put(judging.cwd, ".venv/pyvenv.cfg", "")
    put(judging.cwd, ".venv/pip.conf", "[global]\nindex-url = https://project.example/simple\n")
    active = replace(judging, environment={**judging.environment, "VIRTUAL_ENV": str(judging.cwd / ".venv")})
    opinion = judge_line(f"{program} install six", active if program == "pip" else judging)
    assert opinion.reach is not None
    assert opinion.reach.hosts == ("project.example",)


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("--index-url https://project.example/simple", ("project.example",)),
        ("-i https://project.example/simple", ("project.example",)),
        (
            "--extra-index-url=https://project.example/simple",
            ("project.example", "pypi.org", "files.pythonhosted.org"),
        ),
        ("six  # -i https://project.example/", ("pypi.org", "files.pythonhosted.org")),
    ],
)
def test_the_index_that_requirements_name_is_told(
    judging: EvaluationContext, line: str, hosts: tuple[str, ...]
) -> None:
    put(judging.cwd, "needed.txt", f"six\n{line}\n")
    opinion = judge_line("pip install --target lib -r needed.txt", judging)
    assert opinion.reach is not None
    assert opinion.reach.hosts == hosts


@pytest.mark.parametrize("command", ["touch x", "rm x", "ls", "sort a > b"])
def test_ordinary_commands_get_no_network(judging: EvaluationContext, command: str) -> None:
    assert judge_line(command, judging).reach is None


def test_a_program_of_the_workspace_on_path_is_its_code(judging: EvaluationContext, tmp_path: Path) -> None:
    put(judging.cwd, ".venv/bin/pip", "")
    put(judging.cwd, ".venv/bin/ps", "")
    venv = str(judging.cwd / ".venv")
    active = replace(judging, environment={"PATH": f"{venv}/bin:/usr/bin", "VIRTUAL_ENV": venv})
    assert judge_line("pip install six", active).reach is not None
    own = judge_line("ps", active)
    assert (own.suggestion, own.route, own.view) == (Decision.ALLOW, Route.SANDBOX, View.WORK)
    assert judge_line("ps", replace(active, sandbox=None)).suggestion is Decision.CONFIRM


# What needs no host, or more than hosts


@pytest.mark.parametrize(
    "command", ["git clone below copy", "git clone ./below copy", "git fetch near", "git pull ./below main"]
)
def test_a_repository_of_the_workspace_needs_no_network(judging: EvaluationContext, command: str) -> None:
    put(judging.cwd, ".git/config", f'{REMOTES}[remote "near"]\n\turl = ./below\n')
    (Path(judging.cwd) / "below").mkdir()
    opinion = judge_line(command, judging)
    assert (opinion.suggestion, opinion.route) == (Decision.ALLOW, Route.SANDBOX)
    assert opinion.reach is None or not opinion.reach.needed


@pytest.mark.parametrize("command", ["git clone /opt/other", "git clone file:///opt/other", "git fetch far"])
def test_a_repository_outside_is_asked_about_by_its_place(judging: EvaluationContext, command: str) -> None:
    put(judging.cwd, ".git/config", f'{REMOTES}[remote "far"]\n\turl = /opt/other\n')
    assert [reason.code for reason in judge_line(command, judging).reasons] == ["read_outside"]


@pytest.mark.parametrize("command", ["git clone host.example:below", "git clone ssh://host.example/below"])
def test_a_repository_of_another_machine_needs_the_network(judging: EvaluationContext, command: str) -> None:
    assert "needs_network" in [reason.code for reason in judge_line(command, judging).reasons]


LOSING = "wget https://a.example/x https://b.example/y"


def test_what_may_be_lost_is_asked_about_beside_the_hosts_and_no_grant_of_hosts_answers_it(
    judging: EvaluationContext,
) -> None:
    put(judging.cwd, "x", "mine")
    opinion = judge_line(LOSING, replace(judging, undoable=False))
    assert [reason.code for reason in opinion.reasons] == ["needs_network", "not_restorable"]
    assert (opinion.route, opinion.view) == (Route.SANDBOX, View.WORK)
    assert [part.view for part in opinion.parts] == [None]
    assert [reason.code for reason in judge_line(LOSING, judging).reasons] == ["needs_network"]


def test_hosts_that_are_allowed_leave_what_may_be_lost(judging: EvaluationContext) -> None:
    put(judging.cwd, "x", "mine")
    allowed = replace(
        judging, undoable=False, sandbox=SandboxOffer("box", filters=True, hosts=("a.example", "b.example"))
    )
    opinion = judge_line(LOSING, allowed)
    assert (opinion.suggestion, opinion.route) == (Decision.CONFIRM, Route.SANDBOX)
    assert [reason.code for reason in opinion.reasons] == ["not_restorable"]


def test_handrails_own_files_are_no_reason_where_the_sandbox_keeps_them(judging: EvaluationContext) -> None:
    guarded = replace(judging, protected=(Path(judging.cwd) / "handrail.toml",))
    assert [reason.code for reason in judge_line(LOSING, guarded).reasons] == ["needs_network"]
    on_host = judge_line(f"{LOSING}; ssh host.example", guarded)
    assert "own" in [reason.code for reason in on_host.reasons]


@pytest.mark.parametrize(
    ("command", "private", "asks"),
    [
        pytest.param("rm -rf /tmp/*", True, False, id="its-own"),
        pytest.param("rm -rf /var/tmp/* /tmp/x", True, False, id="another-name-of-it"),
        pytest.param("rm -rf /tmp/*", False, True, id="everybodys"),
        pytest.param("rm -rf /tmp/*; frobnicate", True, True, id="with-what-runs-on-the-host"),
        pytest.param("rm -rf ./*", True, True, id="the-workspace"),
    ],
)
def test_all_temporary_files_may_be_deleted_where_the_sandbox_has_its_own(
    judging: EvaluationContext, command: str, *, private: bool, asks: bool
) -> None:
    elsewhere = replace(judging, cwd=Path("/srv/shop"), workspace=(Path("/srv/shop"),))
    opinion = judge_line(command, replace(elsewhere, sandbox=SandboxOffer("box", private_tmp=private)))
    assert ("bulk_delete" in [reason.code for reason in opinion.reasons]) is asks
