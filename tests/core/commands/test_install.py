from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from handrail.cli._package_manager import find_distribution

PLUGINS = Path(__file__).parents[2] / "fixtures/plugins"
PROGRAM = "import sys; from handrail.cli import main; main(sys.argv[1:])"


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
    for words, what in ((("stage", "idna"), "'idna' is no plugin"), (("stage", "stgae"), "there is no plugin 'stgae'")):
        refused = elsewhere("uninstall", *words)
        assert (refused.returncode, refused.stdout, what in refused.stderr) == (1, "", True), refused
    assert "did you mean 'stage'?" in refused.stderr
    assert elsewhere("bow", HANDRAIL_PLUGINS="stage").stdout == "bows\n"
    done = elsewhere("uninstall", "stage")
    assert done.stdout == "removed the plugin stage\n", done.stderr
    assert elsewhere("bow", HANDRAIL_PLUGINS="stage").returncode == 2


def test_what_is_changed_in_a_folder_that_is_installed_as_it_stands_counts_at_once(elsewhere, tmp_path: Path):
    folder = tmp_path / "stage"
    shutil.copytree(PLUGINS / "stage", folder)
    unbuilt = {"UV_NO_BUILD_ISOLATION": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = elsewhere("install", "-e", "./stage", **unbuilt)
    assert done.stdout == "installed the plugin stage; see `handrail plugins`\n", done.stderr
    (hooks,) = [file for file in folder.rglob("*.py") if "bows" in file.read_text()]
    hooks.write_text(hooks.read_text().replace("bows", "bows deeper"))
    assert elsewhere("bow", HANDRAIL_PLUGINS="stage").stdout == "bows deeper\n"
    refused = elsewhere("install", "-e", "-U", "stage")
    assert (refused.returncode, "exclude each other" in refused.stderr) == (2, True)


def test_what_cannot_be_installed_is_an_error_and_the_installer_says_why(elsewhere):
    done = elsewhere("install", "a-plugin-that-is-nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Hint: it says why above; what no index has is named by its file, as in dist/" in done.stderr
    assert "a-plugin-that-is-nowhere" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("idna", "'idna' is no plugin of Handrail"),
        ("click", "'click' is no plugin of Handrail; did you mean 'cli'?"),
        ("vision_orc", "there is no plugin 'vision_orc'; did you mean 'vision_ocr'?"),
        ("handrail-vision-orc", "there is no plugin 'handrail-vision-orc'; did you mean 'handrail-vision-ocr'?"),
        ("vision_ocr==0.1", "there is no plugin 'vision_ocr==0.1'; did you mean 'vision_ocr'?"),
        ("", "'' is not a package"),
    ],
)
def test_what_is_no_plugin_is_refused_before_anything_is_removed(handrail, name, said):
    done = handrail("uninstall", "system", name)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert distribution("handrail-system")
    assert distribution("idna")


@pytest.mark.parametrize("name", ["vision_ocr", "vision-ocr", "Handrail.Vision_OCR", "handrail-vision-ocr"])
def test_a_plugin_is_found_by_any_spelling_of_its_name_or_its_package(name):
    assert find_distribution(name) == "handrail-vision-ocr"


def test_options_that_go_without_a_package_are_refused_with_what_to_leave_out(handrail):
    done = handrail("uninstall", "--yes", "system")
    assert done.returncode == 2
    assert "leave them out to remove the plugin" in done.stderr


@pytest.mark.parametrize("package", ["handrail-core", "Handrail_Core", "handrail", "handrail[desktop]"])
def test_the_program_does_not_remove_itself(handrail, package):
    done = handrail("uninstall", package)
    assert done.returncode == 1
    assert "this program itself" in done.stderr


def test_an_option_of_the_installer_is_not_a_package(handrail):
    assert handrail("install", "--", "--index-url=http://evil.example").returncode == 1
