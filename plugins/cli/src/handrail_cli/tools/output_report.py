"""Representation of a command's output in results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail_cli.process.charset_detection import UTF_8
from handrail_cli.process.output_capture import OutputText

# Under which key a result names the artifact of a stream.
ARTIFACT_KEYS = {"stdout": "artifact", "stderr": "stderr_artifact"}


def describe_outputs(outputs: Mapping[str, OutputText]) -> tuple[dict[str, Any], list[str]]:
    """Return the result keys for these outputs, by stream name, and the notes on them."""
    keys: dict[str, Any] = {name: shown.text for name, shown in outputs.items()}
    notes: list[str] = []
    if any(shown.truncated for shown in outputs.values()):
        keys["truncated"] = True
    for name, shown in outputs.items():
        if shown.artifact is not None:
            keys[ARTIFACT_KEYS[name]] = shown.artifact
        where = "" if shown.artifact is None else f", kept in the artifact {shown.artifact['id']}"
        if shown.binary:
            notes.append(f"{name} is no text{where}.")
        elif shown.lossy:
            notes.append(f"{name} is not all in UTF-8{where}; `iconv -f` reads it where its encoding is known.")
        elif shown.charset != UTF_8:
            notes.append(f"{name} was read as {shown.charset}.")
        if shown.lists:
            notes.append(f"NUL bytes of {name} are shown as line ends.")
        if shown.cut is not None and shown.artifact is not None:
            notes.append(f"The artifact of {name} ends after {shown.artifact['bytes']} bytes: {shown.cut}.")
        elif shown.cut is not None:
            notes.append(f"The whole of {name} is not kept: {shown.cut}.")
    return keys, notes
