"""`handrail config`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import SessionOptions, json_option, print_json, read_config, session_options
from handrail.terminal.json_lines import encode_json_line

if TYPE_CHECKING:
    from handrail.config.loader import LoadedConfig


@click.group("config", invoke_without_command=True)
@session_options
@json_option
@click.pass_context
def command(context: click.Context, choices: SessionOptions, as_json: bool) -> None:
    """Print every setting and where it comes from.

    Example: handrail config --mode plan
    """
    if context.invoked_subcommand is not None:
        return
    config = read_config(choices)
    values = {key: {"value": _get_shown_value(config, key), "source": source} for key, source in config.sources.items()}
    if as_json:
        print_json({"settings": values, "ignored": config.ignored, "files": [str(file) for file in config.files]})
        return
    width = max(map(len, values))
    for key, setting in values.items():
        click.echo(f"{key:<{width}} = {encode_json_line(setting['value'])}  # {setting['source']}")


@command.command("schema")
def schema_command() -> None:
    """Print a JSON Schema of the configuration file.

    It covers the tables of the plugins and backends that are installed. Editors that know TOML can use it.

    Example: handrail config schema > handrail.schema.json
    """
    import os

    from handrail.session.installed_plugins import build_installed_schema

    print_json(build_installed_schema(os.environ))


def _get_shown_value(config: LoadedConfig, key: str) -> Any:
    """Return a setting as plain data; values in a plugin's table that look like secrets are redacted."""
    from handrail.redaction import redact_value

    value: Any = config.settings.model_dump(mode="json")
    for part in key.split(".", 2):
        value = value[part]
    return redact_value(value, name=key.rpartition(".")[2]) if key.count(".") > 1 else value
