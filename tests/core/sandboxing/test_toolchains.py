"""Folders beside the workspace that sandboxed commands can read because programs on PATH need them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from handrail.fs import sensitive_paths
from handrail.sandbox.toolchains import find_toolchains


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home/work").mkdir(parents=True)
    return tmp_path / "home"


def opened(home: Path, on_path: str, files: Iterable[str], **variables: str) -> set[str]:
    """Make files below the home, and return what is opened there for a PATH of this folder."""
    for name in (f"{on_path}/tool", *files):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    found = find_toolchains(
        {"PATH": f"{home / on_path}:/usr/bin:/bin", **{name: str(home / value) for name, value in variables.items()}},
        home=home,
        roots=[home / "work"],
    )
    return {str(path.relative_to(home)) for path in found}


@pytest.mark.parametrize(
    ("on_path", "beside", "expected"),
    [
        ("go/bin", ["go/pkg/mod/m@v1/a.go", "go/src/example.org/other/main.go"], {"go/bin", "go/pkg"}),
        ("code/go/bin", ["code/go/pkg/mod/cache/x", "code/go/src/a/main.go"], {"code/go/bin", "code/go/pkg"}),
        (".npm-global/bin", [".npm-global/lib/node_modules/x/x.js", ".npm-global/etc/npmrc"], {".npm-global/bin", ".npm-global/lib"}),
        (".rye/shims", [".rye/credentials", ".rye/self/bin/rye", ".rye/py/x"], {".rye/shims", ".rye/self", ".rye/py"}),
        (".cargo/bin", [".cargo/registry/index/x", ".cargo/credentials.toml", ".cargo/.crates.toml"], {".cargo/bin", ".cargo/registry"}),
        ("opt/vi/bin", ["opt/vi/lib/x", "opt/vi/share/x", "opt/vi/notes/x"], {"opt/vi/bin", "opt/vi/lib", "opt/vi/share"}),
        ("bin", ["lib/x", "share/x"], {"bin"}),
    ],
)  # fmt: skip
def test_only_folders_that_programs_need_are_opened(
    home: Path, on_path: str, beside: list[str], expected: set[str]
) -> None:
    assert opened(home, on_path, beside) == expected


@pytest.mark.parametrize("mark", [".git/HEAD", "pyproject.toml", "package.json", "go.mod", "Cargo.toml", "Makefile"])
@pytest.mark.parametrize("around", ["projects/tools", "projects"])
def test_of_a_project_only_the_folder_on_path_is_opened(home: Path, mark: str, around: str) -> None:
    beside = [f"{around}/{mark}", "projects/tools/lib/x.py", "projects/tools/share/x", "projects/tools/pkg/x"]
    assert opened(home, "projects/tools/bin", beside) == {"projects/tools/bin"}


def test_a_project_that_is_on_path_itself_is_not_opened(home: Path) -> None:
    assert opened(home, "projects/tools", ["projects/tools/.git/config"]) == set()


@pytest.mark.parametrize(
    ("on_path", "beside", "needed", "closed"),
    [
        pytest.param(
            ".pyenv/shims",
            [".pyenv/.git/config", ".pyenv/versions/3.11.7/bin/python", ".pyenv/libexec/pyenv", ".pyenv/version"],
            {".pyenv/shims", ".pyenv/versions", ".pyenv/libexec", ".pyenv/version"},
            {".pyenv", ".pyenv/.git"},
            id="pyenv",
        ),
        pytest.param(
            ".nvm/versions/node/v20/bin",
            [
                *(".nvm/.git/config", ".nvm/versions/node/v20/bin/node", ".nvm/versions/node/v20/include/node/node.h"),
                *(".nvm/versions/node/v20/lib/node_modules/tool/cli.js", ".nvm/versions/node/v20/etc/npmrc"),
            ],
            {".nvm/versions/node/v20/bin", ".nvm/versions/node/v20/lib"},
            {".nvm/versions/node/v20/etc"},
            id="node",
        ),
        pytest.param(
            ".rustup/toolchains/stable/bin",
            [".rustup/toolchains/stable/lib/rustlib/x"],
            {".rustup/toolchains/stable/bin", ".rustup/toolchains/stable/lib"},
            {".rustup"},
            id="rust",
        ),
        pytest.param(
            "sdk/go1.23/bin",
            ["sdk/go1.23/bin/go", "sdk/go1.23/src/runtime/x.go", "sdk/go1.23/pkg/tool/x", "sdk/go1.23/go.env"],
            {"sdk/go1.23/bin", "sdk/go1.23/src", "sdk/go1.23/pkg", "sdk/go1.23/go.env"},
            {"sdk"},
            id="go",
        ),
        pytest.param(
            "projects/old/venv/bin",
            ["projects/old/setup.py", "projects/old/venv/pyvenv.cfg", "projects/old/venv/lib/python3.11/x"],
            {"projects/old/venv/bin", "projects/old/venv/lib", "projects/old/venv/pyvenv.cfg"},
            {"projects/old", "projects/old/venv"},
            id="venv",
        ),
        pytest.param(
            "miniconda3/envs/data/bin",
            ["miniconda3/envs/data/conda-meta/history", "miniconda3/envs/data/ssl/cacert.pem", "miniconda3/.condarc"],
            {"miniconda3/envs/data/bin", "miniconda3/envs/data/conda-meta", "miniconda3/envs/data/ssl"},
            {"miniconda3"},
            id="conda",
        ),
    ],
)
def test_an_installation_is_opened_as_what_it_is(
    home: Path, on_path: str, beside: list[str], needed: set[str], closed: set[str]
) -> None:
    found = opened(home, on_path, beside)
    assert found >= needed
    assert closed.isdisjoint(found)


def test_a_variable_opens_no_project(home: Path) -> None:
    found = opened(home, "bin", ["projects/a/pyvenv.cfg", "projects/a/.git/config", "projects/a/lib/x", "projects/a/src/x"],
                   VIRTUAL_ENV="projects/a", GOPATH="projects", JAVA_HOME="notes")  # fmt: skip
    assert found == {"bin", "projects/a/lib", "projects/a/pyvenv.cfg"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('[source.crates-io]\nreplace-with = "vendored"\n', True),
        ('[registries.own]\ntoken = "abc"\n', False),
        ('[registries.own]\nindex = "https://me:abc@example.org/index"\n', False),
        ('[http]\nproxy = "me:abc@proxy.example.org"\n', False),
    ],
)
def test_settings_of_cargo_are_shown_without_credentials_in_them(home: Path, text: str, shown: bool) -> None:
    (home / ".cargo").mkdir()
    (home / ".cargo/config.toml").write_text(text)
    assert (".cargo/config.toml" in opened(home, ".cargo/bin", [".cargo/.crates.toml"])) is shown


@pytest.mark.parametrize(
    "place",
    [
        *("~/.rye/credentials", "~/.config/own/credentials", "~/.npm-global/etc/npmrc", "/etc/npmrc"),
        *("~/tool/credentials.toml", "~/tool/credentials.yml", "~/tool/credentials-prod.json", "~/.x/credentials.db"),
        "~/.local/share/uv/credentials/credentials.toml",
    ],
)
def test_credentials_files_of_package_managers_are_secrets(place: str) -> None:
    path = place.replace("~", "/home/user")
    assert sensitive_paths.describe_secret(path) is not None
    assert any(sensitive_paths.is_notable(name) for name in path.split("/"))


@pytest.mark.parametrize(
    "place",
    [
        *("src/credentials/login.py", "src/credentials", "app/credentials.py", "docs/credentials.md", "lib/credentials.ts"),
        *("credentials.example.json", "credentials.sample.yml", "credentials-template.toml", "config/credentials.yml.enc"),
    ],
)  # fmt: skip
def test_code_and_templates_of_that_name_are_none(place: str) -> None:
    assert sensitive_paths.describe_secret(f"/home/user/work/{place}") is None
