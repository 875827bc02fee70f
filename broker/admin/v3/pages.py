"""Lists of resources: one page of them, made and encoded a piece in each turn of the loop."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from ....protocol.rest.resources import CollectionMetadata, PageQuery, Unavailable
from ..operation import JSON, Call, Content, HttpError
from ..turns import Turns
from . import links

KeyT = TypeVar("KeyT")
T = TypeVar("T")

_ENCODER: Final = msgspec.json.Encoder()


def after(call: Call, key: type[KeyT]) -> KeyT | None:
    """Return the key of the last item of the page before; None on the first page. Raises HttpError 400."""
    query: PageQuery = call.query
    if query.page_token is None:
        return None
    try:
        return msgspec.json.decode(urlsafe_b64decode(query.page_token), type=key)
    except (ValueError, msgspec.MsgspecError):
        raise HttpError(400, "Bad Request", "page_token is not one that this list has given.") from None


async def page(
    call: Call,
    kind: str,
    items: Iterable[tuple[object, object]] | AsyncIterable[tuple[object, object]],
    *segments: object,
    unavailable: Sequence[Unavailable] = (),
    query: Mapping[str, str] = MappingProxyType({}),
) -> Content:
    """A list of the `kind` at the address of `segments`: of `items`, which are (key, resource) from behind `after` on.

    `query` is what chose the items, for the next page to choose by the same. A resource that is None is left out; it
    lets the loop take its turn.
    """
    size = call.query.page_size
    encoded: list[bytes] = []
    last_key: object = None
    has_more = False
    async for key, resource in in_turns(items):
        if resource is None:
            continue
        if len(encoded) == size:
            has_more = True
            break
        encoded.append(_ENCODER.encode(resource))
        last_key = key
    metadata = CollectionMetadata(self_=links.search(call, query, *segments))
    if has_more:
        token = urlsafe_b64encode(_ENCODER.encode(last_key)).decode()
        metadata.next = links.search(call, {**query, "page_size": str(size), "page_token": token}, *segments)
    if unavailable:
        metadata.unavailable = list(unavailable)
    head = b'{"kind":' + _ENCODER.encode(kind) + b',"metadata":' + _ENCODER.encode(metadata) + b',"data":['
    return Content(media_type=JSON, body=b"".join((head, b",".join(encoded), b"]}")))


async def in_turns(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    """The items, with a pause where it is due."""
    turns = Turns()
    if isinstance(items, AsyncIterable):
        async for item in items:
            await turns.pause()
            yield item
    else:
        for item in items:
            await turns.pause()
            yield item
