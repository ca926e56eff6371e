"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, Tool
    from handrail.plugins.services import ServiceContext
    from handrail_files.known import Known
    from handrail_files.texts import Texts


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Reading, writing, changing and finding files."""
    from handrail_files.edit import edit_file
    from handrail_files.find import find_files
    from handrail_files.listing import list_directory
    from handrail_files.read import read_file
    from handrail_files.read_many import read_many_files
    from handrail_files.write import write_file

    return [read_file, read_many_files, write_file, edit_file, find_files, list_directory]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """The versions of files that a session has seen, and files as text for other plugins."""
    from handrail import Service

    return [Service("known_files", _open_known, scope="session"), Service("file_texts", _open_texts, scope="process")]


async def _open_known(context: ServiceContext) -> Known:
    from handrail_files.known import Known

    return await Known.open(context)


async def _open_texts(context: ServiceContext) -> Texts:
    from handrail_files.texts import Texts

    return Texts()
