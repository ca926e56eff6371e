from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "import sys; from handrail.commands import main; main(sys.argv[1:])"


@pytest.fixture
def elsewhere(tmp_path: Path):
    """Runs the program in an environment of its own that sees the packages of this one."""
    folder = tmp_path / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "-q", "venv", "--python", sys.executable, folder], check=True)
    (here,) = {path for path in sys.path if path.endswith("site-packages")}
    (site,) = folder.glob("lib/python*/site-packages")
    # `site` reads the .pth files of our packages as well, which a plain path in PYTHONPATH would not.
    (site / "beside.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "HANDRAIL_HOME": str(tmp_path / "state"),
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPENDENCIES": "1",
            "UV_OFFLINE": "1",
            **environment,
        }
        command = [folder / "bin" / "python", "-c", PROGRAM, *words]
        return subprocess.run(command, capture_output=True, text=True, env=clean, cwd=tmp_path, timeout=60)

    return run


def test_a_plugin_is_installed_and_removed_by_its_own_name(elsewhere, plugin_wheels: Path):
    done = elsewhere("install", next(plugin_wheels.glob("*_stage-*.whl")))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "installed the plugin stage; see `handrail plugins`\n"
    assert elsewhere("bow", HANDRAIL_PLUGINS="stage").stdout == "bows\n"
    done = elsewhere("uninstall", "stage")
    assert done.stdout == "removed the plugin stage\n", done.stderr
    assert elsewhere("bow", HANDRAIL_PLUGINS="stage").returncode == 2


def test_what_cannot_be_installed_is_an_error_and_the_installer_says_why(elsewhere):
    done = elsewhere("install", "a-plugin-that-is-nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a-plugin-that-is-nowhere" in done.stderr


@pytest.mark.parametrize("package", ["handrail-core", "Handrail_Core", "handrail"])
def test_the_program_does_not_remove_itself(handrail, package):
    done = handrail("uninstall", package)
    assert done.returncode == 1
    assert "this program itself" in done.stderr


def test_an_option_of_the_installer_is_not_a_package(handrail):
    assert handrail("install", "--", "--index-url=http://evil.example").returncode == 1
