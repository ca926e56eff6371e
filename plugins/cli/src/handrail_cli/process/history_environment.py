"""The environment of a sandboxed command that can change the history of a repository: nothing in it leads programs into the workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from handrail.sandbox import repositories
from handrail.workers.host_programs import HostPrograms
from handrail_cli.process.environment import INSPECTING_VARIABLES, NO_EDITOR, UNATTENDED_VARIABLES
from handrail_cli.shell.bash.variable_rules import is_harmless_value


def create_history_environment(
    environment: Mapping[str, str],
    repository: Path,
    programs: HostPrograms,
    *,
    settings: Iterable[Path],
    used: Collection[Path] = (),
    writable: Collection[Path] = (),
) -> dict[str, str]:
    """Return the variables for a command that may change `repository` (its `.git`).

    `settings` are configuration files in addition to the repository's own. `used` are the work trees that git works in;
    empty for all. `writable` are directories that commands write to, in addition to work trees.

    Variables that programs obey are left out unless they name only trusted directories, and directories that agents can
    write are removed from PATH. Git itself refuses to work in any other repository, including any created by a command
    meanwhile, and to fetch from any on this machine: such a repository may name programs that could change this one.
    Hooks that git itself would run (`git switch`, `git am`) are not run, and neither are editors, pagers, credential
    helpers and other configured programs that git can do without.
    """
    given = {name: value for name, value in environment.items() if _is_safe_variable(name, value, programs)}
    if "PATH" in environment:
        given["PATH"] = programs.searched(environment["PATH"])
    # `safe.directory` counts for repositories of other users only, which git is told to take all for. An empty one takes back those before.
    told = [
        ("safe.directory", ""),
        *(("safe.directory", str(tree)) for tree in repositories.iter_work_trees(repository)),
    ]
    # Work trees that the sandbox does not show are there.
    told.append(("gc.worktreePruneExpire", "never"))
    told += [("core.editor", NO_EDITOR), ("sequence.editor", NO_EDITOR)]
    told += repositories.overriding_settings(repository, settings, used=used, writable=writable)
    if repositories.has_unsettled_hooks(repository, settings, used=used):
        told.append((repositories.HOOKS_KEY, os.devnull))
    parameters = " ".join(f"{_quote_git_setting(name)}={_quote_git_setting(value)}" for name, value in told)
    return {
        **given,
        **UNATTENDED_VARIABLES,
        "GIT_ASKPASS": "",
        "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1",
        "GIT_CONFIG_PARAMETERS": parameters,
    }


def _quote_git_setting(text: str) -> str:
    """Quote text as git quotes settings: always, with quotes and exclamation marks escaped separately."""
    return "'" + re.sub(r"['!]", r"'\\\g<0>'", text) + "'"


def _is_safe_variable(name: str, value: str, programs: HostPrograms) -> bool:
    if (
        UNATTENDED_VARIABLES.get(name) == value
        or INSPECTING_VARIABLES.fullmatch(name)
        or is_harmless_value(name, value)
    ):
        return True
    return bool(value) and programs.searched(value) == value
