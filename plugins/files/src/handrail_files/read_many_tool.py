"""The tool `read_many_files`: each file by a nested call of `read_file`, each pattern by one of `find_files`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from handrail import Read, ToolContext, ToolResult, tool
from handrail_files.glob_patterns import WILDCARD

# Characters of all files together, files that are read, and names that a pattern may have.
MAX_CHARACTERS = 150_000
MAX_FILES = 200
MAX_MATCHED_FILES = 1_000


@tool(layer="file", title="Read several files", effects=[Read("glob", arg="paths")], timeout=60)
async def read_many_files(
    paths: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        Field(min_length=1, max_length=100, description="Files, or patterns: `src/*.py`, `**/README.md`."),
    ],
    limit: Annotated[int, Field(ge=1, le=10_000, description="Lines of each file to show at most.")] = 200,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Read several text files, and return files (path, and what read_file returns) and skipped (path and reason).

    Patterns leave out hidden and ignored files.
    """
    names: dict[str, None] = {}
    skipped: list[Mapping[str, str]] = []
    for path in paths:
        if WILDCARD.search(path) is None:
            names[path] = None
        else:
            found, reason = await _find_matching_files(path, context)
            names.update(dict.fromkeys(found))
            if reason is not None:
                skipped.append({"path": path, "reason": reason})
    files: list[Mapping[str, Any]] = []
    size = 0
    for name in names:
        if len(files) == MAX_FILES or size >= MAX_CHARACTERS:
            skipped.append({"path": name, "reason": "there was too much before it; read it by itself"})
            continue
        result = await context.call("read_file", {"file_path": name, "limit": limit})
        if (reason := _explain_failure(result)) is not None:
            skipped.append({"path": name, "reason": reason})
            continue
        size += len(result["stdout"])
        files.append({"path": name, **{key: result[key] for key in result if key not in ("status", "duration_ms")}})
    return {
        "files": files,
        "skipped": skipped,
        "truncated": any(file["truncated"] for file in files) or size >= MAX_CHARACTERS,
    }


async def _find_matching_files(pattern: str, context: ToolContext) -> tuple[list[str], str | None]:
    """Return the names of the matching files, sorted, and a note if there are no files or not all are included."""
    wild = WILDCARD.search(pattern)
    assert wild is not None
    base = re.match(r"(.*/)?", pattern[: wild.start()], re.DOTALL)
    folder = base[0] if base is not None else ""
    rest = pattern[len(folder) :]
    # A slash at its beginning ties the pattern to the folder, unless it means every folder below.
    tied = rest if rest.split("/")[0] == "**" else f"/{rest}"
    args = {"path": folder or ".", "pattern": tied, "max_results": MAX_MATCHED_FILES}
    result = await context.call("find_files", args)
    if not result.ok:
        return [], str(result["error"]["message"])
    names = sorted(os.path.normpath(match["path"]) for match in result["matches"])
    if not names:
        return [], await _explain_no_files(args, context)
    return names, f"only {len(names)} of {result['total']} files are taken" if result["truncated"] else None


async def _explain_no_files(args: Mapping[str, Any], context: ToolContext) -> str:
    """Explain why a pattern yields no files: nothing matches, or the matches are hidden, ignored or may not be read."""
    result = await context.call("find_files", {**args, "ignore": False})
    if result.ok and result["matches"]:
        return "what fits it is hidden or ignored; name the file"
    if result.ok and result.get("withheld"):
        return f"what fits it ({result['withheld']}) may not be read, as files with secrets may not"
    return "no file fits it"


def _explain_failure(result: ToolResult) -> str | None:
    if not result.ok:
        return str(result["error"]["message"])
    return f"it is no text: {result['stdout']}; read_file shows it" if "media" in result else None
