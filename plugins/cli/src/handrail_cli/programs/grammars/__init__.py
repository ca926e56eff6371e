"""Programs whose words do not follow the usual grammar, and checks that follow a row: in code, by the name that the row gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from handrail_cli.programs.grammars.arg_matching import ArgumentMatch

# By the module and function in which each stands: a command line needs one or none of them.
GRAMMARS: Mapping[str, str] = {
    "env": "wrappers.take_env",
    "xargs": "wrappers.take_xargs",
    "parallel": "wrappers.take_parallel",
    "find": "find_expression.take_find",
    "command": "wrappers.take_command",
    "flock": "wrappers.take_flock",
    "watch": "wrappers.take_watch",
    "script": "wrappers.take_script",
    "applets": "wrappers.take_applet",
    "hyperfine": "wrappers.take_hyperfine",
    "privilege": "wrappers.take_privilege",
    "builtin": "wrappers.take_builtin",
    "python": "interpreters.take_python",
    "perl": "interpreters.take_perl",
    "scripting": "interpreters.take_scripting",
    "shell": "interpreters.take_shell",
    "other_interpreter": "interpreters.take_other_interpreter",
    "tar": "archives.take_tar",
    "seven": "archives.take_seven_zip",
    "cloud": "services.take_cloud",
    "gh": "services.take_gh",
    "multiplexer": "services.take_multiplexer",
    "converter": "documents.take_converter",
    "versions": "documents.take_version_control",
    "uv_run": "single_programs.take_uv_run",
    "ps": "single_programs.take_ps",
    "kill": "single_programs.take_kill",
    "addresses": "system_queries.take_addresses",
    "ip": "system_queries.take_ip",
    "lsof": "system_queries.take_lsof",
    "fuser": "system_queries.take_fuser",
    "mlr": "table_tools.take_mlr",
    "crontab": "single_programs.take_crontab",
    "ssh": "single_programs.take_ssh",
    "browser": "single_programs.take_text_browser",
    "gpg": "single_programs.take_gpg",
    "keygen": "single_programs.take_ssh_keygen",
}
CHECKS: Mapping[str, str] = {
    "socket_filter": "system_queries.check_socket_filter",
    "names_hosts": "system_queries.check_host_names",
    "date": "common_checks.check_date",
    "printf": "common_checks.check_printf",
    "printenv": "common_checks.check_printenv",
    "test": "common_checks.check_test_expression",
    "ln": "common_checks.check_ln",
    "cp": "common_checks.check_cp",
    "link": "common_checks.check_hard_links",
    "chmod": "common_checks.check_chmod",
    "sed": "common_checks.check_sed",
    "awk": "common_checks.check_awk",
    "recursive": "common_checks.check_recursive_search",
    "curl": "single_programs.check_curl",
    "wget": "single_programs.check_wget",
    "httpie": "single_programs.check_httpie",
    "lookup": "single_programs.check_name_lookup",
    "rsync": "single_programs.check_rsync",
    "packages": "single_programs.check_packages",
    "fetched_program": "code_runners.check_fetched_program",
    "npm_init": "code_runners.check_npm_init",
    "class_path": "code_runners.check_class_path",
    "make": "code_runners.check_make",
    "project": "code_runners.check_project",
    "tasks": "code_runners.check_tasks",
    "go_tool": "code_runners.check_go_tool",
    "dpkg": "single_programs.check_dpkg",
    "local_packages": "single_programs.check_local_packages",
    "pacman": "single_programs.check_pacman",
    "rpm": "single_programs.check_rpm",
    "mount": "single_programs.check_no_operands",
    "sysctl": "system_queries.check_sysctl",
    "log_fields": "system_queries.check_log_fields",
    "log_matches": "system_queries.check_log_matches",
    "module_files": "system_queries.check_module_files",
    "login_file": "system_queries.check_login_file",
    "device_names": "system_queries.check_device_names",
    "asks_only": "system_queries.check_query_only",
    "script_or_file": "table_tools.check_script_or_file",
    "script_of_fx": "table_tools.check_fx_script",
    "response_files": "table_tools.check_response_files",
    "iptables": "single_programs.check_iptables",
    "setting": "single_programs.check_setting",
    "service": "single_programs.check_service",
    "shown": "single_programs.check_unit_properties",
    "nmcli": "system_queries.check_nmcli",
    "copies": "single_programs.check_scp",
    "unzip": "archives.check_unzip",
    "patch": "archives.check_patch",
    "pack": "archives.check_compressor",
    "cpio": "archives.check_cpio",
    "container_run": "services.check_container_run",
    "container_text": "services.check_container_files",
    "compose": "services.check_compose",
    "inspected": "services.check_inspection",
    "kubectl": "services.check_kubectl",
    "sql": "services.check_sql_client",
    "sqlite": "services.check_sqlite",
    "redis": "services.check_redis",
    "less": "documents.check_less",
    "man": "documents.check_man",
    "exiftool": "documents.check_exiftool",
    "magick": "documents.check_magick",
    "ffmpeg": "documents.check_ffmpeg",
    "ffprobe": "documents.check_ffprobe",
    "calculator": "documents.check_calculator",
    "arithmetic": "documents.check_arithmetic",
    "perl_pages": "documents.check_perl_pages",
    "package_files": "documents.check_package_files",
    "git_branch": "git.check_branch",
    "git_checkout": "git.check_checkout",
    "git_restore": "git.check_restore",
    "git_push": "git.check_push",
    "git_fetch": "git.check_fetch",
    "git_url": "git.check_address",
    "git_config": "git.check_config",
}


@lru_cache(maxsize=256)
def load_grammar(name: str) -> Callable[[ArgumentMatch, int], None]:
    """Return the function that matches the words of a row with `by/NAME`, from the word with a given index on."""
    return cast("Callable[[ArgumentMatch, int], None]", _load_function(GRAMMARS[name]))


@lru_cache(maxsize=256)
def load_check(name: str) -> Callable[[ArgumentMatch], None]:
    """Return the check that follows a row with `then/NAME`."""
    return cast("Callable[[ArgumentMatch], None]", _load_function(CHECKS[name]))


def _load_function(place: str) -> object:
    module, _, function = place.partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)
