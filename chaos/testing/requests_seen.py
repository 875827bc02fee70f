"""The requests of clients as a node saw them, in words: read from its `RequestLog`."""

from __future__ import annotations

import dataclasses
import json
from binascii import a2b_base64
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode as KioErrorCode

from ...protocol.apis import APIS, ApiKey
from ...protocol.errors import CorruptData, ErrorCode
from ...protocol.messages import decode_request, decode_response
from ...protocol.own_apis import api_name
from ...protocol.primitives import read_count, read_string, uuid_from
from ..faults.request_log import KEPT_BYTES, older_path

# What clients, and nodes that are not known yet, ask when they connect.
_LEFT_OUT: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }
)
_FIELDS: Final = ("group_id", "transactional_id", "acks", "member_id", "generation_id", "member_epoch", "key")
_TOPICS_SHOWN: Final = 3
# The line of a process that begins.
_BEGINNING: Final = b"[0]"
_FIRST_FLEXIBLE_PRODUCE: Final = 9
_FIRST_PRODUCE_WITH_IDS: Final = 13


class SeenRequest(NamedTuple):
    """`time_ns` is when it arrived."""

    time_ns: int
    text: str


class _Arrived(NamedTuple):
    time_ns: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    peer: str
    size: int
    body: bytes


def read_requests(path: Path) -> list[SeenRequest]:
    """In the order of their arrival; none where nothing was logged."""
    seen: list[SeenRequest] = []
    open_requests: dict[int, _Arrived] = {}
    for values in (*_lines(older_path(path)), *_lines(path)):
        match values:
            case [_]:
                # Another process begins.
                seen += [_told(one, None) for one in open_requests.values()]
                open_requests.clear()
            case [entry, time_ns, size, text]:
                begun = open_requests.pop(entry, None)
                if begun is not None:
                    seen.append(_told(begun, (time_ns - begun.time_ns, size, a2b_base64(text))))
            case [entry, time_ns, key, version, correlation_id, client_id, peer, size, text]:
                open_requests[entry] = _Arrived(
                    time_ns, key, version, correlation_id, client_id, peer, size, a2b_base64(text)
                )
    seen += [_told(one, None) for one in open_requests.values()]
    return sorted(one for one in seen if one.text)


def _lines(path: Path) -> Iterator[list[Any]]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            # A node that is killed, or whose disk is full, may leave half a line in front of the next one.
            if line.endswith(_BEGINNING):
                yield json.loads(_BEGINNING)


def _told(request: _Arrived, answer: tuple[int, int, bytes] | None) -> SeenRequest:
    if request.api_key in _LEFT_OUT or request.api_key not in APIS:
        return SeenRequest(request.time_ns, "")
    about = _about(request)
    words = [api_name(request.api_key), *about, f"by {request.client_id or request.peer}:", _outcome(request, answer)]
    return SeenRequest(request.time_ns, " ".join(words))


def _outcome(request: _Arrived, answer: tuple[int, int, bytes] | None) -> str:
    if answer is None:
        return "no answer"
    took_ns, size, first = answer
    if size < 0:
        return "connection closed"
    errors = Counter[str]()
    if size == len(first) and size:
        with suppress(CorruptData):
            errors.update(_errors(decode_response(request.api_key, request.api_version, first[4:])[1]))
    del errors["NONE"]
    # Without its time, so that equal ones are one line; what took long is told.
    late = f" after {took_ns / 1e9:.1f} s" if took_ns >= 100_000_000 else ""
    return f"{', '.join(errors) or 'ok'}{late}"


def _errors(value: Any) -> Iterator[str]:
    if isinstance(value, KioErrorCode):
        yield ErrorCode(int(value)).name
    elif isinstance(value, tuple):
        for item in value:
            yield from _errors(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _errors(getattr(value, field.name))


def _about(request: _Arrived) -> list[str]:
    """Topics, group and the like, as far as they are in what was kept."""
    try:
        if request.api_key == ApiKey.PRODUCE:
            return _about_produce(request)
        if request.size > KEPT_BYTES:
            return [f"of {request.size} bytes"]
        message = decode_request(request.api_key, request.api_version, memoryview(request.body), 0)
    except (CorruptData, IndexError, ValueError):
        return [f"of {request.size} bytes"]
    words = [f"{name}={value}" for name in _FIELDS if (value := getattr(message, name, None)) not in (None, "", ())]
    topics = [*dict.fromkeys(_topics(message))]
    if topics:
        more = "…" if len(topics) > _TOPICS_SHOWN else ""
        words.append(",".join(topics[:_TOPICS_SHOWN]) + more)
    return words


def _topics(value: Any) -> Iterator[str]:
    if isinstance(value, tuple):
        for item in value:
            yield from _topics(item)
    elif dataclasses.is_dataclass(value):
        if hasattr(value, "partitions") or hasattr(value, "partition_indexes"):
            name = getattr(value, "name", None) or getattr(value, "topic", None) or getattr(value, "topic_id", None)
            if name is not None:
                yield str(name)
        for field in dataclasses.fields(value):
            yield from _topics(getattr(value, field.name))


def _about_produce(request: _Arrived) -> list[str]:
    """Its first partition: records lie behind it, so the beginning is enough."""
    is_flexible = request.api_version >= _FIRST_FLEXIBLE_PRODUCE
    body = memoryview(request.body)
    transactional_id, position = read_string(body, 0, is_flexible=is_flexible)
    acks = int.from_bytes(body[position : position + 2], "big", signed=True)
    topics, position = read_count(body, position + 6, is_flexible=is_flexible)
    topic: str | UUID | None
    if request.api_version >= _FIRST_PRODUCE_WITH_IDS:
        topic, position = uuid_from(bytes(body[position : position + 16])), position + 16
    else:
        topic, position = read_string(body, position, is_flexible=is_flexible)
    partitions, position = read_count(body, position, is_flexible=is_flexible)
    partition = int.from_bytes(body[position : position + 4], "big", signed=True)
    more = "…" if topics > 1 or partitions > 1 else ""
    transaction = [] if transactional_id is None else [f"transactional_id={transactional_id}"]
    return [*transaction, f"acks={acks}", f"{topic}-{partition}{more}"]
