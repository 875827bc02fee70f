"""The OpenAPI document of all that is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import msgspec

from .... import __version__
from ..operation import JSON, Call, Content, Operation
from ..rules.openapi import openapi_document


def operations(all_operations: Callable[[], Sequence[Operation]]) -> tuple[Operation, ...]:
    """`all_operations` are those of the document, this one among them."""

    @cache
    def document() -> bytes:
        return msgspec.json.format(msgspec.json.encode(openapi_document(all_operations(), version=__version__)))

    async def serve(_call: Call) -> Content:
        return Content(media_type=JSON, body=document())

    return (
        Operation(
            name="getOpenApi",
            method="GET",
            path="/openapi.json",
            tag="Document",
            summary="The OpenAPI 3.1 document of everything that is served here",
            run=serve,
            is_urgent=True,
            is_open=True,
        ),
    )
