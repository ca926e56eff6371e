"""Programs whose words do not follow the usual grammar, and checks that follow a row: in code, by the name that the row gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from handrail_cli.programs.grammars import finding, gits, usual, wrapping
from handrail_cli.programs.taking import Taking

GRAMMARS: Mapping[str, Callable[[Taking, int], None]] = {
    "env": wrapping.env,
    "xargs": wrapping.xargs,
    "parallel": wrapping.parallel,
    "find": finding.find,
}
CHECKS: Mapping[str, Callable[[Taking], None]] = {
    "date": usual.date,
    "printf": usual.printf,
    "printenv": usual.printenv,
    "test": usual.test,
    "ln": usual.ln,
    "chmod": usual.chmod,
    "sed": usual.sed,
    "recursive": usual.recursive,
    "git_branch": gits.branch,
    "git_checkout": gits.checkout,
    "git_restore": gits.restore,
    "git_push": gits.push,
    "git_url": gits.url,
    "git_config": gits.config,
}
