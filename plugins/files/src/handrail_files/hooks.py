"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, ServiceContext, Tool
    from handrail_files.file_texts import FileTexts
    from handrail_files.known_versions import KnownVersions


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Reading, writing, changing and finding files."""
    from handrail_files.edit_tool import edit_file
    from handrail_files.find_tool import find_files
    from handrail_files.list_tool import list_directory
    from handrail_files.read_many_tool import read_many_files
    from handrail_files.read_tool import read_file
    from handrail_files.write_tool import write_file

    return [read_file, read_many_files, write_file, edit_file, find_files, list_directory]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return the services: file versions that a session has seen, and files as text for other plugins."""
    from handrail import Service

    return [
        Service("known_files", _open_known_versions, scope="session"),
        Service("file_texts", _open_file_texts, scope="process"),
    ]


async def _open_known_versions(context: ServiceContext) -> KnownVersions:
    from handrail_files.known_versions import KnownVersions

    return await KnownVersions.open(context)


async def _open_file_texts(context: ServiceContext) -> FileTexts:
    from handrail_files.file_texts import FileTexts

    return FileTexts()
