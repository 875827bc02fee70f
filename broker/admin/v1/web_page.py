"""The web page and its files. They are read when the administration is loaded, and sent as they are."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from ..operation import Call, Content, HttpError, Operation

_MEDIA_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    # The page of a node that was updated must not meet the scripts of before.
    "Cache-Control": "no-cache",
}
INDEX: Final = "index.html"


def _read() -> dict[str, Content]:
    found: dict[str, Content] = {}

    def walk(folder: Traversable) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry)
                continue
            media_type = _MEDIA_TYPES.get(entry.name.rpartition(".")[2])
            if media_type is not None:
                body = entry.read_bytes()
                tag = hashlib.sha256(body).hexdigest()[:16]
                found[entry.name] = Content(media_type=media_type, body=body, headers={**_HEADERS, "ETag": f'"{tag}"'})

    walk(files("penstock.broker.admin.page"))
    return found


_FILES: Final = _read()


async def _index(call: Call) -> Content:
    return _sent(call, INDEX)


async def _file(call: Call) -> Content:
    return _sent(call, call.path["page_file"])


def _sent(call: Call, name: str) -> Content:
    content = _FILES.get(name)
    if content is None:
        raise HttpError(404, "Not Found", f"The page has no file {name!r}.")
    if call.headers.get("If-None-Match") == content.headers["ETag"]:
        return Content(media_type=content.media_type, body=b"", headers=content.headers, status=304)
    return content


OPERATIONS: Final = (
    Operation(
        name="getPage",
        method="GET",
        path="/",
        tag="Page",
        summary="The web page of this node",
        run=_index,
        media_type="text/html",
        is_urgent=True,
        is_open=True,
    ),
    Operation(
        name="getPageFile",
        method="GET",
        path="/page/{page_file}",
        tag="Page",
        summary="A file of the web page",
        run=_file,
        media_type="text/javascript",
        is_urgent=True,
        is_open=True,
    ),
)
