"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Service, ServiceContext, Tool
    from handrail.workers.parser_pool import ParserPool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Return the tools that read and write documents."""
    from handrail_documents.convert_tool import convert_document
    from handrail_documents.read_tools import read_excel, read_image, read_pdf
    from handrail_documents.write_tool import write_excel

    return [read_pdf, read_image, read_excel, write_excel, convert_document]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return the service whose process parses a session's documents."""
    from handrail import Service

    return [Service("document_parsers", _open_parsers, scope="session")]


async def _open_parsers(context: ServiceContext) -> ParserPool:
    from handrail.workers.parser_pool import ParserPool

    return ParserPool(context.environment, jobs="handrail_documents.jobs")
