"""Programs whose words do not follow the usual grammar, and checks that follow a row: in code, by the name that the row gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from handrail_cli.programs.taking import Taking

# By the module and function in which each stands: a command line needs one or none of them.
GRAMMARS: Mapping[str, str] = {
    "env": "wrapping.env",
    "xargs": "wrapping.xargs",
    "parallel": "wrapping.parallel",
    "find": "finding.find",
    "command": "wrapping.command",
    "flock": "wrapping.flock",
    "watch": "wrapping.watch",
    "script": "wrapping.script",
    "applets": "wrapping.applets",
    "hyperfine": "wrapping.hyperfine",
    "privilege": "wrapping.privilege",
    "builtin": "wrapping.builtin",
    "python": "interpreting.python",
    "perl": "interpreting.perl",
    "scripting": "interpreting.scripting",
    "shell": "interpreting.shell",
    "other_interpreter": "interpreting.other",
    "tar": "packing.tar",
    "seven": "packing.seven",
    "cloud": "services.cloud",
    "gh": "services.gh",
    "multiplexer": "services.multiplexer",
    "converter": "documents.converter",
    "versions": "documents.versions",
    "uv_run": "others.uv_run",
    "ps": "others.ps",
    "kill": "others.kill",
    "addresses": "system_queries.take_addresses",
    "ip": "system_queries.take_ip",
    "lsof": "system_queries.take_lsof",
    "fuser": "system_queries.take_fuser",
    "mlr": "table_tools.take_mlr",
    "crontab": "others.crontab",
    "ssh": "others.ssh",
    "browser": "others.browser",
    "gpg": "others.gpg",
    "keygen": "others.keygen",
}
CHECKS: Mapping[str, str] = {
    "socket_filter": "system_queries.check_socket_filter",
    "names_hosts": "system_queries.check_names_hosts",
    "date": "usual.date",
    "printf": "usual.printf",
    "printenv": "usual.printenv",
    "test": "usual.test",
    "ln": "usual.ln",
    "cp": "usual.cp",
    "link": "usual.link",
    "chmod": "usual.chmod",
    "sed": "usual.sed",
    "awk": "usual.awk",
    "recursive": "usual.recursive",
    "curl": "others.curl",
    "wget": "others.wget",
    "httpie": "others.httpie",
    "lookup": "others.lookup",
    "rsync": "others.rsync",
    "packages": "others.packages",
    "fetched_program": "running.fetched_program",
    "npm_init": "running.npm_init",
    "class_path": "running.class_path",
    "make": "running.make",
    "project": "running.project",
    "tasks": "running.tasks",
    "go_tool": "running.go_tool",
    "dpkg": "others.dpkg",
    "local_packages": "others.check_local_packages",
    "pacman": "others.pacman",
    "rpm": "others.rpm",
    "mount": "others.nothing_named",
    "sysctl": "system_queries.check_sysctl",
    "log_fields": "system_queries.check_log_fields",
    "log_matches": "system_queries.check_log_matches",
    "module_files": "system_queries.check_module_files",
    "login_file": "system_queries.check_login_file",
    "device_names": "system_queries.check_device_names",
    "asks_only": "system_queries.check_asks_only",
    "script_or_file": "table_tools.check_script_or_file",
    "script_of_fx": "table_tools.check_fx_script",
    "response_files": "table_tools.check_response_files",
    "iptables": "others.iptables",
    "setting": "others.setting",
    "service": "others.service",
    "shown": "others.shown",
    "nmcli": "system_queries.check_nmcli",
    "copies": "others.copies",
    "unzip": "packing.unzip",
    "patch": "packing.patch",
    "pack": "packing.pack",
    "cpio": "packing.cpio",
    "container_run": "services.container_run",
    "container_text": "services.container_text",
    "compose": "services.compose",
    "inspected": "services.check_inspected",
    "kubectl": "services.kubectl",
    "sql": "services.sql",
    "sqlite": "services.sqlite",
    "redis": "services.redis",
    "less": "documents.less",
    "man": "documents.man",
    "exiftool": "documents.exiftool",
    "magick": "documents.magick",
    "ffmpeg": "documents.ffmpeg",
    "ffprobe": "documents.ffprobe",
    "calculator": "documents.calculator",
    "arithmetic": "documents.check_arithmetic",
    "perl_pages": "documents.check_perl_pages",
    "package_files": "documents.check_package_files",
    "git_branch": "gits.branch",
    "git_checkout": "gits.checkout",
    "git_restore": "gits.restore",
    "git_push": "gits.push",
    "git_fetch": "gits.fetch",
    "git_url": "gits.url",
    "git_config": "gits.config",
}


@lru_cache(maxsize=256)
def grammar(name: str) -> Callable[[Taking, int], None]:
    """What takes the words of a row that says `by/NAME`, from the word with this number on."""
    return cast("Callable[[Taking, int], None]", _found(GRAMMARS[name]))


@lru_cache(maxsize=256)
def check(name: str) -> Callable[[Taking], None]:
    """What follows a row that says `then/NAME`."""
    return cast("Callable[[Taking], None]", _found(CHECKS[name]))


def _found(place: str) -> object:
    module, _, function = place.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)
